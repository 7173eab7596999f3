//! What nobody would think of typing: nothing breaks, nothing hangs, nothing is answered, nothing
//! is lost.

use caliban_testkit::terminal::{Profile, Step, Terminal, steps};
use caliban_testkit::{After, Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::person::{Person, bash};

/// Lets the steps of `anything_may_be_typed` be another number.
const VARIABLE: &str = "CALIBAN_TEST_FUZZ";
/// Steps of each seed, where nobody asks for more.
const STEPS: usize = 400;

/// A model that talks, calls, asks and fails.
fn various() -> Script {
    Script::new([
        Reply::text("# Title\n\nSome *words*, `code` and 漢字.\n\n- a\n- b\n"),
        bash("echo one; echo two"),
        Reply::text("Done with that."),
        Reply::tool("Write", json!({"path": "made.txt", "content": "x\ny\n"})),
        Reply::text("```rust\nfn f() {}\n```\n").chunk_delay_ms(2),
        Reply::tool(
            "TodoWrite",
            json!({"todos": [{"id": "1", "content": "a task", "status": "pending"}]}),
        ),
        Reply::text("And so on."),
    ])
    .after(After::Cycle)
}

/// Stops, closes and clears until it is over.
#[track_caller]
fn leave_whatever_is(terminal: Terminal) {
    terminal.resize(80, 24);
    let pid = terminal.pid();
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .trim_start();
        !state.is_empty() && !state.starts_with('Z')
    };
    for _ in 0..200 {
        if !is_there() {
            break;
        }
        // A paste may have been begun and not ended.
        terminal.bytes(b"\x1b[201~");
        terminal.key("ctrl+c");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let ended = terminal.wait();
    // An interrupt that comes while the terminal is another's for a moment is a signal.
    let is_orderly = matches!(ended.code, Some(0 | 124));
    assert!(is_orderly, "{:?} {}", ended.code, ended.after.drawn());
    let raw = String::from_utf8_lossy(&ended.raw).into_owned();
    assert!(
        !raw.contains("internal error") && !raw.contains("panicked"),
        "{}",
        ended.after.drawn()
    );
}

#[rstest]
#[case(1, Profile::Kitty)]
#[case(2, Profile::Xterm)]
#[case(3, Profile::Tmux)]
#[case(4, Profile::Lying)]
#[case(5, Profile::Silent)]
#[case(6, Profile::Late)]
fn anything_may_be_typed(#[case] seed: u64, #[case] profile: Profile) {
    let person = Person::scripted(various())
        .terminal(profile)
        .env("EDITOR", "true");
    let count = std::env::var(VARIABLE).ok();
    let count = count.and_then(|text| text.parse().ok()).unwrap_or(STEPS);
    let terminal = person.sit_down();
    terminal.play(&steps(seed, count));
    leave_whatever_is(terminal);
}

#[rstest]
#[case(11)]
#[case(12)]
fn anything_may_be_typed_below_the_scrollback(#[case] seed: u64) {
    let person = Person::scripted(various())
        .env("CALIBAN_TUI", "inline")
        .env("EDITOR", "true");
    let terminal = person.sit_down();
    terminal.play(&steps(seed, 300));
    leave_whatever_is(terminal);
}

#[rstest]
fn no_key_from_before_a_question_answers_it(#[values(21, 22, 23, 24, 25, 26)] seed: u64) {
    let person = Person::new([bash("touch ran").hold_after(1), Reply::text("All done.")]);
    let person = person
        .settings("[tui]\nnotify = 'bell'\n")
        .env("EDITOR", "true");
    let terminal = person.sit_down();
    terminal.keys("go\r");
    person.server.wait_for_requests(1);
    terminal.until_text("Working");
    // Esc would stop what is to ask, another mode may not ask, and the shell asks by itself.
    let harmless = |step: &Step| match step {
        Step::Key(name) => name != "esc" && name != "shift+tab",
        Step::Keys(text) | Step::Paste(text) => !text.contains('!'),
        // Who looks is not called.
        Step::Bytes(bytes) => bytes != b"\x1b[I",
        Step::Resize(..) => true,
    };
    let steps: Vec<Step> = steps(seed, 80).into_iter().filter(harmless).collect();
    terminal.play(&steps);
    terminal.resize(80, 24);
    person.server.release();
    terminal.until(|_| terminal.bells() > 0);
    leave_whatever_is(terminal);
    assert!(!person.work().join("ran").exists());
}

#[rstest]
fn what_was_written_comes_back(#[values(31, 32, 33)] seed: u64) {
    let person = Person::answered("never").env("EDITOR", "true");
    let terminal = person.sit_down();
    let written: Vec<Step> = steps(seed, 200)
        .into_iter()
        .filter(|step| match step {
            Step::Keys(text) => !text.contains(['/', '@', '!', '?']),
            Step::Paste(text) => text.len() < 200 && !text.contains(['/', '@', '!', '?']),
            Step::Bytes(_) | Step::Resize(..) | Step::Key(_) => false,
        })
        .collect();
    terminal.play(&written);
    terminal.keys(" the-last-words");
    terminal.until_text("the-last-words");
    let before = terminal.screen();
    terminal.hang_up();
    terminal.wait();
    let terminal = person.start(&[]);
    let after = terminal.until_text("the-last-words");
    assert_eq!(
        draft(&after),
        draft(&before),
        "{}\n{}",
        before.drawn(),
        after.drawn()
    );
    leave_whatever_is(terminal);
}

/// The rows between the rules.
fn draft(screen: &caliban_testkit::terminal::Screen) -> Vec<String> {
    let (_, rows) = screen.size();
    let rule = |row: &usize| screen.row(*row).starts_with("────");
    let rules: Vec<usize> = (0..rows).filter(rule).collect();
    let [.., top, bottom] = rules[..] else {
        return Vec::new();
    };
    (top + 1..bottom).map(|row| screen.row(row)).collect()
}
