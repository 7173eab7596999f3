//! Who may run what: rules, modes and the client's consent.

use caliban_testkit::{Fault, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Bench, of_type};

const LINES: [&str; 5] = [
    "-p",
    "--output-format",
    "stream-json",
    "--verbose",
    "--max-turns=9",
];

fn touch(name: &str) -> Reply {
    Reply::tool(
        "Bash",
        json!({"command": format!("touch {name}"), "description": "d"}),
    )
}

#[test]
fn without_anybody_to_ask_calls_are_refused_and_the_run_goes_on() {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("done")]));
    let ran = bench.run(&[&LINES[..], &["go"]].concat());
    assert_eq!(ran.code, Some(0));
    let frames = ran.frames();
    assert_eq!(
        of_type(&frames, "user")[0]["message"]["content"][0]["is_error"],
        true
    );
    assert!(
        frames
            .iter()
            .any(|frame| frame["subtype"] == "permission_denied")
    );
    let denials = &ran.result()["permission_denials"];
    assert_eq!(denials[0]["tool_name"], "Bash");
    assert_eq!(denials[0]["tool_input"]["command"], "touch a");
    assert!(!bench.workspace.path().join("a").exists());
}

#[rstest]
#[case("echo hi", &[], true)]
#[case("ls -la", &[], true)]
#[case("git status", &[], true)]
#[case("cat x | grep y", &[], true)]
#[case("touch a", &[], false)]
#[case("echo hi > a", &[], false)]
#[case("ls && touch a", &[], false)]
#[case("touch a", &["--allowedTools", "Bash(touch:*)"], true)]
#[case("touch a && mkdir b", &["--allowedTools", "Bash(touch:*)"], false)]
#[case("touch a", &["--allowed-tools=Bash", "--disallowed-tools=Bash(touch *)"], false)]
#[case("touch a", &["--permission-mode", "dontAsk"], false)]
#[case("touch a", &["--permission-mode=bypassPermissions"], true)]
#[case("touch a", &["--dangerously-skip-permissions"], true)]
#[case("touch a", &["--dangerously-skip-permissions", "--disallowedTools", "Bash(touch *)"], false)]
#[case("touch a", &["--permission-mode", "plan"], false)]
fn commands(#[case] command: &str, #[case] flags: &[&str], #[case] runs: bool) {
    let bench = Bench::new(Script::new([
        Reply::tool("Bash", json!({"command": command})),
        Reply::text("done"),
    ]));
    let ran = bench.run(&[&LINES[..], flags, &["--", "go"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let denied = ran.result()["permission_denials"].as_array().unwrap().len();
    assert_eq!(denied == 0, runs, "{}", ran.stdout);
}

/// A client that is asked about `touch` and answers.
fn asked(answer: &Value, more: Reply) -> (Bench, Vec<Value>, Value) {
    let bench = Bench::new(Script::new([touch("a"), more, Reply::text("end")]));
    let mut client = bench.client(&["--permission-prompt-tool", "stdio"]);
    client.say("go");
    let question = client.last_until("control_request");
    client.answer(&question, answer);
    let frames = client.until("result");
    client.close();
    (bench, frames, question)
}

#[test]
fn the_client_is_asked_and_allows() {
    let (bench, frames, question) = asked(&json!({"behavior": "allow"}), Reply::text("done"));
    let request = &question["request"];
    assert_eq!(request["subtype"], "can_use_tool");
    assert_eq!(request["tool_name"], "Bash");
    assert_eq!(request["input"]["command"], "touch a");
    assert_eq!(request["description"], "d");
    assert!(request["tool_use_id"].is_string());
    assert_eq!(request["permission_suggestions"][0]["type"], "addRules");
    assert_eq!(frames.last().unwrap()["permission_denials"], json!([]));
    assert!(bench.workspace.path().join("a").exists());
}

#[test]
fn the_client_may_change_the_input() {
    let answer = json!({"behavior": "allow", "updatedInput": {"command": "touch b"}});
    let (bench, _, _) = asked(&answer, Reply::text("done"));
    assert!(
        bench.workspace.path().join("b").exists() && !bench.workspace.path().join("a").exists()
    );
}

#[test]
fn the_client_denies_in_its_own_words() {
    let (_, frames, _) = asked(
        &json!({"behavior": "deny", "message": "Not today"}),
        Reply::text("done"),
    );
    let result = &of_type(&frames, "user")[0]["message"]["content"][0];
    assert_eq!(
        (&result["content"], &result["is_error"]),
        (&json!("Not today"), &json!(true))
    );
    let end = frames.last().unwrap();
    assert_eq!(
        (&end["subtype"], &end["permission_denials"][0]["tool_name"]),
        (&json!("success"), &json!("Bash"))
    );
}

#[test]
fn a_denial_may_end_the_turn() {
    let answer = json!({"behavior": "deny", "message": "Stop", "interrupt": true});
    let (bench, frames, _) = asked(&answer, Reply::text("never"));
    assert_eq!(frames.last().unwrap()["subtype"], "error_during_execution");
    assert_eq!(bench.server.model_requests().len(), 1);
}

#[test]
fn nonsense_and_silence_are_denials() {
    let (_, frames, _) = asked(&json!({"behavior": "perhaps"}), Reply::text("done"));
    assert_eq!(
        of_type(&frames, "user")[0]["message"]["content"][0]["is_error"],
        true
    );
    let bench = Bench::new(Script::new([touch("a"), Reply::text("done")]));
    let mut client = bench.client(&["--permission-prompt-tool", "stdio"]);
    client.say("go");
    client.last_until("control_request");
    let (rest, code) = client.close();
    assert_eq!(code, Some(0));
    assert_eq!(rest.last().unwrap()["subtype"], "success");
    assert!(!bench.workspace.path().join("a").exists());
}

#[test]
fn rules_that_come_with_a_consent_hold() {
    let answer = json!({
        "behavior": "allow",
        "updatedPermissions": [{
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}],
            "behavior": "allow",
            "destination": "session",
        }],
    });
    let (bench, frames, _) = asked(&answer, touch("b"));
    assert!(bench.workspace.path().join("b").exists());
    // The second call was not asked about.
    assert!(of_type(&frames, "control_request").is_empty());
}

#[test]
fn a_mode_that_comes_with_a_consent_holds_and_is_told() {
    let answer = json!({
        "behavior": "allow",
        "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
    });
    let write = Reply::tool("Write", json!({"file_path": "b", "content": "x"}));
    let (bench, frames, _) = asked(&answer, write);
    assert!(bench.workspace.path().join("b").exists());
    assert!(
        frames
            .iter()
            .any(|frame| frame["permissionMode"] == "acceptEdits")
    );
}

#[test]
fn a_question_is_taken_back_on_an_interrupt() {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("after")]));
    let mut client = bench.client(&["--permission-prompt-tool", "stdio"]);
    client.say("go");
    let question = client.last_until("control_request");
    client.send(
        &json!({"type": "control_request", "request_id": "x", "request": {"subtype": "interrupt"}}),
    );
    let frames = client.until("result");
    let withdrawn = of_type(&frames, "control_cancel_request");
    assert_eq!(withdrawn[0]["request_id"], question["request_id"]);
    client.answer(&question, &json!({"behavior": "allow"}));
    client.say("next");
    assert_eq!(client.last_until("result")["result"], "after");
    assert!(!bench.workspace.path().join("a").exists());
}

#[test]
fn modes_change_while_a_turn_is_going_on() {
    let bench = Bench::new(Script::new([
        touch("a"),
        Reply::tool("Write", json!({"file_path": "b", "content": "x"})),
        Reply::text("never").with_fault(Fault::StallMidStream { after_events: 2 }),
    ]));
    let mut client = bench.client(&["--permission-prompt-tool", "stdio"]);
    client.say("go");
    let question = client.last_until("control_request");
    client.ask(&json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}));
    client.answer(
        &question,
        &json!({"behavior": "allow", "updatedInput": {"command": "touch a"}}),
    );
    // The result of the first call, and of the second, which was not asked about.
    client.until("user");
    client.until("user");
    assert!(bench.workspace.path().join("b").exists());
}
