//! Cancelling: wherever it meets a prompt, the answer is `cancelled` and never an error, and the
//! session goes on.

use caliban_testkit::{Block, Fault, Match, Prose, Reply};
use serde_json::json;

use crate::editor::Editor;
use crate::{bench, permitting, shell};

/// An answer that stops after its first piece of text.
fn tale() -> Reply {
    let pieces = ["Once upon ", "a time."].map(str::to_owned).to_vec();
    Reply::default()
        .block(Block::Text(Prose::Pieces(pieces)))
        .hold_after(3)
}

fn goes_on(mut editor: Editor, session: &str) {
    assert_eq!(editor.prompt(session, "and now?"), "end_turn");
    assert!(editor.said(session).ends_with("after"));
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn while_the_model_is_silent() {
    let bench = bench([
        Reply::fault(Fault::StallBeforeHeaders),
        Reply::text("after"),
    ]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "think");
    bench.server.wait_for_requests(1);
    editor.cancel(&session);
    assert_eq!(editor.stopped(id), "cancelled");
    goes_on(editor, &session);
}

#[test]
fn while_text_streams() {
    let bench = bench([tale(), Reply::text("after")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "tell");
    editor.until("agent_message_chunk");
    editor.cancel(&session);
    assert_eq!(editor.stopped(id), "cancelled");
    goes_on(editor, &session);
}

#[test]
fn at_once_behind_the_prompt() {
    // Whether the model was asked by then is nobody's promise. Where it was not, the next request
    // holds both prompts in one message.
    let tale = tale().when(Match::last_user("tell"));
    let after = Reply::text("after").when(Match::last_user("and now?"));
    let bench = bench([after, tale]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "tell");
    editor.cancel(&session);
    assert_eq!(editor.stopped(id), "cancelled");
    goes_on(editor, &session);
}

#[test]
fn with_nothing_to_cancel() {
    let bench = bench([Reply::text("first"), Reply::text("after")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    editor.cancel(&session);
    editor.cancel("nobody");
    assert_eq!(editor.prompt(&session, "one"), "end_turn");
    editor.cancel(&session);
    editor.notify("$/cancel_request", json!({"requestId": 4711}));
    goes_on(editor, &session);
}

#[test]
fn inside_a_question_which_is_withdrawn() {
    let bench = bench([shell("touch made"), Reply::text("after")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "make it");
    let request = editor.asked("session/request_permission");
    editor.cancel(&session);
    let withdrawn = editor.asked("$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    // What the client still says about it changes nothing.
    editor.respond(
        &request,
        json!({"outcome": {"outcome": "selected", "optionId": "allow"}}),
    );
    assert_eq!(editor.stopped(id), "cancelled");
    assert!(!bench.workspace.path().join("made").exists());
    goes_on(editor, &session);
}

#[test]
fn inside_a_tool() {
    let bench = permitting([shell("echo $$ > id; exec sleep 600"), Reply::text("after")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "sleep");
    let file = bench.workspace.path().join("id");
    crate::process::eventually("a command", || {
        std::fs::read_to_string(&file).is_ok_and(|it| it.ends_with('\n'))
    });
    editor.cancel(&session);
    assert_eq!(editor.stopped(id), "cancelled");
    let call = editor.told(&session, "tool_call")[0]["toolCallId"].clone();
    let call = editor.call(&session, call.as_str().unwrap());
    assert_eq!(call["status"], "failed", "{call}");
    goes_on(editor, &session);
}

#[test]
fn everything_that_waits_is_cancelled_too() {
    let bench = bench([tale(), Reply::text("after")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let ids: Vec<i64> = ["1", "2", "3"].map(|it| editor.send(&session, it)).to_vec();
    editor.until("agent_message_chunk");
    editor.cancel(&session);
    // What waits is taken back first; the order is the program's.
    let mut answers: Vec<String> = Vec::new();
    let mut waiting = ids.clone();
    while !waiting.is_empty() {
        let is_answer = |frame: &serde_json::Value| frame.get("result").is_some();
        let frame = editor.process.until("an answer", is_answer, |_| false);
        answers.push(frame["result"]["stopReason"].as_str().unwrap().to_owned());
        waiting.retain(|id| frame["id"] != *id);
    }
    assert_eq!(answers, ["cancelled"; 3]);
    assert_eq!(bench.server.model_requests().len(), 1);
    goes_on(editor, &session);
}

#[test]
fn one_of_several_by_its_request() {
    let bench = bench([tale(), Reply::text("after")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let first = editor.send(&session, "1");
    editor.until("agent_message_chunk");
    let second = editor.send(&session, "2");
    editor.notify("$/cancel_request", json!({"requestId": second}));
    assert_eq!(editor.stopped(second), "cancelled");
    editor.notify("$/cancel_request", json!({"requestId": first}));
    assert_eq!(editor.stopped(first), "cancelled");
    assert_eq!(bench.server.model_requests().len(), 1);
    goes_on(editor, &session);
}

#[test]
fn by_closing_the_session() {
    let bench = bench([tale()]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "tell");
    editor.until("agent_message_chunk");
    let close = editor.request("session/close", json!({"sessionId": session}));
    assert_eq!(editor.stopped(id), "cancelled");
    editor.answer(close);
    let params = json!({"sessionId": session, "prompt": crate::text("hi")});
    assert_eq!(editor.fail("session/prompt", params).0, -32002);
}

/// Prompts and cancels as fast as they can be written: each prompt has one answer, and the session
/// lives.
#[test]
fn again_and_again() {
    const TIMES: usize = 40;
    let bench = bench((0..=TIMES).map(|_| Reply::text("after")));
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    for round in 0..TIMES {
        let id = editor.send(&session, &format!("round {round}"));
        if round % 3 == 1 {
            editor.until("usage_update");
        }
        editor.cancel(&session);
        let reason = editor.stopped(id);
        assert!(reason == "cancelled" || reason == "end_turn", "{reason}");
    }
    assert_eq!(editor.prompt(&session, "last"), "end_turn");
    let answers = editor.process.frames().iter();
    let answers = answers.filter(|frame| frame["result"].get("stopReason").is_some());
    assert_eq!(answers.count(), TIMES + 1);
    assert_eq!(editor.end().code, Some(0));
}
