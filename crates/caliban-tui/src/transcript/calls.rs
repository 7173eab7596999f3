//! A call of a tool as the face knows it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_agent::{Denial, ToolOutput};
use serde_json::Value;

use crate::transcript::feed::Feed;

/// The most of what a running call writes that is kept; its result has everything.
const LIVE_OUTPUT: usize = 64 * 1024;

/// A call, from the moment the model begins to write it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) input: Value,
    /// Bytes of the input that are there while the model writes it.
    pub(crate) written: usize,
    pub(crate) state: CallState,
    /// The end of what it has written so far.
    pub(crate) output: String,
    /// What an agent that it runs does.
    pub(crate) inner: Feed,
}

/// How far a call is. Every end is one of its own.
#[derive(Debug)]
pub(crate) enum CallState {
    /// The model writes it.
    Written,
    /// It is its turn to be judged.
    Ready,
    /// The operator is asked.
    Asked,
    Running {
        since: Instant,
    },
    Over(Box<Ending>),
}

/// The end of a call.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) output: ToolOutput,
    /// Nothing for a call of an earlier run.
    pub(crate) duration: Option<Duration>,
    pub(crate) denial: Option<Denial>,
}

impl Call {
    pub(crate) fn new(id: Arc<str>, name: Arc<str>, input: Value) -> Self {
        Self {
            id,
            name,
            input,
            written: 0,
            state: CallState::Written,
            output: String::new(),
            inner: Feed::default(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        match self.state {
            CallState::Over(_) => true,
            CallState::Written
            | CallState::Ready
            | CallState::Asked
            | CallState::Running { .. } => false,
        }
    }

    /// Something that it writes while it runs.
    pub(crate) fn wrote(&mut self, text: &str) {
        self.output.push_str(text);
        if let Some(excess) = self.output.len().checked_sub(LIVE_OUTPUT) {
            let cut = (excess..self.output.len()).find(|at| self.output.is_char_boundary(*at));
            self.output.drain(..cut.unwrap_or_default());
        }
    }
}
