//! Emulators that agree, and that are found not to.

use caliban_testkit::terminal::{Terminal, agree, steps};
use proptest::prelude::*;
use rstest::rstest;

use crate::options;

#[rstest]
#[case::plain("hello\r\nworld")]
#[case::wrapped("0123456789012345678901234567890123456789")]
#[case::full_row("01234567890123456789")]
#[case::wide("漢字漢字漢字漢字漢字漢字")]
#[case::wide_at_the_edge("0123456789012345678漢")]
#[case::tab("a\tb")]
#[case::region("\x1b[1;1H1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[S\x1b[r\x1b[4;1Hx")]
#[case::erased("abcdef\x1b[3G\x1b[K\x1b[1;5Hz")]
#[case::alternate("main\x1b[?1049h\x1b[Hother\x1b[?1049l")]
#[case::an_open_frame("\x1b[?2026hfirst")]
#[case::family_then_placed("👨‍👩‍👧\x1b[1;3Hb")]
#[case::flag_then_placed("🇩🇪\x1b[1;3Hb")]
#[case::accent("e\u{301}\x1b[1;2Hb")]
#[case::syllable("क्षि\x1b[1;4Hb")]
#[case::no_character("a\u{fffd}b")]
fn these_are_shown_alike(#[case] output: &str) {
    assert_eq!(agree(output.as_bytes(), 20, 5), Ok(()));
}

#[test]
fn a_difference_is_told() {
    // `vt100` knows no way to set the cursor back to a remembered place by these.
    let told = agree(b"ab\x1b[scd\x1b[uX", 20, 5).unwrap_err();
    assert!(told.starts_with("row 0, column 2: vt100"), "{told}");
    assert!(told.contains("alacritty Some(\"X\")"), "{told}");
}

#[test]
fn what_stands_behind_a_disputed_cluster_is_not_excepted() {
    let output = "👨‍👩‍👧\x1b[1;10Hx\x1b[s\x1b[5Cy\x1b[uz";
    let told = agree(output.as_bytes(), 20, 5).unwrap_err();
    assert!(told.starts_with("row 0, column 10:"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_output_is_too_wild_to_be_compared(
        output in proptest::collection::vec(any::<u8>(), 0..300),
        cols in 0_u16..40,
        rows in 0_u16..10,
    ) {
        let _ = agree(&output, cols, rows);
    }
}

/// The line editor of the kernel, and after it a program that shows what it is told.
#[test]
fn anything_may_be_typed() {
    let terminal = Terminal::start(options("cat", &["-v"]));
    for seed in 0..5 {
        terminal.play(&steps(seed, 200));
    }
    terminal.resize(60, 12);
    terminal.until_quiet();
    drop(terminal);
    assert_eq!(steps(1, 50), steps(1, 50));
    assert_ne!(steps(1, 50), steps(2, 50));
}
