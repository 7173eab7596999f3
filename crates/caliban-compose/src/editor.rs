//! The editor a face holds: one text, the keys that change it, and how it is drawn.

use std::cell::Cell;
use std::ops::Range;

use caliban_terminal::Key;

use crate::acting::Last;
use crate::atoms::{Atom, Atoms, Piece};
use crate::buffer::{Buffer, Went};
use crate::keys::KeySet;
use crate::kill::KillRing;
use crate::layout::{Layout, Marked, lay_out};
use crate::text::{Class, clean, clusters, clusters_back, is_chip};
use crate::undo::Kind;
use crate::vi::{Vi, ViState};
use crate::wrap::{Wrapping, row_of};

/// A paste beyond these is a chip.
const PASTE_LINES: usize = 10;
const PASTE_CHARS: usize = 1_000;

/// The width until something was drawn.
const FIRST_WIDTH: u16 = 80;

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pressed {
    /// The text is another.
    Changed,
    /// The text is the same; the caret, the selection or the mode may not be.
    Moved,
    /// The text is to be sent.
    Submit,
    /// No key of the editor's: the face decides.
    Ignored,
    /// A key of the editor's that can do nothing here.
    Rang,
    /// Something the editor cannot do alone.
    Command(ViCommand),
}

/// What vi keys ask of the face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViCommand {
    /// To the clipboard.
    Copy(String),
    /// `k` on the first line.
    Older,
    /// `j` on the last line.
    Newer,
}

/// The word around the caret: what stands between blanks, chips and the ends of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Where it is in [`Editor::text`].
    pub range: Range<usize>,
    pub text: String,
    /// Where the caret is in it.
    pub caret: usize,
}

/// What became of a chip that was to be expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expanded {
    Done,
    /// There is none at the caret that stands for text.
    NoChip,
}

/// Whether a chip was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    Done,
    /// The chips there are hold too much already.
    NoRoom,
}

/// A text with a caret. Offsets in its interface are those of [`Editor::text`]; one that is within
/// a cluster or a chip is taken for a boundary near it.
#[derive(Debug)]
pub struct Editor {
    pub(crate) buffer: Buffer,
    pub(crate) atoms: Atoms,
    pub(crate) kills: KillRing,
    pub(crate) vi: Vi,
    keys: KeySet,
    /// The end of the selection that does not move.
    pub(crate) anchor: Option<usize>,
    pub(crate) last: Last,
    /// The column that moves up and down aim at.
    pub(crate) goal: Option<usize>,
    /// The width that was drawn last: rows are what is seen.
    width: Cell<u16>,
}

impl Editor {
    pub fn new(keys: KeySet) -> Self {
        Self {
            buffer: Buffer::new(),
            atoms: Atoms::default(),
            kills: KillRing::default(),
            vi: Vi::default(),
            keys,
            anchor: None,
            last: Last::Else,
            goal: None,
            width: Cell::new(FIRST_WIDTH),
        }
    }

    /// Changes the keys; the text stays.
    pub fn set_keys(&mut self, keys: KeySet) {
        self.enter_insert_mode();
        self.keys = keys;
    }

    pub fn press(&mut self, key: Key) -> Pressed {
        match self.keys {
            KeySet::Emacs => self.press_plain(key),
            KeySet::Vi => self.press_vi(key),
        }
    }

    /// Takes in a text that came at once. A long one becomes a chip.
    pub fn paste(&mut self, text: &str) {
        let text = clean(text);
        let is_long =
            text.lines().nth(PASTE_LINES).is_some() || text.chars().nth(PASTE_CHARS).is_some();
        let chip = is_long
            .then(|| self.add_atom(Atom::Paste(text.as_str().into())))
            .flatten();
        match chip {
            Some(chip) => self.put_in(chip.encode_utf8(&mut [0; 4])),
            None => self.put_in(&text),
        }
    }

    /// Inserts a text as it is.
    pub fn insert(&mut self, text: &str) {
        self.put_in(&clean(text));
    }

    pub fn insert_atom(&mut self, atom: Atom) -> Inserted {
        match self.add_atom(atom) {
            Some(chip) => {
                self.put_in(chip.encode_utf8(&mut [0; 4]));
                Inserted::Done
            }
            None => Inserted::NoRoom,
        }
    }

    fn add_atom(&mut self, atom: Atom) -> Option<char> {
        if let Some(chip) = self.atoms.add(atom.clone()) {
            return Some(chip);
        }
        self.forget_unused_atoms();
        self.atoms.add(atom)
    }

    fn forget_unused_atoms(&mut self) {
        let texts = self.buffer.texts().chain(self.kills.texts());
        self.atoms.keep_only(texts.chain(self.vi.texts()));
    }

    /// Puts a text in the place of the selection, as one step.
    fn put_in(&mut self, text: &str) {
        let place = self
            .selection()
            .unwrap_or(self.buffer.caret()..self.buffer.caret());
        self.vi.record_text(text);
        self.step();
        self.buffer.splice(place, text);
        self.buffer.close();
        self.keep_in_mode();
    }

    /// Begins a step that is undone by itself.
    fn step(&mut self) {
        self.buffer.begin(Kind::Other);
        self.anchor = None;
        self.last = Last::Else;
        self.goal = None;
    }

    /// Puts the text of the chip at the caret, or right before it, in its place.
    pub fn expand_atom_at_caret(&mut self) -> Expanded {
        let text = self.buffer.text();
        let here = clusters(text, self.buffer.caret()).next();
        let before = clusters_back(text, self.buffer.caret()).next();
        let paste = |(at, cluster): (usize, &str)| {
            let chip = cluster.chars().next().and_then(|c| self.atoms.get(c))?;
            match &chip.atom {
                Atom::Paste(text) => Some((at..at + cluster.len(), text.clone())),
                Atom::Image(_) | Atom::File(_) => None,
            }
        };
        match here.and_then(paste).or_else(|| before.and_then(paste)) {
            Some((place, text)) => {
                self.step();
                self.buffer.splice(place, &clean(&text));
                self.buffer.close();
                self.keep_in_mode();
                Expanded::Done
            }
            None => Expanded::NoChip,
        }
    }

    pub fn pieces(&self) -> Vec<Piece> {
        self.atoms.pieces(self.buffer.text())
    }

    /// Puts a draft in the place of the text, as one step.
    pub fn set_pieces(&mut self, pieces: Vec<Piece>) {
        let text = self.atoms.held(pieces);
        self.set_held(&text);
    }

    /// Puts a text in the place of the text, as one step.
    pub fn set_text(&mut self, text: &str) {
        self.set_held(&clean(text));
    }

    fn set_held(&mut self, text: &str) {
        self.enter_insert_mode();
        self.step();
        self.buffer.splice(0..self.buffer.text().len(), text);
        self.buffer.close();
    }

    /// Takes the draft out, to be sent. Undo brings it back.
    pub fn take(&mut self) -> Vec<Piece> {
        let pieces = self.pieces();
        self.clear();
        self.buffer.sent();
        self.forget_unused_atoms();
        pieces
    }

    /// Empties the text, as one step.
    pub fn clear(&mut self) {
        self.set_held("");
    }

    /// The text, chips as their labels.
    pub fn text(&self) -> String {
        self.atoms.shown(self.buffer.text())
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    pub fn line_count(&self) -> usize {
        self.buffer.text().matches('\n').count() + 1
    }

    pub fn caret(&self) -> usize {
        self.shown_offset(self.buffer.caret())
    }

    pub fn set_caret(&mut self, offset: usize) {
        self.buffer.begin(Kind::Other);
        self.anchor = None;
        self.goal = None;
        self.last = Last::Else;
        self.buffer
            .place(self.atoms.held_offset(self.buffer.text(), offset));
        self.keep_in_mode();
    }

    fn shown_offset(&self, at: usize) -> usize {
        self.atoms.shown_offset(self.buffer.text(), at)
    }

    pub fn before_caret(&self) -> String {
        self.atoms.shown(&self.buffer.text()[..self.buffer.caret()])
    }

    /// The word the caret is in or behind, for completion.
    pub fn word_at_caret(&self) -> Option<Word> {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let is_of_it = |&(_, cluster): &(usize, &str)| {
            !Class::of(cluster).is_blank() && !cluster.starts_with(is_chip)
        };
        let start = clusters_back(text, caret)
            .take_while(is_of_it)
            .last()
            .map_or(caret, |(at, _)| at);
        let end = clusters(text, caret)
            .take_while(is_of_it)
            .last()
            .map_or(caret, |(at, cluster)| at + cluster.len());
        let range = self.shown_offset(start)..self.shown_offset(end);
        (start < end).then(|| Word {
            range,
            text: text[start..end].to_owned(),
            caret: caret - start,
        })
    }

    /// Puts a text in the place of a range, as one step; the caret goes behind it.
    pub fn replace(&mut self, range: Range<usize>, with: &str) {
        let held = |offset| self.atoms.held_offset(self.buffer.text(), offset);
        let place = held(range.start)..held(range.end);
        self.step();
        self.buffer.splice(place, &clean(with));
        self.buffer.close();
        self.keep_in_mode();
    }

    pub fn undo(&mut self) -> Pressed {
        self.step();
        let went = self.buffer.undo();
        self.gone(went)
    }

    pub fn redo(&mut self) -> Pressed {
        self.step();
        let went = self.buffer.redo();
        self.gone(went)
    }

    fn gone(&mut self, went: Went) -> Pressed {
        self.keep_in_mode();
        match went {
            Went::Through => Pressed::Changed,
            Went::Nowhere => Pressed::Rang,
        }
    }

    /// Whether there is no row above the caret, as it was drawn last.
    pub fn is_on_first_row(&self) -> bool {
        row_of(&self.wrapping().rows(), self.buffer.caret()) == 0
    }

    /// Whether there is no row below the caret, as it was drawn last.
    pub fn is_on_last_row(&self) -> bool {
        let rows = self.wrapping().rows();
        row_of(&rows, self.buffer.caret()) + 1 == rows.len()
    }

    pub(crate) fn wrapping(&self) -> Wrapping<'_> {
        Wrapping::new(self.buffer.text(), &self.atoms, self.width.get())
    }

    /// The text in rows of a width. Moving up and down goes by the rows drawn last.
    pub fn layout(&self, width: u16) -> Layout {
        self.width.set(width);
        let marked = Marked {
            selection: self.selection().unwrap_or_default(),
            matches: self.matches(),
        };
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        lay_out(self.wrapping(), text, caret, width, &marked)
    }

    /// What is selected, if anything.
    pub(crate) fn selection(&self) -> Option<Range<usize>> {
        if let Some(range) = self.visual_range() {
            return Some(range);
        }
        let (anchor, caret) = (self.anchor?, self.buffer.caret());
        (anchor != caret).then(|| anchor.min(caret)..anchor.max(caret))
    }

    /// What is selected, pastes in full.
    pub fn selected(&self) -> Option<String> {
        self.selection()
            .map(|range| self.atoms.meant(&self.buffer.text()[range]))
    }

    /// The state of the vi keys, where those are used.
    pub fn vi_state(&self) -> Option<ViState> {
        match self.keys {
            KeySet::Emacs => None,
            KeySet::Vi => Some(self.vi.state()),
        }
    }
}
