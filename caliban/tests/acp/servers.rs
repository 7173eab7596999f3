//! MCP servers that the client passes, and what they want to know.

use caliban_testkit::Reply;
use serde_json::{Value, json};

use crate::editor::Editor;
use crate::{bench, settings};

/// The server of these tests, as a client passes it.
fn stub() -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let python = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let python = python
        .iter()
        .find(|path| std::path::Path::new(path).exists())
        .unwrap();
    json!({
        "name": "Stub Server",
        "command": python,
        "args": [script],
        "env": [{"name": "WORD", "value": "a ${literal} plum"}],
    })
}

fn open(editor: &mut Editor, bench: &crate::support::Bench, servers: Value) -> String {
    let params = json!({"cwd": bench.workspace.path(), "mcpServers": servers});
    editor.ask("session/new", params)["sessionId"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The full name of a tool of the server.
fn tool(name: &str) -> String {
    format!("mcp__Stub_Server__{name}")
}

#[test]
fn the_tools_of_a_server_can_be_called() {
    let bench = bench([
        Reply::tool(tool("environment"), json!({"name": "WORD"})),
        Reply::text("done"),
    ]);
    settings(&bench, &json!({"permissions": {"allow": ["mcp__*"]}}));
    let mut editor = Editor::start(&bench);
    let session = open(&mut editor, &bench, json!([stub()]));
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let request = bench.server.model_requests()[1].json().to_string();
    assert!(request.contains("a ${literal} plum"), "{request}");
}

#[test]
fn what_a_server_wants_to_know_is_a_form() {
    let bench = bench([Reply::tool(tool("ask"), json!({})), Reply::text("done")]);
    settings(&bench, &json!({"permissions": {"allow": ["mcp__*"]}}));
    let mut editor = Editor::start(&bench);
    let session = open(&mut editor, &bench, json!([stub()]));
    let id = editor.send(&session, "go");
    let request = editor.asked("elicitation/create");
    assert_eq!(request["params"]["mode"], "form");
    assert_eq!(request["params"]["sessionId"], session);
    let message = request["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("Really?") && message.contains("Stub Server"),
        "{message}"
    );
    editor.respond(
        &request,
        json!({"action": "accept", "content": {"sure": true}}),
    );
    assert_eq!(editor.stopped(id), "end_turn");
    let told = bench.server.model_requests()[1].json().to_string();
    assert!(told.contains("the user said accept"), "{told}");
}

#[test]
fn a_client_without_forms_is_not_asked() {
    let bench = bench([Reply::tool(tool("ask"), json!({})), Reply::text("done")]);
    settings(&bench, &json!({"permissions": {"allow": ["mcp__*"]}}));
    let mut editor = Editor::able(bench.command(), &json!({}));
    let session = open(&mut editor, &bench, json!([stub()]));
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let told = bench.server.model_requests()[1].json().to_string();
    assert!(told.contains("the user said decline"), "{told}");
}

#[test]
fn a_server_that_is_not_there_does_not_keep_the_session_from_beginning() {
    let bench = bench([Reply::text("fine")]);
    let mut editor = Editor::start(&bench);
    let servers = json!([
        {"name": "gone", "command": "/no/such/program", "args": [], "env": []},
        {"type": "http", "name": "far", "url": "http://127.0.0.1:9/mcp", "headers": []},
    ]);
    let session = open(&mut editor, &bench, servers);
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    let twice = json!({"cwd": bench.workspace.path(), "mcpServers": [stub(), stub()]});
    assert_eq!(editor.fail("session/new", twice).0, -32602);
}
