//! The operator's hooks through the built binary: they decide, they are told, and what they were
//! configured for holds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod answers;
mod decisions;
mod events;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod switches;

use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_testkit::{After, Match, Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, run};

/// A handler that runs this text of a shell.
fn shell(text: &str) -> Value {
    json!({"type": "command", "command": format!(": ; {text}")})
}

/// A handler that keeps what it is told, one line each.
fn recorder() -> Value {
    shell("cat >> \"$RECORD\"")
}

/// Settings with these handlers for these events.
fn settings(hooks: &[(&str, &str, Value)]) -> Value {
    let mut events = json!({});
    for (event, matcher, handler) in hooks {
        let entry = json!({"matcher": matcher, "hooks": [handler]});
        match events[event].as_array_mut() {
            Some(entries) => entries.push(entry),
            None => events[event] = json!([entry]),
        }
    }
    json!({ "hooks": events })
}

fn ok() -> Script {
    Script::new([Reply::text("ok")]).after(After::RepeatLast)
}

fn write_call() -> Reply {
    Reply::tool("Write", json!({"path": "out.txt", "content": "x"}))
}

/// Who makes the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    Parent,
    SubAgent,
}

/// A model that writes `out.txt` and then is done.
fn writes(caller: Caller) -> Script {
    match caller {
        Caller::Parent => Script::new([write_call(), Reply::text("done")]),
        Caller::SubAgent => Script::new([
            Reply::tool("AgentTool", json!({"prompt": "sub"})),
            write_call().when(Match::last_user("sub")),
            Reply::text("sub done"),
            Reply::text("done"),
        ]),
    }
}

fn is_written(bench: &Bench) -> bool {
    bench.workspace.path().join("out.txt").exists()
}

fn record(bench: &Bench) -> PathBuf {
    bench.home.path().join("record.jsonl")
}

/// What the recorder was told.
fn recorded(bench: &Bench) -> Vec<Value> {
    let text = std::fs::read_to_string(record(bench)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["hook_event_name"].as_str().unwrap())
        .collect()
}

/// Runs with these settings and arguments.
fn go(bench: &Bench, settings: &Value, args: &[&str]) -> Ran {
    go_with(bench, settings, |command| {
        command.args(args);
    })
}

fn go_with(bench: &Bench, settings: &Value, configure: impl FnOnce(&mut Command)) -> Ran {
    let mut command = bench.command();
    command
        .args(["--output-format", "stream-json"])
        .args(["--settings", &settings.to_string()])
        .env("RECORD", record(bench));
    configure(&mut command);
    if !command.get_args().any(|word| word == "-p") {
        command.args(["-p", "go"]);
    }
    run(&mut command)
}

fn frames(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn result(ran: &Ran) -> Value {
    let last = frames(ran).pop().unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(last["type"], "result");
    last
}

/// The frames about handlers; an event that has none is told of without a scope.
fn hook_frames(ran: &Ran) -> Vec<Value> {
    let mut frames = event_frames(ran);
    frames.retain(|frame| frame["hookSpecificOutput"]["scope"].is_string());
    frames
}

fn event_frames(ran: &Ran) -> Vec<Value> {
    let mut frames = frames(ran);
    frames.retain(|frame| frame["type"] == "hook_event");
    frames
}

/// The text blocks of a message on the Anthropic wire.
fn texts(message: &Value) -> Vec<String> {
    let blocks = message["content"].as_array().unwrap().iter();
    let text = |block: &Value| block["text"].as_str().map(str::to_owned);
    blocks.filter_map(text).collect()
}

/// The messages of a request.
fn messages(bench: &Bench, request: usize) -> Vec<Value> {
    let request = bench.server.model_requests()[request].json();
    request["messages"].as_array().unwrap().clone()
}

fn bench(script: Script) -> Bench {
    Bench::new(Wire::Anthropic, script)
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
