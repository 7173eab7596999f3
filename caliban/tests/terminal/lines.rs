//! Talking in lines, for screen readers and for terminals that can do no more.

use caliban_testkit::{Block, Prose, Reply};
use rstest::rstest;
use serde_json::json;

use crate::person::{Person, say};

#[rstest]
#[case::dumb(&[], Some(("TERM", "dumb")))]
#[case::flag(&["--screen-reader"], None)]
#[case::variable(&[], Some(("CALIBAN_SCREEN_READER", "1")))]
#[case::surface(&[], Some(("CALIBAN_TUI", "plain")))]
fn a_whole_run_with_a_question(#[case] args: &[&str], #[case] variable: Option<(&str, &str)>) {
    let mut person = Person::commanding("echo spoken-aloud").sized(160, 40);
    if let Some((name, value)) = variable {
        person = person.env(name, value);
    }
    let terminal = person.start(args);
    terminal.until_text("/quit leaves.");
    say(&terminal, "please");
    terminal.until_text("Permission required. Bash: echo spoken-aloud");
    terminal.until_text("Type a number and Enter.");
    assert_eq!(terminal.bells(), 1);
    say(&terminal, "maybe");
    terminal.until_text("Type 1, 2, 3 or 4.");
    say(&terminal, "1");
    terminal.until_text("All done.");
    assert!(person.last_result().contains("spoken-aloud"));
    terminal.until(|screen| screen.row(usize::from(screen.cursor.row)) == ">");
    // Lines only: no cursor is moved, nothing is drawn.
    let raw = terminal.raw();
    assert!(!raw.contains(&0x1b), "{}", raw.escape_ascii());
    say(&terminal, "/quit");
    let ended = terminal.wait();
    assert_eq!(ended.code, Some(0));
    assert!(ended.after.contains("Go on with: caliban --resume"));
}

#[test]
fn a_refusal_is_a_number_too() {
    let person = Person::commanding("echo never")
        .sized(160, 40)
        .arg("--screen-reader");
    let terminal = person.start(&[]);
    terminal.until_text("/quit leaves.");
    say(&terminal, "please");
    terminal.until_text("Type a number and Enter.");
    say(&terminal, "3");
    let screen = terminal.until_text("All done.");
    assert!(screen.contains("Bash denied"), "{}", screen.drawn());
    terminal.key("ctrl+d");
    assert_eq!(terminal.wait().code, Some(0));
}

/// Whoever hears it decides about the same as whoever sees it.
#[test]
fn a_change_is_read_out_before_it_is_made() {
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "zwei"});
    let read = json!({"path": "a.txt"});
    let person = Person::new([
        Reply::tool("Read", read),
        Reply::tool("Edit", edit),
        Reply::text("All done."),
    ]);
    let person = person.file("a.txt", "one\ntwo\nthree\n").sized(160, 40);
    let person = person.arg("--screen-reader");
    let terminal = person.start(&[]);
    terminal.until_text("/quit leaves.");
    say(&terminal, "please");
    let screen = terminal.until_text("Type a number and Enter.");
    for part in [
        "Permission required. Edit: a.txt",
        "- two",
        "+ zwei",
        "rule that asks: Edit (built-in)",
    ] {
        assert!(screen.contains(part), "{}", screen.drawn());
    }
    say(&terminal, "3");
    terminal.until_text("All done.");
    terminal.key("ctrl+d");
    terminal.wait();
}

#[test]
fn nothing_in_a_command_goes_unsaid_and_no_rule_lets_all_in() {
    let person = Person::commanding("echo hi\u{202e}; touch ran").sized(160, 40);
    let person = person.arg("--screen-reader");
    let terminal = person.start(&[]);
    terminal.until_text("/quit leaves.");
    say(&terminal, "please");
    let screen = terminal.until_text("Type a number and Enter.");
    assert!(screen.contains("Bash: echo hi"), "{}", screen.drawn());
    assert!(screen.contains("unread"), "{}", screen.drawn());
    assert!(
        !screen.contains("Bash: echo hi; touch"),
        "{}",
        screen.drawn()
    );
    say(&terminal, "2");
    terminal.until_text("Type 1 or 3.");
    say(&terminal, "3");
    terminal.until_text("All done.");
    assert!(!person.work().join("ran").exists());
    terminal.key("ctrl+d");
    terminal.wait();
}

#[test]
fn control_c_stops_the_work_and_then_leaves() {
    let pieces = ["endless ", "words"].map(str::to_owned).to_vec();
    let reply = Reply::default()
        .block(Block::Text(Prose::Pieces(pieces)))
        .hold_after(4);
    let person = Person::new([reply]).sized(160, 40).arg("--screen-reader");
    let terminal = person.start(&[]);
    terminal.until_text("/quit leaves.");
    say(&terminal, "please");
    terminal.until_text("endless");
    terminal.key("ctrl+c");
    terminal.until_text("Stopped.");
    person.server.wait_for_disconnect();
    terminal.until(|screen| screen.row(usize::from(screen.cursor.row)) == ">");
    terminal.key("ctrl+c");
    assert_eq!(terminal.wait().code, Some(0));
}
