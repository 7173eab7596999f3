//! A program that embeds us cannot undo what its user forbade.

use std::io::{BufRead, BufReader, Write as _};
use std::process::Stdio;

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Bench, Wire, bare, run};
use crate::write;

const FORBIDDEN: &str = "[[permissions.rules]]\npattern = 'Bash:touch *'\naction = 'deny'\n";
const ASKED: &str = "[[permissions.rules]]\npattern = 'Bash:touch *'\naction = 'ask'\n";

fn bench() -> Bench {
    let script = [
        Reply::tool("Bash", json!({"command": "touch ran"})),
        Reply::text("done"),
    ];
    Bench::new(Wire::Anthropic, Script::new(script))
}

fn has_run(bench: &Bench) -> bool {
    bench.workspace.path().join("ran").exists()
}

/// Runs the dialect of the applications that pass these flags.
fn claude(bench: &Bench, flags: &[&str]) {
    let mut command = bare(bench.home.path(), bench.workspace.path());
    command
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("ANTHROPIC_API_KEY", "test-key")
        .args(["--dialect", "claude", "-p", "go"])
        .args(flags);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[derive(Debug, Clone, Copy)]
enum WrittenBy {
    User,
    UserOfTheDialect,
    Project,
    Settings,
}

impl WrittenBy {
    /// Writes a rule where it belongs; returns the flags that it needs.
    fn write(self, bench: &Bench, rule: &str, action: &str) -> Vec<String> {
        let bucket = json!({"permissions": {action: ["Bash(touch:*)"]}}).to_string();
        let (home, workspace) = (bench.home.path(), bench.workspace.path());
        match self {
            Self::User => write(&home.join(".config/caliban/settings.toml"), rule),
            Self::UserOfTheDialect => write(&home.join(".claude/settings.json"), &bucket),
            Self::Project => write(&workspace.join(".claude/settings.json"), &bucket),
            Self::Settings => return vec!["--settings".to_owned(), bucket],
        }
        Vec::new()
    }
}

#[rstest]
fn an_application_does_not_lift_a_denial_or_a_question(
    #[values(
        WrittenBy::User,
        WrittenBy::UserOfTheDialect,
        WrittenBy::Project,
        WrittenBy::Settings
    )]
    by: WrittenBy,
    #[values((FORBIDDEN, "deny"), (ASKED, "ask"))] rule: (&str, &str),
    #[values("Bash", "Bash(touch:*)", "Bash(touch ran)")] allowed: &str,
) {
    let bench = bench();
    let more = by.write(&bench, rule.0, rule.1);
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    claude(&bench, &[&["--allowedTools", allowed], &more[..]].concat());
    assert!(!has_run(&bench));
}

#[test]
fn an_application_allows_what_nobody_objects_to() {
    let bench = bench();
    claude(&bench, &["--allowedTools", "Bash(touch:*)"]);
    assert!(has_run(&bench));
}

#[test]
fn whoever_types_a_flag_may_lift_a_denial_of_their_own() {
    let bench = bench();
    let settings = bench.home.path().join(".config/caliban/settings.toml");
    write(&settings, FORBIDDEN);
    let ran = bench.run(["-p", "go", "--allow", "Bash:touch *"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(has_run(&bench));
}

#[rstest]
#[case::user(true)]
#[case::project(false)]
fn a_client_that_lists_a_tool_does_not_lift_a_denial(#[case] is_users: bool) {
    let bench = bench();
    let settings = if is_users {
        bench.home.path().join(".config/caliban/settings.toml")
    } else {
        bench.workspace.path().join(".caliban/settings.toml")
    };
    write(&settings, FORBIDDEN);
    let mut command = bench.command();
    command.args(["serve", "heddle"]).stdin(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let init = json!({"type": "init", "id": "1", "config": {
        "model": "anthropic/claude-sonnet-4-6", "system_prompt": "s", "tools": ["bash"],
    }});
    let send = json!({"type": "send", "id": "2", "message": "go"});
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{init}\n{send}").unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let frames: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .inspect(|frame: &Value| {
            if frame["type"] == "result" {
                writeln!(input, "{}", json!({"type": "shutdown", "id": "3"})).unwrap();
            }
        })
        .collect();
    server.wait().unwrap();
    let is_denied = |frame: &Value| frame["event"]["event"] == "permission_denied";
    assert!(frames.iter().any(is_denied), "{frames:?}");
    assert!(!has_run(&bench));
}
