//! A call of a tool as the face knows it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_agent::{Denial, Details, ToolOutput, ToolStatus};
use caliban_model::{Block, Message, ToolContent};
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
    pub(crate) status: ToolStatus,
    pub(crate) details: Option<Details>,
    content: Content,
    /// Nothing for a call of an earlier run.
    pub(crate) duration: Option<Duration>,
    pub(crate) denial: Option<Denial>,
}

/// What the model reads of a call: as it was told, or as it is kept.
#[derive(Debug)]
enum Content {
    Told(Vec<ToolContent>),
    Kept(Arc<Message>, usize),
}

impl Ending {
    /// The end of a call that is being told.
    pub(crate) fn told(output: &ToolOutput, duration: Duration, denial: Option<Denial>) -> Self {
        Self {
            status: output.status,
            details: output.details.clone(),
            content: Content::Told(output.content.clone()),
            duration: Some(duration),
            denial,
        }
    }

    /// The end of a call of old, as a block of the conversation has it.
    pub(crate) fn kept(status: ToolStatus, message: &Arc<Message>, place: usize) -> Self {
        Self {
            status,
            details: None,
            content: Content::Kept(Arc::clone(message), place),
            duration: None,
            denial: None,
        }
    }

    /// The conversation has it from here on, so that it is there once.
    pub(crate) fn keep(&mut self, message: &Arc<Message>, place: usize) {
        self.content = Content::Kept(Arc::clone(message), place);
    }

    pub(crate) fn content(&self) -> &[ToolContent] {
        match &self.content {
            Content::Told(content) => content,
            Content::Kept(message, place) => match message.content.get(*place) {
                Some(Block::ToolResult { content, .. }) => content,
                Some(_) | None => &[],
            },
        }
    }

    /// The text of it.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        let mut texts = self.content().iter().filter_map(|part| match part {
            ToolContent::Text { text } => Some(text.as_str()),
            ToolContent::Image(_) => None,
        });
        match (texts.next(), texts.next()) {
            (None, _) => Cow::Borrowed(""),
            (Some(only), None) => Cow::Borrowed(only),
            (Some(first), Some(second)) => {
                let all: Vec<&str> = [first, second].into_iter().chain(texts).collect();
                Cow::Owned(all.join("\n"))
            }
        }
    }
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

    /// The name of the file that it is about, where it is about one.
    pub(crate) fn file_name(&self) -> Option<Arc<str>> {
        let path = self.input.get("path").or(self.input.get("file_path"))?;
        let name = std::path::Path::new(path.as_str()?).file_name()?;
        name.to_str().map(Arc::from)
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
