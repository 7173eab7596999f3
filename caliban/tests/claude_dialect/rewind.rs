//! Files go back to how they were when a message came, in the way that clients are told to do it.

use std::fs;

use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, Client};

const ON: [(&str, &str); 1] = [("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")];
const REPLAYED: [&str; 3] = ["--replay-user-messages", "--permission-mode", "acceptEdits"];

fn write(content: &str) -> Reply {
    Reply::tool("Write", json!({"file_path": "a.txt", "content": content}))
}

fn bench() -> Bench {
    let bench = Bench::new(Script::new([
        write("two\n"),
        Reply::text("one done"),
        write("three\nfour\n"),
        Reply::text("two done"),
        Reply::text("never asked"),
    ]));
    fs::write(bench.workspace.path().join("a.txt"), "one\n").unwrap();
    bench
}

fn text(bench: &Bench) -> String {
    fs::read_to_string(bench.workspace.path().join("a.txt")).unwrap()
}

/// Sends a prompt to its end; the id of the message and of the session.
fn turn(client: &mut Client, prompt: &str) -> (String, String) {
    client.say(prompt);
    let frames = client.until("result");
    let is_echo = |frame: &&Value| frame["isReplay"] == true;
    let echo = frames.iter().find(is_echo).expect("an echo");
    let read = |field: &str| echo[field].as_str().unwrap().to_owned();
    (read("uuid"), read("session_id"))
}

fn rewind(id: &str) -> Value {
    json!({"subtype": "rewind_files", "user_message_id": id})
}

#[test]
fn a_message_is_a_point_to_go_back_to() {
    let bench = bench();
    let mut client = bench.client_with(&REPLAYED, &ON);
    let (first, _) = turn(&mut client, "make it two");
    let (second, _) = turn(&mut client, "make it three");
    assert_eq!(text(&bench), "three\nfour\n");

    let mut dry = rewind(&second);
    dry["dry_run"] = true.into();
    let shown = client.ask(&dry);
    let expected = json!({
        "canRewind": true, "filesChanged": ["a.txt"], "insertions": 1, "deletions": 2,
    });
    assert_eq!(shown["response"], expected, "{shown}");
    assert_eq!(text(&bench), "three\nfour\n");

    let done = client.ask(&rewind(&second));
    assert_eq!(done["response"], expected, "{done}");
    assert_eq!(text(&bench), "two\n");
    let done = client.ask(&rewind(&first));
    assert_eq!(done["subtype"], "success", "{done}");
    assert_eq!(text(&bench), "one\n");
    let unknown = client.ask(&rewind("00000000-0000-4000-8000-000000000000"));
    assert_eq!(
        unknown["error"],
        "No file checkpoint found for this message."
    );
    // The conversation stays, and the model knows.
    client.say("go on");
    client.until("result");
    let asked = bench.last_request()["messages"].to_string();
    assert!(
        asked.contains("two done") && asked.contains("took changes back"),
        "{asked}"
    );
    assert_eq!(client.close().1, Some(0));
}

#[test]
fn a_later_run_opens_the_session_with_an_empty_prompt_and_goes_back() {
    let bench = bench();
    let mut client = bench.client_with(&REPLAYED, &ON);
    let (first, session) = turn(&mut client, "make it two");
    assert_eq!(client.close().1, Some(0));
    let calls = bench.server.model_requests().len();

    let mut client = bench.client_with(&["--resume", &session], &ON);
    client.say("");
    client.until("system");
    let done = client.ask(&rewind(&first));
    assert_eq!(done["response"]["canRewind"], true, "{done}");
    assert_eq!(text(&bench), "one\n");
    assert_eq!(client.close().1, Some(0));
    assert_eq!(
        bench.server.model_requests().len(),
        calls,
        "no model is asked"
    );
}

#[test]
fn without_the_variable_nothing_goes_back() {
    let bench = bench();
    let mut client = bench.client_with(&REPLAYED, &[]);
    let (first, _) = turn(&mut client, "make it two");
    let refused = client.ask(&rewind(&first));
    assert_eq!(refused["error"], "File rewinding is not enabled.");
    assert_eq!(text(&bench), "two\n");
    client.close();
}
