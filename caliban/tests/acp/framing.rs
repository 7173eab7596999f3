//! Lines: what cannot be read is answered, and the connection stays up.

use caliban_testkit::Reply;
use serde_json::{Value, json};

use crate::bench;
use crate::editor::Editor;

#[test]
fn the_version_is_one_whatever_is_asked_for() {
    let bench = bench([]);
    for version in [0, 1, 7] {
        let mut editor = Editor::silent(bench.command());
        let answer = editor.ask("initialize", json!({"protocolVersion": version}));
        assert_eq!(answer["protocolVersion"], 1);
        assert_eq!(answer["agentInfo"]["name"], "caliban");
        let can = &answer["agentCapabilities"];
        assert_eq!(can["loadSession"], true);
        assert_eq!(
            can["promptCapabilities"],
            json!({"image": true, "audio": false, "embeddedContext": true})
        );
        assert_eq!(can["mcpCapabilities"], json!({"http": true, "sse": true}));
        let session = can["sessionCapabilities"].as_object().unwrap();
        let mut names: Vec<&str> = session.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["additionalDirectories", "close", "delete", "list", "resume"]
        );
        assert_eq!(editor.end().code, Some(0));
    }
}

/// The ids and codes of all errors.
fn errors(frames: &[Value]) -> Vec<(Value, i64)> {
    let errors = frames.iter().filter(|frame| frame.get("error").is_some());
    errors
        .map(|frame| {
            (
                frame["id"].clone(),
                frame["error"]["code"].as_i64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn what_cannot_be_read_is_answered_and_the_connection_stays_up() {
    let bench = bench([Reply::text("hello")]);
    let mut editor = Editor::silent(bench.command());
    editor.process.write_raw("{\n");
    editor.process.write_raw("\n");
    editor.process.write_raw("[{\"jsonrpc\":\"2.0\"}]\n");
    editor
        .process
        .write(&json!({"jsonrpc": "2.0", "id": "early", "method": "session/list"}));
    editor
        .process
        .write(&json!({"jsonrpc": "2.0", "id": "x1", "method": "_mine/do"}));
    editor
        .process
        .write(&json!({"jsonrpc": "2.0", "id": 5, "method": "session/teleport"}));
    editor
        .process
        .write(&json!({"jsonrpc": "2.0", "method": "_mine/heard", "params": {}}));
    editor
        .process
        .write(&json!({"jsonrpc": "2.0", "id": 99, "result": {"stray": true}}));
    editor.ask("initialize", json!({"protocolVersion": 1}));
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    assert_eq!(editor.said(&session), "hello");
    let ended = editor.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        errors(&ended.frames),
        [
            (Value::Null, -32700),
            (Value::Null, -32600),
            (json!("early"), -32600),
            (json!("x1"), -32601),
            (json!(5), -32601),
        ]
    );
}

#[test]
fn a_line_of_thirty_megabytes_is_read_and_one_of_forty_is_told() {
    let bench = bench([Reply::text("read")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let data = "x".repeat(30 * 1024 * 1024);
    let image = json!({"type": "image", "mimeType": "image/png", "data": data});
    let prompt = json!([{"type": "text", "text": "what is it?"}, image]);
    // It is read as a whole, and is no picture.
    let params = json!({"sessionId": session, "prompt": prompt});
    let (code, message) = editor.fail("session/prompt", params);
    assert_eq!(code, -32602, "{message}");
    editor
        .process
        .write_raw(&format!("{}\n", "y".repeat(40 * 1024 * 1024)));
    assert_eq!(editor.prompt(&session, "and now?"), "end_turn");
    let frames = editor.end().frames;
    assert_eq!(errors(&frames)[1], (Value::Null, -32700));
}
