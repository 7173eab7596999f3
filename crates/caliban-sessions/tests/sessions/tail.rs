//! The end of a conversation without all of it.

use std::fs;
use std::sync::Arc;

use caliban_model::Message;
use caliban_sessions::{Durability, Record, Store};
use proptest::prelude::*;

use crate::scratch::{assistant, directory, name, new_session, store, user};

/// Something that happens to a session.
#[derive(Debug, Clone)]
enum Step {
    /// A prompt and an answer of so many bytes.
    Exchange(usize),
    /// It is closed and opened again.
    Pause,
    /// All but so many messages are forgotten.
    Compact(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop_oneof![1_usize..400, Just(90_000)].prop_map(Step::Exchange),
        2 => Just(Step::Pause),
        1 => (0_usize..4).prop_map(Step::Compact),
    ]
}

/// Plays what happens, and what the session is afterwards.
fn played(store: &Store, steps: &[Step], closes: bool) -> Vec<Arc<Message>> {
    let name = name("long");
    let mut writer = store.create(&name, new_session(1)).unwrap();
    let mut said = 0;
    for step in steps {
        match step {
            Step::Exchange(bytes) => {
                said += 1;
                let text = "said\n".repeat(bytes / 5 + 1);
                let prompt = user(&format!("prompt {said}"));
                let answer = assistant(&format!("answer {said} {text}"));
                for record in [prompt, answer, Record::TurnEnded {}] {
                    writer.append(record, Durability::Written).unwrap();
                }
            }
            Step::Pause if said > 0 => {
                writer.close().unwrap();
                writer = store.open(&name).unwrap().writer;
            }
            Step::Pause => {}
            Step::Compact(keep) => {
                let before = writer.state().messages.clone();
                let rest = before.len().saturating_sub(*keep);
                let after: Vec<_> = before[rest..].to_vec();
                let record = Record::compaction(&before, &after);
                writer.append(record, Durability::Written).unwrap();
            }
        }
    }
    if closes && said > 0 {
        writer.close().unwrap();
    } else {
        drop(writer);
    }
    match store.load(&name) {
        Ok((state, _)) => state.messages,
        Err(_) => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happened, it is the end of what is read when all of it is. Nothing is found only where
    /// there is nothing, or where it is not told what a shortened conversation kept.
    #[test]
    fn it_is_the_end_of_the_whole(
        steps in prop::collection::vec(step(), 0..12),
        closes in any::<bool>(),
    ) {
        let directory = directory();
        let store = store(directory.path());
        let all = played(&store, &steps, closes);
        let end = store.tail(&name("long"));
        prop_assert!(all.ends_with(&end), "{} of {}", end.len(), all.len());
        let is_shortened = steps.iter().any(|step| matches!(step, Step::Compact(_)));
        prop_assert!(is_shortened || all.is_empty() == end.is_empty());
    }
}

#[test]
fn little_of_a_long_session_is_read() {
    let directory = directory();
    let store = store(directory.path());
    let all = played(&store, &vec![Step::Exchange(40_000); 60], true);
    let end = store.tail(&name("long"));
    assert!(all.ends_with(&end));
    assert!((8..60).contains(&end.len()), "{}", end.len());
}

#[test]
fn the_journal_of_another_session_does_not_count() {
    let directory = directory();
    let store = store(directory.path());
    let all = played(&store, &[Step::Exchange(10)], true);
    let other = store.create(&name("other"), new_session(2)).unwrap();
    let mut other = other;
    other.append(user("foreign"), Durability::Written).unwrap();
    let journal = |name: &str| directory.path().join(format!("{name}.journal"));
    fs::copy(journal("other"), journal("long")).unwrap();
    assert_eq!(store.tail(&name("long")), all);
}

#[test]
fn what_is_not_there_or_no_session_has_no_end() {
    let directory = directory();
    let store = store(directory.path());
    assert_eq!(store.tail(&name("long")), Vec::new());
    fs::write(directory.path().join("long.json"), "]\n  ],\n  \"todos\":").unwrap();
    assert_eq!(store.tail(&name("long")), Vec::new());
    fs::write(directory.path().join("long.journal"), [0xff; 300]).unwrap();
    assert_eq!(store.tail(&name("long")), Vec::new());
}
