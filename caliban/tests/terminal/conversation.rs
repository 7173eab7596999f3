//! The conversation on the screen: what the model says, what it does, and what is said to it.

use caliban_testkit::terminal::Terminal;
use caliban_testkit::{Block, Fault, Match, Prose, Reply, Script};
use serde_json::json;

use crate::person::{Person, READY, bash, leave, say, until_done};

#[test]
fn markdown_is_laid_out_while_it_comes() {
    let pieces = [
        "# Plan\n\nFirst **bold** and `code`.\n\n",
        "- one\n- two\n\n",
        "```rust\nfn main() {}\n",
        "```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end.",
    ];
    let pieces = pieces.map(str::to_owned).to_vec();
    // The beginning, the block's beginning, and three pieces.
    let reply = Reply::default()
        .block(Block::Text(Prose::Pieces(pieces)))
        .hold_after(5);
    let person = Person::new([reply]);
    let terminal = person.sit_down();
    say(&terminal, "explain");
    let screen = terminal.until_text("fn main() {}");
    assert!(
        screen.contains("Plan") && !screen.contains("# Plan"),
        "{}",
        screen.drawn()
    );
    assert!(
        screen.contains("First bold and code."),
        "{}",
        screen.drawn()
    );
    let (row, column) = screen.find("bold").unwrap();
    assert!(screen.style_at(row, column).bold);
    assert!(screen.contains("Working"), "{}", screen.drawn());
    person.server.release();
    let screen = terminal.until_text("The end.");
    assert!(!screen.contains("```"), "{}", screen.drawn());
    assert!(!screen.contains("|---|"), "{}", screen.drawn());
    terminal.until_gone("Working");
    assert_eq!(terminal.agreed(), Ok(()));
    leave(terminal);
}

#[test]
fn a_call_stands_with_its_input_and_its_result() {
    let person = Person::commanding("printf 'first\\nsecond\\n'; exit 3")
        .arg("--allow")
        .arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = terminal.until_text("All done.");
    let text = screen.text();
    assert!(text.contains("🔧 Bash({\"command\":"), "{text}");
    assert!(text.contains("  → ✗ exit 3"), "{text}");
    assert!(text.contains("  first\n  second\n"), "{text}");
    leave(terminal);
}

#[test]
fn an_edit_is_shown_as_a_difference() {
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "zwei"});
    let replies = [
        Reply::tool("Read", json!({"path": "a.txt"})),
        Reply::tool("Edit", edit),
        Reply::text("All done."),
    ];
    let person = Person::new(replies).file("a.txt", "one\ntwo\nthree\n");
    let person = person.arg("--permission-mode").arg("acceptEdits");
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = terminal.until_text("All done.");
    let text = screen.text();
    assert!(text.contains("→ Read a.txt, lines 1-3 of 3"), "{text}");
    assert!(text.contains("→ Edited a.txt +1 -1"), "{text}");
    let row_with = |what: &str| {
        text.lines()
            .any(|row| row.contains('-') && row.contains(what))
    };
    assert!(row_with("two"), "{text}");
    assert!(
        text.lines()
            .any(|row| row.contains('+') && row.contains("zwei")),
        "{text}"
    );
    let text = std::fs::read_to_string(person.work().join("a.txt")).unwrap();
    assert_eq!(text, "one\nzwei\nthree\n");
    leave(terminal);
}

#[test]
fn thoughts_are_folded_until_they_are_opened() {
    let reply = Reply::text("The answer.").thinking("A secret thought.\nAnother one.");
    let person = Person::new([reply]);
    let terminal = person.sit_down();
    say(&terminal, "/effort high");
    terminal.until_text("high");
    say(&terminal, "think");
    terminal.until_text("The answer.");
    let screen = terminal.until_text("▸ Thought, 2 lines");
    assert!(!screen.contains("A secret thought."), "{}", screen.drawn());
    terminal.key("alt+o");
    terminal.until_text("A secret thought.");
    terminal.key("alt+o");
    terminal.until_gone("A secret thought.");
    leave(terminal);
}

#[test]
fn a_sub_agent_is_nested_in_its_call() {
    let call = Reply::tool(
        "AgentTool",
        json!({"prompt": "look into it", "description": "look"}),
    );
    let script = Script::new([
        call.when(Match::last_user("delegate")),
        bash("echo inner").when(Match::last_user("look into it")),
        Reply::text("The inner answer.").when(Match::last_user("look into it")),
        Reply::text("All done."),
    ]);
    let person = Person::scripted(script).arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "delegate");
    let text = terminal.until_text("All done.").text();
    assert!(text.contains("🔧 AgentTool({"), "{text}");
    assert!(
        text.contains("  │ 🔧 Bash({\"command\":\"echo inner\"})"),
        "{text}"
    );
    assert!(text.contains("  │ The inner answer."), "{text}");
    leave(terminal);
}

#[test]
fn a_retry_is_told() {
    let person = Person::new([
        Reply::fault(Fault::status(529)),
        Reply::text("Now it works."),
    ]);
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = terminal.until_text("Now it works.");
    assert!(screen.contains("Retry 1 of"), "{}", screen.drawn());
    assert!(screen.contains("529"), "{}", screen.drawn());
    leave(terminal);
}

#[test]
fn a_denial_names_its_rule() {
    let person = Person::commanding("rm -r everything")
        .arg("--deny")
        .arg("Bash:rm *");
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = terminal.until_text("All done.");
    assert!(
        screen.contains("denied (rule `Bash:rm *`)"),
        "{}",
        screen.drawn()
    );
    leave(terminal);
    // So it does when the conversation is opened again.
    let terminal = person.start(&["-c"]);
    terminal.until_text(READY);
    let screen = terminal.until_text("⊘ denied: the rule `Bash:rm *`");
    assert!(!screen.contains("✗"), "{}", screen.drawn());
    leave(terminal);
}

#[test]
fn an_error_is_told_and_one_goes_on() {
    let person = Person::new([Reply::fault(Fault::status(401)), Reply::text("Better.")]);
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = terminal.until_text("✗ ");
    assert!(screen.contains("401"), "{}", screen.drawn());
    terminal.until_gone("Working");
    say(&terminal, "again");
    terminal.until_text("Better.");
    leave(terminal);
}

/// A model that is held up in its first call until it is released.
fn held() -> Person {
    let person = Person::new([
        bash("true").hold_after(2),
        Reply::text("Second answer."),
        Reply::text("Third answer."),
    ]);
    person.arg("--allow").arg("Bash")
}

#[test]
fn enter_joins_the_work_and_tab_waits_for_its_end() {
    let person = held();
    let terminal = person.sit_down();
    say(&terminal, "begin");
    terminal.until_text("Enter joins the work");
    say(&terminal, "join in");
    terminal.until_text("1 joins: join in");
    terminal.keys("tomorrow-then");
    terminal.key("tab");
    terminal.until_text("2 waits: tomorrow-then");
    person.server.release();
    let screen = terminal.until_text("Third answer.");
    assert!(
        !screen.contains("joins:") && !screen.contains("waits:"),
        "{}",
        screen.drawn()
    );
    let rows: Vec<String> = screen.text().lines().map(str::to_owned).collect();
    let place = |text: &str| {
        rows.iter()
            .position(|row| row == text)
            .unwrap_or(usize::MAX)
    };
    assert!(place("> begin") < place("> join in"), "{}", screen.drawn());
    assert!(
        place("> join in") < place("Second answer."),
        "{}",
        screen.drawn()
    );
    assert!(
        place("Second answer.") < place("> tomorrow-then"),
        "{}",
        screen.drawn()
    );
    let told = person.told();
    assert!(told[1].to_string().contains("join in"));
    assert!(!told[1].to_string().contains("tomorrow-then"));
    assert!(told[2].to_string().contains("tomorrow-then"));
    leave(terminal);
}

#[test]
fn what_waits_can_be_taken_back() {
    let person = held();
    let terminal = person.sit_down();
    say(&terminal, "begin");
    terminal.until_text("Enter joins the work");
    terminal.keys("a mistake");
    terminal.key("tab");
    terminal.until_text("1 waits: a mistake");
    terminal.key("alt+q");
    terminal.until_gone("1 waits");
    terminal.until_text("> a mistake");
    terminal.keys(" mended");
    terminal.key("tab");
    terminal.until_text("1 waits: a mistake mended");
    person.server.release();
    terminal.until_text("Third answer.");
    let told = person.told();
    assert!(told[2].to_string().contains("a mistake mended"));
    leave(terminal);
}

/// Three prompts that wait for the end of the work.
fn waiting(person: &Person) -> Terminal {
    let terminal = person.sit_down();
    say(&terminal, "begin");
    terminal.until_text("Enter joins the work");
    for (place, text) in [(1, "alpha"), (2, "beta"), (3, "gamma")] {
        terminal.keys(text);
        terminal.key("tab");
        terminal.until_text(&format!("{place} waits: {text}"));
    }
    terminal
}

#[test]
fn up_takes_the_last_waiting_prompt_back() {
    let person = held();
    let terminal = waiting(&person);
    terminal.key("up");
    terminal.until_text("> gamma");
    terminal.until_gone("3 waits");
    terminal.keys("!");
    terminal.key("tab");
    terminal.until_text("3 waits: gamma!");
    person.server.release();
    until_done(&terminal, "> gamma!");
    leave(terminal);
}

#[test]
fn waiting_prompts_are_put_in_another_order_and_dropped() {
    let person = held();
    let terminal = waiting(&person);
    terminal.key("ctrl+q");
    terminal.until_text("Prompts that wait");
    terminal.keys("jjK");
    terminal.until(|screen| screen.contains("2 waits: gamma") && screen.contains("3 waits: beta"));
    terminal.keys("K");
    terminal.until(|screen| screen.contains("1 waits: gamma") && screen.contains("2 waits: alpha"));
    terminal.keys("jx");
    terminal.until(|screen| screen.contains("2 waits: beta") && !screen.contains("alpha"));
    terminal.keys("q");
    terminal.until_gone("Prompts that wait");
    person.server.release();
    until_done(&terminal, "> beta");
    person.server.wait_for_requests(4);
    let told = person.told();
    let asked = |place: usize| {
        let messages = told[place]["messages"].as_array().unwrap();
        messages.last().unwrap().to_string()
    };
    assert!(asked(2).contains("gamma"), "{}", asked(2));
    assert!(asked(3).contains("beta"), "{}", asked(3));
    assert!(!told[3].to_string().contains("alpha"));
    leave(terminal);
}

#[test]
fn both_sides_of_a_change_stand_beside_each_other() {
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "zwei"});
    let person = Person::new([Reply::tool("Edit", edit), Reply::text("All done.")])
        .file("a.txt", "one\ntwo\nthree\n")
        .sized(160, 30)
        .arg("--allow")
        .arg("Edit");
    let terminal = person.sit_down();
    say(&terminal, "go");
    let is_beside = |row: &str| row.contains("-two") && row.contains("+zwei");
    let screen = until_done(&terminal, "All done.");
    assert!(screen.text().lines().any(is_beside), "{}", screen.drawn());
    terminal.key("f4");
    terminal.until(|screen| !screen.text().lines().any(is_beside) && screen.contains("+zwei"));
    terminal.key("f4");
    terminal.until(|screen| screen.text().lines().any(is_beside));
    leave(terminal);
}

#[test]
fn escape_stops_the_work_and_keeps_what_was_said() {
    let pieces = ["This much ", "and no more"].map(str::to_owned).to_vec();
    let reply = Reply::default()
        .block(Block::Text(Prose::Pieces(pieces)))
        .hold_after(4);
    let person = Person::new([reply, Reply::text("Something else.")]);
    let terminal = person.sit_down();
    say(&terminal, "talk");
    terminal.until_text("This much");
    terminal.key("esc");
    let screen = terminal.until_text("Interrupted.");
    assert!(screen.contains("This much"), "{}", screen.drawn());
    person.server.wait_for_disconnect();
    terminal.until_gone("Working");
    say(&terminal, "next");
    terminal.until_text("Something else.");
    leave(terminal);
}

#[test]
fn a_running_command_is_stopped_too() {
    let person = Person::new([
        bash("echo begun; sleep 1000"),
        Reply::text("Something else."),
    ]);
    let person = person.arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    terminal.until(|screen| screen.text().lines().any(|row| row == "  begun"));
    terminal.key("esc");
    terminal.until_text("Interrupted.");
    terminal.until_gone("running");
    say(&terminal, "next");
    terminal.until_text("Something else.");
    leave(terminal);
}

#[test]
fn a_session_with_calls_looks_the_same_when_it_goes_on() {
    let person = Person::commanding("echo of-old").arg("--allow").arg("Bash");
    let terminal = person.start(&["--session", "talk"]);
    terminal.until_text("session: talk");
    say(&terminal, "go");
    terminal.until_text("All done.");
    leave(terminal);
    let terminal = person.start(&["-c"]);
    let text = terminal.until_text("All done.").text();
    assert!(text.contains("> go"), "{text}");
    assert!(
        text.contains("🔧 Bash({\"command\":\"echo of-old\"})"),
        "{text}"
    );
    assert!(text.contains("→ 2 lines"), "{text}");
    assert!(
        !text.contains("being written") && !text.contains("running"),
        "{text}"
    );
    leave(terminal);
}

#[test]
fn a_session_that_goes_on_knows_its_turns_and_how_full_it_is() {
    let person = Person::new([bash("true"), Reply::text("All done.")]);
    let person = person.arg("--allow").arg("Bash").sized(120, 24);
    let terminal = person.start(&["--session", "talk"]);
    terminal.until_text("session: talk (0)");
    say(&terminal, "go");
    until_done(&terminal, "session: talk (2)");
    leave(terminal);
    let terminal = person.start(&["-c"]);
    let screen = terminal.until_text("session: talk (2)");
    assert!(screen.contains("% of context"), "{}", screen.drawn());
    say(&terminal, "again");
    until_done(&terminal, "session: talk (3)");
    leave(terminal);
}

#[test]
fn an_interrupt_of_old_is_no_prompt() {
    let pieces = ["This much ", "and no more"].map(str::to_owned).to_vec();
    let reply = Reply::default()
        .block(Block::Text(Prose::Pieces(pieces)))
        .hold_after(4);
    let person = Person::new([reply]);
    let terminal = person.start(&["--session", "talk"]);
    terminal.until_text("session: talk");
    say(&terminal, "talk");
    terminal.until_text("This much");
    terminal.key("esc");
    terminal.until_text("Interrupted.");
    terminal.until_gone("Working");
    leave(terminal);
    let terminal = person.start(&["-c"]);
    let screen = terminal.until_text("! Interrupted.");
    assert!(screen.contains("> talk"), "{}", screen.drawn());
    assert!(
        !screen.contains("[Request interrupted"),
        "{}",
        screen.drawn()
    );
    leave(terminal);
}

#[test]
fn what_a_prompt_brought_along_is_not_shown_as_written() {
    let person = Person::answered("Read.").file("notes.txt", "the-content-of-the-file\n");
    let terminal = person.start(&["--session", "talk"]);
    terminal.until_text("session: talk");
    say(&terminal, "read @notes.txt ");
    until_done(&terminal, "Read.");
    assert!(
        person.told()[0]
            .to_string()
            .contains("the-content-of-the-file")
    );
    leave(terminal);
    let terminal = person.start(&["-c"]);
    let screen = terminal.until_text("Read.");
    assert!(screen.contains("> read @notes.txt"), "{}", screen.drawn());
    assert!(
        !screen.contains("the-content-of-the-file"),
        "{}",
        screen.drawn()
    );
    leave(terminal);
}
