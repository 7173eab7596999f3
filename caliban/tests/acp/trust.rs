//! What a repository brings along counts only where the workspace is trusted, and what is left out
//! is said once.

use caliban_testkit::Reply;
use serde_json::json;

use crate::editor::Editor;
use crate::{bench, write_settings};

#[test]
fn what_a_repository_brings_is_left_out_and_said() {
    let bench = bench([Reply::text("one"), Reply::text("two")]);
    let made = bench.workspace.path().join("made");
    let hook = format!("touch {}", made.display());
    let brought = json!({
        "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]},
        "mcp_servers": {"theirs": {"command": "touch", "args": [made]}},
    });
    write_settings(&bench.workspace.path().join(".caliban"), &brought);
    // A client that shows no notices reads it before the first answer.
    let mut editor = Editor::able(bench.command(), &json!({}));
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    let said = editor.said(&session);
    assert!(
        said.contains("not trusted") && said.contains("`hooks`"),
        "{said}"
    );
    assert!(said.ends_with("one"), "{said}");
    assert_eq!(editor.prompt(&session, "again"), "end_turn");
    assert_eq!(editor.said(&session).matches("not trusted").count(), 1);
    assert_eq!(editor.told(&session, "notice").len(), 0);
    assert!(!made.exists());
}

#[test]
fn a_client_with_notices_gets_one() {
    let bench = bench([Reply::text("one")]);
    let brought = json!({"mcp_servers": {"theirs": {"command": "touch"}}});
    write_settings(&bench.workspace.path().join(".caliban"), &brought);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    let notices = editor.told(&session, "notice");
    let about = notices
        .iter()
        .filter(|it| it.to_string().contains("not trusted"));
    assert_eq!(about.count(), 1, "{notices:?}");
    assert_eq!(editor.said(&session), "one");
}
