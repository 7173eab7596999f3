//! How files come to a job and back.

use std::path::Path;
use std::process::Command;

use caliban_testkit::{Reply, Script};
use serde_json::json;

use crate::fleet::Fleet;

fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?} {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with a file, and a clone of it where jobs are submitted.
fn repository(fleet: &Fleet) -> String {
    let origin = fleet.bench.home.path().join("origin.git");
    let here = fleet.bench.workspace.path();
    git(here, &["init", "--quiet"]);
    std::fs::write(here.join("greeting.txt"), "hello\n").unwrap();
    git(here, &["add", "."]);
    git(here, &["commit", "--quiet", "-m", "first"]);
    let origin = origin.to_str().unwrap().to_owned();
    git(here, &["clone", "--quiet", "--bare", ".", &origin]);
    git(here, &["remote", "add", "origin", &origin]);
    origin
}

fn changes() -> Fleet {
    Fleet::new(Script::new([
        Reply::tool(
            "Bash",
            json!({"command": "echo world >> greeting.txt && touch new.txt"}),
        ),
        Reply::text("changed"),
    ]))
}

#[test]
fn changes_come_back_as_a_branch() {
    let fleet = changes();
    let origin = repository(&fleet);
    let _worker = fleet.worker("one", &["--allow", "Bash"], &["--allow-repo", &origin]);
    let ran = fleet.fleet(["submit", "change it", "--publish", "branch"]);
    let job = ran.stdout.trim();
    let result = fleet.result(job);
    assert_eq!(result["outcome"], "done", "{result}");
    let branch = result["files"]["branch"]["name"].as_str().unwrap();
    assert_eq!(branch, format!("caliban/{job}/1"));
    let shown = git(
        Path::new(&origin),
        &["show", &format!("{branch}:greeting.txt")],
    );
    assert_eq!(shown, "hello\nworld");
    // What was kept for another attempt is gone.
    fleet.wait_for_state(job, "done");
    crate::fleet::until("no refs are left", || {
        let left = git(Path::new(&origin), &["for-each-ref", "refs/caliban"]);
        assert!(!fleet.log("one").contains("stays"), "{}", fleet.log("one"));
        left.is_empty()
    });
}

#[test]
fn a_commit_that_was_not_pushed_is_refused_at_once() {
    let fleet = changes();
    repository(&fleet);
    let here = fleet.bench.workspace.path();
    git(here, &["fetch", "--quiet", "origin"]);
    let pushed = fleet.fleet(["submit", "change it"]);
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    git(
        here,
        &["commit", "--quiet", "--allow-empty", "-m", "second"],
    );
    let refused = fleet.fleet(["submit", "change it"]);
    assert_eq!(refused.code, Some(66), "{refused:?}");
    assert!(refused.stderr.contains("push it first"), "{refused:?}");
    let commit = git(here, &["rev-parse", "HEAD"]);
    let refused = fleet.fleet(["submit", "change it", "--commit", &commit]);
    assert_eq!(refused.code, Some(66), "{refused:?}");
}

#[test]
fn changes_come_back_as_a_patch_that_applies() {
    let fleet = changes();
    let origin = repository(&fleet);
    let _worker = fleet.worker("one", &["--allow", "Bash"], &["--allow-repo", &origin]);
    let there = fleet.bench.home.path().join("artefacts");
    let ran = fleet.fleet(["submit", "change it", "--wait"]);
    assert_eq!(ran.stdout, "changed\n");
    let job = ran
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("job "))
        .unwrap();
    fleet.fleet(["result", job, "--download", there.to_str().unwrap()]);
    let here = fleet.bench.workspace.path();
    git(
        here,
        &["apply", there.join("changes.patch").to_str().unwrap()],
    );
    let text = std::fs::read_to_string(here.join("greeting.txt")).unwrap();
    assert_eq!(text, "hello\nworld\n");
    assert!(here.join("new.txt").exists());
    let result = fleet.result(job);
    let names: Vec<&str> = result["artefacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|artefact| artefact["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            format!("{job}/1/changes.patch"),
            format!("{job}/1/transcript.md")
        ]
    );
}

#[test]
fn what_is_too_large_is_left_out_and_said() {
    let fleet = Fleet::new(Script::new([
        Reply::tool(
            "Bash",
            json!({"command": "head -c 3000000 /dev/urandom > large"}),
        ),
        Reply::text("made"),
    ]));
    let _worker = fleet.worker("one", &["--allow", "Bash"], &["--max-artefact", "1"]);
    let job = fleet.submit("make it", &[]);
    let result = fleet.result(&job);
    assert_eq!(result["outcome"], "done", "{result}");
    assert_eq!(result["files"], serde_json::Value::Null);
    assert!(
        result["left_out"][0].as_str().unwrap().contains("1 MiB"),
        "{result}"
    );
}
