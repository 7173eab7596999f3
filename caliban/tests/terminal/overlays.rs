//! The status line, and what lies over the conversation.

use std::fs;

use caliban_testkit::terminal::Terminal;
use caliban_testkit::{Match, Reply, Script, Usage};
use rstest::rstest;
use serde_json::json;

use crate::person::{Person, bash, eventually, leave, say, until_done};

#[test]
fn modes_are_cycled_and_shown() {
    let person = Person::answered("never").sized(100, 24);
    let terminal = person.sit_down();
    for chip in ["✎ accept edits", "📋 plan", "🤖 auto", "⏭ don't ask"] {
        assert!(!terminal.screen().contains(chip));
        terminal.key("shift+tab");
        terminal.until_text(chip);
    }
    // The last one needs a word that was not given: it is said, and it is as at first.
    terminal.key("shift+tab");
    let screen = terminal.until_text("--allow-dangerously-skip-permissions");
    assert!(!screen.contains("⚠ bypass"), "{}", screen.drawn());
    terminal.key("shift+tab");
    terminal.key("shift+tab");
    terminal.key("shift+tab");
    leave(terminal);
}

#[test]
fn the_last_mode_is_reached_with_its_latch_and_left_for_good() {
    let person = Person::new([bash("touch ran"), Reply::text("All done.")]);
    let person = person
        .arg("--allow-dangerously-skip-permissions")
        .sized(100, 24);
    let person = person.arg("--permission-mode").arg("dontAsk");
    let terminal = person.sit_down();
    // That it can be reached is told as long as it can.
    terminal.until_text("⏭ don't ask · ⚠ bypass latch");
    terminal.key("shift+tab");
    terminal.until(|screen| screen.contains("⚠ bypass") && !screen.contains("latch"));
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    assert!(person.work().join("ran").exists());
    terminal.key("ctrl+shift+b");
    terminal.until_gone("⚠ bypass");
    say(&terminal, "/permissions");
    terminal.until_text("bypass latch off");
    terminal.keys("q");
    leave(terminal);
}

#[test]
fn a_mode_counts_for_the_next_call() {
    let write = Reply::tool("Write", json!({"path": "made.txt", "content": "x\n"}));
    let person = Person::new([write, Reply::text("All done.")]);
    let terminal = person.sit_down();
    terminal.key("shift+tab");
    terminal.until_text("✎ accept edits");
    say(&terminal, "go");
    terminal.until_text("All done.");
    assert!(person.work().join("made.txt").exists());
    leave(terminal);
}

#[test]
fn the_program_of_the_status_line_sees_no_key() {
    let settings = "[statusLine]\ntype = 'command'\ncommand = 'echo \"key<$ANTHROPIC_API_KEY>home<${HOME:+set}>\"'\n";
    let person = Person::answered("Yes.").settings(settings);
    let terminal = person.sit_down();
    let screen = terminal.until_text("home<set>");
    assert!(screen.contains("key<>home<set>"), "{}", screen.drawn());
    leave(terminal);
}

#[test]
fn a_program_writes_the_beginning_of_the_status_line() {
    let settings = "[statusLine]\ntype = 'command'\ncommand = 'printf \"mine-\\\\033[31m$(cat n 2>/dev/null)\"'\n";
    let person = Person::answered("Done.")
        .settings(settings)
        .file("n", "one");
    let terminal = person.sit_down();
    let screen = terminal.until_text("one · ~/work");
    assert!(screen.contains("mine-"), "{}", screen.drawn());
    // It is data like everything else that we did not write.
    assert!(screen.contains("␛[31m"), "{}", screen.drawn());
    fs::write(person.work().join("n"), "two").unwrap();
    say(&terminal, "go");
    terminal.until_text("two · ~/work");
    say(&terminal, "/statusline");
    terminal.until_text("command: printf");
    leave(terminal);
}

#[test]
fn a_status_program_that_takes_too_long_holds_up_nothing() {
    let settings = "[statusLine]\ntype = 'command'\ncommand = 'touch begun; sleep 1000; echo late'\n\
        timeout_ms = 100\n";
    let person = Person::answered("Done.").settings(settings);
    let terminal = person.sit_down();
    eventually("the program to begin", || {
        person.work().join("begun").exists()
    });
    say(&terminal, "go");
    let screen = until_done(&terminal, "Done.");
    assert!(!screen.contains("late"), "{}", screen.drawn());
    leave(terminal);
}

#[test]
fn the_cost_is_shown_where_it_is_wanted() {
    let usage = Usage {
        input: 1_000_000,
        output: 100_000,
        ..Usage::default()
    };
    let person = Person::new([Reply::text("Dear.").usage(usage)]).sized(120, 24);
    let person = person.settings("[tui]\nshowCostInStatusline = true\n");
    let terminal = person.sit_down();
    terminal.until_text("$0.0000");
    say(&terminal, "go");
    let screen = until_done(&terminal, "Dear.");
    let row = screen.row(23);
    assert!(row.contains("$4.5000"), "{row}");
    leave(terminal);
}

/// Waits until the screen was entered so often, and is drawn.
#[track_caller]
fn until_entered(terminal: &Terminal, times: usize) {
    let is_enter = |bytes: &&[u8]| *bytes == b"\x1b[?1049h";
    terminal.until(|screen| {
        let entered = terminal.raw().windows(8).filter(is_enter).count();
        entered == times && screen.contains("Transcript")
    });
}

#[test]
fn the_viewer_shows_everything_as_the_model_sees_it() {
    let person = Person::commanding("echo viewed-output")
        .arg("--allow")
        .arg("Bash");
    let person = person
        .program("look", "cp \"$1\" \"$HOME/looked\"")
        .env("VISUAL", "look");
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    terminal.key("ctrl+o");
    let screen = terminal.until_text("Transcript");
    assert!(screen.contains("All done."), "{}", screen.drawn());
    terminal.keys("g");
    terminal.until_text("--- 1 user");
    terminal.keys("/viewed-output");
    terminal.key("enter");
    terminal.until_text("viewed-output");
    terminal.keys("?");
    terminal.until_text("[ to scrollback");
    terminal.keys("x");
    terminal.until_gone("[ to scrollback");
    terminal.keys("v");
    until_entered(&terminal, 2);
    let looked = fs::read_to_string(person.home().join("looked")).unwrap();
    assert!(
        looked.contains("[call toolu_") && looked.contains("viewed-output"),
        "{looked}"
    );
    terminal.keys("G[");
    until_entered(&terminal, 3);
    terminal.keys("q");
    terminal.until_gone("Transcript");
    // What was dumped is on the main screen, above what is left behind.
    let ended = leave(terminal);
    assert!(ended.after.contains("--- "), "{}", ended.after.drawn());
}

#[test]
fn a_background_job_is_watched_and_ended() {
    let call = Reply::tool(
        "Bash",
        json!({"command": "echo job-output; sleep 1000", "background": true}),
    );
    let person = Person::new([call, Reply::text("All done.")])
        .arg("--allow")
        .arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    terminal.key("ctrl+b");
    terminal.until_text("Background jobs");
    let screen = terminal.until_text("│ job-output ");
    assert!(screen.contains("running"), "{}", screen.drawn());
    terminal.keys("x");
    terminal.until_text("ended");
    terminal.key("enter");
    terminal.until_text("Job ");
    terminal.keys("qq");
    terminal.until_gone("Background jobs");
    leave(terminal);
}

/// Somebody's agents, from another terminal.
fn agents(person: &Person, args: &[&str]) -> String {
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_caliban"))
        .args(args)
        .env_clear()
        .env("HOME", person.home())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .current_dir(person.work())
        .output()
        .unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_running_sub_agent_is_moved_to_the_background() {
    let moved = Match::last_user("moved you to the background");
    let moved = Reply::text("forty-two").when(moved);
    let person = Person::new([
        Reply::tool("AgentTool", json!({"prompt": "count the stars"})),
        bash("touch began; sleep 1000"),
        moved,
        Reply::text("All done."),
    ]);
    let person = person.arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    eventually("the command", || person.work().join("began").exists());
    terminal.key("ctrl+b");
    until_done(&terminal, "All done.");
    let listed = agents(&person, &["agents", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(listed[0]["label"], "count the stars");
    // It has everything that it did before, and its parent knows where it is.
    let asked = |text: &str| {
        let requests = person.server.model_requests();
        let bodies = requests.iter().map(|it| it.json()["messages"].to_string());
        let mut bodies = bodies.filter(|body| body.contains(text));
        bodies.next()
    };
    eventually("the agent", || {
        asked("moved you to the background").is_some()
    });
    let body = asked("moved you to the background").unwrap();
    assert!(
        body.contains("count the stars") && body.contains("touch began"),
        "{body}"
    );
    assert!(asked(&format!("caliban attach {id}")).is_some());
    eventually("its answer", || {
        agents(&person, &["logs", id]).contains("forty-two")
    });
    agents(&person, &["rm", "--force", id]);
    agents(&person, &["daemon", "stop"]);
    leave(terminal);
}

#[test]
fn a_running_command_is_moved_to_the_background() {
    let person = Person::new([
        bash("echo slow-output; sleep 1000"),
        Reply::text("All done."),
    ]);
    let person = person.arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    terminal.until(|screen| screen.text().lines().any(|row| row == "  slow-output"));
    terminal.key("ctrl+b");
    until_done(&terminal, "All done.");
    terminal.key("ctrl+b");
    terminal.until_text("Background jobs");
    terminal.until_text("running");
    terminal.keys("xq");
    leave(terminal);
}

#[test]
fn the_list_of_tasks_is_shown_and_hidden() {
    let todo =
        |content: &str, status: &str| json!({"id": content, "content": content, "status": status});
    let todos = json!({"todos": [
        todo("first task", "completed"), todo("second task", "in_progress"), todo("third task", "pending"),
    ]});
    let person = Person::new([Reply::tool("TodoWrite", todos), Reply::text("All done.")]);
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = until_done(&terminal, "All done.");
    for row in ["☑ first task", "◧ second task", "☐ third task"] {
        assert!(screen.contains(row), "{}", screen.drawn());
    }
    terminal.key("ctrl+t");
    let screen = terminal.until_gone("☐ third task");
    assert!(screen.contains("1/3 second task"), "{}", screen.drawn());
    leave(terminal);
}

#[test]
fn another_session_opens_in_place() {
    let script = Script::new([
        Reply::text("The old answer.").when(Match::last_user("old question")),
        Reply::text("The new answer.").when(Match::last_user("new question")),
        Reply::text("Going on."),
    ]);
    let person = Person::scripted(script);
    let terminal = person.start(&["--session", "old"]);
    terminal.until_text("session: old");
    say(&terminal, "old question");
    until_done(&terminal, "The old answer.");
    leave(terminal);
    let terminal = person.start(&["--session", "new"]);
    terminal.until_text("session: new");
    say(&terminal, "new question");
    until_done(&terminal, "The new answer.");
    say(&terminal, "/resume");
    terminal.until_text("Sessions");
    terminal.keys("old");
    terminal.until_text("❯ old");
    terminal.key("enter");
    let screen = terminal.until_text("The old answer.");
    assert!(!screen.contains("The new answer."), "{}", screen.drawn());
    terminal.until_text("session: old");
    say(&terminal, "and now");
    until_done(&terminal, "Going on.");
    let told = person.told().last().unwrap().to_string();
    assert!(
        told.contains("old question") && !told.contains("new question"),
        "{told}"
    );
    let ended = leave(terminal);
    assert!(
        ended.after.contains("caliban --resume old"),
        "{}",
        ended.after.drawn()
    );
}

#[test]
fn keys_and_the_system_prompt_are_shown() {
    let person = Person::answered("never").file("CLAUDE.md", "Always be kind to llamas.\n");
    let terminal = person.sit_down();
    say(&terminal, "/keys");
    terminal.until_text("also Alt+Enter");
    terminal.key("esc");
    terminal.until_gone("Shift+Enter, Alt+Enter");
    terminal.keys("?");
    terminal.until_text("also Alt+Enter");
    terminal.keys("q");
    say(&terminal, "/system");
    terminal.until_text("System prompt");
    terminal.keys("/caliban");
    terminal.key("enter");
    terminal.keys("q");
    terminal.until_gone("System prompt");
    leave(terminal);
}

#[rstest]
#[case::one("'alt+k' = 'viewer'", &["alt+k"])]
#[case::two("'ctrl+x v' = 'viewer'", &["ctrl+x", "v"])]
fn keys_are_configured(#[case] binding: &str, #[case] keys: &[&str]) {
    let person = Person::answered("never").settings(&format!("[tui.keys]\n{binding}\n"));
    let terminal = person.sit_down();
    for key in keys {
        terminal.key(key);
    }
    terminal.until_text("Transcript");
    terminal.keys("q");
    terminal.until_gone("Transcript");
    leave(terminal);
}

#[test]
fn a_key_that_makes_no_sense_is_told() {
    let settings = "[tui.keys]\n'alt+k' = 'dance'\n'ctrl+o' = 'none'\n";
    let person = Person::answered("never").settings(settings);
    let terminal = person.sit_down();
    terminal.until_text("there is no action `dance`");
    // And one that is bound to nothing does nothing.
    terminal.key("ctrl+o");
    terminal.key("ctrl+b");
    let screen = terminal.until_text("Background jobs");
    assert!(!screen.contains("Transcript"), "{}", screen.drawn());
    terminal.keys("q");
    leave(terminal);
}

#[test]
fn one_scrolls_and_comes_back() {
    let lines: Vec<String> = (1..=100).map(|n| format!("line-{n}-end\n\n")).collect();
    let person = Person::new([Reply::text(lines.concat())]);
    let terminal = person.sit_down();
    say(&terminal, "much");
    until_done(&terminal, "line-100-end");
    terminal.key("pageup");
    let screen = terminal.until_gone("line-100-end");
    assert!(screen.contains("more below"), "{}", screen.drawn());
    terminal.key("ctrl+home");
    terminal.until_text("> much");
    terminal.key("ctrl+end");
    let screen = terminal.until_text("line-100-end");
    assert!(!screen.contains("more below"), "{}", screen.drawn());
    terminal.key("alt+up");
    terminal.until_text("> much");
    assert_eq!(terminal.agreed(), Ok(()));
    leave(terminal);
}

#[test]
fn below_the_scrollback_panels_leave_everything_as_it_was() {
    let person = Person::answered("All done.")
        .env("CALIBAN_TUI", "inline")
        .sized(80, 24);
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    let before = terminal.screen().text();
    say(&terminal, "/keys");
    let screen = terminal.until_text("┌─ Keys");
    assert!(screen.alternate, "{}", screen.drawn());
    terminal.key("esc");
    terminal.until(|screen| !screen.alternate && screen.contains("All done."));
    terminal.until_quiet();
    assert_eq!(terminal.screen().text(), before);
    // Where one only writes elsewhere, nothing is covered.
    terminal.key("ctrl+r");
    let screen = terminal.until_text("search this session:");
    assert!(!screen.alternate && screen.contains("All done."));
    terminal.key("esc");
    terminal.until_gone("search this session:");
    // What is said meanwhile comes when the panel is closed.
    say(&terminal, "again");
    terminal.key("ctrl+o");
    terminal.until_text("─ Transcript");
    terminal.keys("q");
    terminal.until(|screen| !screen.alternate && screen.contains("> again"));
    until_done(&terminal, "All done.");
    leave(terminal);
}

#[test]
fn the_viewer_loses_nothing_of_a_long_conversation() {
    let paragraph = "many words of one long paragraph ".repeat(20);
    let answer: Vec<String> = (1..=150)
        .map(|number| format!("number-{number} {paragraph}"))
        .collect();
    let person = Person::answered(&answer.join("\n\n"));
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "number-150");
    terminal.key("ctrl+o");
    terminal.until_text("─ Transcript");
    terminal.keys("g");
    terminal.until_text("--- 1 user");
    for number in [1, 40, 77, 150] {
        terminal.keys(&format!("/number-{number} "));
        terminal.key("enter");
        terminal.until_text(&format!("number-{number} many words"));
    }
    terminal.keys("q");
    leave(terminal);
}

#[test]
fn an_answer_is_copied_as_it_was_written() {
    let answer = "Some **bold** text.\n```sh\nls -l\n```\nAnd more.";
    let person = Person::answered(answer);
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "And more.");
    say(&terminal, "/copy");
    terminal.until_text("45 characters to the clipboard");
    assert_eq!(terminal.clipboard(), [answer]);
    say(&terminal, "/copy code");
    terminal.until_text("6 characters to the clipboard");
    assert_eq!(terminal.clipboard().last().unwrap(), "ls -l\n");
    say(&terminal, "/copy all");
    eventually("everything is copied", || terminal.clipboard().len() == 3);
    let all = terminal.clipboard().pop().unwrap();
    assert!(all.contains("go") && all.contains(answer), "{all}");
    say(&terminal, "/copy some");
    terminal.until_text("`/copy code` or `/copy all`");
    leave(terminal);
}

#[test]
fn what_a_command_changes_is_shown_at_once() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    say(&terminal, "/plan");
    terminal.until_text("📋 plan");
    say(&terminal, "/plan");
    terminal.until_gone("📋 plan");
    say(&terminal, "/model claude-haiku-4-5");
    terminal.until_text("anthropic claude-haiku-4-5");
    leave(terminal);
}

#[test]
fn what_is_marked_with_the_mouse_is_copied_in_whole_lines() {
    let item = "an item that is long enough to be wrapped on a screen of seventy columns here";
    let person = Person::answered(&format!("First words\n\n- {item}\n"));
    let person = person.sized(70, 20).settings("[tui]\nmouse = 'on'\n");
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "columns here");
    let screen = terminal.screen();
    let row_of = |text: &str| {
        let rows = screen.text();
        rows.lines().position(|row| row.contains(text)).unwrap() + 1
    };
    let (first, last) = (row_of("First words"), row_of("columns here"));
    let mouse = |button: u8, column: usize, row: usize, end: char| {
        terminal.bytes(format!("\x1b[<{button};{column};{row}{end}").as_bytes());
    };
    mouse(0, 7, first, 'M');
    mouse(32, 20, last, 'M');
    mouse(32, 70, last, 'M');
    mouse(0, 70, last, 'm');
    terminal.until_text("characters to the clipboard");
    let copied = terminal.clipboard().pop().unwrap();
    assert!(copied.starts_with("words\n\n"), "{copied:?}");
    assert!(copied.ends_with(item), "{copied:?}");
    leave(terminal);
}
