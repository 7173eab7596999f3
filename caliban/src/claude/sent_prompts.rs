//! What the client has sent: the prompts that have not ended, and how the last ones did.

use std::collections::{HashMap, VecDeque};

use caliban_protocol::claude::UserInput;
use caliban_session::PromptId;
use serde_json::Value;

/// Results that are told again when their prompt comes again.
const RESULTS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct SentPrompts {
    /// Those that have not ended.
    known: HashMap<PromptId, UserInput>,
    /// Those that have not begun as far as was told, in order.
    queued: Vec<PromptId>,
    /// Those that have, the newest first.
    results: VecDeque<(PromptId, Value)>,
}

impl SentPrompts {
    pub(crate) fn add(&mut self, id: PromptId, input: UserInput) {
        if self.known.insert(id.clone(), input).is_none() {
            self.queued.push(id);
        }
    }

    /// A prompt is worked on; what the client said.
    pub(crate) fn begin(&mut self, id: &PromptId) -> Option<&UserInput> {
        self.queued.retain(|queued| queued != id);
        self.known.get(id)
    }

    pub(crate) fn queued(&self) -> &[PromptId] {
        &self.queued
    }

    /// A prompt has ended, or will not be worked on.
    pub(crate) fn forget(&mut self, id: &PromptId) {
        self.known.remove(id);
        self.queued.retain(|queued| queued != id);
    }

    /// Remembers how a prompt ended.
    pub(crate) fn keep(&mut self, id: &PromptId, result: Value) {
        self.results.truncate(RESULTS - 1);
        self.results.push_front((id.clone(), result));
    }

    /// How a prompt ended, as far as that is remembered.
    pub(crate) fn result(&self, id: &PromptId) -> Option<&Value> {
        let found = self.results.iter().find(|(known, _)| known == id);
        found.map(|(_, result)| result)
    }
}
