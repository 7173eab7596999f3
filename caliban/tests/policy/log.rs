//! Every decision is in the log.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Bench, bare, run};
use crate::{bench, result};

fn audit(bench: &Bench, args: &[&str]) -> Vec<Value> {
    let mut command = bare(bench.home.path(), bench.workspace.path());
    let ran = run(command.args(["perms", "audit"]).args(args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines = ran.stdout.lines().filter(|line| *line != "(empty)");
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn what_is_asked_about_is_logged_as_a_question_and_its_answer() {
    let bench = bench(&[("Write", json!({"path": "out.txt", "content": "x"}))]);
    result(&bench, &[]);
    let asked = audit(&bench, &["--action", "ask"]);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["decided_by"], "rule");
    assert_eq!(asked[0]["matched_rule"]["action"], "ask");
    let denied = audit(&bench, &["--action", "deny"]);
    assert_eq!(denied.len(), 1);
    assert_eq!(denied[0]["decided_by"], "unattended");
    assert_eq!(denied[0]["tool_use_id"], asked[0]["tool_use_id"]);
}

#[test]
fn what_a_rule_denies_is_logged_once() {
    let bench = bench(&[("Bash", json!({"command": "curl x"}))]);
    let result = result(&bench, &["--deny", "Bash:curl *"]);
    assert_eq!(result["denials"].as_array().unwrap().len(), 1, "{result}");
    let rows = audit(&bench, &[]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["action"], "deny");
    assert_eq!(rows[0]["decided_by"], "rule");
}

#[test]
fn what_a_hook_refuses_is_logged() {
    let bench = bench(&[("Read", json!({"path": "a"}))]);
    let settings = json!({"hooks": {"PreToolUse": [
        {"matcher": "Read", "hooks": [{"type": "command", "command": "exit 2"}]}
    ]}});
    let result = result(&bench, &["--settings", &settings.to_string()]);
    assert_eq!(result["denials"].as_array().unwrap().len(), 1, "{result}");
    let denied = audit(&bench, &["--action", "deny"]);
    assert_eq!(denied.len(), 1);
    assert_eq!(denied[0]["tool_name"], "Read");
    assert_eq!(denied[0]["decided_by"], "hook");
    assert_eq!(audit(&bench, &[]).len(), 1);
}

#[test]
fn keys_are_not_in_the_log() {
    let key = format!("sk-ant-api03-{}", "A".repeat(90));
    let command = format!(
        "curl -H 'Authorization: Bearer {}' -d {key} x",
        "b".repeat(40)
    );
    let bench = bench(&[("Bash", json!({ "command": command }))]);
    result(&bench, &[]);
    for row in audit(&bench, &[]) {
        let excerpt = row["input_excerpt"].as_str().unwrap();
        let masked = "curl -H 'Authorization: Bearer ****' -d **** x";
        assert!(excerpt.contains(masked), "{excerpt}");
    }
}

#[test]
fn decisions_are_found_by_the_scope_of_their_rule() {
    let bench = bench(&[
        ("Read", json!({"path": "a"})),
        ("Bash", json!({"command": "echo hi"})),
    ]);
    // The command line is its flags and `--settings`.
    let overlay = json!({"permissions": {"allow": ["Read"]}}).to_string();
    result(&bench, &["--allow", "Bash:echo *", "--settings", &overlay]);
    let of_command_line = audit(&bench, &["--scope", "cli"]);
    let tools: Vec<&Value> = of_command_line
        .iter()
        .map(|row| &row["tool_name"])
        .collect();
    assert_eq!(tools, ["Read", "Bash"]);
    assert!(audit(&bench, &["--scope", "user"]).is_empty());
}

#[test]
fn packed_logs_are_searched() {
    let bench = bench(&[("Read", json!({"path": "a"}))]);
    result(&bench, &[]);
    let state = bench.home.path().join(".local/state/caliban");
    let log = state.join("permission-decisions.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let mut gzip = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let old = text.replace("\"Read\"", "\"Old\"");
    gzip.stdin
        .take()
        .unwrap()
        .write_all(old.as_bytes())
        .unwrap();
    let packed = gzip.wait_with_output().unwrap().stdout;
    std::fs::write(
        state.join("permission-decisions-2020-01-01.jsonl.gz"),
        packed,
    )
    .unwrap();
    let names = |args: &[&str]| -> Vec<String> {
        let found = audit(&bench, args).into_iter();
        found
            .map(|entry| entry["tool_name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&[]), ["Old", "Read"]);
    assert_eq!(names(&["--tool", "Old"]), ["Old"]);
    assert_eq!(names(&["--head", "1"]), ["Read"]);
    assert_eq!(names(&["--since", "2020-01-02"]), ["Read"]);
}
