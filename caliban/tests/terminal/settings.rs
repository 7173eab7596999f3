//! `/config`: single settings, written to the file of a scope.

use std::fs;
use std::path::PathBuf;

use caliban_testkit::Reply;
use caliban_testkit::terminal::Terminal;
use rstest::rstest;

use crate::looks::looks_like;
use crate::person::{Person, bash, leave, say, until_done};

fn user_file(person: &Person) -> PathBuf {
    person.home().join(".config/caliban/settings.toml")
}

/// The panel with the rows that have this, writing to the user's file.
#[track_caller]
fn for_user(terminal: &Terminal, search: &str) {
    say(terminal, &format!("/config {search}"));
    terminal.until_text("Settings: All, writing to project");
    terminal.keys("ss");
    terminal.until_text("writing to user");
}

/// Writes a value for the chosen key.
#[track_caller]
fn put(terminal: &Terminal, value: &str) {
    terminal.key("enter");
    terminal.until_text("(user): ");
    terminal.key("ctrl+u");
    terminal.keys(value);
    terminal.key("enter");
    terminal.until_text("when you press w");
    terminal.keys("w");
}

#[test]
fn a_value_goes_to_the_file_that_was_chosen_and_needs_a_restart() {
    let person = Person::answered("never").sized(100, 30);
    let person = person.settings("# mine\nmax_turns = 7 # few\n");
    let terminal = person.sit_down();
    for_user(&terminal, "max_turns");
    terminal.until_text("[user] 7");
    put(&terminal, "9");
    let screen = terminal.until_text("restart required");
    assert!(screen.contains("[user] 9"), "{}", screen.drawn());
    let text = fs::read_to_string(user_file(&person)).unwrap();
    assert_eq!(text, "# mine\nmax_turns = 9 # few\n");
    // And out again.
    terminal.keys("d");
    terminal.until_text("→ unset [user]");
    terminal.keys("w");
    terminal.until_text("no scope sets it");
    assert_eq!(fs::read_to_string(user_file(&person)).unwrap(), "");
    terminal.keys("q");
    terminal.until_gone("writing to user");
    leave(terminal);
}

#[rstest]
#[case("max_turns", "many", "invalid type: string \"many\"")]
#[case("effort", "enormous", "unknown variant `enormous`")]
fn what_the_schema_refuses_is_not_written(
    #[case] key: &str,
    #[case] value: &str,
    #[case] why: &str,
) {
    let person = Person::answered("never").sized(140, 30);
    let terminal = person.sit_down();
    for_user(&terminal, key);
    put(&terminal, value);
    terminal.until_text(why);
    assert!(!user_file(&person).exists());
    // It waits on, and closing says so once.
    terminal.keys("q");
    terminal.until_text("1 not written");
    terminal.keys("q");
    terminal.until_gone("writing to user");
    leave(terminal);
}

#[test]
fn the_screen_follows_at_once() {
    let person = Person::answered("never").sized(120, 30);
    let terminal = person.sit_down();
    assert!(!terminal.screen().contains("$0.0000"));
    for_user(&terminal, "showCost");
    put(&terminal, "true");
    terminal.until_text("[user] true");
    terminal.keys("q");
    terminal.until_text("$0.0000");
    leave(terminal);
}

#[test]
fn a_key_that_is_not_listed_is_written_too() {
    let person = Person::answered("never").sized(120, 30);
    let terminal = person.sit_down();
    for_user(&terminal, "tui");
    terminal.keys("n");
    terminal.until_text("key = value: ");
    terminal.keys("tui.notify = bell");
    terminal.key("enter");
    terminal.keys("w");
    terminal.until_text("[user] bell");
    let text = fs::read_to_string(user_file(&person)).unwrap();
    assert_eq!(text, "[tui]\nnotify = \"bell\"\n");
    // A key that nobody knows is a mistake.
    terminal.keys("n");
    terminal.keys("efort = high");
    terminal.key("enter");
    terminal.keys("w");
    terminal.until_text("`efort` is not written");
    assert_eq!(fs::read_to_string(user_file(&person)).unwrap(), text);
    terminal.keys("qq");
    leave(terminal);
}

#[test]
fn a_rule_counts_for_the_next_call() {
    let person = Person::new([bash("touch ran"), Reply::text("All done.")]).sized(120, 30);
    let terminal = person.sit_down();
    for_user(&terminal, "permissions.deny");
    put(&terminal, "[\"Bash:touch *\"]");
    terminal.until_text("[user] [\"Bash:touch *\"]");
    terminal.keys("q");
    terminal.until_gone("writing to user");
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    let result = person.last_result();
    assert!(result.contains("denies it"), "{result}");
    assert!(!person.work().join("ran").exists());
    leave(terminal);
}

#[test]
fn what_the_workspace_is_given_here_is_trusted() {
    let person = Person::answered("never").sized(140, 30);
    let terminal = person.sit_down();
    say(&terminal, "/config view_mode");
    terminal.until_text("writing to project");
    terminal.key("enter");
    terminal.until_text("(project): ");
    terminal.keys("expanded");
    terminal.key("enter");
    terminal.until_text("when you press w");
    terminal.keys("w");
    terminal.until_text("[project] expanded");
    let file = person.work().join(".caliban/settings.toml");
    assert_eq!(
        fs::read_to_string(file).unwrap(),
        "view_mode = \"expanded\"\n"
    );
    terminal.keys("q");
    leave(terminal);
    // The next start asks nothing.
    leave(person.sit_down());
}

#[test]
fn settings_look_so() {
    let person = Person::answered("never").sized(100, 30);
    let person = person.settings("effort = 'high'\nmax_turns = 7\n");
    let terminal = person.sit_down();
    say(&terminal, "/config");
    let screen = terminal.until_text("[user] high");
    looks_like("settings", &person, &screen);
    // Through the groups and around.
    terminal.key("left");
    let screen = terminal.until_text("Settings: Effective");
    assert!(screen.contains("max_turns"), "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_text("the others change it");
    terminal.keys("/max");
    terminal.key("enter");
    let screen = terminal.until_gone("[user] high");
    assert!(screen.contains("[user] 7"), "{}", screen.drawn());
    terminal.keys("q");
    terminal.until_gone("Settings: Effective");
    leave(terminal);
}
