//! What is counted: bytes, frames, wakeups, memory.

use std::fs;
use std::time::{Duration, Instant};

use caliban_testkit::terminal::{Profile, Terminal};
use caliban_testkit::{Block, Prose, Reply};
use rstest::rstest;

use crate::person::{LISTENS, Person, leave, say, until_done};

/// How long nothing may happen, and how often that is tried: something may just have ended.
const IDLE: Duration = Duration::from_secs(2);
const TRIES: usize = 5;

/// How often the threads of the program went to sleep.
fn switches(terminal: &Terminal) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", terminal.pid())).unwrap();
    let statuses = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    statuses
        .filter_map(|status| {
            field(&status, "voluntary_ctxt_switches:")
                .parse::<u64>()
                .ok()
        })
        .sum()
}

/// Nothing is written and nobody wakes up.
#[track_caller]
fn is_idle(terminal: &Terminal) {
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let before = (terminal.counts().bytes, switches(terminal));
        // There is nothing to wait for: that is what is looked at.
        std::thread::sleep(IDLE);
        let after = (terminal.counts().bytes, switches(terminal));
        if after == before {
            return;
        }
        seen.push((after.0 - before.0, after.1.abs_diff(before.1)));
    }
    panic!("bytes and wakeups: {seen:?}\n{}", terminal.screen().drawn());
}

#[test]
fn nothing_happens_at_the_prompt() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    terminal.keys("half a thought");
    terminal.until_text("> half a thought");
    is_idle(&terminal);
    terminal.key("ctrl+c");
    leave(terminal);
}

#[test]
fn nothing_happens_while_a_question_waits() {
    let person = Person::commanding("touch x");
    let terminal = person.sit_down();
    say(&terminal, "go");
    terminal.until_text(LISTENS);
    is_idle(&terminal);
    terminal.keys("n");
    until_done(&terminal, "All done.");
    leave(terminal);
}

#[test]
fn nothing_happens_after_a_run() {
    let person = Person::commanding("echo x").arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "All done.");
    is_idle(&terminal);
    leave(terminal);
}

#[rstest]
fn the_screen_is_drawn_once_at_the_start(
    #[values(Profile::Kitty, Profile::Xterm, Profile::Late, Profile::Silent)] profile: Profile,
) {
    let welcome = b"Write what you want done";
    let person = Person::answered("never").terminal(profile);
    let terminal = person.sit_down();
    terminal.keys("x");
    terminal.until_text("> x");
    let raw = terminal.raw();
    let drawn = raw.windows(welcome.len()).filter(|text| text == welcome);
    assert_eq!(drawn.count(), 1);
    terminal.key("ctrl+c");
    leave(terminal);
}

#[test]
fn what_moves_does_so_seldom() {
    let person = Person::new([Reply::text("never").hold_after(0)]);
    let terminal = person.sit_down();
    say(&terminal, "go");
    terminal.until_text("Working 1 s");
    let (bytes, woken) = (terminal.counts().bytes, switches(&terminal));
    std::thread::sleep(IDLE);
    let woken = switches(&terminal) - woken;
    let bytes = terminal.counts().bytes - bytes;
    // Ten a second.
    assert!(woken <= 20, "{woken} wakeups in {IDLE:?}");
    assert!(bytes <= 1_500, "{bytes} bytes in {IDLE:?}");
    terminal.key("esc");
    terminal.until_gone("Working");
    leave(terminal);
}

#[test]
fn a_key_is_few_bytes() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    let mut text = String::from("> ");
    for key in "the quick brown fox jumps".chars() {
        let before = terminal.counts().bytes;
        terminal.keys(&key.to_string());
        text.push(key);
        terminal.until(|screen| {
            screen.contains(text.trim_end()) && usize::from(screen.cursor.col) == text.len()
        });
        let bytes = terminal.counts().bytes - before;
        assert!(bytes <= 60, "{bytes} bytes for {key:?}");
    }
    terminal.key("ctrl+c");
    leave(terminal);
}

/// How many frames there may be, with a clock that is not exact.
fn in_time(passed: Duration) -> usize {
    usize::try_from(passed.as_millis() * 31 / 1000).unwrap()
}

#[test]
fn a_delta_is_few_bytes_and_frames_are_few() {
    const DELTAS: usize = 300;
    let pieces = (0..DELTAS).map(|n| format!("w{n:03} ")).collect();
    let reply = Reply::default()
        .block(Block::Text(Prose::Pieces(pieces)))
        .chunk_delay_ms(10);
    let person = Person::new([reply]);
    let terminal = person.sit_down();
    say(&terminal, "go");
    terminal.until_text("w000");
    let (before, began) = (terminal.counts(), Instant::now());
    terminal.until_text("w299");
    let (after, took) = (terminal.counts(), began.elapsed());
    let bytes = (after.bytes - before.bytes) / DELTAS;
    // Small frames are not synchronised; each is one write.
    let frames = after.writes - before.writes;
    assert!(bytes <= 30, "{bytes} bytes a delta");
    assert!(frames > 10, "{frames} frames");
    // A second has thirty, and the clock of neither is exact.
    assert!(frames <= in_time(took) + 2, "{frames} frames in {took:?}");
    until_done(&terminal, "w299");
    leave(terminal);
}

#[test]
fn a_burst_is_few_frames() {
    let pieces = (0..5_000).map(|n| format!("w{n}\n\n")).collect();
    let reply = Reply::default().block(Block::Text(Prose::Pieces(pieces)));
    let person = Person::new([reply]);
    let terminal = person.sit_down();
    say(&terminal, "go");
    let (before, began) = (terminal.counts().frames, Instant::now());
    until_done(&terminal, "w4999");
    let frames = terminal.counts().frames - before;
    assert!(frames <= 40 + in_time(began.elapsed()), "{frames} frames");
    leave(terminal);
}

#[test]
fn it_begins_small() {
    let person = Person::answered("never");
    let terminal = person.sit_down();
    // What is not optimised is larger.
    let most = if cfg!(debug_assertions) { 80 } else { 25 };
    let megabytes = terminal.rss() >> 20;
    assert!(megabytes <= most, "{megabytes} MB");
    leave(terminal);
}

/// Rows that are finished, above and on the screen.
fn rows(terminal: &Terminal) -> Vec<String> {
    let mut rows = terminal.scrollback();
    rows.extend(terminal.screen().text().lines().map(str::to_owned));
    rows
}

#[track_caller]
fn each_once(rows: &[String], count: usize) {
    let rows: Vec<&str> = rows.iter().map(String::as_str).map(str::trim).collect();
    let mut last = 0;
    for n in 1..=count {
        let wanted = format!("row-{n}-end");
        let places: Vec<usize> = (0..rows.len()).filter(|at| rows[*at] == wanted).collect();
        assert_eq!(places.len(), 1, "{wanted}:\n{}", rows.join("\n"));
        assert!(
            places[0] >= last,
            "{wanted} is out of order:\n{}",
            rows.join("\n")
        );
        last = places[0];
    }
}

fn numbered(count: usize) -> String {
    let lines: Vec<String> = (1..=count).map(|n| format!("row-{n}-end\n\n")).collect();
    lines.concat()
}

#[rstest]
#[case::as_it_is(&[])]
#[case::wider(&[(120, 24)])]
#[case::narrower(&[(60, 24)])]
#[case::many(&[(100, 24), (60, 24), (90, 30), (80, 24)])]
fn the_scrollback_holds_every_row_once(#[case] sizes: &[(u16, u16)]) {
    let person = Person::new([Reply::text(numbered(60)), Reply::text("The second answer.")]);
    let person = person.env("CALIBAN_TUI", "inline");
    let terminal = person.sit_down();
    assert!(!terminal.screen().alternate);
    say(&terminal, "go");
    until_done(&terminal, "row-60-end");
    each_once(&rows(&terminal), 60);
    for (cols, rows) in sizes {
        terminal.resize(*cols, *rows);
        terminal.keys("x");
        terminal.until_text("> x");
        terminal.key("backspace");
        terminal.until_gone("> x");
    }
    say(&terminal, "more");
    until_done(&terminal, "The second answer.");
    each_once(&rows(&terminal), 60);
    let ended = leave(terminal);
    assert!(
        ended.after.contains("Go on with: caliban --resume"),
        "{}",
        ended.after.drawn()
    );
}

/// A terminal that reflows.
#[test]
fn the_scrollback_of_tmux_holds_every_row_once() {
    use caliban_testkit::terminal::Tmux;
    if !Tmux::is_installed() {
        return;
    }
    let person = Person::new([Reply::text(numbered(40)), Reply::text("The second answer.")]);
    let person = person.env("CALIBAN_TUI", "inline");
    let tmux = Tmux::start(&person.options(&[]));
    tmux.until_text("session: ");
    tmux.send_text("go");
    tmux.send_keys(&["Enter"]);
    tmux.until_text("row-40-end");
    for (cols, rows) in [(100, 24), (60, 20), (80, 24)] {
        tmux.resize(cols, rows);
        tmux.send_text("x");
        tmux.until_text("> x");
        tmux.send_keys(&["BSpace"]);
    }
    tmux.send_text("more");
    tmux.send_keys(&["Enter"]);
    tmux.until_text("The second answer.");
    let captured = plain(&tmux.capture());
    each_once(&captured, 40);
}

/// Without styles.
fn plain(text: &str) -> Vec<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out.lines().map(str::to_owned).collect()
}
