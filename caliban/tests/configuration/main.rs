//! What settings, variables and flags promise, through the built binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

#[path = "../support/mod.rs"]
mod support;

mod live;
mod managed;
mod models;
mod printing;
mod spelling;
mod subdirectory;
mod switches;
mod trust;
mod unbuilt;
mod writing;

use std::process::Command;

use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};
use support::apart::{apart, under_operator};
use support::homes::{plain, project, user, write};
use support::{Bench, Wire, run};

fn answers() -> Script {
    Script::new([Reply::text("ok")]).after(After::RepeatLast)
}

/// The model runs one command and is done.
fn runs_command(command: &str) -> Script {
    let call = Reply::tool("Bash", json!({"command": command}));
    Script::new([call, Reply::text("done")]).after(After::RepeatLast)
}

fn bench(script: Script) -> Bench {
    Bench::new(Wire::Anthropic, script)
}

/// The warnings that the first frame of a run carries.
fn warnings(command: &mut Command) -> Vec<String> {
    serde_json::from_value(init(command)["warnings"].clone()).unwrap()
}

/// The first frame of a run.
fn init(command: &mut Command) -> Value {
    let ran = run(command.args(["--output-format", "stream-json", "-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap()
}
