//! How it ends: as the person wants, by signals, by faults; the terminal is clean each time.

use caliban_testkit::Reply;
use caliban_testkit::terminal::{Signal, Terminal, TerminalOptions};
use rstest::rstest;

use crate::person::{Person, READY, leave, say};

#[rstest]
#[case("ctrl+c")]
#[case("ctrl+d")]
fn an_empty_prompt_is_left_with_one_key(#[case] key: &str) {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.key(key);
    let ended = terminal.wait();
    assert_eq!(ended.code, Some(0));
    // Nothing was said, so there is nothing to go on with.
    assert_eq!(ended.after.text().trim(), "");
}

#[test]
fn what_is_written_is_cleared_first_and_comes_back() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.keys("half a thought");
    terminal.until_text("> half a thought");
    terminal.key("ctrl+d");
    terminal.key("ctrl+c");
    terminal.until_gone("half a thought");
    terminal.key("ctrl+/");
    terminal.until_text("> half a thought");
    terminal.key("ctrl+c");
    terminal.until_gone("half a thought");
    terminal.key("ctrl+c");
    assert_eq!(terminal.wait().code, Some(0));
}

#[test]
fn the_conversation_and_how_it_goes_on_are_left_behind() {
    let person = Person::answered("# A title\n\nAnd **text**.");
    let terminal = person.start(&["--session", "talk"]);
    terminal.until_text(READY);
    say(&terminal, "Write something");
    terminal.until_text("And text.");
    let ended = leave(terminal);
    assert!(!ended.after.alternate);
    let text = ended.after.text();
    assert!(text.contains("> Write something"), "{text}");
    assert!(text.contains("And text."), "{text}");
    assert!(text.contains("Go on with: caliban --resume talk"), "{text}");
}

#[rstest]
#[case("last", &["second answer", "caliban --resume"], &["first answer"])]
#[case("none", &["caliban --resume"], &["first answer", "second answer"])]
fn less_is_left_where_that_is_wanted(
    #[case] wanted: &str,
    #[case] left: &[&str],
    #[case] gone: &[&str],
) {
    let person = Person::new([Reply::text("first answer"), Reply::text("second answer")]);
    let person = person.settings(&format!("[tui]\non_exit = '{wanted}'\n"));
    let terminal = person.sit_down();
    say(&terminal, "one");
    terminal.until_text("first answer");
    say(&terminal, "two");
    terminal.until_text("second answer");
    let text = leave(terminal).after.text();
    assert!(left.iter().all(|text_| text.contains(text_)), "{text}");
    assert!(!gone.iter().any(|text_| text.contains(text_)), "{text}");
}

#[rstest]
#[case(Signal::TERM)]
#[case(Signal::HUP)]
#[case(Signal::INT)]
fn a_signal_ends_it_cleanly(#[case] signal: Signal) {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.signal(signal);
    assert_eq!(terminal.wait().code, Some(124));
}

#[rstest]
#[case::drawn(&[])]
#[case::lines(&["--screen-reader"])]
fn a_signal_leaves_behind_how_it_goes_on(#[case] args: &[&str]) {
    let person = Person::answered("Fine.").sized(100, 24);
    let terminal = person.start(&[&["--session", "talk"], args].concat());
    terminal.until(|screen| screen.contains(READY) || screen.contains("/quit leaves."));
    say(&terminal, "one");
    terminal.until_text("Fine.");
    terminal.signal(Signal::TERM);
    let ended = terminal.wait();
    assert_eq!(ended.code, Some(124));
    let text = ended.after.text();
    assert!(text.contains("Go on with: caliban --resume talk"), "{text}");
}

#[test]
fn a_signal_ends_work_cleanly() {
    let person = Person::new([Reply::text("some words that never end").hold_after(3)]);
    let terminal = person.sit_down();
    say(&terminal, "go");
    terminal.until_text("Esc stops");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.wait().code, Some(124));
    person.server.wait_for_disconnect();
}

#[test]
fn a_terminal_that_is_closed_ends_it_and_keeps_the_draft() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.keys("not yet sent");
    terminal.until_text("> not yet sent");
    terminal.hang_up();
    assert_eq!(terminal.wait().code, Some(124));
    let terminal = person.sit_down();
    terminal.until_text("> not yet sent");
    terminal.key("ctrl+c");
    leave(terminal);
}

#[test]
fn a_fault_of_our_own_is_told_and_leaves_a_clean_terminal() {
    let person = Person::answered("Fine.").env("CALIBAN_TEST_PANIC", "boom");
    let terminal = person.sit_down();
    say(&terminal, "before");
    terminal.until_text("Fine.");
    say(&terminal, "boom");
    let screen = terminal.until_text("The session broke");
    // Nothing is written over the screen.
    assert!(!screen.contains("panicked"), "{}", screen.drawn());
    terminal.keys("still a draft");
    terminal.until_text("> still a draft");
    terminal.key("ctrl+c");
    let ended = leave(terminal);
    assert!(
        ended.after.contains("internal error"),
        "{}",
        ended.after.drawn()
    );
}

#[test]
fn control_z_goes_to_the_shell_and_fg_comes_back() {
    let person = Person::answered("Here again.");
    let options = person.options(&[]);
    let program = options.program.display().to_string();
    let mut env = options.env.clone();
    env.push(("PS1".to_owned(), "prompt% ".to_owned()));
    let terminal = Terminal::start(TerminalOptions {
        program: "/bin/bash".into(),
        args: ["--norc", "--noprofile", "-i"].map(str::to_owned).to_vec(),
        env,
        ..options
    });
    terminal.until_text("prompt%");
    say(&terminal, &program);
    terminal.until_text(READY);
    terminal.keys("kept draft");
    terminal.until_text("> kept draft");
    terminal.key("ctrl+z");
    let screen = terminal.until_text("Stopped");
    assert!(!screen.alternate);
    say(&terminal, "stty -a | grep -o -e '-\\?icanon'; echo seen");
    let screen = terminal.until(|screen| screen.text().lines().any(|row| row == "seen"));
    assert!(
        screen.text().lines().any(|row| row == "icanon"),
        "{}",
        screen.drawn()
    );
    say(&terminal, "fg");
    let screen = terminal.until(|screen| screen.alternate && screen.contains("> kept draft"));
    assert!(screen.contains(READY), "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_text("Here again.");
    terminal.key("ctrl+d");
    terminal.until_text("Go on with");
    say(&terminal, "exit 7");
    assert_eq!(terminal.wait().code, Some(7));
}
