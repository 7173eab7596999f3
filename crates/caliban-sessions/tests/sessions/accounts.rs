//! The accounts of sessions: the same from a closed, an open and a killed one, and never more of a
//! file than its beginning.

use std::fs;
use std::sync::Arc;

use caliban_model::{Purpose, Usage};
use caliban_sessions::{Durability, Record, Work};

use crate::counting::CountingDisk;
use crate::scratch::{assistant, directory, id, name, new_session, store, user};

fn usage(day: &str, model: &str, purpose: Purpose) -> Record {
    Record::Usage {
        provider: "anthropic".into(),
        model: model.into(),
        usage: Usage {
            input: 100,
            cache_read: 10,
            output: 1,
            ..Usage::default()
        },
        cost: Some("0.25".parse().unwrap()),
        purpose,
        agent: (purpose == Purpose::SubAgent).then(|| "explorer".to_owned()),
        saved: Some("0.01".parse().unwrap()),
        calls: 1,
        day: Some(day.parse().unwrap()),
    }
}

fn records() -> Vec<Record> {
    vec![
        user("hello"),
        usage("2026-01-01", "m", Purpose::MainLoop),
        usage("2026-01-01", "m", Purpose::MainLoop),
        usage("2026-01-02", "m", Purpose::MainLoop),
        usage("2026-01-02", "other", Purpose::SubAgent),
        Record::Work {
            day: "2026-01-02".parse().unwrap(),
            work: Work {
                active_ms: 1_500,
                denials: 2,
            },
        },
        assistant("hi"),
        Record::TurnEnded {},
    ]
}

#[test]
fn they_are_the_same_closed_open_and_in_part_in_both_files() {
    let directory = directory();
    let store = store(directory.path());
    let mut closed = store.create(&name("closed"), new_session(1)).unwrap();
    let mut open = store.create(&name("open"), new_session(2)).unwrap();
    let mut both = store.create(&name("both"), new_session(3)).unwrap();
    for (place, record) in records().into_iter().enumerate() {
        closed.append(record.clone(), Durability::Written).unwrap();
        open.append(record.clone(), Durability::Written).unwrap();
        both.append(record, Durability::Written).unwrap();
        if place == 2 {
            both.snapshot().unwrap();
        }
    }
    closed.close().unwrap();
    let all = store.accounts().unwrap();
    assert_eq!(all.warnings, []);
    assert_eq!(all.sessions.len(), 3);
    for session in &all.sessions {
        let accounts = &session.accounts;
        assert_eq!(accounts, &all.sessions[0].accounts, "{:?}", session.summary);
        assert_eq!(accounts.rows().len(), 3);
        assert_eq!(accounts.total().calls, 4);
        assert_eq!(accounts.total().usage, session.summary.usage);
        assert_eq!(accounts.total().cost, session.summary.cost);
        assert_eq!(accounts.total_work().denials, 2);
        let (state, _) = store.load(&session.summary.name).unwrap();
        assert_eq!(&state.accounts_in_full(), accounts);
    }
}

#[test]
fn a_copy_has_spent_nothing_yet() {
    let directory = directory();
    let store = store(directory.path());
    let mut source = store.create(&name("source"), new_session(1)).unwrap();
    for record in records() {
        source.append(record, Durability::Written).unwrap();
    }
    source.close().unwrap();
    let copy = store.fork(&name("source"), &name("copy"), id(7)).unwrap();
    let mut writer = copy.writer;
    let record = usage("2026-01-03", "m", Purpose::MainLoop);
    writer.append(record, Durability::Written).unwrap();
    writer.close().unwrap();
    let all = store.accounts().unwrap();
    let calls: u64 = all
        .sessions
        .iter()
        .map(|it| it.accounts.total().calls)
        .sum();
    assert_eq!(calls, 5);
    // What the copy itself tells includes what it was copied from.
    let (state, _) = store.load(&name("copy")).unwrap();
    assert_eq!(state.usage.input, 500);
    assert_eq!(state.accounts.inherited().0.input, 400);
}

#[test]
fn what_was_written_before_there_were_accounts_counts_for_its_model() {
    let directory = directory();
    let store = store(directory.path());
    let text = r#"{"model": "old", "provider": "openai", "updated_at": "2025-01-01T00:00:00Z",
        "total_usage": {"input": 7}, "cost": "0.5", "messages": [], "accounts": "?"}"#;
    fs::write(directory.path().join("old.json"), text).unwrap();
    let all = store.accounts().unwrap();
    let rows = all.sessions[0].accounts.rows();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].model, "old");
    assert_eq!(rows[0].day.to_string(), "2025-01-01");
    assert_eq!(rows[0].sums.usage.input, 7);
}

#[test]
fn no_more_than_the_beginning_of_a_session_is_read() {
    let directory = directory();
    let plain = store(directory.path());
    let mut long = plain.create(&name("long"), new_session(1)).unwrap();
    // As many accounts as a year of work with three models makes.
    for day in 0..365 {
        let date = jiff::civil::date(2025, 1, 1) + jiff::Span::new().days(day);
        for model in ["one-model-of-a-family", "another-model", "a-third"] {
            let record = usage(&date.to_string(), model, Purpose::MainLoop);
            long.append(record, Durability::Written).unwrap();
        }
    }
    let text = "long ".repeat(100_000);
    for _ in 0..8 {
        long.append(user(&text), Durability::Written).unwrap();
    }
    long.close().unwrap();
    let mut short = plain.create(&name("short"), new_session(2)).unwrap();
    for record in records() {
        short.append(record, Durability::Written).unwrap();
    }
    short.append(user(&text), Durability::Written).unwrap();
    short.close().unwrap();

    let disk = CountingDisk::default();
    let counted = plain.with_disk(Arc::new(disk.clone()));
    let all = counted.accounts().unwrap();
    assert_eq!(all.sessions[0].accounts.total().calls, 365 * 3);
    // At most half a megabyte for the most accounts that there can be; four kilobytes usually.
    assert!(disk.bytes_read() < 530_000, "{}", disk.bytes_read());
}
