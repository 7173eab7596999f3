//! A reply made concrete for one request: ids and signatures assigned, thinking shown or hidden.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::ask::Ask;
use crate::family;
use crate::json;
use crate::quirk::Quirks;
use crate::record::Api;
use crate::script::{Block, Prose, Reply, Stop, Usage};
use crate::text;

/// Counters behind every generated id of one server.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    turns: AtomicU32,
    calls: AtomicU32,
    requests: AtomicU32,
}

impl Ids {
    pub(crate) fn request(&self) -> String {
        format!("req_{:04}", next(&self.requests))
    }
}

fn next(counter: &AtomicU32) -> u32 {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}

/// What a request lets its thinking look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoughts {
    Shown,
    /// Present, but without text.
    Emptied,
    Dropped,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text {
        pieces: Vec<String>,
    },
    Thinking {
        text: String,
        signature: String,
    },
    Redacted {
        data: String,
    },
    Call {
        id: String,
        name: String,
        input: Value,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// Number of the turn on this server; message ids derive from it.
    pub(crate) serial: u32,
    pub(crate) model: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) stop: Stop,
    pub(crate) usage: Usage,
    pub(crate) quirks: Quirks,
    /// Gemini's signature, carried by the turn's first call.
    pub(crate) signature: String,
}

impl Turn {
    pub(crate) fn resolve(reply: &Reply, ask: &Ask, ids: &Ids) -> Self {
        let serial = next(&ids.turns);
        let thoughts = family::thoughts(ask, &reply.quirks);
        let mut signature = json::to_base64(&format!("thought-signature-{serial:04}"));
        let mut parts = Vec::with_capacity(reply.blocks.len());
        for (index, block) in reply.blocks.iter().enumerate() {
            parts.push(match block {
                Block::Text(Prose::Whole(whole)) => Part::Text {
                    pieces: text::pieces(whole),
                },
                Block::Text(Prose::Pieces(pieces)) => Part::Text {
                    pieces: pieces.clone(),
                },
                Block::Thinking {
                    text,
                    signature: given,
                } => {
                    if let Some(given) = given {
                        signature.clone_from(given);
                    }
                    let text = match thoughts {
                        Thoughts::Shown => text.clone(),
                        Thoughts::Emptied => String::new(),
                        Thoughts::Dropped => continue,
                    };
                    let generated = || json::to_base64(&format!("signature-{serial:04}-{index}"));
                    Part::Thinking {
                        text,
                        signature: given.clone().unwrap_or_else(generated),
                    }
                }
                Block::RedactedThinking { data } => Part::Redacted { data: data.clone() },
                Block::ToolCall { name, input, id } => Part::Call {
                    id: id
                        .clone()
                        .unwrap_or_else(|| call_id(ask.api, next(&ids.calls))),
                    name: name.clone(),
                    input: input.clone(),
                },
            });
        }
        let mut turn = Self {
            serial,
            model: reply.model.clone().unwrap_or_else(|| ask.model.clone()),
            parts,
            stop: Stop::EndTurn,
            usage: reply.usage.unwrap_or(Usage::SMALL),
            quirks: reply.quirks.clone(),
            signature,
        };
        let natural = if turn.has_calls() {
            Stop::ToolUse
        } else {
            Stop::EndTurn
        };
        turn.stop = reply.stop.clone().unwrap_or(natural);
        turn
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Call { .. }))
    }

    pub(crate) fn has_thinking(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Thinking { .. }))
    }
}

fn call_id(api: Api, number: u32) -> String {
    match api {
        Api::AnthropicMessages => format!("toolu_{number:04}"),
        Api::OpenAiChat | Api::OpenAiResponses | Api::Ollama => format!("call_{number:04}"),
        Api::Gemini => format!("fn-{number:04}"),
        Api::Converse => format!("tooluse_{number:04}"),
    }
}
