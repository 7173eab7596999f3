//! Every key in every encoding, every answer of a terminal, and what must not be taken for typing.

use std::time::{Duration, Instant};

use caliban_terminal::{
    Button, Decoder, Focus, Input, Key, KeyCode, Modifiers, Mouse, MouseKind, PASTE_LIMIT, Report,
    Rgb, Scheme,
};
use proptest::prelude::*;
use rstest::rstest;

const DELAY: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(5);

/// One read after another, with or without a pause in between.
fn decode(reads: &[&[u8]], pause: Duration) -> Vec<Input> {
    let mut decoder = Decoder::new(DELAY);
    let mut now = Instant::now();
    let mut out = Vec::new();
    for read in reads {
        decoder.push(read, now, &mut out);
        now += pause;
        decoder.expire(now, &mut out);
    }
    now += LONG;
    decoder.expire(now, &mut out);
    assert_eq!(decoder.deadline(), None, "nothing waits for ever");
    out
}

fn at_once(bytes: &[u8]) -> Vec<Input> {
    decode(&[bytes], Duration::ZERO)
}

/// The keys, as they are written.
fn keys(inputs: &[Input]) -> String {
    let written = inputs.iter().map(|input| match input {
        Input::Key(key) => key.to_string(),
        other => format!("{other:?}"),
    });
    written.collect::<Vec<_>>().join(" ")
}

fn mouse(kind: MouseKind, column: u16, row: u16, modifiers: Modifiers) -> Input {
    Input::Mouse(Mouse {
        kind,
        column,
        row,
        modifiers,
    })
}

#[rstest]
// Typing.
#[case(b"a", "a")]
#[case(b"A", "A")]
#[case("é".as_bytes(), "é")]
#[case("漢字🎉".as_bytes(), "漢 字 🎉")]
#[case(b" ", "space")]
#[case(b"\r", "enter")]
#[case(b"\n", "ctrl+j")]
#[case(b"\t", "tab")]
#[case(b"\x7f", "backspace")]
#[case(b"\x08", "ctrl+h")]
#[case(b"\x00", "ctrl+space")]
#[case(b"\x01", "ctrl+a")]
#[case(b"\x1a", "ctrl+z")]
#[case(b"\x1c", "ctrl+backslash")]
#[case(b"\x1d", "ctrl+]")]
#[case(b"\x1e", "ctrl+^")]
#[case(b"\x1f", "ctrl+_")]
#[case(b"\x1b", "esc")]
#[case(b"\x1b\x1b", "esc esc")]
#[case(b"\x1b\x1b\x1b", "esc esc esc")]
// Alt.
#[case(b"\x1ba", "alt+a")]
#[case(b"\x1bA", "alt+A")]
#[case("\u{1b}é".as_bytes(), "alt+é")]
#[case(b"\x1b\r", "alt+enter")]
#[case(b"\x1b\n", "ctrl+alt+j")]
#[case(b"\x1b\x7f", "alt+backspace")]
#[case(b"\x1b\t", "alt+tab")]
#[case(b"\x1b\x02", "ctrl+alt+b")]
#[case(b"\x1b[", "alt+[")]
#[case(b"\x1b]", "alt+]")]
#[case(b"\x1bO", "alt+O")]
#[case(b"\x1bP", "alt+P")]
#[case(b"\x1b_", "alt+_")]
#[case(b"\x1bX", "alt+X")]
#[case(b"\x1b^", "alt+^")]
#[case(b"\x1b\x1b[", "esc alt+[")]
#[case(b"\x1b\x1b[A", "alt+up")]
#[case(b"\x1b\x1bOA", "alt+up")]
#[case(b"\x1b\x1b[1;5A", "ctrl+alt+up")]
#[case(b"\x1b\x1ba", "esc alt+a")]
// Cursor keys and their modifiers.
#[case(b"\x1b[A\x1b[B\x1b[C\x1b[D", "up down right left")]
#[case(b"\x1bOA\x1bOB\x1bOC\x1bOD", "up down right left")]
#[case(b"\x1b[H\x1b[F\x1bOH\x1bOF", "home end home end")]
#[case(
    b"\x1b[1;2A\x1b[1;3A\x1b[1;5A\x1b[1;6A",
    "shift+up alt+up ctrl+up ctrl+shift+up"
)]
#[case(b"\x1b[1;9C\x1b[1;33C", "super+right alt+right")]
#[case(b"\x1b[1;69A", "ctrl+up")]
#[case(b"\x1b[1;1:1A\x1b[1;1:2A\x1b[1;1:3A", "up up")]
#[case(b"\x1b[a\x1bOa", "shift+up ctrl+up")]
#[case(b"\x1bO5A\x1bO1;5A", "ctrl+up ctrl+up")]
#[case(b"\x1b[Z\x1b[1;2Z", "shift+tab shift+tab")]
// Numbered keys.
#[case(b"\x1b[1~\x1b[7~\x1b[4~\x1b[8~", "home home end end")]
#[case(b"\x1b[2~\x1b[3~\x1b[5~\x1b[6~", "insert delete pageup pagedown")]
#[case(
    b"\x1b[3;5~\x1b[3^\x1b[3@",
    "ctrl+delete ctrl+delete ctrl+shift+delete"
)]
#[case(b"\x1b[5;2~", "shift+pageup")]
#[case(b"\x1bOP\x1bOQ\x1bOR\x1bOS", "f1 f2 f3 f4")]
#[case(b"\x1b[P\x1b[Q\x1b[R\x1b[S", "f1 f2 f3 f4")]
#[case(b"\x1b[[A\x1b[[E", "f1 f5")]
#[case(
    b"\x1b[11~\x1b[15~\x1b[17~\x1b[21~\x1b[23~\x1b[24~",
    "f1 f5 f6 f10 f11 f12"
)]
#[case(b"\x1b[25~\x1b[28~\x1b[34~", "f13 f15 f20")]
#[case(
    b"\x1b[1;2P\x1b[1;5R\x1b[13;2~\x1b[15;6~",
    "shift+f1 ctrl+f3 shift+f3 ctrl+shift+f5"
)]
// The keypad.
#[case(
    b"\x1bOM\x1bOj\x1bOk\x1bOm\x1bOo\x1bOp\x1bOy\x1bOX",
    "enter * plus minus / 0 9 ="
)]
// The kitty protocol.
#[case(b"\x1b[27u", "esc")]
#[case(
    b"\x1b[13u\x1b[13;2u\x1b[13;3u\x1b[13;5u",
    "enter shift+enter alt+enter ctrl+enter"
)]
#[case(
    b"\x1b[9u\x1b[9;2u\x1b[9;5u\x1b[9;6u",
    "tab shift+tab ctrl+tab ctrl+shift+tab"
)]
#[case(b"\x1b[127;5u\x1b[127;3u", "ctrl+backspace alt+backspace")]
#[case(
    b"\x1b[97;5u\x1b[98;6u\x1b[106;5u\x1b[105;5u",
    "ctrl+a ctrl+shift+b ctrl+j ctrl+i"
)]
#[case(b"\x1b[97;3u\x1b[97;4u\x1b[97:65;4u", "alt+a alt+A alt+A")]
#[case(b"\x1b[49:33;2u\x1b[49;4u", "! alt+shift+1")]
#[case(b"\x1b[97;5:1u\x1b[97;5:2u\x1b[97;5:3u", "ctrl+a ctrl+a")]
#[case(b"\x1b[97;69u\x1b[97;133u", "ctrl+a ctrl+a")]
#[case(b"\x1b[1089::99;5u", "ctrl+c")]
#[case(b"\x1b[32;2u\x1b[32;5u", "space ctrl+space")]
#[case(b"\x1b[47;5u\x1b[107;9u", "ctrl+/ super+k")]
#[case(
    b"\x1b[57399u\x1b[57414u\x1b[57417;5u\x1b[57376u",
    "0 enter ctrl+left f13"
)]
#[case(b"\x1b[57358u\x1b[57441;2u\x1b[57428u", "")]
#[case(b"\x1b[0;;228:246u", "ä ö")]
#[case(b"\x1b[97u", "a")]
// The other keys of xterm.
#[case(
    b"\x1b[27;2;13~\x1b[27;5;13~\x1b[27;3;13~",
    "shift+enter ctrl+enter alt+enter"
)]
#[case(
    b"\x1b[27;5;99~\x1b[27;6;67~\x1b[27;4;65~",
    "ctrl+c ctrl+shift+c alt+A"
)]
#[case(
    b"\x1b[27;2;33~\x1b[27;2;9~\x1b[27;5;127~\x1b[27;2;65~",
    "! shift+tab ctrl+backspace A"
)]
#[case(b"\x1b[27;5;106~\x1b[27;2;32~\x1b[27;1;27~", "ctrl+j space esc")]
fn keys_of_every_encoding(#[case] bytes: &[u8], #[case] written: &str) {
    assert_eq!(keys(&at_once(bytes)), written);
}

#[rstest]
#[case(b"\x1b[?2026;2$y", Report::Mode { mode: 2026, state: 2 })]
#[case(
    b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
    Report::Background(Rgb::new(30, 30, 30))
)]
#[case(
    b"\x1b]10;rgb:ff/ff/ff\x07",
    Report::Foreground(Rgb::new(255, 255, 255))
)]
#[case(b"\x1b[?1u", Report::KeyboardFlags(1))]
#[case(b"\x1bP>|kitty(0.35.1)\x1b\\", Report::Name("kitty(0.35.1)".to_owned()))]
#[case(b"\x1b[?62;22c", Report::Attributes)]
#[case(b"\x1b[12;40R", Report::Cursor { row: 11, column: 39 })]
#[case(b"\x1b[?12;40R", Report::Cursor { row: 11, column: 39 })]
#[case(b"\x1b[?997;2n", Report::ColourScheme(Scheme::Light))]
#[case(b"\x1b[?997;1n", Report::ColourScheme(Scheme::Dark))]
#[case(b"\x1b[8;24;80t", Report::Size { columns: 80, rows: 24 })]
#[case(b"\x1b[48;24;80;480;640t", Report::Size { columns: 80, rows: 24 })]
fn answers_are_reports(#[case] bytes: &[u8], #[case] report: Report) {
    let typing = [bytes, b"abc"].concat();
    let mut inputs = at_once(&typing);
    assert_eq!(inputs.remove(0), Input::Report(report));
    assert_eq!(keys(&inputs), "a b c");
}

#[test]
fn a_cursor_that_was_asked_for_is_no_key() {
    let mut decoder = Decoder::new(DELAY);
    let mut out = Vec::new();
    decoder.expect_cursor();
    decoder.push(b"\x1b[1;5R\x1b[1;5R", Instant::now(), &mut out);
    assert_eq!(out[0], Input::Report(Report::Cursor { row: 0, column: 4 }));
    assert_eq!(keys(&out[1..]), "ctrl+f3");
}

#[rstest]
#[case(b"\x1b[<0;1;1M", MouseKind::Down(Button::Left), 0, 0, Modifiers::NONE)]
#[case(b"\x1b[<2;10;5m", MouseKind::Up(Button::Right), 9, 4, Modifiers::NONE)]
#[case(
    b"\x1b[<1;300;200M",
    MouseKind::Down(Button::Middle),
    299,
    199,
    Modifiers::NONE
)]
#[case(b"\x1b[<32;3;4M", MouseKind::Drag(Button::Left), 2, 3, Modifiers::NONE)]
#[case(b"\x1b[<64;3;4M", MouseKind::WheelUp, 2, 3, Modifiers::NONE)]
#[case(b"\x1b[<65;3;4M", MouseKind::WheelDown, 2, 3, Modifiers::NONE)]
#[case(b"\x1b[<20;3;4M", MouseKind::Down(Button::Left), 2, 3, Modifiers::SHIFT | Modifiers::CTRL)]
#[case(b"\x1b[<72;3;4M", MouseKind::WheelUp, 2, 3, Modifiers::ALT)]
fn the_mouse(
    #[case] bytes: &[u8],
    #[case] kind: MouseKind,
    #[case] column: u16,
    #[case] row: u16,
    #[case] modifiers: Modifiers,
) {
    assert_eq!(at_once(bytes), [mouse(kind, column, row, modifiers)]);
}

#[test]
fn focus_is_told() {
    let expected = [Input::Focus(Focus::Gained), Input::Focus(Focus::Lost)];
    assert_eq!(at_once(b"\x1b[I\x1b[O"), expected);
}

#[rstest]
#[case::moving(b"\x1b[<35;150;7M")]
#[case::sideways(b"\x1b[<66;1;1M\x1b[<67;1;1M")]
#[case::fourth_button(b"\x1b[<128;1;1M\x1b[<160;1;1M")]
#[case::old_mouse(b"\x1b[M a!")]
#[case::old_mouse_of_rxvt(b"\x1b[32;10;10M")]
#[case::kitty_graphics(b"\x1b_Gi=1;OK\x1b\\")]
#[case::privacy(b"\x1b^secret\x1b\\")]
#[case::start_of_string(b"\x1bXtext\x1b\\")]
#[case::clipboard(b"\x1b]52;c;aGVsbG8=\x07")]
#[case::palette(b"\x1b]4;1;rgb:ff/00/00\x1b\\")]
#[case::status_string(b"\x1bP1$r0 q\x1b\\")]
#[case::secondary_attributes(b"\x1b[>41;354;0c")]
#[case::unknown(b"\x1b[?1;2;3z\x1b[12;34w\x1b[5 q")]
#[case::end_of_no_paste(b"\x1b[201~")]
#[case::invalid(b"\xff\xfe\x80\xc0\xaf\xed\xa0\x80")]
#[case::control_of_eight_bits(b"\xc2\x9b")]
#[case::cancelled(b"\x1b[1;2\x18\x1b]0;x\x1a")]
#[case::console(b"\x1b[[Q")]
fn what_is_not_typed_is_not_typing(#[case] bytes: &[u8]) {
    let typing = [bytes, b"abc"].concat();
    assert_eq!(keys(&at_once(&typing)), "a b c");
}

#[test]
fn sequences_without_end_are_passed_over_whatever_their_length() {
    for introducer in ["\x1b[", "\x1b]", "\x1bP", "\x1b_"] {
        let long = format!("{introducer}{}", "1;".repeat(100_000));
        let mut decoder = Decoder::new(DELAY);
        let (mut out, now) = (Vec::new(), Instant::now());
        decoder.push(long.as_bytes(), now, &mut out);
        decoder.expire(now + LONG, &mut out);
        decoder.push(b"a", now + LONG, &mut out);
        assert_eq!(keys(&out), "a", "{introducer:?}");
    }
}

#[rstest]
// Nothing is given before the delay is over, and then what it is.
#[case(&["\x1b", "[A"], 1, "up")]
#[case(&["\x1b", "a"], 1, "alt+a")]
#[case(&["\x1b", "a"], 50, "esc a")]
#[case(&["\x1b", "\x1b"], 50, "esc esc")]
#[case(&["\x1b[", "A"], 1, "up")]
#[case(&["\x1b[", "A"], 50, "alt+[ A")]
#[case(&["\x1b[1;", "5A"], 50, "ctrl+up")]
#[case(&["\x1b[1;", "x"], 1500, "x")]
#[case(&["\x1b]11;rgb:0", "x"], 1500, "x")]
// An Esc that was given away too early.
#[case(&["\x1b", "[A"], 50, "esc up")]
#[case(&["\x1b", "[27;2;13~"], 50, "esc shift+enter")]
#[case(&["\x1b", "[<35;150;7M"], 50, "esc")]
#[case(&["\x1b", "[", "<35;150;7M"], 1, "")]
#[case(&["\x1b", "]11;rgb:0/0/0\x1b\\"], 50, "esc Report(Background(Rgb { red: 0, green: 0, blue: 0 }))")]
#[case(&["\x1b", "P>|x\x1b\\"], 50, "esc Report(Name(\"x\"))")]
// What was typed behind an Esc.
#[case(&["\x1b", "["], 50, "esc [")]
#[case(&["\x1b", "[", "A"], 50, "esc [ A")]
#[case(&["\x1b", "[["], 50, "esc [ [")]
#[case(&["\x1b", "Pa"], 50, "esc P a")]
#[case(&["\x1b", "]]"], 50, "esc ] ]")]
#[case(&["\x1b", "Ofoo"], 50, "esc O f o o")]
fn time_tells_a_key_from_a_sequence(
    #[case] reads: &[&str],
    #[case] ms: u64,
    #[case] written: &str,
) {
    let reads: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
    assert_eq!(keys(&decode(&reads, Duration::from_millis(ms))), written);
}

#[test]
fn a_report_behind_a_pause_is_one_mouse_event() {
    let inputs = decode(&[b"\x1b", b"[<0;150;7M"], Duration::from_millis(20));
    let down = MouseKind::Down(Button::Left);
    assert_eq!(inputs, [mouse(down, 149, 6, Modifiers::NONE)]);
}

#[test]
fn the_caller_is_told_how_long_to_wait() {
    let mut decoder = Decoder::new(DELAY);
    let (mut out, now) = (Vec::new(), Instant::now());
    assert_eq!(decoder.deadline(), None);
    decoder.push(b"\x1b", now, &mut out);
    assert_eq!(decoder.deadline(), Some(now + DELAY));
    decoder.expire(now + DELAY / 2, &mut out);
    assert_eq!(out, []);
    decoder.expire(now + DELAY, &mut out);
    assert_eq!(keys(&out), "esc");
    assert_eq!(decoder.deadline(), None);
    decoder.push(b"\x1b[200~", now, &mut out);
    assert_eq!(decoder.deadline(), Some(now + Duration::from_secs(1)));
    decoder.push(b"x\x1b[201~", now, &mut out);
    assert_eq!(decoder.deadline(), None);
}

fn pasted(bytes: &[u8]) -> Vec<Input> {
    at_once(&[b"\x1b[200~", bytes, b"\x1b[201~"].concat())
}

#[rstest]
#[case(b"one\rtwo\r\nthree\nfour", "one\ntwo\nthree\nfour")]
#[case(b"\r\r\n\n", "\n\n\n")]
#[case(b"a\tb\x00\x07\x7fc", "a\tbc")]
#[case(
    b"a\x1b[13ub\x1b[106;5uc\x1b[27;5;106~d\x1b[27;2;13~e",
    "a\nb\nc\nd\ne"
)]
#[case(b"a\x1b[Ib\x1b[<35;1;1Mc\x1b[31md", "abcd")]
#[case(b"a\x1b]0;x\x07b", "a]0;xb")]
#[case(b"a\x1b", "a")]
#[case(b"a\xffb\xc3", "ab")]
#[case("é漢🎉\u{9b}".as_bytes(), "é漢🎉")]
#[case(b"a\x1b[201b\x1b[20\x1b[200~c", "a[20c")]
fn pastes_are_text(#[case] bytes: &[u8], #[case] text: &str) {
    assert_eq!(pasted(bytes), [Input::Paste(text.to_owned())]);
}

#[test]
fn a_paste_without_end_ends_by_itself() {
    let mut decoder = Decoder::new(DELAY);
    let (mut out, now) = (Vec::new(), Instant::now());
    decoder.push(b"\x1b[200~some text\x1b[20", now, &mut out);
    decoder.expire(now + Duration::from_millis(999), &mut out);
    assert_eq!(out, []);
    decoder.expire(now + Duration::from_secs(1), &mut out);
    decoder.push(b"x", now + LONG, &mut out);
    let text = Input::Paste("some text".to_owned());
    assert_eq!(out, [text, Input::Key(Key::plain(KeyCode::Char('x')))]);
}

#[test]
fn a_paste_is_bounded() {
    let long = vec![b'x'; PASTE_LIMIT + 10];
    let inputs = pasted(&long);
    assert_eq!(inputs.len(), 2);
    assert_eq!(inputs[0], Input::Paste("x".repeat(PASTE_LIMIT)));
    assert_eq!(inputs[1], Input::PasteTooLong { limit: PASTE_LIMIT });
}

/// Bytes that look like what terminals send.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        prop::sample::select(vec![
            "\x1b",
            "\x1b[",
            "\x1b]",
            "\x1bP",
            "\x1b_",
            "\x1bO",
            "\x1b\\",
            "\x1b[200~",
            "\x1b[201~",
            "\x1b[M",
            "\x1b[<",
            "\x1b[?",
            "\x1b[[",
            "1;5",
            "27;2;13~",
            "u",
            "~",
            "R",
            "\x07",
            "\x18",
            "é",
            "漢",
            "🎉",
            ";",
            ":",
            "11;rgb:0/0/0",
            ">|name",
            "\r\n",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn it_does_not_matter_where_reads_end(bytes in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.push(0);
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let reads: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = at_once(&bytes);
        prop_assert_eq!(&decode(&reads, Duration::ZERO), &whole);
        prop_assert_eq!(&decode(&single, Duration::ZERO), &whole);
    }

    #[test]
    fn any_bytes_at_any_time(reads in prop::collection::vec((stream(), 0_u64..2000), 0..10)) {
        let mut decoder = Decoder::new(DELAY);
        let mut now = Instant::now();
        let mut out = Vec::new();
        for (bytes, pause) in &reads {
            decoder.push(bytes, now, &mut out);
            now += Duration::from_millis(*pause);
            decoder.expire(now, &mut out);
        }
        // Whatever came, the keyboard works again after the pause that everything waits for at most.
        decoder.expire(now + LONG, &mut out);
        prop_assert_eq!(decoder.deadline(), None);
        for input in &out {
            if let Input::Paste(text) = input {
                prop_assert!(!text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
            }
        }
        out.clear();
        decoder.push(b"z", now + LONG, &mut out);
        prop_assert_eq!(&out, &[Input::Key(Key::plain(KeyCode::Char('z')))]);
    }
}
