//! Hooks that add, send on and look on.

use std::process::Command;

use caliban_testkit::{Match, Reply, Script, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::server::{Answer, PermissionServer};
use crate::support::{Bench, Wire, finish};
use crate::{
    Caller, bench, event_frames, frames, go, go_with, hook_frames, is_written, messages, names, ok,
    put, recorded, recorder, result, settings, shell, texts, write_call, writes,
};

#[rstest]
#[case::code("echo 'no such words' >&2; exit 2")]
#[case::json(r#"echo '{"decision": "block", "reason": "no such words"}'"#)]
#[case::halt(r#"echo '{"continue": false, "stopReason": "no such words"}'"#)]
fn a_prompt_can_be_refused(#[case] script: &str) {
    let bench = bench(ok());
    let settings = settings(&[("UserPromptSubmit", "", shell(script))]);
    let ran = go(&bench, &settings, &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let result = result(&ran);
    assert_eq!(result["subtype"], "error");
    assert!(
        result["error"].to_string().contains("no such words"),
        "{result}"
    );
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn a_hook_that_cannot_judge_a_prompt_refuses_it() {
    let bench = bench(ok());
    let missing = json!({"type": "command", "command": "/nowhere/guard"});
    let ran = go(&bench, &settings(&[("UserPromptSubmit", "", missing)]), &[]);
    assert_eq!(ran.code, Some(1));
    assert!(bench.server.model_requests().is_empty());
}

#[rstest]
fn text_is_added_to_a_prompt_and_a_start(#[values(Wire::Anthropic, Wire::Chat)] wire: Wire) {
    let bench = Bench::new(wire, ok());
    put(
        bench.workspace.path(),
        ".caliban/commands/hi.md",
        "Say hi to $ARGUMENTS.",
    );
    let json = r#"echo '{"hookSpecificOutput": {"additionalContext": "It is raining."}}'"#;
    let settings = settings(&[
        ("SessionStart", "startup", shell("echo 'Branch: main'")),
        ("SessionStart", "resume", shell("echo never")),
        ("UserPromptSubmit", "", shell(json)),
        ("UserPromptSubmit", "", recorder()),
        ("SessionStart", "", recorder()),
    ]);
    let ran = go(&bench, &settings, &["-p", "/hi Ada"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request = bench.server.model_requests()[0].json();
    let message = request["messages"].as_array().unwrap().last().unwrap();
    let said = match &message["content"] {
        Value::String(text) => text.clone(),
        _ => texts(message).join("\n\n"),
    };
    assert_eq!(said, "Say hi to Ada.\n\nIt is raining.\n\nBranch: main");
    // Hooks are told what was typed.
    let told = recorded(&bench);
    assert_eq!(names(&told), ["SessionStart", "UserPromptSubmit"]);
    assert_eq!(told[0]["source"], "startup");
    assert_eq!(told[1]["prompt"], "/hi Ada");
    assert_eq!(
        (&told[1]["is_slash"], &told[1]["command"], &told[1]["args"]),
        (&json!(true), &json!("hi"), &json!("Ada"))
    );
}

/// The parser comes after the hooks: they see, and may change, what it would refuse.
#[test]
fn hooks_see_commands_that_there_are_not() {
    let bench = bench(ok());
    let only_told = settings(&[("UserPromptSubmit", "", recorder())]);
    let ran = go(&bench, &only_told, &["-p", "/deploy"]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    let told = recorded(&bench);
    assert_eq!(
        (&told[0]["is_slash"], &told[0]["command"], &told[0]["args"]),
        (&json!(true), &json!("deploy"), &json!(""))
    );
    let answer = r#"echo '{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","updatedInput":{"prompt":"Deploy it."}}}'"#;
    let changed = settings(&[("UserPromptSubmit", "", shell(answer))]);
    let ran = go(&bench, &changed, &["-p", "/deploy"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = bench.server.model_requests()[0].json();
    assert!(asked["messages"].to_string().contains("Deploy it."));
}

#[test]
fn a_session_starts_once_and_ends_once() {
    let bench = bench(ok());
    let settings = settings(&[
        ("SessionStart", "", recorder()),
        ("UserPromptSubmit", "", recorder()),
        ("SessionEnd", "", recorder()),
    ]);
    let mut command = bench.command();
    command
        .args(["--input-format", "stream-json"])
        .args(["--output-format", "stream-json"])
        .args(["--settings", &settings.to_string()])
        .env("RECORD", crate::record(&bench));
    let input = "{\"type\":\"user\",\"content\":\"a\"}\n{\"type\":\"user\",\"content\":\"b\"}\n";
    let ran = crate::support::run_with_input(&mut command, input.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = recorded(&bench);
    assert_eq!(
        names(&told),
        [
            "SessionStart",
            "UserPromptSubmit",
            "UserPromptSubmit",
            "SessionEnd"
        ]
    );
    assert_eq!(told[3]["reason"], "exit");
}

#[test]
fn the_model_is_sent_on_three_times_at_most() {
    let script = Script::new([
        Reply::text("one"),
        Reply::text("two"),
        Reply::text("three"),
        Reply::text("four"),
    ]);
    let bench = bench(script);
    let go_on = r#"cat >> "$RECORD"; echo '{"decision": "block", "reason": "Check again."}'"#;
    let ran = go(&bench, &settings(&[("Stop", "", shell(go_on))]), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(result(&ran)["result"], "four");
    assert_eq!(bench.server.model_requests().len(), 4);
    let last = messages(&bench, 3);
    assert_eq!(texts(last.last().unwrap()), ["Check again."]);
    let told = recorded(&bench);
    assert_eq!(names(&told), ["Stop"; 4]);
    let active: Vec<bool> = told
        .iter()
        .map(|event| event["stop_hook_active"].as_bool().unwrap())
        .collect();
    assert_eq!(active, [false, true, true, true]);
    assert_eq!(told[0]["last_assistant_message"], "one");
}

#[test]
fn those_who_look_on_are_told_everything() {
    let script = Script::new([
        Reply::tools([
            ("Read", json!({"path": "f.txt"})),
            ("Read", json!({"path": "missing.txt"})),
            ("Write", json!({"path": "out.txt", "content": "x"})),
        ]),
        Reply::tool("AgentTool", json!({"prompt": "sub"})),
        Reply::tool("Read", json!({"path": "f.txt"})).when(Match::last_user("sub")),
        Reply::text("sub done"),
        Reply::text("done"),
    ]);
    let bench = bench(script);
    put(bench.workspace.path(), "f.txt", "content of f");
    let events = [
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PermissionDenied",
        "SubagentStart",
        "SubagentStop",
        "TaskCreated",
        "TaskCompleted",
        "Stop",
        "SessionEnd",
    ];
    let hooks: Vec<_> = events.map(|event| (event, "", recorder())).into();
    let ran = go(&bench, &settings(&hooks), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = recorded(&bench);
    let session = &frames(&ran)[0]["session_id"];
    assert!(told.iter().all(|event| &event["session_id"] == session));
    let of = |name: &str| -> Vec<&Value> {
        let is_it = |event: &&Value| event["hook_event_name"] == name;
        told.iter().filter(is_it).collect()
    };
    let used = of("PostToolUse");
    let tools: Vec<&str> = used
        .iter()
        .map(|event| event["tool_name"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["Read", "Read", "AgentTool"], "{told:?}");
    let agents: Vec<&Value> = used.iter().map(|event| &event["agent_id"]).collect();
    let of_the_sub_agent = &of("SubagentStart")[0]["agent_id"];
    assert!(of_the_sub_agent.is_string());
    assert_eq!(agents, [&Value::Null, of_the_sub_agent, &Value::Null]);
    let response = &used[0]["tool_response"];
    assert!(
        response["content"].to_string().contains("content of f"),
        "{response}"
    );
    let failed = of("PostToolUseFailure");
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["tool_input"]["path"], "missing.txt");
    assert_eq!(of("PermissionRequest")[0]["tool_name"], "Write");
    assert_eq!(of("PermissionDenied")[0]["denied_by"], "unattended");
    assert_eq!(of("SubagentStart")[0]["prompt"], "sub");
    assert_eq!(of("SubagentStop")[0]["last_assistant_message"], "sub done");
    let task = of("TaskCreated")[0];
    assert_eq!(task["task"], "sub");
    assert_eq!(of("TaskCompleted")[0]["task_id"], task["task_id"]);
    // The end of a sub-agent is not the session's.
    assert_eq!(of("Stop").len(), 1);
    assert_eq!(of("SessionEnd").len(), 1);
}

#[test]
fn compaction_is_told_before_and_after() {
    let large = Usage {
        input: 190_000,
        ..Usage::SMALL
    };
    let mut full = Reply::tool("Read", json!({"path": "f.txt"}));
    full.usage = Some(large);
    let script = Script::new([full, Reply::text("summary"), Reply::text("done")]);
    let bench = bench(script);
    put(bench.workspace.path(), "f.txt", "x");
    let mut settings = settings(&[
        ("PreCompact", "auto", recorder()),
        ("PreCompact", "manual", shell("echo never >> \"$RECORD\"")),
        ("PostCompact", "", recorder()),
    ]);
    settings["auto_compact_threshold"] = 0.1.into();
    let ran = go(&bench, &settings, &[]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stderr, ran.stdout);
    let told = recorded(&bench);
    assert_eq!(names(&told), ["PreCompact", "PostCompact"]);
    assert_eq!(told[0]["trigger"], "auto");
    assert_eq!(told[0]["reason"], "threshold");
    assert!(told[1]["before_tokens"].as_u64() > told[1]["after_tokens"].as_u64());
}

#[test]
fn what_hooks_say_about_a_call_stands_beside_its_result() {
    let lint = "cat > /dev/null; echo 'line 1: trailing space' >&2; exit 2";
    let context = r#"echo '{"hookSpecificOutput": {"additionalContext": "Formatted."}}'"#;
    let before = r#"echo '{"hookSpecificOutput": {"additionalContext": "Mind the gap."}}'"#;
    let settings = settings(&[
        ("PreToolUse", "Write", shell(before)),
        ("PostToolUse", "Edit|Write", shell(lint)),
        ("PostToolUse", "Write", shell(context)),
        ("PostToolUse", "Read", shell("exit 2")),
    ]);
    let bench = bench(writes(Caller::Parent));
    let ran = go(&bench, &settings, &["--allow", "Write"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // The call has run; nothing takes it back.
    assert!(is_written(&bench));
    let last = messages(&bench, 1).pop().unwrap();
    assert_eq!(
        texts(&last),
        ["Mind the gap.\n\nline 1: trailing space\n\nFormatted."]
    );
    assert_eq!(last["content"][0]["type"], "tool_result");
}

#[test]
fn a_sub_agent_can_do_without_onlookers_but_not_without_judges() {
    let script = |inherit: bool| {
        let input = json!({"prompt": "sub", "inherit_hooks": inherit, "isolation": "none"});
        Script::new([
            Reply::tool("AgentTool", input),
            write_call().when(Match::last_user("sub")),
            Reply::text("sub done"),
            Reply::text("done"),
        ])
    };
    let told = |inherit: bool, judge: &str| {
        let bench = bench(script(inherit));
        let settings = settings(&[
            ("PreToolUse", "Write", shell(judge)),
            ("PostToolUse", "", recorder()),
            ("SubagentStart", "", recorder()),
        ]);
        go(&bench, &settings, &["--auto-allow"]);
        let told = recorded(&bench);
        let tools: Vec<Value> = told
            .iter()
            .filter_map(|event| event.get("tool_name").cloned())
            .collect();
        assert_eq!(told.len(), tools.len() + 1, "{told:?}");
        (tools, is_written(&bench))
    };
    let (all, written) = told(true, "true");
    assert_eq!((json!(all), written), (json!(["Write", "AgentTool"]), true));
    let (own, written) = told(false, "true");
    assert_eq!((json!(own), written), (json!(["AgentTool"]), true));
    let (_, written) = told(false, "exit 2");
    assert!(!written);
}

#[test]
fn what_hooks_say_to_a_sub_agent_its_parent_does_not_read() {
    let context = r#"echo '{"hookSpecificOutput": {"additionalContext": "Formatted."}}'"#;
    let settings = settings(&[("PostToolUse", "Write", shell(context))]);
    let bench = bench(writes(Caller::SubAgent));
    go(&bench, &settings, &["--allow", "Write"]);
    assert!(is_written(&bench));
    let told: Vec<bool> = (0..4)
        .map(|request| {
            let last = messages(&bench, request).pop().unwrap();
            texts(&last).contains(&"Formatted.".to_owned())
        })
        .collect();
    assert_eq!(told, [false, false, true, false]);
}

#[test]
fn every_firing_is_a_frame_where_frames_are_asked_for() {
    let settings = settings(&[
        ("SessionStart", "", shell("true")),
        ("PreToolUse", "Write", shell("exit 0")),
        ("PreToolUse", "Bash", shell("exit 2")),
        ("PostToolUse", "Write", shell("echo oops >&2; exit 7")),
    ]);
    let ran = |args: &[&str]| {
        let bench = bench(writes(Caller::Parent));
        go(&bench, &settings, args)
    };
    assert!(event_frames(&ran(&["--allow", "Write"])).is_empty());
    let ran = ran(&["--allow", "Write", "--include-hook-events"]);
    let fired = hook_frames(&ran);
    let summary: Vec<_> = fired
        .iter()
        .map(|frame| {
            let output = &frame["hookSpecificOutput"];
            (
                frame["hookEventName"].as_str().unwrap(),
                output["matcher"].as_str().unwrap(),
                output["decision"].as_str().unwrap(),
                output["scope"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        summary,
        [
            ("SessionStart", "*", "none", "cli"),
            ("PreToolUse", "Write", "allow", "cli"),
            ("PostToolUse", "Write", "none", "cli"),
        ]
    );
    let warning = &fired[2]["hookSpecificOutput"]["warning"];
    assert_eq!(warning, "it exited with code 7: oops");
    let all = frames(&ran);
    let told = all.iter().find(|frame| frame["subtype"] == "hook").unwrap();
    assert_eq!(
        told["message"],
        "the PostToolUse hook `: ; echo oops >&2; exit 7` in the cli settings: \
         it exited with code 7: oops"
    );
    let order: Vec<_> = all
        .iter()
        .map(|frame| frame["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(order.first().unwrap(), "system");
    assert_eq!(order.last().unwrap(), "result");
}

#[rstest]
#[case::allowed(&["--allow", "Write"], &[("PreToolUse", "Write", "allow"), ("PostToolUse", "Write", "none")])]
#[case::denied(&["--deny", "Write"], &[("PreToolUse", "Write", "deny"), ("PermissionDenied", "Write", "none")])]
#[case::asked(&[], &[("PreToolUse", "Write", "ask"), ("PermissionRequest", "Write", "none"), ("Notification", "permission_prompt", "none"), ("PermissionDenied", "Write", "none")])]
fn events_without_handlers_and_verdicts_of_rules_are_frames_too(
    #[case] args: &[&str],
    #[case] call: &[(&str, &str, &str)],
) {
    let bench = bench(writes(Caller::Parent));
    let args = [args, &["--include-hook-events"]].concat();
    let ran = go(&bench, &settings(&[]), &args);
    let told = event_frames(&ran);
    let summary: Vec<_> = told
        .iter()
        .map(|frame| {
            let output = &frame["hookSpecificOutput"];
            (
                frame["hookEventName"].as_str().unwrap(),
                output["matcher"].as_str().unwrap(),
                output["decision"].as_str().unwrap(),
            )
        })
        .collect();
    let before = [
        ("SessionStart", "startup", "none"),
        ("UserPromptSubmit", "*", "none"),
    ];
    let after = [
        ("Stop", "*", "none"),
        ("Notification", "run_ended", "none"),
        ("SessionEnd", "*", "none"),
    ];
    assert_eq!(summary, [&before[..], call, &after[..]].concat());
    assert_eq!(told[2]["hookSpecificOutput"]["handler"], "permissions");
}

#[rstest]
#[case::text(r#"{"prompt": "/hi Grace"}"#)]
#[case::command(r#"{"command": "hi", "args": "Grace"}"#)]
fn a_prompt_can_be_rewritten_before_commands_are_found_in_it(#[case] input: &str) {
    let bench = bench(ok());
    put(
        bench.workspace.path(),
        ".caliban/commands/hi.md",
        "Say hi to $ARGUMENTS.",
    );
    let rewrite = format!(r#"echo '{{"hookSpecificOutput": {{"updatedInput": {input}}}}}'"#);
    let settings = settings(&[
        ("UserPromptSubmit", "", shell(&rewrite)),
        ("UserPromptSubmit", "", shell("echo 'It is raining.'")),
        ("UserPromptSubmit", "", recorder()),
    ]);
    let ran = go(&bench, &settings, &["-p", "/hi Ada"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = texts(&messages(&bench, 0)[0]);
    assert_eq!(said, ["Say hi to Grace.", "It is raining."]);
    assert_eq!(recorded(&bench)[0]["prompt"], "/hi Grace");
}

#[test]
fn a_prompt_rewritten_to_nothing_known_is_refused() {
    let bench = bench(ok());
    let rewrite = r#"echo '{"hookSpecificOutput": {"updatedInput": {"text": "x"}}}'"#;
    let settings = settings(&[("UserPromptSubmit", "", shell(rewrite))]);
    let ran = go(&bench, &settings, &[]);
    assert_eq!(ran.code, Some(1));
    let error = result(&ran)["error"].to_string();
    assert!(
        error.contains("neither a `prompt` nor a `command`"),
        "{error}"
    );
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn a_change_of_an_edited_file_by_somebody_else_is_told_once() {
    let script = Script::new([
        write_call(),
        Reply::tool(
            "Edit",
            json!({"path": "out.txt", "old_string": "x", "new_string": "xy"}),
        ),
        Reply::tool("Bash", json!({"command": "echo more >> out.txt"})),
        Reply::tool("Read", json!({"path": "out.txt"})),
        Reply::text("done"),
    ]);
    let bench = bench(script);
    let settings = settings(&[("FileChanged", "", recorder())]);
    let ran = go(&bench, &settings, &["--allow", "*"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = recorded(&bench);
    assert_eq!(names(&told), ["FileChanged"]);
    let path = bench.workspace.path().join("out.txt");
    let path = path.canonicalize().unwrap().display().to_string();
    assert_eq!(told[0]["path"], json!(path));
}

#[test]
fn handlers_beside_have_two_frames_and_no_say() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("fifo");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let path = path.display();
    let mut handler = shell(&format!("echo $$ > '{path}'; exit 2"));
    handler["async"] = true.into();
    // The command waits for the end of the handler, whose refusal does not count.
    let wait = format!("pid=$(cat '{path}'); while kill -0 $pid; do sleep 0.05; done; true");
    let script = Script::new([
        Reply::tool("Bash", json!({"command": wait})),
        Reply::text("done"),
    ]);
    let bench = bench(script);
    let settings = settings(&[("PreToolUse", "Bash", handler)]);
    let ran = go(
        &bench,
        &settings,
        &["--allow", "Bash", "--include-hook-events"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(result(&ran)["denials"], json!([]));
    let fired = hook_frames(&ran);
    let told: Vec<_> = fired
        .iter()
        .map(|frame| &frame["hookSpecificOutput"])
        .map(|output| (&output["phase"], &output["decision"]))
        .collect();
    let (started, finished, none) = (json!("started"), json!("finished"), json!("none"));
    assert_eq!(told, [(&started, &none), (&finished, &none)]);
}

#[test]
fn an_agent_of_a_hook_works_beside_and_passes_the_gate() {
    let handler = json!({"type": "agent", "prompt": "Keep a diary."});
    let settings = settings(&[("UserPromptSubmit", "", handler)]);
    let diary = |path: &str| Reply::tool("Write", json!({"path": path, "content": "x"}));
    let is_diary = || Match::any_text("Keep a diary.");
    // The main agent waits until the other one is done.
    let script = Script::new([
        Reply::tools([
            ("Write", json!({"path": "diary.txt", "content": "x"})),
            ("Write", json!({"path": "secret.txt", "content": "x"})),
        ])
        .when(is_diary()),
        Reply::text("written").when(is_diary()),
        Reply::tool(
            "Bash",
            json!({"command": "until [ -e diary.txt ]; do sleep 0.05; done"}),
        ),
        diary("out.txt"),
        Reply::text("done"),
    ]);
    let bench = bench(script);
    let ran = go(
        &bench,
        &settings,
        &[
            "--deny",
            "Write:secret.txt",
            "--allow",
            "Write",
            "--allow",
            "Bash",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(result(&ran)["result"], "done");
    assert!(bench.workspace.path().join("diary.txt").exists());
    assert!(!bench.workspace.path().join("secret.txt").exists());
}

#[test]
fn an_interrupt_does_not_wait_for_a_hook() {
    for event in ["UserPromptSubmit", "Stop", "SessionStart", "PreToolUse"] {
        let server = PermissionServer::start(Answer::Hang);
        let handler = json!({"type": "http", "url": server.url()});
        let settings = settings(&[(event, "", handler)]);
        let bench = bench(Script::new([write_call(), Reply::text("done")]));
        let child = bench
            .command()
            .args(["-p", "go", "--allow", "Write"])
            .args(["--settings", &settings.to_string()])
            .spawn()
            .unwrap();
        assert_eq!(server.next_question()["hook_event_name"], event);
        let began = std::time::Instant::now();
        let pid = child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        assert!(sent.success());
        let ran = finish(child);
        assert_eq!(ran.code, Some(124), "{event}: {}", ran.stderr);
        // The handler has a minute.
        assert!(began.elapsed().as_secs() < 20, "{event}");
    }
}

#[test]
fn hooks_of_claude_code_work_unchanged() {
    let bench = bench(Script::new([
        Reply::tool("Bash", json!({"command": "rm -rf build"})),
        Reply::tool("Bash", json!({"command": "echo fine"})),
        write_call(),
        Reply::text("done"),
    ]));
    let project = bench.workspace.path();
    put(
        project,
        ".claude/hooks/no-rm.sh",
        r#"#!/bin/bash
input=$(cat)
if grep -q '"command":"rm -rf' <<< "$input"; then
  echo "rm -rf is not for agents" >&2
  exit 2
fi
"#,
    );
    put(
        project,
        ".claude/hooks/approve.sh",
        r#"#!/bin/sh
grep -q '"tool_name":"Write"' && cat <<'JSON'
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
 "permissionDecisionReason": "documentation"}, "suppressOutput": true}
JSON
exit 0
"#,
    );
    let settings = json!({"hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [
                {"type": "command", "command": "bash \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/no-rm.sh", "timeout": 10}
            ]},
            {"matcher": "Edit|MultiEdit|Write", "hooks": [
                {"type": "command", "command": "sh $CLAUDE_PROJECT_DIR/.claude/hooks/approve.sh"}
            ]}
        ],
        "PostToolUse": [{"matcher": "", "hooks": [
            {"type": "command", "command": "cat >> \"$RECORD\""}
        ]}],
        "Stop": [{"hooks": [{"type": "command", "command": "true"}]}]
    }});
    let ran = go_with(&bench, &settings, |command| {
        command.args(["--allow", "Bash"]);
    });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result = result(&ran);
    let denials = result["denials"].as_array().unwrap();
    assert_eq!(denials.len(), 1, "{result}");
    assert_eq!(denials[0]["reason"], "rm -rf is not for agents");
    assert!(is_written(&bench));
    assert_eq!(names(&recorded(&bench)), ["PostToolUse"; 2]);
}
