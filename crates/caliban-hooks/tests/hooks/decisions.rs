//! Several handlers of one event.

use caliban_agent::{
    Advice, Adviser, HookEvent, NotificationKind, Observer, SessionSource, ToolCall, ToolOutput,
};
use caliban_hooks::{Decision, Runners};
use caliban_settings::Scope;
use serde_json::{Value, json};

use crate::support::{Session, bash, layer, script};

/// A handler that leaves a mark and then says something.
fn saying(mark: &str, answer: &Value) -> Value {
    script(&format!("echo {mark} >>log; cat >>inputs; echo '{answer}'"))
}

fn deciding(mark: &str, word: &str) -> Value {
    let answer = json!({"permissionDecision": word, "permissionDecisionReason": mark});
    saying(mark, &json!({"hookSpecificOutput": answer}))
}

fn rewriting(mark: &str, command: &str, word: Option<&str>) -> Value {
    let answer = json!({"permissionDecision": word, "updatedInput": {"command": command}});
    saying(mark, &json!({"hookSpecificOutput": answer}))
}

async fn verdict(handlers: &[Value]) -> (Advice, Session) {
    let session = Session::new(json!({"PreToolUse": [{"handlers": handlers}]}));
    let verdict = session.hooks.advise(&bash("ls")).await;
    (verdict, session)
}

fn log(session: &Session) -> Vec<String> {
    session.read("log").lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_first_refusal_ends_it() {
    let handlers = [
        deciding("a", "allow"),
        deciding("b", "deny"),
        deciding("c", "deny"),
    ];
    let (verdict, session) = verdict(&handlers).await;
    assert!(matches!(&verdict, Advice::Deny(denial) if denial.reason == "b"));
    assert_eq!(log(&session), ["a", "b"]);
    let told: Vec<Decision> = session.heard.all().iter().map(|f| f.decision).collect();
    assert_eq!(told, [Decision::Approve, Decision::Deny]);
}

#[tokio::test]
async fn asking_beats_approving_in_any_order() {
    let (ask, allow) = (deciding("q", "ask"), deciding("a", "allow"));
    for handlers in [[ask.clone(), allow.clone()], [allow, ask]] {
        let (verdict, session) = verdict(&handlers).await;
        assert!(matches!(&verdict, Advice::Ask { reason, .. } if reason == "q"));
        assert_eq!(log(&session).len(), 2);
    }
}

#[tokio::test]
async fn a_changed_input_is_what_the_next_one_sees() {
    let last = script("cat >seen");
    let handlers = [rewriting("a", "ls -a", None), last];
    let (verdict, session) = verdict(&handlers).await;
    assert_eq!(verdict, Advice::AllowWith(json!({"command": "ls -a"})));
    let seen: Value = serde_json::from_str(&session.read("seen")).unwrap();
    assert_eq!(seen["tool_input"], json!({"command": "ls -a"}));
    assert_eq!(seen["tool"]["input"], json!({"command": "ls -a"}));
}

#[tokio::test]
async fn conditions_are_about_the_changed_input() {
    let handlers = json!([
        rewriting("a", "rm x", None),
        {"if": "rm ", "type": "command", "command": "/bin/sh", "args": ["-c", "exit 2"]},
    ]);
    let entries = json!([
        {"handlers": [handlers[0]]},
        {"handlers": [handlers[1]]},
    ]);
    let session = Session::new(json!({"PreToolUse": entries}));
    let verdict = session.hooks.advise(&bash("ls")).await;
    assert!(matches!(verdict, Advice::Deny(_)));
    let unconcerned = Session::new(json!({"PreToolUse": [handlers[1]]}));
    let verdict = unconcerned.hooks.advise(&bash("ls")).await;
    assert_eq!(verdict, Advice::Allow);
    assert!(unconcerned.heard.all().is_empty());
}

#[tokio::test]
async fn an_approval_is_for_the_input_it_was_given_for() {
    let (allow, change) = (deciding("a", "allow"), rewriting("b", "rm x", None));
    let input = json!({"command": "rm x"});
    let (before, _) = verdict(&[allow.clone(), change.clone()]).await;
    assert_eq!(before, Advice::AllowWith(input.clone()));
    let (after, _) = verdict(&[change, allow]).await;
    let reason = Some("a".to_owned());
    let approved = Advice::Approve {
        reason,
        input: Some(input.clone()),
    };
    assert_eq!(after, approved);
    let (own, _) = verdict(&[rewriting("c", "rm x", Some("allow"))]).await;
    let approved = Advice::Approve {
        reason: None,
        input: Some(input),
    };
    assert_eq!(own, approved);
}

#[tokio::test]
async fn a_question_carries_the_changed_input() {
    let handlers = [rewriting("a", "ls -a", None), deciding("q", "ask")];
    let (verdict, _) = verdict(&handlers).await;
    let Advice::Ask { input, .. } = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(input, Some(json!({"command": "ls -a"})));
}

#[tokio::test]
async fn the_same_handler_runs_once_for_the_same_input() {
    let same = script("echo ran >>log");
    let entries = json!([
        {"matcher": "*", "handlers": [same, same]},
        {"matcher": "Bash", "hooks": [same]},
        {"matcher": "Bash", "handlers": [rewriting("changed", "ls -a", None)]},
        {"matcher": "Bash", "hooks": [same]},
    ]);
    let layers = [
        layer(Scope::User, json!({"PreToolUse": entries})),
        layer(Scope::Cli, json!({"PreToolUse": [same]})),
    ];
    let session = Session::made(&layers, Runners::default());
    session.hooks.advise(&bash("ls")).await;
    assert_eq!(log(&session), ["ran", "changed", "ran"]);
}

#[tokio::test]
async fn scopes_run_from_the_lowest_to_the_highest() {
    let hooks = |mark: &str| json!({"Notification": [script(&format!("echo {mark} >>log"))]});
    let layers = Scope::ALL.map(|scope| layer(scope, hooks(scope.as_str())));
    let session = Session::made(&layers, Runners::default());
    let message = "m".to_owned();
    session
        .hooks
        .notify(&HookEvent::Notification {
            kind: NotificationKind::Question,
            message,
        })
        .await;
    assert_eq!(
        log(&session),
        ["managed", "user", "project", "local", "cli"]
    );
}

#[tokio::test]
async fn a_condition_in_the_handler_counts_too() {
    let conditional = json!({
        "type": "command", "command": "/bin/sh", "args": ["-c", "exit 2"], "if": "rm ",
    });
    let session = Session::new(json!({"PreToolUse": [{"hooks": [conditional]}]}));
    assert_eq!(session.hooks.advise(&bash("ls")).await, Advice::Allow);
    let verdict = session.hooks.advise(&bash("rm x")).await;
    assert!(matches!(verdict, Advice::Deny(_)));
}

#[tokio::test]
async fn what_concerns_nobody_is_not_even_written_down() {
    let gate = json!({"matcher": "Write", "if": "rm ", "handlers": [script("exit 2")]});
    let session = Session::new(json!({"PreToolUse": [gate], "SessionStart": [script("true")]}));
    let message = "m".to_owned();
    session
        .hooks
        .notify(&HookEvent::Notification {
            kind: NotificationKind::Question,
            message,
        })
        .await;
    assert_eq!(session.hooks.advise(&bash("rm x")).await, Advice::Allow);
    assert_eq!(session.facts.payloads(), 0);
    session.hooks.welcome(SessionSource::Startup).await;
    assert_eq!(session.facts.payloads(), 1);
}

#[tokio::test]
async fn what_is_said_about_a_call_is_read_once_and_beside_its_own_result() {
    let context = |text: &str| {
        let answer = json!({"hookSpecificOutput": {"additionalContext": text}});
        script(&format!("echo '{answer}'"))
    };
    let objection = script("echo objection >&2; exit 2");
    let broken = script("exit 1");
    let session = Session::new(json!({
        "PreToolUse": [{"handlers": [context("before")]}],
        "PostToolUse": [{"handlers": [context("after"), objection, broken]}],
    }));
    let (first, second) = (bash("ls"), {
        let mut call = bash("pwd");
        call.id = "another".into();
        call
    });
    session.hooks.advise(&first).await;
    session.hooks.advise(&second).await;
    let event = HookEvent::PostToolUse {
        call: first.clone(),
        output: ToolOutput::ok("done"),
    };
    session.hooks.notify(&event).await;
    let additions = |call: &ToolCall| session.hooks.remarks(std::slice::from_ref(&call.id));
    assert_eq!(additions(&first).unwrap(), "before\n\nafter\n\nobjection");
    assert_eq!(additions(&first), None);
    assert_eq!(additions(&second).unwrap(), "before");
}
