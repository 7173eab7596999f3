//! The pieces of an answer as events of the Messages API, whoever answers: a message begins, its
//! blocks begin, grow and end, and it stops.

use caliban_agent::AnswerStep;
use caliban_model::{Block, Usage};
use serde_json::{Value, json};

use super::frame::{Tokens, stop_reason};
use super::names::theirs;
use super::tool_result::{block, tool_input};

/// The answer that is being shown.
#[derive(Debug, Default)]
pub(super) struct Stream {
    has_begun: bool,
    next_index: usize,
    open: Vec<Open>,
}

/// A block that has begun.
#[derive(Debug, PartialEq, Eq)]
struct Open {
    index: usize,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Tool(String),
}

/// What is known of the answer before its first block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) id: &'a str,
    pub(super) model: &'a str,
    pub(super) usage: Usage,
}

impl Stream {
    pub(super) fn text(&mut self, text: &str, head: Head<'_>) -> Vec<Value> {
        let mut events = self.opened(Kind::Text, head, || json!({"type": "text", "text": ""}));
        events.extend(self.grow(&Kind::Text, || json!({"type": "text_delta", "text": text})));
        events
    }

    pub(super) fn thinking(&mut self, text: &str, head: Head<'_>) -> Vec<Value> {
        let start = || json!({"type": "thinking", "thinking": "", "signature": ""});
        let mut events = self.opened(Kind::Thinking, head, start);
        let delta = || json!({"type": "thinking_delta", "thinking": text});
        events.extend(self.grow(&Kind::Thinking, delta));
        events
    }

    /// The events of a step, before the frame of a block that has ended.
    pub(super) fn before(&mut self, step: &AnswerStep, head: Head<'_>) -> Vec<Value> {
        match step {
            AnswerStep::Started { .. } => {
                *self = Self::default();
                Vec::new()
            }
            AnswerStep::ToolBegun { id, name } => {
                let start =
                    || json!({"type": "tool_use", "id": id, "name": theirs(name), "input": {}});
                self.opened(Kind::Tool(id.to_string()), head, start)
            }
            AnswerStep::ToolInput { json } => {
                let delta = json!({"type": "input_json_delta", "partial_json": json});
                let tool = self
                    .open
                    .iter()
                    .rev()
                    .find(|open| matches!(open.kind, Kind::Tool(_)));
                tool.map(|open| grown(open.index, &delta))
                    .into_iter()
                    .collect()
            }
            AnswerStep::BlockEnded { block } => self.completed(block, head),
            AnswerStep::Measured { .. } | AnswerStep::Stopped { .. } => Vec::new(),
        }
    }

    /// The events of a step after that frame.
    pub(super) fn after(&mut self, step: &AnswerStep, usage: Usage, head: Head<'_>) -> Vec<Value> {
        match step {
            AnswerStep::BlockEnded { block } => {
                let Some(kind) = kind(block) else {
                    return Vec::new();
                };
                let place = self.open.iter().position(|open| open.kind == kind);
                let open = place.map(|place| self.open.remove(place));
                open.map(|open| ended(open.index)).into_iter().collect()
            }
            AnswerStep::Stopped { reason } => {
                let mut events = self.begun(head);
                events.extend(self.stopped(Some(&stop_reason(reason)), usage));
                events
            }
            AnswerStep::Started { .. }
            | AnswerStep::Measured { .. }
            | AnswerStep::ToolBegun { .. }
            | AnswerStep::ToolInput { .. } => Vec::new(),
        }
    }

    /// The end of a message, also of one that was cut off; nothing if there is none.
    pub(super) fn stopped(&mut self, reason: Option<&str>, usage: Usage) -> Vec<Value> {
        if !self.has_begun {
            return Vec::new();
        }
        let open = std::mem::take(&mut self.open);
        self.has_begun = false;
        open.iter()
            .map(|open| ended(open.index))
            .chain([
                json!({
                    "type": "message_delta",
                    "delta": {"stop_reason": reason, "stop_sequence": null},
                    "usage": Tokens::from(usage),
                }),
                json!({"type": "message_stop"}),
            ])
            .collect()
    }

    fn begun(&mut self, head: Head<'_>) -> Vec<Value> {
        if self.has_begun {
            return Vec::new();
        }
        self.has_begun = true;
        vec![json!({
            "type": "message_start",
            "message": {
                "id": head.id,
                "type": "message",
                "role": "assistant",
                "model": head.model,
                "content": [],
                "stop_reason": null,
                "stop_sequence": null,
                "usage": Tokens::from(head.usage),
            },
        })]
    }

    fn opened(&mut self, kind: Kind, head: Head<'_>, start: impl Fn() -> Value) -> Vec<Value> {
        let mut events = self.begun(head);
        if !self.open.iter().any(|open| open.kind == kind) {
            let index = self.next_index;
            self.next_index += 1;
            self.open.push(Open { index, kind });
            events.push(json!({
                "type": "content_block_start",
                "index": index,
                "content_block": start(),
            }));
        }
        events
    }

    fn grow(&self, kind: &Kind, delta: impl Fn() -> Value) -> Option<Value> {
        let open = self.open.iter().find(|open| open.kind == *kind)?;
        Some(grown(open.index, &delta()))
    }

    /// A block that nobody saw growing is shown whole; thinking is signed at its end.
    fn completed(&mut self, whole: &Block, head: Head<'_>) -> Vec<Value> {
        let Some(kind) = kind(whole) else {
            return self.begun(head);
        };
        let is_open = self.open.iter().any(|open| open.kind == kind);
        let mut events = Vec::new();
        if !is_open {
            events = match whole {
                Block::Text { text, .. } => self.text(text, head),
                Block::Thinking { text, .. } => self.thinking(text, head),
                Block::ToolUse {
                    id, name, input, ..
                } => {
                    let start =
                        || json!({"type": "tool_use", "id": id, "name": theirs(name), "input": {}});
                    let mut events = self.opened(Kind::Tool(id.clone()), head, start);
                    let json = tool_input(name, input).to_string();
                    events.extend(self.grow(
                        &kind,
                        || json!({"type": "input_json_delta", "partial_json": json}),
                    ));
                    events
                }
                other => self.opened(kind, head, || block(other).unwrap_or_default()),
            };
        } else if let Block::Thinking {
            signature: Some(signature),
            ..
        } = whole
        {
            events.extend(self.grow(
                &kind,
                || json!({"type": "signature_delta", "signature": signature}),
            ));
        }
        events
    }
}

fn kind(block: &Block) -> Option<Kind> {
    match block {
        Block::Text { .. } => Some(Kind::Text),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => Some(Kind::Thinking),
        Block::ToolUse { id, .. } => Some(Kind::Tool(id.clone())),
        Block::ToolResult { .. } | Block::Image(_) | Block::Opaque { .. } => None,
    }
}

fn grown(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn ended(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}
