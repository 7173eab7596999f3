//! The draft: written, pasted, undone, remembered, edited elsewhere, completed, kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use caliban_testkit::Reply;
use caliban_testkit::terminal::{Profile, Signal, Terminal};
use rstest::rstest;
use serde_json::Value;

use crate::person::{LISTENS, Person, READY, bash, eventually, leave, say, until_done};

/// What the model was asked last.
#[track_caller]
fn last_prompt(person: &Person) -> String {
    let told = person.told();
    let messages = told.last().unwrap()["messages"].as_array().unwrap().clone();
    let texts: Vec<String> = messages
        .iter()
        .filter(|message| message["role"] == "user")
        .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
        .filter_map(|block| block["text"].as_str().map(str::to_owned))
        .collect();
    texts.last().cloned().unwrap_or_default()
}

/// Presses Ctrl+C for what is written and leaves.
fn clear_and_leave(terminal: Terminal) {
    terminal.key("ctrl+c");
    leave(terminal);
}

#[rstest]
#[case::shift(Profile::Kitty, &["shift+enter"])]
#[case::shift_in_xterm(Profile::Xterm, &["shift+enter"])]
#[case::shift_in_tmux(Profile::Tmux, &["shift+enter"])]
#[case::alt(Profile::Kitty, &["alt+enter"])]
#[case::alt_in_silence(Profile::Silent, &["alt+enter"])]
#[case::control(Profile::Silent, &["ctrl+j"])]
#[case::backslash(Profile::Silent, &["\\", "enter"])]
fn a_new_line_is_written_in_four_ways(#[case] profile: Profile, #[case] keys: &[&str]) {
    let person = Person::answered("Both lines.").terminal(profile);
    let terminal = person.sit_down();
    // What the terminal says of its keyboard has been heard.
    let asked: &[u8] = match profile {
        Profile::Xterm | Profile::Tmux => b"\x1b[>4;2m",
        Profile::Silent | Profile::Kitty | Profile::Late | Profile::Lying => b"\x1b[>1u",
    };
    terminal.until(|_| {
        terminal
            .raw()
            .windows(asked.len())
            .any(|bytes| bytes == asked)
    });
    terminal.keys("first");
    for key in keys {
        terminal.key(key);
    }
    terminal.keys("second");
    let screen = terminal.until_text("  second");
    assert!(screen.contains("> first"), "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_text("Both lines.");
    assert_eq!(last_prompt(&person), "first\nsecond");
    leave(terminal);
}

#[test]
fn a_long_paste_is_one_chip_and_is_sent_whole() {
    let person = Person::answered("Read.");
    let terminal = person.sit_down();
    let lines: Vec<String> = (1..=30).map(|n| format!("pasted line {n}")).collect();
    let pasted = lines.join("\n");
    terminal.keys("see ");
    terminal.paste(&pasted);
    let screen = terminal.until_text("[Pasted #1, 30 lines]");
    assert!(!screen.contains("pasted line"), "{}", screen.drawn());
    // It goes with one key, and comes back.
    terminal.key("backspace");
    terminal.until_gone("[Pasted");
    terminal.key("ctrl+/");
    terminal.until_text("> see [Pasted #1, 30 lines]");
    terminal.key("enter");
    terminal.until_text("Read.");
    assert_eq!(last_prompt(&person), format!("see {pasted}"));
    leave(terminal);
}

#[test]
fn a_chip_is_written_out_and_survives_history() {
    let person = Person::answered("Read.");
    let terminal = person.sit_down();
    let lines: Vec<String> = (1..=12).map(|n| format!("pasted line {n}")).collect();
    terminal.paste(&lines.join("\n"));
    terminal.until_text("> [Pasted #1, 12 lines]");
    terminal.key("enter");
    until_done(&terminal, "Read.");
    terminal.key("up");
    terminal.until(|screen| screen.contains("> [Pasted #") && screen.cursor.row > 18);
    terminal.key("left");
    terminal.key("alt+e");
    terminal.until(|screen| screen.contains("pasted line 12") && !screen.contains("[Pasted"));
    clear_and_leave(terminal);
}

#[test]
fn a_short_paste_is_text_and_no_line_of_it_is_sent() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.paste("one\r\ntwo\nthree\n");
    let screen = terminal.until_text("three");
    assert!(screen.contains("> one"), "{}", screen.drawn());
    assert!(person.told().is_empty());
    clear_and_leave(terminal);
}

#[test]
fn changes_are_undone_and_redone() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.keys("alpha beta gamma");
    terminal.key("ctrl+w");
    terminal.until_gone("gamma");
    terminal.key("ctrl+/");
    terminal.until_text("> alpha beta gamma");
    terminal.key("ctrl+a");
    terminal.key("ctrl+k");
    terminal.until_gone("alpha");
    terminal.key("ctrl+y");
    terminal.until_text("> alpha beta gamma");
    clear_and_leave(terminal);
}

#[test]
fn prompts_are_remembered_across_starts() {
    let person = Person::answered("Noted.");
    let terminal = person.sit_down();
    for text in ["the first", "the second"] {
        say(&terminal, text);
        until_done(&terminal, text);
        terminal.until(|screen| {
            screen.text().matches("Noted.").count() > usize::from(text == "the second")
        });
    }
    leave(terminal);
    let file = person.kept("input-history.txt").unwrap();
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let terminal = person.sit_down();
    terminal.keys("a draft");
    terminal.until_text("> a draft");
    terminal.key("up");
    terminal.until_text("> the second");
    terminal.key("up");
    terminal.until_text("> the first");
    terminal.key("up");
    terminal.key("down");
    terminal.until_text("> the second");
    terminal.key("down");
    terminal.until_text("> a draft");
    clear_and_leave(terminal);
}

#[test]
fn earlier_prompts_are_searched_in_three_scopes() {
    let person = Person::answered("Noted.");
    let elsewhere = person.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut options = person.options(&[]);
    options.cwd = elsewhere;
    let terminal = Terminal::start(options);
    terminal.until_text("session: ");
    say(&terminal, "needle elsewhere");
    until_done(&terminal, "Noted.");
    leave(terminal);
    let terminal = person.sit_down();
    say(&terminal, "needle of the project");
    until_done(&terminal, "Noted.");
    leave(terminal);
    let terminal = person.sit_down();
    terminal.key("ctrl+r");
    terminal.until_text("search this session:");
    terminal.keys("needle");
    terminal.until_text("nothing");
    terminal.key("ctrl+s");
    terminal.until_text("search this project: needle");
    terminal.until_text("needle of the project");
    terminal.until_text("1 of 1  Enter takes it");
    terminal.key("ctrl+s");
    terminal.until_text("search all projects: needle");
    terminal.key("ctrl+r");
    terminal.until_text("needle elsewhere");
    terminal.key("enter");
    terminal.until_text("> needle elsewhere");
    clear_and_leave(terminal);
}

#[test]
fn a_search_that_is_left_changes_nothing() {
    let person = Person::answered("Noted.");
    let terminal = person.sit_down();
    say(&terminal, "something old");
    until_done(&terminal, "Noted.");
    terminal.keys("my draft");
    terminal.key("ctrl+r");
    terminal.keys("old");
    terminal.until_text("search this session: old");
    terminal.key("esc");
    terminal.until_text("> my draft");
    clear_and_leave(terminal);
}

#[rstest]
#[case("EDITOR", "edit", "written outside")]
#[case("EDITOR", "edit --wait now", "written outside with --wait now")]
#[case("VISUAL", "edit", "written outside")]
fn the_draft_is_written_in_an_editor(
    #[case] variable: &str,
    #[case] value: &str,
    #[case] expected: &str,
) {
    let body = "for file; do :; done\ngrep -q begun \"$file\" || exit 9\n\
        echo 'in the editor'\n\
        if [ $# -gt 1 ]; then echo \"written outside with $1 $2\" > \"$file\"\n\
        else echo 'written outside' > \"$file\"; fi";
    let person = Person::answered("Thanks.")
        .program("edit", body)
        .env(variable, value);
    let terminal = person.sit_down();
    terminal.keys("begun");
    terminal.key("ctrl+g");
    terminal.until(|screen| screen.alternate && screen.contains(&format!("> {expected}")));
    terminal.key("enter");
    terminal.until_text("Thanks.");
    assert_eq!(last_prompt(&person), expected);
    leave(terminal);
}

#[test]
fn an_editor_that_fails_leaves_the_draft() {
    let person = Person::answered("never").program("fails", "echo lost > \"$1\"; exit 1");
    let person = person.env("EDITOR", "fails");
    let terminal = person.sit_down();
    terminal.keys("precious");
    terminal.key("ctrl+g");
    terminal.until_text("the editor `fails` failed");
    terminal.until_text("> precious");
    clear_and_leave(terminal);
    let person = Person::answered("never").env("EDITOR", "no-such-editor");
    let terminal = person.sit_down();
    terminal.keys("precious");
    terminal.key("ctrl+x");
    terminal.key("ctrl+e");
    terminal.until_text("does not start");
    terminal.until_text("> precious");
    clear_and_leave(terminal);
}

#[test]
fn control_c_in_an_editor_is_the_editor_s() {
    let body = "trap 'echo interrupted >> \"$HOME/heard\"' INT; touch \"$HOME/begun\"; \
        until [ -e \"$HOME/enough\" ]; do sleep 0.02; done";
    let person = Person::answered("never")
        .program("edit", body)
        .env("EDITOR", "edit");
    let terminal = person.sit_down();
    terminal.keys("precious");
    terminal.key("ctrl+g");
    eventually("the editor", || person.home().join("begun").exists());
    for times in 1..=3 {
        terminal.key("ctrl+c");
        eventually("the editor to hear it", || {
            let heard = fs::read_to_string(person.home().join("heard")).unwrap_or_default();
            heard.lines().count() == times
        });
    }
    fs::write(person.home().join("enough"), "").unwrap();
    terminal.until(|screen| screen.alternate && screen.contains("> precious"));
    // Afterwards a signal is for the program again.
    terminal.signal(Signal::INT);
    assert_eq!(terminal.wait().code, Some(124));
}

#[test]
fn files_are_offered_as_the_ignore_rules_leave_them() {
    let person = Person::answered("Read.")
        .file("src/needle.rs", "fn needle() {}\n")
        .file("target/needle.o", "binary\n")
        .file(".gitignore", "target/\n");
    fs::create_dir(person.work().join(".git")).unwrap();
    let terminal = person.sit_down();
    terminal.keys("explain @need");
    let screen = terminal.until_text("❯ src/needle.rs");
    assert!(!screen.contains("needle.o"), "{}", screen.drawn());
    terminal.key("tab");
    terminal.until_text("> explain @src/needle.rs");
    terminal.key("enter");
    terminal.until_text("Read.");
    let told = person.told()[0]["messages"].to_string();
    assert!(told.contains("fn needle()"), "{told}");
    leave(terminal);
}

#[test]
fn a_folder_that_is_written_out_is_sent_with_enter() {
    let person = Person::answered("Seen.").file("src/needle.rs", "fn needle() {}\n");
    let terminal = person.sit_down();
    terminal.keys("look into @sr");
    terminal.until_text("❯ src/");
    terminal.key("enter");
    terminal.until_text("> look into @src/");
    terminal.until_text("❯ src/");
    terminal.key("enter");
    terminal.until_text("Seen.");
    let told = person.told()[0]["messages"].to_string();
    assert!(told.contains("look into @src/"), "{told}");
    leave(terminal);
}

#[test]
fn commands_are_offered_and_narrowed() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.keys("/");
    terminal.until_text("❯ /");
    terminal.keys("cop");
    let screen = terminal.until_text("❯ /copy");
    assert!(!screen.contains("/model"), "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_text("There is no answer yet");
    // What is written in full is what is meant.
    say(&terminal, "/tui");
    terminal.until_text("terminal: kitty");
    terminal.keys("/he");
    terminal.until_text("❯ /help");
    terminal.key("esc");
    terminal.until_gone("❯ /help");
    terminal.until_text("> /he");
    clear_and_leave(terminal);
}

#[test]
fn a_line_of_the_shell_goes_through_the_gate_and_not_to_the_model() {
    let person = Person::answered("Later.");
    let terminal = person.sit_down();
    say(&terminal, "!echo from-the-shell > made; echo shell-output");
    let screen = terminal.until_text(LISTENS);
    assert!(screen.contains("echo from-the-shell"), "{}", screen.drawn());
    terminal.keys("y");
    terminal.until(|screen| {
        screen
            .text()
            .lines()
            .any(|row| row.trim() == "shell-output")
    });
    assert_eq!(
        fs::read_to_string(person.work().join("made")).unwrap(),
        "from-the-shell\n"
    );
    assert!(person.told().is_empty());
    terminal.until_gone("Working");
    say(&terminal, "what now?");
    terminal.until_text("Later.");
    let told = person.told()[0].to_string();
    assert!(
        !told.contains("from-the-shell") && !told.contains("shell-output"),
        "{told}"
    );
    leave(terminal);
}

#[test]
fn a_line_of_the_shell_is_denied_by_a_rule() {
    let person = Person::answered("never").arg("--deny").arg("Bash:touch *");
    let terminal = person.sit_down();
    say(&terminal, "!touch made");
    terminal.until_text("denied");
    assert!(!person.work().join("made").exists());
    leave(terminal);
}

#[test]
fn a_line_of_the_shell_is_confined() {
    let settings = "[sandbox]\nenabled = true\n";
    let person = Person::answered("never").settings(settings);
    let person = person.arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "/sandbox");
    let screen = terminal.until_text("┌─ Sandbox");
    if screen.contains("why none") {
        // There is no sandbox to be had here.
        return;
    }
    terminal.key("esc");
    terminal.until_gone("┌─ Sandbox");
    say(
        &terminal,
        "!mount | wc -l > made; touch $HOME/outside; echo the-end",
    );
    terminal.until(|screen| screen.text().lines().any(|row| row.trim() == "the-end"));
    terminal.until_text("Read-only");
    assert!(person.work().join("made").exists());
    leave(terminal);
}

#[test]
fn vi_keys_by_the_settings() {
    let person = Person::answered("Done.").settings("editor_mode = 'vim'\n");
    let terminal = person.sit_down();
    terminal.until_text("INSERT");
    terminal.keys("one two three");
    terminal.key("esc");
    terminal.until_text("NORMAL");
    terminal.keys("0dw");
    terminal.until_text("> two three");
    terminal.keys("A four");
    terminal.until_text("> two three four");
    terminal.key("enter");
    terminal.until_text("Done.");
    assert_eq!(last_prompt(&person), "two three four");
    leave(terminal);
}

#[test]
fn a_draft_survives_the_worst() {
    let person = Person::answered("Kept.");
    let terminal = person.sit_down();
    terminal.keys("not to be lost");
    terminal.until_text("> not to be lost");
    // It is written down within a second.
    eventually("the draft to be written down", || {
        let file = person.kept("draft.txt");
        file.and_then(|file| fs::read_to_string(file).ok())
            .is_some_and(|text| text.contains("not to be lost"))
    });
    terminal.signal(Signal::KILL);
    terminal.wait_dirty();
    let mode = fs::metadata(person.kept("draft.txt").unwrap()).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let terminal = person.sit_down();
    terminal.until_text("> not to be lost");
    terminal.key("enter");
    until_done(&terminal, "Kept.");
    leave(terminal);
    // What was sent does not come back.
    let terminal = person.start(&[]);
    let screen = terminal.until_text(READY);
    assert!(!screen.contains("not to be lost"), "{}", screen.drawn());
    leave(terminal);
}

#[test]
fn nothing_is_kept_where_nothing_is_to_be() {
    let person = Person::answered("Forgotten.").arg("--no-save");
    let terminal = person.start(&[]);
    terminal.until_text("session: not saved");
    say(&terminal, "a private matter");
    until_done(&terminal, "Forgotten.");
    terminal.keys("half a thought");
    terminal.until_text("> half a thought");
    terminal.key("ctrl+c");
    let ended = leave(terminal);
    assert!(!ended.after.contains("--resume"), "{}", ended.after.drawn());
    assert_eq!(person.kept("input-history.txt"), None);
    assert_eq!(person.kept("draft.txt"), None);
    let grep = std::process::Command::new("grep")
        .args(["-rlE", "private matter|half a thought"])
        .arg(person.home())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&grep.stdout), "");
}

#[test]
fn a_draft_is_put_aside_and_taken_back() {
    let person = Person::answered("Quickly.");
    let terminal = person.sit_down();
    terminal.keys("a long thought");
    terminal.key("ctrl+s");
    terminal.until_text("Put aside");
    say(&terminal, "a quick one");
    until_done(&terminal, "Quickly.");
    terminal.key("ctrl+s");
    terminal.until_text("> a long thought");
    clear_and_leave(terminal);
}

#[test]
fn a_resource_of_a_server_is_offered_by_its_name() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let settings = format!("[mcp_servers.notes]\ncommand = 'python3'\nargs = ['{script}']\n");
    let person = Person::answered("Seen.").settings(&settings);
    let terminal = person.sit_down();
    terminal.keys("@not");
    terminal.until_text("❯ @notes:");
    terminal.key("tab");
    terminal.keys("today");
    terminal.until_text("> @notes:today");
    terminal.key("enter");
    terminal.until_text("Seen.");
    let told = person.told()[0]["messages"].to_string();
    assert!(told.contains("read note://today"), "{told}");
    leave(terminal);
}

#[test]
fn escape_clears_what_is_written_and_undo_brings_it_back() {
    let person = Person::new([bash("true"), Reply::text("never")]);
    let terminal = person.sit_down();
    terminal.keys("oh well");
    terminal.key("esc");
    terminal.until_gone("oh well");
    terminal.key("ctrl+/");
    terminal.until_text("> oh well");
    clear_and_leave(terminal);
    assert_eq!(person.told(), Vec::<Value>::new());
}
