//! Waiting for what a screen shows, and what is said when it does not.

use caliban_testkit::terminal::Color;

use crate::{failure, options, shell};

#[test]
fn what_never_comes_is_told_with_the_screen_and_the_output() {
    let said = failure(|| {
        let terminal = shell("printf '\\033[1mhere\\033[m is what there is'; exit 4");
        terminal.until_text("something else");
    });
    for part in [
        "the text \"something else\"",
        "nothing more will be written",
        "exit status: 4",
        "│here is what there is ",
        "\\u{1b}[1mhere\\u{1b}[m is",
        "cursor at row 0, column 21",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
}

#[test]
fn a_look_may_ask_the_terminal() {
    let terminal =
        shell("printf 'one\\a'; sleep 0.05; printf '\\a\\033]2;a;b\\033\\\\'; read -r x");
    terminal.until(|screen| screen.contains("one") && terminal.bells() == 2);
    terminal.until(|_| terminal.title() == "a;b");
    terminal.key("enter");
    terminal.wait();
}

#[test]
fn half_a_frame_is_not_seen() {
    let terminal = shell(
        "printf '\\033[?2026h\\033[Hbad'; sleep 0.05; printf '\\033[Hgood\\033[?2026l'; read -r x",
    );
    let screen = terminal.until(|screen| !screen.row(0).is_empty());
    assert_eq!(screen.row(0), "good");
    assert_eq!(terminal.counts().frames, 1);
    terminal.key("enter");
    terminal.wait();
}

#[test]
fn a_frame_that_never_ends_is_shown_and_left_dirty() {
    let terminal = shell("printf '\\033[?2026hstuck'; read -r x");
    terminal.until_text("stuck");
    terminal.key("enter");
    assert!(terminal.wait_dirty().modes.frame_open);
}

#[test]
fn quiet_is_after_the_last_output() {
    let terminal = shell(
        "for i in 1 2 3; do echo $i; j=0; while [ $j -lt 100000 ]; do j=$((j+1)); done; done; \
         echo end; read -r x",
    );
    let screen = terminal.until_quiet();
    assert_eq!(screen.row(3), "end");
    terminal.key("enter");
    terminal.wait();
}

#[test]
fn what_was_there_can_go() {
    let terminal = shell("echo here; read -r x; printf '\\033[H\\033[K'; read -r x");
    terminal.until_text("here");
    terminal.key("enter");
    let screen = terminal.until_gone("here");
    assert_eq!(screen.find("here"), None);
    terminal.key("enter");
    terminal.wait();
}

#[test]
fn cells_have_their_styles() {
    let terminal =
        shell("printf '漢\\033[1;3;31mab\\033[0;7;48;2;1;2;3mc\\033[0;2;4md\\033[m'; read -r x");
    let screen = terminal.until_text("d");
    assert_eq!(screen.find("ab"), Some((0, 2)));
    assert_eq!((screen.cell(0, 0), screen.cell(0, 1)), ("漢", ""));
    let red = screen.style_at(0, 2);
    assert!(red.bold && red.italic && !red.dim);
    assert_eq!((red.fg, red.bg), (Color::Indexed(1), Color::Default));
    let styled = screen.styled();
    let layer = styled.split_once("---\n").unwrap().1;
    assert_eq!(
        layer,
        "0:2-4 bold italic fg=1 \"ab\"\n0:4-5 inverse bg=#010203 \"c\"\n0:5-6 dim underline \"d\"\n"
    );
    terminal.key("enter");
    terminal.wait();
}

#[test]
fn rows_above_the_screen_are_kept() {
    let terminal = shell("seq 1 100; read -r x");
    terminal.until_text("100");
    let above = terminal.scrollback();
    assert_eq!(above.len(), 89);
    assert_eq!((above[0].as_str(), above[88].as_str()), ("1", "89"));
    assert_eq!(terminal.screen().row(0), "90", "the screen is where it was");
    terminal.key("enter");
    terminal.wait();
}

#[test]
fn copies_and_strange_sequences_are_noted() {
    let terminal = shell(
        "printf '\\033]52;c;aGVsbG8=\\a\\033]8;;http://x\\033\\\\l\\033]8;;\\033\\\\'; \
         printf '\\033[9m\\033[4:3m\\033[m\\033[?1004h\\033[?1004l\\033[?2031;9999h\\033[?9999;2031l\\033[3g'; \
         read -r x",
    );
    terminal.until(|_| terminal.unhandled().len() >= 5);
    assert_eq!(terminal.clipboard(), ["hello"]);
    assert_eq!(
        terminal.unhandled(),
        [
            "CSI ?2031;9999h",
            "CSI ?2031;9999h",
            "CSI ?9999;2031l",
            "CSI ?9999;2031l",
            "CSI 3g",
        ]
    );
    terminal.key("enter");
    terminal.wait();
}

#[test]
fn an_unknown_key_is_told() {
    let said = failure(|| {
        let terminal = caliban_testkit::terminal::Terminal::start(options("cat", &[]));
        terminal.key("hyper+x");
    });
    assert_eq!(said, "there is no key `hyper+x`");
}
