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
use std::path::PathBuf;

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
