//! What a tab is known by, what it knows of itself, and what an application may ask of it.

use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench;
use crate::client::App;
use crate::support::run;

fn send(app: &mut App, request: &str) -> Value {
    let send = json!({"tab": "a", "request": request, "content": request});
    app.wire.done("send", send);
    app.wire.result(request)
}

#[test]
fn an_answer_carries_the_id_as_it_was_written() {
    let bench = bench([Reply::text("fine")]);
    let mut app = App::start(&bench);
    app.wire.write(&json!({"op": "open", "id": 7, "tab": "a"}));
    let opened = app.wire.told().unwrap();
    assert_eq!(
        (&opened["re"], &opened["ok"]["tab"]),
        (&json!(7), &json!("a"))
    );
    app.wire
        .write(&json!({"op": "send", "id": -1, "tab": "a", "content": "hi"}));
    // Without a name of its own the work is called what the line is called.
    assert_eq!(app.wire.result("-1")["result"], "fine");
    app.wire.write_raw(b"{\"op\":\"dance\",\"id\":8}\n");
    let refused = loop {
        let line = app.wire.told().unwrap();
        if line["re"] == 8 {
            break line;
        }
    };
    assert_eq!(refused["error"]["code"], "bad_request");
    app.end();
}

#[test]
fn a_session_is_joined_by_its_name_and_a_tab_has_one_session() {
    let bench = bench([Reply::text("one"), Reply::text("two")]);
    let mut app = App::start(&bench);
    let opened = app.wire.done("open", json!({"tab": "a", "name": "work"}));
    send(&mut app, "first");
    for wanted in [
        json!({"tab": "b", "resume": "work"}),
        json!({"tab": "b", "name": "work"}),
        json!({"tab": "b", "resume": opened["session"]}),
        json!({"tab": "a", "resume": "work"}),
        json!({"tab": "a"}),
    ] {
        let joined = app.wire.done("open", wanted.clone());
        assert_eq!(
            (&joined["tab"], &joined["existing"]),
            (&json!("a"), &json!(true)),
            "{wanted}"
        );
    }
    let other = json!({"tab": "a", "resume": "something-else"});
    assert_eq!(app.wire.refused("open", other), "conflict");
    // A copy is a session of its own, and is not what goes by the name.
    let copied = json!({"tab": "c", "resume": "work", "fork": true});
    let busy = app.wire.ask("open", copied);
    assert_ne!(busy["ok"]["tab"], "a", "{busy}");
    // Whoever knows the session need not know its tab.
    let sent = json!({"tab": "work", "request": "second", "content": "go on"});
    app.wire.done("send", sent);
    assert_eq!(app.wire.result("second")["result"], "two");
    app.end();
}

#[test]
fn what_was_said_before_is_told_by_a_snapshot() {
    let bench = bench([Reply::text("noted"), Reply::text("more")]);
    let mut app = App::start(&bench);
    app.wire.done("open", json!({"tab": "a", "name": "work"}));
    send(&mut app, "first");
    assert_eq!(app.end().0, Some(0));

    let mut app = App::start(&bench);
    app.wire.done("open", json!({"tab": "a", "resume": "work"}));
    send(&mut app, "second");
    app.wire.until("a", "state");
    app.wire.forget("a");
    let heard = app.wire.done("events", json!({"tab": "a", "since": 0}));
    assert_eq!(heard["next"], 1);
    let snapshot = app.wire.until("a", "snapshot");
    assert_eq!(snapshot["first"], 1, "{snapshot}");
    let said = snapshot["event"]["messages"].as_array().unwrap();
    let said: Vec<_> = said.iter().map(|it| &it["content"][0]["text"]).collect();
    assert_eq!(said, ["first", "noted", "second", "more"]);
    app.end();
}

#[test]
fn a_tab_tells_how_full_the_window_is() {
    let bench = bench([Reply::text("fine")]);
    let mut app = App::start(&bench);
    let opened = app.wire.done("open", json!({"tab": "a"}));
    assert!(
        opened["context"]["window"].as_u64() > Some(1_000),
        "{opened}"
    );
    assert_eq!(opened["context"].get("used"), None);
    send(&mut app, "hi");
    let view = app.wire.done("tabs", json!({}))["tabs"][0].clone();
    assert!(view["context"]["used"].as_u64() > Some(0), "{view}");
    app.end();
}

/// What the operator gave is the most that there is.
#[test]
fn an_application_has_no_more_than_its_operator() {
    let look = || Reply::tool("Glob", json!({"pattern": "*"}));
    let bench = bench([look(), look(), look()]);
    let mut app = App::start_with(&bench, &[], |command| {
        command.args(["--max-turns", "2"]);
    });
    let wanted = json!({"tab": "a", "max_turns": 50, "tools": ["Glob", "Read"]});
    let opened = app.wire.done("open", wanted);
    assert_eq!(opened["init"]["tools"], json!(["Glob", "Read"]));
    let result = send(&mut app, "look");
    assert_eq!(result["subtype"], "max_turns", "{result}");
    assert_eq!(bench.server.model_requests().len(), 2);
    app.end();
}

#[rstest]
#[case::turns(json!({"max_turns": 0}))]
#[case::model(json!({"model": " "}))]
#[case::fork(json!({"fork": true}))]
fn what_means_nothing_is_refused(#[case] open: Value) {
    let bench = bench([]);
    let mut app = App::start(&bench);
    assert_eq!(app.wire.refused("open", open), "bad_request");
    app.end();
}

/// A mode that no session may have is said when the server starts.
#[rstest]
#[case::app(&["serve", "app"])]
#[case::acp(&["serve", "acp"])]
#[case::heddle(&["serve", "heddle"])]
#[case::http(&["serve"])]
fn a_server_does_not_start_in_a_mode_without_its_latch(#[case] serve: &[&str]) {
    let bench = bench([]);
    let mode = ["--permission-mode", "bypassPermissions"];
    let ran = run(bench.command().args(mode).args(serve));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("--allow-dangerously-skip-permissions"),
        "{}",
        ran.stderr
    );
}
