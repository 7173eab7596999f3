//! What the keys of the editor do, one by one.

use caliban_compose::{Atom, Editor, Expanded, ImageAtom, KeySet, Look, Piece, Pressed, flatten};
use caliban_terminal::{Key, KeyCode, Modifiers};
use rstest::rstest;

/// Keys as they are written in manuals: `C-a`, `M-b`, `S-left`, `esc`, or a character as it is.
fn key(written: &str) -> Key {
    let (modifiers, name) = match written.split_once('-') {
        Some(("C", name)) => (Modifiers::CTRL, name),
        Some(("M", name)) => (Modifiers::ALT, name),
        Some(("S", name)) => (Modifiers::SHIFT, name),
        _ => (Modifiers::none(), written),
    };
    let code = match name {
        "enter" => KeyCode::Enter,
        "tab" => KeyCode::Tab,
        "esc" => KeyCode::Esc,
        "bs" => KeyCode::Backspace,
        "del" => KeyCode::Delete,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "space" => KeyCode::Char(' '),
        name => KeyCode::Char(name.chars().next().unwrap_or(' ')),
    };
    Key { code, modifiers }
}

fn press(editor: &mut Editor, written: &str) -> Pressed {
    let pressed = written.split(' ').map(|written| editor.press(key(written)));
    pressed.last().unwrap_or(Pressed::Ignored)
}

/// An editor with a text in which `|` is before the caret.
fn emacs(marked: &str) -> Editor {
    let mut editor = Editor::new(KeySet::Emacs);
    editor.set_text(&marked.replacen('|', "", 1));
    editor.set_caret(marked.find('|').unwrap_or(marked.len()));
    editor
}

fn marked(editor: &Editor) -> String {
    let mut text = editor.text();
    text.insert(editor.caret(), '|');
    text
}

#[rstest]
#[case("|", "h i", "hi|")]
#[case("one\ntw|o", "C-a", "one\n|two")]
#[case("o|ne\ntwo", "C-e", "one|\ntwo")]
#[case("o|ne", "home", "|one")]
#[case("o|ne", "end", "one|")]
#[case("a\nb|", "C-home", "|a\nb")]
#[case("|a\nb", "C-end", "a\nb|")]
#[case("|abc", "C-f", "a|bc")]
#[case("|e\u{301}x", "right", "e\u{301}|x")]
#[case("|one, two", "M-f", "one|, two")]
#[case("one|, two", "M-f", "one, two|")]
#[case("one, two|", "M-b", "one, |two")]
#[case("one, two|", "C-left C-left", "|one, two")]
#[case("|one two", "M-right", "one| two")]
#[case("on|e two", "C-k", "on|")]
#[case("one|\ntwo", "C-k", "one|two")]
#[case("one\ntw|o", "C-u", "one\n|o")]
#[case("one\n|two", "C-u", "one|two")]
#[case("one two.three|", "C-w", "one |")]
#[case("one two.three|", "M-bs", "one two.|")]
#[case("|one two", "M-d", "| two")]
#[case("one two|", "C-w C-w C-y", "one two|")]
#[case("one two|", "C-w left C-w C-y", "one| ")]
#[case("a b c|", "C-w left C-w C-y M-y", "a c| ")]
#[case("one two|", "C-a C-k C-y C-y", "one twoone two|")]
#[case("|abc", "C-d", "|bc")]
#[case("ab|c", "C-h", "a|c")]
#[case("ab|c", "bs", "a|c")]
#[case("ab|c", "del", "ab|")]
#[case("ab|c", "C-t", "acb|")]
#[case("abc|", "C-t", "acb|")]
#[case("|abc", "C-t", "|abc")]
#[case("|one two", "M-u", "ONE| two")]
#[case("|ONE two", "M-l", "one| two")]
#[case("| oNE two", "M-c", " One| two")]
#[case("one|", "S-enter", "one\n|")]
#[case("one|", "M-enter", "one\n|")]
#[case("one|", "C-j", "one\n|")]
#[case("one\\|", "enter", "one\n|")]
#[case("o\\|ne", "enter", "o\n|ne")]
#[case("a|bcd", "S-right S-right x", "ax|d")]
#[case("a|bcd", "S-right S-right bs", "a|d")]
#[case("a|bcd", "S-right S-right left", "a|bcd")]
#[case("a|bcd", "S-right S-right right", "abc|d")]
#[case("a|bcd", "S-right S-right C-w C-e C-y", "adbc|")]
#[case("a|bcd", "S-end C-y", "abcd|")]
#[case("ab|\ncd", "S-down bs", "ab|")]
#[case("ab\ncd|", "up", "ab|\ncd")]
#[case("abc\nd\nef|g", "up up", "ab|c\nd\nefg")]
#[case("|", "a b space c d C-_", "ab |")]
#[case("|", "a b space c d C-_ C-_", "|")]
#[case("|", "a b space c d C-_ C-7 M-_", "ab |")]
#[case("abc|", "bs bs C-_", "abc|")]
#[case("abc|", "bs x C-_ C--", "abc|")]
#[case("abc|", "C-u C-_", "abc|")]
fn keys_do_what_shells_do(#[case] from: &str, #[case] keys: &str, #[case] to: &str) {
    let mut editor = emacs(from);
    press(&mut editor, keys);
    assert_eq!(marked(&editor), to);
}

#[rstest]
#[case("a|", "enter", Pressed::Submit)]
#[case("|", "enter", Pressed::Submit)]
#[case("|", "C-d", Pressed::Ignored)]
#[case("a|", "C-d", Pressed::Rang)]
#[case("a|", "tab", Pressed::Ignored)]
#[case("a|", "esc", Pressed::Ignored)]
#[case("|a", "S-right esc", Pressed::Moved)]
#[case("a|", "C-b", Pressed::Ignored)]
#[case("a|", "C-z", Pressed::Ignored)]
#[case("a|", "C-c", Pressed::Ignored)]
#[case("a|", "C-x", Pressed::Ignored)]
#[case("a|", "up", Pressed::Ignored)]
#[case("a|", "down", Pressed::Ignored)]
#[case("a\nb|", "up", Pressed::Moved)]
#[case("|a", "left", Pressed::Rang)]
#[case("|a", "bs", Pressed::Rang)]
#[case("a|", "C-k", Pressed::Rang)]
#[case("a|", "C-y", Pressed::Rang)]
#[case("a|", "M-y", Pressed::Rang)]
#[case("a|", "C-_ C-_", Pressed::Rang)]
#[case("a|", "x", Pressed::Changed)]
fn what_a_key_did_is_told(#[case] from: &str, #[case] keys: &str, #[case] expected: Pressed) {
    assert_eq!(press(&mut emacs(from), keys), expected);
}

#[rstest]
#[case(10, 5, "")]
#[case(11, 5, "[Pasted #1, 11 lines]")]
#[case(1, 1_000, "")]
#[case(1, 1_001, "[Pasted #1, 1001 characters]")]
fn a_long_paste_is_a_chip(#[case] lines: usize, #[case] columns: usize, #[case] label: &str) {
    let text = vec!["ä".repeat(columns); lines].join("\r\n");
    let held = text.replace('\r', "");
    let mut editor = emacs("|");
    editor.paste(&text);
    let shown = if label.is_empty() { &*held } else { label };
    assert_eq!(editor.text(), shown);
    assert_eq!(flatten(&editor.pieces()), held);
    assert_eq!(editor.undo(), Pressed::Changed);
    assert!(editor.is_empty());
}

#[test]
fn a_chip_is_one_place_for_keys() {
    let long = "x\n".repeat(12);
    let mut editor = emacs("|");
    editor.insert("a");
    editor.paste(&long);
    editor.insert("b");
    assert_eq!(editor.text(), "a[Pasted #1, 12 lines]b");
    press(&mut editor, "left left");
    assert_eq!(editor.before_caret(), "a");
    press(&mut editor, "del");
    assert_eq!(editor.text(), "ab");
    press(&mut editor, "C-_ C-e C-u C-y C-y");
    let chip = "a[Pasted #1, 12 lines]b";
    assert_eq!(editor.text(), format!("{chip}{chip}"));
    let texts = editor.pieces().into_iter().map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::Atom { number, atom } => {
            assert_eq!((number, atom), (1, Atom::Paste(long.as_str().into())));
            String::new()
        }
    });
    assert_eq!(texts.collect::<String>(), "abab");
}

#[test]
fn a_chip_is_expanded_where_the_caret_is() {
    let long = "x\n".repeat(12);
    let mut editor = emacs("|");
    assert_eq!(editor.expand_atom_at_caret(), Expanded::NoChip);
    editor.paste(&long);
    assert_eq!(editor.expand_atom_at_caret(), Expanded::Done);
    assert_eq!(editor.text(), long);
    editor.undo();
    editor.set_caret(0);
    assert_eq!(editor.expand_atom_at_caret(), Expanded::Done);
    assert_eq!(editor.text(), long);
}

#[test]
fn what_was_taken_comes_back_with_its_chips() {
    let mut editor = emacs("|");
    let image = Atom::Image(ImageAtom {
        media_type: "image/png".into(),
        data: [1, 2, 3].into(),
        label: "2×2".into(),
    });
    editor.insert_atom(image);
    editor.insert(" and ");
    editor.insert_atom(Atom::File("src/main.rs".into()));
    assert_eq!(editor.text(), "[Image #1 2×2] and @src/main.rs");
    let taken = editor.take();
    assert!(editor.is_empty());
    editor.undo();
    assert_eq!(editor.pieces(), taken);
    editor.clear();
    editor.set_pieces(taken.clone());
    assert_eq!(editor.pieces(), taken);
    let mut other = emacs("|");
    other.set_pieces(taken.clone());
    assert_eq!(other.pieces(), taken);
}

#[rstest]
#[case("see @src/ma|in.rs now", Some((4, 16, "@src/main.rs", 7)))]
#[case("see |", None)]
#[case("/he|", Some((0, 3, "/he", 3)))]
#[case("a\n@b|", Some((2, 4, "@b", 2)))]
fn the_word_at_the_caret_is_known(
    #[case] from: &str,
    #[case] expected: Option<(usize, usize, &str, usize)>,
) {
    let word = emacs(from).word_at_caret();
    let word = word.as_ref();
    let found = word.map(|word| (word.range.start, word.range.end, &*word.text, word.caret));
    assert_eq!(found, expected);
}

#[test]
fn a_word_is_replaced_around_chips() {
    let mut editor = emacs("|");
    editor.paste(&"x\n".repeat(12));
    editor.insert("@ma and more");
    editor.set_caret(editor.text().find(" and").unwrap());
    let word = editor.word_at_caret().unwrap();
    editor.replace(word.range, "@main.rs");
    assert_eq!(marked(&editor), "[Pasted #1, 12 lines]@main.rs| and more");
}

#[test]
fn a_layout_shows_chips_and_what_is_selected() {
    let mut editor = emacs("|");
    editor.insert("ab ");
    editor.paste(&"x\n".repeat(12));
    editor.set_caret(0);
    press(&mut editor, "S-right");
    let layout = editor.layout(40);
    assert_eq!(layout.caret, (1, 0));
    let expected = [
        ("a".to_owned(), Look::Selection),
        ("b ".to_owned(), Look::Text),
        ("[Pasted #1, 12 lines]".to_owned(), Look::Chip),
    ];
    assert_eq!(layout.rows[0].spans, expected);
    assert_eq!(editor.layout(10).rows.len(), 2);
    assert_eq!(editor.layout(10).rows[1].text(), "[Pasted …");
}

#[test]
fn up_and_down_go_by_the_rows_that_are_seen() {
    let mut editor = emacs("one two three|");
    editor.layout(9);
    assert!(editor.is_on_last_row() && !editor.is_on_first_row());
    assert_eq!(press(&mut editor, "up"), Pressed::Moved);
    assert_eq!(marked(&editor), "one t|wo three");
    assert_eq!(press(&mut editor, "up"), Pressed::Ignored);
    editor.layout(80);
    assert!(editor.is_on_last_row() && editor.is_on_first_row());
}

#[test]
fn hostile_text_is_shown_harmlessly() {
    let mut editor = emacs("|");
    editor.paste("a\u{1b}]52;c;x\u{7}\u{202e}b\u{9b}31m\tc");
    editor.insert(&format!("e{}", "\u{301}".repeat(500)));
    let shown: String = editor.layout(200).rows[0].text();
    assert!(shown.starts_with("a]52;c;x\u{fffd}b31m"));
    assert!(!shown.chars().any(char::is_control));
    assert!(shown.matches('\u{301}').count() < 20);
}

/// A pass over each of these that is not linear would not end while one waits.
#[test]
fn long_texts_take_no_time() {
    let flags = "\u{1f1e9}".repeat(20_000);
    let marks = "\u{301}".repeat(20_000);
    let word = "x".repeat(20_000);
    let brackets = "(".repeat(20_000);
    let tags = "<a></b>".repeat(4_000);
    let lines = "\n".repeat(20_000);
    for text in [flags, marks, word, brackets, tags, lines] {
        for keys in [KeySet::Emacs, KeySet::Vi] {
            let mut editor = Editor::new(keys);
            editor.insert(&text);
            editor.layout(80);
            press(&mut editor, "M-b M-f C-w C-y up down home end");
            press(
                &mut editor,
                "esc b e w 0 $ g g } { ( ) % v i t esc d i ( d i p",
            );
            press(&mut editor, "u 9 9 9 J u / x enter n N * d i w u g U i w u");
            press(&mut editor, "9 9 9 9 h 9 9 9 9 x u");
            editor.word_at_caret();
            assert!(editor.caret() <= editor.text().len());
        }
    }
}
