//! What the answers of hooks are worth, who is asked at all, and what hooks are told besides.

use caliban_testkit::{Match, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::server::{Answer, PermissionServer};
use crate::support::apart::under_operator;
use crate::switches::user;
use crate::{
    Caller, bench, event_frames, frames, go, go_with, is_written, names, ok, record, recorded,
    recorder, result, run, settings, shell, write_call, writes,
};

#[rstest]
#[case::words("hello world", true)]
#[case::misplaced(
    r#"{"permissionDecision": "deny", "permissionDecisionReason": "not here"}"#,
    false
)]
#[case::misplaced_question(r#"{"permissionDecision": "ask"}"#, false)]
#[case::broken("{bad", false)]
#[case::a_page("<html>log in</html>", false)]
fn an_answer_means_the_same_from_a_program_and_a_service(
    #[case] answer: &'static str,
    #[case] runs: bool,
) {
    let server = PermissionServer::start(Answer::Text(answer));
    let service = json!({"type": "http", "url": server.url()});
    let program = shell(&format!("printf %s '{answer}'"));
    for handler in [program, service] {
        let bench = bench(writes(Caller::Parent));
        let settings = settings(&[("PreToolUse", "Write", handler)]);
        let ran = go(&bench, &settings, &["--allow", "Write"]);
        assert_eq!(is_written(&bench), runs, "{}", ran.stdout);
        let warned = frames(&ran).iter().any(|frame| frame["type"] == "warning");
        assert_eq!(
            warned,
            !runs && !answer.contains("permission"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn a_denial_in_the_wrong_place_says_why() {
    let bench = bench(writes(Caller::Parent));
    let answer = r#"echo '{"permissionDecision": "deny", "permissionDecisionReason": "not here"}'"#;
    let settings = settings(&[("PreToolUse", "Write", shell(answer))]);
    let ran = go(&bench, &settings, &["--allow", "Write"]);
    assert_eq!(result(&ran)["denials"][0]["reason"], "not here");
}

#[rstest]
#[case::words("logged")]
#[case::broken("{bad")]
fn who_is_not_waited_for_may_answer_anything(#[case] answer: &'static str) {
    let server = PermissionServer::start(Answer::Text(answer));
    let service = json!({"type": "http", "url": server.url(), "async": true});
    let bench = bench(writes(Caller::Parent));
    let settings = settings(&[("PostToolUse", "Write", service)]);
    let ran = go(
        &bench,
        &settings,
        &["--allow", "Write", "--include-hook-events"],
    );
    let frames = frames(&ran);
    assert!(
        !frames.iter().any(|frame| frame["type"] == "warning"),
        "{}",
        ran.stdout
    );
    let phases: Vec<Value> = event_frames(&ran)
        .iter()
        .map(|frame| frame["hookSpecificOutput"]["phase"].clone())
        .filter(Value::is_string)
        .collect();
    assert_eq!(phases, ["started", "finished"]);
}

#[test]
fn a_late_handler_has_its_frames_before_the_result() {
    let bench = bench(ok());
    let gate = bench.home.path().join("gate");
    let mut late = shell("read line < \"$GATE\"");
    late["async"] = true.into();
    // The last event of a run opens the gate for the handler of the first.
    let open = shell("mkfifo \"$GATE\" 2>/dev/null; echo go > \"$GATE\"");
    let first = shell("mkfifo \"$GATE\"");
    let settings = settings(&[
        ("UserPromptSubmit", "", first),
        ("UserPromptSubmit", "", late),
        ("Notification", "run_ended", open),
    ]);
    let ran = go_with(&bench, &settings, |command| {
        command.arg("--include-hook-events").env("GATE", &gate);
    });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let place = |is_it: &dyn Fn(&Value) -> bool| frames(&ran).iter().position(is_it);
    let finished = place(&|frame| frame["hookSpecificOutput"]["phase"] == "finished");
    let result = place(&|frame| frame["type"] == "result");
    assert!(finished.is_some() && finished < result, "{}", ran.stdout);
}

#[test]
fn nobody_is_asked_about_what_a_rule_denies_or_plan_mode_blocks() {
    for args in [
        &["--deny", "Write"] as &[&str],
        &["--permission-mode", "plan"],
    ] {
        let bench = bench(writes(Caller::Parent));
        let settings = settings(&[
            ("PreToolUse", "Write", recorder()),
            ("PermissionDenied", "", recorder()),
        ]);
        let ran = go(&bench, &settings, args);
        assert!(!is_written(&bench));
        assert_eq!(names(&recorded(&bench)), ["PermissionDenied"], "{args:?}");
        assert_eq!(result(&ran)["denials"].as_array().unwrap().len(), 1);
    }
}

#[rstest]
#[case::reason(
    r#"echo '{"decision": "ask", "reason": "is it Friday?"}'"#,
    "is it Friday?",
    "The user can permit it when asked, or change the hook `"
)]
#[case::no_reason(
    r#"echo '{"decision": "ask"}'"#,
    "settings asks",
    "The user can permit it when asked, or change the hook `"
)]
#[case::failed("exit 1", "exited with code 1", "The user can repair the hook `")]
fn what_a_hook_asks_reaches_the_operator_with_a_remedy(
    #[case] script: &str,
    #[case] reason: &str,
    #[case] remedy: &str,
) {
    let bench = bench(writes(Caller::Parent));
    let mut handler = shell(script);
    handler["on_error"] = "ask".into();
    let settings = settings(&[("PreToolUse", "Write", handler)]);
    let ran = go(&bench, &settings, &["--allow", "Write"]);
    let denial = &result(&ran)["denials"][0];
    assert!(
        denial["reason"].as_str().unwrap().contains(reason),
        "{denial}"
    );
    assert!(
        denial["remedy"].as_str().unwrap().starts_with(remedy),
        "{denial}"
    );
}

#[test]
fn a_hook_can_tell_whose_call_it_judges() {
    let bench = bench(writes(Caller::SubAgent));
    let settings = settings(&[("PreToolUse", "", recorder())]);
    go(&bench, &settings, &["--allow", "Write"]);
    let told = recorded(&bench);
    let tools: Vec<(&Value, &Value)> = told
        .iter()
        .map(|event| (&event["tool_name"], &event["agent_id"]))
        .collect();
    let of_parent = &told[0]["tool_use_id"];
    assert_eq!(
        tools,
        [
            (&json!("AgentTool"), &Value::Null),
            (&json!("Write"), of_parent)
        ]
    );
}

#[test]
fn notifications_tell_of_questions_and_of_the_end() {
    let bench = bench(writes(Caller::Parent));
    let only_questions = shell("cat > \"$RECORD.questions\"");
    let settings = settings(&[
        ("Notification", "", recorder()),
        ("Notification", "permission_prompt", only_questions),
    ]);
    go(&bench, &settings, &[]);
    let told = recorded(&bench);
    let kinds: Vec<&Value> = told
        .iter()
        .map(|event| &event["notification_type"])
        .collect();
    assert_eq!(kinds, ["permission_prompt", "run_ended"]);
    assert!(told[0]["message"].as_str().unwrap().contains("Write"));
    let questions = record(&bench).with_extension("jsonl.questions");
    let question = std::fs::read_to_string(questions).unwrap();
    assert!(question.contains("permission_prompt"));
}

#[test]
fn a_session_that_goes_on_elsewhere_says_so() {
    let bench = bench(ok());
    let settings = settings(&[("CwdChanged", "", recorder())]);
    let elsewhere = bench.workspace.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let at = |place: &std::path::Path| {
        go_with(&bench, &settings, |command| {
            command.current_dir(place).args(["--session", "s"]);
        });
    };
    at(bench.workspace.path());
    at(bench.workspace.path());
    assert!(recorded(&bench).is_empty());
    at(&elsewhere);
    let told = recorded(&bench);
    assert_eq!(told.len(), 1);
    let real = |path: &std::path::Path| json!(path.canonicalize().unwrap());
    assert_eq!(told[0]["old_cwd"], real(bench.workspace.path()));
    assert_eq!(told[0]["new_cwd"], real(&elsewhere));
}

#[rstest]
#[case::flag(&["--no-hooks"], json!({}))]
#[case::bare(&["--bare"], json!({}))]
#[case::setting(&[], json!({"disable_all_hooks": true}))]
fn nothing_switches_off_what_the_administrator_decides(#[case] args: &[&str], #[case] keys: Value) {
    let bench = bench(writes(Caller::Parent));
    user(&bench, &keys);
    let refuse = shell("cat >> \"$RECORD\"; exit 2");
    let administrators = settings(&[("PreToolUse", "Write", refuse)]);
    let mut command = bench.command();
    command
        .args(["--output-format", "stream-json", "--allow", "Write"])
        .args(args)
        .args(["-p", "go"])
        .env("RECORD", record(&bench));
    let ran = run(&mut under_operator(&command, &administrators));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!is_written(&bench), "{}", ran.stdout);
    assert_eq!(recorded(&bench).len(), 1);
}

#[test]
fn a_sub_agent_cannot_leave_deciding_hooks_behind() {
    let script = || {
        Script::new([
            Reply::tool(
                "AgentTool",
                json!({"prompt": "sub", "inherit_hooks": false}),
            ),
            write_call().when(Match::last_user("sub")),
            Reply::text("sub done"),
            Reply::text("done"),
        ])
    };
    let users = settings(&[
        ("PreToolUse", "Write", shell("cat >> \"$RECORD\"; exit 2")),
        ("PostToolUseFailure", "Write", recorder()),
    ]);
    let bench = bench(script());
    go(&bench, &users, &["--allow", "Write"]);
    assert!(!is_written(&bench));
    assert_eq!(names(&recorded(&bench)), ["PreToolUse"]);
}
