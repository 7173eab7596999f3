//! Large contents are files of their own, and come back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_model::{Block, Image, ImageMime, ImageSource, Message, Role, ToolContent};
use caliban_sessions::{Durability, INLINE_TEXT, Record, Store, Warning};
use serde_json::json;

use crate::scratch::{
    calls, directory, message, name, new_session, result, results, store, text, user,
};

const PNG: &str = "iVBORw0KGgo=";

fn image(data: &str) -> Image {
    Image {
        mime: ImageMime::Png,
        source: ImageSource::Base64 { data: data.into() },
        dims: Some((1, 2)),
    }
}

/// A session with an image that was pasted, one that a tool made, and a long text; closed.
fn session(store: &Store) -> Vec<Arc<Message>> {
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    let pasted = vec![Block::text("look"), Block::Image(image(PNG))];
    let pasted = message(Message::new(Role::User, pasted));
    writer.append(pasted, Durability::Written).unwrap();
    writer.append(calls(&["a"]), Durability::Written).unwrap();
    let content = vec![
        ToolContent::Text {
            text: "ä".repeat(INLINE_TEXT),
        },
        ToolContent::Image(image(PNG)),
        ToolContent::Text {
            text: "x".repeat(INLINE_TEXT),
        },
    ];
    let blocks = vec![result("a", content)];
    writer.append(results(blocks), Durability::Written).unwrap();
    let messages = writer.state().messages.clone();
    writer.close().unwrap();
    messages
}

fn blobs(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory.join("s/blobs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort_by_key(|path| fs::metadata(path).unwrap().len());
    paths
}

#[test]
fn images_and_long_results_are_referred_to_by_digest() {
    let directory = directory();
    let store = store(directory.path());
    let messages = session(&store);
    let file = fs::read_to_string(directory.path().join("s.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    // The digest of the eight bytes that every PNG begins with.
    let png = "4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6";
    let reference = json!({"type": "blob_ref", "sha256": png});
    assert_eq!(file["messages"][0]["content"][1]["source"], reference);
    let contents = &file["messages"][2]["content"][0]["content"];
    assert_eq!(contents[1]["source"], reference);
    assert_eq!(contents[0]["text"]["type"], "blob_ref");
    assert_eq!(contents[2]["text"].as_str().unwrap().len(), INLINE_TEXT);

    let blobs = blobs(directory.path());
    assert_eq!(blobs.len(), 2, "the same image is kept once");
    assert_eq!(fs::read(&blobs[0]).unwrap(), b"\x89PNG\r\n\x1a\n");
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!((state.messages, warnings), (messages, Vec::new()));
}

#[test]
fn a_blob_that_is_there_is_not_written_again() {
    let directory = directory();
    let store = store(directory.path());
    session(&store);
    let time = || {
        fs::metadata(&blobs(directory.path())[1])
            .unwrap()
            .modified()
            .unwrap()
    };
    let before = time();
    let mut opened = store.open(&name("s")).unwrap();
    opened
        .writer
        .append(user("more"), Durability::Written)
        .unwrap();
    opened.writer.close().unwrap();
    assert_eq!(time(), before);
}

#[test]
fn a_lost_blob_costs_one_block() {
    let directory = directory();
    let store = store(directory.path());
    let messages = session(&store);
    let blobs = blobs(directory.path());
    fs::remove_file(&blobs[0]).unwrap();
    fs::write(&blobs[1], "ä".repeat(INLINE_TEXT - 1) + "äh").unwrap();
    let (state, warnings) = store.load(&name("s")).unwrap();
    let problems: Vec<&str> = warnings
        .iter()
        .map(|warning| match warning {
            Warning::Blob { problem, .. } => problem.as_str(),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(problems, ["is missing", "is damaged", "is missing"]);
    let [
        Block::Text { text: look, .. },
        Block::Text { text: note, .. },
    ] = &state.messages[0].content[..]
    else {
        panic!("{:?}", state.messages[0]);
    };
    assert_eq!(look, "look");
    assert_eq!(note, "[an image was here; its file is missing]");
    let Block::ToolResult { content, .. } = &state.messages[2].content[0] else {
        panic!("{:?}", state.messages[2]);
    };
    assert_eq!(
        content[..1],
        text("[a long text was here; its file is damaged]")
    );
    let Block::ToolResult { content: whole, .. } = &messages[2].content[0] else {
        panic!("{messages:?}");
    };
    assert_eq!(content[2], whole[2]);
}

#[test]
fn what_only_looks_like_a_reference_is_left_alone() {
    let directory = directory();
    let store = store(directory.path());
    let lookalike = json!({
        "type": "image",
        "source": {"type": "blob_ref", "sha256": "../../secret"},
        "content": [{"type": "text", "text": {"type": "blob_ref", "sha256": "0"}}],
    });
    let block = Block::ToolUse {
        id: "a".into(),
        name: "Tool".into(),
        input: lookalike,
        private: None,
    };
    // Not the way this program writes base64, so it would not come back the same.
    let odd = Block::Image(image("iVBORw0KGgp="));
    let records = [
        user("blob_ref"),
        message(Message::new(Role::User, vec![odd])),
        message(Message::new(Role::Assistant, vec![block])),
        results(vec![result("a", text("{\"type\":\"blob_ref\"}"))]),
    ];
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    for record in records {
        writer.append(record, Durability::Written).unwrap();
    }
    let messages = writer.state().messages.clone();
    drop(writer);
    assert_eq!(store.load(&name("s")).unwrap().0.messages, messages);
    store.open(&name("s")).unwrap().writer.close().unwrap();
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!((state.messages, warnings), (messages, Vec::new()));
}

#[test]
fn a_reference_cannot_leave_the_directory_of_blobs() {
    let directory = directory();
    let store = store(directory.path());
    fs::write(directory.path().join("secret.bin"), "secret").unwrap();
    let image = json!({"type": "image", "mime": "image/png", "source": {"type": "blob_ref", "sha256": "../../secret"}});
    let file = json!({"messages": [{"role": "user", "content": [image]}]});
    fs::write(directory.path().join("s.json"), file.to_string()).unwrap();
    let (state, warnings) = store.load(&name("s")).unwrap();
    let blobs = directory.path().join("s/blobs");
    assert!(
        matches!(&warnings[..], [Warning::Blob { path, .. }] if *path == blobs),
        "nothing outside was looked at: {warnings:?}"
    );
    assert!(state.messages[0].text().starts_with("[an image was here"));
}

#[test]
fn results_that_were_not_delivered_yet_keep_their_blobs() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("go"), Durability::Written).unwrap();
    writer.append(calls(&["a"]), Durability::Written).unwrap();
    let content = text(&"x".repeat(INLINE_TEXT + 1));
    let done = Record::ToolDone {
        id: "a".into(),
        agent: None,
        status: caliban_sessions::CallStatus::Ok,
        content: content.clone(),
    };
    writer.append(done, Durability::Written).unwrap();
    writer.snapshot().unwrap();
    drop(writer);
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(state.messages[2].content, [result("a", content)]);
}
