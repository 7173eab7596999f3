//! When a call is told: to programs as soon as its input is whole, to people when it runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader};

use caliban_testkit::{Fault, Match, Reply, Script, Stop};
use serde_json::{Value, json};
use support::{Bench, Wire, frame};

const STREAM: [&str; 4] = ["-p", "go", "--output-format", "stream-json"];

fn frames(stdout: &str) -> Vec<Value> {
    stdout.lines().map(frame).collect()
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    let kinds = frames.iter().map(|frame| frame["type"].as_str().unwrap());
    kinds.collect()
}

/// A call that is whole long before the answer is, which stops in the middle of the next one.
fn held() -> Reply {
    let long = "x".repeat(4_000);
    Reply::tool("Glob", json!({"pattern": "*"}))
        .and_tool("Write", json!({"path": "f", "content": long}))
        .hold_after(10)
}

#[test]
fn a_call_is_told_while_the_rest_of_the_answer_comes_and_runs_after_it() {
    let bench = Bench::new(Wire::Anthropic, Script::new([held(), Reply::text("done")]));
    let mut child = bench.command().args(STREAM).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || frame(&lines.next().unwrap().unwrap());
    assert_eq!(next()["subtype"], "init");
    let call = next();
    assert_eq!(
        (&call["type"], &call["name"]),
        (&json!("tool_use"), &json!("Glob"))
    );
    // Until here the answer has not ended; had the call run, its result would be next.
    bench.server.release();
    let second = next();
    assert_eq!(
        (&second["type"], &second["name"]),
        (&json!("tool_use"), &json!("Write"))
    );
    assert_eq!(next()["type"], "tool_result");
    let rest: Vec<Value> = lines.map(|line| frame(&line.unwrap())).collect();
    assert_eq!(
        kinds(&rest),
        ["tool_result", "message", "message", "result"]
    );
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_call_of_an_answer_that_broke_off_is_void_and_never_runs() {
    let broken = Reply::tool("Write", json!({"path": "one", "content": "x"}))
        .and_tool(
            "Write",
            json!({"path": "two", "content": "x".repeat(4_000)}),
        )
        .with_fault(Fault::ResetMidStream { after_events: 10 });
    let whole = Reply::tool("Glob", json!({"pattern": "*"}));
    let script = Script::new([broken, whole, Reply::text("done")]);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = bench.run(STREAM.iter().chain(&["--allow", "Write"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let frames = frames(&ran.stdout);
    let told: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["type"] == "tool_use")
        .collect();
    assert_eq!(told.len(), 2, "{frames:#?}");
    let void = frames
        .iter()
        .position(|frame| frame["subtype"] == "superseded");
    let first = frames.iter().position(|frame| frame["id"] == told[0]["id"]);
    assert!(first < void, "{frames:#?}");
    let is_result = |frame: &&Value| frame["type"] == "tool_result";
    let ended: Vec<&Value> = frames.iter().filter(is_result).collect();
    assert_eq!(ended.len(), 1, "{frames:#?}");
    assert_eq!(ended[0]["tool_use_id"], told[1]["id"]);
    assert!(!bench.workspace.path().join("one").exists());
}

#[test]
fn a_call_of_an_answer_that_was_cut_does_not_run() {
    let cut = Reply::tool("Write", json!({"path": "one", "content": "x"})).stop(Stop::MaxTokens);
    let bench = Bench::new(Wire::Anthropic, Script::new([cut]));
    let ran = bench.run(STREAM.iter().chain(&["--allow", "Write"]));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let frames = frames(&ran.stdout);
    assert_eq!(kinds(&frames), ["system", "tool_use", "message", "result"]);
    assert_eq!(frames[3]["subtype"], "max_tokens");
    assert!(!bench.workspace.path().join("one").exists());
}

#[test]
fn people_are_told_of_calls_that_run_and_of_no_others() {
    let task = "sub-task";
    let script = Script::new([
        Reply::tools([
            ("Bash", json!({"command": "touch refused"})),
            ("Read", json!({"path": "notes.txt"})),
            ("Read", json!({"nonsense": 1})),
            ("AgentTool", json!({"prompt": task})),
        ])
        .when(Match::last_user("go")),
        Reply::tools([
            ("Write", json!({"path": "refused", "content": ""})),
            ("Glob", json!({"pattern": "*.txt"})),
        ])
        .when(Match::last_user(task)),
        Reply::text("found").when(Match::last_user(task)),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    std::fs::write(bench.workspace.path().join("notes.txt"), "42").unwrap();
    let ran = bench.run(["-p", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut running: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.trim_start().starts_with("Running "))
        .collect();
    running.sort_unstable();
    assert_eq!(
        running,
        [
            "  Running Glob: *.txt",
            "Running AgentTool: sub-task",
            "Running Read: notes.txt"
        ],
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("Bash: The call was not permitted"));
}

#[test]
fn what_sub_agents_do_is_shown_under_their_call() {
    let task = "sub-task";
    let script = Script::new([
        Reply::tool("AgentTool", json!({"prompt": task})).when(Match::last_user("go")),
        Reply::tool("Glob", json!({"pattern": "*.txt"})).when(Match::last_user(task)),
        Reply::text("found").when(Match::last_user(task)),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = bench.run(STREAM);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let frames = frames(&ran.stdout);
    let kinds = kinds(&frames);
    assert_eq!(
        kinds[..6],
        [
            "system",
            "tool_use",
            "tool_use",
            "tool_result",
            "tool_result",
            "message"
        ],
        "{frames:#?}"
    );
    let parent = &frames[1]["id"];
    assert_eq!(frames[1].get("parent_tool_use_id"), None);
    assert_eq!(&frames[2]["parent_tool_use_id"], parent);
    assert_eq!(frames[2]["name"], "Glob");
    assert_eq!(&frames[3]["parent_tool_use_id"], parent);
    assert_eq!(&frames[4]["tool_use_id"], parent);
}
