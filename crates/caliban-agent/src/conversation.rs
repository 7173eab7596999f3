//! The history of a session and how much of the model's window it fills.

use std::sync::Arc;

use caliban_model::{Block, Message, Messages, ToolContent, Usage};
use serde_json::Value;

/// Messages, oldest first, and an account of their size. History only grows, except through
/// compaction.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Messages,
    /// Tokens of everything up to `measured_len` messages, as the provider last counted.
    measured_tokens: u64,
    measured_len: usize,
}

impl Conversation {
    pub fn new(messages: Vec<Arc<Message>>) -> Self {
        Self {
            messages: messages.into(),
            measured_tokens: 0,
            measured_len: 0,
        }
    }

    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The messages to hand on.
    pub(crate) fn shared(&self) -> Messages {
        self.messages.clone()
    }

    pub fn push(&mut self, message: Arc<Message>) {
        self.messages.push(message);
    }

    pub(crate) fn extend(&mut self, messages: impl IntoIterator<Item = Arc<Message>>) {
        for message in messages {
            self.push(message);
        }
    }

    /// Where the system messages end.
    pub(crate) fn system_len(&self) -> usize {
        self.messages.system_len()
    }

    /// Notes what the provider counted for a call whose answer is now the last message.
    pub(crate) fn measured(&mut self, usage: &Usage) {
        self.measured_tokens = usage.total_input() + usage.output;
        self.measured_len = self.messages.len();
    }

    /// Tokens the provider has seen before.
    pub(crate) fn seen_tokens(&self) -> u64 {
        self.measured_tokens
    }

    /// Replaces history; what was measured no longer holds.
    pub(crate) fn replace(&mut self, messages: Vec<Arc<Message>>) {
        *self = Self::new(messages);
    }

    /// Tokens of the next request: counted by the provider as far as it has seen, estimated for
    /// what came since. `overhead` is what goes along with every request: tools.
    pub fn tokens(&self, overhead: u64) -> u64 {
        let unseen: u64 = self.messages[self.measured_len..]
            .iter()
            .map(|message| estimate(message))
            .sum();
        if self.measured_len == 0 {
            unseen + overhead
        } else {
            self.measured_tokens + unseen
        }
    }

    /// A number of the provider's tokens in ours: where it counts more than we guess, so much
    /// fewer of ours are meant.
    pub(crate) fn in_estimates(&self, tokens: u64, overhead: u64) -> u64 {
        let guessed: u64 = self.messages[..self.measured_len]
            .iter()
            .map(|message| estimate(message))
            .sum();
        let guessed = guessed + overhead;
        if self.measured_tokens <= guessed {
            return tokens;
        }
        let scaled = u128::from(tokens) * u128::from(guessed) / u128::from(self.measured_tokens);
        u64::try_from(scaled).unwrap_or(tokens)
    }
}

/// A guess at a message's tokens: a quarter of its bytes, and images by their size.
pub fn estimate(message: &Message) -> u64 {
    message.content.iter().map(block_tokens).sum::<u64>() + PER_MESSAGE
}

/// Roles and separators.
const PER_MESSAGE: u64 = 4;

fn block_tokens(block: &Block) -> u64 {
    match block {
        Block::Text { text, .. } | Block::Thinking { text, .. } => text_tokens(text),
        Block::RedactedThinking { data } => text_tokens(data),
        Block::ToolUse { name, input, .. } => text_tokens(name) + value_tokens(input),
        Block::ToolResult { content, .. } => content
            .iter()
            .map(|part| match part {
                ToolContent::Text { text } => text_tokens(text),
                ToolContent::Image(image) => image.estimated_tokens(),
            })
            .sum(),
        Block::Image(image) => image.estimated_tokens(),
        Block::Opaque { value } => value_tokens(value),
    }
}

fn text_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

fn value_tokens(value: &Value) -> u64 {
    text_tokens(&value.to_string())
}
