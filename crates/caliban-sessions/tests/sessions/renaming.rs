//! Another name for a session: all of it is there afterwards, and found by it.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use caliban_sessions::{Durability, Error, INLINE_TEXT, Store};

use crate::scratch::{assistant, directory, id, name, new_session, store, user};
use crate::sim::{Fault, Sim};

/// A session with something large in it.
fn begun(store: &Store, text: &str) {
    let mut writer = store.create(&name(text), new_session(1)).unwrap();
    let large = format!("Needle {}", "x".repeat(2 * INLINE_TEXT));
    for record in [user("first"), assistant(&large)] {
        writer.append(record, Durability::Synced).unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn a_renamed_session_is_the_same_one() {
    let directory = directory();
    let store = store(directory.path());
    begun(&store, "old");
    let before = store.load(&name("old")).unwrap().0;
    fs::write(directory.path().join("old.journal.damaged-x"), "kept").unwrap();
    assert_eq!(store.rename(&name("old"), &name("new")).unwrap(), []);
    let after = store.load(&name("new")).unwrap().0;
    assert_eq!(after.messages, before.messages);
    assert_eq!(after.session_id, before.session_id);
    assert_eq!(after.created_at, before.created_at);
    assert_eq!(after.name, name("new"));
    assert_eq!(store.find("new").unwrap(), name("new"));
    assert_eq!(store.find(&id(1).to_string()).unwrap(), name("new"));
    assert!(matches!(store.find("old"), Err(Error::NotFound { .. })));
    let left: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("old") && name != "old.lock")
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert!(directory.path().join("new.journal.damaged-x").exists());
}

#[test]
fn who_writes_goes_on_under_the_new_name() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("old"), new_session(1)).unwrap();
    writer.append(user("before"), Durability::Written).unwrap();
    store.rename_open(&mut writer, &name("new")).unwrap();
    assert_eq!(writer.name(), &name("new"));
    // The old name is free, the new one is not.
    assert!(matches!(store.open(&name("new")), Err(Error::Busy { .. })));
    let other = store.create(&name("old"), new_session(2)).unwrap();
    writer.append(user("after"), Durability::Synced).unwrap();
    // Even where the process ends without a word.
    std::mem::forget(writer);
    let state = store.load(&name("new")).unwrap().0;
    let said: Vec<String> = state.messages.iter().map(|it| it.text()).collect();
    assert_eq!(said, ["before", "after"]);
    drop(other);
}

#[test]
fn a_name_that_is_taken_stays_with_its_session() {
    let directory = directory();
    let store = store(directory.path());
    begun(&store, "a");
    let mut writer = store.create(&name("b"), new_session(2)).unwrap();
    writer.append(user("mine"), Durability::Written).unwrap();
    let refused = store.rename_open(&mut writer, &name("a"));
    assert!(matches!(refused, Err(Error::Exists { .. })));
    assert_eq!(writer.name(), &name("b"));
    writer.append(user("still"), Durability::Written).unwrap();
    writer.close().unwrap();
    assert_eq!(store.load(&name("b")).unwrap().0.messages.len(), 2);
    assert_eq!(store.load(&name("a")).unwrap().0.messages.len(), 2);
}

#[test]
fn whatever_fails_the_session_is_whole_under_one_name() {
    const ROOT: &str = "/sim/sessions";
    let sessions = |sim: &Sim| store(Path::new(ROOT)).with_disk(Arc::new(sim.clone()));
    let begin = |sim: &Sim| {
        let store = sessions(sim);
        let mut writer = store.create(&name("old"), new_session(1)).unwrap();
        let large = "x".repeat(2 * INLINE_TEXT);
        writer.append(user(&large), Durability::Synced).unwrap();
        (store, writer)
    };
    let intact = Sim::default();
    let (store, mut writer) = begin(&intact);
    let from = intact.operations();
    store.rename_open(&mut writer, &name("new")).unwrap();
    for at in from..intact.operations() {
        let sim = Sim::failing(at, Fault::Error);
        let (store, mut writer) = begin(&sim);
        let renamed = store.rename_open(&mut writer, &name("new"));
        let expected = if renamed.is_ok() { "new" } else { "old" };
        assert_eq!(writer.name(), &name(expected), "{at}");
        writer.append(user("on"), Durability::Synced).unwrap();
        let state = store.load(&name(expected)).unwrap().0;
        assert_eq!(state.messages.len(), 2, "{at}");
    }
}

#[test]
fn words_are_found_in_what_was_said() {
    let directory = directory();
    let store = store(directory.path());
    begun(&store, "large");
    let mut writer = store.create(&name("small"), new_session(2)).unwrap();
    let said = "A \"quoted\" line\nand another";
    writer.append(user(said), Durability::Written).unwrap();
    let find = |text: &str| -> Vec<(String, String)> {
        let hits = store.search(text, || ControlFlow::Continue(())).unwrap();
        let pair = |hit: caliban_sessions::Hit| (hit.name.as_str().to_owned(), hit.excerpt);
        hits.into_iter().map(pair).collect()
    };
    let small = (
        "small".to_owned(),
        "A \"quoted\" line and another".to_owned(),
    );
    let small = [small];
    assert_eq!(find("QUOTED"), small);
    assert_eq!(find("\"quoted\""), small);
    assert_eq!(find("line\nand"), small);
    assert_eq!(find("needle").len(), 1, "in a file of its own, too");
    assert_eq!(find("claude-sonnet"), [], "what nobody said");
    assert_eq!(find("  "), []);
    let stopped = store.search("quoted", || ControlFlow::Break(())).unwrap();
    assert_eq!(stopped, []);
}
