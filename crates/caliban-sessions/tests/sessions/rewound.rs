//! A conversation that was taken back, and everything it was before, survive being written.

use std::sync::Arc;

use caliban_model::{Block, Image, ImageMime, ImageSource, Message, Role};
use caliban_sessions::{Durability, Position, Record, Store, Writer};
use rstest::rstest;
use uuid::Uuid;

use crate::scratch::{directory, message, name, new_session, store};

/// How a session gets to disk before it is read again.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// As it is after a kill: in the journal alone.
    Journal,
    /// In its file.
    Closed,
}

fn said(text: &str) -> Record {
    message(Message::user(text))
}

fn rewound(restore: &str, position: Option<Position>, note: Option<&str>) -> Record {
    Record::Rewound {
        restore: restore.to_owned(),
        checkpoint: 9,
        to: 1,
        position,
        note: note.map(str::to_owned),
    }
}

fn add(writer: &mut Writer, record: Record) -> Position {
    writer.append(record, Durability::Written).unwrap();
    writer.state().position()
}

fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.text()).collect()
}

fn reopened(store: &Store, writer: Writer, left: Left) -> Writer {
    match left {
        Left::Journal => drop(writer),
        Left::Closed => writer.close().unwrap(),
    }
    let opened = store.open(&name("s")).unwrap();
    assert!(opened.warnings.is_empty(), "{:?}", opened.warnings);
    opened.writer
}

#[rstest]
fn every_point_is_there_again(#[values(Left::Journal, Left::Closed)] left: Left) {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    let image = Block::Image(Image {
        mime: ImageMime::Png,
        source: ImageSource::Base64 {
            data: "iVBORw0KGgo=".into(),
        },
        dims: None,
    });
    let first = add(&mut writer, said("one"));
    let shown = Message::new(Role::User, vec![Block::text("two"), image]);
    let second = add(&mut writer, message(shown.clone()));
    let short = Record::Compacted {
        keep: 0,
        messages: vec![Arc::new(Message::user("short"))],
    };
    let third = add(&mut writer, short);
    let fourth = add(&mut writer, rewound("a", Some(first), None));
    assert_eq!(texts(&writer.state().messages), ["one"]);

    let mut writer = reopened(&store, writer, left);
    assert_eq!(texts(&writer.state().messages), ["one"]);
    assert_eq!(writer.state().past.rewound(), Some("a"));
    for (position, expected) in [
        (first, vec!["one"]),
        (second, vec!["one", "two"]),
        (third, vec!["short"]),
        (fourth, vec!["one"]),
    ] {
        let there = writer.state().conversation_at(position).unwrap();
        assert_eq!(texts(&there), expected, "{position:?}");
    }
    add(&mut writer, rewound("b", Some(second), Some("[a note]")));
    let mut writer = reopened(&store, writer, left);
    let state = writer.state();
    assert_eq!(texts(&state.messages), ["one", "two", "[a note]"]);
    assert_eq!(*state.messages[1], shown, "its image too");
    // What is nowhere changes nothing.
    let nowhere = Position {
        epoch: 99,
        messages: 0,
    };
    add(&mut writer, rewound("c", Some(nowhere), None));
    assert_eq!(writer.state().messages.len(), 3);
    writer.close().unwrap();

    let copy = store
        .fork(&name("s"), &name("t"), Uuid::from_u128(7))
        .unwrap();
    let there = copy.writer.state().conversation_at(third).unwrap();
    assert_eq!(texts(&there), ["short"]);
}

#[test]
fn title_and_tasks_follow() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    let start = writer.state().position();
    add(&mut writer, said("first try"));
    let tasks = serde_json::json!([{"id": "1", "content": "x", "status": "pending"}]);
    let call = Block::ToolUse {
        id: "t".to_owned(),
        name: "TodoWrite".to_owned(),
        input: serde_json::json!({ "todos": tasks }),
        private: None,
    };
    let after = add(
        &mut writer,
        message(Message::new(Role::Assistant, vec![call])),
    );
    assert_eq!(writer.state().title.as_deref(), Some("first try"));
    add(&mut writer, rewound("a", Some(start), None));
    assert_eq!(writer.state().title, None);
    assert_eq!(writer.state().todos, serde_json::json!([]));
    add(&mut writer, rewound("b", Some(after), None));
    assert_eq!(writer.state().title.as_deref(), Some("first try"));
    assert_eq!(writer.state().todos, tasks);
    add(
        &mut writer,
        Record::Title {
            text: "mine".to_owned(),
        },
    );
    add(&mut writer, rewound("c", Some(start), None));
    assert_eq!(writer.state().title.as_deref(), Some("mine"));
}
