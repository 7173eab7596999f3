//! How it begins: with and without a prompt, with a past, with a workspace that wants trust.

use caliban_testkit::Reply;
use caliban_testkit::terminal::Profile;
use rstest::rstest;

use crate::person::{LISTENS, Person, READY, bash, leave, say, until_done};

#[test]
fn it_opens_without_a_prompt_and_answers() {
    let person = Person::answered("Good morning to you.");
    let terminal = person.sit_down();
    let screen = terminal.screen();
    assert!(screen.alternate);
    assert!(screen.contains("caliban 0."), "{}", screen.drawn());
    assert!(person.told().is_empty());
    say(&terminal, "Good morning");
    let screen = terminal.until_text("Good morning to you.");
    assert!(screen.contains("> Good morning"), "{}", screen.drawn());
    assert_eq!(terminal.agreed(), Ok(()));
    assert_eq!(terminal.unhandled(), Vec::<String>::new());
    leave(terminal);
}

#[test]
fn a_prompt_of_the_command_line_is_sent() {
    let person = Person::answered("It is Paris.");
    let terminal = person.start(&["What is the capital of France?"]);
    let screen = terminal.until_text("It is Paris.");
    assert!(screen.contains("> What is the capital of France?"));
    let told = person.told()[0].to_string();
    assert!(told.contains("What is the capital of France?"), "{told}");
    leave(terminal);
}

#[rstest]
#[case::the_last_one(&["-c"])]
#[case::by_name(&["-r", "talk"])]
#[case::as_it_was_begun(&["--session", "talk"])]
fn what_was_said_before_is_shown(#[case] args: &[&str]) {
    let person = Person::answered("The answer of old.");
    let terminal = person.start(&["--session", "talk"]);
    terminal.until_text("session: talk");
    say(&terminal, "A question of old");
    terminal.until_text("The answer of old.");
    leave(terminal);
    let terminal = person.start(args);
    let screen = terminal.until_text("The answer of old.");
    assert!(screen.contains("> A question of old"), "{}", screen.drawn());
    say(&terminal, "And now?");
    terminal.until_text("> And now?");
    person.server.wait_for_requests(2);
    let told = person.told()[1].to_string();
    assert!(told.contains("A question of old"), "{told}");
    leave(terminal);
}

#[test]
fn a_session_that_does_not_exist_is_told_on_the_main_screen() {
    let person = Person::answered("never");
    let ended = person.start(&["-r", "nosuch"]).wait();
    assert_eq!(ended.code, Some(66));
    assert!(!ended.after.alternate);
    assert!(ended.after.contains("nosuch"), "{}", ended.after.drawn());
}

#[rstest]
#[case(Profile::Silent)]
#[case(Profile::Kitty)]
#[case(Profile::Late)]
#[case(Profile::Lying)]
#[case(Profile::Tmux)]
#[case(Profile::Xterm)]
fn what_is_typed_before_the_session_is_there_is_in_the_draft(#[case] profile: Profile) {
    let person = Person::answered("Heard.").terminal(profile);
    let terminal = person.start(&[]);
    terminal.keys("typed ahead");
    terminal.until(|screen| screen.alternate && screen.contains("> typed ahead"));
    let screen = terminal.until_text(READY);
    assert!(screen.contains("> typed ahead"), "{}", screen.drawn());
    terminal.key("enter");
    terminal.until_text("Heard.");
    leave(terminal);
}

#[test]
fn a_server_that_does_not_answer_holds_up_neither_screen_nor_keys() {
    let servers = "[mcp_servers.slow]\ncommand = 'sleep'\nargs = ['1000']\n";
    let person = Person::answered("never").settings(servers);
    let terminal = person.start(&[]);
    let screen = terminal.until_text("starting; write already");
    assert!(screen.contains("caliban 0."), "{}", screen.drawn());
    say(&terminal, "sent early");
    terminal.until_text("1 waits: sent early");
    terminal.keys("written meanwhile");
    terminal.until_text("> written meanwhile");
    terminal.key("ctrl+c");
    terminal.until_gone("written meanwhile");
    terminal.key("ctrl+c");
    assert_eq!(terminal.wait().code, Some(0));
}

#[test]
fn the_end_of_a_session_is_seen_before_all_of_it_is_there() {
    let person = Person::answered("The answer of old.");
    let terminal = person.start(&["--session", "talk"]);
    terminal.until_text("session: talk");
    say(&terminal, "A question of old");
    terminal.until_text("The answer of old.");
    leave(terminal);
    let person = person.settings("[mcp_servers.slow]\ncommand = 'sleep'\nargs = ['1000']\n");
    let terminal = person.start(&["-c"]);
    let screen = terminal.until_text("The answer of old.");
    assert!(screen.contains("> A question of old"), "{}", screen.drawn());
    assert!(
        screen.contains("starting; write already"),
        "{}",
        screen.drawn()
    );
    let screen = terminal.until_text("session: talk");
    assert_eq!(screen.text().matches("The answer of old.").count(), 1);
    leave(terminal);
}

/// A workspace whose rule permits what would be asked about, and whose hook leaves a mark.
fn wanting_trust() -> Person {
    let settings = "[permissions]\nallow = ['Bash']\n\
        [[hooks.UserPromptSubmit]]\n[[hooks.UserPromptSubmit.handlers]]\n\
        type = 'command'\ncommand = 'touch \"$HOME/hooked\"'\n";
    Person::new([bash("echo it-ran"), Reply::text("All done.")]).project(settings)
}

#[test]
fn a_workspace_that_is_trusted_counts() {
    let person = wanting_trust();
    let terminal = person.start(&[]);
    let screen = terminal.until_text("Trust this workspace?");
    assert!(
        screen.contains("permissions.allow (project)"),
        "{}",
        screen.drawn()
    );
    assert!(screen.contains("hooks (project)"), "{}", screen.drawn());
    assert!(screen.contains(&person.work().display().to_string()));
    terminal.until_text("[y] trust");
    // Neither Enter nor anything else decides.
    terminal.key("enter");
    terminal.keys("x");
    terminal.until_quiet();
    terminal.keys("y");
    terminal.until_text(READY);
    say(&terminal, "go");
    terminal.until_text("All done.");
    assert!(person.last_result().contains("it-ran"));
    assert!(person.home().join("hooked").exists());
    leave(terminal);
    // It is asked once.
    let terminal = person.start(&[]);
    terminal.until_text(READY);
    leave(terminal);
}

#[test]
fn a_workspace_that_is_not_trusted_does_not_count() {
    let person = wanting_trust();
    let terminal = person.start(&[]);
    terminal.until_text("[y] trust");
    terminal.keys("n");
    terminal.until_text(READY);
    say(&terminal, "go");
    terminal.until_text(LISTENS);
    assert!(!person.home().join("hooked").exists());
    terminal.keys("n");
    terminal.until_text("All done.");
    leave(terminal);
}

#[test]
fn what_answers_about_trust_is_whole_on_a_narrow_screen() {
    let person = wanting_trust().sized(60, 20);
    let terminal = person.start(&[]);
    let screen = terminal.until_text("[y] trust");
    let words: Vec<String> = screen
        .text()
        .split_whitespace()
        .filter(|word| *word != "│")
        .map(str::to_owned)
        .collect();
    let words = words.join(" ");
    assert!(words.contains("[n] go on without"), "{}", screen.drawn());
    terminal.key("ctrl+c");
    terminal.wait();
}

#[test]
fn one_can_leave_instead_of_deciding_about_trust() {
    let person = wanting_trust();
    let terminal = person.start(&[]);
    terminal.until_text("Trust this workspace?");
    terminal.key("ctrl+c");
    assert_eq!(terminal.wait().code, Some(0));
    let terminal = person.start(&[]);
    terminal.until_text("Trust this workspace?");
    terminal.key("ctrl+d");
    assert_eq!(terminal.wait().code, Some(0));
}

/// A repository that names a program for the files behind `@`.
fn naming_files() -> Person {
    let settings = "[tui.files]\ncommand = 'touch \"$HOME/listed\"; echo by-program.txt'\n";
    Person::answered("never")
        .project(settings)
        .file("by-hand.txt", "")
}

#[test]
fn the_files_of_a_trusted_workspace_are_listed_by_its_program() {
    let person = naming_files();
    let terminal = person.start(&[]);
    terminal.until_text("[y] trust");
    terminal.keys("y");
    terminal.until_text(READY);
    terminal.keys("@by");
    terminal.until_text("by-program.txt");
    assert!(person.home().join("listed").exists());
    terminal.key("ctrl+c");
}

#[test]
fn the_program_of_a_workspace_that_is_not_trusted_lists_no_files() {
    let person = naming_files();
    let terminal = person.start(&[]);
    terminal.until_text("[y] trust");
    terminal.keys("n");
    terminal.until_text(READY);
    terminal.keys("@by");
    terminal.until_text("by-hand.txt");
    assert!(!person.home().join("listed").exists());
    terminal.key("ctrl+c");
}

#[rstest]
#[case::json_schema(&["--json-schema", "{}"])]
#[case::partial(&["--include-partial-messages"])]
#[case::hook_events(&["--include-hook-events"])]
#[case::replay(&["--replay-user-messages"])]
#[case::denial(&["--fail-on-denial"])]
#[case::prompt_tool(&["--permission-prompt-tool", "events"])]
fn what_a_program_would_read_is_refused_where_a_person_reads(#[case] args: &[&str]) {
    let terminal = Person::answered("never").start(args);
    let ended = terminal.wait();
    assert_eq!(ended.code, Some(64), "{}", ended.after.drawn());
    let said = format!("`{}` is for a run that a program reads", args[0]);
    assert!(ended.after.contains(&said), "{}", ended.after.drawn());
}

/// Somebody whose workspace imports a file that is not in it.
fn importing() -> Person {
    let person = Person::answered("Yes.").file("CLAUDE.md", "@~/elsewhere/rules.md\n");
    let directory = person.home().join("elsewhere");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("rules.md"), "Speak in rhymes.\n").unwrap();
    person
}

fn was_told(person: &Person) -> bool {
    let told = person.told();
    told.last()
        .unwrap()
        .to_string()
        .contains("Speak in rhymes.")
}

#[test]
fn a_file_from_outside_is_imported_where_that_is_approved_once() {
    let person = importing();
    let terminal = person.start(&[]);
    let screen = terminal.until_text("Import files from outside?");
    assert!(screen.contains("elsewhere/rules.md"), "{}", screen.drawn());
    terminal.until_text("[y] import");
    terminal.key("enter");
    terminal.until_quiet();
    terminal.keys("y");
    terminal.until_text(READY);
    say(&terminal, "go");
    until_done(&terminal, "Yes.");
    assert!(was_told(&person));
    leave(terminal);
    let terminal = person.start(&[]);
    terminal.until_text(READY);
    leave(terminal);
}

#[test]
fn a_file_from_outside_that_was_refused_is_asked_about_when_it_is_another() {
    let person = importing();
    let terminal = person.start(&[]);
    terminal.until_text("[y] import");
    terminal.keys("n");
    terminal.until_text(READY);
    say(&terminal, "go");
    until_done(&terminal, "Yes.");
    assert!(!was_told(&person));
    leave(terminal);
    let terminal = person.start(&[]);
    terminal.until_text(READY);
    leave(terminal);
    let file = person.home().join("elsewhere/rules.md");
    std::fs::write(file, "Speak in verse.\n").unwrap();
    let terminal = person.start(&[]);
    terminal.until_text("Import files from outside?");
    terminal.key("ctrl+c");
    assert_eq!(terminal.wait().code, Some(0));
}
