//! MCP servers through the built binary: a real process on standard input and output.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod consent;
mod discovery;
mod extras;
mod faults;
mod files;
#[path = "../support/mod.rs"]
mod support;

use std::process::Command;

use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};
use support::homes::write;
use support::{Bench, Ran, Wire, run};

/// The server of these tests, with these variables.
fn stub(variables: &Value) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    json!({"command": "python3", "args": [script], "env": variables})
}

fn settings(servers: &Value) -> Value {
    json!({ "mcp_servers": servers })
}

/// The model makes one call and then is done.
fn calls(name: &str, input: Value) -> Script {
    Script::new([Reply::tool(name, input), Reply::text("done")]).after(After::RepeatLast)
}

fn ok() -> Script {
    Script::new([Reply::text("ok")]).after(After::RepeatLast)
}

fn bench(script: Script) -> Bench {
    Bench::new(Wire::Anthropic, script)
}

fn go(bench: &Bench, settings: &Value, args: &[&str]) -> Ran {
    let mut command = command(bench, settings);
    run(command.args(args))
}

fn command(bench: &Bench, settings: &Value) -> Command {
    let mut command = bench.command();
    command
        .args(["--output-format", "stream-json"])
        .args(["--settings", &settings.to_string()])
        .args(["-p", "go"]);
    command
}

fn frames(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The names of the tools in the first request.
fn offered(bench: &Bench) -> Vec<String> {
    let requests = bench.server.model_requests();
    let tools = requests[0].json()["tools"].clone();
    let tools = tools.as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// What the model was told about its call.
fn told(bench: &Bench) -> String {
    let requests = bench.server.model_requests();
    let last = requests.last().unwrap().json();
    let messages = last["messages"].as_array().unwrap();
    let results = messages.last().unwrap()["content"].as_array().unwrap();
    let content = &results[0]["content"];
    match content {
        Value::String(text) => text.clone(),
        parts => parts
            .as_array()
            .unwrap_or_else(|| panic!("{results:?}"))
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
    }
}
