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

use std::path::Path;
use std::process::{Command, Stdio};

use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Wire, bare, run};

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

/// The binary without `--provider`, which would decide more than these tests want.
fn plain(bench: &Bench) -> Command {
    let mut command = bare(bench.home.path(), bench.workspace.path());
    command
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("OPENAI_API_KEY", "test-key")
        .env("OPENAI_BASE_URL", format!("{}/v1", bench.server.url()))
        .env("CALIBAN_RETRY_BASE_DELAY_MS", "1");
    command
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn user(bench: &Bench, text: &str) {
    write(
        &bench.home.path().join(".config/caliban/settings.toml"),
        text,
    );
}

fn project(bench: &Bench, text: &str) {
    write(&bench.workspace.path().join(".caliban/settings.toml"), text);
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

/// Runs a command where the machine's operator has these settings: in a mount namespace of its
/// own, because no variable moves the place where they lie.
fn under_operator(command: &mut Command, settings: &Value) -> Command {
    let script = "mount -t tmpfs none /etc && mkdir /etc/caliban && \
                  printf %s \"$MANAGED\" > /etc/caliban/managed-settings.json && exec \"$@\"";
    let mut inside = Command::new("unshare");
    inside
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("MANAGED", settings.to_string())
        .current_dir(command.get_current_dir().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    inside
}
