//! Directories, names and messages for tests.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use caliban_model::{Block, Message, Role, ToolContent};
use caliban_sessions::{NewSession, Record, SessionName, Store};
use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

/// A directory in memory where the machine has one: syncing real disks thousands of times tells
/// nothing more.
pub(crate) fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let in_memory = tempfile::Builder::new().tempdir_in(memory);
    in_memory.unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A store whose clock moves on by a second each time it is read.
pub(crate) fn store(directory: &Path) -> Store {
    let seconds = AtomicI64::new(1_750_000_000);
    Store::new(directory)
        .with_clock(move || Timestamp::from_second(seconds.fetch_add(1, Ordering::SeqCst)).unwrap())
}

pub(crate) fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x1234_5678_0000_4000_8000_0000_0000_0000 + number)
}

pub(crate) fn new_session(number: u128) -> NewSession {
    NewSession {
        session_id: id(number),
        provider: "anthropic".into(),
        model: "claude-sonnet-4-6".into(),
        mode: Some("default".into()),
        cwd: "/home/me/project".into(),
        program_version: "0.1.0".into(),
    }
}

pub(crate) fn message(message: Message) -> Record {
    Record::Message(Arc::new(message))
}

pub(crate) fn user(text: &str) -> Record {
    message(Message::user(text))
}

pub(crate) fn assistant(text: &str) -> Record {
    message(Message::assistant(text))
}

pub(crate) fn calls(ids: &[&str]) -> Record {
    let content = ids
        .iter()
        .map(|id| Block::ToolUse {
            id: (*id).to_owned(),
            name: "Bash".into(),
            input: json!({"command": "make"}),
            private: None,
        })
        .collect();
    message(Message::new(Role::Assistant, content))
}

pub(crate) fn text(text: &str) -> Vec<ToolContent> {
    vec![ToolContent::Text { text: text.into() }]
}

pub(crate) fn result(id: &str, content: Vec<ToolContent>) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content,
        is_error: false,
    }
}

pub(crate) fn results(blocks: Vec<Block>) -> Record {
    message(Message::new(Role::User, blocks))
}
