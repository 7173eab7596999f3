//! Settings that change between two prompts of one run.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};

use crate::support::Bench;
use crate::{bench, plain, project, user, write};

/// A run that takes one prompt after the other.
struct Run {
    child: Child,
    stdin: ChildStdin,
    frames: Lines<BufReader<ChildStdout>>,
}

impl Run {
    fn new(bench: &Bench, args: &[&str]) -> Self {
        let mut child = plain(bench)
            .args(["-p", "--input-format", "stream-json"])
            .args(["--output-format", "stream-json"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let frames = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            stdin,
            frames,
        }
    }

    /// The frames of one prompt.
    fn ask(&mut self, text: &str) -> Vec<Value> {
        let prompt = json!({"type": "user", "content": text});
        writeln!(self.stdin, "{prompt}").unwrap();
        let mut seen: Vec<Value> = Vec::new();
        while seen.last().is_none_or(|frame| frame["type"] != "result") {
            seen.push(serde_json::from_str(&self.frames.next().unwrap().unwrap()).unwrap());
        }
        seen
    }

    fn end(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

/// The newest request as text.
fn sent(bench: &Bench) -> String {
    let request = bench.server.model_requests().pop().unwrap();
    request.json()["messages"].to_string()
}

/// What was told of a change.
fn change(frames: &[Value]) -> &str {
    let found = frames
        .iter()
        .find(|frame| frame["subtype"] == "config_change");
    found.expect("a warning frame")["message"].as_str().unwrap()
}

#[test]
fn further_directories_count_from_the_next_prompt_on() {
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("far.txt");
    write(&file, "FARAWAY");
    let read = || Reply::tool("Read", json!({"path": file}));
    let done = || Reply::text("done");
    let script = [read(), done(), read(), done(), done(), read(), done()];
    let bench = bench(Script::new(script));
    user(&bench, "effort = 'low'\n");
    let mut run = Run::new(&bench, &["--restrict-paths"]);
    run.ask("go");
    assert!(!sent(&bench).contains("FARAWAY"), "{}", sent(&bench));
    let list = format!(
        "additional_directories = ['{}']\n",
        elsewhere.path().display()
    );
    user(&bench, &list);
    let frames = run.ask("go");
    assert!(change(&frames).contains("`additional_directories`"));
    assert_eq!(
        sent(&bench).matches("FARAWAY").count(),
        1,
        "{}",
        sent(&bench)
    );
    run.ask(&format!("see @{}", file.display()));
    assert_eq!(
        sent(&bench).matches("FARAWAY").count(),
        2,
        "{}",
        sent(&bench)
    );
    user(&bench, "additional_directories = []\n");
    run.ask("go");
    assert_eq!(
        sent(&bench).matches("FARAWAY").count(),
        2,
        "{}",
        sent(&bench)
    );
    run.end();
}

#[test]
fn files_that_cannot_be_used_are_told_once() {
    let read = || Reply::tool("Read", json!({"path": "x"}));
    let done = || Reply::text("done");
    let bench = bench(Script::new([done(), read(), read(), done()]));
    user(&bench, "effort = 'low'\n");
    let mut run = Run::new(&bench, &[]);
    run.ask("go");
    // Long enough that somebody watches.
    std::thread::sleep(Duration::from_millis(1500));
    user(&bench, "effort = \n");
    std::thread::sleep(Duration::from_millis(700));
    let frames = run.ask("go");
    let told = frames
        .iter()
        .filter(|frame| frame["subtype"] == "config_change");
    assert_eq!(told.count(), 1, "{frames:?}");
    run.end();
}

#[test]
fn what_is_held_back_alone_is_told_without_keys_that_count() {
    let bench = bench(Script::new([Reply::text("ok"), Reply::text("ok")]));
    project(&bench, "[permissions]\ndeny = ['Bash:x *']\n");
    assert!(plain(&bench).arg("trust").status().unwrap().success());
    let mut run = Run::new(&bench, &[]);
    run.ask("go");
    project(&bench, "[permissions]\nallow = ['Bash']\n");
    let frames = run.ask("go");
    let change = change(&frames);
    assert!(
        change.starts_with("the settings changed: what the workspace would loosen waits"),
        "{change}"
    );
    run.end();
}

#[test]
fn instruction_files_that_were_not_read_yet_are_left_out() {
    let read = |path: &str| Reply::tool("Read", json!({"path": path}));
    let done = || Reply::text("done");
    let bench = bench(Script::new([read("a/x"), done(), read("b/x"), done()]));
    for directory in ["a", "b"] {
        let place = bench.workspace.path().join(directory);
        write(&place.join("CLAUDE.md"), &format!("SAID-{directory}"));
        write(&place.join("x"), "x");
    }
    user(&bench, "effort = 'low'\n");
    let mut run = Run::new(&bench, &[]);
    run.ask("go");
    assert!(sent(&bench).contains("SAID-a"), "{}", sent(&bench));
    user(&bench, "claude_md_excludes = ['b/']\n");
    run.ask("go");
    assert!(!sent(&bench).contains("SAID-b"), "{}", sent(&bench));
    run.end();
}

#[test]
fn another_key_helper_is_asked_from_the_next_prompt_on() {
    let bench = bench(Script::new([Reply::text("ok")]).after(After::RepeatLast));
    let helper = |key: &str| format!("api_key_helper = 'echo {key}'\n");
    let key = || {
        let request = bench.server.model_requests().pop().unwrap();
        request.header("x-api-key").unwrap().to_owned()
    };
    user(&bench, &helper("first-key"));
    let mut run = Run::new(&bench, &[]);
    run.ask("go");
    assert_eq!(key(), "first-key");
    user(&bench, &helper("second-key"));
    let frames = run.ask("go");
    assert_eq!(key(), "second-key");
    assert!(!change(&frames).contains("restart"), "{}", change(&frames));
    // What prints no key any more cannot be replaced by what is in the environment.
    user(&bench, "effort = 'low'\n");
    let frames = run.ask("go");
    let said = change(&frames);
    assert!(
        said.contains("a restart is required for `api_key_helper`"),
        "{said}"
    );
    assert_eq!(key(), "second-key");
    run.end();
}
