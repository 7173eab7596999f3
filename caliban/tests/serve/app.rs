//! One application and its tabs.

use std::time::{Duration, Instant};

use caliban_testkit::{Match, Recorded, Reply};
use serde_json::json;

use crate::bench;
use crate::client::App;

/// Everything is said at once where somebody reads it; the two seconds are for those who do not.
#[test]
fn a_server_ends_when_its_application_goes() {
    let bench = bench([]);
    let mut app = App::start(&bench);
    app.wire.done("open", json!({"tab": "a"}));
    let begun = Instant::now();
    assert_eq!(app.end().0, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(2), "{begun:?}");
}

#[test]
fn an_effort_that_was_set_is_kept_by_the_session() {
    let bench = bench((0..4).map(|_| Reply::text("Yes.")));
    let mut app = App::start(&bench);
    let begun = app
        .wire
        .done("open", json!({"tab": "a", "effort": "medium"}));
    let changed = app.wire.done("open", json!({"tab": "b"}));
    app.wire.done("set", json!({"tab": "b", "effort": "low"}));
    for tab in ["a", "b"] {
        let send = json!({"tab": tab, "request": tab, "content": "hi"});
        app.wire.done("send", send);
        app.wire.result(tab);
    }
    assert_eq!(app.end().0, Some(0));
    for opened in [begun, changed] {
        let ran = bench.run(["-p", "go on", "-r", opened["session"].as_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let requests = bench.server.model_requests();
    let effort = |it: &Recorded| it.json()["output_config"]["effort"].clone();
    let efforts: Vec<_> = requests.iter().map(effort).collect();
    assert_eq!(efforts, ["medium", "low", "medium", "low"]);
}

#[test]
fn what_looks_the_installation_over_is_at_hand() {
    let bench = bench([]);
    let mut app = App::start(&bench);
    app.wire.done("open", json!({"tab": "a"}));
    for (request, line) in [
        ("d", "/doctor"),
        ("c", "/config"),
        ("t", "/config no-such-thing"),
    ] {
        let send = json!({"tab": "a", "request": request, "content": line});
        app.wire.done("send", send);
        let result = app.wire.result(request);
        let succeeded = result["subtype"] == "success";
        assert_eq!(succeeded, request != "t", "{result}");
    }
    assert_eq!(app.end().0, Some(0));
}

#[test]
fn a_session_is_opened_asked_and_closed() {
    let bench = bench([Reply::text("Hello there.")]);
    let mut app = App::start(&bench);
    let hello = app
        .wire
        .done("hello", json!({"protocol": 1, "client": "test"}));
    assert_eq!(
        (&hello["protocol"], &hello["frames"]),
        (&json!(1), &json!("caliban"))
    );
    assert_eq!(
        (&hello["max_running"], &hello["max_queue"]),
        (&json!(8), &json!(32))
    );

    let opened = app.wire.done("open", json!({"tab": "a"}));
    assert_eq!(
        (&opened["tab"], &opened["state"]),
        (&json!("a"), &json!("idle"))
    );
    assert_eq!(opened["init"]["subtype"], "init");
    assert!(
        opened["init"]["tools"]
            .as_array()
            .unwrap()
            .contains(&json!("Bash"))
    );
    // What is known of a session costs no call to the model.
    assert_eq!(bench.server.requests().len(), 0);
    assert_eq!(app.wire.until("a", "system")["seq"], 1);

    let sent = app.wire.done(
        "send",
        json!({"tab": "a", "request": "r1", "content": "hi"}),
    );
    assert_eq!(
        (&sent["state"], &sent["request"]),
        (&json!("running"), &json!("r1"))
    );
    let text = app.wire.until("a", "text");
    assert_eq!(text["request"], "r1");
    let message = app.wire.until("a", "message");
    assert_eq!(
        message["event"]["content"],
        json!([{"type": "text", "text": "Hello there."}])
    );
    let result = app.wire.result("r1");
    assert_eq!(
        (&result["subtype"], &result["result"]),
        (&json!("success"), &json!("Hello there."))
    );
    assert_eq!(result["session_id"], opened["session"]);
    let state = app.wire.until("a", "state");
    assert_eq!(
        (&state["event"]["state"], &state["event"]["last"]),
        (&json!("idle"), &json!("completed"))
    );

    let tabs = app.wire.done("tabs", json!({}));
    assert_eq!(
        (&tabs["tabs"][0]["tab"], &tabs["tabs"][0]["prompts"]),
        (&json!("a"), &json!(1))
    );
    assert_eq!(
        app.wire.done("close", json!({"tab": "a"})),
        json!({"closed": ["a"]})
    );
    assert_eq!(
        app.wire
            .refused("send", json!({"tab": "a", "content": "x"})),
        "no_such_tab"
    );
    let (code, _, _) = app.end();
    assert_eq!(code, Some(0));
}

#[test]
fn the_same_request_is_one_piece_of_work() {
    let bench = bench([Reply::text("once")]);
    let mut app = App::start(&bench);
    app.wire.done("open", json!({"tab": "a"}));
    let send = json!({"tab": "a", "request": "r", "content": "hi"});
    for _ in 0..20 {
        app.wire.done("send", send.clone());
    }
    assert_eq!(app.wire.result("r")["result"], "once");
    let again = app.wire.done("send", send);
    assert_eq!(
        (&again["state"], &again["duplicate"]),
        (&json!("ended"), &json!(true))
    );
    assert_eq!(again["result"]["result"], "once");
    let other = json!({"tab": "a", "request": "r", "content": "something else"});
    assert_eq!(app.wire.refused("send", other), "conflict");
    assert_eq!(bench.server.requests().len(), 1);
    let (_, rest, _) = app.end();
    let is_result = |line: &&serde_json::Value| line["event"]["type"] == "result";
    assert_eq!(rest.iter().filter(is_result).count(), 0);
}

#[test]
fn prompts_wait_in_order_and_the_queue_is_bounded() {
    let bench = bench([
        Reply::text("1").hold_after(0),
        Reply::text("2"),
        Reply::text("3"),
    ]);
    let mut app = App::start_with(&bench, &["--max-queue", "2"], |_| {});
    app.wire.done("open", json!({"tab": "a"}));
    let send = |request: &str| json!({"tab": "a", "request": request, "content": request});
    assert_eq!(app.wire.done("send", send("a"))["state"], "running");
    let second = app.wire.done("send", send("b"));
    assert_eq!(
        (&second["state"], &second["position"]),
        (&json!("queued"), &json!(1))
    );
    assert_eq!(app.wire.done("send", send("c"))["position"], 2);
    assert_eq!(app.wire.refused("send", send("d")), "queue_full");
    bench.server.release();
    for (request, answer) in [("a", "1"), ("b", "2"), ("c", "3")] {
        assert_eq!(app.wire.result(request)["result"], answer);
    }
    app.end();
}

#[test]
fn what_is_not_wanted_is_cancelled_and_has_a_result() {
    let bench = bench([Reply::text("never").hold_after(0), Reply::text("last")]);
    let mut app = App::start(&bench);
    app.wire.done("open", json!({"tab": "a"}));
    for request in ["a", "b", "c"] {
        app.wire.done(
            "send",
            json!({"tab": "a", "request": request, "content": request}),
        );
    }
    app.wire.done("cancel", json!({"tab": "a", "request": "b"}));
    assert_eq!(app.wire.result("b")["subtype"], "cancelled");
    app.wire.done("cancel", json!({"tab": "a"}));
    assert_eq!(app.wire.result("a")["subtype"], "cancelled");
    assert_eq!(app.wire.result("c")["result"], "last");
    assert_eq!(
        app.wire
            .refused("cancel", json!({"tab": "a", "request": "x"})),
        "no_such_request"
    );
    app.end();
}

#[test]
fn events_are_told_again_from_any_number() {
    let bench = bench([Reply::text("one two three")]);
    let mut app = App::start(&bench);
    app.wire.done("open", json!({"tab": "a"}));
    app.wire
        .done("send", json!({"tab": "a", "request": "r", "content": "hi"}));
    let result = app.wire.result("r");
    app.wire.until("a", "state");
    app.wire.forget("a");
    let heard = app.wire.done("events", json!({"tab": "a", "since": 1}));
    assert_eq!(heard["next"], 2);
    assert_eq!(app.wire.result("r"), result);
    app.wire.until("a", "state");
    app.wire.forget("a");
    let heard = app.wire.done("events", json!({"tab": "a", "since": 0}));
    assert_eq!(heard["next"], 1);
    assert_eq!(app.wire.until("a", "system")["seq"], 1);
    app.end();
}

#[test]
fn lines_that_make_no_sense_are_answered_and_change_nothing() {
    let bench = bench([Reply::text("fine")]);
    let mut app = App::start(&bench);
    app.wire
        .write_raw(b"nonsense\n\xff\xfe\n[]\n{\"op\":\"dance\",\"id\":\"z\"}\n");
    for id in [None, None, None, Some("z")] {
        let answer = app.wire.told().unwrap();
        assert_eq!(answer["error"]["code"], "bad_request", "{answer}");
        assert_eq!(answer["re"].as_str(), id);
    }
    app.wire.done("open", json!({"tab": "a"}));
    app.wire
        .done("send", json!({"tab": "a", "request": "r", "content": "hi"}));
    assert_eq!(app.wire.result("r")["result"], "fine");
    app.end();
}

#[test]
fn a_session_goes_on_in_another_server() {
    let bench = bench([
        Reply::text("noted"),
        Reply::text("it is 42").when(Match::any_text("remember 42")),
    ]);
    let mut app = App::start(&bench);
    let session = app.wire.done("open", json!({}))["session"]
        .as_str()
        .unwrap()
        .to_owned();
    app.wire.done(
        "send",
        json!({"tab": session, "request": "r", "content": "remember 42"}),
    );
    app.wire.result("r");
    app.wire.done("shutdown", json!({}));
    assert_eq!(app.end().0, Some(0));

    let mut app = App::start(&bench);
    let opened = app
        .wire
        .done("open", json!({"tab": "b", "resume": session}));
    assert_eq!(opened["session"], session);
    // What was asked before is known here as well.
    let again = json!({"tab": "b", "request": "r", "content": "remember 42"});
    assert_eq!(app.wire.done("send", again)["result"]["result"], "noted");
    app.wire.done(
        "send",
        json!({"tab": "b", "request": "s", "content": "what is it?"}),
    );
    assert_eq!(app.wire.result("s")["result"], "it is 42");
    // Joining by the session is joining the tab.
    let joined = app.wire.done("open", json!({"resume": session}));
    assert_eq!(
        (&joined["tab"], &joined["existing"]),
        (&json!("b"), &json!(true))
    );
    app.end();
}

#[test]
fn idle_sessions_are_written_away_and_come_back() {
    let bench = bench([
        Reply::text("noted"),
        Reply::text("42").when(Match::any_text("remember 42")),
    ]);
    let mut app = App::start_with(&bench, &["--idle", "50ms"], |_| {});
    let session = app.wire.done("open", json!({"tab": "a"}))["session"].clone();
    app.wire.done("open", json!({"tab": "unused"}));
    let parked = |app: &mut App| loop {
        let tabs = app.wire.done("tabs", json!({}))["tabs"].clone();
        if tabs
            .as_array()
            .unwrap()
            .iter()
            .all(|tab| tab["parked"] == true)
        {
            return tabs;
        }
        std::thread::yield_now();
    };
    parked(&mut app);
    // One that was never asked anything comes back as well.
    app.wire.done(
        "send",
        json!({"tab": "a", "request": "r", "content": "remember 42"}),
    );
    app.wire.result("r");
    let tabs = parked(&mut app);
    assert_eq!(tabs[0]["session"], session);
    app.wire.done(
        "send",
        json!({"tab": "a", "request": "s", "content": "what?"}),
    );
    assert_eq!(app.wire.result("s")["result"], "42");
    app.wire.until("a", "state");
    // A number that is in memory no more is answered with everything there is.
    app.wire.forget("a");
    app.wire.done("events", json!({"tab": "a", "since": 0}));
    let snapshot = app.wire.until("a", "snapshot");
    let messages = snapshot["event"]["messages"].as_array().unwrap();
    let kinds: Vec<_> = messages
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["user", "message", "user", "message"], "{snapshot}");
    app.end();
}

#[test]
fn settings_are_changed_and_refused_by_the_session() {
    let bench = bench([Reply::text("ok").when(Match::model("claude-haiku-4-5"))]);
    let mut app = App::start(&bench);
    app.wire.done("open", json!({"tab": "a"}));
    app.wire.done(
        "set",
        json!({"tab": "a", "model": "claude-haiku-4-5", "mode": "plan"}),
    );
    let view = app.wire.done("tabs", json!({}))["tabs"][0].clone();
    assert_eq!(
        (&view["model"], &view["mode"]),
        (&json!("claude-haiku-4-5"), &json!("plan"))
    );
    let bypass = json!({"tab": "a", "mode": "bypassPermissions"});
    assert_eq!(app.wire.refused("set", bypass), "refused");
    app.wire
        .done("send", json!({"tab": "a", "request": "r", "content": "hi"}));
    assert_eq!(app.wire.result("r")["result"], "ok");
    let bypass = app
        .wire
        .ask("open", json!({"tab": "b", "mode": "bypassPermissions"}));
    assert!(bypass.get("error").is_some(), "{bypass}");
    app.end();
}

#[test]
fn frames_can_be_those_of_claude_code() {
    let bench = bench([Reply::text("Hello.")]);
    let mut app = App::start_with(&bench, &["--frames", "claude"], |_| {});
    let opened = app.wire.done("open", json!({"tab": "a"}));
    assert_eq!(opened["init"]["subtype"], "init");
    assert!(opened["init"]["permissionMode"].is_string());
    app.wire
        .done("send", json!({"tab": "a", "request": "r", "content": "hi"}));
    app.wire.until("a", "stream_event");
    let assistant = app.wire.until("a", "assistant");
    assert_eq!(
        assistant["event"]["message"]["content"][0]["text"],
        "Hello."
    );
    let result = app.wire.result("r");
    assert_eq!(
        (&result["subtype"], &result["result"]),
        (&json!("success"), &json!("Hello."))
    );
    app.end();
}

#[test]
fn what_cannot_be_opened_is_said() {
    let bench = bench([]);
    let mut app = App::start(&bench);
    assert_eq!(
        app.wire.refused("open", json!({"resume": "nothing"})),
        "bad_request"
    );
    assert_eq!(
        app.wire.refused("open", json!({"cwd": "/no/such/place"})),
        "bad_request"
    );
    assert_eq!(
        app.wire.refused("open", json!({"max_budget_usd": -1.0})),
        "bad_request"
    );
    assert_eq!(app.wire.done("tabs", json!({})), json!({"tabs": []}));
    app.end();
}
