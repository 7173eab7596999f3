//! Listing a tool approves it; what the operator denies or wants to be asked about stays so.

use std::process::Command;

use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{Client, names, payload};
use crate::support::Bench;
use crate::{bench, init, refused, send};

fn writing(path: &str) -> Bench {
    bench([
        Reply::tool("Write", json!({"path": path, "content": "x"})),
        Reply::text("done"),
    ])
}

fn running(command: &str) -> Bench {
    bench([
        Reply::tool("Bash", json!({"command": command})),
        Reply::text("done"),
    ])
}

fn answer(decision: &str) -> Value {
    json!({"type": "permission_response", "id": "9", "decision": decision})
}

/// Reads on to the question; returns how many events there were.
fn until_asked(client: &mut Client, question: &Value) -> usize {
    for seq in 0.. {
        let event = payload(&client.next(), "2", seq);
        if event["event"] == "permission_request" {
            assert_eq!(&event, question);
            return seq + 1;
        }
    }
    unreachable!()
}

#[test]
fn listed_tools_run_without_a_question() {
    let bench = writing("made.txt");
    let mut client = Client::start(&bench);
    client.init(&init());
    let (events, result) = client.exchange(&send("2", "write"));
    assert!(
        !names(&events).contains(&"permission_request"),
        "{events:?}"
    );
    assert_eq!(
        result["tool_calls_made"],
        json!([{"name": "write_file", "args": {"file_path": "made.txt", "content": "x"}}])
    );
    assert!(bench.workspace.path().join("made.txt").exists());
}

/// What denies the call.
#[rstest]
#[case::flag("touch ran", &["--deny", "Bash:touch *"], "the rule `Bash:touch *` (cli) denies it")]
#[case::settings(
    "touch ran",
    &["--settings", r#"{"permissions":{"deny":["Bash:touch *"]}}"#],
    "the rule `Bash:touch *` (settings) denies it"
)]
#[case::catastrophe("touch ran; rm -rf /", &[], "no rule or mode allows this: ")]
fn denials_hold(#[case] command: &str, #[case] flags: &[&str], #[case] reason: &str) {
    let bench = running(command);
    let mut client = Client::start_with(&bench, |command| {
        command.args(flags);
    });
    client.init(&init());
    let (events, result) = client.exchange(&send("2", "run"));
    let denied: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "permission_denied")
        .collect();
    let [denied] = denied[..] else {
        panic!("{events:?}")
    };
    assert_eq!(denied["name"], "bash");
    assert_eq!(denied.as_object().unwrap().len(), 3, "{denied}");
    assert!(
        denied["reason"].as_str().unwrap().starts_with(reason),
        "{denied}"
    );
    assert!(!names(&events).contains(&"permission_request"));
    assert!(!names(&events).contains(&"tool_start"));
    assert_eq!(result["tool_calls_made"], json!([]));
    assert!(!bench.workspace.path().join("ran").exists());
}

fn asking(command: &mut Command) {
    command.args(["--ask", "Bash"]);
}

#[rstest]
#[case::by_name(json!({"name": "bash"}))]
#[case::alone(json!({}))]
fn a_question_is_answered_with_yes(#[case] which: Value) {
    let bench = running("touch ran");
    let mut client = Client::start_with(&bench, asking);
    client.init(&init());
    client.write(&send("2", "run"));
    let question =
        json!({"event": "permission_request", "name": "bash", "reason": "Bash needs consent"});
    let mut seq = until_asked(&mut client, &question);
    assert_eq!(
        client.ask(&json!({"type": "permission_response", "id": "8", "name": "glob", "request_id": "no such", "decision": "allow"})),
        refused("8", "no such question is open")
    );
    let mut yes = answer("allow");
    yes.as_object_mut()
        .unwrap()
        .extend(which.as_object().unwrap().clone());
    client.write(&yes);
    let start = payload(&client.next(), "2", seq);
    assert_eq!(
        start,
        json!({
            "event": "tool_start",
            "name": "bash",
            "args": {"command": "touch ran"},
            "id": "toolu_0001",
        })
    );
    seq += 1;
    assert_eq!(payload(&client.next(), "2", seq)["event"], "tool_end");
    while client.next()["type"] != "result" {}
    assert!(bench.workspace.path().join("ran").exists());
    assert_eq!(
        client.ask(&answer("allow")),
        refused("9", "no question is open")
    );
}

#[test]
fn a_question_is_answered_with_no() {
    let bench = running("touch ran");
    let mut client = Client::start_with(&bench, asking);
    let mut init = init();
    init["protocol_version"] = json!("0.5.0");
    client.init(&init);
    client.write(&send("2", "run"));
    // From 0.5 on a question has an id of its own.
    let asked = loop {
        let frame = client.next();
        if frame["event"]["event"] == "permission_request" {
            break frame["event"].clone();
        }
    };
    let mut no = answer("deny");
    no["request_id"] = asked["request_id"].clone();
    no["reason"] = json!("not today");
    assert!(no["request_id"].is_string(), "{asked}");
    client.write(&no);
    let denied = loop {
        let frame = client.next();
        if frame["event"]["event"] == "permission_denied" {
            break frame["event"].clone();
        }
        assert_ne!(frame["type"], "result");
    };
    assert_eq!(
        denied,
        json!({"event": "permission_denied", "name": "bash", "reason": "not today"})
    );
    while client.next()["type"] != "result" {}
    assert!(!bench.workspace.path().join("ran").exists());
    // The model reads why.
    let body = bench.server.model_requests()[1].json().to_string();
    assert!(body.contains("not today"), "{body}");
}

#[test]
fn a_question_without_an_answer_is_a_refusal() {
    let bench = running("touch ran");
    let mut client = Client::start_with(&bench, |command| {
        asking(command);
        command.env("HEDDLE_PERMISSION_TIMEOUT", "5");
    });
    client.init(&init());
    let (events, result) = client.exchange(&send("2", "run"));
    assert!(names(&events).contains(&"permission_request"));
    let denied = events
        .iter()
        .find(|event| event["event"] == "permission_denied");
    assert_eq!(
        denied,
        Some(&json!({
            "event": "permission_denied",
            "name": "bash",
            "reason": "the client did not answer within 5 ms",
        }))
    );
    assert_eq!(result["status"], "ok");
    assert!(!bench.workspace.path().join("ran").exists());
}

/// What is asked about although the tool was listed.
#[rstest]
#[case::protected(".git/config", None, "because `.git` is protected")]
#[case::suggest("plain.txt", Some("suggest"), "Write needs consent")]
fn some_calls_are_asked_about(
    #[case] path: &str,
    #[case] mode: Option<&str>,
    #[case] reason: &str,
) {
    let bench = writing(path);
    let mut client = Client::start_with(&bench, |command| {
        command.env("HEDDLE_PERMISSION_TIMEOUT", "5");
    });
    let mut init = init();
    if let Some(mode) = mode {
        init["config"]["approval_mode"] = json!(mode);
    }
    client.init(&init);
    let (events, _) = client.exchange(&send("2", "write"));
    let asked = events
        .iter()
        .find(|event| event["event"] == "permission_request")
        .unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(asked["name"], "write_file");
    assert!(
        asked["reason"].as_str().unwrap().contains(reason),
        "{asked}"
    );
    assert!(!bench.workspace.path().join(path).exists());
}
