//! Clients that answer questions by choosing an option, without the control protocol or beside it.

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Bench, Client, of_type};

const EVENTS: [&str; 2] = ["--permission-prompt-tool", "events"];

fn touch(name: &str) -> Reply {
    Reply::tool("Bash", json!({"command": format!("touch {name}")}))
}

fn write(name: &str) -> Reply {
    Reply::tool("Write", json!({"file_path": name, "content": "x"}))
}

fn choose(client: &mut Client, question: &Value, option: &str) {
    client.send(&json!({
        "type": "permission_response",
        "question_id": question,
        "option_id": option,
    }));
}

/// The names of the files that were made.
fn made(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.workspace.path()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_question_is_a_frame_with_options() {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("done")]));
    let mut client = bench.client(&EVENTS);
    client.say("go");
    let frames = client.until("permission_request");
    assert!(of_type(&frames, "control_request").is_empty());
    let question = frames.last().unwrap();
    assert_eq!(question["tool_name"], "Bash");
    assert_eq!(question["tool_input"], json!({"command": "touch a"}));
    assert_eq!(question["tool_use_id"], "toolu_0001");
    let options = question["options"].as_array().unwrap();
    let ids: Vec<_> = options.iter().map(|option| &option["id"]).collect();
    assert_eq!(ids, ["allow", "allow-session", "deny"]);
    assert!(options.iter().all(|option| option["label"].is_string()));
    choose(&mut client, &question["question_id"], "allow");
    let end = client.last_until("result");
    assert_eq!(end["permission_denials"], json!([]));
    assert_eq!(made(&bench), ["a"]);
    assert_eq!(client.close().1, Some(0));
}

#[rstest]
#[case("deny", "the client denied it")]
#[case("perhaps", "there is no option `perhaps`")]
fn what_is_not_allowed_is_refused(#[case] option: &str, #[case] reason: &str) {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("done")]));
    let mut client = bench.client(&EVENTS);
    client.say("go");
    let question = client.last_until("permission_request");
    choose(&mut client, &question["question_id"], option);
    let frames = client.until("result");
    let result = &of_type(&frames, "user")[0]["message"]["content"][0];
    assert_eq!(result["is_error"], true);
    assert!(
        result["content"].as_str().unwrap().contains(reason),
        "{result}"
    );
    assert!(made(&bench).is_empty());
}

#[test]
fn a_choice_answers_the_control_protocol_too() {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("done")]));
    let mut client = bench.client(&["--permission-prompt-tool", "stdio"]);
    client.say("go");
    let question = client.last_until("control_request");
    choose(&mut client, &question["request_id"], "allow");
    let frames = client.until("result");
    assert!(of_type(&frames, "control_cancel_request").is_empty());
    assert_eq!(made(&bench), ["a"]);
}

#[test]
fn a_command_is_allowed_for_the_session_and_no_other() {
    let script = [touch("a"), touch("a"), touch("b"), Reply::text("done")];
    let bench = Bench::new(Script::new(script));
    let mut client = bench.client(&EVENTS);
    client.say("go");
    let question = client.last_until("permission_request");
    choose(&mut client, &question["question_id"], "allow-session");
    let question = client.last_until("permission_request");
    assert_eq!(question["tool_input"]["command"], "touch b");
    choose(&mut client, &question["question_id"], "deny");
    client.until("result");
    assert_eq!(made(&bench), ["a"]);
}

#[test]
fn a_tool_is_allowed_for_the_session() {
    let script = [write("a"), write("b"), touch("c"), Reply::text("done")];
    let bench = Bench::new(Script::new(script));
    let mut client = bench.client(&EVENTS);
    client.say("go");
    let question = client.last_until("permission_request");
    choose(&mut client, &question["question_id"], "allow-session");
    let question = client.last_until("permission_request");
    assert_eq!(question["tool_name"], "Bash");
    choose(&mut client, &question["question_id"], "deny");
    client.until("result");
    assert_eq!(made(&bench), ["a", "b"]);
}

#[test]
fn an_answer_that_fits_no_question_is_told() {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("done")]));
    let mut client = bench.client(&EVENTS);
    choose(&mut client, &json!("early"), "allow");
    client.say("go");
    let question = client.last_until("permission_request");
    choose(&mut client, &json!("other"), "allow");
    choose(&mut client, &question["question_id"], "deny");
    choose(&mut client, &question["question_id"], "allow");
    client.until("result");
    let errors = client.close_with_errors();
    let twice = question["question_id"].as_str().unwrap();
    for id in ["early", "other", twice] {
        let told = format!("no question `{id}` is open");
        assert!(errors.contains(&told), "{id}: {errors}");
    }
    assert!(made(&bench).is_empty());
}

#[test]
fn a_question_is_taken_back_on_an_interrupt() {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("after")]));
    let mut client = bench.client(&EVENTS);
    client.say("go");
    let question = client.last_until("permission_request");
    client.send(
        &json!({"type": "control_request", "request_id": "x", "request": {"subtype": "interrupt"}}),
    );
    let frames = client.until("result");
    let withdrawn = of_type(&frames, "control_cancel_request");
    assert_eq!(withdrawn[0]["request_id"], question["question_id"]);
}

#[rstest]
#[case(&["--permission-mode", "dontAsk"], &["running", "idle"])]
#[case(&[], &["running", "idle"])]
#[case(&EVENTS, &["running", "requires_action", "running", "idle"])]
fn only_who_is_asked_hears_that_it_is(#[case] flags: &[&str], #[case] expected: &[&str]) {
    let bench = Bench::new(Script::new([touch("a"), Reply::text("done")]));
    let told = [("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1")];
    let mut client = bench.client_with(flags, &told);
    client.say("go");
    let mut states = Vec::new();
    while states.last() != Some(&json!("idle")) {
        let frame = client.next().unwrap();
        if frame["subtype"] == "session_state_changed" {
            states.push(frame["state"].clone());
        }
        if frame["type"] == "permission_request" {
            choose(&mut client, &frame["question_id"], "allow");
        }
    }
    assert_eq!(states, expected);
}

#[test]
fn what_the_user_denies_no_choice_of_the_client_allows() {
    let script = [touch("a"), touch("b"), Reply::text("done")];
    let bench = Bench::new(Script::new(script));
    std::fs::create_dir_all(bench.config()).unwrap();
    let settings = json!({"permissions": {"deny": ["Bash(touch b)"]}}).to_string();
    std::fs::write(bench.config().join("settings.json"), settings).unwrap();
    let mut client = bench.client(&EVENTS);
    client.say("go");
    let question = client.last_until("permission_request");
    choose(&mut client, &question["question_id"], "allow-session");
    let frames = client.until("result");
    assert!(of_type(&frames, "permission_request").is_empty());
    let denied = &frames.last().unwrap()["permission_denials"][0];
    assert_eq!(denied["tool_input"]["command"], "touch b");
    assert_eq!(made(&bench), ["a"]);
}

#[test]
fn a_tool_that_was_allowed_for_the_session_keeps_what_the_user_denies() {
    let script = [write("a"), write("b"), Reply::text("done")];
    let bench = Bench::new(Script::new(script));
    std::fs::create_dir_all(bench.config()).unwrap();
    let settings = json!({"permissions": {"deny": ["Write(./b)"]}}).to_string();
    std::fs::write(bench.config().join("settings.json"), settings).unwrap();
    let mut client = bench.client(&EVENTS);
    client.say("go");
    let question = client.last_until("permission_request");
    choose(&mut client, &question["question_id"], "allow-session");
    client.until("result");
    assert_eq!(made(&bench), ["a"]);
}
