use caliban_terminal::{Key, KeyCode};
use rstest::rstest;

use crate::editor::{Editor, Pressed, ViCommand};
use crate::keys::KeySet;
use crate::vi::ViState;

/// Keys as they are written in manuals: `dw`, `ifoo<esc>`, `<c-r>`, `<lt>`.
pub(crate) fn keys(written: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = written;
    while let Some(c) = rest.chars().next() {
        let named = rest
            .strip_prefix('<')
            .and_then(|named| named.split_once('>'));
        let (key, after) = match named {
            Some(("esc", after)) => (Key::plain(KeyCode::Esc), after),
            Some(("cr", after)) => (Key::plain(KeyCode::Enter), after),
            Some(("bs", after)) => (Key::plain(KeyCode::Backspace), after),
            Some(("up", after)) => (Key::plain(KeyCode::Up), after),
            Some(("down", after)) => (Key::plain(KeyCode::Down), after),
            Some(("left", after)) => (Key::plain(KeyCode::Left), after),
            Some(("c-r", after)) => (Key::ctrl('r'), after),
            Some(("c-j", after)) => (Key::ctrl('j'), after),
            Some(("c-w", after)) => (Key::ctrl('w'), after),
            Some(("lt", after)) => (Key::plain(KeyCode::Char('<')), after),
            Some(_) | None => (Key::plain(KeyCode::Char(c)), &rest[c.len_utf8()..]),
        };
        keys.push(key);
        rest = after;
    }
    keys
}

/// An editor with a text in which `|` is before the caret, in normal mode.
fn normal(marked: &str) -> Editor {
    let mut editor = Editor::new(KeySet::Vi);
    editor.set_text(&marked.replacen('|', "", 1));
    editor.press(Key::plain(KeyCode::Esc));
    editor.set_caret(marked.find('|').unwrap());
    editor
}

fn marked(editor: &Editor) -> String {
    let mut text = editor.text();
    text.insert(editor.caret(), '|');
    text
}

fn press(editor: &mut Editor, written: &str) -> Pressed {
    let pressed = keys(written).into_iter().map(|key| editor.press(key));
    pressed.last().unwrap()
}

#[rstest]
// Left and right
#[case("ab|c", "h", "a|bc")]
#[case("|abc", "h", "|abc")]
#[case("|abc", "l", "a|bc")]
#[case("ab|c", "l", "ab|c")]
#[case("|abc", "2l", "ab|c")]
#[case("|abc", "9l", "ab|c")]
#[case("ab|c", "9h", "|abc")]
#[case("a\n|b", "h", "a\n|b")]
#[case("|a👩‍👩‍👧b", "ll", "a👩‍👩‍👧|b")]
// Lines
#[case("|one\ntwo", "j", "one\n|two")]
#[case("one\nt|wo", "k", "o|ne\ntwo")]
#[case("lon|g\nx\nlong", "jj", "long\nx\nlon|g")]
#[case("|long\nx\nlonger", "$jj", "long\nx\nlonge|r")]
#[case("a\nb\n|c", "2k", "|a\nb\nc")]
#[case("  on|e", "0", "|  one")]
#[case("  on|e", "^", "  |one")]
#[case("|one", "$", "on|e")]
#[case("|one\ntwo", "2$", "one\ntw|o")]
#[case("one\ntwo\n  thr|ee", "gg", "|one\ntwo\n  three")]
#[case("|one\ntwo\n  three", "G", "one\ntwo\n  |three")]
#[case("|one\ntwo\nthree", "2G", "one\n|two\nthree")]
#[case("one\ntwo\n|three", "2gg", "one\n|two\nthree")]
// Words
#[case("|one two", "w", "one |two")]
#[case("|one.two", "w", "one|.two")]
#[case("|one.two x", "W", "one.two |x")]
#[case("|one two three", "2w", "one two |three")]
#[case("|one\n\ntwo", "w", "one\n|\ntwo")]
#[case("one tw|o", "w", "one tw|o")]
#[case("one tw|o", "b", "one |two")]
#[case("one |two", "b", "|one two")]
#[case("one.tw|o", "B", "|one.two")]
#[case("one\n\n|two", "b", "one\n|\ntwo")]
#[case("|one two", "e", "on|e two")]
#[case("on|e two", "e", "one tw|o")]
#[case("|one.two x", "E", "one.tw|o x")]
#[case("one tw|o", "ge", "on|e two")]
#[case("one.b tw|o", "gE", "one.|b two")]
#[case("|äöü ñ", "w", "äöü |ñ")]
// In the line
#[case("|a,b,c", "f,", "a|,b,c")]
#[case("|a,b,c", "2f,", "a,b|,c")]
#[case("|a,b,c", "f,;", "a,b|,c")]
#[case("|a,b,c", "f,;,", "a|,b,c")]
#[case("a,b,|c", "F,", "a,b|,c")]
#[case("|ab,c", "t,", "a|b,c")]
#[case("|a,b,c", "t,;", "a,|b,c")]
#[case("a,b|c", "T,", "a,|bc")]
#[case("|abc", "fx", "|abc")]
#[case("|a\nb,", "f,", "|a\nb,")]
#[case("|f(a[1])", "%", "f(a[1]|)")]
#[case("f(a[1]|)", "%", "f|(a[1])")]
#[case("|f(\n)", "%", "f(\n|)")]
#[case("|f(", "%", "|f(")]
// Paragraphs and sentences
#[case("|a\nb\n\nc", "}", "a\nb\n|\nc")]
#[case("a\nb\n\n|c", "{", "a\nb\n|\nc")]
#[case("|a\nb", "}", "a\n|b")]
#[case("a\n|b", "{", "|a\nb")]
#[case("|One. Two! Three", ")", "One. |Two! Three")]
#[case("|One. Two! Three", "2)", "One. Two! |Three")]
#[case("One. Two! Th|ree", "(", "One. Two! |Three")]
#[case("One. |Two", "(", "|One. Two")]
#[case("|One.x Two.) Y", ")", "One.x Two.) |Y")]
// Searches
#[case("|one two one", "/one<cr>", "one two |one")]
#[case("|one two one", "/one<cr>n", "|one two one")]
#[case("|a b a b", "/b<cr>N", "a b a |b")]
#[case("one two |one", "?t<cr>", "one |two one")]
#[case("one two |one", "?o<cr>n", "|one two one")]
#[case("|one One", "/One<cr>", "one |One")]
#[case("|x One", "/one<cr>", "x |One")]
#[case("|one", "/x<cr>", "|one")]
#[case("|one two", "/twx<bs>o<cr>", "one |two")]
#[case("|one ones one", "*", "one ones |one")]
#[case("one ones |one", "#", "|one ones one")]
#[case("|one two", "/two<cr>gg/<cr>", "one |two")]
// Marks
#[case("o|ne\ntwo", "majl`a", "o|ne\ntwo")]
#[case("  o|ne\ntwo", "maj'a", "  |one\ntwo")]
#[case("one |two", "ma0ix<esc>`a", "xone |two")]
// Deleting
#[case("|abc", "x", "|bc")]
#[case("ab|c", "x", "a|b")]
#[case("|abc", "2x", "|c")]
#[case("ab|c", "X", "a|c")]
#[case("|one two", "dw", "|two")]
#[case("one |two", "dw", "one| ")]
#[case("|one\ntwo", "dw", "|\ntwo")]
#[case("|one two three", "d2w", "|three")]
#[case("|one two three", "2dw", "|three")]
#[case("|a b c d e f g", "2d3w", "|g")]
#[case("one two| three", "db", "one | three")]
#[case("|one two", "de", "| two")]
#[case("one tw|o", "dge", "o|n")]
#[case("one |two", "d0", "|two")]
#[case("on|e two", "d$", "o|n")]
#[case("on|e two\nx", "D", "o|n\nx")]
#[case("a\n|b\nc", "dd", "a\n|c")]
#[case("a\n|b", "dd", "|a")]
#[case("|a", "dd", "|")]
#[case("|a\nb\nc", "2dd", "|c")]
#[case("a\n  b|\n  c", "dd", "a\n  |c")]
#[case("|a\nb\nc", "dj", "|c")]
#[case("a\nb\n|c", "dk", "|a")]
#[case("a\n|b\nc", "dG", "|a")]
#[case("a\nb\n|c", "dgg", "|")]
#[case("|a,b,c", "df,", "|b,c")]
#[case("|a,b,c", "dt,", "|,b,c")]
#[case("a,b|,c", "dF,", "a|,c")]
#[case("x|(a(b))y", "d%", "x|y")]
#[case("|a\nb\n\nc", "d}", "|\nc")]
#[case("x|a\nb\n\nc", "d}", "|x\n\nc")]
#[case("|one two", "d/two<cr>", "|two")]
#[case("|one two one", "d/one<cr>.", "|one")]
#[case("|abc", "dh", "|abc")]
#[case("a |b c", "dfx", "a |b c")]
// Changing
#[case("|one two", "cwx<esc>", "|x two")]
#[case("on|e two", "cwx<esc>", "on|x two")]
#[case("|one two three", "c2wx<esc>", "|x three")]
#[case("one|  two", "cwx<esc>", "one|xtwo")]
#[case("a\n|b\nc", "ccx<esc>", "a\n|x\nc")]
#[case("a\n|b\nc", "Sx<esc>", "a\n|x\nc")]
#[case("|abc", "sx<esc>", "|xbc")]
#[case("|abc", "2sx<esc>", "|xc")]
#[case("|", "sx<esc>", "|x")]
#[case("a|bc", "Cx<esc>", "a|x")]
#[case("|abc", "rx", "|xbc")]
#[case("|abc", "2rx", "x|xc")]
#[case("|abc", "4rx", "|abc")]
#[case("a|bc", "r<cr>", "a\n|c")]
#[case("|abc", "Rxy<esc>", "x|yc")]
#[case("|a", "Rxyz<esc>", "xy|z")]
#[case("|abc", "Rxy<bs><bs><esc>", "|abc")]
#[case("|abcd", "2Rx<esc>", "x|xcd")]
#[case("|ab", "~", "A|b")]
#[case("|aB", "2~", "A|b")]
#[case("|one Two", "g~w", "|ONE Two")]
#[case("|oNe", "guu", "|one")]
#[case("|one two", "gUw", "|ONE two")]
#[case("o|ne two", "gUiw", "|ONE two")]
#[case("|one", "g~g~", "|ONE")]
#[case("|a\nb", "J", "a| b")]
#[case("|a\n  b\nc", "3J", "a b| c")]
#[case("|f(\n)", "J", "f(|)")]
#[case("|a", "J", "|a")]
#[case("|a\nb", ">>", "    |a\nb")]
#[case("|a\nb", ">j", "    |a\n    b")]
#[case("      |a", "<lt><lt>", "  |a")]
#[case("  a|b", "==", "  |ab")]
// Inserting
#[case("a|b", "ix<esc>", "a|xb")]
#[case("a|b", "ax<esc>", "ab|x")]
#[case("  a|b", "Ix<esc>", "  |xab")]
#[case("|ab", "Ax<esc>", "ab|x")]
#[case("|a\nb", "ox<esc>", "a\n|x\nb")]
#[case("a\n|b", "Ox<esc>", "a\n|x\nb")]
#[case("|", "ox<esc>", "\n|x")]
#[case("|a", "3ix<esc>", "xx|xa")]
#[case("|a", "2ox<esc>", "a\nx\n|x")]
#[case("|ab", "ix<esc>$giy<esc>", "x|yab")]
#[case("|ab", "ix<c-j>y<esc>", "x\n|yab")]
#[case("|one", "A two<c-w>x<esc>", "one |x")]
// Yanking and putting
#[case("|one two", "ywP", "one| one two")]
#[case("|ab", "ylp", "a|ab")]
#[case("|ab", "yl3p", "aaa|ab")]
#[case("|a\nb", "yyp", "a\n|a\nb")]
#[case("a\n|b", "yyP", "a\n|b\nb")]
#[case("|a\nb", "yyjp", "a\nb\n|a")]
#[case("|a\nb", "Y2p", "a\n|a\na\nb")]
#[case("|ab", "xp", "b|a")]
#[case("|a\nb", "ddp", "b\n|a")]
#[case("one tw|o", "yb", "one |two")]
#[case("a\nb|b", "yk", "|a\nbb")]
#[case("|ab", "\"ayl\"byl$\"ap", "ab|a")]
#[case("|ab", "\"aylx\"ap", "b|a")]
#[case("|ab", "\"ayll\"Ayl\"ap", "aba|b")]
#[case("|a\nb", "\"ayyj\"Ayy\"ap", "a\nb\n|a\nb")]
#[case("|ab", "ylx$\"0p", "b|a")]
#[case("|ab", "yl\"_xp", "b|a")]
#[case("|ab", "p", "|ab")]
// Objects
#[case("one t|wo three", "diw", "one | three")]
#[case("one t|wo three", "daw", "one |three")]
#[case("one t|wo", "daw", "on|e")]
#[case("one |  two", "diw", "one|two")]
#[case("a.b| c", "diW", "a.b|c")]
#[case("x a.|b c", "diW", "x | c")]
#[case("x a.|b c", "daW", "x |c")]
#[case("a |b c d", "d2aw", "a |d")]
#[case("say \"h|i\" x", "di\"", "say \"|\" x")]
#[case("say \"h|i\" x", "da\"", "say |x")]
#[case("s|ay \"hi\"", "di\"", "say \"|\"")]
#[case("x '|a' y", "di'", "x '|' y")]
#[case("x `|a` y", "ci`b<esc>", "x `|b` y")]
#[case("x \"a\\\"|b\" y", "di\"", "x \"|\" y")]
#[case("f(a, (|b))", "di(", "f(a, (|))")]
#[case("f(a, (|b))", "2dib", "f(|)")]
#[case("f(a, (|b))", "da(", "f(a, |)")]
#[case("f(|a)", "dib", "f(|)")]
#[case("[|a]", "di[", "[|]")]
#[case("{|a}", "diB", "{|}")]
#[case("x {\n  |a\n  b\n}", "di{", "x {\n|}")]
#[case("<|a>", "di<lt>", "<|>")]
#[case("a\n|b\nc\n\nd", "dip", "|\nd")]
#[case("a\n|b\n\nd", "dap", "|d")]
#[case("a\n\n|b", "dap", "|a")]
#[case("<a><b>x|y</b></a>", "dit", "<a><b>|</b></a>")]
#[case("<a><b>x|y</b></a>", "2dit", "<a>|</a>")]
#[case("<a><b>x|y</b></a>", "dat", "<a>|</a>")]
#[case("One. T|wo. Three", "dis", "One. | Three")]
#[case("One. T|wo. Three", "das", "One. |Three")]
#[case("no|ne", "di(", "no|ne")]
// Selecting
#[case("|abcd", "vld", "|cd")]
#[case("ab|cd", "vhd", "a|d")]
#[case("a\n|b\nc", "Vd", "a\n|c")]
#[case("|a\nb\nc", "Vjd", "|c")]
#[case("|abcd", "vlcx<esc>", "|xcd")]
#[case("|abcd", "vly$p", "abcda|b")]
#[case("a|bcd", "vlohd", "|d")]
#[case("|abcd", "vl~", "|ABcd")]
#[case("|aBcd", "vlU", "|ABcd")]
#[case("|ABcd", "vlu", "|abcd")]
#[case("|abcd", "vlrx", "|xxcd")]
#[case("|a\nb", "VjJ", "a| b")]
#[case("|a\nb", "Vj>", "    |a\n    b")]
#[case("one t|wo x", "viwd", "one | x")]
#[case("f(a|b)", "vi(d", "f(|)")]
#[case("|ab cd", "ylwviwp", "ab |a")]
#[case("|abc", "v<esc>x", "|bc")]
#[case("|abc\nd", "vVd", "|d")]
#[case("|a\nb\nc", "vjDp", "c\n|a\nb")]
// Undo and repeating
#[case("|abc", "xxu", "|bc")]
#[case("|abc", "xxuu", "|abc")]
#[case("|abc", "xx2u", "|abc")]
#[case("|abc", "xxuu<c-r>", "|bc")]
#[case("|a", "ione two<esc>u", "|a")]
#[case("|a b", "cwx y<esc>u", "|a b")]
#[case("|abcd", "x.", "|cd")]
#[case("|abcdef", "2x.", "|ef")]
#[case("|abcdefg", "2x3.", "|fg")]
#[case("|one two", "cwx<esc>w.", "x |x")]
#[case("|a b", "ix<esc>w.", "xa |xb")]
#[case("|a", "ox<esc>.", "a\nx\n|x")]
#[case("|ab", "3ix<esc>.", "xxxx|xxab")]
#[case("|a\nb\nc\nd", "dd.", "|c\nd")]
#[case("|a\nb", ">>j.", "    a\n    |b")]
#[case("|abcdef", "vld.", "|ef")]
#[case("|a\nb\nc\nd\ne", "Vjd.", "|e")]
#[case("|abcd", "rxl.", "x|xcd")]
#[case("|(a) (b)", "lci(x<esc>f(.", "(x) (|x)")]
#[case("|ab", "ylp.", "aa|ab")]
#[case("|abcd", "Rxy<esc>l.", "xyx|y")]
#[case("|a", "Aone<left>x<esc>u", "aon|e")]
fn keys_do_what_manuals_say(#[case] from: &str, #[case] keys: &str, #[case] to: &str) {
    let mut editor = normal(from);
    press(&mut editor, keys);
    assert_eq!(marked(&editor), to);
}

#[rstest]
#[case("d", ViState::OperatorPending("d".to_owned()))]
#[case("2d3", ViState::OperatorPending("2d3".to_owned()))]
#[case("d<esc>", ViState::Normal)]
#[case("/ab", ViState::Search("/ab".to_owned()))]
#[case("d?a", ViState::Search("?a".to_owned()))]
#[case("/<bs>", ViState::Normal)]
#[case("v", ViState::Visual)]
#[case("V", ViState::VisualLine)]
#[case("vv", ViState::Normal)]
#[case("R", ViState::Replace)]
#[case("i", ViState::Insert)]
#[case("cw", ViState::Insert)]
#[case("dw", ViState::Normal)]
fn the_state_is_told(#[case] keys: &str, #[case] state: ViState) {
    let mut editor = normal("|one two");
    press(&mut editor, keys);
    assert_eq!(editor.vi_state(), Some(state));
}

#[rstest]
#[case("<cr>", Pressed::Submit)]
#[case("i<cr>", Pressed::Submit)]
#[case("<esc>", Pressed::Ignored)]
#[case(":", Pressed::Ignored)]
#[case("j", Pressed::Command(ViCommand::Newer))]
#[case("k", Pressed::Command(ViCommand::Older))]
#[case("<up>", Pressed::Ignored)]
#[case("<down>", Pressed::Ignored)]
#[case("\"+yw", Pressed::Command(ViCommand::Copy("one ".to_owned())))]
#[case("\"+yy", Pressed::Command(ViCommand::Copy("one two\n".to_owned())))]
#[case("u", Pressed::Changed)]
#[case("uu", Pressed::Rang)]
#[case("Q", Pressed::Rang)]
#[case("dQ", Pressed::Rang)]
#[case("d", Pressed::Moved)]
#[case("x", Pressed::Changed)]
#[case("<c-j>", Pressed::Changed)]
#[case("dj", Pressed::Rang)]
fn what_a_key_did_is_told(#[case] keys: &str, #[case] expected: Pressed) {
    let mut editor = normal("|one two");
    assert_eq!(press(&mut editor, keys), expected);
}

#[test]
fn a_chip_is_one_place_for_every_command() {
    let long = "line\n".repeat(20);
    let chip = "[Pasted #1, 20 lines]";
    let with_chip = || {
        let mut editor = Editor::new(KeySet::Vi);
        editor.insert("ab ");
        editor.paste(&long);
        editor.insert(" c");
        press(&mut editor, "<esc>0");
        editor
    };
    for (keys, text) in [
        ("wx", "ab  c".to_owned()),
        ("2dw", "c".to_owned()),
        ("dfc", String::new()),
        ("wdiw", "ab  c".to_owned()),
        ("wylP", format!("ab {chip}{chip} c")),
        ("wvlrx", "ab xxc".to_owned()),
        ("gUU", format!("AB {chip} C")),
        ("wxu", format!("ab {chip} c")),
        ("dw$p", format!("{chip} cab ")),
    ] {
        let mut editor = with_chip();
        press(&mut editor, keys);
        assert_eq!(editor.text(), text, "{keys}");
    }
    let mut editor = with_chip();
    assert_eq!(
        press(&mut editor, "w\"+yl"),
        Pressed::Command(ViCommand::Copy(long))
    );
}

#[test]
fn taking_the_draft_ends_every_mode() {
    let mut editor = normal("|one");
    press(&mut editor, "d");
    editor.take();
    assert_eq!(editor.vi_state(), Some(ViState::Insert));
    press(&mut editor, "x");
    assert_eq!(editor.text(), "x");
    editor.undo();
    editor.undo();
    assert_eq!(editor.text(), "one");
}

#[test]
fn a_paste_is_repeated_with_what_was_typed() {
    let mut editor = normal("|z");
    press(&mut editor, "ia");
    editor.paste("-b-");
    press(&mut editor, "c<esc>.");
    assert_eq!(editor.text(), "a-b-a-b-ccz");
}

#[rstest]
#[case("9999999ix<esc>", 7 + 9_999)]
#[case("ix<esc>9999.", 7 + 1 + 9_999)]
#[case("yy9999p", 8 * 10_000 - 1)]
#[case("yy99p9999J", 8 * 100 - 1)]
#[case("9999w", 7)]
#[case("9999x", 0)]
#[case("x9999u", 0)]
#[case("99999999999999999999l", 7)]
fn large_counts_end(#[case] keys: &str, #[case] length: usize) {
    let mut editor = normal("|one two");
    press(&mut editor, keys);
    assert_eq!(editor.text().len(), length);
}

#[test]
fn no_command_makes_a_text_too_long() {
    let mut editor = Editor::new(KeySet::Vi);
    editor.insert(&"x".repeat(1 << 20));
    press(&mut editor, "<esc>yy9999p");
    assert!(editor.text().len() <= crate::buffer::MOST_BYTES);
}
