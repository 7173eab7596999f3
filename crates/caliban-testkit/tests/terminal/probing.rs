//! Questions are answered as the terminal of the profile answers them.

use std::time::{Duration, Instant};

use caliban_testkit::terminal::Profile;
use rstest::rstest;

use crate::{SHOW_BYTES, hex, shell_in};

#[rstest]
#[case::attributes(Profile::Xterm, "\\033[c", b"\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c")]
#[case::no_frames(Profile::Xterm, "\\033[?2026$p", b"\x1b[?2026;0$y")]
#[case::light(
    Profile::Xterm,
    "\\033]11;?\\033\\\\",
    b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
)]
#[case::frames(Profile::Kitty, "\\033[?2026$p", b"\x1b[?2026;2$y")]
#[case::a_frame(
    Profile::Kitty,
    "\\033[?2026h\\033[?2026$p\\033[?2026l",
    b"\x1b[?2026;1$y"
)]
#[case::keyboard(Profile::Kitty, "\\033[>5u\\033[?u", b"\x1b[?5u")]
#[case::version(Profile::Kitty, "\\033[>q", b"\x1bP>|kitty(0.42.1)\x1b\\")]
#[case::position(Profile::Kitty, "\\033[3;7H\\033[6n\\033[H", b"\x1b[3;7R")]
#[case::size(Profile::Kitty, "\\033[18t", b"\x1b[8;12;60t")]
#[case::attributes_first(
    Profile::Tmux,
    "\\033]11;?\\a\\033[c",
    b"\x1b[?1;2c\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"
)]
#[case::nonsense(
    Profile::Lying,
    "\\033[?2026$p",
    b"\x1b[?2026;9$y\x1b[?99999;1$y\x1b[?;$y"
)]
fn a_question_is_answered(#[case] profile: Profile, #[case] question: &str, #[case] answer: &[u8]) {
    // Asked in raw mode, since a terminal may answer at once.
    let script = SHOW_BYTES.replace("printf 'ready\\r\\n'", &format!("printf '{question}'"));
    let terminal = shell_in(profile, &script);
    let answer = hex(answer);
    let screen = terminal.until(|screen| screen.text().replace('\n', "").contains(&answer));
    assert!(screen.contains("."));
    terminal.keys("q");
    terminal.wait_dirty();
}

#[rstest]
#[case::silent(Profile::Silent, "\\033[c\\033[6n\\033[?2026$p\\033]11;?\\a\\033[?u")]
#[case::xterm(Profile::Xterm, "\\033[?u")]
#[case::tmux(Profile::Tmux, "\\033[?2026$p\\033[?u")]
fn what_a_terminal_does_not_know_is_not_answered(#[case] profile: Profile, #[case] question: &str) {
    let script = SHOW_BYTES.replace("ready", question);
    let terminal = shell_in(profile, &script);
    terminal.until_quiet();
    terminal.keys("z");
    let screen = terminal.until_text("7a.");
    assert_eq!(screen.text().trim(), "7a.");
    terminal.keys("q");
    terminal.wait();
}

#[test]
fn a_late_answer_comes_late() {
    let script = SHOW_BYTES.replace("ready", "ready\\033[?u");
    let before = Instant::now();
    let terminal = shell_in(Profile::Late, &script);
    terminal.until_text(&hex(b"\x1b[?0u"));
    assert!(before.elapsed() >= Duration::from_millis(300));
    terminal.keys("q");
    terminal.wait();
}
