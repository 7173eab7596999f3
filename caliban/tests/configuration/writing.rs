//! Settings files that are written: by one at a time, and nothing is left beside them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};

use crate::support::{Bench, Wire, run};
use crate::{answers, bench, plain, write};

#[test]
fn old_files_of_the_user_are_migrated_too() {
    let bench = bench(answers());
    let config = bench.home.path().join(".config/caliban");
    write(
        &config.join("mcp.toml"),
        "[servers.mine]\ncommand = 'x'\ndisabled = true\n",
    );
    write(&config.join("hooks.toml"), "disable_all_hooks = true\n");
    write(
        &bench.workspace.path().join(".caliban/permissions.toml"),
        "deny = ['Write']\n",
    );
    let dry = run(plain(&bench).args(["config", "migrate", "--dry-run"]));
    assert!(
        dry.stdout.contains("mine") && dry.stdout.contains("Write"),
        "{dry:?}"
    );
    assert!(!config.join("settings.toml").exists());
    let done = run(plain(&bench).args(["config", "migrate"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let shown = run(plain(&bench).args(["config", "print"]));
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(
        shown["warnings"],
        json!([]),
        "nobody is told to migrate any more"
    );
    assert_eq!(shown["settings"]["mcp_servers"]["mine"]["command"], "x");
    assert_eq!(shown["settings"]["disable_all_hooks"], true);
    assert_eq!(
        shown["settings"]["permissions"]["rules"][0]["pattern"],
        "Write"
    );
    let again = run(plain(&bench).args(["config", "migrate"]));
    assert!(again.stdout.starts_with("nothing to migrate"), "{again:?}");
}

#[test]
fn nothing_is_left_beside_a_file_that_was_written() {
    let bench = bench(answers());
    let added = run(plain(&bench).args(["perms", "add", "Bash:ls *", "allow"]));
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let directory = bench.workspace.path().join(".caliban");
    let names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["settings.toml"]);
}

struct Session {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Session {
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let frame: Value = serde_json::from_str(&line).unwrap();
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    fn say(&mut self, frame: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{frame}").unwrap();
    }
}

#[test]
fn six_consents_at_the_same_moment_are_all_kept() {
    const SESSIONS: usize = 6;
    let rule = |number: usize| format!("touch f{number}");
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new(
            (0..SESSIONS)
                .map(|number| Reply::tool("Bash", json!({"command": rule(number)})))
                .chain([Reply::text("done")]),
        )
        .after(After::RepeatLast),
    );
    let mut sessions: Vec<Session> = (0..SESSIONS)
        .map(|_| {
            let mut command = plain(&bench);
            command.args([
                "--dialect",
                "claude",
                "--permission-prompt-tool",
                "stdio",
                "--verbose",
            ]);
            command.args([
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
            ]);
            let mut child = command
                .env("IS_SANDBOX", "1")
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            Session { child, lines }
        })
        .collect();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    let mut answers = Vec::new();
    for session in &mut sessions {
        session.say(&prompt);
        let question = session.until("control_request");
        let content = question["request"]["input"]["command"].clone();
        answers.push(json!({"type": "control_response", "response": {
            "subtype": "success",
            "request_id": question["request_id"],
            "response": {
                "behavior": "allow",
                "updatedPermissions": [{
                    "type": "addRules",
                    "rules": [{"toolName": "Bash", "ruleContent": content}],
                    "behavior": "allow",
                    "destination": "localSettings",
                }],
            },
        }}));
    }
    for (session, answer) in sessions.iter_mut().zip(&answers) {
        session.say(answer);
    }
    for session in &mut sessions {
        session.until("result");
        drop(session.child.stdin.take());
        session.child.wait().unwrap();
    }
    let file = bench.workspace.path().join(".claude/settings.local.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut kept: Vec<&str> = kept["permissions"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    kept.sort_unstable();
    let expected: Vec<String> = (0..SESSIONS)
        .map(|number| format!("Bash({})", rule(number)))
        .collect();
    assert_eq!(kept, expected);
}
