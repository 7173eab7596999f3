//! Vi keys: a machine of modes over the editor's text.

mod changes;
mod command;
mod deeds;
mod inserting;
mod motions;
mod objects;
mod operators;
mod reading;
mod registers;
mod targets;
#[cfg(test)]
mod tests;

use std::ops::Range;

use caliban_terminal::{Key, KeyCode};

use crate::editor::{Editor, Pressed, ViCommand};
use crate::keys::{Action, With, action};
use crate::text::{line_end, line_start, prev};
use crate::undo::Kind;
use crate::vi::command::{Bounds, Command, Deed, Find, Operator, Search, Shape, Way};
use crate::vi::inserting::{Change, Insertion, Typed};
use crate::vi::reading::{Selecting, Unread, Waiting, read};
use crate::vi::registers::Registers;

/// Keys of a command that is not whole yet. What is searched for is the longest of it.
const MOST_PENDING: usize = 1_000;

/// The mark where inserting ended last.
pub(crate) const LAST_INSERT: char = '^';

/// What the vi keys wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViState {
    Normal,
    Insert,
    Visual,
    VisualLine,
    Replace,
    /// A command is begun: its keys so far.
    OperatorPending(String),
    /// What is searched for is being written: `/` or `?`, and the text so far.
    Search(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Insert,
    Normal,
    Visual { anchor: usize, shape: Shape },
    Replace,
}

/// Whether keys come from the user or from a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    User,
    Repetition,
}

/// The state of the vi keys.
#[derive(Debug)]
pub(crate) struct Vi {
    mode: Mode,
    pending: Vec<Key>,
    registers: Registers,
    find: Option<Find>,
    search: Option<Search>,
    shows_matches: bool,
    /// Where the part of the text began that an operator worked on.
    origin: usize,
    insertion: Option<Insertion>,
    change: Option<Change>,
    source: Source,
    asked: Option<ViCommand>,
}

impl Default for Vi {
    /// A prompt is there to be written: inserting comes first.
    fn default() -> Self {
        Self {
            mode: Mode::Insert,
            pending: Vec::new(),
            registers: Registers::default(),
            find: None,
            search: None,
            shows_matches: false,
            origin: 0,
            insertion: None,
            change: None,
            source: Source::User,
            asked: None,
        }
    }
}

impl Vi {
    fn read(&self) -> Result<Command, Unread> {
        let selecting = match self.mode {
            Mode::Visual { .. } => Selecting::Yes,
            Mode::Insert | Mode::Normal | Mode::Replace => Selecting::No,
        };
        read(&self.pending, selecting)
    }

    fn searching(&self) -> Option<(Way, String)> {
        match self.read() {
            Err(Unread::More(Waiting::Search(way, what))) => Some((way, what)),
            Err(Unread::More(Waiting::Key) | Unread::Bad) | Ok(_) => None,
        }
    }

    pub(crate) fn state(&self) -> ViState {
        if let Some((way, what)) = self.searching() {
            let sign = match way {
                Way::Forth => '/',
                Way::Back => '?',
            };
            return ViState::Search(format!("{sign}{what}"));
        }
        if !self.pending.is_empty() {
            let letters = self.pending.iter().filter_map(|key| match key.code {
                KeyCode::Char(c) => Some(c),
                _ => None,
            });
            return ViState::OperatorPending(letters.collect());
        }
        match self.mode {
            Mode::Insert => ViState::Insert,
            Mode::Normal => ViState::Normal,
            Mode::Replace => ViState::Replace,
            Mode::Visual { shape, .. } => match shape {
                Shape::Chars => ViState::Visual,
                Shape::Lines => ViState::VisualLine,
            },
        }
    }

    /// Something for the face to do.
    pub(crate) fn asks(&mut self, command: ViCommand) {
        self.asked = Some(command);
    }

    fn anchor_mut(&mut self) -> Option<&mut usize> {
        match &mut self.mode {
            Mode::Visual { anchor, .. } => Some(anchor),
            Mode::Insert | Mode::Normal | Mode::Replace => None,
        }
    }

    /// Every text it holds.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let change = self.change.iter().flat_map(|change| &change.typed);
        let insertion = self.insertion.iter().flat_map(|insertion| &insertion.typed);
        let typed = change.chain(insertion).filter_map(|typed| match typed {
            Typed::Key(_) => None,
            Typed::Text(text) => Some(text.as_str()),
        });
        typed.chain(self.registers.texts())
    }
}

impl Editor {
    pub(crate) fn press_vi(&mut self, key: Key) -> Pressed {
        match self.vi.mode {
            Mode::Insert | Mode::Replace => self.press_inserting(key),
            Mode::Normal | Mode::Visual { .. } => self.press_command(key),
        }
    }

    /// A text is written anew: with nothing begun, by inserting.
    pub(crate) fn enter_insert_mode(&mut self) {
        self.vi.mode = Mode::Insert;
        self.vi.pending.clear();
        self.vi.insertion = None;
        self.vi.shows_matches = false;
        self.buffer.let_go();
    }

    /// The text was changed by other means than vi keys: the mode is made to fit.
    pub(crate) fn keep_in_mode(&mut self) {
        match self.vi.mode {
            Mode::Insert | Mode::Replace => {}
            Mode::Normal | Mode::Visual { .. } => {
                self.vi.mode = Mode::Normal;
                self.stay_on_line();
            }
        }
    }

    /// Out of inserting, the caret is on a cluster, not behind the last.
    fn stay_on_line(&mut self) {
        match self.vi.mode {
            Mode::Insert | Mode::Replace => {}
            Mode::Normal | Mode::Visual { .. } => {
                let (text, caret) = (self.buffer.text(), self.buffer.caret());
                if caret == line_end(text, caret) && caret > line_start(text, caret) {
                    let at = prev(text, caret);
                    self.buffer.place(at);
                }
            }
        }
    }

    pub(crate) fn visual_range(&self) -> Option<Range<usize>> {
        self.visual_span().map(|span| span.range)
    }

    /// What a search finds, while it is of interest.
    pub(crate) fn matches(&self) -> Vec<Range<usize>> {
        let text = self.buffer.text();
        if let Some((way, what)) = self.vi.searching() {
            let bounds = Bounds::Anywhere;
            return motions::found(text, &Search { what, way, bounds });
        }
        match &self.vi.search {
            Some(search) if self.vi.shows_matches => motions::found(text, search),
            Some(_) | None => Vec::new(),
        }
    }

    fn press_command(&mut self, key: Key) -> Pressed {
        if let Some(pressed) = self.press_outside_commands(key) {
            return pressed;
        }
        if self.vi.pending.len() >= MOST_PENDING {
            self.vi.pending.clear();
            return Pressed::Rang;
        }
        self.vi.pending.push(key);
        let command = match self.vi.read() {
            Ok(command) => command,
            Err(Unread::More(_)) => return Pressed::Moved,
            Err(Unread::Bad) => {
                self.vi.pending.clear();
                return Pressed::Rang;
            }
        };
        self.vi.pending.clear();
        self.obey(&command)
    }

    /// The keys that are no part of a command.
    fn press_outside_commands(&mut self, key: Key) -> Option<Pressed> {
        let with = With::of(key);
        let is_begun = !self.vi.pending.is_empty();
        let is_searching = self.vi.searching().is_some();
        match (key.code, with) {
            (KeyCode::Esc, _) => {
                self.vi.shows_matches = false;
                let is_normal = self.vi.mode == Mode::Normal;
                self.vi.mode = Mode::Normal;
                let was_begun = !std::mem::take(&mut self.vi.pending).is_empty();
                Some(if was_begun || !is_normal {
                    Pressed::Moved
                } else {
                    Pressed::Ignored
                })
            }
            (KeyCode::Backspace, With::Nothing) if is_searching => {
                self.vi.pending.pop();
                Some(Pressed::Moved)
            }
            (KeyCode::Enter | KeyCode::Tab, With::Nothing) if is_begun => None,
            (KeyCode::Enter, With::Nothing) => Some(match self.vi.mode {
                Mode::Normal => Pressed::Submit,
                Mode::Visual { .. } | Mode::Insert | Mode::Replace => Pressed::Rang,
            }),
            (KeyCode::Up | KeyCode::Down, With::Nothing)
                if !is_begun && self.vi.mode == Mode::Normal =>
            {
                let pressed = self.press_plain(key);
                self.stay_on_line();
                Some(pressed)
            }
            (KeyCode::Char('r'), With::Ctrl) if !is_begun && self.vi.mode == Mode::Normal => None,
            (KeyCode::Char(':'), With::Nothing | With::Shift) if !is_begun => {
                Some(Pressed::Ignored)
            }
            (
                KeyCode::Char(_)
                | KeyCode::Left
                | KeyCode::Right
                | KeyCode::Up
                | KeyCode::Down
                | KeyCode::Home
                | KeyCode::End
                | KeyCode::Backspace
                | KeyCode::Delete,
                With::Nothing | With::Shift,
            ) => None,
            _ => {
                self.vi.pending.clear();
                let is_newline = action(key) == Some(Action::Newline);
                Some(if is_newline && self.vi.mode == Mode::Normal {
                    self.act(Action::Newline)
                } else {
                    Pressed::Ignored
                })
            }
        }
    }

    fn obey(&mut self, command: &Command) -> Pressed {
        let revision = self.buffer.revision();
        let repeatable = self.repeatable(command);
        self.vi.asked = None;
        self.vi.shows_matches &= matches!(command.deed, Deed::Move(_));
        self.anchor = None;
        self.buffer.begin(Kind::Other);
        let done = self.perform(command);
        match self.vi.mode {
            Mode::Insert | Mode::Replace => {
                self.vi.insertion = Some(Insertion::new(repeatable));
            }
            Mode::Normal | Mode::Visual { .. } => {
                self.buffer.close();
                if done.is_some() && changes(&command.deed) {
                    self.vi.change = Some(Change {
                        command: repeatable,
                        typed: Vec::new(),
                    });
                }
            }
        }
        match (self.vi.asked.take(), done) {
            (Some(asked), _) => Pressed::Command(asked),
            (None, _) if self.buffer.revision() != revision => Pressed::Changed,
            (None, Some(())) => Pressed::Moved,
            (None, None) => Pressed::Rang,
        }
    }
}

/// Whether a command is what `.` does again.
fn changes(deed: &Deed) -> bool {
    match deed {
        Deed::Operate(operator, _) => *operator != Operator::Yank,
        Deed::Replace(_) | Deed::ToggleCase | Deed::Join | Deed::Put(_) => true,
        Deed::Move(_)
        | Deed::Select(_)
        | Deed::Undo
        | Deed::Redo
        | Deed::Repeat
        | Deed::Insert(_)
        | Deed::Overwrite
        | Deed::Visual(_)
        | Deed::SwapEnds
        | Deed::Mark(_) => false,
    }
}
