//! The life of a session: created, continued, forked, found and removed.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use caliban_model::{Block, Message, Purpose, Usage};
use caliban_sessions::{
    Durability, Effects, Error, Health, Notice, Record, SessionName, StateChange, Store, Warning,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::scratch::{
    assistant, calls, directory, id, name, new_session, result, results, store, text, user,
};

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A closed session with one exchange.
fn closed(store: &Store, name: &SessionName, number: u128) {
    let mut writer = store.create(name, new_session(number)).unwrap();
    writer.append(user("hello"), Durability::Written).unwrap();
    writer.append(assistant("hi"), Durability::Written).unwrap();
    writer
        .append(Record::TurnEnded {}, Durability::Synced)
        .unwrap();
    writer.close().unwrap();
}

#[test]
fn a_session_file_has_the_documented_fields_small_ones_first() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("mine"), new_session(1)).unwrap();
    writer.append(user("fix\nit"), Durability::Written).unwrap();
    let usage = Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    writer
        .append(
            Record::Usage {
                provider: "anthropic".into(),
                model: "m".into(),
                usage,
                cost: Some("0.25".parse().unwrap()),
                purpose: Purpose::MainLoop,
                agent: None,
                saved: None,
                calls: 1,
                day: None,
            },
            Durability::Written,
        )
        .unwrap();
    let change = StateChange {
        model: Some("other".into()),
        mode: Some("plan".into()),
        plan_mode: Some(true),
        todos: Some(json!([{"text": "test"}])),
        ..StateChange::default()
    };
    writer
        .append(Record::State(Box::new(change)), Durability::Written)
        .unwrap();
    writer
        .append(Record::TurnEnded {}, Durability::Synced)
        .unwrap();
    writer.close().unwrap();
    assert_eq!(files(directory.path()), ["mine.json"]);

    let text = fs::read_to_string(directory.path().join("mine.json")).unwrap();
    assert!(text.starts_with("{\n  \"format\": 1,\n  \"name\": \"mine\","));
    let file: Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<&String> = file.as_object().unwrap().keys().collect();
    let messages = keys.iter().position(|key| *key == "messages").unwrap();
    let small = [
        "name",
        "provider",
        "model",
        "total_usage",
        "created_at",
        "updated_at",
        "plan_mode",
        "session_id",
        "turns",
        "cost",
        "journal_seq",
        "title",
        "cwd",
    ];
    for key in small {
        let at = keys.iter().position(|found| *found == key).expect(key);
        assert!(at < messages, "{key}");
    }
    assert_eq!(file["session_id"], json!(id(1)));
    assert_eq!(file["model"], "other");
    assert_eq!(file["total_usage"]["input"], 10);
    assert_eq!(file["cost"], "0.25");
    assert_eq!(file["title"], "fix it");
    assert_eq!(file["plan_mode"], true);
    assert_eq!(file["named"], true);
    assert_eq!(file["todos"], json!([{"text": "test"}]));
    assert_eq!(file["messages"][0]["content"][0]["text"], "fix\nit");
}

#[test]
fn a_session_goes_on_where_it_was() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("one"), Durability::Written).unwrap();
    let notice = Notice {
        subtype: "info".into(),
        message: "noted".into(),
    };
    writer
        .append(Record::Notice(notice.clone()), Durability::Written)
        .unwrap();
    let before = writer.state().clone();
    drop(writer);

    let opened = store.open(&name("s")).unwrap();
    assert_eq!(opened.warnings, []);
    assert_eq!(opened.state, before);
    assert_eq!(opened.state.notices, [notice]);
    assert_eq!(opened.state.session_id, id(1));
    let mut writer = opened.writer;
    writer.append(assistant("two"), Durability::Synced).unwrap();
    let expected = writer.state().clone();
    writer.close().unwrap();

    let opened = store.open(&name("s")).unwrap();
    assert_eq!(opened.state, expected);
    // Nothing happened, so nothing is written.
    let path = directory.path().join("s.json");
    let untouched = fs::read(&path).unwrap();
    opened.writer.close().unwrap();
    assert_eq!(fs::read(&path).unwrap(), untouched);
    assert_eq!(files(directory.path()), ["s.json"]);
}

#[test]
fn a_call_that_waited_is_known_to_have_waited_also_after_a_snapshot() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("go"), Durability::Written).unwrap();
    writer
        .append(calls(&["a", "b"]), Durability::Written)
        .unwrap();
    let intent = Record::ToolIntent {
        id: "a".into(),
        agent: None,
        name: "Bash".into(),
        effects: Effects::SideEffects,
    };
    writer.append(intent, Durability::Synced).unwrap();
    writer.snapshot().unwrap();
    drop(writer);
    let opened = store.open(&name("s")).unwrap();
    let said = format!("{:?}", opened.state.messages.last().unwrap());
    let (a, b) = said.split_once("\"b\"").unwrap();
    assert!(a.contains("outcome is unknown"), "{said}");
    assert!(b.contains("never started"), "{said}");
    // The settlement is part of the record now.
    drop(opened.writer);
    let again = store.open(&name("s")).unwrap();
    assert_eq!(again.state, opened.state);
    assert_eq!(again.warnings, []);
}

#[test]
fn the_journal_is_folded_into_the_snapshot_when_it_outgrows_it() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    let journal = directory.path().join("s.journal");
    let long = "x".repeat(100_000);
    for _ in 0..10 {
        writer.append(user(&long), Durability::Written).unwrap();
        writer.tidy().unwrap();
    }
    assert!(!directory.path().join("s.json").exists());
    writer.append(user(&long), Durability::Written).unwrap();
    writer.tidy().unwrap();
    assert!(fs::metadata(&journal).unwrap().len() < 1000);
    let snapshot = fs::metadata(directory.path().join("s.json")).unwrap().len();
    assert!(snapshot > 1_000_000);
    // Appending is as cheap as before.
    writer.append(user("short"), Durability::Written).unwrap();
    writer.tidy().unwrap();
    assert_eq!(
        fs::metadata(directory.path().join("s.json")).unwrap().len(),
        snapshot
    );
    let expected = writer.state().clone();
    drop(writer);
    assert_eq!(store.open(&name("s")).unwrap().state, expected);
}

#[test]
fn files_that_are_deleted_under_the_writer_come_back() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("one"), Durability::Written).unwrap();
    fs::remove_file(directory.path().join("s.journal")).unwrap();
    writer.append(user("two"), Durability::Written).unwrap();
    let expected = writer.state().clone();
    drop(writer);
    assert_eq!(store.load(&name("s")).unwrap().0, expected);
}

#[test]
fn what_cannot_be_written_is_told_and_written_later() {
    let directory = directory();
    let sessions = directory.path().join("sessions");
    let store = store(&sessions);
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("one"), Durability::Synced).unwrap();
    let away = directory.path().join("away");
    fs::rename(&sessions, &away).unwrap();
    fs::remove_file(away.join("s.journal")).unwrap();

    let error = writer.append(user("two"), Durability::Written).unwrap_err();
    assert!(
        matches!(&error, Error::Unsaved { records: 1, .. }),
        "{error}"
    );
    let said = error.to_string();
    assert!(
        said.contains("s.json") && said.contains("1 record waits"),
        "{said}"
    );
    assert!(matches!(
        writer.health(),
        Health::Unsaved { records: 1, .. }
    ));
    // A record that need not survive much is not worth a whole snapshot each time.
    assert!(writer.append(user("three"), Durability::Written).is_err());
    fs::rename(&away, &sessions).unwrap();
    assert!(writer.append(user("four"), Durability::Written).is_err());
    writer.retry().unwrap();
    assert_eq!(writer.health(), Health::Sound);
    let expected = writer.state().clone();
    drop(writer);
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!((state, warnings), (expected, Vec::new()));
}

#[test]
fn a_name_is_taken_once() {
    let directory = directory();
    let store = store(directory.path());
    let mut first = store.create(&name("s"), new_session(1)).unwrap();
    first.append(user("hello"), Durability::Written).unwrap();
    let busy = store.create(&name("s"), new_session(2)).unwrap_err();
    let pid = std::process::id();
    assert!(matches!(busy, Error::Busy { pid: Some(found), .. } if found == pid));
    assert!(busy.to_string().contains(&pid.to_string()));
    assert!(matches!(store.open(&name("s")), Err(Error::Busy { .. })));
    assert!(matches!(store.remove(&name("s")), Err(Error::Busy { .. })));
    store.load(&name("s")).unwrap();
    drop(first);
    let taken = store.create(&name("s"), new_session(2)).unwrap_err();
    assert!(matches!(taken, Error::Exists { .. }), "{taken}");
    assert!(matches!(
        store.open(&name("nobody")),
        Err(Error::NotFound { .. })
    ));
    assert_eq!(files(directory.path()), ["s.journal"], "no locks left");
}

#[test]
fn a_fork_has_everything_and_goes_its_own_way() {
    let directory = directory();
    let store = store(directory.path());
    let mut source = store.create(&name("source"), new_session(1)).unwrap();
    source.append(user("go"), Durability::Written).unwrap();
    source.append(calls(&["a"]), Durability::Written).unwrap();
    let long = "x".repeat(100_000);
    let blocks = vec![result("a", text(&long))];
    source.append(results(blocks), Durability::Written).unwrap();
    source.append(calls(&["b"]), Durability::Written).unwrap();

    // The source is being written meanwhile.
    let mut fork = store.fork(&name("source"), &name("fork"), id(2)).unwrap();
    assert_eq!(fork.state.parent, Some(id(1)));
    assert_eq!(fork.state.session_id, id(2));
    assert_eq!(fork.state.messages[..4], source.state().messages[..]);
    assert_eq!(fork.state.messages.len(), 5, "the open call is settled");
    fork.writer
        .append(user("other"), Durability::Written)
        .unwrap();
    let expected = fork.writer.state().clone();
    fork.writer.close().unwrap();
    assert_eq!(source.state().messages.len(), 4);
    drop(source);
    store.remove(&name("source")).unwrap();
    assert_eq!(store.load(&name("fork")).unwrap(), (expected, Vec::new()));
    assert_eq!(files(directory.path()), ["fork", "fork.json"]);

    let taken = store.fork(&name("fork"), &name("fork"), id(3));
    assert!(matches!(taken, Err(Error::Exists { .. })));
}

#[test]
fn what_nothing_was_recorded_in_does_not_stay() {
    let directory = directory();
    let store = store(directory.path());
    drop(store.create(&name("s"), new_session(1)).unwrap());
    let closed = store.create(&name("s"), new_session(1)).unwrap();
    closed.close().unwrap();
    assert_eq!(files(directory.path()), [""; 0]);

    let mut source = store.create(&name("source"), new_session(1)).unwrap();
    source.append(user("go"), Durability::Written).unwrap();
    source.append(calls(&["a"]), Durability::Written).unwrap();
    let blocks = vec![result("a", text(&"x".repeat(100_000)))];
    source.append(results(blocks), Durability::Written).unwrap();
    // That is settled in the copy, which is no reason to keep it.
    source.append(calls(&["b"]), Durability::Written).unwrap();
    source.close().unwrap();
    let before = files(directory.path());
    drop(store.fork(&name("source"), &name("s"), id(2)).unwrap());
    assert_eq!(files(directory.path()), before);
    drop(store.open(&name("source")).unwrap());
    assert!(store.load(&name("source")).is_ok(), "it was there before");
}

#[test]
fn a_session_is_found_by_name_id_and_beginning_of_an_id() {
    let directory = directory();
    let store = store(directory.path());
    let unnamed = SessionName::from_id(id(1));
    closed(&store, &unnamed, 1);
    closed(&store, &name("mine"), 0xabc << 100);
    assert_eq!(store.find("mine").unwrap(), name("mine"));
    assert_eq!(store.find(&id(1).to_string()).unwrap(), unnamed);
    let other = id(0xabc << 100).to_string();
    assert_eq!(store.find(&other).unwrap(), name("mine"));
    assert_eq!(store.find(&other.to_uppercase()).unwrap(), name("mine"));
    assert_eq!(store.find(&other[..6]).unwrap(), name("mine"));
    assert_eq!(store.find("12345678").unwrap(), unnamed);
    // Short words are names, and a name is never the beginning of an id.
    assert!(matches!(
        store.find(&other[..5]),
        Err(Error::NotFound { .. })
    ));
    assert_eq!(store.named(&other[..6]).unwrap(), None);
    assert_eq!(store.named(&other).unwrap(), Some(name("mine")));
    assert_eq!(store.named("mine").unwrap(), Some(name("mine")));
    assert!(matches!(store.find("zzz"), Err(Error::NotFound { .. })));
    assert!(matches!(store.find(""), Err(Error::NotFound { .. })));
    let second = SessionName::from_id(id(2));
    closed(&store, &second, 2);
    match store.find("12345678") {
        Err(Error::Ambiguous { names, .. }) => assert_eq!(names.len(), 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn old_sessions_without_a_name_are_pruned() {
    let directory = directory();
    let at = |second: i64| {
        let time = Timestamp::from_second(second).unwrap();
        Store::new(directory.path()).with_clock(move || time)
    };
    let day = 86_400;
    let (old, busy, recent) = (id(1), id(2), id(3));
    closed(&at(0), &SessionName::from_id(old), 1);
    let _busy = at(0)
        .create(&SessionName::from_id(busy), new_session(2))
        .unwrap();
    closed(&at(25 * day), &SessionName::from_id(recent), 3);
    closed(&at(0), &name("named"), 4);
    fs::write(directory.path().join("broken.json"), "{").unwrap();

    let now = Timestamp::from_second(31 * day).unwrap();
    let pruned = at(0)
        .prune(SignedDuration::from_hours(30 * 24), now)
        .unwrap();
    assert_eq!(pruned.removed, [SessionName::from_id(old)]);
    assert!(matches!(&pruned.warnings[..], [Warning::Unlisted { .. }]));
    let left = at(0).list().unwrap().summaries;
    assert_eq!(left.len(), 3);
}

#[test]
fn pruning_sweeps_what_killed_runs_left_and_nothing_of_those_at_work() {
    let directory = directory();
    let store = store(directory.path());
    closed(&store, &name("kept"), 1);
    let _busy = store.create(&name("busy"), new_session(2)).unwrap();
    for left in [
        "gone.journal.new",
        "gone.lock",
        "kept.json.new",
        "busy.journal.new",
    ] {
        fs::write(directory.path().join(left), "").unwrap();
    }
    let now = Timestamp::from_second(1).unwrap();
    store.prune(SignedDuration::from_hours(1), now).unwrap();
    assert_eq!(
        files(directory.path()),
        ["busy.journal", "busy.journal.new", "busy.lock", "kept.json"]
    );
}

#[test]
fn removing_a_session_removes_nothing_else() {
    let directory = directory();
    let store = store(directory.path());
    closed(&store, &name("src"), 1);
    closed(&store, &name("src-2"), 2);
    let own = directory.path().join("src/blobs");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join(format!("{}.bin", "0".repeat(64))), "").unwrap();
    fs::write(directory.path().join("src/main.rs"), "").unwrap();
    fs::write(directory.path().join("src.journal.torn-1"), "").unwrap();
    store.remove(&name("src")).unwrap();
    assert_eq!(files(directory.path()), ["src", "src-2.json"]);
    assert_eq!(files(&directory.path().join("src")), ["main.rs"]);
    let again = store.remove(&name("src"));
    assert!(matches!(again, Err(Error::NotFound { .. })));
}

#[test]
fn compaction_keeps_what_both_have() {
    let message = |text: &str| Arc::new(Message::user(text));
    let before = vec![message("a"), message("b"), message("c")];
    let after = vec![Arc::clone(&before[0]), message("summary")];
    let Record::Compacted { keep, messages } = Record::compaction(&before, &after) else {
        panic!("not a compaction");
    };
    assert_eq!((keep, messages.len()), (1, 1));

    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    for message in &before {
        let record = Record::Message(Arc::clone(message));
        writer.append(record, Durability::Written).unwrap();
    }
    let record = Record::compaction(&before, &after);
    writer.append(record, Durability::Written).unwrap();
    assert_eq!(writer.state().messages, after);
    drop(writer);
    assert_eq!(store.load(&name("s")).unwrap().0.messages, after);
}

#[test]
fn json_too_deep_to_be_read_back_is_flattened() {
    let directory = directory();
    let store = store(directory.path());
    let mut deep = json!("bottom");
    for _ in 0..126 {
        deep = json!([deep]);
    }
    let block = Block::ToolUse {
        id: "a".into(),
        name: "Tool".into(),
        input: deep.clone(),
        private: Some(deep.clone()),
    };
    let opaque = Block::Opaque {
        value: deep.clone(),
    };
    let message = Message::new(caliban_model::Role::Assistant, vec![block, opaque]);
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("go"), Durability::Written).unwrap();
    writer
        .append(Record::Message(Arc::new(message)), Durability::Written)
        .unwrap();
    drop(writer);
    let check = || {
        let (state, warnings) = store.load(&name("s")).unwrap();
        assert_eq!(warnings, []);
        let Block::ToolUse { input, private, .. } = &state.messages[1].content[0] else {
            panic!("{state:?}");
        };
        assert_eq!(*input, Value::String(deep.to_string()));
        assert_eq!(*private, None);
    };
    check();
    store.open(&name("s")).unwrap().writer.close().unwrap();
    check();
}

#[cfg(unix)]
#[test]
fn everything_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    let sessions = directory.path().join("data/sessions");
    let store = store(&sessions);
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("go"), Durability::Written).unwrap();
    writer.append(calls(&["a"]), Durability::Written).unwrap();
    let blocks = vec![result("a", text(&"x".repeat(100_000)))];
    writer.append(results(blocks), Durability::Written).unwrap();
    writer.snapshot().unwrap();
    let mut pending = vec![sessions];
    let mut seen = 0;
    while let Some(path) = pending.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        seen += 1;
        if metadata.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            pending.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }
    assert_eq!(seen, 7, "directories, snapshot, journal, lock and blob");
}
