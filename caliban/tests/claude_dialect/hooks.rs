//! Hooks that clients register, and hooks of the settings.

use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, Client, of_type};

fn initialized(bench: &Bench, hooks: &Value, args: &[&str]) -> Client {
    let mut client = bench.client(args);
    let answer = client.ask(&json!({"subtype": "initialize", "hooks": hooks}));
    assert_eq!(answer["subtype"], "success");
    client
}

fn hook(event: &str, matcher: &Value) -> Value {
    json!({event: [{"matcher": matcher, "hookCallbackIds": ["h0"]}], "PostModelSwitch": [{"hookCallbackIds": ["x"]}]})
}

fn decision(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}

fn call() -> Script {
    Script::new([
        Reply::tool("Bash", json!({"command": "touch a"})),
        Reply::text("done"),
    ])
}

#[test]
fn a_hook_is_asked_before_a_call_and_may_refuse_it() {
    let bench = Bench::new(call());
    let mut client = initialized(
        &bench,
        &hook("PreToolUse", &json!("^(?!(Read|Glob)$).*")),
        &["--allowedTools", "Bash"],
    );
    client.say("go");
    let asked = client.last_until("control_request");
    let request = &asked["request"];
    assert_eq!(
        (&request["subtype"], &request["callback_id"]),
        (&json!("hook_callback"), &json!("h0"))
    );
    for key in ["session_id", "transcript_path", "cwd", "permission_mode"] {
        assert!(request["input"][key].is_string(), "{key}");
    }
    assert_eq!(request["input"]["hook_event_name"], "PreToolUse");
    assert_eq!(request["input"]["tool_name"], "Bash");
    assert_eq!(
        request["input"]["tool_input"],
        json!({"command": "touch a"})
    );
    assert_eq!(request["tool_use_id"], request["input"]["tool_use_id"]);
    client.answer(&asked, &decision("deny", "forbidden here"));
    let frames = client.until("result");
    let result = &of_type(&frames, "user")[0]["message"]["content"][0];
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .contains("forbidden here")
    );
    assert_eq!(
        frames.last().unwrap()["permission_denials"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_hook_may_put_a_call_off() {
    let bench = Bench::new(call());
    let hooks = hook("PreToolUse", &json!(null));
    let mut client = initialized(&bench, &hooks, &["--allowedTools", "Bash"]);
    client.say("go");
    let asked = client.last_until("control_request");
    client.answer(&asked, &decision("defer", "at night"));
    let end = client.last_until("result");
    assert_eq!(
        (&end["subtype"], &end["is_error"]),
        (&json!("success"), &json!(false))
    );
    assert_eq!(end["stop_reason"], "tool_deferred");
    assert_eq!(
        end["deferred_tool_use"],
        json!({"id": "toolu_0001", "name": "Bash", "input": {"command": "touch a"}})
    );
    assert_eq!(end["permission_denials"], json!([]));
    assert!(!bench.workspace.path().join("a").exists());
    assert_eq!(bench.server.model_requests().len(), 1);
    assert_eq!(client.close().1, Some(0));
}

#[test]
fn a_hook_may_allow_and_change_the_input() {
    let bench = Bench::new(call());
    let mut client = initialized(&bench, &hook("PreToolUse", &json!(null)), &[]);
    client.say("go");
    let asked = client.last_until("control_request");
    let mut answer = decision("allow", "");
    answer["hookSpecificOutput"]["updatedInput"] = json!({"command": "touch b"});
    answer["hookSpecificOutput"]["additionalContext"] = json!("mind the gap");
    client.answer(&asked, &answer);
    client.until("result");
    assert!(bench.workspace.path().join("b").exists());
    assert!(
        bench.last_request()["messages"]
            .to_string()
            .contains("mind the gap")
    );
}

#[test]
fn a_hook_that_asks_makes_the_client_be_asked() {
    let script = Script::new([
        Reply::tool("Read", json!({"file_path": "x"})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(script);
    let mut client = initialized(
        &bench,
        &hook("PreToolUse", &json!("Read")),
        &["--permission-prompt-tool", "stdio"],
    );
    client.say("go");
    let asked = client.last_until("control_request");
    client.answer(&asked, &decision("ask", "curious"));
    let question = client.last_until("control_request");
    assert_eq!(question["request"]["subtype"], "can_use_tool");
    client.answer(
        &question,
        &json!({"behavior": "allow", "updatedInput": question["request"]["input"]}),
    );
    assert_eq!(client.last_until("result")["result"], "done");
}

#[test]
fn a_matcher_that_does_not_fit_is_not_asked() {
    let bench = Bench::new(call());
    let mut client = initialized(
        &bench,
        &hook("PreToolUse", &json!("Bas|bash")),
        &["--allowedTools", "Bash"],
    );
    client.say("go");
    let frames = client.until("result");
    assert!(of_type(&frames, "control_request").is_empty());
}

#[test]
fn a_hook_is_told_of_results_and_adds_to_them() {
    let bench = Bench::new(call());
    let mut client = initialized(
        &bench,
        &hook("PostToolUse", &json!("Bash")),
        &["--allowedTools", "Bash"],
    );
    client.say("go");
    let told = client.last_until("control_request");
    let input = &told["request"]["input"];
    assert_eq!(input["hook_event_name"], "PostToolUse");
    assert_eq!(input["tool_response"]["stdout"], "");
    client.answer(&told, &json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "noted"}}));
    client.until("result");
    assert!(
        bench.last_request()["messages"]
            .to_string()
            .contains("noted")
    );
}

#[test]
fn prompts_may_be_refused_or_extended() {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    let mut client = initialized(&bench, &hook("UserPromptSubmit", &json!(null)), &[]);
    client.say("bad");
    let asked = client.next().unwrap();
    assert_eq!(asked["request"]["input"]["prompt"], "bad");
    client.answer(&asked, &json!({"decision": "block", "reason": "no"}));
    let end = client.last_until("result");
    assert_eq!(
        (&end["subtype"], &end["is_error"]),
        (&json!("success"), &json!(false))
    );
    assert!(bench.server.model_requests().is_empty());
    client.say("good");
    let asked = client.last_until("control_request");
    client.answer(&asked, &json!({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "beware"}}));
    client.until("result");
    assert!(
        bench.last_request()["messages"]
            .to_string()
            .contains("beware")
    );
}

#[test]
fn a_stop_hook_sends_the_model_on_once() {
    let bench = Bench::new(Script::new([Reply::text("one"), Reply::text("two")]));
    let mut client = initialized(&bench, &hook("Stop", &json!(null)), &[]);
    client.say("go");
    let asked = client.last_until("control_request");
    assert_eq!(asked["request"]["input"]["stop_hook_active"], false);
    assert_eq!(asked["request"]["input"]["last_assistant_message"], "one");
    client.answer(&asked, &json!({"decision": "block", "reason": "more"}));
    let asked = client.last_until("control_request");
    assert_eq!(asked["request"]["input"]["stop_hook_active"], true);
    client.answer(&asked, &json!({}));
    let end = client.last_until("result");
    assert_eq!(
        (&end["result"], &end["num_turns"]),
        (&json!("two"), &json!(2))
    );
    assert!(
        bench.last_request()["messages"]
            .to_string()
            .contains("more")
    );
}

#[test]
fn an_error_of_a_hook_refuses_the_call() {
    let bench = Bench::new(call());
    let mut client = initialized(
        &bench,
        &hook("PreToolUse", &json!("*")),
        &["--allowedTools", "Bash"],
    );
    client.say("go");
    let asked = client.last_until("control_request");
    client.send(&json!({
        "type": "control_response",
        "response": {"subtype": "error", "request_id": asked["request_id"], "error": "it broke"},
    }));
    let frames = client.until("result");
    let result = &of_type(&frames, "user")[0]["message"]["content"][0];
    assert!(result["content"].as_str().unwrap().contains("it broke"));
    assert!(!bench.workspace.path().join("a").exists());
}

#[test]
fn command_hooks_of_the_settings_are_shown_on_request() {
    let bench = Bench::new(call());
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "echo '{\"decision\":\"block\",\"reason\":\"by settings\"}'"},
    ]}]}});
    let ran = bench.run(&[
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-hook-events",
        "--allowedTools=Bash",
        "--settings",
        &settings.to_string(),
        "go",
    ]);
    let frames = ran.frames();
    let shown: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["hook_event"] == "PreToolUse")
        .collect();
    assert_eq!(shown[0]["subtype"], "hook_started", "{ran:?}");
    assert_eq!(shown[1]["subtype"], "hook_response");
    assert_eq!(shown[0]["hook_id"], shown[1]["hook_id"]);
    assert!(!bench.workspace.path().join("a").exists());
}

#[test]
fn hooks_of_settings_are_told_in_the_names_they_know() {
    let bench = Bench::new(Script::new([
        Reply::tool("Write", json!({"file_path": "a.txt", "content": "x"})),
        Reply::text("done"),
    ]));
    let log = bench.home.path().join("log");
    let command = format!("cat > {}", log.display());
    let settings = json!({"hooks": {"PreToolUse": [
        {"matcher": "Write", "hooks": [{"type": "command", "command": command}]},
    ]}});
    let ran = bench.run(&[
        "-p",
        "--permission-mode=bypassPermissions",
        &format!("--settings={settings}"),
        "x",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let event: Value = serde_json::from_str(&std::fs::read_to_string(log).unwrap()).unwrap();
    assert_eq!(event["tool_input"]["file_path"], "a.txt");
    assert_eq!(event["permission_mode"], "bypassPermissions");
    let transcript = std::path::Path::new(event["transcript_path"].as_str().unwrap());
    assert!(
        transcript.starts_with(bench.config().join("projects")),
        "{event}"
    );
}
