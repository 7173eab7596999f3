//! Looking for words in the conversation, on the screen itself.

use caliban_testkit::Reply;
use caliban_testkit::terminal::Terminal;
use rstest::rstest;

use crate::person::{Person, leave, say, until_done};

/// A conversation of several screens, with two places that are looked for.
fn long() -> Person {
    let lines = |about: &str| -> String {
        let line = |n: usize| match n {
            7 => format!("- the Needle of {about}\n"),
            n => format!("- line {n} of {about}\n"),
        };
        (1..60).map(line).collect()
    };
    Person::new([Reply::text(lines("one")), Reply::text(lines("two"))])
}

/// Both questions are asked.
fn asked_twice(person: &Person) -> Terminal {
    let terminal = person.sit_down();
    say(&terminal, "first");
    until_done(&terminal, "line 59 of one");
    say(&terminal, "second");
    until_done(&terminal, "line 59 of two");
    terminal
}

#[test]
fn words_are_found_from_the_end_on() {
    let person = long();
    let terminal = asked_twice(&person);
    terminal.key("ctrl+f");
    terminal.until_text("find: ");
    terminal.keys("needle");
    let screen = terminal.until_text("the Needle of two");
    let (row, col) = screen.find("Needle").unwrap();
    assert!(screen.style_at(row, col).inverse, "{}", screen.drawn());
    assert!(!screen.style_at(row, col - 2).inverse, "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_text("the Needle of one");
    terminal.key("enter");
    terminal.until_text("no more");
    terminal.key("down");
    terminal.until_text("the Needle of two");
    terminal.key("esc");
    let screen = terminal.until(|screen| !screen.contains("find: "));
    assert!(screen.contains("the Needle of two"), "{}", screen.drawn());
    terminal.key("ctrl+end");
    terminal.until_text("line 59 of two");
    leave(terminal);
}

#[rstest]
#[case::nowhere("haystack", "no more")]
#[case::corrected("needlex\u{7f}", "the Needle of two")]
fn what_is_looked_for_can_be_changed(#[case] keys: &str, #[case] seen: &str) {
    let person = long();
    let terminal = asked_twice(&person);
    terminal.key("f3");
    terminal.until_text("find: ");
    terminal.keys(keys);
    terminal.until_text(seen);
    terminal.key("esc");
    terminal.until_text("> ");
    leave(terminal);
}

#[test]
fn in_a_text_the_key_is_the_text_s() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.keys("ab");
    terminal.key("ctrl+a");
    terminal.key("ctrl+f");
    terminal.keys("-");
    terminal.until_text("> a-b");
    terminal.key("ctrl+c");
    leave(terminal);
}
