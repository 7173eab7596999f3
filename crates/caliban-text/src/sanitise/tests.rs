use std::time::{Duration, Instant};

use proptest::prelude::*;
use rstest::rstest;

use super::*;

/// What a poisoned page, file or server sends, and what is left of it in each strength.
#[rstest]
#[case::style("\x1b[31mred\x1b[0m", "red", "red", "␛[31mred␛[0m")]
#[case::clipboard("a\x1b]52;c;cm0gLXJm\x07b", "ab", "ab", "a␛]52;c;cm0gLXJm␇b")]
#[case::title("\x1b]0;pwned\x1b\\x", "x", "x", "␛]0;pwned␛\\x")]
#[case::link(
    "\x1b]8;;https://evil\x07ok\x1b]8;;\x07",
    "ok",
    "ok",
    "␛]8;;https://evil␇ok␛]8;;␇"
)]
#[case::device("\x1bPq#0;2;0;0;0\x1b\\x", "x", "x", "␛Pq#0;2;0;0;0␛\\x")]
#[case::graphics("\x1b_Gf=100;AAAA\x1b\\x", "x", "x", "␛_Gf=100;AAAA␛\\x")]
#[case::privacy("\x1b^p\x1b\\x\x1bXs\x1b\\y", "xy", "xy", "␛^p␛\\x␛Xs␛\\y")]
#[case::eight_bit("\u{9b}2Jx\u{9d}0;t\u{9c}y", "xy", "xy", "␛[2Jx␛]0;t␛\\y")]
#[case::report("\x1b[6n\x1b[cx", "x", "x", "␛[6n␛[cx")]
#[case::mode("\x1b[?1049h\x1b[?1003hx", "x", "x", "␛[?1049h␛[?1003hx")]
#[case::moves("\x1b[5A\x1b[2K\x1b[1;1Hx", "x", "x", "␛[5A␛[2K␛[1;1Hx")]
#[case::reset("\x1bcx", "x", "x", "␛cx")]
#[case::controls("a\x00\x07\x0b\x7fb", "a␀␇␋␡b", "ab", "a␀␇␋␡b")]
#[case::kept("a\tb\nc", "a\tb\nc", "a\tb\nc", "a\tb\nc")]
#[case::windows("a\r\nb", "a\nb", "a\nb", "a␍\nb")]
#[case::progress("10%\r20%\r\ndone", "10%␍20%\ndone", "20%\ndone", "10%␍20%␍\ndone")]
#[case::last_return("abc\r", "abc␍", "abc", "abc␍")]
#[case::backspace("ab\x08c\n\x08d", "ab␈c\n␈d", "ac\nd", "ab␈c\n␈d")]
#[case::backspace_takes_marks("ae\u{301}\x08b", "ae\u{301}␈b", "ab", "ae\u{301}␈b")]
#[case::override_("a\u{202e}b\u{202c}c", "abc", "abc", "a⟨RLO⟩b⟨PDF⟩c")]
#[case::isolate("a\u{2067}b\nc", "a\u{2067}b\u{2069}\nc", "ab\nc", "a⟨RLI⟩b\nc")]
#[case::closed(
    "\u{2068}b\u{2069}c\u{2069}",
    "\u{2068}b\u{2069}c",
    "bc",
    "⟨FSI⟩b⟨PDI⟩c⟨PDI⟩"
)]
#[case::zero_width(
    "a\u{200b}b\u{feff}c\u{200c}\u{2060}",
    "abc",
    "abc",
    "a⟨ZWSP⟩b⟨BOM⟩c⟨ZWNJ⟩⟨WJ⟩"
)]
#[case::direction_marks("a\u{200e}\u{61c}b", "ab", "ab", "a⟨LRM⟩⟨ALM⟩b")]
#[case::tags("a\u{e0041}\u{e007f}b", "ab", "ab", "a⟨U+E0041⟩⟨U+E007F⟩b")]
#[case::selector("a\u{fe0f}\u{e0100}b", "ab", "ab", "a⟨U+FE0F⟩⟨U+E0100⟩b")]
#[case::joiner("a\u{200d}b", "ab", "ab", "a⟨ZWJ⟩b")]
#[case::filler("\u{3164}x", "x", "x", "⟨U+3164⟩x")]
#[case::mark_on_nothing("\u{301}x\n\u{301}y", "x\ny", "x\ny", "⟨U+0301⟩x\n⟨U+0301⟩y")]
#[case::separators("a\u{2028}b", "a\nb", "a\nb", "a⟨LS⟩b")]
#[case::family("👩‍👩‍👧", "👩‍👩‍👧", "👩‍👩‍👧", "👩‍👩‍👧")]
#[case::tone("👍🏽", "👍🏽", "👍🏽", "👍🏽")]
#[case::heart("❤️ 1️⃣ 🇩🇪", "❤️ 1️⃣ 🇩🇪", "❤️ 1️⃣ 🇩🇪", "❤️ 1️⃣ 🇩🇪")]
#[case::flag(
    "🏴\u{e0067}\u{e0062}\u{e007f}",
    "🏴\u{e0067}\u{e0062}\u{e007f}",
    "🏴\u{e0067}\u{e0062}\u{e007f}",
    "🏴\u{e0067}\u{e0062}\u{e007f}"
)]
#[case::dangling_joiner("👍\u{200d}x👍\u{200d}", "👍x👍", "👍x👍", "👍⟨ZWJ⟩x👍⟨ZWJ⟩")]
#[case::scripts(
    "日本語 ελ עברית हिन्दी",
    "日本語 ελ עברית हिन्दी",
    "日本語 ελ עברית हिन्दी",
    "日本語 ελ עברית हिन्दी"
)]
#[case::never_ended("a\x1b[12;", "a", "a", "a␛[12;")]
#[case::only_escape("a\x1b", "a", "a", "a␛")]
fn hostile_text_is_harmless(
    #[case] text: &str,
    #[case] prose: &str,
    #[case] output: &str,
    #[case] name: &str,
) {
    assert_eq!(sanitise(text, Strength::Prose), prose);
    assert_eq!(sanitise(text, Strength::Output), output);
    assert_eq!(sanitise(text, Strength::Name), name);
}

#[rstest]
#[case(Strength::Prose, 8)]
#[case(Strength::Output, 8)]
#[case(Strength::Name, 4)]
fn marks_are_counted(#[case] strength: Strength, #[case] most: usize) {
    let text = format!("e{}x", "\u{301}".repeat(10_000));
    assert_eq!(sanitise(&text, strength).chars().count(), most + 2);
    // What is left out between them does not begin the count anew.
    let sly = format!("e{}", "\u{301}\u{200b}".repeat(100));
    let marks = sanitise(&sly, Strength::Prose)
        .chars()
        .filter(|c| *c == '\u{301}')
        .count();
    assert_eq!(marks, 8);
}

#[test]
fn emoji_are_not_joined_for_ever() {
    let text = "👩\u{200d}".repeat(10_000) + "👩";
    let longest = sanitise(&text, Strength::Prose).split('👩').fold(
        (0_usize, 0_usize),
        |(run, most), part| {
            let run = if part == "\u{200d}" { run + 1 } else { 0 };
            (run, most.max(run))
        },
    );
    assert!(longest.1 <= 6, "{longest:?}");
}

#[test]
fn harmless_text_is_not_copied() {
    assert!(matches!(
        sanitise("plain\ttext\nüber 日本", Strength::Name),
        Cow::Borrowed(_)
    ));
}

#[test]
fn names_are_one_line() {
    assert_eq!(label("a\nb\tc", 20), "a␊b␉c");
    assert_eq!(label("0123456789", 5), "01…89");
}

/// Millions of the same thing take no more than their share. The bound is far above what is
/// needed and far below what anything worse than linear would take.
#[rstest]
#[case::returns("\r")]
#[case::backspaces("a\x08")]
#[case::backspaces_at_the_end("ab\x08")]
#[case::openings("\x1b]")]
#[case::sequences("\x1b[")]
#[case::marks("\u{301}")]
#[case::isolates("\u{2067}")]
#[case::joiners("👩\u{200d}")]
fn time_is_linear(#[case] unit: &str) {
    let bytes = if unit == "\r" { 4_000_000 } else { 400_000 };
    let text = unit.repeat(bytes / unit.len());
    for strength in [Strength::Prose, Strength::Output, Strength::Name] {
        let began = Instant::now();
        let _ = sanitise(&text, strength);
        assert!(began.elapsed() < Duration::from_secs(20), "{strength:?}");
    }
}

/// Text with a bias to what is dangerous.
pub(crate) fn hostile() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just("\x1b".to_owned()),
        Just("\x1b[".to_owned()),
        Just("\x1b]".to_owned()),
        Just("\x1bP".to_owned()),
        Just("\x1b\\".to_owned()),
        Just("\u{9b}".to_owned()),
        Just("\u{9d}".to_owned()),
        Just("\u{7}".to_owned()),
        Just("\r".to_owned()),
        Just("\x08".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("\u{2067}".to_owned()),
        Just("\u{2069}".to_owned()),
        Just("\u{200d}".to_owned()),
        Just("\u{fe0f}".to_owned()),
        Just("\u{20e3}".to_owned()),
        Just("\u{301}".to_owned()),
        Just("\u{e0041}".to_owned()),
        Just("🏴👩🏽".to_owned()),
        "[a-m0-9;\n\t ]{0,4}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(parts, 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn nothing_that_a_terminal_obeys_is_left(text in hostile()) {
        for strength in [Strength::Prose, Strength::Output, Strength::Name] {
            let out = sanitise(&text, strength);
            let obeyed = out.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
            prop_assert_eq!(obeyed, None, "{:?}: {:?}", strength, out);
            let hidden = out.find(['\u{202d}', '\u{202e}', '\u{200b}']);
            prop_assert_eq!(hidden, None);
        }
    }

    #[test]
    fn harmless_text_stays_as_it_is(text in hostile()) {
        for strength in [Strength::Prose, Strength::Output, Strength::Name] {
            let once = sanitise(&text, strength).into_owned();
            prop_assert_eq!(&sanitise(&once, strength), &once, "{:?}", strength);
        }
    }

    #[test]
    fn pieces_give_the_same_as_the_whole(text in hostile(), at in any::<prop::sample::Index>()) {
        let at = text.floor_char_boundary(at.index(text.len() + 1));
        for strength in [Strength::Prose, Strength::Output, Strength::Name] {
            let mut out = String::new();
            let mut sanitiser = Sanitiser::new(strength);
            sanitiser.push(&text[..at], &mut out);
            sanitiser.push(&text[at..], &mut out);
            sanitiser.finish(&mut out);
            prop_assert_eq!(&out, &sanitise(&text, strength));
        }
    }
}
