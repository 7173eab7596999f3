//! The text that is written, the caret in it, and the way back.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::text::{next, prev, snap};
use crate::undo::{Edit, Journal, Kind};

/// What a text may hold; what goes beyond is not taken in.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// A text with a caret. The caret is always on a boundary of clusters.
#[derive(Debug)]
pub(crate) struct Buffer {
    text: String,
    caret: usize,
    journal: Journal,
    kind: Kind,
    revision: u64,
    /// Places that move with the text around them, by name.
    marks: BTreeMap<char, usize>,
}

/// Whether there was something to undo, or to do again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Went {
    Through,
    Nowhere,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self {
            text: String::new(),
            caret: 0,
            journal: Journal::new(),
            kind: Kind::Other,
            revision: 0,
            marks: BTreeMap::new(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn caret(&self) -> usize {
        self.caret
    }

    /// Counts the changes.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn place(&mut self, at: usize) {
        self.caret = snap(&self.text, at);
    }

    pub(crate) fn next(&self) -> usize {
        next(&self.text, self.caret)
    }

    pub(crate) fn prev(&self) -> usize {
        prev(&self.text, self.caret)
    }

    /// Work of a kind begins; what is of another kind is undone apart.
    pub(crate) fn begin(&mut self, kind: Kind) {
        self.kind = kind;
        self.journal.begin(kind);
    }

    /// What follows is undone apart from what was.
    pub(crate) fn close(&mut self) {
        self.journal.close();
    }

    /// What follows is undone at once, until it is let go.
    pub(crate) fn hold(&mut self) {
        self.journal.hold(self.caret);
    }

    pub(crate) fn let_go(&mut self) {
        self.journal.let_go();
    }

    /// Puts a text in the place of a range, and the caret after it.
    pub(crate) fn splice(&mut self, range: Range<usize>, with: &str) {
        let range = snap(&self.text, range.start)..snap(&self.text, range.end.max(range.start));
        let room = MOST_BYTES.saturating_sub(self.text.len() - range.len());
        let with = &with[..with.floor_char_boundary(room)];
        if range.is_empty() && with.is_empty() {
            return;
        }
        let edit = Edit {
            at: range.start,
            removed: self.text[range.clone()].to_owned(),
            inserted: with.to_owned(),
        };
        let before = self.caret;
        self.change(range.clone(), with);
        self.caret = snap(&self.text, range.start + with.len());
        self.journal.record(edit, self.kind, before, self.caret);
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.splice(self.caret..self.caret, text);
    }

    fn change(&mut self, range: Range<usize>, with: &str) {
        self.text.replace_range(range.clone(), with);
        self.revision += 1;
        for mark in self.marks.values_mut() {
            if *mark >= range.end {
                *mark = *mark - range.len() + with.len();
            } else if *mark > range.start {
                *mark = range.start;
            }
        }
    }

    pub(crate) fn undo(&mut self) -> Went {
        let Some(step) = self.journal.undo() else {
            return Went::Nowhere;
        };
        let edits: Vec<Edit> = step.edits.iter().rev().cloned().collect();
        let caret = step.before;
        for edit in edits {
            self.change(edit.at..edit.at + edit.inserted.len(), &edit.removed);
        }
        self.place(caret);
        Went::Through
    }

    pub(crate) fn redo(&mut self) -> Went {
        let Some(step) = self.journal.redo() else {
            return Went::Nowhere;
        };
        let edits = step.edits.clone();
        let caret = step.after;
        for edit in edits {
            self.change(edit.at..edit.at + edit.removed.len(), &edit.inserted);
        }
        self.place(caret);
        Went::Through
    }

    /// The draft was sent.
    pub(crate) fn sent(&mut self) {
        self.journal.sent();
    }

    pub(crate) fn set_mark(&mut self, name: char, at: usize) {
        self.marks.insert(name, at);
    }

    pub(crate) fn mark(&self, name: char) -> Option<usize> {
        self.marks.get(&name).map(|&at| snap(&self.text, at))
    }

    /// Every text it holds: the one that is written, and those on the way back.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text.as_str()).chain(self.journal.texts())
    }
}
