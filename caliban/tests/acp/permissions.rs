//! Questions: what the user is asked, what his answer does, and what no answer can undo.

use caliban_testkit::Reply;
use serde_json::json;

use crate::editor::Editor;
use crate::{bench, settings, shell};

#[test]
fn the_user_allows_once_for_the_session_or_not() {
    let bench = bench([
        shell("touch a"),
        shell("touch b"),
        shell("touch b"),
        shell("touch c"),
        Reply::text("done"),
    ]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "make them");
    let asked = editor.choose("allow");
    assert_eq!(asked["sessionId"], session);
    assert_eq!(asked["toolCall"]["title"], "touch a");
    assert_eq!(asked["toolCall"]["kind"], "execute");
    let kinds: Vec<&str> = asked["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    editor.choose("allow-session");
    // The second `touch b` is not asked about.
    let third = editor.choose("reject");
    assert_eq!(third["toolCall"]["title"], "touch c");
    assert_eq!(editor.stopped(id), "end_turn");
    let has = |name: &str| bench.workspace.path().join(name).exists();
    assert!(has("a") && has("b") && !has("c"));
    let call = editor.call(&session, third["toolCall"]["toolCallId"].as_str().unwrap());
    assert_eq!(call["status"], "failed");
    assert!(
        call["content"].to_string().contains("the user rejected it"),
        "{call}"
    );
}

/// What a client allows for the session comes before all other rules, but for what is forbidden.
#[test]
fn a_deny_of_the_user_holds_against_what_the_client_allowed() {
    let done = || Reply::text("done");
    let bench = bench([
        shell("touch a"),
        done(),
        shell("touch a"),
        done(),
        shell("touch a"),
        done(),
    ]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let file = bench.workspace.path().join("a");
    let id = editor.send(&session, "make it");
    editor.choose("allow-session");
    assert_eq!(editor.stopped(id), "end_turn");
    std::fs::remove_file(&file).unwrap();
    // An allow that is remembered answers a rule that asks.
    settings(&bench, &json!({"permissions": {"ask": ["Bash:touch *"]}}));
    assert_eq!(editor.prompt(&session, "again"), "end_turn");
    std::fs::remove_file(&file).unwrap();
    settings(&bench, &json!({"permissions": {"deny": ["Bash:touch *"]}}));
    assert_eq!(editor.prompt(&session, "and again"), "end_turn");
    assert!(!file.exists());
    let calls = editor.told(&session, "tool_call");
    let last = calls.last().unwrap()["toolCallId"].as_str().unwrap();
    let call = editor.call(&session, last);
    assert!(
        call["content"].to_string().contains("Not permitted"),
        "{call}"
    );
}

#[test]
fn cancelling_a_question_cancels_the_prompt() {
    let bench = bench([shell("touch a"), Reply::text("after")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "make it");
    let request = editor.asked("session/request_permission");
    editor.respond(&request, json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(editor.stopped(id), "cancelled");
    assert!(!bench.workspace.path().join("a").exists());
    assert_eq!(editor.prompt(&session, "and now?"), "end_turn");
}

#[test]
fn nonsense_is_a_refusal() {
    let bench = bench([shell("touch a"), shell("touch b"), Reply::text("done")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "make it");
    let request = editor.asked("session/request_permission");
    editor.respond(
        &request,
        json!({"outcome": {"outcome": "selected", "optionId": "everything"}}),
    );
    let request = editor.asked("session/request_permission");
    editor.process.write(&json!({
        "jsonrpc": "2.0", "id": request["id"],
        "error": {"code": -32601, "message": "never heard of it"},
    }));
    assert_eq!(editor.stopped(id), "end_turn");
    let has = |name: &str| bench.workspace.path().join(name).exists();
    assert!(!has("a") && !has("b"));
}

#[test]
fn an_edit_is_asked_about_with_its_change() {
    let write = json!({"path": "new.txt", "content": "fresh\n"});
    let bench = bench([Reply::tool("Write", write), Reply::text("done")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "write");
    let asked = editor.choose("allow");
    let diff = &asked["toolCall"]["content"][0];
    assert_eq!(
        (&diff["type"], &diff["newText"]),
        (&json!("diff"), &json!("fresh\n"))
    );
    let path = asked["toolCall"]["locations"][0]["path"].as_str().unwrap();
    assert!(
        path.ends_with("/new.txt") && path.starts_with('/'),
        "{path}"
    );
    assert_eq!(editor.stopped(id), "end_turn");
}

#[test]
fn the_question_of_another_agent_is_asked_on_the_session_with_its_name() {
    let bench = bench([
        Reply::tool(
            "AgentTool",
            json!({"prompt": "do it", "description": "count files"}),
        ),
        shell("touch nested"),
        Reply::text("inner done"),
        Reply::text("outer done"),
    ]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "delegate");
    let mut asked = editor.choose("allow");
    if asked["toolCall"]["name"] == "AgentTool" {
        asked = editor.choose("allow");
    }
    assert_eq!(asked["sessionId"], session);
    assert_eq!(asked["toolCall"]["title"], "count files: touch nested");
    assert_eq!(editor.stopped(id), "end_turn");
    assert!(bench.workspace.path().join("nested").exists());
    assert_eq!(editor.said(&session), "outer done");
}

#[test]
fn everything_is_allowed_only_if_the_operator_said_so() {
    let bench = bench([]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let params = json!({"sessionId": session, "modeId": "bypassPermissions"});
    let (code, message) = editor.fail("session/set_mode", params);
    assert_eq!(code, -32602, "{message}");
}
