//! Many turns in one process: what it keeps does not grow with what it has done.

use crate::person::{Person, leave, say, until_done};

/// How many turns there are; a longer run is made by hand.
const VARIABLE: &str = "CALIBAN_TEST_SOAK";
const TURNS: usize = 250;
/// The conversation is begun anew after so many.
const CONVERSATION: usize = 50;
/// Megabytes that may come and go with the allocator.
const NOISE: u64 = 5;

#[test]
fn memory_is_as_flat_as_the_conversation() {
    let turns = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok());
    let turns = turns.unwrap_or(TURNS);
    let answer = "An **answer** with `code`.\n\n```rust\nlet x = 1;\n```\n\n1. one\n2. two\n";
    let person = Person::answered(answer).sized(120, 30);
    let terminal = person.sit_down();
    let mut seen = Vec::new();
    for turn in 1..=turns {
        say(&terminal, "go on");
        until_done(&terminal, &format!("({turn})"));
        if turn % CONVERSATION == 0 {
            say(&terminal, "/clear");
            terminal.until_text("Begin anew");
            terminal.key("down");
            terminal.key("enter");
            terminal
                .until(|screen| screen.contains("begins anew") && !screen.contains("An answer"));
            seen.push(terminal.rss() >> 20);
        }
    }
    // What is made once is there after the first fifth.
    let settled = seen[seen.len() / 5];
    let last = seen[seen.len() - 1];
    assert!(last <= settled + NOISE, "megabytes: {seen:?}");
    println!("megabytes after every {CONVERSATION} turns: {seen:?}");
    leave(terminal);
}
