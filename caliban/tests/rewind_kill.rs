//! The program is killed while it keeps and while it restores; nothing is lost either way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
#![cfg(unix)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::json;
use support::{Bench, Wire};

/// Files that a command changes at once.
const MANY: usize = 60;
/// How long something may take that is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

fn write(path: &str, content: &str) -> Reply {
    Reply::tool("Write", json!({ "file_path": path, "content": content }))
}

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({ "command": command }))
}

/// Everything in a workspace.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.insert(path.clone(), b"directory".to_vec());
                open.push(path);
            } else {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn begin(bench: &Bench) -> Child {
    let args = ["-p", "go on", "--session", "s", "--no-permissions"];
    bench.command().args(args).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn rewind(bench: &Bench, args: &[&str]) {
    let ran = bench.run(["rewind", "--session", "s"].iter().chain(args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Killed between two calls, everything that the calls before did can be taken back.
#[rstest]
fn what_was_changed_until_a_kill_comes_back(#[values(2, 4, 6)] requests: usize) {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            write("new/a.txt", "one"),
            bash("echo more >> old.txt; rm gone.txt; mkdir -p d && echo x > d/e"),
            write("old.txt", "by the tool"),
            bash("mv new/a.txt d/; sed -i s/x/y/ d/e"),
            write("d/e", "last"),
            Reply::text("done"),
        ]),
    );
    let root = bench.workspace.path();
    fs::write(root.join("old.txt"), "old\n").unwrap();
    fs::write(root.join("gone.txt"), "gone\n").unwrap();
    let start = tree(root);
    let child = begin(&bench);
    bench.server.wait_for_requests(requests);
    kill(child);
    // How the last call left its file is not known for sure.
    rewind(&bench, &["--to", "0", "--force"]);
    assert_eq!(tree(root), start);
}

/// Killed while a command runs, what it did until then can be taken back.
#[rstest]
#[case::at_once(&["--to", "0"])]
#[case::after_a_look(&["--to", "0", "--dry-run"])]
fn what_a_command_did_until_it_was_killed_comes_back(#[case] first: &[&str]) {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            bash("echo changed > f; rm gone; mkdir d; echo x > d/new; touch began; sleep 60"),
            Reply::text("done"),
        ]),
    );
    let root = bench.workspace.path();
    fs::write(root.join("f"), "old\n").unwrap();
    fs::write(root.join("gone"), "gone\n").unwrap();
    let start = tree(root);
    let mut child = begin(&bench);
    let deadline = Instant::now() + PATIENCE;
    while !root.join("began").exists() {
        assert!(child.try_wait().unwrap().is_none());
        assert!(Instant::now() < deadline);
    }
    kill(child);
    rewind(&bench, first);
    rewind(&bench, &["--to", "0"]);
    assert_eq!(tree(root), start);
}

/// Resumed after such a kill, the session keeps what the command did apart from what comes later.
#[test]
fn what_a_killed_command_did_is_its_own_prompts() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            bash("echo changed > f; touch began; sleep 60"),
            bash("echo later > f"),
            Reply::text("done"),
        ]),
    );
    let root = bench.workspace.path();
    fs::write(root.join("f"), "old\n").unwrap();
    let mut child = begin(&bench);
    let deadline = Instant::now() + PATIENCE;
    while !root.join("began").exists() {
        assert!(child.try_wait().unwrap().is_none());
        assert!(Instant::now() < deadline);
    }
    kill(child);
    let listed = bench.run(["rewind", "--list"]).stdout;
    assert!(listed.contains("not known yet"), "{listed}");
    let ran = bench.run(["-p", "go on", "-r", "s", "--no-permissions"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let read = || fs::read_to_string(root.join("f")).unwrap();
    assert_eq!(read(), "later\n");
    rewind(&bench, &["--to", "1"]);
    assert_eq!(read(), "changed\n");
    rewind(&bench, &["--to", "0"]);
    assert_eq!(read(), "old\n");
}

/// Killed while a hook goes on about it, a tool's change is known for its own.
#[test]
fn a_kill_during_a_hook_leaves_no_doubt() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([write("f", "new\n"), Reply::text("done")]),
    );
    let settings = bench.home.path().join(".config/caliban/settings.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let hook = "[[hooks.PostToolUse]]\ntype = \"command\"\ncommand = 'touch began; sleep 60'\n";
    fs::write(settings, hook).unwrap();
    let root = bench.workspace.path();
    fs::write(root.join("f"), "old\n").unwrap();
    let mut child = begin(&bench);
    let deadline = Instant::now() + PATIENCE;
    while !root.join("began").exists() {
        assert!(child.try_wait().unwrap().is_none());
        assert!(Instant::now() < deadline);
    }
    kill(child);
    rewind(&bench, &["--to", "0"]);
    assert_eq!(fs::read_to_string(root.join("f")).unwrap(), "old\n");
}

/// Killed after so many files are back, the next one finishes, in the files and in what was said.
#[rstest]
fn a_restore_that_was_killed_is_finished(#[values(0, 1, 20, 59)] restored: usize) {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::text("one"),
            bash(&format!("for i in $(seq {MANY}); do echo new > f$i; done")),
            Reply::text("two"),
            Reply::text("three"),
        ]),
    );
    let root = bench.workspace.path();
    for number in 1..=MANY {
        fs::write(root.join(format!("f{number}")), "old\n").unwrap();
    }
    let start = tree(root);
    for _ in 0..2 {
        assert!(begin(&bench).wait().unwrap().success());
    }
    let end = tree(root);
    assert_ne!(start, end);

    let projects = bench.home.path().join(".caliban/projects");
    let project = fs::read_dir(projects).unwrap().next().unwrap().unwrap();
    let intent = project.path().join("checkpoints/s/restore.json");
    let args = ["rewind", "--session", "s", "--to", "1"];
    let mut child = bench.command().args(args).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let is_back = |number: &usize| {
        let text = fs::read(root.join(format!("f{number}")));
        text.is_ok_and(|text| text == b"old\n")
    };
    while child.try_wait().unwrap().is_none() {
        if intent.exists() && (1..=MANY).filter(is_back).count() >= restored {
            break;
        }
        assert!(Instant::now() < deadline);
    }
    kill(child);

    let ran = bench.run(["-p", "go on", "-r", "s", "--no-permissions"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(tree(root), start, "{ran:?}");
    let asked = bench.server.model_requests().pop().unwrap().json();
    let asked = asked["messages"].to_string();
    assert!(asked.contains("one") && !asked.contains("two"), "{asked}");
    rewind(&bench, &["--to", "2"]);
    assert_eq!(tree(root), end);
}
