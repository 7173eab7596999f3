//! Messages for a run that is going on: it takes them in between two turns.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_model::Message;

/// Filled by whoever drives the run, emptied by the run. Whoever fills it keeps its bound.
#[derive(Debug, Clone, Default)]
pub struct Mailbox(Arc<Mutex<Waiting>>);

/// Messages under the ids of their prompts, oldest first.
type Waiting = VecDeque<(Arc<str>, Message)>;

impl Mailbox {
    /// Leaves a message under the id of its prompt.
    pub fn put(&self, prompt: Arc<str>, message: Message) {
        self.lock().push_back((prompt, message));
    }

    /// The message that has waited longest.
    pub fn take(&self) -> Option<(Arc<str>, Message)> {
        self.lock().pop_front()
    }

    /// The message that came last, for whoever puts them in front of others.
    pub fn take_last(&self) -> Option<(Arc<str>, Message)> {
        self.lock().pop_back()
    }

    /// Takes a message back; nothing if the run has it already.
    pub fn take_back(&self, prompt: &str) -> Option<Message> {
        let mut waiting = self.lock();
        let place = waiting.iter().position(|(id, _)| **id == *prompt)?;
        waiting.remove(place).map(|(_, message)| message)
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
