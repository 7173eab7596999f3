//! The JSON formats: whole frames, in order, one result on every path.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader};

use caliban_testkit::{After, Fault, Reply, Script, Stop, Usage};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, bare, run};

fn frames(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A frame without what differs from run to run.
fn steady(mut frame: Value) -> Value {
    for key in ["session_id", "duration_ms", "cwd"] {
        if let Some(value) = frame.get_mut(key) {
            *value = json!("…");
        }
    }
    frame
}

fn usage() -> Usage {
    Usage {
        input: 1_000,
        cache_read: 2_000,
        output: 100,
        ..Usage::default()
    }
}

#[test]
fn a_run_with_a_tool_is_told_frame_by_frame() {
    let script = Script::new([
        Reply::text("I count.")
            .and_tool("Bash", json!({"command": "echo 42"}))
            .usage(usage()),
        Reply::text("There are 42.").usage(usage()),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = bench.run([
        "-p",
        "count",
        "--allow",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let frames = frames(&ran);
    let id = frames[1]["id"].clone();
    let init = &frames[0];
    assert_eq!(init["model"], "anthropic/claude-sonnet-4-6");
    assert_eq!(
        (&init["type"], &init["subtype"]),
        (&json!("system"), &json!("init"))
    );
    assert!(init["tools"].as_array().unwrap().contains(&json!("Bash")));
    assert_eq!(init["pricing_as_of"], "2026-11-15");
    let call =
        json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "echo 42"}});
    assert_eq!(frames[1], call);
    let result = &frames[2];
    assert_eq!(
        (&result["type"], &result["tool_use_id"], &result["is_error"]),
        (&json!("tool_result"), &id, &json!(false))
    );
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("42\n[exit 0")
    );
    assert_eq!(
        frames[3],
        json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "I count."}, call]})
    );
    assert_eq!(
        frames[4],
        json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "There are 42."}]})
    );
    assert_eq!(
        steady(frames[5].clone()),
        json!({
            "type": "result", "subtype": "success", "result": "There are 42.",
            "session_id": "…", "total_cost_usd": 0.0102, "turns": 2,
            "total_input_tokens": 6000, "total_output_tokens": 200,
            "is_error": false, "duration_ms": "…",
            "usage": {"input_tokens": 2000, "cache_read_input_tokens": 4000, "cache_write_input_tokens": 0, "output_tokens": 200, "reasoning_tokens": 0},
            "denials": [],
        })
    );
    assert_eq!(frames.len(), 6);
    assert_eq!(frames[0]["session_id"], frames[5]["session_id"]);
}

#[test]
fn deltas_replace_messages_and_prompts_are_echoed_on_request() {
    let reply = || Reply::text("one two three four").thinking("hm");
    let bench = Bench::new(Wire::Anthropic, Script::new([reply()]));
    let ran = bench.run([
        "-p",
        "hi",
        "--output-format",
        "stream-json",
        "--include-partial-messages",
        "--replay-user-messages",
    ]);
    let frames = frames(&ran);
    assert_eq!(
        frames[1],
        json!({"type": "user", "content": [{"type": "text", "text": "hi"}]})
    );
    let joined = |kind: &str| -> String {
        frames
            .iter()
            .filter(|frame| frame["type"] == kind)
            .map(|frame| frame["delta"].as_str().unwrap())
            .collect()
    };
    assert_eq!(joined("text"), "one two three four");
    assert_eq!(joined("thinking"), "hm");
    assert!(frames.iter().all(|frame| frame["type"] != "message"));
}

#[test]
fn json_is_the_result_alone() {
    let bench = Bench::new(Wire::Gemini, Script::new([Reply::text("four")]));
    let ran = bench.run(["-p", "2+2", "--output-format", "json"]);
    assert_eq!(ran.code, Some(0));
    let [result] = &frames(&ran)[..] else {
        panic!("one frame, not {}", ran.stdout);
    };
    assert_eq!(
        (&result["type"], &result["result"]),
        (&json!("result"), &json!("four"))
    );
}

#[test]
fn retries_and_broken_answers_are_told() {
    let script = Script::new([
        Reply::fault(Fault::status(529)),
        Reply::text("half of it").with_fault(Fault::ResetMidStream { after_events: 4 }),
        Reply::text("whole"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = bench.run([
        "-p",
        "x",
        "--output-format",
        "stream-json",
        "--include-partial-messages",
    ]);
    let frames = frames(&ran);
    let retries: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["subtype"] == "api_retry")
        .collect();
    assert_eq!(retries.len(), 2);
    assert_eq!(
        (
            &retries[0]["attempt"],
            &retries[0]["max_retries"],
            &retries[0]["error_status"],
            &retries[0]["error_category"]
        ),
        (&json!(1), &json!(5), &json!(529), &json!("overloaded"))
    );
    assert!(retries[0]["retry_delay_ms"].is_u64());
    assert!(
        frames
            .iter()
            .any(|frame| frame["type"] == "warning" && frame["subtype"] == "superseded")
    );
    assert_eq!(frames.last().unwrap()["result"], "whole");
}

/// A model that does the same thing over and over runs into the limits that are documented, and into
/// no other.
#[rstest]
#[case::default(&[], 50)]
#[case::fewer(&["--max-turns", "12"], 12)]
fn a_model_that_repeats_itself_has_its_turns(#[case] flags: &[&str], #[case] turns: usize) {
    let script =
        Script::new([Reply::tool("Glob", json!({"pattern": "*"}))]).after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = bench.run([&["-p", "x", "--output-format", "stream-json"], flags].concat());
    assert_eq!(ran.code, Some(75), "{}", ran.stderr);
    let frames = frames(&ran);
    let result = frames.last().unwrap();
    assert_eq!(
        (&result["subtype"], &result["turns"]),
        (&json!("max_turns"), &json!(turns))
    );
    let told = frames
        .iter()
        .filter(|frame| frame["subtype"] == "repetition");
    assert_eq!(told.count(), 1);
}

#[rstest]
#[case::turns(&["--max-turns", "1"], "max_turns", 75)]
#[case::budget(&["--max-budget-usd", "0.000001"], "budget_exceeded", 137)]
#[case::none(&[], "success", 0)]
fn limits_have_their_own_results(#[case] flags: &[&str], #[case] subtype: &str, #[case] code: i32) {
    let script = Script::new([
        Reply::text("I look.").and_tool("Glob", json!({"pattern": "*"})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = bench.run([&["-p", "x", "--output-format", "json"], flags].concat());
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    let result = &frames(&ran)[0];
    assert_eq!(result["subtype"], subtype);
    assert_eq!(result.get("result").is_some(), code == 0);
    assert_eq!(result.get("tool_calls_seen").is_some(), code != 0);
    assert!(result.get("error").is_none());
    if code == 75 {
        assert_eq!(
            (&result["last_assistant_text"], &result["tool_calls_seen"]),
            (&json!("I look."), &json!(1))
        );
    }
}

#[test]
fn a_cut_answer_a_refusal_and_a_failed_provider_are_results() {
    let go = |reply: Reply| {
        let bench = Bench::new(Wire::Anthropic, Script::new([reply]));
        let ran = bench.run(["-p", "x", "--output-format", "stream-json"]);
        let last = frames(&ran).pop().unwrap();
        (ran.code, last)
    };
    let (code, cut) = go(Reply::text("half").stop(Stop::MaxTokens));
    assert_eq!(
        (code, &cut["subtype"], &cut["last_assistant_text"]),
        (Some(1), &json!("max_tokens"), &json!("half"))
    );
    let (code, refused) = go(Reply::text("no").stop(Stop::Refusal));
    assert_eq!(
        (code, &refused["subtype"], &refused["last_assistant_text"]),
        (Some(1), &json!("error"), &json!("no"))
    );
    assert!(refused["error"].as_str().unwrap().contains("refused"));
    let (code, failed) = go(Reply::fault(Fault::status(401)));
    assert_eq!(
        (code, &failed["subtype"], &failed["is_error"]),
        (Some(1), &json!("error"), &json!(true))
    );
    assert!(failed["error"].as_str().unwrap().contains("HTTP 401"));
}

#[test]
fn denials_are_listed() {
    let script = Script::new([
        Reply::tool("Write", json!({"path": "x", "content": "y"})),
        Reply::text("I may not."),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = bench.run(["-p", "x", "--output-format", "json"]);
    assert_eq!(ran.code, Some(0));
    let denial = &frames(&ran)[0]["denials"][0];
    assert_eq!(denial["tool"], "Write");
    let remedy = denial["remedy"].as_str().unwrap();
    assert!(remedy.contains("--allow 'Write:"), "{remedy}");
    assert!(remedy.contains("--permission-mode acceptEdits"), "{remedy}");
}

#[rstest]
#[case(&["-p", "x"], 78)]
#[case(&["-p", "x", "y"], 64)]
#[case(&["-p", "-"], 66)]
fn what_fails_before_the_run_is_a_result_too(#[case] args: &[&str], #[case] code: i32) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bare(folder.path(), folder.path());
    let ran = run(command.args(args).args(["--output-format", "stream-json"]));
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    let [result] = &frames(&ran)[..] else {
        panic!("one frame, not {}", ran.stdout);
    };
    assert_eq!(
        (&result["type"], &result["subtype"]),
        (&json!("result"), &json!("error"))
    );
    assert!(!result["error"].as_str().unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn an_interrupt_is_a_cancelled_result() {
    let reply = Reply::text("never ends").with_fault(Fault::StallMidStream { after_events: 4 });
    let bench = Bench::new(Wire::Anthropic, Script::new([reply]));
    let mut child = bench
        .command()
        .args(["-p", "hi", "--output-format", "stream-json"])
        .arg("--include-partial-messages")
        .spawn()
        .unwrap();
    // The first frame and the first piece of the answer.
    let mut seen = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    seen.next().unwrap().unwrap();
    let piece: Value = serde_json::from_str(&seen.next().unwrap().unwrap()).unwrap();
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(sent.unwrap().success());
    let ran = support::finish(child);
    assert_eq!(ran.code, Some(124));
    let last = frames(&ran).pop().unwrap();
    assert_eq!(last["subtype"], "cancelled");
    let said = last["last_assistant_text"].as_str().unwrap();
    assert!(said.starts_with(piece["delta"].as_str().unwrap()), "{said}");
}
