//! Memory, skills, output styles and custom commands through the built binary: what the model is
//! told, to the letter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod customs;
mod foreign;
mod memory;
mod notes;
mod reminders;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;

use caliban_testkit::{After, Reply, Script};
use serde_json::Value;
use support::{Bench, Ran, Wire, run};

/// What a run told the model and its caller. Paths of the fixture read `<repo>` and `<home>`.
struct Told {
    requests: Vec<Value>,
    frames: Vec<Value>,
    ran: Ran,
    wire: Wire,
}

/// A repository that nothing outside of it can add to, with these files.
fn repository(wire: Wire, script: Script, files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(wire, script);
    std::fs::create_dir(bench.workspace.path().join(".git")).unwrap();
    for (path, text) in files {
        put(bench.workspace.path(), path, text);
    }
    bench
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn ok() -> Script {
    Script::new([Reply::text("ok")]).after(After::RepeatLast)
}

fn tell(bench: &Bench, configure: impl FnOnce(&mut Command)) -> Told {
    let before = bench.server.model_requests().len();
    let mut command = bench.command();
    command.args(["--output-format", "stream-json"]);
    configure(&mut command);
    if !command.get_args().any(|word| word == "-p") {
        command.args(["-p", "go"]);
    }
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stderr, ran.stdout);
    let parsed = |text: &str| serde_json::from_str(&normal(bench, text)).unwrap();
    let requests = bench.server.model_requests();
    Told {
        requests: requests[before..]
            .iter()
            .map(|request| parsed(&request.json().to_string()))
            .collect(),
        frames: ran.stdout.lines().map(parsed).collect(),
        ran,
        wire: bench.wire,
    }
}

fn normal(bench: &Bench, text: &str) -> String {
    let real = |path: &Path| path.canonicalize().unwrap().display().to_string();
    text.replace(&real(bench.workspace.path()), "<repo>")
        .replace(&real(bench.home.path()), "<home>")
}

impl Told {
    /// The system text of the first request.
    fn system(&self) -> String {
        system(self.wire, &self.requests[0])
    }

    fn tools(&self) -> Vec<String> {
        let names = self.frames[0]["tools"].as_array().unwrap().iter();
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    }

    fn warnings(&self) -> Vec<String> {
        let warnings = self.frames[0]["warnings"].as_array().unwrap().iter();
        warnings
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    }

    /// What the user said first.
    fn prompt(&self) -> String {
        let message = messages(self.wire, &self.requests[0])[0].clone();
        text_of(&message["content"])
    }
}

fn system(wire: Wire, request: &Value) -> String {
    match wire {
        Wire::Anthropic => text_of(&request["system"]),
        _ => match request["messages"].as_array().unwrap().first() {
            Some(first) if first["role"] == "system" => text_of(&first["content"]),
            _ => String::new(),
        },
    }
}

/// The messages after the system text, without marks for the provider's cache.
fn messages(wire: Wire, request: &Value) -> Vec<Value> {
    let mut messages = request["messages"].as_array().unwrap().clone();
    messages.retain(|message| wire == Wire::Anthropic || message["role"] != "system");
    for message in &mut messages {
        for block in message["content"].as_array_mut().into_iter().flatten() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// What a workspace without anything is told.
fn default_prompt(wire: Wire) -> String {
    tell(&repository(wire, ok(), &[]), |_| {}).system()
}
