//! Shell commands in the text of commands: run when the command is typed, after everybody who
//! judges calls was asked.

use std::path::Path;

use serde_json::json;

use crate::support::{Bench, Ran, run};
use crate::{bench, go, init, ok, plugin_ok, record, requests, user_root, warnings, write};

/// A plugin with one command.
fn with_command(directory: &Path, name: &str, text: &str) {
    let manifest = json!({"name": name, "version": "1.0.0"});
    write(&directory.join("plugin.json"), &manifest.to_string());
    write(&directory.join("commands/look.md"), text);
}

fn typed(bench: &Bench, line: &str, args: &[&str]) -> Ran {
    let mut command = bench.command();
    command
        .args(["--output-format", "stream-json", "-p", line])
        .args(args)
        .env("RECORD", record(bench));
    run(&mut command)
}

fn prompt(bench: &Bench) -> String {
    let request = requests(bench).pop().unwrap();
    request["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

const LOOK: &str = "---\nallowed-tools: Bash(echo:*), Bash(cat:*)\n---\nState: !`echo one $1`\n```!\ncat ${CLAUDE_PLUGIN_ROOT}/note.txt\n```\nBut not `!` nor:\n```\n!`touch never`\n```\nGo on.\n";

#[test]
fn output_takes_the_place_of_what_is_run() {
    let bench = bench(ok());
    let root = user_root(&bench).join("tools");
    with_command(&root, "tools", LOOK);
    write(&root.join("note.txt"), "noted\n");
    let ran = typed(&bench, "/tools:look two", &[]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let prompt = prompt(&bench);
    assert!(
        prompt.contains("State: one two\\nnoted\\nBut not `!` nor:\\n```\\n!`touch never`"),
        "{prompt}"
    );
    assert!(!bench.workspace.path().join("never").exists());
    // What it runs is told before.
    let told = warnings(&init(&ran));
    assert!(
        told.contains("runs `echo one $1` when `/tools:look` is typed"),
        "{told}"
    );
    let info = plugin_ok(&bench, &["info", "tools"]);
    assert!(info.contains("when `/tools:look` is typed"), "{info}");
}

#[test]
fn what_no_rule_allows_is_refused_and_nothing_is_sent() {
    let bench = bench(ok());
    with_command(
        &user_root(&bench).join("tools"),
        "tools",
        "---\nallowed-tools: Bash(echo:*)\n---\n!`touch made`\n",
    );
    let ran = typed(&bench, "/tools:look", &[]);
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("runs `touch made` in its text"), "{told}");
    assert!(!bench.workspace.path().join("made").exists());
    assert!(bench.server.model_requests().is_empty());
    // Arguments bring nothing in: neither commands of their own nor more than is allowed.
    with_command(
        &user_root(&bench).join("tools"),
        "tools",
        "---\nallowed-tools: Bash(echo:*)\n---\nSaid: $ARGUMENTS !`echo $1`\n",
    );
    let ran = typed(&bench, "/tools:look '; touch made'", &[]);
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    let ran = typed(&bench, "/tools:look x !`touch made`", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(
        prompt(&bench).contains("Said: x !`touch made` x"),
        "{}",
        prompt(&bench)
    );
    assert!(!bench.workspace.path().join("made").exists());
    // With a rule of the user's it runs.
    let ran = typed(
        &bench,
        "/tools:look '; touch made'",
        &["--allow", "Bash(touch:*)", "--allow", "Bash(echo:*)"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(bench.workspace.path().join("made").exists());
}

#[test]
fn hooks_see_it_and_modes_hold() {
    let bench = bench(ok());
    with_command(
        &user_root(&bench).join("tools"),
        "tools",
        "---\nallowed-tools: Bash(echo:*)\n---\n!`echo one`\n",
    );
    let hook = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "cat >> \"$RECORD\"; exit 2"}]}]}});
    let ran = typed(&bench, "/tools:look", &["--settings", &hook.to_string()]);
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    assert!(crate::recorded(&bench).contains("echo one"));
    let deny = json!({"permissions": {"deny": ["Bash(echo:*)"]}});
    let ran = typed(&bench, "/tools:look", &["--settings", &deny.to_string()]);
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn nothing_of_a_repository_runs_before_it_is_trusted() {
    let bench = bench(ok());
    write(
        &bench.workspace.path().join(".caliban/commands/look.md"),
        "---\nallowed-tools: Bash\n---\n!`touch made`\nSo.\n",
    );
    let ran = typed(&bench, "/look", &["--auto-allow"]);
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("not trusted"), "{told}");
    assert!(!bench.workspace.path().join("made").exists());
    go(&bench, &["--trust-workspace", "-p", "/look"]);
    assert!(bench.workspace.path().join("made").exists());
}
