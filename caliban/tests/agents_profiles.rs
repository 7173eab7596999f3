//! Agent profiles through the built binary: files that become kinds of agents.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
#![cfg(unix)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use caliban_testkit::{Match, Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Wire};

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn profile(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Knows about {name}.\n{more}---\nYou are the {name}.\n")
}

fn delegating(input: Value, inner: Vec<Reply>) -> Script {
    let mut replies = vec![Reply::tool("AgentTool", input).when(Match::last_user("outer"))];
    replies.extend(
        inner
            .into_iter()
            .map(|reply| reply.when(Match::any_text("inner task"))),
    );
    replies.push(Reply::text("inner done").when(Match::any_text("inner task")));
    replies.push(Reply::text("all done"));
    Script::new(replies)
}

fn tool_names(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_another_program_wrote_is_read_as_that_program_reads_it() {
    let input = json!({"prompt": "inner task", "subagent_type": "generated"});
    let bench = Bench::new(Wire::Anthropic, delegating(input, Vec::new()));
    let root = bench.workspace.path();
    // As its own assistant writes them: no YAML, because of the second colon.
    put(
        root,
        ".claude/agents/team/generated.md",
        "---\nname: generated\ndescription: Use this when it fits. Examples: <example>Context: a \
         user asks. user: \"do\"</example>\ntools: [\"Read\", \"Grep\"]\nmodel: sonnet\ncolor: blue\n\
         ---\nYou are the generated one.\n",
    );
    put(root, ".claude/agents/README.md", "# Our agents\n");
    put(
        root,
        ".caliban/agents/e.md",
        &profile("eager", "effort: xhigh\n"),
    );
    let ran = bench.run(["-p", "outer"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("not used"), "{}", ran.stderr);
    let requests = bench.server.model_requests();
    let inner = requests[1].json();
    assert!(
        inner["system"]
            .to_string()
            .contains("You are the generated one.")
    );
    assert_eq!(tool_names(&inner), ["Grep", "Read"]);
    let listed = bench.run(["agents", "profiles", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed[0]["effort"], "xhigh");
}

#[test]
fn a_profile_is_a_kind_of_sub_agent() {
    let input = json!({"prompt": "inner task", "subagent_type": "scout"});
    let bench = Bench::new(Wire::Anthropic, delegating(input, Vec::new()));
    let more = "tools: Read, Grep, Bash\ndisallowedTools: Bash\nmodel: claude-haiku-4-5\n";
    put(
        bench.workspace.path(),
        ".caliban/agents/s.md",
        &profile("scout", more),
    );
    put(
        bench.workspace.path(),
        ".claude/agents/o.md",
        &profile("other", "model: sonnet\n"),
    );
    let ran = bench.run(["-p", "outer"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = bench.server.model_requests();
    let (outer, inner) = (requests[0].json(), requests[1].json());
    let tool = outer["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "AgentTool")
        .unwrap();
    let kinds = &tool["input_schema"]["properties"]["subagent_type"]["enum"];
    assert_eq!(*kinds, json!(["general-purpose", "other", "scout"]));
    let about = tool["description"].as_str().unwrap();
    assert!(about.contains("scout: Knows about scout."), "{about}");
    assert_eq!(inner["model"], "claude-haiku-4-5");
    assert!(inner["system"].to_string().contains("You are the scout."));
    assert_eq!(tool_names(&inner), ["Grep", "Read"]);
}

#[test]
fn the_settings_name_a_default_and_a_call_may_name_another() {
    let bench = Bench::new(
        Wire::Anthropic,
        delegating(json!({"prompt": "inner task"}), Vec::new()),
    );
    let user = bench.home.path().join(".config/caliban");
    put(
        &user,
        "agents/d.md",
        &profile("default-one", "effort: high\n"),
    );
    put(&user, "settings.toml", "agent = \"default-one\"\n");
    let ran = bench.run(["-p", "outer"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("no effect"), "{ran:?}");
    let inner = bench.server.model_requests()[1].json();
    assert!(
        inner["system"]
            .to_string()
            .contains("You are the default-one.")
    );
    put(&user, "settings.toml", "agent = \"nobody\"\n");
    let ran = bench.run(["-p", "/status"]);
    assert!(ran.stderr.contains("`nobody`"), "{ran:?}");
}

#[test]
fn the_session_is_the_profile_that_is_named() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("ok"), Reply::text("ok")]),
    );
    put(
        bench.workspace.path(),
        ".caliban/agents/s.md",
        &profile("scout", "tools: [Read]\nmodel: claude-haiku-4-5\n"),
    );
    let ran = bench.run(["-p", "x", "--agent", "scout"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let request = bench.server.model_requests()[0].json();
    assert!(request["system"].to_string().contains("You are the scout."));
    assert_eq!(request["model"], "claude-haiku-4-5");
    assert_eq!(tool_names(&request), ["Read"]);
    // What is asked for beside it counts before.
    bench.run([
        "-p",
        "x",
        "--agent",
        "scout",
        "--model",
        "claude-sonnet-4-6",
        "--system",
        "Mine.",
    ]);
    let request = bench.server.model_requests()[1].json();
    assert_eq!(request["model"], "claude-sonnet-4-6");
    assert!(request["system"].to_string().contains("Mine."));
    let unknown = bench.run(["-p", "x", "--agent", "scuot"]);
    assert_eq!(unknown.code, Some(64), "{unknown:?}");
    assert!(unknown.stderr.contains("there are: scout"), "{unknown:?}");
}

#[test]
fn profiles_are_listed_and_bad_ones_are_told_with_their_line() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    let root = bench.workspace.path();
    let more = "isolation: worktree\nbackground: true\nmemory: project\neffort: low\n";
    put(root, ".caliban/agents/s.md", &profile("scout", more));
    put(
        root,
        ".caliban/agents/bad.md",
        "---\nname: bad\ndescription: d\nisolation: jail\n---\n",
    );
    let ran = bench.run(["agents", "profiles", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let scout = &listed[0];
    assert_eq!(
        (
            &scout["name"],
            &scout["origin"],
            &scout["isolation"],
            &scout["memory"]
        ),
        (
            &json!("scout"),
            &json!("project"),
            &json!("worktree"),
            &json!("project")
        )
    );
    assert_eq!(
        (&scout["background"], &scout["effort"]),
        (&json!(true), &json!("low"))
    );
    assert!(ran.stderr.contains("bad.md:4`"), "{ran:?}");
    let plain = bench.run(["agents", "profiles"]);
    assert!(
        plain.stdout.contains("Knows about scout. (project)"),
        "{plain:?}"
    );
    let slash = bench.run(["-p", "/agents"]);
    assert!(
        slash.stdout.contains("scout") && slash.stdout.contains("in a worktree"),
        "{slash:?}"
    );
    assert!(slash.stderr.contains("bad.md:4`"), "{slash:?}");
    assert_eq!(bench.server.model_requests().len(), 0);
}

#[test]
fn the_project_comes_before_the_user_and_says_so() {
    let input = json!({"prompt": "inner task", "subagent_type": "scout"});
    let bench = Bench::new(Wire::Anthropic, delegating(input, Vec::new()));
    let user = bench.home.path().join(".config/caliban/agents/s.md");
    put(
        Path::new("/"),
        user.to_str().unwrap(),
        &profile("scout", "tools: Read\n"),
    );
    let of_project = profile("scout", "tools: Grep\n");
    put(bench.workspace.path(), ".caliban/agents/s.md", &of_project);
    let ran = bench.run(["-p", "outer"]);
    assert!(
        ran.stderr.contains("the agent `scout` (project) replaces"),
        "{ran:?}"
    );
    let inner = bench.server.model_requests()[1].json();
    assert_eq!(tool_names(&inner), ["Grep"]);
}

#[test]
fn hooks_of_the_user_stay_unless_the_workspace_is_trusted() {
    let input = json!({"prompt": "inner task", "subagent_type": "quiet"});
    let write = || Reply::tool("Write", json!({"file_path": "f", "content": "x"}));
    for (trust, heard_by_hooks) in [(&[][..], true), (&["--trust-workspace"][..], false)] {
        let bench = Bench::new(Wire::Anthropic, delegating(input.clone(), vec![write()]));
        let log = bench.home.path().join("heard");
        let handler = format!("echo heard >> {}", log.display());
        let settings = format!(
            "[[hooks.PostToolUse]]\nmatcher = \"Write\"\nhooks = [{{ type = \"command\", command = \"{handler}\" }}]\n"
        );
        put(
            bench.home.path(),
            ".config/caliban/settings.toml",
            &settings,
        );
        let quiet = profile("quiet", "inherit_hooks: false\n");
        put(bench.workspace.path(), ".caliban/agents/q.md", &quiet);
        let ran = bench.run(["-p", "outer", "--auto-allow"].iter().chain(trust));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(log.exists(), heard_by_hooks, "{trust:?}");
    }
}

#[test]
fn a_profile_keeps_notes_of_its_own() {
    let input = json!({"prompt": "inner task", "subagent_type": "keeper"});
    let note = json!({"topic": "build", "description": "How to build", "content": "cargo b", "type": "reference"});
    let bench = Bench::new(
        Wire::Anthropic,
        delegating(input, vec![Reply::tool("WriteMemoryTopic", note)]),
    );
    let keeper = profile("keeper", "tools: Read\nmemory: true\n");
    put(bench.workspace.path(), ".caliban/agents/k.md", &keeper);
    let ran = bench.run(["-p", "outer", "--auto-allow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let inner = bench.server.model_requests()[1].json();
    assert_eq!(
        tool_names(&inner),
        ["Read", "ReadMemoryTopic", "WriteMemoryTopic"]
    );
    let found = Command::new("find")
        .arg(bench.home.path())
        .args(["-path", "*/agents/keeper/build.md"])
        .output()
        .unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(
        !found.trim().is_empty(),
        "{}",
        bench.server.model_requests()[2].json()["messages"]
    );
}

#[test]
fn a_profile_may_want_a_worktree() {
    let input = json!({"prompt": "inner task", "subagent_type": "apart"});
    let write = Reply::tool("Write", json!({"file_path": "f", "content": "x\n"}));
    let bench = Bench::new(Wire::Anthropic, delegating(input, vec![write]));
    let root = bench.workspace.path();
    put(
        root,
        ".caliban/agents/a.md",
        &profile("apart", "isolation: worktree\n"),
    );
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-qm",
            "x",
        ],
    ] {
        let done = Command::new("git")
            .args(args)
            .current_dir(root)
            .env("HOME", root)
            .output();
        assert!(done.unwrap().status.success());
    }
    let ran = bench.run(["-p", "outer", "--auto-allow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!root.join("f").exists());
    let listed = bench.run(["worktrees", "list"]);
    assert!(listed.stdout.contains("1 commits"), "{listed:?}");
}

#[test]
fn the_claude_dialect_reads_the_same_files() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("ok"), Reply::text("ok")]),
    );
    put(
        bench.workspace.path(),
        ".claude/agents/s.md",
        &profile("scout", "tools: Read\nmodel: haiku\n"),
    );
    let mut command = bench.command();
    command.args([
        "--dialect",
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
    ]);
    let ran = command.args(["--agent=scout", "x"]).output().unwrap();
    let stdout = String::from_utf8(ran.stdout).unwrap();
    let init: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert!(
        init["agents"].as_array().unwrap().contains(&json!("scout")),
        "{init}"
    );
    let request = bench.server.model_requests()[0].json();
    assert_eq!(request["model"], "claude-haiku-4-5");
    assert!(request["system"].to_string().contains("You are the scout."));
}
