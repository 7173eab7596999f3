//! Who may run what: rules, modes and the client's consent.

use caliban_testkit::{Fault, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Bench, kinds, of_type};

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

#[test]
fn a_call_is_shown_before_it_is_asked_about() {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("done")]));
    let mut client = bench.client(&["--permission-prompt-tool", "stdio"]);
    client.say("go");
    assert_eq!(
        kinds(&client.until("control_request")),
        ["system/init", "assistant", "control_request"]
    );
}

#[rstest]
#[case("session", None)]
#[case("localSettings", Some(".claude/settings.local.json"))]
#[case("projectSettings", Some(".claude/settings.json"))]
fn rules_that_come_with_a_consent_are_kept_where_they_say(
    #[case] destination: &str,
    #[case] file: Option<&str>,
) {
    let answer = json!({
        "behavior": "allow",
        "updatedPermissions": [{
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}],
            "behavior": "allow",
            "destination": destination,
        }],
    });
    let (bench, frames, _) = asked(&answer, touch("b"));
    assert!(of_type(&frames, "control_request").is_empty());
    let kept = |file: &str| std::fs::read_to_string(bench.workspace.path().join(file)).ok();
    for other in [".claude/settings.local.json", ".claude/settings.json"] {
        let rules = kept(other).map(|text| serde_json::from_str::<Value>(&text).unwrap());
        let expected = json!({"permissions": {"allow": ["Bash(touch:*)"]}});
        assert_eq!(rules, (file == Some(other)).then_some(expected), "{other}");
    }
}

#[test]
fn only_what_is_at_hand_is_read_unasked() {
    let elsewhere = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = elsewhere.path().join(name);
        std::fs::write(&path, "x\n").unwrap();
        Reply::tool("Read", json!({"file_path": path}))
    };
    let end = || Reply::text("end");
    let bench = Bench::new(Script::new([file("a"), end(), file("a"), end()]));
    let ran = bench.run(&[&LINES[..], &["go"]].concat());
    assert_eq!(ran.result()["permission_denials"][0]["tool_name"], "Read");
    let directory = format!("--add-dir={}", elsewhere.path().display());
    let ran = bench.run(&[&LINES[..], &[&directory, "go"]].concat());
    assert_eq!(ran.result()["permission_denials"], json!([]));

    let bench = Bench::new(Script::new([file("a"), file("b"), end()]));
    let mut client = bench.client(&["--permission-prompt-tool", "stdio"]);
    client.say("go");
    let question = client.last_until("control_request");
    let update = json!({
        "type": "addDirectories",
        "directories": [elsewhere.path()],
        "destination": "session",
    });
    let answer = json!({"behavior": "allow", "updatedPermissions": [update]});
    client.answer(&question, &answer);
    let frames = client.until("result");
    assert!(of_type(&frames, "control_request").is_empty(), "{frames:?}");
    assert_eq!(frames.last().unwrap()["permission_denials"], json!([]));
}

#[test]
fn the_model_asks_the_user_and_gets_the_answers() {
    let asked = json!({"questions": [{
        "question": "Which?",
        "header": "Choice",
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
        "multiSelect": false,
    }]});
    let script = || {
        Script::new([
            Reply::tool("AskUserQuestion", asked.clone()),
            Reply::text("B it is."),
        ])
    };
    let bench = Bench::new(script());
    let mut client = bench.client(&[
        "--permission-prompt-tool=stdio",
        "--allowedTools=AskUserQuestion",
    ]);
    client.say("go");
    let frames = client.until("control_request");
    let tools = frames[0]["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("AskUserQuestion")));
    let question = frames.last().unwrap();
    assert_eq!(question["request"]["tool_name"], "AskUserQuestion");
    assert_eq!(question["request"]["input"], asked);
    assert_eq!(question["request"]["requires_user_interaction"], true);
    let mut answered = asked.clone();
    answered["answers"] = json!({"Which?": "B"});
    client.answer(
        question,
        &json!({"behavior": "allow", "updatedInput": answered}),
    );
    let frames = client.until("result");
    let result = &of_type(&frames, "user")[0]["message"]["content"][0];
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .contains("\"Which?\"=\"B\""),
        "{result}"
    );
    // Without anybody who answers there is no such tool.
    let bench = Bench::new(script());
    let ran = bench.run(&[&LINES[..], &["go"]].concat());
    let tools = ran.frames()[0]["tools"].clone();
    assert!(
        !tools
            .as_array()
            .unwrap()
            .contains(&json!("AskUserQuestion"))
    );
}

/// Editors answer the question about a plan with the mode that comes next.
#[test]
fn a_plan_is_agreed_to_with_the_mode_that_comes_next() {
    let bench = Bench::new(Script::new([
        Reply::tool("ExitPlanMode", json!({"plan": "write it"})),
        Reply::tool("Write", json!({"file_path": "x.txt", "content": "1"})),
        Reply::text("done"),
    ]));
    let mut client = bench.client(&[
        "--permission-prompt-tool",
        "stdio",
        "--permission-mode",
        "plan",
    ]);
    client.say("go");
    let frames = client.until("control_request");
    let question = frames.last().unwrap();
    assert_eq!(question["request"]["tool_name"], "ExitPlanMode");
    // Editors suggest something themselves where nothing is suggested.
    assert_eq!(question["request"].get("permission_suggestions"), None);
    client.answer(
        question,
        &json!({
            "behavior": "allow",
            "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
        }),
    );
    let frames = client.until("result");
    let results = of_type(&frames, "user");
    assert_eq!(
        results[0]["message"]["content"][0]["is_error"],
        Value::Null,
        "{results:?}"
    );
    assert!(bench.workspace.path().join("x.txt").exists());
}

#[test]
fn nobody_is_told_of_the_rule_that_he_just_made() {
    let bench = Bench::new(Script::new([touch("a"), touch("b"), Reply::text("done")]));
    let mut client = bench.client(&["--permission-prompt-tool", "stdio"]);
    client.say("go");
    let rules = json!([{"toolName": "Bash", "ruleContent": "touch:*"}]);
    let update = json!({
        "type": "addRules", "rules": rules, "behavior": "allow", "destination": "localSettings"});
    let frames = client.until("control_request");
    let allowed = json!({"behavior": "allow", "updatedPermissions": [update]});
    client.answer(frames.last().unwrap(), &allowed);
    let frames = client.until("result");
    assert_eq!(frames.last().unwrap()["result"], "done");
    assert!(bench.workspace.path().join("b").exists());
    let told = frames
        .iter()
        .filter(|frame| frame["subtype"] == "informational");
    assert_eq!(told.count(), 0, "{frames:?}");
}
