//! Several at once: other processes, killed ones, and readers beside a writer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caliban_sessions::{Durability, Error, SessionName, Store};
use jiff::{SignedDuration, Timestamp};

use crate::counting::CountingDisk;
use crate::scratch::{directory, id, name, new_session, store, user};

const DIRECTORY: &str = "SESSIONS_TEST_DIRECTORY";
const WORK: &str = "SESSIONS_TEST_WORK";

/// What another process does with the session `s`.
#[test]
#[ignore = "run by the other tests as another process"]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let store = Store::new(directory);
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "\nopen").unwrap();
    if std::env::var(WORK).unwrap() == "hold" {
        // Until the parent closes its end.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    for number in 0_u64.. {
        let text = format!("{number} {}", "x".repeat(2000));
        writer.append(user(&text), Durability::Written).unwrap();
        writer.tidy().unwrap();
        writeln!(out, "{number}").unwrap();
    }
}

fn spawn(directory: &Path, work: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "contention::child", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(WORK, work)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim() != "open" {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the child ended");
    }
    (child, out)
}

#[test]
fn a_second_process_is_told_who_has_the_session() {
    let directory = directory();
    let store = store(directory.path());
    let (mut child, _out) = spawn(directory.path(), "hold");
    match store.open(&name("s")) {
        Err(Error::Busy { pid, .. }) => assert_eq!(pid, Some(child.id())),
        other => panic!("{other:?}"),
    }
    store.load(&name("s")).unwrap();
    assert_eq!(store.list().unwrap().summaries.len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    // The file with its number is still there; the lock is not.
    assert!(directory.path().join("s.lock").exists());
    store.open(&name("s")).unwrap();
}

#[test]
fn a_killed_process_loses_nothing_it_confirmed() {
    for confirmations in [1, 50, 700] {
        let directory = directory();
        let store = store(directory.path());
        let (mut child, mut out) = spawn(directory.path(), "write");
        let mut confirmed = 0;
        let mut line = String::new();
        while confirmed < confirmations {
            line.clear();
            out.read_line(&mut line).unwrap();
            confirmed += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let opened = store.open(&name("s")).unwrap();
        assert!(opened.state.messages.len() >= confirmed);
        for (number, message) in opened.state.messages.iter().enumerate() {
            let text = message.text();
            assert_eq!(text.split(' ').next(), Some(&*number.to_string()));
        }
    }
}

#[test]
fn files_replaced_between_two_reads_make_up_the_session() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("0"), Durability::Written).unwrap();
    writer.snapshot().unwrap();
    writer.append(user("1"), Durability::Written).unwrap();
    let disk = CountingDisk::default();
    disk.after_open(move || {
        writer.append(user("2"), Durability::Written).unwrap();
        writer.snapshot().unwrap();
        writer.append(user("3"), Durability::Written).unwrap();
    });
    let store = store.with_disk(Arc::new(disk));
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!(warnings, []);
    let texts: Vec<String> = state.messages.iter().map(|m| m.text()).collect();
    assert_eq!(texts, ["0", "1", "2"]);
}

#[test]
fn a_session_continued_while_others_are_pruned_stays() {
    let directory = directory();
    let unnamed = SessionName::from_id(id(1));
    let at = |second: i64| {
        let time = Timestamp::from_second(second).unwrap();
        Store::new(directory.path()).with_clock(move || time)
    };
    let mut begun = at(0).create(&unnamed, new_session(1)).unwrap();
    begun.append(user("hello"), Durability::Written).unwrap();
    drop(begun);
    let disk = CountingDisk::default();
    let (later, continued) = (at(1000), unnamed.clone());
    disk.before_lock(move || {
        let mut opened = later.open(&continued).unwrap();
        opened
            .writer
            .append(user("back"), Durability::Written)
            .unwrap();
    });
    let now = Timestamp::from_second(1001).unwrap();
    let store = at(0).with_disk(Arc::new(disk));
    let pruned = store.prune(SignedDuration::from_secs(10), now).unwrap();
    assert_eq!(pruned.removed, []);
    assert_eq!(store.load(&unnamed).unwrap().0.messages.len(), 2);
}

#[test]
fn a_reader_beside_a_writer_sees_a_whole_session() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut seen, mut looks) = (0, 0_u32);
            while !is_done.load(Ordering::SeqCst) || looks == 0 {
                let (state, _) = store.load(&name("s")).unwrap();
                assert!(state.messages.len() >= seen, "going back");
                seen = state.messages.len();
                for (number, message) in state.messages.iter().enumerate() {
                    assert_eq!(message.text(), number.to_string());
                }
                let listing = store.list().unwrap();
                assert_eq!((listing.summaries.len(), listing.warnings), (1, Vec::new()));
                looks += 1;
            }
        });
        for number in 0..300 {
            let record = user(&number.to_string());
            writer.append(record, Durability::Written).unwrap();
            if number % 7 == 0 {
                writer.snapshot().unwrap();
            }
        }
        is_done.store(true, Ordering::SeqCst);
        reader.join().unwrap();
    });
    writer.close().unwrap();
    assert_eq!(store.load(&name("s")).unwrap().0.messages.len(), 300);
}
