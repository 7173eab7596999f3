//! Handlers that other parts of the program carry out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_agent::{Advice, Adviser, HookEvent, NotificationKind, Observer};
use caliban_hooks::{
    AgentCall, AgentRunner, McpCall, McpRunner, PromptCall, PromptRunner, Runners,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Session, bash};

/// Answers everything the same way and remembers what it was asked.
#[derive(Debug)]
struct Fake {
    answer: Result<&'static str, &'static str>,
    asked: Mutex<Vec<String>>,
}

impl Fake {
    fn answer(
        &self,
        asked: &str,
        event: &Value,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<String, String>> {
        assert!(deadline <= Instant::now() + Duration::from_secs(5));
        let name = &event["hook_event_name"];
        self.asked.lock().unwrap().push(format!("{asked} {name}"));
        let answer = self.answer.map(str::to_owned).map_err(str::to_owned);
        async move { answer }.boxed()
    }
}

impl McpRunner for Fake {
    fn call<'a>(&'a self, call: McpCall<'a>) -> BoxFuture<'a, Result<String, String>> {
        let asked = format!("{}/{}", call.server, call.tool);
        self.answer(&asked, call.event, call.deadline)
    }
}

impl PromptRunner for Fake {
    fn ask<'a>(&'a self, call: PromptCall<'a>) -> BoxFuture<'a, Result<String, String>> {
        let asked = format!("{} {:?} {:?}", call.prompt, call.model, call.schema);
        self.answer(&asked, call.event, call.deadline)
    }
}

impl AgentRunner for Fake {
    fn run<'a>(&'a self, call: AgentCall<'a>) -> BoxFuture<'a, Result<String, String>> {
        let asked = format!("{} {:?}", call.prompt, call.agent);
        self.answer(&asked, call.event, call.deadline)
    }
}

fn fake(answer: Result<&'static str, &'static str>) -> Arc<Fake> {
    Arc::new(Fake {
        answer,
        asked: Mutex::default(),
    })
}

fn runners(fake: &Arc<Fake>) -> Runners {
    Runners {
        mcp: Some(fake.clone()),
        prompt: Some(fake.clone()),
        agent: Some(fake.clone()),
    }
}

const APPROVE: &str = r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#;
const DENY: &str =
    r#"{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}"#;

fn mcp() -> Value {
    json!({"type": "mcp", "mcp": "audit", "tool": "log", "timeout": "5s"})
}

fn prompt() -> Value {
    json!({"type": "prompt", "prompt": "Is it safe?", "model": "fast", "timeout": 5})
}

async fn verdict(handler: Value, runners: Runners) -> Advice {
    let session = Session::with_runners(json!({"PreToolUse": [handler]}), runners);
    session.hooks.advise(&bash("ls")).await
}

fn refused(verdict: &Advice, word: &str) -> bool {
    matches!(verdict, Advice::Deny(denial) if denial.reason.contains(word))
}

#[tokio::test]
async fn an_mcp_tool_decides() {
    let approving = fake(Ok(APPROVE));
    let approved = Advice::Approve {
        reason: None,
        input: None,
    };
    assert_eq!(verdict(mcp(), runners(&approving)).await, approved);
    assert_eq!(
        *approving.asked.lock().unwrap(),
        ["audit/log \"PreToolUse\""]
    );
    assert!(refused(
        &verdict(mcp(), runners(&fake(Ok(DENY)))).await,
        "no"
    ));
    let down = fake(Err("the server `audit` is down"));
    assert!(refused(&verdict(mcp(), runners(&down)).await, "is down"));
    let words = runners(&fake(Ok("logged")));
    assert_eq!(verdict(mcp(), words).await, Advice::Allow);
    assert!(refused(
        &verdict(mcp(), runners(&fake(Ok("{logged")))).await,
        "not valid JSON"
    ));
}

#[tokio::test]
async fn a_model_may_object_and_never_approves() {
    let approving = fake(Ok(APPROVE));
    assert_eq!(verdict(prompt(), runners(&approving)).await, Advice::Allow);
    let asked = approving.asked.lock().unwrap().join("");
    assert_eq!(asked, "Is it safe? Some(\"fast\") None \"PreToolUse\"");
    let objecting = fake(Ok(r#"{"ok": false, "reason": "it deletes"}"#));
    assert!(refused(
        &verdict(prompt(), runners(&objecting)).await,
        "it deletes"
    ));
    let rambling = fake(Ok("Sure, go ahead!"));
    assert!(refused(
        &verdict(prompt(), runners(&rambling)).await,
        "could not decide"
    ));
}

#[tokio::test]
async fn an_agent_runs_beside() {
    let fake = fake(Ok(DENY));
    let handler = json!({"type": "agent", "agent": "reviewer", "prompt": "Review.", "timeout": 5});
    let hooks = json!({"PreToolUse": [handler]});
    let session = Session::with_runners(hooks, runners(&fake));
    assert_eq!(session.hooks.advise(&bash("ls")).await, Advice::Allow);
    session.hooks.drain(Duration::from_mins(1)).await;
    let asked = fake.asked.lock().unwrap().join("");
    assert_eq!(asked, "Review. Some(\"reviewer\") \"PreToolUse\"");
    assert_eq!(session.heard.all().len(), 2);
}

#[rstest]
#[case(mcp(), "mcp")]
#[case(prompt(), "prompt")]
#[tokio::test]
async fn what_nobody_can_carry_out_refuses_or_warns(#[case] handler: Value, #[case] kind: &str) {
    let verdict = verdict(handler.clone(), Runners::default()).await;
    assert!(
        refused(&verdict, &format!("handlers of type `{kind}`")),
        "{verdict:?}"
    );
    let session = Session::with_runners(json!({"Notification": [handler]}), Runners::default());
    let message = "m".to_owned();
    session
        .hooks
        .notify(&HookEvent::Notification {
            kind: NotificationKind::Question,
            message,
        })
        .await;
    assert!(session.firing().warning.unwrap().contains(kind));
}

/// Never answers.
#[derive(Debug)]
struct Stuck;

impl McpRunner for Stuck {
    fn call<'a>(&'a self, _: McpCall<'a>) -> BoxFuture<'a, Result<String, String>> {
        futures::future::pending().boxed()
    }
}

#[tokio::test]
async fn a_runner_that_never_answers_is_given_up() {
    let runners = Runners {
        mcp: Some(Arc::new(Stuck)),
        ..Runners::default()
    };
    let handler = json!({"type": "mcp", "mcp": "s", "tool": "t", "timeout": "20ms"});
    assert!(refused(&verdict(handler, runners).await, "took longer"));
}
