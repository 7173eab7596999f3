//! Sub-agents in worktrees of their own, through the built binary and with real git: whatever they
//! do is in the tree, on a branch or under a ref of ours afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
#![cfg(unix)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use caliban_testkit::{Match, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, run};

/// How long something may take that is waited for.
const PATIENCE: Duration = Duration::from_mins(2);

/// A parent that starts one sub-agent, which makes these calls.
fn script(wish: &Value, calls: Vec<(&str, Value)>) -> Script {
    let mut input = json!({
        "prompt": "inner task",
        "description": "Fix the parser",
        "isolation": "worktree",
    });
    let wish = wish.as_object().cloned().unwrap_or_default();
    input.as_object_mut().unwrap().extend(wish);
    let mut replies = vec![Reply::tool("AgentTool", input).when(Match::last_user("outer"))];
    for (name, input) in calls {
        replies.push(Reply::tool(name, input).when(Match::any_text("inner task")));
    }
    replies.push(Reply::text("inner done").when(Match::any_text("inner task")));
    replies.push(Reply::text("all done"));
    Script::new(replies)
}

fn git(directory: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(args)
        .current_dir(directory)
        .env("HOME", directory)
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn repository(bench: &Bench) {
    let root = bench.workspace.path();
    git(root, &["init", "-q", "-b", "main"]);
    put(root, "a.txt", "one\n");
    put(root, "src/lib.txt", "needle\n");
    put(root, ".gitignore", "*.log\ntarget/\n");
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "first"]);
}

fn bench(wish: &Value, calls: Vec<(&str, Value)>) -> Bench {
    let bench = Bench::new(Wire::Anthropic, script(wish, calls));
    repository(&bench);
    bench
}

fn go(bench: &Bench, more: &[&str]) -> Ran {
    let ran = bench.run(
        ["-p", "outer", "--permission-mode", "acceptEdits"]
            .iter()
            .chain(more),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// What the parent read about its sub-agent.
fn told(bench: &Bench) -> String {
    let requests = bench.server.model_requests();
    let last = requests.last().unwrap().json();
    let message = last["messages"].as_array().unwrap().last().unwrap().clone();
    message["content"][0]["content"].to_string()
}

fn worktrees(bench: &Bench) -> Vec<Value> {
    let ran = bench.run(["worktrees", "list", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn branch(bench: &Bench) -> String {
    let listed = worktrees(bench);
    assert_eq!(listed.len(), 1, "{listed:?}");
    listed[0]["branch"].as_str().unwrap().to_owned()
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command }))
}

#[test]
fn its_work_is_on_a_branch_and_the_parents_files_are_as_they_were() {
    let bench = bench(
        &json!({}),
        vec![
            ("Read", json!({"file_path": "a.txt"})),
            ("Write", json!({"file_path": "a.txt", "content": "two\n"})),
            (
                "Write",
                json!({"file_path": "new/b.txt", "content": "new\n"}),
            ),
            ("Grep", json!({"pattern": "needle"})),
        ],
    );
    let root = bench.workspace.path();
    put(root, "mine.txt", "uncommitted\n");
    go(&bench, &[]);
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "one\n");
    let branch = branch(&bench);
    assert!(branch.starts_with("caliban/fix-the-parser-"), "{branch}");
    let show = |path: &str| git(root, &["show", &format!("{branch}:{path}")]);
    assert_eq!(
        (show("a.txt"), show("new/b.txt")),
        ("two".into(), "new".into())
    );
    let told = told(&bench);
    for part in [
        "inner done",
        &branch,
        "2 files changed",
        "uncommitted changes of 1 files",
        "git merge",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // It is told where it is, and what it has not.
    let first = bench.server.model_requests()[1].json();
    let system = first["system"].to_string();
    assert!(
        system.contains(".caliban/worktrees/fix-the-parser-"),
        "{system}"
    );
    assert!(system.contains("1 files are changed") && system.contains("mine.txt"));
    // It finds its own files.
    let found = bench.server.model_requests()[5].json();
    let found = found["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(found.contains("src/lib.txt"), "{found}");
    assert!(
        !root
            .join(".caliban/worktrees")
            .read_dir()
            .unwrap()
            .flatten()
            .any(|it| it.path().is_dir())
    );
    assert_eq!(git(root, &["status", "--porcelain"]), "?? mine.txt");
}

#[test]
fn commits_that_it_left_for_another_branch_are_kept_and_told() {
    let calls = vec![
        bash("git checkout -q --detach && echo first > way.txt && git add way.txt"),
        bash("git -c user.name=s -c user.email=s@s commit -qm first"),
        bash("git checkout -q -"),
    ];
    let bench = bench(&json!({}), calls);
    let root = bench.workspace.path();
    go(&bench, &["--allow", "Bash"]);
    let kept = git(
        root,
        &["for-each-ref", "--format=%(refname)", "refs/caliban/rescue"],
    );
    assert_eq!(kept.lines().count(), 1, "{kept}");
    assert_eq!(git(root, &["show", &format!("{kept}:way.txt")]), "first");
    let told = told(&bench);
    assert!(told.contains(&kept), "{told}");
    assert!(!told.contains("nothing was done"), "{told}");
}

#[test]
fn one_that_changes_nothing_leaves_nothing() {
    let bench = bench(&json!({}), vec![("Read", json!({"file_path": "a.txt"}))]);
    go(&bench, &[]);
    assert!(told(&bench).contains("nothing was done in it"));
    assert_eq!(worktrees(&bench), Vec::<Value>::new());
    let root = bench.workspace.path();
    assert_eq!(
        git(root, &["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main"
    );
}

#[test]
fn rules_and_restrictions_are_anchored_in_it() {
    let bench = bench(
        &json!({}),
        vec![
            // Allowed by the anchored rule, and in the worktree.
            bash("echo two > a.txt && git add -A && git commit -qm two --author 'a <a@a>'"),
            ("Write", json!({"file_path": "src/x.txt", "content": "x\n"})),
        ],
    );
    let root = bench.workspace.path().canonicalize().unwrap();
    let outside = root.join("a.txt");
    let ran = bench.run([
        "-p",
        "outer",
        "--restrict-paths",
        "--allow",
        "Write(./src/**)",
        "--allow",
        "Edit(./src/**)",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "one\n");
    let branch = branch(&bench);
    assert_eq!(git(&root, &["show", &format!("{branch}:src/x.txt")]), "x");
}

#[test]
fn file_tools_do_not_reach_the_parents_checkout() {
    let temp = tempfile::tempdir().unwrap();
    let place = temp.path().canonicalize().unwrap();
    let target = place.join("a.txt").display().to_string();
    let calls = vec![
        (
            "Write",
            json!({"file_path": target, "content": "through\n"}),
        ),
        ("Read", json!({"file_path": target})),
    ];
    let mut bench = Bench::new(Wire::Anthropic, script(&json!({}), calls));
    bench.workspace = temp;
    repository(&bench);
    go(&bench, &["--auto-allow"]);
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "one\n");
    let requests = bench.server.model_requests();
    let said = |index: usize| requests[index].json()["messages"].to_string();
    assert!(said(2).contains("`isolation`"), "{}", said(2));
    // Looking is not forbidden.
    assert!(said(3).contains("one"), "{}", said(3));
}

#[test]
fn what_the_model_asks_for_counts_before_the_settings() {
    let bench = bench(
        &json!({"worktree": {"sparse_paths": ["src"], "symlink_directories": ["target"]}}),
        vec![bash("ls; cat target/built; echo more > src/new.txt")],
    );
    let root = bench.workspace.path();
    put(root, "target/built", "heavy\n");
    put(root, "big/file.txt", "x\n");
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "big"]);
    go(
        &bench,
        &[
            "--auto-allow",
            "--settings",
            r#"{"worktree": {"sparse_paths": ["big"]}}"#,
        ],
    );
    let said = bench.server.model_requests()[2].json()["messages"].to_string();
    assert!(said.contains("heavy") && !said.contains("big"), "{said}");
    let branch = branch(&bench);
    let files = git(root, &["ls-tree", "-r", "--name-only", &branch]);
    assert!(files.contains("src/new.txt") && files.contains("big/file.txt"));
    assert!(!files.contains("target"), "{files}");
    assert!(root.join("target/built").exists());
}

#[rstest]
#[case("none", "not in a git repository")]
#[case("bare", "bare repository")]
#[case("unborn", "no commit yet")]
fn where_there_is_none_it_does_not_start(#[case] kind: &str, #[case] words: &str) {
    let bench = Bench::new(Wire::Anthropic, script(&json!({}), Vec::new()));
    let root = bench.workspace.path();
    match kind {
        "bare" => drop(git(root, &["init", "-q", "--bare"])),
        "unborn" => drop(git(root, &["init", "-q"])),
        _ => {}
    }
    go(&bench, &[]);
    let told = told(&bench);
    assert!(
        told.contains(words) && told.contains("not started"),
        "{told}"
    );
    // Nobody was asked but the parent.
    assert_eq!(bench.server.model_requests().len(), 2);
}

#[test]
fn it_can_be_kept_and_merged_and_removed() {
    let bench = bench(
        &json!({}),
        vec![
            bash("echo two > a.txt; git add a.txt; echo three > a.txt; echo log > run.log"),
            ("Write", json!({"file_path": "b.txt", "content": "b\n"})),
        ],
    );
    let root = bench.workspace.path();
    let mut command = bench.command();
    command.env("CALIBAN_KEEP_WORKTREES", "1");
    let ran = run(command.args(["-p", "outer", "--auto-allow"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = worktrees(&bench);
    assert_eq!(listed[0]["state"], "kept", "{listed:?}");
    let path = PathBuf::from(listed[0]["path"].as_str().unwrap());
    assert!(path.join("b.txt").exists());
    let doctor = bench.run(["doctor", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&doctor.stdout).unwrap();
    let row = rows.iter().find(|row| row["name"] == "worktrees").unwrap();
    assert!(
        row["details"].to_string().contains(path.to_str().unwrap()),
        "{row}"
    );
    let name = listed[0]["name"].as_str().unwrap();
    // Somebody edits it by hand.
    put(&path, "by-hand.txt", "hand\n");
    let diff = bench.run(["worktrees", "diff", name]);
    for part in ["+three", "+hand", "b.txt"] {
        assert!(diff.stdout.contains(part), "{part}: {}", diff.stdout);
    }
    // A file of the user's in the way: nothing happens.
    put(root, "b.txt", "the user's\n");
    for how in ["--apply", "--commit"] {
        let refused = bench.run(["worktrees", "merge", "fix", how]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains("nothing was changed"),
            "{refused:?}"
        );
    }
    assert_eq!(
        fs::read_to_string(root.join("b.txt")).unwrap(),
        "the user's\n"
    );
    fs::remove_file(root.join("b.txt")).unwrap();
    let merged = bench.run(["worktrees", "merge", name, "--commit"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    for (file, text) in [
        ("a.txt", "three\n"),
        ("b.txt", "b\n"),
        ("by-hand.txt", "hand\n"),
    ] {
        assert_eq!(fs::read_to_string(root.join(file)).unwrap(), text);
    }
    // What was staged once is in the history.
    assert!(git(root, &["log", "-p", "--format=%s"]).contains("+two"));
    let kept = bench.run(["worktrees", "rm", name]);
    assert_eq!(kept.code, Some(1), "{kept:?}");
    assert!(kept.stderr.contains("run.log") && kept.stderr.contains("--with-ignored"));
    assert!(path.join("run.log").exists());
    let gone = bench.run(["worktrees", "rm", name, "--with-ignored"]);
    assert_eq!(gone.code, Some(0), "{gone:?}");
    assert!(!path.exists());
    assert_eq!(worktrees(&bench), Vec::<Value>::new());
    let unknown = bench.run(["worktrees", "rm", name]);
    assert_eq!(unknown.code, Some(66), "{unknown:?}");
    assert_eq!(bench.run(["worktrees", "merge", name]).code, Some(64));
}

#[test]
fn hooks_hear_of_both_ends_and_checkpoints_of_neither() {
    let bench = bench(
        &json!({}),
        vec![("Write", json!({"file_path": "a2.txt", "content": "x\n"}))],
    );
    let config = bench.home.path().join(".config/caliban");
    let log = bench.home.path().join("heard");
    let handler = format!("cat >> {}; echo >> {}", log.display(), log.display());
    let hook = |event: &str| {
        format!("[[hooks.{event}]]\nhooks = [{{ type = \"command\", command = \"{handler}\" }}]\n")
    };
    let settings = hook("WorktreeCreate") + &hook("WorktreeRemove");
    put(&config, "settings.toml", &settings);
    go(&bench, &["--session", "s"]);
    let heard = fs::read_to_string(log).unwrap();
    let events: Vec<Value> = heard
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["hook_event_name"], "WorktreeCreate");
    assert_eq!(events[1]["hook_event_name"], "WorktreeRemove");
    assert_eq!(events[1]["verdict"], "branch");
    assert_eq!(events[0]["branch"], events[1]["branch"]);
    let rewind = bench.run(["rewind", "--session", "s", "--list"]);
    assert!(!rewind.stdout.contains("a2.txt"), "{rewind:?}");
    let back = bench.run(["rewind", "--session", "s", "--to", "0", "--dry-run"]);
    assert!(!back.stdout.contains("a2.txt"), "{back:?}");
}

/// A `git` that does this before it is itself, when its words hold `word`.
fn wrapped_git(bench: &Bench, word: &str, does: &str) -> std::ffi::OsString {
    let bin = bench.home.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let real = which("git");
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *\" {word} \"*) {does};; esac\nexec {} \"$@\"\n",
        real.display()
    );
    fs::write(bin.join("git"), text).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let paths = std::iter::once(bin).chain(std::env::split_paths(&path));
    std::env::join_paths(paths).unwrap()
}

fn which(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .unwrap()
}

/// Every byte that was written is in a tree or in a commit that a ref leads to.
fn is_safe(bench: &Bench, text: &str) -> bool {
    let root = bench.workspace.path();
    let refs = git(root, &["log", "--all", "-p", "--format="]);
    let rescued = git(
        root,
        &["for-each-ref", "--format=%(objectname)", "refs/caliban"],
    );
    let rescued = rescued.lines().any(|commit| {
        let said = git(root, &["log", "-p", "--format=", commit]);
        said.contains(&format!("+{text}"))
    });
    let place = root.join(".caliban/worktrees");
    let in_tree = fs::read_dir(place)
        .into_iter()
        .flatten()
        .flatten()
        .any(|tree| {
            fs::read_to_string(tree.path().join("a.txt")).is_ok_and(|found| found.contains(text))
        });
    refs.contains(&format!("+{text}")) || rescued || in_tree
}

#[rstest]
#[case("commit")]
#[case("add")]
#[case("remove")]
#[case("status")]
#[case("update-ref")]
fn a_failing_step_loses_nothing(#[case] word: &str) {
    let bench = bench(
        &json!({}),
        vec![(
            "Bash",
            json!({"command": "echo precious > a.txt; touch ready"}),
        )],
    );
    // It fails from when the agent has worked.
    let ready = "{ [ -e ready ] || ls .caliban/worktrees/*/ready >/dev/null 2>&1; } && exit 1";
    let path = wrapped_git(&bench, word, ready);
    let mut command = bench.command();
    command.env("PATH", path);
    let ran = run(command.args(["-p", "outer", "--auto-allow"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(is_safe(&bench, "precious"), "{}", told(&bench));
    // With a git that works, everything ends as it should.
    let name = worktrees(&bench)[0]["name"].as_str().unwrap().to_owned();
    bench.run(["worktrees", "rm", &name]);
    assert!(is_safe(&bench, "precious"));
    let merged = bench.run(["worktrees", "merge", &name, "--commit"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    let root = bench.workspace.path();
    assert_eq!(
        fs::read_to_string(root.join("a.txt")).unwrap(),
        "precious\n"
    );
}

/// Killed while git does this, the next one cleans up and nothing is lost.
#[rstest]
#[case("worktree add", "creating")]
#[case("commit", "leaving")]
#[case("worktree remove", "leaving")]
#[case("", "working")]
fn a_kill_loses_nothing(#[case] words: &str, #[case] when: &str) {
    let mut calls = vec![bash("echo precious > a.txt")];
    if when == "working" {
        calls.push(bash("touch ../../../reached; sleep 60"));
    }
    let bench = bench(&json!({}), calls);
    let root = bench.workspace.path();
    let reached = root.join("reached");
    let word = if words.is_empty() {
        "no-such-word"
    } else {
        words
    };
    let does = format!("touch '{}'; sleep 60", reached.display());
    let path = wrapped_git(&bench, word, &does);
    let mut command = bench.command();
    command.env("PATH", path);
    command.args(["-p", "outer", "--auto-allow"]);
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while !reached.exists() {
        assert!(begun.elapsed() < PATIENCE, "it was not reached");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(&reached).unwrap();
    if when != "creating" {
        assert!(is_safe(&bench, "precious"));
    }
    let cleaned = bench.run(["worktrees", "rm", "--abandoned"]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    let listed = worktrees(&bench);
    if when == "creating" {
        assert_eq!(listed, Vec::<Value>::new(), "{cleaned:?}");
        let refs = git(root, &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs, "refs/heads/main");
        return;
    }
    assert!(is_safe(&bench, "precious"), "{cleaned:?} {listed:?}");
    let name = listed[0]["name"].as_str().unwrap();
    let merged = bench.run(["worktrees", "merge", name, "--commit"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert_eq!(
        fs::read_to_string(root.join("a.txt")).unwrap(),
        "precious\n"
    );
}

#[test]
fn several_at_once_each_have_their_own() {
    let call = |index: usize| {
        (
            "AgentTool",
            json!({"prompt": format!("task {index}."), "description": format!("agent {index}"), "isolation": "worktree"}),
        )
    };
    let mut replies = vec![Reply::tools((0..4).map(call)).when(Match::last_user("outer"))];
    for index in 0..4 {
        let input = json!({"file_path": "a2.txt", "content": format!("{index}\n")});
        let is_it = Match::any_text(format!("task {index}."));
        replies.push(Reply::tool("Write", input).when(is_it.clone()));
        replies.push(Reply::text("done").when(is_it));
    }
    replies.push(Reply::text("all done"));
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    repository(&bench);
    go(&bench, &[]);
    let listed = worktrees(&bench);
    assert_eq!(listed.len(), 4, "{listed:?}");
    let root = bench.workspace.path();
    let mut found: Vec<String> = listed
        .iter()
        .map(|one| {
            let branch = one["branch"].as_str().unwrap();
            git(root, &["show", &format!("{branch}:a2.txt")])
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, ["0", "1", "2", "3"]);
}
