//! Builds the blocks of an answer from deltas and tells of both as events.

use std::collections::HashSet;

use caliban_model::{Block, Error, ErrorKind, Origin, StopReason, StreamEvent, Usage};
use serde_json::{Map, Value};

use crate::failure::fail;

/// The most one answer may hold. Models stop far earlier; only a broken or hostile server does
/// not.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// The most blocks one answer may have.
const MAX_BLOCKS: usize = 4096;

/// A block being built; its position in the answer is fixed when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BlockId(usize);

#[derive(Debug)]
enum Part {
    Text {
        text: String,
        private: Option<Value>,
    },
    Thinking {
        text: String,
        signature: Option<String>,
        private: Option<Value>,
    },
    Tool {
        id: String,
        name: String,
        input: String,
        private: Option<Value>,
    },
    Ended,
}

/// Collects one answer. Decoders call it in the order of the wire; it keeps the promises of
/// [`StreamEvent`]: positions, unique tool ids, one stop at the end, bounded memory.
#[derive(Debug)]
pub(crate) struct Assembly {
    origin: Origin,
    parts: Vec<Part>,
    tool_ids: HashSet<String>,
    bytes: usize,
    events: Vec<StreamEvent>,
    stopped: bool,
}

impl Assembly {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            origin,
            parts: Vec::new(),
            tool_ids: HashSet::new(),
            bytes: 0,
            events: Vec::new(),
            stopped: false,
        }
    }

    /// What happened since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// An error of this call.
    pub(crate) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        fail(&self.origin, kind, message)
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped
    }

    pub(crate) fn has_content(&self) -> bool {
        !self.parts.is_empty()
    }

    pub(crate) fn has_tool_calls(&self) -> bool {
        !self.tool_ids.is_empty()
    }

    /// Bytes of content so far, for estimates.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn started(&mut self, model: impl Into<String>) {
        self.events.push(StreamEvent::Started {
            model: model.into(),
        });
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        self.events.push(StreamEvent::Usage { usage });
    }

    pub(crate) fn open_text(&mut self) -> Result<BlockId, Error> {
        self.open(Part::Text {
            text: String::new(),
            private: None,
        })
    }

    pub(crate) fn open_thinking(&mut self) -> Result<BlockId, Error> {
        self.open(Part::Thinking {
            text: String::new(),
            signature: None,
            private: None,
        })
    }

    /// Opens a tool call. An id that is missing or already taken in this answer is replaced by a
    /// new one.
    pub(crate) fn open_tool(&mut self, id: &str, name: &str) -> Result<BlockId, Error> {
        let id = if id.trim().is_empty() || self.tool_ids.contains(id) {
            format!("call_{}", uuid::Uuid::new_v4().simple())
        } else {
            id.to_owned()
        };
        self.tool_ids.insert(id.clone());
        let block = self.open(Part::Tool {
            id: id.clone(),
            name: name.to_owned(),
            input: String::new(),
            private: None,
        })?;
        self.events.push(StreamEvent::ToolStarted {
            index: block.0,
            id,
            name: name.to_owned(),
        });
        Ok(block)
    }

    /// Appends to a text, thinking or tool-input block and tells of it. A block that has ended
    /// takes nothing more.
    pub(crate) fn push(&mut self, block: BlockId, delta: &str) -> Result<(), Error> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        let BlockId(index) = block;
        let event = match self.parts.get_mut(index) {
            Some(Part::Text { text, .. }) => {
                text.push_str(delta);
                StreamEvent::TextDelta {
                    index,
                    text: delta.to_owned(),
                }
            }
            Some(Part::Thinking { text, .. }) => {
                text.push_str(delta);
                StreamEvent::ThinkingDelta {
                    index,
                    text: delta.to_owned(),
                }
            }
            Some(Part::Tool { input, .. }) => {
                input.push_str(delta);
                StreamEvent::ToolInputDelta {
                    index,
                    json: delta.to_owned(),
                }
            }
            Some(Part::Ended) | None => return Ok(()),
        };
        self.events.push(event);
        Ok(())
    }

    /// The tool input collected so far; empty for other blocks.
    pub(crate) fn tool_input(&self, block: BlockId) -> &str {
        match self.parts.get(block.0) {
            Some(Part::Tool { input, .. }) => input,
            _ => "",
        }
    }

    /// Replaces a tool's input by an authoritative copy, without telling of a delta.
    pub(crate) fn set_tool_input(&mut self, block: BlockId, json: &str) -> Result<(), Error> {
        self.grow(json.len())?;
        if let Some(Part::Tool { input, .. }) = self.parts.get_mut(block.0) {
            json.clone_into(input);
        }
        Ok(())
    }

    pub(crate) fn set_signature(&mut self, block: BlockId, value: &str) -> Result<(), Error> {
        self.grow(value.len())?;
        if let Some(Part::Thinking { signature, .. }) = self.parts.get_mut(block.0) {
            *signature = Some(value.to_owned());
        }
        Ok(())
    }

    /// Attaches what the provider wants back unchanged.
    pub(crate) fn set_private(&mut self, block: BlockId, value: Value) {
        if let Some(
            Part::Text { private, .. }
            | Part::Thinking { private, .. }
            | Part::Tool { private, .. },
        ) = self.parts.get_mut(block.0)
        {
            *private = Some(value);
        }
    }

    /// Ends a block; ending it twice is harmless. Empty text vanishes unless it carries private
    /// data: no provider takes empty text back.
    pub(crate) fn end(&mut self, block: BlockId) {
        let BlockId(index) = block;
        let Some(part) = self.parts.get_mut(index) else {
            return;
        };
        let block = match std::mem::replace(part, Part::Ended) {
            Part::Ended => return,
            Part::Text {
                text,
                private: None,
            } if text.is_empty() => return,
            Part::Text { text, private } => Block::Text { text, private },
            Part::Thinking {
                text,
                signature,
                private,
            } => Block::Thinking {
                text,
                signature,
                private,
            },
            Part::Tool {
                id,
                name,
                input,
                private,
            } => Block::ToolUse {
                id,
                name,
                input: parse_input(&input),
                private,
            },
        };
        self.events.push(StreamEvent::BlockEnded { index, block });
    }

    /// A block that arrives complete.
    pub(crate) fn whole(&mut self, block: Block) -> Result<(), Error> {
        let BlockId(index) = self.open(Part::Ended)?;
        self.events.push(StreamEvent::BlockEnded { index, block });
        Ok(())
    }

    /// Ends all blocks and the answer; later calls are ignored. A model that made tool calls
    /// wants them run whatever name its server gives to that.
    pub(crate) fn stop(&mut self, reason: StopReason, detail: Option<String>) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        for index in 0..self.parts.len() {
            self.end(BlockId(index));
        }
        let reason = match reason {
            StopReason::EndTurn if self.has_tool_calls() => StopReason::ToolUse,
            other => other,
        };
        self.events.push(StreamEvent::Stopped { reason, detail });
    }

    fn open(&mut self, part: Part) -> Result<BlockId, Error> {
        if self.parts.len() >= MAX_BLOCKS {
            return Err(self.error(
                ErrorKind::Malformed,
                format!("the answer has more than {MAX_BLOCKS} blocks"),
            ));
        }
        self.parts.push(part);
        Ok(BlockId(self.parts.len() - 1))
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes;
        if self.bytes > MAX_ANSWER {
            return Err(self.error(
                ErrorKind::Malformed,
                format!(
                    "the answer is larger than {} MiB",
                    MAX_ANSWER / (1024 * 1024)
                ),
            ));
        }
        Ok(())
    }
}

/// A tool's input as an object. No input means no arguments; what is not an object is kept as
/// text, so that the model can be shown what it wrote.
pub(crate) fn parse_input(json: &str) -> Value {
    if json.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(json) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        Ok(_) | Err(_) => Value::String(json.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn assembly() -> Assembly {
        Assembly::new(Origin::new("p", "m"))
    }

    fn blocks(events: &[StreamEvent]) -> Vec<Block> {
        events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::BlockEnded { block, .. } => Some(block.clone()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn stopping_ends_open_blocks_and_recognises_tool_calls() {
        let mut assembly = assembly();
        let text = assembly.open_text().unwrap();
        assembly.push(text, "hi").unwrap();
        let tool = assembly.open_tool("", "Bash").unwrap();
        assembly.push(tool, "{\"a\":1}").unwrap();
        assembly.stop(StopReason::EndTurn, None);
        assembly.stop(StopReason::MaxTokens, None);
        let events = assembly.take_events();
        assert_eq!(
            events.last(),
            Some(&StreamEvent::Stopped {
                reason: StopReason::ToolUse,
                detail: None
            })
        );
        let ended = blocks(&events);
        assert_eq!(ended[0], Block::text("hi"));
        assert!(
            matches!(&ended[1], Block::ToolUse { id, input, .. } if id.starts_with("call_") && *input == json!({"a": 1}))
        );
    }

    #[test]
    fn a_reused_tool_id_is_replaced() {
        let mut assembly = assembly();
        assembly.open_tool("x", "A").unwrap();
        assembly.open_tool("x", "B").unwrap();
        assembly.stop(StopReason::ToolUse, None);
        let ids: HashSet<String> = blocks(&assembly.take_events())
            .into_iter()
            .filter_map(|block| match block {
                Block::ToolUse { id, .. } => Some(id),
                _ => None,
            })
            .collect();
        assert_eq!(ids.len(), 2);
    }

    #[test]
    fn input_that_is_no_object_is_kept_as_text() {
        assert_eq!(parse_input(""), json!({}));
        assert_eq!(parse_input("{\"a\""), json!("{\"a\""));
        assert_eq!(parse_input("[1]"), json!("[1]"));
    }

    #[test]
    fn an_endless_answer_is_refused() {
        let mut assembly = assembly();
        let text = assembly.open_text().unwrap();
        let chunk = "x".repeat(1024 * 1024);
        let refused = (0..=MAX_ANSWER / chunk.len()).any(|_| {
            let result = assembly.push(text, &chunk);
            assembly.take_events();
            result.is_err()
        });
        assert!(refused);
    }
}
