//! How programs end, and that a dirty terminal is found.

use std::time::{Duration, Instant};

use caliban_testkit::terminal::Modes;
use rstest::rstest;

use crate::{failure, shell};

#[test]
fn a_signal_is_told_from_a_code() {
    let ended = shell("kill -9 $$").wait();
    assert_eq!((ended.code, ended.signal), (None, Some(9)));
    let ended = shell("exit 42").wait();
    assert_eq!((ended.code, ended.signal), (Some(42), None));
}

#[test]
fn all_output_is_there_at_the_end() {
    let ended = shell("seq 1 20000; printf '\\033[Hlast'").wait();
    assert!(ended.after.contains("last"));
    assert!(ended.raw.ends_with(b"\x1b[Hlast"));
}

#[test]
fn a_child_that_stays_behind_does_not_hold_up_the_end() {
    let ended = shell("(trap '' HUP; exec sleep 1000) & echo pid $!").wait();
    assert_eq!(ended.code, Some(0));
    let row = ended.after.row(0);
    let pid = row.strip_prefix("pid ").unwrap();
    // It was killed with the terminal, which takes a moment.
    let deadline = Instant::now() + Duration::from_secs(20);
    let is_alive = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_alive() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn what_is_put_back_is_clean() {
    let ended = shell(
        "old=$(stty -g); stty raw -echo; \
         printf '\\033[22;0t\\033[?1007s\\033[?1007h\\033[?1049h\\033[>1u\\033[?1002;1006h\\033[?1004h\\033[?2004h\\033[?25l\\033[?7l'; \
         printf '\\033[2;5r\\033[1;31mhi\\033[2 q'; \
         printf '\\033[0 q\\033[r\\033[m\\033[?7h\\033[?25h\\033[?2004l\\033[?1004l\\033[?1006;1002l\\033[<u\\033[?1049l\\033[?1007r\\033[23;0t'; \
         stty \"$old\"",
    )
    .wait();
    assert_eq!(ended.modes, Modes::default());
}

#[rstest]
#[case::raw("stty raw", |modes: &Modes| modes.raw)]
#[case::no_echo("stty -echo", |modes: &Modes| modes.raw)]
#[case::mouse("printf '\\033[?1002;1006h\\033[?1006l'", |modes: &Modes| modes.mouse)]
#[case::paste("printf '\\033[?2004h'", |modes: &Modes| modes.paste)]
#[case::focus("printf '\\033[?1004h'", |modes: &Modes| modes.focus)]
#[case::kitty("printf '\\033[>1u'", |modes: &Modes| modes.kitty)]
#[case::kitty_popped_elsewhere(
    "printf '\\033[>1u\\033[?1049h\\033[<u\\033[?1049l'", |modes: &Modes| modes.kitty
)]
#[case::other_keys("printf '\\033[>4;2m'", |modes: &Modes| modes.kitty)]
#[case::alternate("printf '\\033[?1049h'", |modes: &Modes| modes.alternate)]
#[case::cursor("printf '\\033[?25l'", |modes: &Modes| modes.cursor_hidden)]
#[case::autowrap("printf '\\033[?7l'", |modes: &Modes| !modes.autowrap)]
#[case::style("printf '\\033[1mx'", |modes: &Modes| modes.others == ["text style"])]
#[case::shape("printf '\\033[6 q'", |modes: &Modes| modes.others == ["cursor shape"])]
#[case::region("printf '\\033[2;5r'", |modes: &Modes| modes.others == ["scroll region"])]
#[case::title("printf '\\033[22;2t'", |modes: &Modes| modes.others == ["saved title"])]
#[case::colours("printf '\\033[?2031h'", |modes: &Modes| modes.others == ["mode 2031"])]
#[case::keypad("printf '\\033='", |modes: &Modes| modes.others == ["application keypad"])]
fn what_is_left_on_is_found(#[case] script: &str, #[case] is_left: fn(&Modes) -> bool) {
    let script = script.to_owned();
    let ended = shell(&script).wait_dirty();
    assert!(is_left(&ended.modes), "{:?}", ended.modes);
    assert!(!ended.modes.clean());
    let said = failure(move || shell(&script).wait());
    assert!(said.contains("the terminal is left dirty"), "{said}");
}

#[test]
fn a_dropped_terminal_ends_its_program() {
    let terminal = shell("trap '' HUP TERM INT; echo ready; while :; do sleep 0.01; done");
    terminal.until_text("ready");
    let pid = terminal.pid();
    drop(terminal);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}
