//! What prompts change through the built binary, and how it comes back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
#![cfg(unix)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, run};

fn bench(prompts: &[&[(&str, Value)]]) -> Bench {
    let mut replies = Vec::new();
    for calls in prompts {
        replies.extend(
            calls
                .iter()
                .map(|(name, input)| Reply::tool(*name, input.clone())),
        );
        replies.push(Reply::text("done"));
    }
    Bench::new(Wire::Anthropic, Script::new(replies))
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command }))
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("Write", json!({ "file_path": path, "content": content }))
}

fn prompt(bench: &Bench, more: &[&str]) -> Ran {
    let ran = bench.run(
        ["-p", "go on", "--session", "s", "--no-permissions"]
            .iter()
            .chain(more),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn rewind(bench: &Bench, args: &[&str]) -> Ran {
    bench.run(["rewind"].iter().chain(args))
}

fn file(bench: &Bench, path: &str) -> PathBuf {
    bench.workspace.path().join(path)
}

fn text(bench: &Bench, path: &str) -> Option<String> {
    fs::read_to_string(file(bench, path)).ok()
}

#[test]
fn what_tools_and_commands_changed_comes_back() {
    let bench = bench(&[
        &[
            write("made/new.txt", "one"),
            bash("echo two >> old.txt; rm gone.txt; mkdir -p d/e; mv moved.txt d/e/"),
        ],
        &[bash("sed -i s/zero/ZERO/ old.txt")],
    ]);
    fs::write(file(&bench, "old.txt"), "zero\n").unwrap();
    fs::write(file(&bench, "gone.txt"), "gone\n").unwrap();
    fs::write(file(&bench, "moved.txt"), "moved\n").unwrap();
    prompt(&bench, &[]);
    assert_eq!(text(&bench, "old.txt").unwrap(), "zero\ntwo\n");
    prompt(&bench, &[]);
    assert_eq!(text(&bench, "old.txt").unwrap(), "ZERO\ntwo\n");

    let listed = rewind(&bench, &["--list"]);
    assert!(
        listed.stdout.contains("   2  ") && listed.stdout.contains("go on"),
        "{listed:?}"
    );
    let shown = rewind(&bench, &["--to", "1", "--dry-run"]);
    assert!(shown.stdout.contains("-ZERO\n+zero\n"), "{shown:?}");
    assert_eq!(text(&bench, "old.txt").unwrap(), "ZERO\ntwo\n");

    assert_eq!(rewind(&bench, &["--to", "1"]).code, Some(0));
    assert_eq!(text(&bench, "old.txt").unwrap(), "zero\ntwo\n");
    let back = rewind(&bench, &["--to", "0", "--session", "s", "--code"]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(text(&bench, "old.txt").unwrap(), "zero\n");
    assert_eq!(text(&bench, "gone.txt").unwrap(), "gone\n");
    assert_eq!(text(&bench, "moved.txt").unwrap(), "moved\n");
    assert!(!file(&bench, "made").exists() && !file(&bench, "d").exists());

    assert_eq!(rewind(&bench, &["--to", "2"]).code, Some(0));
    assert_eq!(text(&bench, "old.txt").unwrap(), "ZERO\ntwo\n");
    assert_eq!(text(&bench, "made/new.txt").unwrap(), "one");
}

#[test]
fn what_others_changed_since_needs_force() {
    let bench = bench(&[&[write("a.txt", "one")]]);
    prompt(&bench, &[]);
    fs::write(file(&bench, "a.txt"), "mine").unwrap();
    let spared = rewind(&bench, &["--to", "0"]);
    assert_eq!(spared.code, Some(1), "{spared:?}");
    assert!(
        spared
            .stdout
            .contains("left alone a.txt: it was changed since"),
        "{spared:?}"
    );
    assert_eq!(text(&bench, "a.txt").unwrap(), "mine");
    assert_eq!(rewind(&bench, &["--to", "0", "--force"]).code, Some(0));
    assert_eq!(text(&bench, "a.txt"), None);
    assert_eq!(rewind(&bench, &["--to", "1"]).code, Some(0));
    assert_eq!(text(&bench, "a.txt").unwrap(), "mine");
    assert_eq!(rewind(&bench, &["--to", "9"]).code, Some(66));
}

/// A run with hooks that tidy up what was written.
fn with_hook(bench: &Bench, event: &str, matcher: &str, command: &str) {
    let path = bench.home.path().join(".config/caliban/settings.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!("[[hooks.{event}]]\n{matcher}type = \"command\"\ncommand = '{command}'\n");
    fs::write(path, text).unwrap();
}

#[test]
fn what_a_hook_makes_of_a_change_is_taken_back_with_it() {
    for (event, matcher) in [
        ("PostToolUse", "matcher = \"Write\"\n"),
        ("PostToolUse", "matcher = \"Bash\"\n"),
        ("Stop", ""),
    ] {
        let bench = bench(&[&[write("a.txt", "one\n"), bash("echo two >> a.txt")]]);
        fs::write(file(&bench, "a.txt"), "zero\n").unwrap();
        with_hook(&bench, event, matcher, "echo tidied >> a.txt");
        prompt(&bench, &[]);
        assert!(text(&bench, "a.txt").unwrap().contains("tidied"), "{event}");
        let back = rewind(&bench, &["--to", "0"]);
        assert_eq!(back.code, Some(0), "{event} {matcher}: {back:?}");
        assert_eq!(text(&bench, "a.txt").unwrap(), "zero\n", "{event}");
    }
}

#[test]
fn what_a_person_changed_is_spared_although_a_hook_runs_at_the_end() {
    let change = "echo one > a.txt; echo mine > a.txt";
    let bench = bench(&[&[write("a.txt", "one\n"), bash("true")]]);
    fs::write(file(&bench, "a.txt"), "zero\n").unwrap();
    with_hook(&bench, "Stop", "", "true");
    prompt(&bench, &[]);
    fs::write(file(&bench, "a.txt"), change).unwrap();
    assert_eq!(rewind(&bench, &["--to", "0"]).code, Some(1));
    assert_eq!(text(&bench, "a.txt").unwrap(), change);
}

/// A run that is talked to, prompt by prompt.
struct Talk(std::process::Child, BufReader<std::process::ChildStdout>);

impl Talk {
    fn start(bench: &Bench) -> Self {
        let mut command = bench.command();
        command.args(["-p", "--session", "s", "--no-permissions"]);
        command.args([
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self(child, output)
    }

    /// Says something and waits for the result.
    fn say(&mut self, text: &str) -> Value {
        let frame = json!({"type": "user", "content": text});
        writeln!(self.0.stdin.as_mut().unwrap(), "{frame}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.1.read_line(&mut line).unwrap(), 0, "it ended");
            let frame: Value = serde_json::from_str(&line).unwrap();
            if frame["type"] == "result" {
                return frame;
            }
        }
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

/// A command that goes on in the background until a file of this name is there.
fn job(until: &str, then: &str) -> (&'static str, Value) {
    let line = format!("until [ -e {until} ]; do sleep 0.05; done; {then}");
    ("Bash", json!({"command": line, "run_in_background": true}))
}

fn wait_for(bench: &Bench, path: &str, content: &str) {
    let begun = Instant::now();
    while text(bench, path).as_deref() != Some(content) {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{path} never came"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_goes_on_in_the_background_is_kept_after_its_prompt_too() {
    let bench = bench(&[
        &[
            job(".go", "echo late >> a.txt"),
            job(".later", "echo last >> b.txt"),
        ],
        &[],
    ]);
    fs::write(file(&bench, "a.txt"), "zero\n").unwrap();
    fs::write(file(&bench, "b.txt"), "zero\n").unwrap();
    let mut talk = Talk::start(&bench);
    talk.say("begin");
    fs::write(file(&bench, ".go"), "").unwrap();
    wait_for(&bench, "a.txt", "zero\nlate\n");
    talk.say("nothing to do");
    fs::write(file(&bench, ".later"), "").unwrap();
    wait_for(&bench, "b.txt", "zero\nlast\n");
    talk.end();
    let back = rewind(&bench, &["--to", "0"]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(text(&bench, "a.txt").unwrap(), "zero\n");
    assert_eq!(text(&bench, "b.txt").unwrap(), "zero\n");
}

#[test]
fn what_a_person_changes_after_a_background_command_has_ended_is_theirs() {
    let bench = bench(&[
        &[job(".go", "echo late >> a.txt")],
        &[],
        &[bash("echo by a command > c.txt")],
    ]);
    fs::write(file(&bench, "a.txt"), "zero\n").unwrap();
    fs::write(file(&bench, "mine.txt"), "zero\n").unwrap();
    let mut talk = Talk::start(&bench);
    talk.say("begin");
    fs::write(file(&bench, ".go"), "").unwrap();
    wait_for(&bench, "a.txt", "zero\nlate\n");
    std::thread::sleep(Duration::from_millis(500));
    talk.say("nothing to do");
    fs::write(file(&bench, "mine.txt"), "my own work\n").unwrap();
    talk.say("work");
    talk.end();
    let back = rewind(&bench, &["--to", "0"]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(text(&bench, "mine.txt").unwrap(), "my own work\n");
    assert_eq!(text(&bench, "c.txt"), None);
}

#[test]
fn a_long_session_keeps_no_more_than_it_may() {
    let bench = bench(&[
        &[write("a.txt", "11111111")],
        &[write("a.txt", "22222222")],
        &[write("a.txt", "33333333")],
    ]);
    fs::write(file(&bench, "a.txt"), "00000000").unwrap();
    let mut command = bench.command();
    command.env("CALIBAN_CHECKPOINT_MAX_BYTES", "10");
    command.args(["-p", "--session", "s", "--no-permissions"]);
    command.args([
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
    ]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut talk = Talk(child, output);
    for prompt in ["one", "two", "three"] {
        talk.say(prompt);
    }
    talk.end();
    let listed = rewind(&bench, &["--list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let kinds: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["kind"])
        .collect();
    assert_eq!(kinds, ["files", "cleared", "cleared", "start"]);
}

#[test]
fn scripts_read_what_there_is_and_what_was_done() {
    let bench = bench(&[&[write("new.txt", "one\n"), bash("echo more >> old.txt")]]);
    fs::write(file(&bench, "old.txt"), "zero\n").unwrap();
    prompt(&bench, &[]);
    let read = |args: &[&str]| -> Value {
        let ran = rewind(&bench, args);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
    };
    let listed = read(&["--list", "--json"]);
    assert_eq!(listed[0]["prompt_index"], 1);
    assert_eq!(listed[0]["title"], "go on");
    assert_eq!(listed[0]["changed"], 2);
    assert_eq!(listed[0]["taken_back"], false);
    assert_eq!(listed[1]["prompt_index"], 0);
    let shown = read(&["--to", "0", "--dry-run", "--json"]);
    assert_eq!(shown["would_restore"][0]["path"], "new.txt");
    assert_eq!(shown["would_restore"][0]["action"], "remove");
    assert_eq!(shown["would_restore"][1]["action"], "change");
    let difference = shown["would_restore"][1]["diff"].as_str().unwrap();
    assert!(difference.contains("-more"), "{difference}");
    fs::write(file(&bench, "old.txt"), "mine\n").unwrap();
    let done = read(&["--to", "0", "--json"]);
    assert_eq!(done["restored"], json!(["new.txt"]));
    assert_eq!(done["conflicts"][0]["path"], "old.txt");
    assert_eq!(done["checkpoint"], 2);
    assert_eq!(read(&["--json"])[1]["taken_back"], true);
    for args in [["--code"], ["--conversation"], ["--both"]] {
        assert_eq!(rewind(&bench, &args).code, Some(64), "{args:?}");
    }
}

/// A rule that closes a file closes the copies of it.
#[test]
fn no_tool_reads_what_is_kept() {
    let bench = bench(&[&[]]);
    let store = bench.home.path().join(".caliban/projects");
    let calls = [
        bash("echo more >> a.txt"),
        (
            "Grep",
            json!({"pattern": "SECRET", "path": store, "output_mode": "content"}),
        ),
        ("Glob", json!({"pattern": "**/*.bin", "path": store})),
        bash(&format!(
            "cat {}/*/checkpoints/*/*/blobs/*",
            store.display()
        )),
    ];
    bench.server.push(Reply::tools(calls));
    bench.server.push(Reply::text("done"));
    fs::write(file(&bench, ".env"), "KEPT SECRET").unwrap();
    fs::write(file(&bench, "a.txt"), "KEPT SECRET").unwrap();
    let first = bench.run(["-p", "nothing", "--session", "s"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let ran = bench.run([
        "-p",
        "look",
        "-r",
        "s",
        "--deny",
        "Read(.env)",
        "--auto-allow",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let body = bench.server.model_requests().pop().unwrap().json();
    let told = body["messages"].to_string();
    assert!(
        !told.contains("KEPT SECRET") && !told.contains(".bin\\n"),
        "{told}"
    );
}

#[test]
fn the_variables_say_where_and_whether() {
    let bench = bench(&[&[write("a.txt", "one")], &[write("b.txt", "one")]]);
    let elsewhere = bench.home.path().join("elsewhere");
    let args = ["-p", "go on", "--session", "s", "--no-permissions"];
    let ran = run(bench
        .command()
        .args(args)
        .env("CALIBAN_CHECKPOINT_DISABLED", "1"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!bench.home.path().join(".caliban/projects").exists());
    let ran = run(bench
        .command()
        .args(args)
        .env("CALIBAN_CHECKPOINT_ROOT", "elsewhere"));
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains("a path from the root"), "{ran:?}");
    let ran = run(bench
        .command()
        .args(args)
        .env("CALIBAN_CHECKPOINT_DISABLED", "0")
        .env("CALIBAN_CHECKPOINT_ROOT", &elsewhere));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let project = fs::read_dir(&elsewhere)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let manifest = project.join("checkpoints/s/prompt-001/manifest.json");
    let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["prompt_index"], 1);
    assert_eq!(manifest["kind"], "files");
    assert_eq!(manifest["title"], "go on");
    assert_eq!(manifest["entries"][0]["path"], "b.txt");
    assert_eq!(manifest["entries"][0]["exists_pre"], false);
    assert_eq!(manifest["entries"][0]["tool"], "Write");
}

#[test]
fn what_is_not_saved_keeps_nothing_and_what_is_removed_goes_with_its_session() {
    let bench = bench(&[&[write("a.txt", "one")], &[write("b.txt", "one")]]);
    let ran = bench.run(["-p", "go on", "--no-save", "--no-permissions"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let root = bench.home.path().join(".caliban/projects");
    assert!(!root.exists());
    prompt(&bench, &[]);
    let project = fs::read_dir(&root).unwrap().next().unwrap().unwrap().path();
    assert!(project.join("checkpoints/s").is_dir());
    assert_eq!(bench.run(["sessions", "rm", "s"]).code, Some(0));
    assert!(!project.join("checkpoints/s").exists());
}
