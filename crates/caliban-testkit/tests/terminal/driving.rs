//! Keys, pastes, sizes and signals arrive.

use caliban_testkit::terminal::{Profile, Signal, Terminal, TerminalOptions};
use rstest::rstest;

use crate::{SHOW_BYTES, hex, options, shell, shell_in};

#[test]
fn typed_text_is_echoed_and_read() {
    let terminal = shell("read -r line; echo \"got <$line>\"");
    terminal.keys("hello wörld");
    terminal.key("enter");
    let screen = terminal.until_text("got <hello wörld>");
    assert_eq!(screen.row(0), "hello wörld");
    assert!(!screen.alternate);
    assert_eq!(terminal.wait().code, Some(0));
}

#[test]
fn the_program_has_a_terminal_of_its_own_and_only_the_environment_it_is_given() {
    let terminal = shell("stty size </dev/tty; ps -o tpgid=,pid= -p $$ | tr -s ' '; env; pwd");
    let screen = terminal.until_text("12 60");
    let ended = terminal.wait();
    let text = ended.after.text();
    assert!(text.contains("TERM=xterm-256color"), "{text}");
    assert!(!text.contains("CARGO"), "{text}");
    let ids: Vec<_> = ended
        .after
        .row(1)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(ids.len(), 2, "{}", screen.text());
    assert_eq!(ids[0], ids[1], "it is in the foreground");
}

#[rstest]
#[case::silent(Profile::Silent, "", "shift+enter", b"\r")]
#[case::escape(Profile::Silent, "", "esc", b"\x1b")]
#[case::control(Profile::Xterm, "", "ctrl+a", b"\x01")]
#[case::meta(Profile::Xterm, "", "alt+enter", b"\x1b\r")]
#[case::back_tab(Profile::Xterm, "", "shift+tab", b"\x1b[Z")]
#[case::arrow(Profile::Xterm, "", "up", b"\x1b[A")]
#[case::application_arrow(Profile::Xterm, "\\033[?1h", "up", b"\x1bOA")]
#[case::function(Profile::Xterm, "", "f1", b"\x1bOP")]
#[case::other_keys(Profile::Xterm, "\\033[>4;2m", "shift+enter", b"\x1b[27;2;13~")]
#[case::other_keys_in_tmux(Profile::Tmux, "\\033[>4;2m", "shift+enter", b"\x1b[13;2u")]
#[case::kitty_before_it_is_asked(Profile::Kitty, "", "esc", b"\x1b")]
#[case::kitty_escape(Profile::Kitty, "\\033[>1u", "esc", b"\x1b[27u")]
#[case::kitty_enter(Profile::Kitty, "\\033[>1u", "enter", b"\r")]
#[case::kitty_shift_enter(Profile::Kitty, "\\033[>1u", "shift+enter", b"\x1b[13;2u")]
#[case::kitty_on_the_other_screen(Profile::Kitty, "\\033[>1u\\033[?1049h", "esc", b"\x1b")]
#[case::no_kitty_where_there_is_none(Profile::Xterm, "\\033[>1u", "esc", b"\x1b")]
fn keys_are_sent_as_the_terminal_would(
    #[case] profile: Profile,
    #[case] asked: &str,
    #[case] key: &str,
    #[case] sent: &[u8],
) {
    let terminal = shell_in(profile, &format!("printf '{asked}'; {SHOW_BYTES}"));
    terminal.until_text("ready");
    terminal.key(key);
    terminal.keys("z");
    terminal.until_text(&hex(&[sent, b"z"].concat()));
    terminal.keys("q");
    terminal.wait_dirty();
}

#[test]
fn a_paste_is_bracketed_when_asked_for() {
    let terminal = shell(&format!("printf '\\033[?2004h'; {SHOW_BYTES}"));
    terminal.until_text("ready");
    terminal.paste("a\nb\x1b[201~");
    terminal.keys("z");
    let screen = terminal.until_text("7a.");
    assert_eq!(screen.row(1), hex(b"\x1b[200~a\rb\x1b[201~z"));
    terminal.keys("q");
    assert!(terminal.wait_dirty().modes.paste);
}

#[test]
fn a_paste_is_typed_when_not() {
    let terminal = shell(SHOW_BYTES);
    terminal.until_text("ready");
    terminal.paste("a\r\nb");
    terminal.until_text(&hex(b"a\rb"));
    terminal.keys("q");
    terminal.wait();
}

/// More than the terminal takes at once, to a program that reads later.
#[test]
fn a_long_paste_arrives_whole() {
    let terminal = shell(
        "old=$(stty -g); stty raw -echo; printf ready; dd bs=1 count=1 2>/dev/null; \
         head -c 1000000 | cksum; stty \"$old\"",
    );
    terminal.until_text("ready");
    terminal.keys("x");
    let long = "0123456789".repeat(100_000);
    terminal.paste(&long);
    terminal.until_text("1000000");
    terminal.wait();
}

#[test]
fn a_new_size_is_told() {
    let terminal =
        shell("trap 'stty size' WINCH; echo ready; while :; do read -r line && exit 3; done");
    terminal.until_text("ready");
    terminal.resize(100, 30);
    let screen = terminal.until_text("30 100");
    assert_eq!(screen.size(), (100, 30));
    terminal.key("enter");
    assert_eq!(terminal.wait().code, Some(3));
}

#[test]
fn control_c_interrupts_and_a_signal_reaches_the_program() {
    let terminal = shell(
        "trap 'echo interrupted' INT; trap 'exit 7' TERM; echo ready; \
         while :; do sleep 0.01; done",
    );
    terminal.until_text("ready");
    terminal.key("ctrl+c");
    terminal.until_text("interrupted");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.wait().code, Some(7));
}

#[test]
fn hanging_up_is_felt() {
    let folder = tempfile::tempdir().unwrap();
    let terminal = Terminal::start(TerminalOptions {
        cwd: folder.path().to_owned(),
        ..options(
            "/bin/sh",
            &[
                "-c",
                "trap 'echo gone >mark; exit 9' HUP; echo ready; \
             while :; do sleep 0.01; done",
            ],
        )
    });
    terminal.until_text("ready");
    terminal.hang_up();
    terminal.keys("into the void");
    terminal.resize(10, 10);
    assert_eq!(terminal.wait().code, Some(9));
    assert!(folder.path().join("mark").exists());
}

#[test]
fn less_pages() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<_> = (1..=100).map(|n| format!("line {n}")).collect();
    std::fs::write(folder.path().join("lines"), lines.join("\n")).unwrap();
    let terminal = Terminal::start(TerminalOptions {
        cwd: folder.path().to_owned(),
        ..options("less", &["lines"])
    });
    let first = terminal.until_text("line 11");
    assert!(first.alternate);
    assert_eq!(first.row(0), "line 1");
    terminal.keys(" ");
    terminal.until(|screen| screen.row(0) == "line 12");
    terminal.key("up");
    terminal.until(|screen| screen.row(0) == "line 11");
    assert_eq!(terminal.agreed(), Ok(()));
    terminal.keys("q");
    let ended = terminal.wait();
    assert!(!ended.after.alternate);
    assert!(!ended.after.contains("line"));
}

#[test]
fn vim_edits() {
    if !std::path::Path::new("/usr/bin/vim").exists() {
        return;
    }
    let terminal = Terminal::start(TerminalOptions {
        profile: Profile::Xterm,
        ..options("vim", &["-u", "NONE", "-i", "NONE", "-n"])
    });
    terminal.until(|screen| screen.row(10) == "~");
    terminal.keys("ihello");
    terminal.key("esc");
    terminal.keys("yyp");
    let screen = terminal.until(|screen| screen.row(1) == "hello");
    assert_eq!((screen.cursor.row, screen.cursor.col), (1, 0));
    terminal.resize(40, 8);
    terminal.until(|screen| screen.row(6) == "~" && screen.row(0) == "hello");
    assert_eq!(terminal.until_quiet().size(), (40, 8));
    assert_eq!(terminal.agreed(), Ok(()));
    terminal.keys(":q!\r");
    assert_eq!(terminal.wait_dirty().code, Some(0));
}
