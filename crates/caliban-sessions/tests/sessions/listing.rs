//! Listing sessions: complete, tolerant, and from the ends of files only.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use caliban_model::{Purpose, Usage};
use caliban_sessions::{Durability, Record, SessionName, Store, Summary, Warning};

use crate::counting::CountingDisk;
use crate::scratch::{assistant, directory, id, message, name, new_session, store, user};

fn usage(output: u64) -> Record {
    Record::Usage {
        provider: "anthropic".into(),
        model: "m".into(),
        usage: Usage {
            output,
            ..Usage::default()
        },
        cost: Some("0.5".parse().unwrap()),
        purpose: Purpose::MainLoop,
        agent: None,
        saved: None,
        calls: 1,
        day: None,
    }
}

/// A listed session must say what the loaded one says.
fn check(store: &Store, summary: &Summary) {
    let state = store.load(&summary.name).unwrap().0;
    assert_eq!(summary.session_id, state.session_id);
    assert_eq!(summary.is_named(), state.is_named());
    assert_eq!(summary.title, state.title);
    assert_eq!(summary.provider, state.provider);
    assert_eq!(summary.model, state.model);
    assert_eq!(summary.cwd, state.cwd);
    assert_eq!(summary.turns, state.turns);
    assert_eq!(summary.usage, state.usage);
    assert_eq!(summary.cost, state.cost);
    assert_eq!(summary.created_at, state.created_at);
    assert_eq!(summary.updated_at, state.updated_at);
}

#[test]
fn a_listing_agrees_with_the_sessions() {
    let directory = directory();
    let store = store(directory.path());
    let long = "long ".repeat(30_000);

    let mut closed = store.create(&name("closed"), new_session(1)).unwrap();
    for record in [
        user("first"),
        usage(1),
        assistant(&long),
        Record::TurnEnded {},
    ] {
        closed.append(record, Durability::Written).unwrap();
    }
    closed.close().unwrap();

    // Only a journal, whose first prompt comes after a long system message; no turn ended.
    let unnamed = SessionName::from_id(id(2));
    let mut journal = store.create(&unnamed, new_session(2)).unwrap();
    let system = message(caliban_model::Message::system("be good"));
    for record in [system, user("second"), usage(2)] {
        journal.append(record, Durability::Written).unwrap();
    }

    // A snapshot, and a journal whose last turn's end lies far from its end.
    let mut both = store.create(&name("both"), new_session(3)).unwrap();
    both.append(user("third"), Durability::Written).unwrap();
    both.snapshot().unwrap();
    let change = caliban_sessions::StateChange {
        model: Some("other".into()),
        ..caliban_sessions::StateChange::default()
    };
    let records = [
        assistant(&long),
        usage(3),
        Record::TurnEnded {},
        user(&long[..50_000]),
        usage(4),
        Record::State(Box::new(change)),
        Record::Title {
            text: "renamed".into(),
        },
    ];
    for record in records {
        both.append(record, Durability::Written).unwrap();
    }

    let listing = store.list().unwrap();
    assert_eq!(listing.warnings, []);
    let names: Vec<&str> = listing.summaries.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        ["both", unnamed.as_str(), "closed"],
        "the latest first"
    );
    for summary in &listing.summaries {
        check(&store, summary);
    }
    assert_eq!(listing.summaries[0].title.as_deref(), Some("renamed"));
    assert_eq!(listing.summaries[0].total_tokens(), 7);
    assert_eq!(listing.summaries[1].title.as_deref(), Some("second"));
    assert!(!listing.summaries[1].is_named());

    let mut silent = store.create(&name("silent"), new_session(4)).unwrap();
    silent
        .append(Record::State(Box::default()), Durability::Written)
        .unwrap();
    drop(silent);
    assert_eq!(store.list().unwrap().summaries[0].name, name("silent"));
    let (latest, _) = store.latest(|_| true).unwrap();
    assert_eq!(latest.unwrap().name, name("both"), "the last with a prompt");
    let elsewhere = Path::new("/elsewhere");
    let (latest, _) = store.latest(|cwd| cwd == elsewhere).unwrap();
    assert_eq!(latest, None);
}

#[test]
fn what_cannot_be_listed_is_told_and_no_obstacle() {
    let directory = directory();
    let store = store(directory.path());
    let mut good = store.create(&name("good"), new_session(1)).unwrap();
    good.append(user("hello"), Durability::Written).unwrap();
    good.close().unwrap();
    fs::write(directory.path().join("bad.json"), "{").unwrap();
    fs::write(directory.path().join("not a name.json"), "{}").unwrap();
    fs::write(directory.path().join("good.json.new"), "{").unwrap();
    fs::create_dir(directory.path().join("folder.json")).unwrap();
    let listing = store.list().unwrap();
    assert_eq!(listing.summaries.len(), 1);
    let paths: Vec<String> = listing
        .warnings
        .iter()
        .map(|warning| match warning {
            Warning::Unlisted { path, .. } => {
                path.file_name().unwrap().to_str().unwrap().to_owned()
            }
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(paths, ["bad.json", "folder.json"]);
    let missing = Store::new(directory.path().join("missing"));
    assert_eq!(
        missing.list().unwrap(),
        caliban_sessions::Listing::default()
    );
}

#[test]
fn thousands_of_sessions_are_listed_by_their_heads() {
    const SESSIONS: u64 = 5_000;
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    for _ in 0..4 {
        writer
            .append(user(&"long ".repeat(3_000)), Durability::Written)
            .unwrap();
    }
    writer.close().unwrap();
    let template = directory.path().join("s.json");
    let size = fs::metadata(&template).unwrap().len();
    for number in 0..SESSIONS - 1 {
        // One file under many names is as good as many files.
        fs::hard_link(&template, directory.path().join(format!("s{number}.json"))).unwrap();
    }
    let disk = CountingDisk::default();
    let store = store.with_disk(Arc::new(disk.clone()));
    let listing = store.list().unwrap();
    assert_eq!(listing.summaries.len() as u64, SESSIONS);
    assert_eq!(listing.warnings, []);
    assert!(size > 50_000);
    assert!(
        disk.bytes_read() <= SESSIONS * 4096,
        "{}",
        disk.bytes_read()
    );
}

#[test]
fn a_long_journal_is_listed_by_its_ends() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    for _ in 0..100 {
        writer
            .append(user(&"long ".repeat(10_000)), Durability::Written)
            .unwrap();
    }
    writer
        .append(Record::TurnEnded {}, Durability::Written)
        .unwrap();
    let disk = CountingDisk::default();
    let store = store.with_disk(Arc::new(disk.clone()));
    assert_eq!(store.list().unwrap().summaries[0].turns, 1);
    assert!(disk.bytes_read() <= 32 << 10, "{}", disk.bytes_read());
    writer
        .append(user(&"x".repeat(2 << 20)), Durability::Written)
        .unwrap();
    let before = disk.bytes_read();
    assert_eq!(store.list().unwrap().summaries.len(), 1);
    assert!(
        disk.bytes_read() - before < 2 << 20,
        "bounded whatever it holds"
    );
}
