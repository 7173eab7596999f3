//! `TodoWrite` and the plan mode tools through the `Tool` trait.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::sync::Arc;

use caliban_agent::{
    Confinement, Effect, OpenReading, Progress, Tool, ToolContext, ToolOutput, ToolStatus,
    TypedTool, Workspace,
};
use caliban_model::CancellationToken;
use caliban_tools::{EnterPlanMode, ExitPlanMode, PlanMode, TodoList, TodoWrite};
use serde_json::{Value, json};

async fn run(tool: &Arc<dyn Tool>, input: Value) -> ToolOutput {
    let temp = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(temp.path(), &[], None, Confinement::Open).unwrap();
    let context = ToolContext {
        call_id: Arc::from("call"),
        session_id: Arc::from("session"),
        workspace: Arc::new(workspace),
        reading: OpenReading::shared(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        trace: None,
    };
    tool.run(input, context).await
}

#[tokio::test]
async fn the_shared_list_is_replaced_whole() {
    let list = Arc::new(TodoList::new());
    let tool = TodoWrite::new(Arc::clone(&list)).boxed();
    assert_eq!(tool.effect(), Effect::Session);
    let output = run(
        &tool,
        json!({"todos": [
            {"id": "a", "content": "look", "status": "completed"},
            {"id": "b", "content": "act", "status": "in_progress"},
        ]}),
    )
    .await;
    assert_eq!(output.status, ToolStatus::Ok);
    assert_eq!(output.text(), "[x] a: look\n[~] b: act");
    assert_eq!(list.items().len(), 2);
    for bad in [
        json!({"todos": [{"id": "a", "content": "x", "status": "done"}]}),
        json!({"todos": [{"id": "a", "content": "x", "status": "pending", "priority": 1}]}),
        json!({"todos": [
            {"id": "a", "content": "x", "status": "pending"},
            {"id": "a", "content": "y", "status": "pending"},
        ]}),
    ] {
        assert_eq!(run(&tool, bad).await.status, ToolStatus::InvalidInput);
    }
    assert_eq!(list.items().len(), 2);
    let output = run(&tool, json!({"todos": []})).await;
    assert_eq!(output.text(), "The task list is empty.");
}

#[tokio::test]
async fn plan_mode_is_entered_and_left() {
    let mode = Arc::new(PlanMode::new());
    let enter = EnterPlanMode::new(Arc::clone(&mode)).boxed();
    let exit = ExitPlanMode::new(Arc::clone(&mode)).boxed();
    assert_eq!(
        (enter.effect(), exit.effect()),
        (Effect::Session, Effect::Session)
    );
    let outside = run(&exit, json!({})).await;
    assert_eq!(outside.status, ToolStatus::Failed);
    assert!(outside.text().contains("not on"), "{}", outside.text());

    let entered = run(&enter, json!({})).await;
    assert!(
        entered.text().starts_with("Plan mode is on."),
        "{}",
        entered.text()
    );
    assert!(mode.is_active());
    let again = run(&enter, json!({})).await;
    assert!(
        again.text().starts_with("Plan mode was on already."),
        "{}",
        again.text()
    );

    let left = run(&exit, json!({"plan": "1. act"})).await;
    assert_eq!(left.status, ToolStatus::Ok);
    assert!(!mode.is_active());
}
