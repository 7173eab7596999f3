//! Calls of tools: kinds, titles, locations, changes, output as it comes, and the plan.

use caliban_testkit::Reply;
use serde_json::{Value, json};

use crate::editor::Editor;
use crate::{bench, permitting, shell};

/// The id of the only call.
fn only(editor: &Editor, session: &str) -> String {
    let calls = editor.told(session, "tool_call");
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls[0]["toolCallId"].as_str().unwrap().to_owned()
}

#[test]
fn a_command_is_shown_from_its_beginning_to_its_end() {
    let bench = permitting([shell("echo one; echo two >&2; exit 3"), Reply::text("done")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "run"), "end_turn");
    let id = only(&editor, &session);
    let begun = &editor.told(&session, "tool_call")[0];
    assert_eq!(begun["kind"], "execute");
    assert_eq!(begun["name"], "Bash");
    let statuses: Vec<Value> = editor
        .updates(&session)
        .iter()
        .filter(|it| it["toolCallId"] == *id && it.get("status").is_some())
        .map(|it| it["status"].clone())
        .collect();
    // A call is pending until something else is said.
    assert_eq!(statuses, ["in_progress", "failed"]);
    let call = editor.call(&session, &id);
    assert_eq!(call["title"], "echo one; echo two >&2; exit 3");
    assert_eq!(
        call["rawInput"],
        json!({"command": "echo one; echo two >&2; exit 3"})
    );
    assert_eq!(call["rawOutput"]["exitCode"], 3);
    let text = call["content"].to_string();
    assert!(text.contains("one") && text.contains("two"), "{text}");
}

#[test]
fn an_edit_shows_what_changes_and_where() {
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "zwei"});
    let bench = permitting([
        Reply::tool("Read", json!({"path": "a.txt", "offset": 2})),
        Reply::tool("Edit", edit),
        Reply::text("done"),
    ]);
    let file = bench.workspace.path().join("a.txt");
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "edit"), "end_turn");
    let calls = editor.told(&session, "tool_call");
    let id = |n: usize| calls[n]["toolCallId"].as_str().unwrap();
    let path = file.canonicalize().unwrap();
    let read = editor.call(&session, id(0));
    assert_eq!(read["kind"], "read");
    assert_eq!(read["locations"], json!([{"path": path, "line": 2}]));
    let edit = editor.call(&session, id(1));
    assert_eq!(
        (&edit["kind"], &edit["status"]),
        (&json!("edit"), &json!("completed"))
    );
    assert_eq!(edit["title"], "Edit a.txt");
    assert_eq!(edit["locations"], json!([{"path": path, "line": 2}]));
    let whole = json!([{
        "type": "diff",
        "path": path,
        "oldText": "one\ntwo\nthree\n",
        "newText": "one\nzwei\nthree\n",
    }]);
    assert_eq!(edit["content"], whole);
    // Before it ran, what the model wrote is all there is.
    let announced = editor
        .updates(&session)
        .into_iter()
        .find(|it| it["toolCallId"] == id(1) && it.get("rawInput").is_some());
    let content = announced.unwrap()["content"][0].clone();
    assert_eq!(content["oldText"], "two");
    assert_eq!(content["newText"], "zwei");
}

#[test]
fn what_a_command_writes_is_told_while_it_runs() {
    let bench = permitting([shell("echo started; read line < gate"), Reply::text("done")]);
    let gate = bench.workspace.path().join("gate");
    let made = std::process::Command::new("mkfifo")
        .arg(&gate)
        .status()
        .unwrap();
    assert!(made.success());
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "run");
    let is_output = |frame: &Value| {
        let update = &frame["params"]["update"];
        update["content"].to_string().contains("started")
            && update.get("status").is_none()
            && update.get("rawInput").is_none()
    };
    editor.process.until("output", is_output, |_| false);
    std::fs::write(&gate, "go\n").unwrap();
    assert_eq!(editor.stopped(id), "end_turn");
}

#[test]
fn tasks_are_a_plan() {
    let todos = |done: &str| {
        json!({"todos": [
            {"id": "1", "content": "look", "status": done},
            {"id": "2", "content": "leap", "status": "pending"},
        ]})
    };
    let bench = bench([
        Reply::tool("TodoWrite", todos("in_progress")),
        Reply::tool("TodoWrite", todos("completed")),
        Reply::text("done"),
    ]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "plan"), "end_turn");
    let plans = editor.told(&session, "plan");
    let states = |n: usize| -> Vec<Value> {
        let entries = plans[n]["entries"].as_array().unwrap();
        entries.iter().map(|it| it["status"].clone()).collect()
    };
    assert_eq!(plans.len(), 2);
    assert_eq!(states(0), ["in_progress", "pending"]);
    assert_eq!(states(1), ["completed", "pending"]);
    assert_eq!(editor.told(&session, "tool_call").len(), 0);
}

#[test]
fn a_call_that_was_never_finished_fails() {
    let half = Reply::text("let me").and_tool("Bash", json!({"command": "ls"}));
    let bench = permitting([half.hold_after(6), Reply::text("after")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "go");
    editor.until("tool_call");
    editor.cancel(&session);
    assert_eq!(editor.stopped(id), "cancelled");
    let call = editor.call(&session, &only(&editor, &session));
    assert_eq!(call["status"], "failed", "{call}");
    assert_eq!(editor.prompt(&session, "and now?"), "end_turn");
}
