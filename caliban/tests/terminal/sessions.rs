//! `/resume` and `/rename`: earlier sessions, looked into, found, renamed, copied, deleted.

use std::path::PathBuf;

use caliban_testkit::terminal::Terminal;
use caliban_testkit::{Match, Reply, Script};

use crate::looks::looks_like;
use crate::person::{Person, leave, say, until_done};

/// Somebody who had two conversations and is in the second one.
fn with_two() -> (Person, Terminal) {
    let script = Script::new([
        Reply::text("The old answer.").when(Match::last_user("old question")),
        Reply::text("The new answer.").when(Match::last_user("new question")),
        Reply::text("Going on."),
    ]);
    let person = Person::scripted(script).sized(110, 30);
    let terminal = person.start(&["--session", "old"]);
    terminal.until_text("session: old");
    say(&terminal, "old question");
    until_done(&terminal, "The old answer.");
    leave(terminal);
    let terminal = person.start(&["--session", "new"]);
    terminal.until_text("session: new");
    say(&terminal, "new question");
    until_done(&terminal, "The new answer.");
    (person, terminal)
}

fn file(person: &Person, name: &str) -> PathBuf {
    let kept = person
        .kept("old.json")
        .or_else(|| person.kept("new.journal"));
    kept.unwrap().with_file_name(name)
}

#[track_caller]
fn choose(terminal: &Terminal, name: &str) {
    say(terminal, "/resume");
    terminal.until_text("Sessions");
    terminal.keys(name);
    terminal.until_text(&format!("❯ {name}"));
}

#[test]
fn what_was_said_is_previewed_and_found() {
    let (person, terminal) = with_two();
    say(&terminal, "/resume");
    terminal.until_text("❯ new");
    terminal.key("down");
    terminal.until_text("❯ old");
    terminal.key("tab");
    let screen = terminal.until_text("## Assistant");
    assert!(screen.contains("The old answer."), "{}", screen.drawn());
    // The preview goes with the choice.
    terminal.key("up");
    terminal.until(|screen| screen.contains("❯ new") && screen.contains("## User"));
    terminal.key("tab");
    terminal.until_gone("## Assistant");
    // Neither name nor title has this.
    terminal.keys("OLD ANSWER");
    terminal.until_text("nothing fits");
    terminal.key("ctrl+s");
    let screen = terminal.until_text("was said in 1");
    assert!(screen.contains("❯ old"), "{}", screen.drawn());
    looks_like("sessions", &person, &without_dates(&terminal));
    terminal.key("enter");
    terminal.until_text("session: old");
    leave(terminal);
}

/// With what was found there are no dates on the screen.
fn without_dates(terminal: &Terminal) -> caliban_testkit::terminal::Screen {
    terminal.until(|screen| !screen.contains(" tok  "))
}

#[test]
fn a_session_is_renamed_and_found_by_its_new_name() {
    let (person, terminal) = with_two();
    choose(&terminal, "old");
    terminal.key("ctrl+r");
    terminal.until_text("new name: old");
    terminal.key("ctrl+u");
    terminal.keys("first one");
    terminal.key("enter");
    terminal.until_text("`old` is called `first-one`");
    assert!(!file(&person, "old.json").exists());
    assert!(file(&person, "first-one.json").exists());
    terminal.key("esc");
    leave(terminal);
    let terminal = person.start(&["--resume", "first-one"]);
    terminal.until_text("The old answer.");
    leave(terminal);
}

#[test]
fn the_session_that_is_open_is_renamed_where_it_is() {
    let (person, terminal) = with_two();
    say(&terminal, "/rename Better login");
    terminal.until_text("`--resume Better-login` opens it");
    terminal.until_text("session: Better-login");
    assert!(!file(&person, "new.journal").exists());
    say(&terminal, "more");
    until_done(&terminal, "Going on.");
    let ended = leave(terminal);
    assert!(
        ended.after.contains("caliban --resume Better-login"),
        "{}",
        ended.after.drawn()
    );
    let terminal = person.start(&["--resume", "Better-login"]);
    let screen = terminal.until_text("Going on.");
    assert!(screen.contains("The new answer."), "{}", screen.drawn());
    // A name that is taken is refused, and nothing changes.
    say(&terminal, "/rename old");
    terminal.until_text("exists already");
    terminal.until_text("session: Better-login");
    leave(terminal);
}

#[test]
fn a_session_is_deleted_when_that_is_confirmed() {
    let (person, terminal) = with_two();
    let old = file(&person, "old.json");
    choose(&terminal, "old");
    terminal.key("ctrl+d");
    terminal.until_text("Delete `old`");
    terminal.keys("n");
    terminal.until_text("`old` stays");
    assert!(old.exists());
    terminal.key("ctrl+d");
    terminal.keys("y");
    terminal.until_text("`old` is deleted");
    terminal.until_text("nothing fits");
    assert!(!old.exists());
    // Not the one that is open.
    for _ in 0..3 {
        terminal.key("backspace");
    }
    terminal.until_text("❯ new");
    terminal.key("ctrl+d");
    terminal.until_text("cannot be deleted");
    terminal.key("esc");
    leave(terminal);
}

#[test]
fn a_session_is_copied_and_the_copy_opened() {
    let (person, terminal) = with_two();
    choose(&terminal, "old");
    terminal.key("ctrl+f");
    terminal.until_text("name of the copy");
    terminal.keys("twin");
    terminal.key("enter");
    terminal.until_text("`twin` is a copy of `old`");
    for _ in 0..3 {
        terminal.key("backspace");
    }
    terminal.keys("twin");
    terminal.until_text("❯ twin");
    terminal.key("enter");
    terminal.until_text("session: twin");
    say(&terminal, "and now");
    until_done(&terminal, "Going on.");
    let told = person.told().last().unwrap().to_string();
    assert!(told.contains("old question"), "{told}");
    leave(terminal);
    let terminal = person.start(&["--resume", "old"]);
    let screen = terminal.until_text("The old answer.");
    assert!(!screen.contains("Going on."), "{}", screen.drawn());
    leave(terminal);
}

/// Rows say which it is where there is little room, and leave out what nothing was said in.
#[test]
fn rows_begin_with_what_tells_sessions_apart() {
    let person = Person::answered("Yes.");
    for prompt in ["repair the login form", "write the release notes"] {
        let terminal = person.sit_down();
        say(&terminal, prompt);
        until_done(&terminal, "Yes.");
        leave(terminal);
    }
    let terminal = person.sit_down();
    say(&terminal, "/resume");
    let screen = terminal.until_text("write the release notes");
    let rows: Vec<String> = screen.text().lines().map(str::to_owned).collect();
    for title in ["repair the login form", "write the release notes"] {
        let row = rows.iter().find(|row| row.contains(title)).unwrap();
        assert!(row.contains("1 turn ") && row.contains("now"), "{row}");
        let before = row.split(title).next().unwrap();
        let id = before.split_whitespace().last().unwrap();
        assert!(
            id.len() == 8 && id.bytes().all(|c| c.is_ascii_hexdigit()),
            "{row}"
        );
    }
    assert!(screen.contains("1/2"), "{}", screen.drawn());
    terminal.key("esc");
    leave(terminal);
}

#[test]
fn what_was_chosen_after_the_last_prompt_is_kept() {
    let (person, terminal) = with_two();
    say(&terminal, "/model claude-haiku-4-5");
    terminal.until_text("anthropic claude-haiku-4-5");
    terminal.key("shift+tab");
    terminal.until_text("accept edits");
    terminal.key("shift+tab");
    terminal.until_text("📋 plan");
    leave(terminal);
    let terminal = person.start(&["--session", "new"]);
    terminal.until_text("📋 plan");
    terminal.until_text("anthropic claude-haiku-4-5");
    leave(terminal);
}
