//! Sessions of unusual size.

use std::fs;
use std::time::Instant;

use caliban_sessions::Durability;

use crate::scratch::{
    assistant, calls, directory, name, new_session, result, results, store, text, user,
};

#[test]
fn a_record_too_long_for_a_line_goes_into_a_snapshot() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    writer.append(user("short"), Durability::Written).unwrap();
    let long = "x".repeat(17 << 20);
    writer.append(user(&long), Durability::Written).unwrap();
    writer.append(user("after"), Durability::Written).unwrap();
    let expected = writer.state().clone();
    drop(writer);
    assert!(
        fs::metadata(directory.path().join("s.journal"))
            .unwrap()
            .len()
            < 2000
    );
    let (state, warnings) = store.load(&name("s")).unwrap();
    assert_eq!(warnings, []);
    assert!(state == expected);
}

/// `cargo test --release -p caliban-sessions --test sessions -- --ignored --nocapture hundred`
#[test]
#[ignore = "a measurement"]
fn a_hundred_megabytes() {
    let directory = directory();
    let store = store(directory.path());
    let mut writer = store.create(&name("s"), new_session(1)).unwrap();
    // Code-like text with the usual share of characters that JSON escapes.
    let output =
        "    let total = items.iter().map(|item| item.price(\"EUR\")).sum();\n".repeat(200);
    let mut size = 0;
    let mut number = 0;
    while size < 100 << 20 {
        let id = format!("call_{number}");
        let blocks = vec![result(&id, text(&output))];
        for record in [calls(&[&id]), results(blocks), assistant(&output[..2000])] {
            writer.append(record, Durability::Written).unwrap();
        }
        number += 1;
        size = fs::metadata(directory.path().join("s.journal"))
            .unwrap()
            .len();
    }
    let mut out = std::io::stderr();
    let mut measure = |what: &str, work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        std::io::Write::write_fmt(&mut out, format_args!("{what}: {:?}\n", start.elapsed()))
            .unwrap();
    };
    measure("loading the journal", &mut || {
        store.load(&name("s")).unwrap();
    });
    measure("appending", &mut || {
        writer
            .append(user("one more"), Durability::Written)
            .unwrap();
    });
    measure("writing the snapshot", &mut || writer.snapshot().unwrap());
    measure("loading the snapshot", &mut || {
        store.load(&name("s")).unwrap();
    });
    measure("listing", &mut || {
        store.list().unwrap();
    });
}
