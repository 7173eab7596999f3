//! `caliban serve acp` through the built binary: a scripted editor over pipes, and the protocol's
//! own client libraries. Every line that the program writes is held to the protocol's schema.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::needless_pass_by_value,
    reason = "a test may panic"
)]

mod authentication;
mod calls;
mod cancelling;
mod editor;
mod framing;
mod libraries;
mod options;
mod pace;
mod permissions;
#[path = "../faces/process.rs"]
#[allow(dead_code, reason = "the part that is needed")]
mod process;
mod prompts;
mod schema;
mod servers;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
mod trust;

use std::path::Path;

use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Wire};

fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    Bench::new(Wire::Anthropic, Script::new(replies))
}

/// Writes the settings of the user.
fn settings(bench: &Bench, settings: &Value) {
    write_settings(&bench.home.path().join(".config/caliban"), settings);
}

fn write_settings(directory: &Path, settings: &Value) {
    std::fs::create_dir_all(directory).unwrap();
    let text = toml::to_string(settings).unwrap();
    std::fs::write(directory.join("settings.toml"), text).unwrap();
}

/// A bench whose user allows all commands and edits.
fn permitting(replies: impl IntoIterator<Item = Reply>) -> Bench {
    let bench = bench(replies);
    let allowed = json!({"permissions": {"allow": ["Bash", "Edit", "Write"]}});
    settings(&bench, &allowed);
    bench
}

fn shell(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command}))
}

/// A prompt of one text.
fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}
