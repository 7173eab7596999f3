//! Inserting, and doing it again.

use caliban_terminal::{Key, KeyCode};

use crate::editor::{Editor, Pressed};
use crate::keys::{Action, Go, action};
use crate::text::{clean, line_end, line_start, next, prev};
use crate::undo::Kind;
use crate::vi::command::{Command, Deed, Place};
use crate::vi::deeds::Done;
use crate::vi::{LAST_INSERT, Mode, Source, Vi};

/// What is remembered of an insertion, to be repeated: keys, and bytes of pastes.
const MOST_TYPED: usize = 10_000;
const MOST_TYPED_BYTES: usize = 1 << 20;

/// Keys that one command may repeat altogether.
const MOST_REPLAYED: usize = 100_000;

/// What was typed while inserting.
#[derive(Debug, Clone)]
pub(crate) enum Typed {
    Key(Key),
    Text(String),
}

/// An insertion that a command began.
#[derive(Debug, Clone)]
pub(crate) struct Insertion {
    pub(crate) command: Command,
    pub(crate) typed: Vec<Typed>,
    /// What was overwritten, to be put back by Backspace; `None` where nothing was.
    overwritten: Vec<Option<String>>,
}

impl Insertion {
    pub(crate) fn new(command: Command) -> Self {
        Self {
            command,
            typed: Vec::new(),
            overwritten: Vec::new(),
        }
    }
}

/// A change, to be repeated.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) command: Command,
    pub(crate) typed: Vec<Typed>,
}

impl Vi {
    /// A text comes in while inserting, not by a key.
    pub(crate) fn record_text(&mut self, text: &str) {
        self.record(Typed::Text(text.to_owned()));
    }

    fn record(&mut self, typed: Typed) {
        let Some(insertion) = &mut self.insertion else {
            return;
        };
        let bytes = |typed: &Typed| match typed {
            Typed::Key(_) => 0,
            Typed::Text(text) => text.len(),
        };
        let has_room = match &typed {
            Typed::Key(_) => true,
            Typed::Text(text) => {
                insertion.typed.iter().map(bytes).sum::<usize>() + text.len() <= MOST_TYPED_BYTES
            }
        };
        if self.source == Source::User && insertion.typed.len() < MOST_TYPED && has_room {
            insertion.typed.push(typed);
        }
    }
}

impl Editor {
    pub(crate) fn press_inserting(&mut self, key: Key) -> Pressed {
        if key.code == KeyCode::Esc {
            self.end_insertion();
            return Pressed::Moved;
        }
        let pressed = self.insert_by(key);
        match pressed {
            Pressed::Changed => self.vi.record(Typed::Key(key)),
            Pressed::Moved => self.insert_elsewhere(),
            Pressed::Submit | Pressed::Ignored | Pressed::Rang | Pressed::Command(_) => {}
        }
        pressed
    }

    /// A key that was typed while inserting, by the user or again.
    fn insert_by(&mut self, key: Key) -> Pressed {
        if self.vi.mode == Mode::Replace {
            let action = action(key);
            if let Some(Action::Insert(c)) = action {
                return self.overwrite(c);
            }
            if action == Some(Action::Erase(Go::Left)) {
                return self.put_back();
            }
        }
        self.press_plain(key)
    }

    /// The caret was moved while inserting: what follows is an insertion of its own.
    fn insert_elsewhere(&mut self) {
        if let Some(insertion) = &mut self.vi.insertion {
            insertion.typed.clear();
            insertion.overwritten.clear();
            insertion.command.count = None;
            if insertion.command.deed != Deed::Overwrite {
                insertion.command.deed = Deed::Insert(Place::Here);
            }
            self.buffer.let_go();
            self.buffer.hold();
        }
    }

    fn overwrite(&mut self, c: char) -> Pressed {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let end = next(&text[..line_end(text, caret)], caret);
        let before = (end > caret).then(|| text[caret..end].to_owned());
        self.buffer.begin(Kind::Typing);
        let typed = clean(c.encode_utf8(&mut [0; 4]));
        self.buffer.splice(caret..end, &typed);
        if let Some(insertion) = &mut self.vi.insertion {
            insertion.overwritten.push(before);
        }
        Pressed::Changed
    }

    fn put_back(&mut self) -> Pressed {
        let insertion = self.vi.insertion.as_mut();
        let (start, caret) = (self.buffer.prev(), self.buffer.caret());
        match insertion.and_then(|insertion| insertion.overwritten.pop()) {
            Some(before) => {
                self.buffer
                    .splice(start..caret, &before.unwrap_or_default());
                self.buffer.place(start);
                Pressed::Changed
            }
            None => Pressed::Rang,
        }
    }

    fn end_insertion(&mut self) {
        if self.vi.source == Source::User
            && let Some(Insertion { command, typed, .. }) = self.vi.insertion.clone()
        {
            self.replay_again(&command, &typed);
            self.vi.change = Some(Change { command, typed });
        }
        self.vi.insertion = None;
        self.buffer.set_mark(LAST_INSERT, self.buffer.caret());
        self.buffer.let_go();
        self.anchor = None;
        self.vi.mode = Mode::Normal;
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        if caret > line_start(text, caret) {
            let at = prev(text, caret);
            self.buffer.place(at);
        }
    }

    /// Inserts what was inserted as often again as the command counts.
    fn replay_again(&mut self, command: &Command, typed: &[Typed]) {
        let is_counted = matches!(command.deed, Deed::Insert(_) | Deed::Overwrite);
        let times = if is_counted { command.times() } else { 1 };
        let source = std::mem::replace(&mut self.vi.source, Source::Repetition);
        for _ in 1..times.min(MOST_REPLAYED / typed.len().max(1)) {
            if matches!(command.deed, Deed::Insert(Place::Above | Place::Below)) {
                self.buffer.insert("\n");
            }
            self.replay(typed);
        }
        self.vi.source = source;
    }

    fn replay(&mut self, typed: &[Typed]) {
        for typed in typed {
            match typed {
                Typed::Key(key) => {
                    self.insert_by(*key);
                }
                Typed::Text(text) => self.buffer.insert(text),
            }
        }
    }

    /// Does the last change again.
    pub(crate) fn repeat(&mut self, count: Option<usize>) -> Done {
        let Change { mut command, typed } = self.vi.change.clone()?;
        command.count = count.or(command.count);
        self.vi.source = Source::Repetition;
        let done = self.perform(&command);
        if matches!(self.vi.mode, Mode::Insert | Mode::Replace) {
            self.vi.insertion = Some(Insertion::new(command.clone()));
            self.replay(&typed);
            self.replay_again(&command, &typed);
            self.end_insertion();
        }
        self.vi.source = Source::User;
        if let Some(change) = &mut self.vi.change {
            change.command.count = command.count;
        }
        done
    }
}
