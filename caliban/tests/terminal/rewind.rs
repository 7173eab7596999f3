//! Taking prompts back at the terminal.

use std::fs;

use caliban_testkit::Reply;
use caliban_testkit::terminal::Terminal;
use serde_json::json;

use crate::person::{Person, leave, say, until_done};

fn write(content: &str) -> Reply {
    Reply::tool("Write", json!({"path": "a.txt", "content": content}))
}

/// Two prompts, each of which writes the same file.
fn two() -> Person {
    let replies = [
        write("one\n"),
        Reply::text("Wrote the first."),
        write("two\nthree\n"),
        Reply::text("Wrote the second."),
    ];
    Person::new(replies).arg("--no-permissions").sized(100, 30)
}

fn after_two(person: &Person) -> Terminal {
    let terminal = person.sit_down();
    say(&terminal, "make the first");
    until_done(&terminal, "Wrote the first.");
    say(&terminal, "make the second");
    until_done(&terminal, "Wrote the second.");
    terminal
}

#[test]
fn escape_twice_lists_the_prompts_and_enter_takes_back_files_and_conversation() {
    let person = two();
    let terminal = after_two(&person);
    terminal.key("esc");
    terminal.key("esc");
    let screen = terminal.until_text("before the first prompt");
    assert!(screen.contains("1 changed +2 -1"), "{}", screen.drawn());
    assert!(screen.contains("make the second"), "{}", screen.drawn());
    terminal.key("down");
    terminal.key("enter");
    let screen = terminal.until_text("1 file would change");
    assert!(screen.contains("After prompt 1: make the first"));
    assert!(screen.contains("+one"), "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_gone("Wrote the second.");
    let screen = terminal.until_text("restored a.txt");
    assert!(screen.contains("Wrote the first."), "{}", screen.drawn());
    // The prompt that went is there to be written anew.
    assert!(screen.contains("make the second"), "{}", screen.drawn());
    let file = person.work().join("a.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
    terminal.key("enter");
    terminal.until_text("Wrote the second.");
    let asked = person.server.model_requests();
    let asked = asked.last().unwrap().json()["messages"].to_string();
    assert!(!asked.contains("two"), "{asked}");
    leave(terminal);
}

#[test]
fn what_others_changed_makes_cancel_the_default() {
    let person = two();
    let terminal = after_two(&person);
    let file = person.work().join("a.txt");
    fs::write(&file, "mine\n").unwrap();
    say(&terminal, "/rewind");
    terminal.until_text("before the first prompt");
    terminal.key("down");
    terminal.key("enter");
    let screen = terminal.until_text("1 were changed by others and stay");
    assert!(
        screen.contains("› Cancel") || screen.contains("❯ Cancel"),
        "{}",
        screen.drawn()
    );
    terminal.key("enter");
    terminal.until_gone("changed by others");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
    // Nothing on Esc Esc alone.
    terminal.key("esc");
    terminal.key("esc");
    terminal.until_text("before the first prompt");
    terminal.key("esc");
    terminal.until_gone("before the first prompt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
    leave(terminal);
}

#[test]
fn a_prompt_is_listed_as_it_was_typed() {
    let person = Person::answered("Read.")
        .file("notes.txt", "the-content-of-the-file\n")
        .sized(100, 30);
    let terminal = person.sit_down();
    say(&terminal, "read @notes.txt ");
    until_done(&terminal, "Read.");
    say(&terminal, "/rewind");
    let screen = terminal.until_text("before the first prompt");
    assert!(!screen.contains("the-content"), "{}", screen.drawn());
    assert!(!screen.contains("<file"), "{}", screen.drawn());
    terminal.key("esc");
    leave(terminal);
}
