//! Agents in the background that work in worktrees of their own.

use std::path::Path;
use std::process::Command;

use caliban_testkit::{Match, Reply, Script};
use serde_json::{Value, json};

use crate::fleet::{Fleet, kill};

fn git(directory: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(args)
        .current_dir(directory)
        .env("HOME", directory)
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    text.trim_end().to_owned()
}

/// A fleet in a repository with a commit.
fn repository(script: Script) -> Fleet {
    let fleet = Fleet::scripted(script);
    let root = fleet.bench.workspace.path();
    std::fs::remove_dir(root.join(".git")).unwrap();
    git(root, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(root.join("file"), "first\n").unwrap();
    git(root, &["add", "file"]);
    git(root, &["commit", "--quiet", "-m", "begin"]);
    fleet
}

fn write(path: &str, text: &str) -> Reply {
    Reply::tool("Write", json!({"path": path, "content": text}))
}

/// Starts an agent in a worktree; returns its id.
fn spawn(fleet: &Fleet, task: &str) -> String {
    let args = [
        "--permission-mode",
        "acceptEdits",
        "--isolation",
        "worktree",
    ];
    let said = fleet.ok(&[&args[..], &["--bg", task]].concat());
    said.trim().to_owned()
}

fn tree(fleet: &Fleet, id: &str) -> std::path::PathBuf {
    let root = fleet.bench.workspace.path().canonicalize().unwrap();
    root.join(".caliban/worktrees").join(format!("agent-{id}"))
}

fn listed(fleet: &Fleet, id: &str) -> Option<Value> {
    let text = fleet.ok(&["worktrees", "list", "--json"]);
    let all: Value = serde_json::from_str(&text).unwrap();
    let name = format!("agent-{id}");
    let mut all = all.as_array().unwrap().iter();
    all.find(|it| it["name"] == name.as_str()).cloned()
}

#[test]
fn an_agent_works_in_a_worktree_until_it_is_removed() {
    let fleet = repository(Script::new([
        write("made", "by the agent\n"),
        Reply::text("done"),
    ]));
    let root = fleet.bench.workspace.path();
    let heard = fleet.bench.home.path().join("heard");
    let hooks = json!({"hooks": {"WorktreeRemove": [{"hooks": [
        {"type": "command", "command": format!("cat > {}", heard.display())}
    ]}]}});
    let settings = fleet.bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("settings.json"), hooks.to_string()).unwrap();
    let base = git(root, &["rev-parse", "HEAD"]);
    let id = spawn(&fleet, "make it");
    let agent = fleet.until(&id, |agent| agent["turns"] == 2);
    assert_eq!(agent["worktree"], format!("agent-{id}"));
    let tree = tree(&fleet, &id);
    assert_eq!(
        std::fs::read_to_string(tree.join("made")).unwrap(),
        "by the agent\n"
    );
    assert!(!root.join("made").exists());
    assert_eq!(git(root, &["status", "--porcelain"]), "");
    assert_eq!(
        fleet.file(&id, "spec.json")["isolation"]["worktree"]["base"],
        base.as_str()
    );
    let asked = fleet.bench.server.model_requests()[0].json().to_string();
    assert!(asked.contains("git worktree of your own"), "{asked}");
    assert!(asked.contains(&tree.display().to_string()), "{asked}");
    assert_eq!(listed(&fleet, &id).unwrap()["state"], "active");

    // It stays when the agent has ended, for whoever wants it to go on.
    fleet.ok(&["kill", &id]);
    let resting = listed(&fleet, &id).unwrap();
    assert_eq!(
        (&resting["state"], &resting["agent"]),
        (&json!("resting"), &json!(id))
    );
    fleet.ok(&["worktrees", "rm", "--abandoned"]);
    assert!(tree.join("made").exists());

    let removed = fleet.run(&["rm", &id]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert!(
        removed
            .stderr
            .contains(&format!("Branch caliban/agent-{id}")),
        "{}",
        removed.stderr
    );
    assert!(!tree.exists());
    let told = std::fs::read_to_string(heard).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["hook_event_name"], "WorktreeRemove");
    assert_eq!(told["name"], format!("agent-{id}"));
    assert_eq!(told["branch"], format!("caliban/agent-{id}"));
    assert_eq!(told["verdict"], "branch");
    let shown = git(root, &["show", &format!("caliban/agent-{id}:made")]);
    assert_eq!(shown, "by the agent");
}

#[test]
fn who_did_nothing_leaves_nothing() {
    let fleet = repository(Script::new([Reply::text("nothing to do")]));
    let id = spawn(&fleet, "look");
    fleet.until_state(&id, "idle");
    fleet.ok(&["rm", &id, "--force"]);
    let root = fleet.bench.workspace.path();
    assert!(!tree(&fleet, &id).exists());
    assert_eq!(
        git(
            root,
            &["for-each-ref", "refs/caliban", "refs/heads/caliban"]
        ),
        ""
    );
}

#[test]
fn a_killed_agent_goes_on_in_its_worktree() {
    let fleet = repository(Script::new([
        write("one", "1\n"),
        Reply::text("first half"),
        write("two", "2\n"),
        Reply::text("second half"),
    ]));
    let id = spawn(&fleet, "make both");
    let agent = fleet.until(&id, |agent| agent["turns"] == 2);
    let daemon = fleet.daemon();
    kill(&daemon["pid"]);
    kill(&agent["pid"]);
    fleet.until_state(&id, "crashed");
    let tree = tree(&fleet, &id);
    assert!(tree.join("one").exists());
    // What another session cleans up is not this one's.
    fleet.ok(&["worktrees", "rm", "--abandoned"]);
    fleet.ok(&["agents", "resume", &id, "--prompt", "go on"]);
    fleet.until(&id, |agent| agent["turns"] == 4);
    assert!(tree.join("one").exists() && tree.join("two").exists());
    fleet.ok(&["kill", &id]);

    // A tree that somebody removed is missed, and nothing else takes its place.
    git(
        fleet.bench.workspace.path(),
        &["worktree", "unlock", tree.to_str().unwrap()],
    );
    git(
        fleet.bench.workspace.path(),
        &["worktree", "remove", "--force", tree.to_str().unwrap()],
    );
    fleet.ok(&["agents", "resume", &id, "--prompt", "once more"]);
    let agent = fleet.until_state(&id, "failed");
    let reason = agent["reason"].as_str().unwrap();
    assert!(reason.contains("git worktree add"), "{reason}");
    assert!(!fleet.bench.workspace.path().join("one").exists());
}

#[test]
fn where_there_can_be_no_worktree_there_is_no_agent() {
    let fleet = Fleet::new([]);
    std::fs::remove_dir(fleet.bench.workspace.path().join(".git")).unwrap();
    let ran = fleet.run(&["--isolation", "worktree", "--bg", "x"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("not in a git repository"),
        "{}",
        ran.stderr
    );
    assert!(fleet.list().is_empty());
    let ran = fleet.run(&["-p", "x", "--isolation", "worktree"]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
}

#[test]
fn a_session_sends_an_agent_into_a_worktree() {
    let input = json!({
        "prompt": "inner task",
        "background": true,
        "isolation": "worktree",
    });
    let inner = |reply: Reply| reply.when(Match::any_text("inner task"));
    let fleet = repository(Script::new([
        Reply::tool("AgentTool", input).when(Match::last_user("outer")),
        Reply::text("sent").when(Match::last_user("outer")),
        inner(write("made", "inside\n")),
        inner(Reply::text("done")),
    ]));
    fleet.ok(&[
        "-p",
        "outer",
        "--permission-mode",
        "acceptEdits",
        "--allow",
        "AgentTool",
        "--deny",
        "Bash:rm *",
    ]);
    let id = fleet.list()[0]["id"].as_str().unwrap().to_owned();
    fleet.until(&id, |agent| agent["turns"] == 2);
    assert!(tree(&fleet, &id).join("made").exists());
    assert!(!fleet.bench.workspace.path().join("made").exists());
    // What was forbidden to its parent is forbidden to it.
    let rules = fleet.file(&id, "spec.json")["options"]["permissions"]["rules"].to_string();
    assert!(rules.contains("Bash:rm *"), "{rules}");
}

#[test]
fn what_nobody_came_to_remove_goes_with_the_next_daemon() {
    let fleet = repository(Script::new([write("made", "kept\n"), Reply::text("done")]));
    let id = spawn(&fleet, "make it");
    fleet.until(&id, |agent| agent["turns"] == 2);
    fleet.ok(&["kill", &id]);
    fleet.ok(&["daemon", "stop"]);
    // As if whoever removed the agent was killed before its worktree was gone.
    std::fs::remove_dir_all(fleet.directory(&id)).unwrap();
    assert!(fleet.list().is_empty());
    let root = fleet.bench.workspace.path();
    let deadline = std::time::Instant::now() + crate::fleet::PATIENCE;
    while tree(&fleet, &id).exists() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let shown = git(root, &["show", &format!("caliban/agent-{id}:made")]);
    assert_eq!(shown, "kept");
}
