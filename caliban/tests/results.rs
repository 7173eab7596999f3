//! A program that asked for JSON gets exactly one last result, however a run ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use caliban_testkit::{Fault, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Wire, frame, run_with_input};

const LINES: [&str; 4] = [
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
];

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
}

/// Interrupts until it ends: the second may come before the first was taken.
fn insist(child: &mut Child) -> Option<i32> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        interrupt(child);
        for _ in 0..10 {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(Instant::now() < deadline, "it does not end");
    }
}

/// A command that ignores being asked to end, and says when it runs.
fn deaf() -> Reply {
    let command = "trap '' TERM; touch runs; sleep 60 & wait; sleep 60";
    Reply::text("I try.").and_tool("Bash", json!({"command": command}))
}

#[rstest]
#[case::frames("stream-json")]
#[case::one_object("json")]
fn a_second_interrupt_still_has_its_result(#[case] format: &str) {
    let bench = Bench::new(Wire::Anthropic, Script::new([deaf()]));
    let args = ["-p", "go", "--allow", "Bash", "--output-format", format];
    let mut child = bench.command().args(args).spawn().unwrap();
    let runs = bench.workspace.path().join("runs");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !runs.exists() {
        assert!(Instant::now() < deadline, "it does not run");
        std::thread::sleep(Duration::from_millis(10));
    }
    interrupt(&child);
    assert_eq!(insist(&mut child), Some(130));
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    let frames: Vec<Value> = stdout.lines().map(frame).collect();
    let results: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["type"] == "result")
        .collect();
    assert_eq!(results.len(), 1, "{stdout}");
    assert_eq!(frames.last(), Some(results[0]));
    assert_eq!(results[0]["subtype"], "cancelled");
    assert_eq!(results[0]["turns"], 1);
    assert_eq!(results[0]["last_assistant_text"], "I try.");
    assert!(
        results[0]["total_output_tokens"].as_u64() > Some(0),
        "{stdout}"
    );
}

#[test]
fn an_interrupt_before_anything_was_asked_has_a_result() {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let mut command = bench.command();
    let mut child = command.args(LINES).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().map(|line| frame(&line.unwrap()));
    assert_eq!(next().unwrap()["subtype"], "init");
    interrupt(&child);
    let result = next().unwrap();
    assert_eq!(
        (&result["type"], &result["subtype"]),
        (&json!("result"), &json!("cancelled"))
    );
    assert_eq!(next(), None);
    assert_eq!(child.wait().unwrap().code(), Some(124));
}

#[test]
fn an_interrupt_while_the_prompt_is_waited_for_has_a_result() {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let mut command = bench.command();
    let args = ["-p", "-", "--output-format", "json"];
    let mut child = command.args(args).stdin(Stdio::piped()).spawn().unwrap();
    // Nothing is ever said on it.
    let _stdin = child.stdin.take();
    // Until the handler is there a signal simply ends it.
    let status = format!("/proc/{}/status", child.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    let catches_interrupts = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        u64::from_str_radix(caught.unwrap().trim(), 16).unwrap() & 2 != 0
    };
    while !catches_interrupts() {
        assert!(Instant::now() < deadline, "it does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(insist(&mut child), Some(130));
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    let frames: Vec<Value> = stdout.lines().map(frame).collect();
    assert_eq!(frames.len(), 1, "{stdout}");
    assert_eq!(frames[0]["subtype"], "cancelled");
}

#[rstest]
#[case::unknown_flag(&["-p", "x", "--nonsense"], "--nonsense")]
#[case::bad_value(&["-p", "x", "--max-turns", "many"], "--max-turns")]
#[case::conflict(&["-p", "x", "-c", "-r", "y"], "--continue")]
#[case::mistyped_command(&["prems", "list"], "perms")]
#[case::mistyped_word(&["docter"], "doctor")]
fn a_command_line_that_makes_no_sense_has_a_result(
    #[case] args: &[&str],
    #[case] named: &str,
    #[values(&["--output-format", "json"], &["--output-format=stream-json"])] format: &[&str],
) {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let ran = bench.run(args.iter().chain(format));
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    let frames: Vec<Value> = ran.stdout.lines().map(frame).collect();
    assert_eq!(frames.len(), 1, "{}", ran.stdout);
    assert_eq!(frames[0]["subtype"], "error");
    let error = frames[0]["error"].as_str().unwrap();
    assert!(error.contains(named) && !error.contains("Usage"), "{error}");
    assert!(ran.stderr.contains(named), "{}", ran.stderr);
    let plain = bench.run(args);
    assert_eq!((plain.code, plain.stdout.as_str()), (Some(64), ""));
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn what_is_nearly_a_command_can_still_be_asked() {
    let script = Script::new([Reply::text("yes"), Reply::text("yes"), Reply::text("yes")]);
    let bench = Bench::new(Wire::Anthropic, script);
    for args in [&["-p", "docter"][..], &["see a docter"], &["hello"]] {
        let ran = bench.run(args);
        assert_eq!(ran.code, Some(0), "{args:?} {}", ran.stderr);
    }
}

#[rstest]
#[case::one_bad(&[200, 400, 200], 1)]
#[case::the_last(&[200, 200, 400], 1)]
#[case::none(&[200, 200, 200], 0)]
fn the_worst_exchange_counts(#[case] answers: &[u16], #[case] code: i32) {
    let replies = answers.iter().map(|status| match status {
        200 => Reply::text("fine"),
        status => Reply::fault(Fault::status(*status)),
    });
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    let input: String = answers
        .iter()
        .map(|_| "{\"type\":\"user\",\"content\":\"go\"}\n")
        .collect();
    let ran = run_with_input(bench.command().args(LINES), input.as_bytes());
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    let frames: Vec<Value> = ran.stdout.lines().map(frame).collect();
    let results = frames.iter().filter(|frame| frame["type"] == "result");
    assert_eq!(results.count(), 3, "{}", ran.stdout);
}

/// What hooks do when the session ends is told before the last result, wherever that is known to be
/// the last.
#[rstest]
#[case::one_prompt(&["-p", "go"], "")]
#[case::two_prompts(&["--input-format", "stream-json"], "{\"type\":\"user\",\"content\":\"a\"}\n{\"type\":\"user\",\"content\":\"b\"}\n")]
fn hooks_of_the_end_are_told_before_the_result(#[case] how: &[&str], #[case] input: &str) {
    let script = Script::new([Reply::text("one"), Reply::text("two")]);
    let bench = Bench::new(Wire::Anthropic, script);
    let settings = json!({"hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "sleep 0.2", "async": true}]}],
        "SessionEnd": [{"hooks": [{"type": "command", "command": "true"}]}],
    }});
    let settings = settings.to_string();
    let flags = [
        "--output-format",
        "stream-json",
        "--include-hook-events",
        "--settings",
        &settings,
    ];
    let mut command = bench.command();
    let ran = run_with_input(command.args(how).args(flags), input.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let frames: Vec<Value> = ran.stdout.lines().map(frame).collect();
    assert_eq!(frames.last().unwrap()["type"], "result");
    let ended = |name: &str, phase: &Value| {
        let told = frames.iter().filter(|frame| {
            frame["hookEventName"] == name && frame["hookSpecificOutput"]["phase"] == *phase
        });
        told.count()
    };
    let prompts = input.lines().count().max(1);
    assert_eq!(ended("Stop", &json!("started")), prompts, "{}", ran.stdout);
    assert_eq!(ended("Stop", &json!("finished")), prompts, "{}", ran.stdout);
    assert_eq!(ended("SessionEnd", &Value::Null), 1, "{}", ran.stdout);
    let results = frames.iter().filter(|frame| frame["type"] == "result");
    assert_eq!(results.count(), prompts);
}
