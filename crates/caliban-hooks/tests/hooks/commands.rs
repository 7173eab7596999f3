//! Handlers that are programs.

use std::time::{Duration, Instant};

use caliban_agent::{
    Advice, Adviser, HookEvent, Observer, PromptStage, PromptVerdict, SessionSource, StopStage,
    StopVerdict,
};
use caliban_model::{Message, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Session, bash, eventually, is_alive, script, tool, with};

fn gate(handler: &Value) -> Session {
    Session::new(json!({"PreToolUse": [handler]}))
}

async fn denial(session: &Session) -> String {
    match session.hooks.advise(&bash("ls")).await {
        Advice::Deny(denial) => denial.reason,
        other => panic!("{other:?}"),
    }
}

/// A guard as people write them: reads the event, greps, exits with 2 and a word on stderr.
const GUARD: &str = r#"
input=$(cat)
case "$input" in
  *'"command":"rm '*) echo "no deleting here" >&2; exit 2;;
esac
exit 0
"#;

#[tokio::test]
async fn a_guard_with_exit_codes() {
    let command = json!({"type": "command", "command": "sh ./guard.sh --strict"});
    let session = Session::new(json!({"PreToolUse": [{"matcher": "Bash", "hooks": [command]}]}));
    session.write("guard.sh", GUARD);
    assert_eq!(session.hooks.advise(&bash("ls")).await, Advice::Allow);
    let verdict = session.hooks.advise(&bash("rm -rf x")).await;
    assert!(matches!(&verdict, Advice::Deny(denial) if denial.reason == "no deleting here"));
    let other = tool("Read", json!({"path": "x"}));
    assert_eq!(session.hooks.advise(&other).await, Advice::Allow);
    assert_eq!(session.heard.all().len(), 2, "Read is not its business");
}

#[tokio::test]
async fn text_for_the_shell_finds_the_project() {
    let command = "sh \"$CLAUDE_PROJECT_DIR\"/guard.sh";
    let session = gate(&json!({"type": "command", "command": command}));
    session.write(
        "guard.sh",
        "pwd >&2; echo \"$CALIBAN_PROJECT_DIR\" >&2; exit 2",
    );
    let dir = session.dir.path().canonicalize().unwrap();
    let dir = dir.to_str().unwrap();
    assert_eq!(denial(&session).await, format!("{dir}\n{dir}"));
}

#[tokio::test]
async fn arguments_are_not_for_a_shell() {
    let handler = json!({
        "type": "command",
        "command": "sh",
        "args": ["${CALIBAN_PROJECT_DIR}/guard.sh", "$(touch pwned)", "a b"],
    });
    let session = gate(&handler);
    session.write("guard.sh", "printf '%s|' \"$@\" >&2; exit 2");
    assert_eq!(denial(&session).await, "$(touch pwned)|a b|");
    assert!(!session.path("pwned").exists());
}

#[tokio::test]
async fn programs_see_no_more_than_they_are_given() {
    // Cargo gives this process many variables; keys would be among such.
    assert!(std::env::vars().count() > 5);
    let session = gate(&script("env >&2; exit 2"));
    let seen = denial(&session).await;
    let mut names: Vec<&str> = seen
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        // What the shell itself sets.
        .filter(|name| !matches!(*name, "PWD" | "SHLVL" | "_" | "OLDPWD"))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["CALIBAN_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "PATH"]);
}

#[rstest]
#[case::missing(json!({"type": "command", "command": "./missing.sh"}))]
#[case::not_executable(json!({"type": "command", "command": "./plain.sh"}))]
#[case::missing_for_the_shell(json!({"type": "command", "command": "./missing.sh --x"}))]
#[case::not_executable_for_the_shell(json!({"type": "command", "command": "./plain.sh --x"}))]
#[case::missing_interpreter(json!({"type": "command", "command": "/usr/bin/env", "args": ["no-such-program"]}))]
#[tokio::test]
async fn what_cannot_run_refuses(#[case] handler: Value) {
    let session = gate(&handler);
    session.write("plain.sh", "exit 0");
    let reason = denial(&session).await;
    assert!(reason.contains("could not decide"), "{reason}");
    let asking = gate(&with(handler, "on_error", json!("ask")));
    asking.write("plain.sh", "exit 0");
    let verdict = asking.hooks.advise(&bash("ls")).await;
    assert!(matches!(verdict, Advice::Ask { .. }), "{verdict:?}");
}

#[tokio::test]
async fn an_odd_exit_code_is_no_objection_unless_it_is_said_to_be() {
    let odd = script("echo oops >&2; exit 1");
    let session = gate(&odd);
    assert_eq!(session.hooks.advise(&bash("ls")).await, Advice::Allow);
    let warning = session.firing().warning.unwrap();
    assert_eq!(warning, "it exited with code 1: oops");
    let strict = gate(&with(odd.clone(), "on_error", json!("deny")));
    assert!(denial(&strict).await.contains("oops"));
    let asking = gate(&with(odd, "on_error", json!("ask")));
    let verdict = asking.hooks.advise(&bash("ls")).await;
    assert!(matches!(verdict, Advice::Ask { .. }));
}

#[tokio::test]
async fn who_does_not_read_the_event_is_not_waited_for() {
    let session = gate(&script("exec 0<&-; exit 0"));
    let large = bash(&"x".repeat(4 * 1024 * 1024));
    assert_eq!(session.hooks.advise(&large).await, Advice::Allow);
}

#[tokio::test]
async fn the_event_arrives_whole_and_ends() {
    let session = gate(&script("wc -c >&2; exit 2"));
    let large = bash(&"x".repeat(300_000));
    let Advice::Deny(denial) = session.hooks.advise(&large).await else {
        panic!();
    };
    assert!(denial.reason.parse::<usize>().unwrap() > 600_000);
}

#[tokio::test]
async fn output_without_end_is_read_and_mostly_forgotten() {
    // Both pipes are filled far beyond what is kept; the object is cut and cannot be read.
    let flood = "{ printf '{\"a\": \"'; head -c 5000000 /dev/zero | tr '\\0' x; printf '\"}'; }; \
                 head -c 5000000 /dev/zero >&2";
    let reason = denial(&gate(&script(flood))).await;
    assert!(reason.contains("not valid JSON"), "{reason}");
}

#[tokio::test]
async fn a_handler_that_hangs_is_gone_with_everything_it_started() {
    let text = "sleep 300 & echo $! >child; echo $$ >self; sleep 300";
    let session = gate(&with(script(text), "timeout", json!("1500ms")));
    let reason = denial(&session).await;
    assert!(reason.contains("took longer than 1.5s"), "{reason}");
    for name in ["self", "child"] {
        let pid = session.read(name);
        assert!(!pid.is_empty(), "{name} did not start in time");
        eventually("the end", || !is_alive(&pid)).await;
    }
}

#[tokio::test]
async fn what_a_handler_leaves_behind_ends_with_it() {
    let session = gate(&script(
        "sleep 300 >/dev/null 2>&1 & echo $! >child; exit 0",
    ));
    assert_eq!(session.hooks.advise(&bash("ls")).await, Advice::Allow);
    let pid = session.read("child");
    assert!(!pid.is_empty());
    eventually("the end", || !is_alive(&pid)).await;
}

#[tokio::test]
async fn who_escapes_with_the_pipes_delays_little() {
    let session = gate(&script("setsid sleep 15 & exit 0"));
    let began = Instant::now();
    assert_eq!(session.hooks.advise(&bash("ls")).await, Advice::Allow);
    assert!(began.elapsed() < Duration::from_secs(12));
}

#[tokio::test]
async fn dropping_the_question_ends_the_handler() {
    let session = gate(&script("echo $$ >self; sleep 300"));
    let call = bash("ls");
    tokio::select! {
        verdict = session.hooks.advise(&call) => panic!("{verdict:?}"),
        () = eventually("the start", || !session.read("self").trim().is_empty()) => {}
    }
    let pid = session.read("self");
    eventually("the end", || !is_alive(&pid)).await;
}

#[tokio::test]
async fn text_and_context_are_added() {
    let context = json!({"hookSpecificOutput": {"additionalContext": "two"}});
    let handlers = [
        script("echo one"),
        script(&format!("echo '{context}'")),
        script("true"),
    ];
    let session = Session::new(json!({"UserPromptSubmit": handlers, "SessionStart": handlers}));
    let verdict = session.hooks.before_prompt(&Message::user("hi")).await;
    assert_eq!(verdict, PromptVerdict::AcceptWith("one\n\ntwo".to_owned()));
    let added = session.hooks.welcome(SessionSource::Resume).await;
    assert_eq!(added.as_deref(), Some("one\n\ntwo"));
}

#[tokio::test]
async fn sources_and_triggers_are_matched() {
    let handler = script("echo hi");
    let session = Session::new(json!({
        "SessionStart": [{"matcher": "resume", "handlers": [handler]}],
        "PreCompact": [{"matcher": "manual", "handlers": [handler]}],
        "SessionEnd": [{"matcher": "logout", "handlers": [handler]}],
    }));
    assert_eq!(session.hooks.welcome(SessionSource::Startup).await, None);
    let added = session.hooks.welcome(SessionSource::Resume).await;
    assert_eq!(added.as_deref(), Some("hi"));
    let reason = caliban_agent::CompactionReason::Threshold;
    session
        .hooks
        .notify(&HookEvent::PreCompact { reason })
        .await;
    assert_eq!(session.heard.all().len(), 1);
    let reason = "exit".to_owned();
    session
        .hooks
        .notify(&HookEvent::SessionEnd { reason })
        .await;
    assert_eq!(session.heard.all().len(), 2, "it has nothing to match");
}

#[tokio::test]
async fn a_stop_handler_knows_that_it_sent_the_model_on() {
    let text = r#"cat >>seen; case "$(tail -n 1 seen)" in *'"stop_hook_active":true'*) exit 0;; esac; echo 'run the tests' >&2; exit 2"#;
    let session = Session::new(json!({"Stop": [script(text)]}));
    let on = StopVerdict::Continue {
        message: "run the tests".to_owned(),
    };
    let ended = HookEvent::Stopped {
        usage: Usage::default(),
    };
    assert_eq!(session.hooks.before_stop("done").await, on);
    assert_eq!(session.hooks.before_stop("done").await, StopVerdict::Stop);
    session.hooks.notify(&ended).await;
    assert_eq!(session.heard.all().len(), 2, "the end was told already");
    assert_eq!(session.hooks.before_stop("again").await, on);
    session.hooks.notify(&ended).await;
    assert_eq!(
        session.heard.all().len(),
        4,
        "nobody was asked about this end"
    );
    session.hooks.before_prompt(&Message::user("next")).await;
    assert_eq!(session.hooks.before_stop("done").await, on);
}

#[tokio::test]
async fn who_wants_the_end_gets_it() {
    let end =
        json!({"continue": false, "stopReason": "enough", "decision": "block", "reason": "go on"});
    let handler = script(&format!("echo '{end}'"));
    let events = ["Stop", "UserPromptSubmit", "PreToolUse"];
    let hooks: serde_json::Map<String, Value> = events
        .map(|event| (event.to_owned(), json!([handler])))
        .into_iter()
        .collect();
    let session = Session::new(hooks.into());
    assert_eq!(session.hooks.before_stop("done").await, StopVerdict::Stop);
    let verdict = session.hooks.before_prompt(&Message::user("hi")).await;
    let reason = "enough".to_owned();
    assert_eq!(verdict, PromptVerdict::Deny { reason });
    assert_eq!(denial(&session).await, "enough");
}
