//! The tools through the built binary: what the model asks for happens, and what it is told is
//! true.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use caliban_testkit::{After, BlockingServer, Match, ModelEntry, Reply, Script, Usage};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, run};

/// A script that makes these calls, one per turn, and then says it is done.
fn one_by_one(calls: Vec<(&str, Value)>) -> Script {
    let turns = calls
        .into_iter()
        .map(|(name, input)| Reply::tool(name, input));
    Script::new(turns.chain([Reply::text("done")]))
}

/// The tool results of the last request, as text, whatever the wire format.
fn told(bench: &Bench) -> Vec<String> {
    let body = bench.server.model_requests().pop().unwrap().json();
    let mut found = Vec::new();
    collect(bench.wire, &body, &mut found);
    found
}

fn collect(wire: Wire, value: &Value, found: &mut Vec<String>) {
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        other => other.to_string(),
    };
    let items = |key: &str| value[key].as_array().cloned().unwrap_or_default();
    match wire {
        Wire::Anthropic => {
            for message in items("messages") {
                for block in message["content"].as_array().cloned().unwrap_or_default() {
                    if block["type"] == "tool_result" {
                        found.push(text(&block["content"]));
                    }
                }
            }
        }
        Wire::Responses => {
            for item in items("input") {
                if item["type"] == "function_call_output" {
                    found.push(text(&item["output"]));
                }
            }
        }
        Wire::Chat | Wire::Ollama => {
            for message in items("messages") {
                if message["role"] == "tool" {
                    found.push(text(&message["content"]));
                }
            }
        }
        Wire::Gemini => {
            for content in items("contents") {
                for part in content["parts"].as_array().cloned().unwrap_or_default() {
                    if let Some(response) = part.get("functionResponse") {
                        let response = &response["response"];
                        let result = response.get("output").or(response.get("error")).unwrap();
                        found.push(text(result));
                    }
                }
            }
        }
    }
}

fn work(bench: &Bench) -> Ran {
    bench.run(["-p", "go", "--auto-allow", "--quiet"])
}

fn file(bench: &Bench, name: &str) -> String {
    std::fs::read_to_string(bench.workspace.path().join(name)).unwrap()
}

#[rstest]
fn the_whole_tool_set_works_on_every_provider(
    #[values(
        Wire::Anthropic,
        Wire::Responses,
        Wire::Chat,
        Wire::Gemini,
        Wire::Ollama
    )]
    wire: Wire,
) {
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "code", "id": "c1", "metadata": {}, "outputs": [], "execution_count": null, "source": ["1 + 1"]}
    ]});
    let bench = Bench::new(
        wire,
        one_by_one(vec![
            (
                "Write",
                json!({"path": "src/a.txt", "content": "one\ntwo\nthree\n"}),
            ),
            (
                "Read",
                json!({"path": "src/a.txt", "offset": 2, "limit": 1}),
            ),
            (
                "Edit",
                json!({"path": "src/a.txt", "old_string": "two", "new_string": "TWO"}),
            ),
            (
                "MultiEdit",
                json!({"path": "src/a.txt", "edits": [
                    {"old_string": "one", "new_string": "ONE"},
                    {"old_string": "three", "new_string": "THREE"},
                ]}),
            ),
            (
                "Write",
                json!({"path": "n.ipynb", "content": notebook.to_string()}),
            ),
            (
                "NotebookEdit",
                json!({"path": "n.ipynb", "cell_id": "c1", "new_source": "2 + 2"}),
            ),
            ("Glob", json!({"pattern": "**/*.txt"})),
            ("Grep", json!({"pattern": "THR"})),
            (
                "Bash",
                json!({"command": "cat src/a.txt; echo problem >&2; exit 3"}),
            ),
            (
                "Bash",
                json!({"command": "echo started; sleep 100", "background": true}),
            ),
            ("BashOutput", json!({"id": "bash_1"})),
            ("KillShell", json!({"id": "bash_1"})),
            (
                "TodoWrite",
                json!({"todos": [{"id": "1", "content": "test", "status": "in_progress"}]}),
            ),
            ("EnterPlanMode", json!({})),
            ("Write", json!({"path": "forbidden.txt", "content": "x"})),
            ("ExitPlanMode", json!({"plan": "done"})),
            (
                "WebFetch",
                json!({"url": "http://169.254.169.254/latest/meta-data"}),
            ),
            ("WebSearch", json!({"query": "x"})),
            ("Nothing", json!({})),
            ("Read", json!({"path": "src/a.txt", "lines": 3})),
            ("Read", json!({"offset": "two"})),
        ]),
    );
    let ran = work(&bench);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(file(&bench, "src/a.txt"), "ONE\nTWO\nTHREE\n");
    assert!(file(&bench, "n.ipynb").contains("2 + 2"));
    assert!(!bench.workspace.path().join("forbidden.txt").exists());
    let told = told(&bench);
    assert_eq!(told.len(), 21);
    let says = |index: usize, parts: &[&str]| {
        for part in parts {
            assert!(
                told[index].contains(part),
                "{index}: {part:?} not in {}",
                told[index]
            );
        }
    };
    says(1, &["2\ttwo"]);
    says(6, &["src/a.txt"]);
    says(7, &["src/a.txt:3:THREE"]);
    says(8, &["ONE\nTWO\nTHREE\nproblem\n", "[exit 3"]);
    says(9, &["bash_1"]);
    says(11, &["bash_1"]);
    says(12, &["test"]);
    says(14, &["not permitted", "plan mode"]);
    says(16, &["169.254.169.254", "link-local"]);
    says(17, &["BRAVE_API_KEY"]);
    says(18, &["no tool named `Nothing`"]);
    says(19, &["`lines`", "`path`"]);
    says(20, &["`offset`", "\"path\" is a required property"]);
}

#[test]
fn calls_of_one_turn_run_at_the_same_time() {
    // Each waits for the other: one after the other they would never end.
    let wait = |mine: &str, other: &str| json!({"command": format!("touch {mine}; while [ ! -e {other} ]; do sleep 0.01; done; echo met"), "timeout_seconds": 20});
    let script = || {
        Script::new([
            Reply::tools([("Bash", wait("a", "b")), ("Bash", wait("b", "a"))]),
            Reply::text("done"),
        ])
    };
    let bench = Bench::new(Wire::Anthropic, script());
    let ran = bench.run(["-p", "go", "--auto-allow", "--parallel-tool-limit", "2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        told(&bench)
            .iter()
            .filter(|text| text.starts_with("met\n"))
            .count(),
        2
    );
}

#[test]
fn serial_execution_can_be_asked_for() {
    let overlap = json!({"command": "mkdir lock && sleep 0.2 && rmdir lock"});
    let calls = (0..3).map(|_| ("Bash", overlap.clone()));
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::tools(calls), Reply::text("done")]),
    );
    let ran = bench.run(["-p", "go", "--auto-allow", "--no-parallel-tools"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&bench);
    assert!(told.iter().all(|text| text.contains("[exit 0")), "{told:?}");
}

#[test]
fn edits_of_one_file_in_one_turn_land_in_order() {
    let edit = |old: &str, new: &str| {
        (
            "Edit",
            json!({"path": "f", "old_string": old, "new_string": new}),
        )
    };
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tools([edit("a", "b"), edit("b", "c"), edit("c", "d")]),
            Reply::text("done"),
        ]),
    );
    std::fs::write(bench.workspace.path().join("f"), "a").unwrap();
    let ran = bench.run(["-p", "go", "--auto-allow", "--parallel-tool-limit", "8"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(file(&bench, "f"), "d");
}

#[test]
fn what_needs_consent_is_refused_unless_it_is_given() {
    let script = || one_by_one(vec![("Bash", json!({"command": "touch made"}))]);
    let bench = Bench::new(Wire::Anthropic, script());
    let ran = bench.run(["-p", "go"]);
    assert_eq!(ran.code, Some(0));
    assert!(!bench.workspace.path().join("made").exists());
    assert!(
        told(&bench)[0].contains("not permitted"),
        "{:?}",
        told(&bench)
    );
    assert!(
        told(&bench)[0].contains("--auto-allow"),
        "{:?}",
        told(&bench)
    );
    assert!(!ran.stderr.contains("Running"), "{}", ran.stderr);

    let bench = Bench::new(Wire::Anthropic, script());
    let ran = run(bench
        .command()
        .args(["-p", "go", "--quiet"])
        .env("CALIBAN_AUTO_ALLOW", "1"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("Running"), "{}", ran.stderr);
    assert!(bench.workspace.path().join("made").exists());
}

#[test]
fn paths_can_be_restricted_to_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "classified").unwrap();
    let target = outside.path().join("new.txt");
    let calls = || {
        vec![
            ("Read", json!({"path": secret})),
            ("Read", json!({"path": "link/secret.txt"})),
            ("Write", json!({"path": target, "content": "x"})),
            (
                "Grep",
                json!({"pattern": "classified", "path": outside.path()}),
            ),
            ("Bash", json!({"command": "true", "cwd": outside.path()})),
        ]
    };
    let go = |flags: &[&str]| {
        let bench = Bench::new(Wire::Anthropic, one_by_one(calls()));
        std::os::unix::fs::symlink(outside.path(), bench.workspace.path().join("link")).unwrap();
        let ran = bench.run([&["-p", "go", "--auto-allow"], flags].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        told(&bench)
    };
    let refused = go(&["--restrict-paths"]);
    assert!(
        refused.iter().all(|text| text.contains("outside")),
        "{refused:?}"
    );
    assert!(!target.exists());
    let open = go(&[]);
    assert!(
        open[0].contains("classified") && open[1].contains("classified"),
        "{open:?}"
    );
    assert!(target.exists());
}

#[test]
fn the_workspace_can_be_named() {
    let bench = Bench::new(
        Wire::Anthropic,
        one_by_one(vec![("Bash", json!({"command": "pwd"}))]),
    );
    let other = tempfile::tempdir().unwrap();
    let place = other.path().canonicalize().unwrap();
    let ran = bench.run([
        "-p",
        "go",
        "--auto-allow",
        "--workspace",
        place.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(told(&bench)[0].starts_with(place.to_str().unwrap()));
    let missing = bench.run(["-p", "go", "--workspace", "/nonexistent"]);
    assert_eq!(missing.code, Some(78), "{}", missing.stderr);
}

#[test]
fn commands_see_neither_keys_nor_our_stdin() {
    let bench = Bench::new(
        Wire::Anthropic,
        one_by_one(vec![("Bash", json!({"command": "env; cat; echo end"}))]),
    );
    let ran = run(bench
        .command()
        .args(["-p", "go", "--auto-allow"])
        .env("OPENAI_API_KEY", "sk-very-secret-value")
        .env("GITHUB_TOKEN", "ghp-very-secret-value")
        .env("HARMLESS", "kept"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&bench).remove(0);
    assert!(
        !told.contains("test-key") && !told.contains("very-secret-value"),
        "{told}"
    );
    assert!(
        told.contains("HARMLESS=kept") && told.contains("end\n"),
        "{told}"
    );
}

#[test]
fn a_long_result_is_cut_and_the_whole_is_kept_for_paging() {
    let bench = Bench::new(
        Wire::Anthropic,
        one_by_one(vec![("Bash", json!({"command": "seq 1 30000"}))]),
    );
    assert_eq!(work(&bench).code, Some(0));
    let told = told(&bench).remove(0);
    assert!(
        told.starts_with("1\n2\n") && told.contains("30000\n"),
        "ends are kept"
    );
    assert!(told.chars().count() < 51_000);
    let path = told.split('`').nth(1).unwrap();
    let whole = std::fs::read_to_string(path).unwrap();
    assert!(whole.contains("\n15000\n"));
    assert!(Path::new(path).starts_with(bench.home.path().join(".cache/caliban/tool-overflows")));

    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn endless_output_costs_little_memory() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool(
                "Bash",
                json!({"command": "head -c 2000000000 /dev/zero | tr '\\0' 'x'"}),
            ),
            Reply::text("done").delay_ms(60_000),
        ]),
    );
    let mut child = bench
        .command()
        .args(["-p", "go", "--auto-allow"])
        .spawn()
        .unwrap();
    bench.server.wait_for_requests(2);
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let kilobytes = |name: &str| -> u64 {
        let mut lines = status.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)).unwrap();
        value.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    };
    // The pages of a program that is built for tests are no cost of its output.
    let peak = kilobytes("VmHWM:") - kilobytes("RssFile:");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(peak < 40_000, "{peak} kB");
    assert!(told(&bench)[0].contains("[exit 0"));
}

#[test]
fn strange_files_neither_hang_nor_flood() {
    let bench = Bench::new(
        Wire::Anthropic,
        one_by_one(vec![
            ("Read", json!({"path": "fifo"})),
            ("Read", json!({"path": "/dev/zero"})),
            ("Grep", json!({"pattern": "x"})),
            ("Glob", json!({"pattern": "**/*"})),
            ("Read", json!({"path": "long"})),
            ("Read", json!({"path": "long", "limit": 1})),
        ]),
    );
    let place = bench.workspace.path();
    std::fs::create_dir(place.join("dir")).unwrap();
    std::os::unix::fs::symlink("..", place.join("dir/up")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(place.join("fifo"))
        .status();
    assert!(made.unwrap().success());
    std::fs::write(place.join("long"), "y".repeat(100_000_000)).unwrap();
    let ran = work(&bench);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&bench);
    assert!(told.iter().all(|text| text.len() < 60_000));
    assert!(
        told[4].contains("MB") || told[4].contains("large"),
        "{}",
        told[4]
    );
    assert!(told[5].contains("more characters"), "{}", told[5]);
}

#[test]
fn a_sub_agent_works_in_its_own_context_behind_the_same_gate() {
    let task = "Find the answer in notes.txt.";
    let script = || {
        Script::new([
            Reply::tool("AgentTool", json!({"prompt": task})).when(Match::last_user("go")),
            Reply::tools([
                ("Read", json!({"path": "notes.txt"})),
                ("Bash", json!({"command": "touch made"})),
            ])
            .when(Match::last_user(task)),
            Reply::text("The answer is 42.").when(Match::last_user(task)),
            Reply::text("It says 42.").when(Match::last_user("go")),
        ])
    };
    let bench = Bench::new(Wire::Anthropic, script());
    std::fs::write(bench.workspace.path().join("notes.txt"), "42").unwrap();
    let ran = bench.run(["-p", "go"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "It says 42.\n"),
        "{}",
        ran.stderr
    );
    assert!(!bench.workspace.path().join("made").exists());
    assert!(
        ran.stderr.contains("\n  Running Read: notes.txt\n"),
        "{}",
        ran.stderr
    );
    let requests = bench.server.model_requests();
    assert_eq!(requests.len(), 4);
    let names = |index: usize| -> Vec<String> {
        let body = requests[index].json();
        let tools = body["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(names(0).contains(&"AgentTool".to_owned()));
    assert!(!names(1).contains(&"AgentTool".to_owned()));
    assert_eq!(requests[1].json()["messages"].as_array().unwrap().len(), 1);
    assert_eq!(told(&bench), ["The answer is 42."]);
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    bench.run(["-p", "go", "--no-sub-agent"]);
    let body = String::from_utf8(bench.server.model_requests()[0].body.to_vec()).unwrap();
    assert!(!body.contains("AgentTool"));
}

#[test]
fn a_full_window_is_condensed_and_the_work_goes_on() {
    let half = Usage {
        input: 2_600,
        output: 100,
        ..Usage::default()
    };
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "seq 1 4000"})).usage(half),
        Reply::text("They wanted to go.").when(Match::any_text("You condense")),
        Reply::text("done"),
    ])
    .model(ModelEntry::new("llama3.1").context_length(8_192));
    let bench = Bench::new(Wire::Ollama, script);
    let ran = work(&bench);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("condensed"), "{}", ran.stderr);
    let last = bench.server.model_requests().pop().unwrap();
    let body = String::from_utf8(last.body.to_vec()).unwrap();
    assert!(body.contains("They wanted to go."), "{body}");
}

#[rstest]
#[case(&["--max-turns", "2"], 75)]
#[case(&["--max-budget-usd", "0.0000001"], 137)]
fn limits_end_the_run_with_their_codes(#[case] flags: &[&str], #[case] code: i32) {
    let calls = (0..5).map(|n| ("Bash", json!({"command": format!("echo {n}")})));
    let bench = Bench::new(Wire::Anthropic, one_by_one(calls.collect()));
    let ran = bench.run([&["-p", "go", "--auto-allow"], flags].concat());
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert!(bench.server.model_requests().len() <= 2);
}

#[test]
fn unknown_prices_are_said_once_and_can_be_given() {
    let costly = Usage {
        input: 1_000_000,
        output: 1,
        ..Usage::default()
    };
    let script = || Script::new([Reply::text("ok").usage(costly)]);
    let go = |rates: Option<&str>| {
        let bench = Bench::new(Wire::Chat, script());
        let mut command = bench.command();
        command.args([
            "-p",
            "go",
            "--model",
            "house-model",
            "--max-budget-usd",
            "1",
        ]);
        if let Some(rates) = rates {
            let path = bench.home.path().join("rates.yaml");
            std::fs::write(&path, rates).unwrap();
            command.env("CALIBAN_RATES_YAML", path);
        }
        run(&mut command)
    };
    let unknown = go(None);
    assert_eq!(unknown.code, Some(0), "{}", unknown.stderr);
    assert_eq!(
        unknown
            .stderr
            .matches("price of openai/house-model")
            .count(),
        1
    );
    let known = go(Some("openai: {house-model: {input: 2, output: 2}}"));
    assert_eq!(known.code, Some(137), "{}", known.stderr);
    let broken = go(Some("openai: 3: 4"));
    assert_eq!(broken.code, Some(78), "{}", broken.stderr);
    assert!(broken.stderr.contains("rates.yaml"), "{}", broken.stderr);
}

#[test]
fn the_results_of_an_earlier_session_are_capped_too() {
    let command = "head -c 200000 /dev/zero | tr '\\0' a";
    let script = one_by_one(vec![("Bash", json!({ "command": command }))]);
    let bench = Bench::new(Wire::Anthropic, script.after(After::RepeatLast));
    let result_length = |settings: &str| {
        let args = ["-p", "go", "--auto-allow", "--session", "s", "--settings"];
        let ran = bench.run(args.into_iter().chain([settings]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        told(&bench)[0].len()
    };
    let uncapped = result_length(r#"{"tool_result_cap_chars": 0}"#);
    assert!(uncapped > 200_000);
    let capped = result_length(r#"{"tool_result_cap_chars": 1000}"#);
    assert!((900..2_000).contains(&capped), "{capped}");
}

#[rstest]
#[case(json!({"prompt": "sub", "isolation": "worktree"}), "not in a git repository")]
#[case(json!({"prompt": "sub", "background": true, "isolation": "worktree"}), "not in a git repository")]
fn what_a_sub_agent_cannot_have_is_said(#[case] input: Value, #[case] word: &str) {
    let bench = Bench::new(Wire::Anthropic, one_by_one(vec![("AgentTool", input)]));
    work(&bench);
    let told = told(&bench);
    assert!(told[0].contains(word), "{told:?}");
    // It never works in the directory of its parent instead.
    assert_eq!(bench.server.model_requests().len(), 2);
}

#[test]
fn the_first_request_is_small() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    let ran = bench.run(["-p", "hi"]);
    assert_eq!(ran.code, Some(0));
    let size = bench.server.model_requests()[0].body.len();
    // Prompt, sixteen tools and a short message. Raise this only on purpose.
    assert!((8_000..13_300).contains(&size), "{size} bytes");
}

#[test]
fn pages_of_this_machine_are_read_where_everything_is_allowed() {
    let page = BlockingServer::start(Script::new([])).unwrap();
    let url = format!("{}/healthz", page.url());
    let bench = Bench::new(
        Wire::Anthropic,
        one_by_one(vec![("WebFetch", json!({"url": url}))]),
    );
    let ran = work(&bench);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(told(&bench)[0].contains("200"), "{:?}", told(&bench));
    assert_eq!(page.requests().len(), 1);
}

/// Approves every fetch one by one.
const APPROVING: &str = r#"
[[hooks.PreToolUse]]
matcher = "WebFetch"
[[hooks.PreToolUse.handlers]]
type = "command"
command = '''echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}' '''
"#;

/// Whoever types `--allow WebFetch` means this run, and who approves a call has seen its address; a
/// rule of a file was written for the web.
#[rstest]
#[case::flag(&["--allow", "WebFetch"], "", 1)]
#[case::named(&["--allow", "WebFetch:http://127.0.0.1:*/*"], "", 1)]
#[case::file(&[], "[permissions]\nallow = ['WebFetch']\n", 0)]
#[case::flag_for_all(&["--allow", "*"], "", 1)]
#[case::approved(&[], APPROVING, 1)]
fn pages_of_this_machine_are_read_where_the_run_was_allowed_to_fetch(
    #[case] args: &[&str],
    #[case] settings: &str,
    #[case] fetched: usize,
) {
    let page = BlockingServer::start(Script::new([])).unwrap();
    let url = format!("{}/healthz", page.url());
    let bench = Bench::new(
        Wire::Anthropic,
        one_by_one(vec![("WebFetch", json!({"url": url}))]),
    );
    support::homes::user(&bench, settings);
    let ran = bench.run(["-p", "go"].iter().chain(args));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(page.requests().len(), fetched, "{:?}", told(&bench));
    if fetched == 0 {
        let remedy = format!("--allow 'WebFetch:{}/*'", page.url());
        assert!(told(&bench)[0].contains(&remedy), "{:?}", told(&bench));
    }
}

#[test]
fn a_kind_of_note_that_there_is_not_is_answered_with_those_there_are() {
    let note = json!({"name": "n", "description": "d", "type": "diary", "body": "b"});
    let bench = Bench::new(
        Wire::Anthropic,
        one_by_one(vec![("WriteMemoryTopic", note)]),
    );
    work(&bench);
    let told = &told(&bench)[0];
    for kind in ["user", "feedback", "project", "reference"] {
        assert!(told.contains(&format!("\"{kind}\"")), "{told}");
    }
}
