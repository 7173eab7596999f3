//! Sessions through the built binary: continued, forked, named, locked, and never lost.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use caliban_testkit::{BlockingServer, Fault, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, bare, run};

fn sessions(bench: &Bench) -> PathBuf {
    bench.home.path().join(".local/share/caliban/sessions")
}

fn files(bench: &Bench) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(sessions(bench)) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| [".json", ".journal"].iter().any(|end| name.ends_with(end)))
        .collect();
    names.sort();
    names
}

fn result(ran: &Ran) -> Value {
    serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap_or_else(|_| panic!("{ran:?}"))
}

fn ask(bench: &Bench, args: &[&str]) -> Value {
    let ran = bench.run(["-p", "x", "--output-format", "json"].iter().chain(args));
    assert_eq!(ran.code, Some(0), "{args:?} {} {}", ran.stdout, ran.stderr);
    result(&ran)
}

fn last_request(bench: &Bench) -> String {
    bench
        .server
        .model_requests()
        .pop()
        .unwrap()
        .json()
        .to_string()
}

#[test]
fn a_named_session_is_begun_and_continued() {
    let script = Script::new([Reply::text("first answer"), Reply::text("second answer")]);
    let bench = Bench::new(Wire::Anthropic, script);
    let first = ask(&bench, &["--session", "work"]);
    assert_eq!(files(&bench), ["work.json"]);
    let saved: Value =
        serde_json::from_str(&std::fs::read_to_string(sessions(&bench).join("work.json")).unwrap())
            .unwrap();
    for field in [
        "name",
        "provider",
        "model",
        "messages",
        "total_usage",
        "created_at",
        "updated_at",
        "todos",
        "plan_mode",
    ] {
        assert!(saved.get(field).is_some(), "{field}");
    }
    assert_eq!(saved["name"], "work");
    let roles: Vec<_> = saved["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    let second = ask(&bench, &["--session", "work"]);
    assert_eq!(first["session_id"], second["session_id"]);
    assert!(last_request(&bench).contains("first answer"));
}

#[test]
fn every_run_is_a_session_that_its_id_finds() {
    let replies = (0..5).map(|number| Reply::text(format!("answer {number}")));
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    let first = ask(&bench, &[]);
    let id = first["session_id"].as_str().unwrap();
    assert_eq!(files(&bench), [format!("{id}.json")]);
    let again = ask(&bench, &["--resume", id]);
    assert_eq!(again["session_id"], id);
    assert!(last_request(&bench).contains("answer 0"));
    let latest = ask(&bench, &["-c"]);
    assert_eq!(latest["session_id"], id);
    let forked = ask(&bench, &["-r", id, "--fork-session"]);
    assert_ne!(forked["session_id"], id);
    assert!(last_request(&bench).contains("answer 2"));
    let unsaved = ask(&bench, &["-c", "--no-save"]);
    assert!(last_request(&bench).contains("answer 3"));
    assert_eq!(unsaved["subtype"], "success");
    assert_eq!(files(&bench).len(), 2);
}

#[rstest]
#[case(&["--resume", "nowhere"], 66)]
#[case(&["--resume", "no/slash"], 64)]
#[case(&["-r", ""], 64)]
#[case(&["-c"], 66)]
#[case(&["--session", "no/slash"], 64)]
#[case(&["--session", ""], 64)]
#[case(&["--session", "a", "-c"], 64)]
fn what_cannot_be_continued_is_refused(#[case] args: &[&str], #[case] code: i32) {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let ran = bench.run(["-p", "x", "--output-format", "json"].iter().chain(args));
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn a_name_is_not_the_beginning_of_an_id() {
    let script = Script::new([Reply::text("a"), Reply::text("b")]);
    let bench = Bench::new(Wire::Anthropic, script);
    let unnamed = ask(&bench, &[]);
    let id = unnamed["session_id"].as_str().unwrap();
    // Eight characters are enough to resume a session, and yet a good name for another.
    let named = ask(&bench, &["--session", &id[..8]]);
    assert_ne!(named["session_id"], id);
    assert_eq!(files(&bench).len(), 2);
    let ran = bench.run(["-p", "x", "-r", &id[..1]]);
    assert_eq!(ran.code, Some(66), "{}", ran.stderr);
}

#[test]
fn no_save_writes_nothing_and_sessions_dir_moves_it() {
    let script = Script::new([Reply::text("a"), Reply::text("b")]);
    let bench = Bench::new(Wire::Anthropic, script);
    ask(&bench, &["--no-save"]);
    assert!(files(&bench).is_empty());
    let elsewhere = tempfile::tempdir().unwrap();
    let directory = elsewhere.path().to_str().unwrap();
    ask(&bench, &["--session", "x", "--sessions-dir", directory]);
    assert!(files(&bench).is_empty());
    assert!(elsewhere.path().join("x.json").is_file());
}

#[test]
fn model_mode_tasks_and_plan_are_restored() {
    let script = Script::new([
        Reply::tool(
            "TodoWrite",
            json!({"todos": [{"id": "1", "content": "sweep", "status": "pending"}]}),
        ),
        Reply::tool("EnterPlanMode", json!({})),
        Reply::text("planned"),
        Reply::tool("Write", json!({"path": "f", "content": "x"})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let arguments = [
        "--session",
        "s",
        "--model",
        "claude-opus-4-6",
        "--permission-mode",
        "acceptEdits",
    ];
    ask(&bench, &arguments);
    let ran = bench.run([
        "-p",
        "go on",
        "--resume",
        "s",
        "--output-format",
        "stream-json",
    ]);
    let init: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(init["model"], "anthropic/claude-opus-4-6");
    assert_eq!(init["permission_mode"], "plan");
    assert_eq!(result(&ran)["denials"][0]["tool"], "Write");
    let saved = std::fs::read_to_string(sessions(&bench).join("s.json")).unwrap();
    let saved: Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(saved["todos"][0]["content"], "sweep");
    assert_eq!(saved["mode"], "acceptEdits");
}

#[test]
fn a_session_goes_on_with_another_provider() {
    let script = Script::new([
        Reply::tool("Read", json!({"path": "missing"})).thinking("hm"),
        Reply::text("from anthropic"),
    ]);
    let first = Bench::new(Wire::Anthropic, script);
    ask(&first, &["--session", "s"]);
    for wire in [Wire::Responses, Wire::Chat, Wire::Gemini, Wire::Ollama] {
        let other = Bench::new(wire, Script::new([Reply::text("from another")]));
        let directory = sessions(&first);
        let ran = other.run([
            "-p",
            "x",
            "--output-format",
            "json",
            "--sessions-dir",
            directory.to_str().unwrap(),
            "--resume",
            "s",
        ]);
        assert_eq!(ran.code, Some(0), "{wire:?} {} {}", ran.stdout, ran.stderr);
        assert!(last_request(&other).contains("from anthropic"), "{wire:?}");
    }
}

#[test]
fn a_session_has_one_writer() {
    let script = Script::new([
        Reply::text("never ever").with_fault(Fault::StallMidStream { after_events: 3 }),
        Reply::text("second"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut first = bench
        .command()
        .args([
            "-p",
            "x",
            "--session",
            "s",
            "--output-format",
            "stream-json",
        ])
        .arg("--include-partial-messages")
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    lines.next().unwrap().unwrap();
    let second = bench.run(["-p", "y", "--session", "s"]);
    assert_eq!(second.code, Some(75), "{}", second.stderr);
    assert!(
        second.stderr.contains(&first.id().to_string()),
        "{}",
        second.stderr
    );
    let fork = bench.run(["-p", "y", "--session", "s", "--fork-session"]);
    assert_eq!(fork.code, Some(0), "{}", fork.stderr);
    first.kill().unwrap();
    first.wait().unwrap();
    // The dead hold nothing.
    assert!(bench.run(["sessions", "rm", "s"]).code == Some(0));
}

#[test]
fn a_killed_run_loses_nothing_and_repeats_nothing() {
    // The command runs for ever; the process is killed while it does.
    let script = Script::new([
        Reply::tool("Write", json!({"path": "a", "content": "1"})),
        Reply::tool(
            "Bash",
            json!({"command": "echo started > marker; sleep 600"}),
        ),
        Reply::text("recovered"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut child = bench
        .command()
        .args(["-p", "begin", "--session", "s", "--no-permissions"])
        .args(["--output-format", "stream-json"])
        .spawn()
        .unwrap();
    let marker = bench.workspace.path().join("marker");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines {
        if line.unwrap().contains("sleep 600") {
            break;
        }
    }
    while !marker.exists() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(files(&bench).contains(&"s.journal".to_owned()));
    let ran = bench.run(["-p", "go on", "--resume", "s", "--output-format", "json"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    let request = last_request(&bench);
    assert!(request.contains("begin") && request.contains("go on"));
    assert!(request.contains("unknown"), "{request}");
    assert_eq!(bench.server.model_requests().len(), 3);
}

#[test]
fn what_a_killed_sub_agent_did_is_not_claimed_to_be_nothing() {
    let script = Script::new([
        Reply::tool("AgentTool", json!({"prompt": "make the file"})),
        Reply::tool(
            "Bash",
            json!({"command": "echo started > marker; sleep 600"}),
        ),
        Reply::text("recovered"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut child = bench
        .command()
        .args(["-p", "begin", "--session", "s", "--no-permissions"])
        .args(["--output-format", "stream-json"])
        .spawn()
        .unwrap();
    let marker = bench.workspace.path().join("marker");
    while !marker.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What the sub-agent is about to do is on disk like everything else.
    let journal = std::fs::read_to_string(sessions(&bench).join("s.journal")).unwrap();
    let intents: Vec<&str> = journal
        .lines()
        .filter(|line| line.contains("tool_intent"))
        .collect();
    assert_eq!(intents.len(), 2, "{journal}");
    assert!(intents[1].contains("Bash"), "{journal}");
    let ran = bench.run(["-p", "go on", "--resume", "s", "--output-format", "json"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    let request = last_request(&bench);
    assert!(request.contains("Its outcome is unknown"), "{request}");
    assert!(!request.contains("it changed nothing"), "{request}");
    // The parent's result tells of it; it is no call that nobody made.
    assert!(!ran.stderr.contains("Bash"), "{}", ran.stderr);
}

#[test]
fn a_disk_that_cannot_be_written_is_told_and_the_run_goes_on() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("a"), Reply::text("b")]),
    );
    let blocked = bench.workspace.path().join("file");
    std::fs::write(&blocked, "in the way").unwrap();
    let directory = blocked.join("sessions");
    let directory = directory.to_str().unwrap();
    let ran = bench.run([
        "-p",
        "x",
        "--output-format",
        "stream-json",
        "--sessions-dir",
        directory,
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("this run is not saved"),
        "{}",
        ran.stdout
    );
    let named = bench.run(["-p", "x", "--session", "s", "--sessions-dir", directory]);
    assert_eq!(named.code, Some(1), "{}", named.stderr);
}

/// The limit of a file's size is a signal that ends who does not expect it.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_may_not_grow_is_told_and_the_run_goes_on() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("x".repeat(4_000))]),
    );
    let program = bench.command();
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args())
        .args(["-p", "x", "--output-format", "json"])
        .env_clear()
        .envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(program.get_current_dir().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(result(&ran)["subtype"], "success");
    assert!(
        ran.stderr.contains("could not be written"),
        "{}",
        ran.stderr
    );
}

#[test]
fn sessions_are_listed_shown_exported_and_removed() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("the answer"), Reply::text("b")]),
    );
    ask(&bench, &["--session", "one"]);
    ask(&bench, &["--session", "two"]);
    let command = |args: &[&str]| {
        run(bare(bench.home.path(), bench.workspace.path())
            .arg("sessions")
            .args(args))
    };
    let listed = command(&["list"]).stdout;
    let names: Vec<_> = listed
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(names, ["two", "one"]);
    let json: Value = serde_json::from_str(&command(&["list", "on", "--json"]).stdout).unwrap();
    assert!(json[0]["total_cost_usd"].is_f64(), "{json}");
    assert_eq!(json[0]["name"], "one");
    assert!(command(&["show", "one"]).stdout.contains("the answer"));
    let exported = command(&["export", "one", "--format", "json"]).stdout;
    let exported: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(exported["messages"].as_array().unwrap().len(), 3);
    assert_eq!(command(&["rm", "one"]).code, Some(0));
    assert_eq!(command(&["show", "one"]).code, Some(66));
    assert_eq!(
        command(&["prune", "--days", "0"]).stdout,
        "nothing to remove\n"
    );
    assert_eq!(files(&bench), ["two.json"]);
}

/// The model server outlives many runs of the same session, each killed at another moment.
#[test]
fn kills_at_any_moment_leave_a_session_that_goes_on() {
    let runs: u64 = std::env::var("CALIBAN_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(12);
    let script =
        Script::new([Reply::tool("Bash", json!({"command": "echo line >> log"})).times(1_000_000)]);
    let bench = Bench::new(Wire::Anthropic, script);
    for round in 0..runs {
        let mut child = bench
            .command()
            .args(["-p", &format!("round {round}"), "--session", "s"])
            .args([
                "--no-permissions",
                "--output-format",
                "stream-json",
                "--max-turns",
                "50",
            ])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Each round gets a little further before it dies.
        for _ in 0..(round * 7 % 23) {
            if lines.next().is_none() {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let server = BlockingServer::start(Script::new([Reply::text("alive")])).unwrap();
    let ran = run(bench
        .command()
        .env("ANTHROPIC_BASE_URL", server.url())
        .args(["-p", "last", "--session", "s", "--output-format", "json"]));
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    let request = server.model_requests().pop().unwrap().json().to_string();
    assert!(request.contains("last"));
    // Every effect is accounted for: no more lines than calls that the history knows of.
    let log = std::fs::read_to_string(bench.workspace.path().join("log")).unwrap_or_default();
    let calls = request.matches("echo line >> log").count();
    assert!(
        log.lines().count() <= calls,
        "{} > {calls}",
        log.lines().count()
    );
}

#[rstest]
#[case::print(&["-p", "hello"])]
#[case::frames(&["--input-format", "stream-json", "--output-format", "stream-json", "-p"])]
fn a_copy_of_no_session_is_refused(#[case] args: &[&str]) {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let ran = bench.run(args.iter().chain(&["--fork-session"]));
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains("`-r NAME`"), "{}", ran.stderr);
}
