//! Prompts: what is streamed, what comes along, how they end.

use caliban_testkit::{Block, Fault, Prose, Reply, Stop, Usage};
use serde_json::{Value, json};

use crate::editor::Editor;
use crate::{bench, shell, text};

#[test]
fn text_and_thoughts_are_streamed_with_one_id_each() {
    let pieces = ["Hello, ", "editor."].map(str::to_owned).to_vec();
    let reply = Reply::default().block(Block::Text(Prose::Pieces(pieces)));
    let bench = bench([reply.thinking("Let me see."), Reply::text("again")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    assert_eq!(editor.said(&session), "Hello, editor.");
    assert_eq!(editor.prompt(&session, "and?"), "end_turn");
    let ids = |kind: &str| {
        let mut ids: Vec<Value> = editor
            .told(&session, kind)
            .iter()
            .map(|it| it["messageId"].clone())
            .collect();
        ids.dedup();
        ids
    };
    let (said, thought) = (ids("agent_message_chunk"), ids("agent_thought_chunk"));
    assert_eq!((said.len(), thought.len()), (2, 1), "{said:?} {thought:?}");
    assert!(said[0] != said[1] && said[0] != thought[0]);
    let usage = editor.told(&session, "usage_update");
    assert!(usage[0]["used"].as_u64().unwrap() > 0, "{usage:?}");
    assert!(usage[0]["size"].as_u64().unwrap() >= 200_000, "{usage:?}");
    assert_eq!(usage[0]["cost"]["currency"], "USD");
    let titles = editor.told(&session, "session_info_update");
    assert_eq!(titles.len(), 1);
    assert_eq!(titles[0]["title"], "hi");
    let commands = &editor.told(&session, "available_commands_update")[0];
    let names = commands["availableCommands"].as_array().unwrap();
    assert!(names.iter().any(|it| it["name"] == "compact"), "{commands}");
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn files_resources_and_images_come_along() {
    let bench = bench([Reply::text("seen")]);
    std::fs::write(
        bench.workspace.path().join("my notes.txt"),
        "the secret word is plum",
    )
    .unwrap();
    let outside = bench.home.path().join("outside.txt");
    std::fs::write(&outside, "not for the model").unwrap();
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let workspace = bench.workspace.path().canonicalize().unwrap();
    let uri = format!("file://{}/my%20notes.txt", workspace.display());
    let prompt = json!([
        {"type": "text", "text": "look at "},
        {"type": "resource_link", "name": "my notes.txt", "uri": uri},
        {"type": "text", "text": "and "},
        {"type": "resource_link", "name": "outside", "uri": format!("file://{}", outside.display())},
        {"type": "resource", "resource": {"uri": "file:///buffer.rs", "text": "fn unsaved() {}"}},
        {"type": "image", "mimeType": "image/png", "data": png},
    ]);
    let params = json!({"sessionId": session, "prompt": prompt});
    assert_eq!(
        editor.ask("session/prompt", params)["stopReason"],
        "end_turn"
    );
    let request = bench.server.model_requests()[0].json();
    let message = request["messages"][0].to_string();
    for part in [
        "secret word is plum",
        "fn unsaved() {}",
        "image/png",
        "file:///buffer.rs",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("not for the model"), "{message}");
    let notices = editor.told(&session, "notice");
    assert!(
        notices[0].to_string().contains("outside the workspace"),
        "{notices:?}"
    );
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let bench = bench([]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}]);
    for prompt in [json!([]), text("  "), audio] {
        let params = json!({"sessionId": session, "prompt": prompt});
        assert_eq!(editor.fail("session/prompt", params).0, -32602);
    }
    let params = json!({"sessionId": "nobody", "prompt": text("hi")});
    assert_eq!(editor.fail("session/prompt", params).0, -32002);
    assert_eq!(bench.server.model_requests().len(), 0);
}

#[test]
fn commands_are_obeyed_and_cost_nothing() {
    let bench = bench([]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "/status"), "end_turn");
    assert!(
        editor.said(&session).contains(&session),
        "{}",
        editor.said(&session)
    );
    assert_eq!(bench.server.model_requests().len(), 0);
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn limits_have_their_reasons() {
    let bench = bench([
        Reply::text("cut").stop(Stop::MaxTokens),
        shell("true"),
        shell("false"),
    ]);
    let mut command = bench.command();
    command.args(["--max-turns", "1", "--allow", "Bash"]);
    let mut editor = Editor::able(command, &json!({}));
    let session = editor.open(&bench);
    let reason = editor.prompt(&session, "long");
    assert!(
        reason == "max_tokens" || reason == "max_turn_requests",
        "{reason}"
    );
    assert_eq!(editor.prompt(&session, "calls"), "max_turn_requests");
}

#[test]
fn a_refusal_takes_the_prompt_out_of_the_conversation() {
    let bench = bench([
        Reply::text("fine"),
        Reply::text("").stop(Stop::Refusal),
        Reply::text("still here"),
    ]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "an apple"), "end_turn");
    assert_eq!(editor.prompt(&session, "a poison"), "refusal");
    assert!(
        editor.said(&session).contains("refused"),
        "{}",
        editor.said(&session)
    );
    assert_eq!(editor.prompt(&session, "a pear"), "end_turn");
    let requests = bench.server.model_requests();
    let last = requests.last().unwrap().json()["messages"].to_string();
    assert!(
        last.contains("an apple") && last.contains("a pear"),
        "{last}"
    );
    assert!(!last.contains("a poison"), "{last}");
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn failures_of_the_provider_are_errors_and_the_next_prompt_works() {
    let status = |code| {
        Reply::fault(Fault::Status {
            code,
            kind: None,
            retry_after: None,
            retry_after_ms: None,
            headers: std::collections::BTreeMap::new(),
            body: None,
        })
    };
    let bench = bench([status(400), status(401), Reply::text("back")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let prompt = |text_: &str| json!({"sessionId": session, "prompt": text(text_)});
    assert_eq!(editor.fail("session/prompt", prompt("one")).0, -32603);
    assert_eq!(editor.fail("session/prompt", prompt("two")).0, -32000);
    assert_eq!(editor.prompt(&session, "three"), "end_turn");
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn prompts_wait_for_their_turn_and_are_answered_in_order() {
    let held = Reply::text("first").hold_after(3);
    let bench = bench([held, Reply::text("second"), Reply::text("third")]);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let ids: Vec<i64> = ["1", "2", "3"].map(|it| editor.send(&session, it)).to_vec();
    bench.server.wait_for_requests(1);
    bench.server.release();
    for id in &ids {
        assert_eq!(editor.stopped(*id), "end_turn");
    }
    assert_eq!(editor.said(&session), "firstsecondthird");
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn more_prompts_than_may_wait_are_refused_and_the_others_are_not() {
    let held = Reply::text("first").hold_after(3);
    let replies = std::iter::once(held).chain((0..32).map(|_| Reply::text("x")));
    let bench = bench(replies);
    let mut editor = Editor::start(&bench);
    let session = editor.open(&bench);
    let ids: Vec<i64> = (0..34)
        .map(|n| editor.send(&session, &n.to_string()))
        .collect();
    let refused = editor.answer(ids[33]);
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    bench.server.release();
    for id in &ids[..33] {
        assert_eq!(editor.stopped(*id), "end_turn");
    }
}

/// In a debug build a prompt that holds the text of this variable makes the run panic.
#[test]
fn a_fault_of_our_own_is_an_error_of_one_session() {
    let bench = bench([Reply::text("unharmed")]);
    let mut command = bench.command();
    command.env("CALIBAN_TEST_PANIC", "break now");
    let mut editor = Editor::able(command, &json!({}));
    let (one, other) = (editor.open(&bench), editor.open(&bench));
    let params = json!({"sessionId": one, "prompt": text("please break now")});
    let (code, message) = editor.fail("session/prompt", params);
    assert_eq!(code, -32603);
    assert!(message.contains("internal error"), "{message}");
    assert_eq!(editor.prompt(&other, "and you?"), "end_turn");
    assert_eq!(editor.end().code, Some(0));
}

#[test]
fn over_budget_is_said_and_ends_the_session() {
    let dear = Usage {
        input: 1_000_000,
        ..Usage::SMALL
    };
    let bench = bench([shell("true").usage(dear)]);
    let mut command = bench.command();
    command.args(["--allow", "Bash", "--max-budget-usd", "0.5"]);
    let mut editor = Editor::able(command, &json!({}));
    let session = editor.open(&bench);
    assert_eq!(editor.prompt(&session, "spend"), "end_turn");
    assert!(
        editor.said(&session).contains("budget"),
        "{}",
        editor.said(&session)
    );
    let params = json!({"sessionId": session, "prompt": text("more")});
    let (code, _) = editor.fail("session/prompt", params);
    assert!(code == -32002 || code == -32603, "{code}");
    assert_eq!(bench.server.model_requests().len(), 1);
}
