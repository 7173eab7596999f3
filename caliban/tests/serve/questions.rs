//! Questions as an application meets them.

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::bench;
use crate::client::App;
use crate::support::{Bench, Wire};

fn running(commands: &[&str]) -> Bench {
    let calls = commands
        .iter()
        .map(|command| Reply::tool("Bash", json!({"command": command})));
    bench(calls.chain([Reply::text("done")]))
}

fn asked(app: &mut App) -> String {
    let question = app.wire.until("a", "question");
    assert_eq!(question["request"], "r");
    question["event"]["question"].as_str().unwrap().to_owned()
}

fn begin(bench: &Bench) -> App {
    let mut app = App::start(bench);
    app.wire.done("open", json!({"tab": "a"}));
    app.wire
        .done("send", json!({"tab": "a", "request": "r", "content": "go"}));
    app
}

#[test]
fn consent_lets_a_call_run_once() {
    let bench = running(&["touch one", "touch two"]);
    let mut app = begin(&bench);
    let question = asked(&mut app);
    let tabs = app.wire.done("tabs", json!({}));
    assert_eq!(tabs["tabs"][0]["state"], "waiting");
    assert_eq!(tabs["tabs"][0]["questions"][0]["question"], question);
    let allow = json!({"tab": "a", "question": question, "decision": "allow"});
    app.wire.done("answer", allow.clone());
    assert_eq!(app.wire.refused("answer", allow), "already_answered");
    assert_eq!(app.wire.until("a", "answered")["event"]["how"], "allow");
    let second = asked(&mut app);
    app.wire.done(
        "answer",
        json!({"tab": "a", "question": second, "decision": "deny", "reason": "not that one"}),
    );
    let result = app.wire.result("r");
    assert_eq!(result["denials"][0]["reason"], "not that one");
    assert!(bench.workspace.path().join("one").exists());
    assert!(!bench.workspace.path().join("two").exists());
    app.end();
}

#[rstest]
#[case::session("session")]
#[case::command("command")]
fn consent_can_hold_for_commands_like_it(#[case] scope: &str) {
    let bench = running(&["touch one", "touch one"]);
    let mut app = begin(&bench);
    let question = asked(&mut app);
    let allow = json!({"tab": "a", "question": question, "decision": "allow", "scope": scope});
    app.wire.done("answer", allow);
    assert_eq!(app.wire.result("r")["result"], "done");
    app.end();
}

#[test]
fn a_scope_must_fit_its_call() {
    let bench = running(&["touch one"]);
    let mut app = begin(&bench);
    let question = asked(&mut app);
    let domain = json!({"tab": "a", "question": question, "decision": "allow", "scope": "domain"});
    assert_eq!(app.wire.refused("answer", domain), "bad_request");
    let action = json!({"tab": "a", "question": question, "action": "accept"});
    assert_eq!(app.wire.refused("answer", action), "bad_request");
    let nobody = json!({"tab": "a", "question": "q", "decision": "allow"});
    assert_eq!(app.wire.refused("answer", nobody), "no_such_question");
    // Who is interrupted is asked nothing any more.
    app.wire.done("cancel", json!({"tab": "a"}));
    assert_eq!(app.wire.until("a", "answered")["event"]["how"], "withdrawn");
    assert_eq!(app.wire.result("r")["subtype"], "cancelled");
    app.end();
}

/// What a user forbade stays so, whatever an application allows.
#[rstest]
#[case::open(json!({"tab": "a", "allow": ["Bash"]}))]
#[case::settings(json!({"tab": "a", "settings": {"permissions": {"allow": ["Bash"]}}}))]
fn an_application_cannot_undo_a_denial(#[case] open: serde_json::Value) {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool("Bash", json!({"command": "touch made"})),
            Reply::text("done"),
        ]),
    );
    let settings = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(
        settings.join("settings.toml"),
        "[permissions]\ndeny = [\"Bash:touch *\"]\n",
    )
    .unwrap();
    let mut app = App::start(&bench);
    app.wire.done("open", open);
    app.wire
        .done("send", json!({"tab": "a", "request": "r", "content": "go"}));
    let result = app.wire.result("r");
    assert_eq!(result["denials"][0]["source"], "rule", "{result}");
    assert!(!bench.workspace.path().join("made").exists());
    app.end();
}
