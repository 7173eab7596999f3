//! Modes and options: turned by the client, by a command, by the model itself.

use caliban_testkit::Reply;
use serde_json::{Value, json};

use crate::bench;
use crate::editor::Editor;

/// What an option is set to.
fn value(options: &Value, id: &str) -> Value {
    let options = options.as_array().unwrap();
    let found = options.iter().find(|option| option["id"] == id);
    found.unwrap_or_else(|| panic!("{id}: {options:?}"))["currentValue"].clone()
}

#[test]
fn the_client_turns_the_mode_the_model_and_how_hard_it_thinks() {
    let bench = bench([Reply::text("planned"), Reply::text("other")]);
    let mut editor = Editor::start(&bench);
    let params = json!({"cwd": bench.workspace.path(), "mcpServers": []});
    let answer = editor.ask("session/new", params);
    let session = answer["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(answer["modes"]["currentModeId"], "default");
    assert_eq!(value(&answer["configOptions"], "mode"), "default");
    assert_eq!(value(&answer["configOptions"], "thought_level"), "auto");
    let model = value(&answer["configOptions"], "model");
    assert!(model.as_str().unwrap().starts_with("claude"), "{model}");

    let params = json!({"sessionId": session, "modeId": "plan"});
    editor.ask("session/set_mode", params);
    let update = editor.until("config_option_update");
    assert_eq!(value(&update["configOptions"], "mode"), "plan");

    let set = |id: &str, to: &str| json!({"sessionId": session, "configId": id, "value": to});
    let answer = editor.ask("session/set_config_option", set("mode", "acceptEdits"));
    assert_eq!(value(&answer["configOptions"], "mode"), "acceptEdits");
    assert_eq!(
        editor.until("current_mode_update")["currentModeId"],
        "acceptEdits"
    );
    let answer = editor.ask(
        "session/set_config_option",
        set("model", "claude-haiku-4-5"),
    );
    assert_eq!(value(&answer["configOptions"], "model"), "claude-haiku-4-5");
    let answer = editor.ask(
        "session/set_config_option",
        set("model", "claude-sonnet-4-6"),
    );
    assert_eq!(value(&answer["configOptions"], "mode"), "acceptEdits");
    let answer = editor.ask("session/set_config_option", set("thought_level", "high"));
    assert_eq!(value(&answer["configOptions"], "thought_level"), "high");
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert_eq!(
        bench.server.model_requests()[0].json()["model"],
        "claude-sonnet-4-6"
    );

    for (id, to) in [
        ("mode", "never"),
        ("thought_level", "x"),
        ("volume", "11"),
        ("model", " "),
    ] {
        assert_eq!(
            editor.fail("session/set_config_option", set(id, to)).0,
            -32602,
            "{id}"
        );
    }
    let unknown = json!({"sessionId": session, "modeId": "x"});
    assert_eq!(editor.fail("session/set_mode", unknown).0, -32602);
    let nobody = json!({"sessionId": "x", "modeId": "plan"});
    assert_eq!(editor.fail("session/set_mode", nobody).0, -32002);
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn what_turns_by_itself_is_told() {
    let bench = bench([
        Reply::tool("EnterPlanMode", json!({})),
        Reply::text("planning"),
    ]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let id = editor.send(&session, "plan it");
    assert_eq!(editor.until("current_mode_update")["currentModeId"], "plan");
    assert_eq!(editor.stopped(id), "end_turn");
    let updates = editor.told(&session, "config_option_update");
    assert_eq!(value(&updates[0]["configOptions"], "mode"), "plan");
}
