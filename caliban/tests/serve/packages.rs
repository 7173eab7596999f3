//! The clients for other languages, against the program itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_testkit::{After, Match, Presence, Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::support::{Bench, Wire, run};

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients")
}

/// A program of another language with the environment of a run.
fn program(bench: &Bench, language: &str, script: &Path) -> Command {
    let (variable, program) = if language == "python" {
        ("CALIBAN_TEST_PYTHON", "python3")
    } else {
        ("CALIBAN_TEST_NODE", "node")
    };
    let found = std::env::var_os(variable);
    let mut command = Command::new(found.unwrap_or_else(|| program.into()));
    let template = bench.command();
    command
        .arg(script)
        .env_clear()
        .envs(
            template
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", clients().join("python/src"))
        .env("CALIBAN", env!("CARGO_BIN_EXE_caliban"))
        .env("CALIBAN_PROVIDER", bench.wire.provider())
        .current_dir(bench.workspace.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

#[rstest]
#[case::typescript("node", "typescript/examples/tabs.js")]
#[case::python("python", "python/examples/tabs.py")]
fn the_example_works_in_three_tabs(#[case] language: &str, #[case] example: &str) {
    let example = clients().join(example);
    let lines = std::fs::read_to_string(&example).unwrap().lines().count();
    assert!(lines < 60, "the example has {lines} lines");
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "touch forbidden"})).when(Match {
            tool_result: Some(Presence::Absent),
            ..Match::last_user("riskiest")
        }),
        Reply::text("main.rs").when(Match::last_user("riskiest")),
        Reply::text("none").when(Match::last_user("frameworks")),
        Reply::text("an agent harness").when(Match::last_user("three words")),
        Reply::text("It is about agents."),
    ])
    .after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = run(&mut program(&bench, language, &example));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    for answer in [
        "  It is about agents.",
        "  an agent harness",
        "  none",
        "  main.rs",
    ] {
        assert!(ran.stdout.contains(answer), "{answer}: {}", ran.stdout);
    }
    assert!(!bench.workspace.path().join("forbidden").exists());
}
