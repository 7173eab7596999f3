//! Keys: what is said where there is none, and how one is given and forgotten.

use std::process::Stdio;

use caliban_testkit::Reply;
use serde_json::json;

use crate::bench;
use crate::editor::{Editor, everything};
use crate::support::{bare, run_with_input};

#[test]
fn without_a_key_the_variable_is_named_and_a_key_can_be_given() {
    let bench = bench([Reply::text("hello")]);
    let command = || bare(bench.home.path(), bench.workspace.path());
    let mut editor = Editor::silent(command());
    let able = json!({"protocolVersion": 1, "clientCapabilities": everything()});
    let answer = editor.ask("initialize", able);
    let method = &answer["authMethods"][0];
    assert_eq!(
        (&method["type"], &method["args"]),
        (&json!("terminal"), &json!(["--login"]))
    );
    let params = json!({"cwd": bench.workspace.path(), "mcpServers": []});
    let (code, message) = editor.fail("session/new", params);
    assert_eq!(code, -32000);
    assert!(message.contains("ANTHROPIC_API_KEY"), "{message}");
    assert_eq!(
        editor.fail("authenticate", json!({"methodId": "key"})).0,
        -32602
    );

    let mut login = command();
    login
        .args(["serve", "acp", "--login"])
        .stdout(Stdio::piped());
    let ran = run_with_input(&mut login, b"sk-test-4711\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("4711"), "{}", ran.stderr);

    let mut command = command();
    command.env("ANTHROPIC_BASE_URL", bench.server.url());
    let mut editor = Editor::able(command, &json!({}));
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    let request = &bench.server.model_requests()[0];
    assert_eq!(request.header("x-api-key"), Some("sk-test-4711"));
    editor.ask("logout", json!({}));
    assert_eq!(editor.end().code, Some(0));
    let mut editor = Editor::able(bare(bench.home.path(), bench.workspace.path()), &json!({}));
    let params = json!({"cwd": bench.workspace.path(), "mcpServers": []});
    assert_eq!(editor.fail("session/new", params).0, -32000);
}

#[test]
fn a_terminal_is_offered_only_to_who_has_one() {
    let bench = bench([]);
    let mut editor = Editor::silent(bench.command());
    let answer = editor.ask("initialize", json!({"protocolVersion": 1}));
    assert_eq!(answer["authMethods"], json!([]));
}
