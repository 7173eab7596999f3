//! What the keys of the editor do.

use caliban_terminal::{Key, KeyCode};

use crate::editor::{Editor, Pressed};
use crate::keys::{Action, Case, Go, Vertical, action};
use crate::kill::{Follows, Side};
use crate::text::{line_end, line_start, next, prev};
use crate::undo::Kind;
use crate::words::{Words, word_end, word_start};
use crate::wrap::row_of;

/// What the key before did, where it matters to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Last {
    Kill,
    /// It put a kill here.
    Yank(std::ops::Range<usize>),
    Else,
}

impl Editor {
    pub(crate) fn press_plain(&mut self, key: Key) -> Pressed {
        match action(key) {
            Some(action) => self.act(action),
            None if key.code == KeyCode::Esc && self.anchor.take().is_some() => Pressed::Moved,
            None => Pressed::Ignored,
        }
    }

    pub(crate) fn act(&mut self, action: Action) -> Pressed {
        let last = std::mem::replace(&mut self.last, Last::Else);
        let goal = self.goal.take();
        match action {
            Action::Move(go) => self.move_by(go, goal),
            Action::Select(go) => self.select_by(go, goal),
            Action::Erase(go) => self.erase(go),
            Action::Kill(go) => self.kill(go, &last),
            Action::Insert(c) => self.type_in(c),
            Action::Newline => self.type_in('\n'),
            Action::Submit => self.submit(),
            Action::Yank => self.yank(),
            Action::YankPop => self.yank_pop(last),
            Action::Transpose => self.transpose(),
            Action::Case(case) => self.change_case(case),
            Action::Undo => self.undo(),
            Action::Redo => self.redo(),
        }
    }

    /// Where a key goes; `None` where there is no such place.
    fn target(&mut self, go: Go, goal: Option<usize>) -> Option<usize> {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let at = match go {
            Go::Left => prev(text, caret),
            Go::Right => next(text, caret),
            Go::WordLeft(words) => word_start(text, caret, words),
            Go::WordRight => word_end(text, caret, Words::Letters),
            // Being at the end of a line is no failure.
            Go::LineStart => return Some(line_start(text, caret)),
            Go::LineEnd => return Some(line_end(text, caret)),
            Go::TextStart => return Some(0),
            Go::TextEnd => return Some(text.len()),
            Go::Row(vertical) => return self.row_target(vertical, goal),
        };
        (at != caret).then_some(at)
    }

    fn row_target(&mut self, vertical: Vertical, goal: Option<usize>) -> Option<usize> {
        let wrapping = self.wrapping();
        let rows = wrapping.rows();
        let here = row_of(&rows, self.buffer.caret());
        let there = match vertical {
            Vertical::Up => here.checked_sub(1)?,
            Vertical::Down => here + 1,
        };
        let row = *rows.get(there)?;
        let column = goal.unwrap_or_else(|| wrapping.column(rows[here].start, self.buffer.caret()));
        let at = wrapping.at_column(row, column);
        self.goal = Some(column);
        Some(at)
    }

    fn move_by(&mut self, go: Go, goal: Option<usize>) -> Pressed {
        self.buffer.begin(Kind::Other);
        if let Some(selection) = self.selection() {
            let side = match go {
                Go::Left => Some(selection.start),
                Go::Right => Some(selection.end),
                Go::WordLeft(_)
                | Go::WordRight
                | Go::LineStart
                | Go::LineEnd
                | Go::Row(_)
                | Go::TextStart
                | Go::TextEnd => None,
            };
            if let Some(side) = side {
                self.anchor = None;
                self.buffer.place(side);
                return Pressed::Moved;
            }
        }
        self.anchor = None;
        match self.target(go, goal) {
            Some(at) => {
                self.buffer.place(at);
                Pressed::Moved
            }
            // The face has what is above and below the text.
            None if go.vertical().is_some() => Pressed::Ignored,
            None => Pressed::Rang,
        }
    }

    fn select_by(&mut self, go: Go, goal: Option<usize>) -> Pressed {
        self.buffer.begin(Kind::Other);
        let caret = self.buffer.caret();
        let at = self.target(go, goal).or_else(|| {
            go.vertical().map(|vertical| match vertical {
                Vertical::Up => 0,
                Vertical::Down => self.buffer.text().len(),
            })
        });
        match at {
            Some(at) if at != caret => {
                self.anchor.get_or_insert(caret);
                self.buffer.place(at);
                Pressed::Moved
            }
            Some(_) | None => Pressed::Rang,
        }
    }

    fn erase(&mut self, go: Go) -> Pressed {
        if self.is_empty() && go == Go::Right {
            return Pressed::Ignored;
        }
        if let Some(selection) = self.selection() {
            self.buffer.begin(Kind::Other);
            self.anchor = None;
            self.buffer.splice(selection, "");
            return Pressed::Changed;
        }
        let caret = self.buffer.caret();
        match self.target(go, None) {
            Some(at) => {
                self.buffer.begin(Kind::Erasing);
                self.buffer.splice(at.min(caret)..at.max(caret), "");
                Pressed::Changed
            }
            None => Pressed::Rang,
        }
    }

    fn kill(&mut self, go: Go, last: &Last) -> Pressed {
        self.buffer.begin(Kind::Other);
        let caret = self.buffer.caret();
        let range = self.selection().unwrap_or_else(|| {
            let at = match self.target(go, None) {
                Some(at) if at != caret => at,
                // At the end of a line, what lies beyond is taken: the newline.
                Some(_) | None if go == Go::LineEnd => self.buffer.next(),
                Some(_) | None if go == Go::LineStart => self.buffer.prev(),
                Some(_) | None => caret,
            };
            at.min(caret)..at.max(caret)
        });
        self.anchor = None;
        if range.is_empty() {
            return Pressed::Rang;
        }
        let side = if range.end == caret {
            Side::Before
        } else {
            Side::After
        };
        let follows = match last {
            Last::Kill => Follows::Kill,
            Last::Yank(_) | Last::Else => Follows::Else,
        };
        self.kills
            .kill(&self.buffer.text()[range.clone()], side, follows);
        self.buffer.splice(range, "");
        self.last = Last::Kill;
        Pressed::Changed
    }

    /// Types a character. What is typed is undone by words.
    fn type_in(&mut self, c: char) -> Pressed {
        let typed = crate::text::clean(c.encode_utf8(&mut [0; 4]));
        if typed.is_empty() {
            return Pressed::Rang;
        }
        let selection = self.selection();
        self.anchor = None;
        if let Some(selection) = selection {
            self.buffer.begin(Kind::Other);
            self.buffer.splice(selection, &typed);
            return Pressed::Changed;
        }
        self.buffer.begin(Kind::Typing);
        let follows_blank =
            self.buffer.text()[..self.buffer.caret()].ends_with(char::is_whitespace);
        if follows_blank && !c.is_whitespace() {
            self.buffer.close();
        }
        let revision = self.buffer.revision();
        self.buffer.insert(&typed);
        if self.buffer.revision() == revision {
            Pressed::Rang
        } else {
            Pressed::Changed
        }
    }

    /// Enter. A backslash before it makes it a newline, for terminals that know no other way.
    fn submit(&mut self) -> Pressed {
        let caret = self.buffer.caret();
        if !self.buffer.text()[..caret].ends_with('\\') {
            return Pressed::Submit;
        }
        self.buffer.begin(Kind::Other);
        self.anchor = None;
        self.buffer.splice(caret - 1..caret, "\n");
        Pressed::Changed
    }

    fn yank(&mut self) -> Pressed {
        self.buffer.begin(Kind::Other);
        let place = self
            .selection()
            .unwrap_or(self.buffer.caret()..self.buffer.caret());
        self.anchor = None;
        let Some(kill) = self.kills.yank() else {
            return Pressed::Rang;
        };
        let start = place.start;
        self.buffer.splice(place, kill);
        self.last = Last::Yank(start..self.buffer.caret());
        Pressed::Changed
    }

    fn yank_pop(&mut self, last: Last) -> Pressed {
        let (Last::Yank(place), Some(kill)) = (last, self.kills.turn()) else {
            return Pressed::Rang;
        };
        self.buffer.begin(Kind::Other);
        let start = place.start;
        self.buffer.splice(place, kill);
        self.last = Last::Yank(start..self.buffer.caret());
        Pressed::Changed
    }

    /// Swaps the clusters around the caret; at the end of a line, the two before it.
    fn transpose(&mut self) -> Pressed {
        self.buffer.begin(Kind::Other);
        self.anchor = None;
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let middle = if caret == line_end(text, caret) {
            prev(text, caret)
        } else {
            caret
        };
        let (start, end) = (prev(text, middle), next(text, middle));
        if middle <= line_start(text, caret) || start == middle {
            return Pressed::Rang;
        }
        let swapped = format!("{}{}", &text[middle..end], &text[start..middle]);
        self.buffer.splice(start..end, &swapped);
        Pressed::Changed
    }

    fn change_case(&mut self, case: Case) -> Pressed {
        self.buffer.begin(Kind::Other);
        self.anchor = None;
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let end = word_end(text, caret, Words::Letters);
        let word = &text[caret..end];
        let changed = match case {
            Case::Upper => word.to_uppercase(),
            Case::Lower => word.to_lowercase(),
            Case::Capital => capitalised(word),
        };
        if word.is_empty() {
            return Pressed::Rang;
        }
        self.buffer.splice(caret..end, &changed);
        Pressed::Changed
    }
}

fn capitalised(word: &str) -> String {
    let mut changed = String::with_capacity(word.len());
    let mut seen = None;
    for c in word.chars() {
        match seen {
            None => changed.extend(c.to_uppercase()),
            Some(()) => changed.extend(c.to_lowercase()),
        }
        if c.is_alphabetic() {
            seen = Some(());
        }
    }
    changed
}
