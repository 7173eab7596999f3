//! Policy through the built binary: what patterns mean, whose rules count for how much, what the
//! commands about rules show and write, who ends plan mode, and what is logged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod clients;
mod log;
mod modes;
mod patterns;
mod remedies;
mod scopes;
#[path = "../support/mod.rs"]
mod support;

use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};
use support::homes::write;
use support::{Bench, Ran, Wire, bare, run};

/// A home and a workspace with nothing in them.
struct Place {
    home: tempfile::TempDir,
    workspace: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            workspace: tempfile::tempdir().unwrap(),
        }
    }

    fn user_settings(&self) -> std::path::PathBuf {
        self.home.path().join(".config/caliban/settings.toml")
    }

    fn project_settings(&self) -> std::path::PathBuf {
        self.workspace.path().join(".caliban/settings.toml")
    }

    fn perms(&self, args: &[&str]) -> Ran {
        run(bare(self.home.path(), self.workspace.path())
            .arg("perms")
            .args(args))
    }

    /// The verdict on a command with these flags: 0 allow, 1 deny, 2 ask.
    fn verdict(&self, command: &str, flags: &[&str]) -> Option<i32> {
        let input = json!({"command": command}).to_string();
        let ran = self.perms(&[&["test", "Bash", &input], flags].concat());
        assert!(matches!(ran.code, Some(0..=2)), "{ran:?}");
        ran.code
    }
}

/// A model that makes these calls, one a turn.
fn bench(calls: &[(&str, Value)]) -> Bench {
    let calls = calls.iter();
    let replies = calls.map(|(name, input)| Reply::tool(*name, input.clone()));
    let script = Script::new(replies.chain([Reply::text("done")]));
    Bench::new(Wire::Anthropic, script)
}

/// The result frame of a run with these flags.
fn result(bench: &Bench, args: &[&str]) -> Value {
    let ran = bench.run(["-p", "go", "--output-format", "json"].iter().chain(args));
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

fn denials(result: &Value) -> usize {
    result["denials"].as_array().map_or(0, Vec::len)
}
