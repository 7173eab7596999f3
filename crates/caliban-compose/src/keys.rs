//! The keys of the editor, after emacs and shells. What is not here is the face's.

use caliban_terminal::{Key, KeyCode, Modifiers};

use crate::words::Words;

/// Which keys a text is edited with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySet {
    Emacs,
    Vi,
}

/// Where a key goes from the caret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    Left,
    Right,
    WordLeft(Words),
    WordRight,
    LineStart,
    LineEnd,
    Row(Vertical),
    TextStart,
    TextEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vertical {
    Up,
    Down,
}

impl Go {
    /// The way it goes by rows, if it does.
    pub(crate) fn vertical(self) -> Option<Vertical> {
        match self {
            Self::Row(vertical) => Some(vertical),
            Self::Left
            | Self::Right
            | Self::WordLeft(_)
            | Self::WordRight
            | Self::LineStart
            | Self::LineEnd
            | Self::TextStart
            | Self::TextEnd => None,
        }
    }
}

/// What becomes of the letters of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Upper,
    Lower,
    Capital,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Move(Go),
    Select(Go),
    Erase(Go),
    Kill(Go),
    Insert(char),
    Newline,
    Submit,
    Yank,
    YankPop,
    Transpose,
    Case(Case),
    Undo,
    Redo,
}

/// The modifiers of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    Nothing,
    Shift,
    Alt,
    Ctrl,
    CtrlShift,
    AltShift,
    Others,
}

impl With {
    pub(crate) fn of(key: Key) -> Self {
        let modifiers = key.modifiers;
        let held = |modifier| modifiers.contains(modifier);
        match (
            held(Modifiers::CTRL),
            held(Modifiers::ALT),
            held(Modifiers::SHIFT),
            held(Modifiers::SUPER),
        ) {
            (false, false, false, false) => Self::Nothing,
            (false, false, true, false) => Self::Shift,
            (false, true, false, false) => Self::Alt,
            (true, false, false, false) => Self::Ctrl,
            (true, false, true, false) => Self::CtrlShift,
            (false, true, true, false) => Self::AltShift,
            (true, true, _, _) | (_, _, _, true) => Self::Others,
        }
    }
}

/// What a key does while text is written; `None` for the keys of others.
pub(crate) fn action(key: Key) -> Option<Action> {
    let with = With::of(key);
    match (key.code, with) {
        (KeyCode::Char(c), With::Nothing | With::Shift) => Some(Action::Insert(c)),
        (KeyCode::Char(c), With::Ctrl | With::CtrlShift) => ctrl(c),
        (KeyCode::Char(c), With::Alt | With::AltShift) => alt(c),
        (KeyCode::Enter, With::Nothing) => Some(Action::Submit),
        (KeyCode::Enter, With::Shift | With::Alt | With::AltShift) => Some(Action::Newline),
        (KeyCode::Backspace, With::Nothing | With::Shift) => Some(Action::Erase(Go::Left)),
        (KeyCode::Backspace, With::Alt | With::Ctrl) => {
            Some(Action::Kill(Go::WordLeft(Words::Letters)))
        }
        (KeyCode::Delete, With::Nothing) => Some(Action::Erase(Go::Right)),
        (KeyCode::Delete, With::Alt | With::Ctrl) => Some(Action::Kill(Go::WordRight)),
        (code, with) => {
            let (go, select) = (
                go(code, with)?,
                matches!(with, With::Shift | With::CtrlShift | With::AltShift),
            );
            Some(if select {
                Action::Select(go)
            } else {
                Action::Move(go)
            })
        }
    }
}

fn go(code: KeyCode, with: With) -> Option<Go> {
    let far = match with {
        With::Nothing | With::Shift => false,
        With::Alt | With::Ctrl | With::CtrlShift | With::AltShift => true,
        With::Others => return None,
    };
    match (code, far) {
        (KeyCode::Left, false) => Some(Go::Left),
        (KeyCode::Right, false) => Some(Go::Right),
        (KeyCode::Left, true) => Some(Go::WordLeft(Words::Letters)),
        (KeyCode::Right, true) => Some(Go::WordRight),
        (KeyCode::Up, false) => Some(Go::Row(Vertical::Up)),
        (KeyCode::Down, false) => Some(Go::Row(Vertical::Down)),
        (KeyCode::Home, false) => Some(Go::LineStart),
        (KeyCode::End, false) => Some(Go::LineEnd),
        (KeyCode::Home, true) => Some(Go::TextStart),
        (KeyCode::End, true) => Some(Go::TextEnd),
        (
            KeyCode::Char(_)
            | KeyCode::Enter
            | KeyCode::Tab
            | KeyCode::BackTab
            | KeyCode::Backspace
            | KeyCode::Delete
            | KeyCode::Insert
            | KeyCode::Esc
            | KeyCode::Up
            | KeyCode::Down
            | KeyCode::PageUp
            | KeyCode::PageDown
            | KeyCode::F(_),
            _,
        ) => None,
    }
}

fn ctrl(c: char) -> Option<Action> {
    Some(match c {
        'a' => Action::Move(Go::LineStart),
        'e' => Action::Move(Go::LineEnd),
        'f' => Action::Move(Go::Right),
        'k' => Action::Kill(Go::LineEnd),
        'u' => Action::Kill(Go::LineStart),
        'w' => Action::Kill(Go::WordLeft(Words::Unbroken)),
        'y' => Action::Yank,
        'd' => Action::Erase(Go::Right),
        'h' => Action::Erase(Go::Left),
        't' => Action::Transpose,
        'j' => Action::Newline,
        // One byte on the wire, named differently by terminals.
        '_' | '-' | '7' | '/' => Action::Undo,
        _ => return None,
    })
}

fn alt(c: char) -> Option<Action> {
    Some(match c {
        'b' => Action::Move(Go::WordLeft(Words::Letters)),
        'f' => Action::Move(Go::WordRight),
        'd' => Action::Kill(Go::WordRight),
        'y' => Action::YankPop,
        'u' => Action::Case(Case::Upper),
        'l' => Action::Case(Case::Lower),
        'c' => Action::Case(Case::Capital),
        '<' => Action::Move(Go::TextStart),
        '>' => Action::Move(Go::TextEnd),
        '_' => Action::Redo,
        _ => return None,
    })
}
