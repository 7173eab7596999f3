//! The editor against a naive one, and what holds whatever is pressed.

use caliban_compose::{Editor, KeySet, Pressed};
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::width;
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation as _;

/// A paste that becomes a chip, and the character that stands for it in the naive text.
const LONG: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11";
const CHIP: char = '\u{fdd0}';

#[derive(Debug, Clone, Copy)]
enum Op {
    Type(char),
    Paste,
    Erase,
    Delete,
    Left,
    Right,
    Home,
    End,
    KillRest,
    KillStart,
    KillWord,
    Yank,
    Transpose,
}

/// A list of characters and a caret; all is computed anew each time.
#[derive(Debug, Default)]
struct Naive {
    chars: Vec<char>,
    caret: usize,
    kill: Vec<char>,
    joins: bool,
}

impl Naive {
    /// All boundaries between clusters.
    fn boundaries(&self) -> Vec<usize> {
        let mut all = vec![0];
        let mut from = 0;
        for piece in self.chars.split_inclusive(|c| matches!(*c, CHIP | '\n')) {
            let (body, end) = match piece.split_last() {
                Some((&(CHIP | '\n'), body)) => (body, 1),
                _ => (piece, 0),
            };
            let body: String = body.iter().collect();
            for cluster in body.graphemes(true) {
                from += cluster.chars().count();
                all.push(from);
            }
            from += end;
            all.push(from);
        }
        all.dedup();
        all
    }

    fn before(&self) -> usize {
        let all = self.boundaries();
        all.into_iter().rfind(|&at| at < self.caret).unwrap_or(0)
    }

    fn after(&self) -> usize {
        let mut all = self.boundaries().into_iter();
        all.find(|&at| at > self.caret).unwrap_or(self.chars.len())
    }

    fn start(&self) -> usize {
        let before = &self.chars[..self.caret];
        before
            .iter()
            .rposition(|&c| c == '\n')
            .map_or(0, |at| at + 1)
    }

    fn end(&self) -> usize {
        let found = self.chars[self.caret..].iter().position(|&c| c == '\n');
        found.map_or(self.chars.len(), |at| self.caret + at)
    }

    fn replace(&mut self, from: usize, to: usize, with: &[char]) {
        self.chars.splice(from..to, with.iter().copied());
        let caret = from + with.len();
        let all = self.boundaries();
        self.caret = all.into_iter().find(|&at| at >= caret).unwrap_or(0);
    }

    fn kill(&mut self, from: usize, to: usize, joins: bool) {
        if from == to {
            return;
        }
        let killed = self.chars[from..to].to_vec();
        let is_before = to == self.caret;
        self.kill = match (joins, is_before) {
            (true, true) => [killed, self.kill.clone()].concat(),
            (true, false) => [self.kill.clone(), killed].concat(),
            (false, _) => killed,
        };
        self.replace(from, to, &[]);
        self.joins = true;
    }

    fn apply(&mut self, op: Op) {
        let joins = std::mem::take(&mut self.joins);
        let caret = self.caret;
        match op {
            Op::Type(c) => self.replace(caret, caret, &[c]),
            Op::Paste => self.replace(caret, caret, &[CHIP]),
            Op::Erase => self.replace(self.before(), caret, &[]),
            Op::Delete => self.replace(caret, self.after(), &[]),
            Op::Left => self.caret = self.before(),
            Op::Right => self.caret = self.after(),
            Op::Home => self.caret = self.start(),
            Op::End => self.caret = self.end(),
            Op::KillRest => match self.end() {
                end if end == caret => self.kill(caret, self.after(), joins),
                end => self.kill(caret, end, joins),
            },
            Op::KillStart => match self.start() {
                start if start == caret => self.kill(self.before(), caret, joins),
                start => self.kill(start, caret, joins),
            },
            Op::KillWord => self.kill(self.word_start(), caret, joins),
            Op::Yank => {
                let kill = self.kill.clone();
                self.replace(caret, caret, &kill);
            }
            Op::Transpose => {
                let whole = (caret, self.start());
                if caret == self.end() {
                    self.caret = self.before();
                }
                let (from, middle, to) = (self.before(), self.caret, self.after());
                self.caret = caret;
                if middle > whole.1 {
                    let swapped = [&self.chars[middle..to], &self.chars[from..middle]].concat();
                    self.replace(from, to, &swapped);
                }
            }
        }
    }

    fn word_start(&self) -> usize {
        let mut at = self.caret;
        let all = self.boundaries();
        let step = |at: usize| all.iter().rfind(|&&other| other < at).copied();
        let is_blank = |at: usize| self.chars[at].is_whitespace();
        while let Some(before) = step(at).filter(|&before| is_blank(before)) {
            at = before;
        }
        let mut is_first = true;
        while let Some(before) = step(at).filter(|&before| !is_blank(before)) {
            let is_chip = self.chars[before] == CHIP;
            if is_chip && !is_first {
                break;
            }
            at = before;
            is_first = false;
            if is_chip {
                break;
            }
        }
        at
    }
}

/// A naive text, its chips without what tells them apart.
fn shown(chars: &[char]) -> String {
    chars.iter().collect::<String>().replace(CHIP, "[]")
}

fn keys_of(op: Op) -> Option<Key> {
    Some(match op {
        Op::Type('\n') => Key::ctrl('j'),
        Op::Type(c) => Key::plain(KeyCode::Char(c)),
        Op::Paste => return None,
        Op::Erase => Key::plain(KeyCode::Backspace),
        Op::Delete => Key::plain(KeyCode::Delete),
        Op::Left => Key::plain(KeyCode::Left),
        Op::Right => Key::plain(KeyCode::Right),
        Op::Home => Key::ctrl('a'),
        Op::End => Key::ctrl('e'),
        Op::KillRest => Key::ctrl('k'),
        Op::KillStart => Key::ctrl('u'),
        Op::KillWord => Key::ctrl('w'),
        Op::Yank => Key::ctrl('y'),
        Op::Transpose => Key::ctrl('t'),
    })
}

/// Letters, blanks, and what joins with its neighbours.
fn letters() -> impl Strategy<Value = char> {
    prop::sample::select(vec![
        'a', 'b', 'Z', '.', ' ', ' ', '\n', '\t', 'ä', '日', '\u{301}', '\u{200d}', '\u{600}',
        '👩', '🇩', '🇪', '\u{fe0f}', '\\', '(', ')', '"', '<', '>',
    ])
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => letters().prop_map(Op::Type),
        1 => Just(Op::Paste),
        8 => prop::sample::select(vec![
            Op::Erase, Op::Delete, Op::Left, Op::Left, Op::Right, Op::Home, Op::End, Op::KillRest,
            Op::KillStart, Op::KillWord, Op::Yank, Op::Transpose,
        ]),
    ];
    prop::collection::vec(op, 0..60)
}

/// Any key at all, those that mean something more often.
fn any_key() -> impl Strategy<Value = Key> {
    let codes = vec![
        KeyCode::Enter,
        KeyCode::Tab,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::F(1),
    ];
    let code = prop_oneof![
        4 => letters().prop_map(KeyCode::Char),
        8 => "[!-~ ]".prop_map(|c| KeyCode::Char(c.chars().next().unwrap_or('x'))),
        3 => prop::sample::select(codes),
    ];
    let modifiers = prop_oneof![
        8 => Just(Modifiers::none()),
        1 => Just(Modifiers::SHIFT),
        1 => Just(Modifiers::CTRL),
        1 => Just(Modifiers::ALT),
    ];
    (code, modifiers).prop_map(|(code, modifiers)| Key { code, modifiers })
}

#[derive(Debug, Clone)]
enum Input {
    Key(Key),
    Paste(&'static str),
    Caret(usize),
    Layout(u16),
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let input = prop_oneof![
        30 => any_key().prop_map(Input::Key),
        2 => prop::sample::select(vec![LONG, "one two\nthree (four) \"five\"", "x"])
            .prop_map(Input::Paste),
        1 => (0_usize..60).prop_map(Input::Caret),
        1 => (0_u16..30).prop_map(Input::Layout),
    ];
    prop::collection::vec(input, 0..120)
}

fn give(editor: &mut Editor, input: &Input) {
    match input {
        Input::Key(key) => {
            editor.press(*key);
        }
        Input::Paste(text) => editor.paste(text),
        Input::Caret(at) => editor.set_caret(*at),
        Input::Layout(width) => {
            editor.layout(*width);
        }
    }
}

fn check(editor: &Editor, columns: u16) -> Result<(), TestCaseError> {
    let text = editor.text();
    let caret = editor.caret();
    prop_assert!(text.is_char_boundary(caret));
    prop_assert_eq!(&text[..caret], editor.before_caret());
    let layout = editor.layout(columns);
    let (column, row) = layout.caret;
    prop_assert!(usize::from(row) < layout.rows.len());
    prop_assert!(column < columns.max(1));
    for row in &layout.rows {
        prop_assert!(
            width(&row.text()) <= usize::from(columns).max(1),
            "{:?}",
            row
        );
        prop_assert!(!row.text().chars().any(char::is_control));
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_editor_does_what_a_naive_one_does(ops in ops()) {
        let mut editor = Editor::new(KeySet::Emacs);
        let mut naive = Naive::default();
        for op in ops {
            match keys_of(op) {
                Some(key) => {
                    editor.press(key);
                }
                None => editor.paste(LONG),
            }
            naive.apply(op);
            // Chips are told apart by their numbers, which the naive text does not know.
            let plain = |text: String| {
                let mut parts = text.split("[Pasted #");
                let first = parts.next().unwrap_or_default().to_owned();
                parts.fold(first, |text, part| {
                    let rest = part.split_once(']').map_or(part, |(_, rest)| rest);
                    text + "[]" + rest
                })
            };
            prop_assert_eq!(plain(editor.text()), shown(&naive.chars));
            let before = shown(&naive.chars[..naive.caret]);
            prop_assert_eq!(plain(editor.before_caret()), before);
        }
    }

    #[test]
    fn undoing_all_gives_the_beginning_and_redoing_all_the_end(
        inputs in inputs(),
        vi in any::<bool>(),
    ) {
        let mut editor = Editor::new(if vi { KeySet::Vi } else { KeySet::Emacs });
        for input in &inputs {
            give(&mut editor, input);
        }
        while editor.redo() == Pressed::Changed {}
        let end = editor.text();
        while editor.undo() == Pressed::Changed {}
        prop_assert_eq!(editor.text(), "");
        while editor.redo() == Pressed::Changed {}
        prop_assert_eq!(editor.text(), end);
    }

    #[test]
    fn whatever_is_pressed_the_caret_has_a_place(
        inputs in inputs(),
        vi in any::<bool>(),
        columns in 0_u16..40,
    ) {
        let mut editor = Editor::new(if vi { KeySet::Vi } else { KeySet::Emacs });
        for input in &inputs {
            give(&mut editor, input);
            check(&editor, columns)?;
            let pieces = editor.pieces();
            let at_caret = editor.word_at_caret();
            if let Some(word) = at_caret {
                prop_assert_eq!(&editor.text()[word.range], word.text);
            }
            let mut other = Editor::new(KeySet::Emacs);
            other.set_pieces(pieces);
            prop_assert_eq!(other.text(), editor.text());
        }
    }

    #[test]
    fn setting_the_caret_and_telling_it_agree(inputs in inputs(), at in 0_usize..200) {
        let mut editor = Editor::new(KeySet::Emacs);
        for input in &inputs {
            give(&mut editor, input);
        }
        editor.set_caret(at);
        let caret = editor.caret();
        editor.set_caret(caret);
        prop_assert_eq!(editor.caret(), caret);
    }
}
