//! Sessions: several at once, loaded with everything that was said, resumed, listed, closed,
//! deleted; and the end of the input.

use std::time::{Duration, Instant};

use caliban_testkit::{Match, Reply};
use serde_json::{Value, json};

use crate::editor::Editor;
use crate::{bench, permitting, shell};

#[test]
fn two_sessions_work_at_the_same_time() {
    let bench = bench([
        Reply::text("slow")
            .hold_after(3)
            .when(Match::last_user("first")),
        Reply::text("quick").when(Match::last_user("second")),
    ]);
    let mut editor = Editor::start(&bench);
    let (one, other) = (editor.open(&bench), editor.open(&bench));
    assert_ne!(one, other);
    let first = editor.send(&one, "first");
    bench.server.wait_for_requests(1);
    assert_eq!(editor.prompt(&other, "second"), "end_turn");
    assert_eq!(editor.said(&other), "quick");
    bench.server.release();
    assert_eq!(editor.stopped(first), "end_turn");
    assert_eq!(editor.said(&one), "slow");
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn what_was_said_is_told_again_before_the_answer() {
    let bench = permitting([
        shell("echo plum").and_text("looking"),
        Reply::text("it is plum").thinking("hm"),
        Reply::text("going on"),
    ]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "which word?"), "end_turn");
    assert_eq!(editor.end().code, Some(0));

    let mut editor = Editor::start(&bench);
    let params = json!({"sessionId": session, "cwd": bench.workspace.path(), "mcpServers": []});
    let id = editor.request("session/load", params);
    editor.until("user_message_chunk");
    editor.answer(id);
    let told = editor.updates(&session);
    let kinds: Vec<&str> = told
        .iter()
        .map(|update| update["sessionUpdate"].as_str().unwrap())
        .collect();
    // All of it came before the answer, which was the last thing that was read.
    let expected = [
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ];
    for kind in expected {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert_eq!(told[0]["content"]["text"], "which word?");
    assert!(editor.said(&session).ends_with("it is plum"));
    let call = editor.told(&session, "tool_call")[0].clone();
    let call = editor.call(&session, call["toolCallId"].as_str().unwrap());
    assert_eq!(
        (&call["title"], &call["status"]),
        (&json!("echo plum"), &json!("completed"))
    );
    assert!(call["content"].to_string().contains("plum"), "{call}");

    assert_eq!(editor.prompt(&session, "and?"), "end_turn");
    let request = bench.server.model_requests()[2].json().to_string();
    assert!(request.contains("which word?") && request.contains("it is plum"));
    // It can be loaded while it is open here, too.
    let params = json!({"sessionId": session, "cwd": bench.workspace.path(), "mcpServers": []});
    editor.ask("session/load", params);
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn a_session_goes_on_without_being_told_again() {
    let bench = bench([Reply::text("one"), Reply::text("two")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "first"), "end_turn");
    editor.ask("session/close", json!({"sessionId": session}));
    let told = editor.updates(&session).len();
    let params = json!({"sessionId": session, "cwd": bench.workspace.path()});
    let answer = editor.ask("session/resume", params);
    assert_eq!(answer["modes"]["currentModeId"], "default");
    assert_eq!(editor.updates(&session).len(), told);
    assert_eq!(editor.prompt(&session, "second"), "end_turn");
    assert!(
        bench.server.model_requests()[1]
            .json()
            .to_string()
            .contains("first")
    );
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn a_session_of_another_process_names_its_holder() {
    let bench = bench([Reply::text("one")]);
    let mut holder = Editor::start(&bench);
    let session = holder.open(&bench);
    assert_eq!(holder.prompt(&session, "mine"), "end_turn");
    let mut editor = Editor::start(&bench);
    let params = json!({"sessionId": session, "cwd": bench.workspace.path(), "mcpServers": []});
    let (code, message) = editor.fail("session/load", params);
    assert_eq!(code, -32603);
    assert!(
        message.contains(&holder.process.id().to_string()),
        "{message}"
    );
    let nowhere = "00000000-0000-4000-8000-000000000000";
    let params = json!({"sessionId": nowhere, "cwd": bench.workspace.path(), "mcpServers": []});
    assert_eq!(editor.fail("session/load", params).0, -32002);
    let params = json!({"sessionId": "../../etc", "cwd": bench.workspace.path()});
    assert_eq!(editor.fail("session/resume", params).0, -32002);
}

#[test]
fn sessions_are_listed_in_pages_and_deleted() {
    let bench = bench((0..52).map(|_| Reply::text("x")));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut editor = Editor::start(&bench);
    let mut sessions = Vec::new();
    for n in 0..51 {
        let session = editor.open(&bench);
        assert_eq!(
            editor.prompt(&session, &format!("prompt {n}\nmore")),
            "end_turn"
        );
        editor.ask("session/close", json!({"sessionId": session}));
        sessions.push(session);
    }
    let params = json!({"cwd": elsewhere.path(), "mcpServers": []});
    let other = editor.ask("session/new", params)["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(editor.prompt(&other, "elsewhere"), "end_turn");

    let here = json!({"cwd": bench.workspace.path()});
    let page = editor.ask("session/list", here.clone());
    let ids = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().unwrap();
        sessions
            .iter()
            .map(|it| it["sessionId"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = ids(&page);
    assert_eq!(first.len(), 50);
    assert_eq!(first[0], sessions[50]);
    assert_eq!(page["sessions"][0]["title"], "prompt 50 more");
    let mut next = here.clone();
    next["cursor"] = page["nextCursor"].clone();
    let last = editor.ask("session/list", next);
    assert_eq!(ids(&last), [sessions[0].clone()]);
    assert!(last.get("nextCursor").is_none(), "{last}");
    let all = editor.ask("session/list", json!({}));
    assert_eq!(ids(&all)[0], other);
    assert_eq!(
        editor.fail("session/list", json!({"cursor": "x"})).0,
        -32602
    );

    // One that is open is closed first; one that is gone is gone.
    for session in [&other, &sessions[0], &sessions[0]] {
        editor.ask("session/delete", json!({"sessionId": session}));
    }
    let rest = editor.ask("session/list", json!({}));
    assert!(!ids(&rest).contains(&other));
    let params = json!({"sessionId": other, "prompt": crate::text("hi")});
    assert_eq!(editor.fail("session/prompt", params).0, -32002);
}

#[test]
fn directories_must_be_there() {
    let bench = bench([]);
    let mut editor = Editor::start(&bench);
    for cwd in ["relative", "/no/such/directory"] {
        let (code, message) = editor.fail("session/new", json!({"cwd": cwd, "mcpServers": []}));
        assert_eq!(code, -32602);
        assert!(message.contains(cwd), "{message}");
    }
    let further = json!({
        "cwd": bench.workspace.path(), "mcpServers": [], "additionalDirectories": ["x"],
    });
    assert_eq!(editor.fail("session/new", further).0, -32602);
}

#[test]
fn further_directories_can_be_read() {
    let further = tempfile::tempdir().unwrap();
    std::fs::write(further.path().join("there.txt"), "plum").unwrap();
    let path = further.path().canonicalize().unwrap().join("there.txt");
    let bench = bench([
        Reply::tool("Read", json!({"path": path})),
        Reply::text("done"),
    ]);
    let mut editor = Editor::start(&bench);
    let params = json!({
        "cwd": bench.workspace.path(),
        "mcpServers": [],
        "additionalDirectories": [further.path()],
    });
    let session = editor.ask("session/new", params)["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(editor.prompt(&session, "read"), "end_turn");
    assert!(
        bench.server.model_requests()[1]
            .json()
            .to_string()
            .contains("plum")
    );
}

#[test]
fn the_end_of_the_input_ends_everything_soon_and_keeps_it() {
    let sleeper = shell("echo $$ > id; exec sleep 600");
    let bench = permitting([Reply::text("kept"), sleeper]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "first"), "end_turn");
    let id = editor.send(&session, "sleep");
    editor.until("tool_call");
    let file = bench.workspace.path().join("id");
    crate::process::eventually("a command", || {
        std::fs::read_to_string(&file).is_ok_and(|it| it.ends_with('\n'))
    });
    let began = Instant::now();
    let ended = editor.end();
    let took = began.elapsed();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(took < Duration::from_secs(10), "{took:?}");
    let answer = ended.frames.iter().find(|frame| frame["id"] == id).unwrap();
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    let pid = std::fs::read_to_string(&file).unwrap();
    let gone = std::path::Path::new("/proc").join(pid.trim());
    crate::process::eventually("the end of the command", || !gone.exists());
    let mut editor = Editor::start(&bench);
    let params = json!({"sessionId": session, "cwd": bench.workspace.path(), "mcpServers": []});
    editor.ask("session/load", params);
    assert!(editor.said(&session).contains("kept"));
}
