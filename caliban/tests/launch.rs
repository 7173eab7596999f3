//! How a run begins, the same in every dialect: what a session hands down, what settings decide,
//! and which servers take part.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, run};

/// Who drives a run.
#[derive(Debug, Clone, Copy)]
enum Driver {
    Native,
    Claude,
    Heddle,
}

const ASKS_NOBODY: &str = "which asks nobody";

fn claude(bench: &Bench) -> Command {
    let mut command = bench.command();
    // Tests may run as root.
    command.env("IS_SANDBOX", "1");
    command.args(["--dialect", "claude", "-p"]);
    command
}

/// Says these lines to a program whose frames are not the native ones.
fn serve(command: &mut Command, lines: &[Value]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Makes a session in which nobody is asked.
fn make(bench: &Bench, driver: Driver, flags: &[&str]) -> Ran {
    match driver {
        Driver::Native => bench.run(["-p", "begin"].iter().chain(flags)),
        Driver::Claude => run(claude(bench).args(flags).arg("begin")),
        Driver::Heddle => {
            let lines = [
                json!({"type": "init", "id": "1", "config": {
                    "model": "anthropic/claude-sonnet-4-6",
                    "system_prompt": "Be brief.",
                    "tools": ["bash"],
                    "approval_mode": "suggest",
                }}),
                json!({"type": "send", "id": "2", "message": "begin"}),
            ];
            serve(
                bench.command().args(flags).args(["serve", "heddle"]),
                &lines,
            )
        }
    }
}

/// Continues the session and lets the model run a command.
fn go_on(bench: &Bench, driver: Driver, flags: &[&str]) -> Ran {
    match driver {
        Driver::Native => {
            let args = ["-p", "go on", "-c", "--output-format", "stream-json"];
            bench.run(args.iter().chain(flags))
        }
        Driver::Claude => run(claude(bench).arg("-c").args(flags).arg("go on")),
        Driver::Heddle => unreachable!("it is continued by the others"),
    }
}

fn script() -> Script {
    Script::new([
        Reply::text("begun"),
        Reply::tool("Bash", json!({"command": "touch ran"})),
        Reply::text("done"),
    ])
}

fn has_run(bench: &Bench) -> bool {
    bench.workspace.path().join("ran").exists()
}

#[rstest]
#[case::dont_ask(Driver::Native, &["--permission-mode", "dontAsk"])]
#[case::bypass(
    Driver::Native,
    &["--permission-mode", "bypassPermissions", "--allow-dangerously-skip-permissions"]
)]
#[case::lifted(Driver::Native, &["--no-permissions"])]
#[case::claude(Driver::Claude, &["--dangerously-skip-permissions"])]
#[case::claude_lifted(Driver::Claude, &["--no-permissions"])]
#[case::heddle(Driver::Heddle, &["--permission-mode", "dontAsk"])]
#[case::heddle_lifted(Driver::Heddle, &["--no-permissions"])]
fn a_session_that_asked_nobody_asks_again_when_it_goes_on(
    #[case] made: Driver,
    #[case] flags: &[&str],
    #[values(Driver::Native, Driver::Claude)] continued: Driver,
) {
    let bench = Bench::new(Wire::Anthropic, script());
    let begun = make(&bench, made, flags);
    assert_eq!(begun.code, Some(0), "{begun:?}");
    assert!(!begun.stderr.contains(ASKS_NOBODY), "{begun:?}");
    let ran = go_on(&bench, continued, &[]);
    assert!(!has_run(&bench), "{ran:?}");
    assert!(ran.stderr.contains(ASKS_NOBODY), "{ran:?}");
    if matches!(continued, Driver::Native) {
        let init: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        assert_eq!(init["permission_mode"], "default");
        let told = init["warnings"].to_string();
        assert!(told.contains(ASKS_NOBODY), "{told}");
    }
}

#[rstest]
#[case(Driver::Native, &["--permission-mode", "dontAsk"])]
#[case(Driver::Native, &["--no-permissions"])]
#[case(Driver::Claude, &["--dangerously-skip-permissions"])]
fn a_flag_of_this_run_says_otherwise(#[case] continued: Driver, #[case] flags: &[&str]) {
    let bench = Bench::new(Wire::Anthropic, script());
    make(&bench, Driver::Claude, &["--dangerously-skip-permissions"]);
    let ran = go_on(&bench, continued, flags);
    assert!(has_run(&bench), "{ran:?}");
}

#[test]
fn what_was_allowed_by_a_flag_is_not_handed_down() {
    let bench = Bench::new(Wire::Anthropic, script());
    make(&bench, Driver::Native, &["--auto-allow"]);
    go_on(&bench, Driver::Native, &[]);
    assert!(!has_run(&bench));
}

#[rstest]
#[case::settings(&[], Some(75), 77)]
#[case::flags(&["--max-turns=5", "--max-tokens=99"], Some(0), 99)]
fn a_setting_limits_turns_and_tokens_until_a_flag_does(
    #[case] flags: &[&str],
    #[case] code: Option<i32>,
    #[case] tokens: u32,
    #[values("native", "claude")] dialect: &str,
) {
    let script = Script::new([
        Reply::tool("Glob", json!({"pattern": "*"})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let config = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(
        config.join("settings.toml"),
        "max_turns = 1\nmax_tokens = 77\n",
    )
    .unwrap();
    let ran = match dialect {
        "native" => bench.run(["-p", "x"].iter().chain(flags)),
        _ => run(claude(&bench).args(flags).arg("x")),
    };
    match dialect {
        "native" => assert_eq!(ran.code, code, "{ran:?}"),
        _ => assert_eq!(ran.code == Some(0), code == Some(0), "{ran:?}"),
    }
    let asked = bench.server.model_requests();
    assert_eq!(asked[0].json()["max_tokens"], tokens);
}

#[test]
fn where_nobody_limits_them_the_defaults_hold() {
    let calls = (0..60).map(|n| Reply::tool("Glob", json!({"pattern": format!("{n}*")})));
    let script = Script::new(calls.chain([Reply::text("done")]));
    let bench = Bench::new(Wire::Anthropic, script);
    let native = bench.run(["-p", "x"]);
    assert_eq!(native.code, Some(75), "{native:?}");
    let asked = bench.server.model_requests();
    assert_eq!(asked.len(), 50);
    assert_eq!(asked[0].json()["max_tokens"], 8192);
}

#[test]
fn heddle_has_the_servers_that_are_configured() {
    let script = Script::new([
        Reply::tool("mcp__sums__add", json!({"a": 20, "b": 22})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let servers = json!({"mcpServers": {"sums": {"command": "python3", "args": [server]}}});
    let lines = [
        json!({"type": "init", "id": "1", "config": {
            "model": "anthropic/claude-sonnet-4-6",
            "system_prompt": "Be brief.",
            "tools": ["mcp__sums__add"],
        }}),
        json!({"type": "send", "id": "2", "message": "add"}),
    ];
    let servers = servers.to_string();
    let flags = ["--mcp-config", &servers, "serve", "heddle"];
    let ran = serve(bench.command().args(flags), &lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = bench.server.model_requests().pop().unwrap().json();
    assert!(asked["messages"].to_string().contains("42"), "{asked}");
}

#[test]
fn flags_of_ours_mean_the_same_in_the_other_dialect() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "hidden words").unwrap();
    let script = Script::new([
        Reply::tool("Read", json!({"file_path": secret})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let sessions = outside.path().join("sessions");
    let flags = ["--restrict-paths", "--auto-allow", "--sessions-dir"];
    let ran = run(claude(&bench).args(flags).arg(&sessions).arg("look"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = bench.server.model_requests().pop().unwrap().json();
    assert!(!asked.to_string().contains("hidden words"), "{asked}");
    assert!(sessions.read_dir().unwrap().next().is_some());
    let wrong = run(claude(&bench).args(["--provider", "nobody", "x"]));
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("nobody"), "{wrong:?}");
}
