//! What was done to a text, so that it can be undone.

use std::collections::VecDeque;

/// Steps that can be undone; the oldest is forgotten first.
const MOST_STEPS: usize = 1_000;

/// The bytes they may hold together.
const MOST_BYTES: usize = 32 << 20;

/// Steps that are still undone after a draft was sent.
const KEPT_AFTER_SENDING: usize = 20;

/// One text in the place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) at: usize,
    pub(crate) removed: String,
    pub(crate) inserted: String,
}

impl Edit {
    fn bytes(&self) -> usize {
        self.removed.len() + self.inserted.len()
    }

    /// Takes in what was done right after it, where the two are one: typing on, erasing on. The
    /// edit comes back where they are not.
    fn join(&mut self, edit: Edit) -> Option<Edit> {
        let typed_on = edit.removed.is_empty() && edit.at == self.at + self.inserted.len();
        let erased_on = self.inserted.is_empty()
            && edit.inserted.is_empty()
            && edit.at + edit.removed.len() == self.at;
        if typed_on {
            self.inserted.push_str(&edit.inserted);
        } else if erased_on {
            self.removed.insert_str(0, &edit.removed);
            self.at = edit.at;
        } else {
            return Some(edit);
        }
        None
    }
}

/// What is undone at once.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) edits: Vec<Edit>,
    /// The caret before and after.
    pub(crate) before: usize,
    pub(crate) after: usize,
}

impl Step {
    fn bytes(&self) -> usize {
        self.edits.iter().map(Edit::bytes).sum()
    }
}

/// What a key does, as far as it matters to what is undone at once: typing joins with typing,
/// erasing with erasing, nothing else with anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Typing,
    Erasing,
    Other,
}

/// Whether the next edit belongs to the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Open(Kind),
    /// Open until it is let go, whatever is done.
    Held,
    Closed,
}

/// The steps that can be undone, and those that can be done again.
#[derive(Debug)]
pub(crate) struct Journal {
    done: VecDeque<Step>,
    undone: Vec<Step>,
    last: Last,
    bytes: usize,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self {
            done: VecDeque::new(),
            undone: Vec::new(),
            last: Last::Closed,
            bytes: 0,
        }
    }

    /// A key of a kind begins its work.
    pub(crate) fn begin(&mut self, kind: Kind) {
        self.last = match (self.last, kind) {
            (Last::Held, _) => Last::Held,
            (Last::Open(last), Kind::Typing | Kind::Erasing) if last == kind => self.last,
            (Last::Open(_) | Last::Closed, _) => Last::Closed,
        };
    }

    /// The next edit is the first of a step.
    pub(crate) fn close(&mut self) {
        if self.last != Last::Held {
            self.last = Last::Closed;
        }
    }

    /// All that follows is one step, until it is let go.
    pub(crate) fn hold(&mut self, caret: usize) {
        self.start(caret);
        self.last = Last::Held;
    }

    pub(crate) fn let_go(&mut self) {
        self.last = Last::Closed;
        if self.done.back().is_some_and(|step| step.edits.is_empty()) {
            self.done.pop_back();
        }
    }

    fn start(&mut self, caret: usize) {
        self.done.push_back(Step {
            edits: Vec::new(),
            before: caret,
            after: caret,
        });
    }

    pub(crate) fn record(&mut self, edit: Edit, kind: Kind, before: usize, after: usize) {
        self.bytes -= self
            .undone
            .drain(..)
            .map(|step| step.bytes())
            .sum::<usize>();
        self.bytes += edit.bytes();
        if self.last == Last::Closed || self.done.is_empty() {
            self.start(before);
        }
        if self.last == Last::Closed {
            self.last = Last::Open(kind);
        }
        if let Some(step) = self.done.back_mut() {
            step.after = after;
            let apart = match step.edits.last_mut() {
                Some(last) => last.join(edit),
                None => Some(edit),
            };
            step.edits.extend(apart);
        }
        while self.done.len() > MOST_STEPS || (self.bytes > MOST_BYTES && self.done.len() > 1) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(step) = self.done.pop_front() {
            self.bytes -= step.bytes();
        }
    }

    /// The draft was sent: little of what was before it will be wanted.
    pub(crate) fn sent(&mut self) {
        while self.done.len() > KEPT_AFTER_SENDING {
            self.forget_oldest();
        }
    }

    /// The last step, to be undone; it becomes one that can be done again.
    pub(crate) fn undo(&mut self) -> Option<&Step> {
        self.let_go();
        self.undone.push(self.done.pop_back()?);
        self.undone.last()
    }

    pub(crate) fn redo(&mut self) -> Option<&Step> {
        self.let_go();
        self.done.push_back(self.undone.pop()?);
        self.done.back()
    }

    /// Every text it holds.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let steps = self.done.iter().chain(&self.undone);
        steps
            .flat_map(|step| &step.edits)
            .flat_map(|edit| [edit.removed.as_str(), edit.inserted.as_str()])
    }
}
