//! Files in whatever state: written by hand, cut, damaged, missing, of other versions.

use std::fs;
use std::path::{Path, PathBuf};

use caliban_sessions::{Durability, Error, Record, Store, Warning};
use serde_json::{Value, json};

use crate::scratch::{assistant, directory, id, name, new_session, store, user};

/// Three messages in a journal, without a snapshot.
fn journal(store: &Store, directory: &Path) -> PathBuf {
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    for record in [user("one"), assistant("two"), user("three")] {
        writer.append(record, Durability::Written).unwrap();
    }
    directory.join("s.journal")
}

fn texts(store: &Store) -> Vec<String> {
    let state = store.load(&name("s")).unwrap().0;
    state
        .messages
        .iter()
        .map(|message| message.text())
        .collect()
}

fn asides(directory: &Path, purpose: &str) -> Vec<Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().contains(purpose))
        .map(|path| fs::read(path).unwrap())
        .collect()
}

/// A session file with the documented fields only.
fn documented() -> Value {
    json!({
        "name": "s",
        "provider": "anthropic",
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "by hand"}]}],
        "total_usage": {"input": 3, "output": 4},
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-02T00:00:00Z",
        "todos": [],
        "plan_mode": true,
    })
}

#[test]
fn a_file_written_by_hand_is_a_session() {
    let directory = directory();
    let store = store(directory.path());
    let path = directory.path().join("s.json");
    let mut file = documented();
    file["mine"] = json!({"kept": [1, 2]});
    fs::write(&path, serde_json::to_string(&file).unwrap()).unwrap();

    let summary = store.list().unwrap().summaries.remove(0);
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(state.session_id, summary.session_id);
    assert_eq!(summary.total_tokens(), 7);
    assert_eq!(summary.title.as_deref(), Some("by hand"));
    assert!(state.plan_mode);

    let mut opened = store.open(&name("s")).unwrap();
    opened
        .writer
        .append(assistant("ok"), Durability::Written)
        .unwrap();
    opened.writer.close().unwrap();
    let written: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(written["mine"], json!({"kept": [1, 2]}));
    assert_eq!(written["session_id"], json!(state.session_id));
    assert_eq!(texts(&store), ["by hand", "ok"]);
}

#[test]
fn an_edited_file_goes_on_with_its_journal() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("one"), Durability::Written).unwrap();
    writer.snapshot().unwrap();
    writer
        .append(assistant("two"), Durability::Written)
        .unwrap();
    drop(writer);
    // Only documented fields are left, and the small ones come last.
    fs::write(
        directory.path().join("s.json"),
        serde_json::to_string_pretty(&documented()).unwrap(),
    )
    .unwrap();
    assert_eq!(texts(&store), ["by hand", "two"]);
    assert_eq!(store.load(&name("s")).unwrap().0.session_id, id(1));
    let summary = store.list().unwrap().summaries.remove(0);
    assert_eq!(summary.session_id, id(1));
}

#[test]
fn a_file_that_cannot_be_understood_is_told_and_never_overwritten() {
    let directory = directory();
    let store = store(directory.path());
    let path = directory.path().join("s.json");
    let mut bad_message = documented();
    bad_message["messages"][0]["content"][0]["type"] = json!("hologram");
    let bad_message = serde_json::to_string_pretty(&bad_message).unwrap();
    let line_of = |text: &str, part: &str| {
        let at = text.find(part).unwrap();
        text[..at].lines().count()
    };
    let content_ends = line_of(&bad_message, "\"hologram\"")..=line_of(&bad_message, "total_usage");
    let cases = [
        ("{\n  \"name\": \"s\",\n  oops\n}", 3..=3),
        ("[]", 1..=1),
        (&bad_message, content_ends),
    ];
    for (text, lines) in cases {
        fs::write(&path, text).unwrap();
        for error in [
            store.open(&name("s")).unwrap_err(),
            store.load(&name("s")).unwrap_err(),
        ] {
            let Error::Snapshot { line, .. } = &error else {
                panic!("{error}");
            };
            assert!(lines.contains(line), "{error}");
            let said = error.to_string();
            assert!(
                said.contains("s.json") && said.contains("repair it"),
                "{said}"
            );
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::write(&path, b"{\n\"title\": \"\xff\"}").unwrap();
    let error = store.load(&name("s")).unwrap_err().to_string();
    assert!(error.contains("line 2, column 11"), "{error}");
}

#[test]
fn an_empty_file_is_unreadable_and_stays_as_it_is() {
    let directory = directory();
    let store = store(directory.path());
    let snapshot = directory.path().join("s.json");
    let journal = journal(&store, directory.path());
    let whole = fs::read(&journal).unwrap();
    let is_told = || {
        for error in [
            store.open(&name("s")).unwrap_err(),
            store.load(&name("s")).unwrap_err(),
            store.fork(&name("s"), &name("t"), id(2)).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Snapshot { .. }), "{error}");
        }
        assert!(!directory.path().join("t.journal").exists());
    };
    fs::write(&snapshot, " \n").unwrap();
    is_told();
    assert_eq!(fs::read(&journal).unwrap(), whole);
    assert_eq!(fs::read(&snapshot).unwrap(), b" \n");
    let listing = store.list().unwrap();
    assert_eq!(listing.summaries, []);
    let told = listing.warnings[0].to_string();
    assert_eq!(told.matches("s.json").count(), 1, "{told}");

    fs::remove_file(&snapshot).unwrap();
    assert_eq!(texts(&store), ["one", "two", "three"]);
    for nothing in ["", "no record\n", "torn"] {
        fs::write(&journal, nothing).unwrap();
        is_told();
        assert_eq!(fs::read_to_string(&journal).unwrap(), nothing);
    }
}

#[test]
fn a_journal_whose_snapshot_is_gone_still_has_its_part() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("one"), Durability::Written).unwrap();
    writer.snapshot().unwrap();
    writer.append(user("two"), Durability::Written).unwrap();
    drop(writer);
    fs::remove_file(directory.path().join("s.json")).unwrap();
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!(state.messages.len(), 1);
    assert!(matches!(
        &warnings[..],
        [Warning::SnapshotMissing { base: 2, .. }]
    ));
}

#[test]
fn a_torn_end_is_moved_aside_and_never_runs_into_the_next_record() {
    for cut in 1..60 {
        let directory = directory();
        let store = store(directory.path());
        let path = journal(&store, directory.path());
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let (_, warnings) = store.load(&name("s")).unwrap();
        assert!(matches!(&warnings[..], [Warning::Torn { .. }]));

        let mut opened = store.open(&name("s")).unwrap();
        assert!(matches!(&opened.warnings[..], [Warning::SetAside { .. }]));
        assert_eq!(opened.state.messages.len(), 2);
        opened
            .writer
            .append(user("next"), Durability::Written)
            .unwrap();
        drop(opened);
        assert_eq!(texts(&store), ["one", "two", "next"]);
        assert_eq!(store.load(&name("s")).unwrap().1, []);
        let last = whole[..whole.len() - 1]
            .iter()
            .rposition(|byte| *byte == b'\n');
        let torn = whole[last.unwrap() + 1..whole.len() - cut].to_vec();
        assert_eq!(asides(directory.path(), ".torn-"), [torn]);
    }
}

#[test]
fn a_damaged_last_record_is_moved_aside_and_one_in_the_middle_left_out() {
    let directory = directory();
    let store = store(directory.path());
    let path = journal(&store, directory.path());
    let whole = fs::read_to_string(&path).unwrap();

    fs::write(&path, whole.replace("two", "twO")).unwrap();
    let opened = store.open(&name("s")).unwrap();
    assert!(
        matches!(&opened.warnings[..], [Warning::BadRecord { line: 3, .. }]),
        "{:?}",
        opened.warnings
    );
    assert_eq!(opened.state.messages.len(), 2);
    opened.writer.close().unwrap();
    assert_eq!(texts(&store), ["one", "three"]);
    assert_eq!(
        asides(directory.path(), ".damaged-").len(),
        1,
        "the evidence"
    );

    fs::remove_file(directory.path().join("s.json")).unwrap();
    fs::write(&path, whole.replace("three", "thrEE")).unwrap();
    let opened = store.open(&name("s")).unwrap();
    let set_aside = |warning: &Warning| matches!(warning, Warning::SetAside { .. });
    assert!(
        opened.warnings.iter().any(set_aside),
        "{:?}",
        opened.warnings
    );
    drop(opened);
    assert_eq!(texts(&store), ["one", "two"]);
    assert_eq!(store.load(&name("s")).unwrap().1, []);
}

#[test]
fn missing_and_repeated_records_are_told() {
    let directory = directory();
    let store = store(directory.path());
    let path = journal(&store, directory.path());
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();

    let without = [lines[0], lines[1], lines[3]].join("\n") + "\n";
    fs::write(&path, without).unwrap();
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!(state.messages.len(), 2);
    assert!(matches!(
        &warnings[..],
        [Warning::Gap { from: 3, to: 3, .. }]
    ));

    let repeated = [lines[0], lines[1], lines[1], lines[2], lines[3]].join("\n") + "\n";
    fs::write(&path, repeated).unwrap();
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!(state.messages.len(), 3);
    assert!(matches!(
        &warnings[..],
        [Warning::BadRecord { line: 3, .. }]
    ));
}

/// A line as another version would write it.
fn line(seq: u64, record: &str) -> String {
    let at = "2026-01-01T00:00:00Z";
    let crc = crc32fast::hash(format!("{seq} {at} {record}").as_bytes());
    format!(
        "{{\"seq\":{seq},\"crc\":\"{crc:08x}\",\"at\":\"{at}\",\"more\":1,\"record\":{record}}}\n"
    )
}

#[test]
fn records_of_a_newer_version_are_told_and_kept() {
    let directory = directory();
    let store = store(directory.path());
    let path = journal(&store, directory.path());
    let unknown = r#"{"rewound":{"to":3}}"#;
    let title = r#"{"title":{"text":"new","more":1}}"#;
    let added = line(5, unknown) + &line(6, title);
    fs::write(&path, fs::read_to_string(&path).unwrap() + &added).unwrap();

    let opened = store.open(&name("s")).unwrap();
    assert!(
        matches!(&opened.warnings[..], [Warning::UnknownRecord { kind, .. }] if kind == "rewound"),
        "{:?}",
        opened.warnings
    );
    assert_eq!(opened.state.title.as_deref(), Some("new"));
    opened.writer.close().unwrap();
    // Through another snapshot as well.
    let mut opened = store.open(&name("s")).unwrap();
    opened
        .writer
        .append(Record::TurnEnded {}, Durability::Written)
        .unwrap();
    opened.writer.close().unwrap();
    let file = fs::read_to_string(directory.path().join("s.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["unknown_records"], json!([{"rewound": {"to": 3}}]));
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let directory = directory();
    let store = store(directory.path());
    let path = directory.path().join("s.json");
    fs::write(&path, r#"{"format": 2, "messages": []}"#).unwrap();
    let error = store.open(&name("s")).unwrap_err();
    assert!(matches!(error, Error::Newer { format: 2, .. }), "{error}");
    assert_eq!(store.list().unwrap().warnings.len(), 1);
    fs::remove_file(&path).unwrap();

    let path = journal(&store, directory.path());
    let text = fs::read_to_string(&path).unwrap();
    let header = text.lines().next().unwrap();
    let (_, record) = header.split_once(",\"record\":").unwrap();
    let record = record
        .strip_suffix('}')
        .unwrap()
        .replace("\"format\":1", "\"format\":2");
    fs::write(&path, line(1, &record)).unwrap();
    let error = store.open(&name("s")).unwrap_err();
    assert!(matches!(error, Error::Newer { format: 2, .. }), "{error}");
}

#[test]
fn the_journal_of_another_session_is_set_aside() {
    let directory = directory();
    let store = store(directory.path());
    let path = journal(&store, directory.path());
    let foreign = fs::read(&path).unwrap();
    let mut other = store.create(&name("other"), new_session(2)).unwrap();
    other.append(user("other"), Durability::Written).unwrap();
    other.close().unwrap();
    let snapshot = directory.path().join("s.json");
    fs::rename(directory.path().join("other.json"), snapshot).unwrap();

    assert_eq!(texts(&store), ["other"]);
    assert_eq!(store.list().unwrap().summaries[0].session_id, id(2));
    let opened = store.open(&name("s")).unwrap();
    assert!(opened.warnings.contains(&Warning::ForeignJournal { path }));
    drop(opened);
    assert_eq!(asides(directory.path(), ".foreign-"), [foreign]);
    assert_eq!(store.load(&name("s")).unwrap().1, []);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let directory = directory();
    let store = store(&directory.path().join("sessions"));
    fs::create_dir(store.directory()).unwrap();
    let secret = directory.path().join("secret");
    fs::write(&secret, "{}").unwrap();
    for file in ["s.json", "s.journal", "s.lock"] {
        let link = store.directory().join(file);
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        assert!(store.create(&name("s"), new_session(1)).is_err(), "{file}");
        fs::remove_file(link).unwrap();
    }
    for file in ["s.journal.new", "s.json.new"] {
        let link = store.directory().join(file);
        std::os::unix::fs::symlink(&secret, link).unwrap();
    }
    let writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.close().unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "{}");
}
