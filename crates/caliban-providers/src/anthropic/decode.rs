//! Reads the answers of the Messages API, streamed or whole.

use std::collections::BTreeMap;

use caliban_model::{Block, Error, ErrorKind, StopReason};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error_body;
use super::messages::input_object;
use super::wire::{Delta, Ending, Event, Message, Usage};
use crate::adapter::Decoder;
use crate::assembly::{Assembly, BlockId, parse_input};
use crate::failure::kind_of;
use crate::framing::Frame;

/// The most blocks that may be open at once; today the API opens one at a time.
const MAX_OPEN: usize = 256;
/// The most that is kept beside the text: opaque blocks, their input and citations, in bytes of
/// the events that brought them.
const MAX_KEPT: usize = 32 * 1024 * 1024;

/// The state of one answer.
#[derive(Debug, Default)]
pub(super) struct Messages {
    started: Started,
    open: BTreeMap<u64, Open>,
    usage: Usage,
    ending: Ending,
    kept: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Started {
    #[default]
    No,
    Yes,
}

/// A block of which more may come.
#[derive(Debug)]
enum Open {
    Text {
        id: BlockId,
        citations: Vec<Value>,
    },
    Thinking {
        id: BlockId,
    },
    Tool {
        id: BlockId,
        /// The input as the block was opened with it; counts only if no other comes.
        input: Option<Value>,
    },
    Opaque {
        value: Value,
        input: String,
    },
}

impl Decoder for Messages {
    fn frame(&mut self, frame: &Frame, assembly: &mut Assembly) -> Result<(), Error> {
        let event = match Event::read(&frame.data) {
            Ok(event) => event,
            Err(error) => return Err(unreadable(&frame.data, &error, assembly)),
        };
        let size = frame.data.len();
        match event {
            Event::MessageStart { message } => {
                self.start(message.model, assembly);
                self.report(message.usage, assembly);
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                self.keep(size, assembly)?;
                self.start(None, assembly);
                if let Some(unfinished) = self.open.remove(&index) {
                    close(unfinished, assembly)?;
                }
                if self.open.len() >= MAX_OPEN {
                    return Err(assembly.error(
                        ErrorKind::Malformed,
                        format!("more than {MAX_OPEN} blocks are open at once"),
                    ));
                }
                let block = open(content_block, assembly)?;
                self.open.insert(index, block);
            }
            Event::ContentBlockDelta { index, delta } => {
                self.delta(index, delta, size, assembly)?;
            }
            Event::ContentBlockStop { index } => {
                if let Some(block) = self.open.remove(&index) {
                    close(block, assembly)?;
                }
            }
            Event::MessageDelta { delta, usage } => {
                self.start(None, assembly);
                self.report(usage, assembly);
                if delta.stop_reason.is_some() {
                    self.ending = delta;
                }
            }
            Event::MessageStop => {
                self.start(None, assembly);
                for block in std::mem::take(&mut self.open).into_values() {
                    close(block, assembly)?;
                }
                stop(std::mem::take(&mut self.ending), assembly);
            }
            Event::Error(document) => return Err(stream_error(&document, assembly)),
            Event::Unknown => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        if error_body(body).is_some() {
            return Err(stream_error(body, assembly));
        }
        if !body.get("content").is_some_and(Value::is_array) {
            return Err(assembly.error(ErrorKind::Malformed, "the answer is no message"));
        }
        let message = Message::deserialize(body).map_err(|error| {
            assembly.error(
                ErrorKind::Malformed,
                format!("the answer cannot be read: {error}"),
            )
        })?;
        self.start(message.model, assembly);
        for block in message.content {
            let block = open(block, assembly)?;
            close(block, assembly)?;
        }
        self.report(message.usage, assembly);
        stop(message.ending, assembly);
        Ok(())
    }
}

impl Messages {
    fn start(&mut self, model: Option<String>, assembly: &mut Assembly) {
        if std::mem::replace(&mut self.started, Started::Yes) == Started::No {
            let model = model.unwrap_or_else(|| assembly.origin().model.to_string());
            assembly.started(model);
        }
    }

    fn report(&mut self, usage: Option<Usage>, assembly: &mut Assembly) {
        let Some(usage) = usage else { return };
        self.usage.update(usage);
        if let Some(counts) = self.usage.counts() {
            assembly.usage(counts);
        }
    }

    fn keep(&mut self, bytes: usize, assembly: &Assembly) -> Result<(), Error> {
        self.kept += bytes;
        if self.kept > MAX_KEPT {
            return Err(assembly.error(
                ErrorKind::Malformed,
                format!(
                    "the answer holds more than {} MiB beside its text",
                    MAX_KEPT / (1024 * 1024)
                ),
            ));
        }
        Ok(())
    }

    /// A delta of another kind than its block is one we do not know, and is passed over.
    fn delta(
        &mut self,
        index: u64,
        delta: Delta<'_>,
        size: usize,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        match (self.open.get_mut(&index), delta) {
            (None, _) => Err(assembly.error(
                ErrorKind::Malformed,
                format!("content came for block {index}, which is not open"),
            )),
            (Some(Open::Text { id, .. }), Delta::Text(text)) => assembly.push(*id, &text),
            (Some(Open::Thinking { id }), Delta::Thinking(thinking)) => {
                assembly.push(*id, &thinking)
            }
            (Some(Open::Thinking { id }), Delta::Signature(signature)) => {
                sign(*id, &signature, assembly)
            }
            (Some(Open::Tool { id, .. }), Delta::Input(partial_json)) => {
                assembly.push(*id, &partial_json)
            }
            (Some(Open::Text { citations, .. }), Delta::Citation(citation)) => {
                citations.push(citation);
                self.keep(size, assembly)
            }
            (Some(Open::Opaque { input, .. }), Delta::Input(partial_json)) => {
                input.push_str(&partial_json);
                self.keep(size, assembly)
            }
            (
                Some(_),
                Delta::Text(_)
                | Delta::Thinking(_)
                | Delta::Signature(_)
                | Delta::Input(_)
                | Delta::Citation(_)
                | Delta::Unknown,
            ) => Ok(()),
        }
    }
}

/// Opens a block with what its opening already holds: everything in a whole answer, next to
/// nothing in a stream.
fn open(mut block: Value, assembly: &mut Assembly) -> Result<Open, Error> {
    let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or("");
    match text("type") {
        "text" => {
            let id = assembly.open_text()?;
            assembly.push(id, text("text"))?;
            let citations = match block.get_mut("citations").map(Value::take) {
                Some(Value::Array(citations)) => citations,
                Some(_) | None => Vec::new(),
            };
            Ok(Open::Text { id, citations })
        }
        "thinking" => {
            let id = assembly.open_thinking()?;
            assembly.push(id, text("thinking"))?;
            sign(id, text("signature"), assembly)?;
            Ok(Open::Thinking { id })
        }
        "tool_use" => {
            let id = assembly.open_tool(text("id"), text("name"))?;
            if let Some(private) = private_fields(&block) {
                assembly.set_private(id, private);
            }
            let input = block.get_mut("input").map(Value::take);
            Ok(Open::Tool { id, input })
        }
        "" => Err(assembly.error(ErrorKind::Malformed, "a content block has no type")),
        _ => Ok(Open::Opaque {
            value: block,
            input: String::new(),
        }),
    }
}

/// An empty signature is a placeholder.
fn sign(id: BlockId, signature: &str, assembly: &mut Assembly) -> Result<(), Error> {
    if signature.is_empty() {
        return Ok(());
    }
    assembly.set_signature(id, signature)
}

/// The fields of a tool call that only this API knows.
fn private_fields(block: &Value) -> Option<Value> {
    let fields: Map<String, Value> = ["caller", "toolset_name"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), block.get(name)?.clone())))
        .filter(|(_, value)| !value.is_null())
        .collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn close(block: Open, assembly: &mut Assembly) -> Result<(), Error> {
    match block {
        Open::Text { id, citations } => {
            if !citations.is_empty() {
                assembly.set_private(id, json!({"citations": citations}));
            }
            assembly.end(id);
        }
        Open::Thinking { id } => assembly.end(id),
        Open::Tool { id, input } => {
            if let Some(Value::Object(fields)) = input
                && !fields.is_empty()
                && assembly.tool_input(id).is_empty()
            {
                assembly.push(id, &Value::Object(fields).to_string())?;
            }
            assembly.end(id);
        }
        Open::Opaque { mut value, input } => {
            if value["type"] == "redacted_thinking"
                && let Some(Value::String(data)) = value.get_mut("data").map(Value::take)
            {
                return assembly.whole(Block::RedactedThinking { data });
            }
            if let Some(slot) = value.get_mut("input")
                && !input.is_empty()
            {
                *slot = input_object(&parse_input(&input));
            }
            assembly.whole(Block::Opaque { value })?;
        }
    }
    Ok(())
}

fn stop(ending: Ending, assembly: &mut Assembly) {
    let reason = match ending.stop_reason.as_deref() {
        Some("end_turn") | None => StopReason::EndTurn,
        Some("tool_use") => StopReason::ToolUse,
        Some("max_tokens") => StopReason::MaxTokens,
        Some("stop_sequence") => StopReason::StopSequence,
        Some("refusal") => StopReason::Refusal,
        Some("model_context_window_exceeded") => StopReason::ContextExceeded,
        Some("pause_turn") => StopReason::Pause,
        Some(other) => StopReason::Other(other.to_owned()),
    };
    let detail =
        ending
            .stop_details
            .and_then(|details| match (details.explanation, details.category) {
                (Some(explanation), Some(category)) => Some(format!("{explanation} ({category})")),
                (Some(one), None) | (None, Some(one)) => Some(one),
                (None, None) => None,
            });
    assembly.stop(reason, detail);
}

/// An error that came after the status had already said success.
fn stream_error(document: &Value, assembly: &Assembly) -> Error {
    let Some(body) = error_body(document) else {
        return assembly.error(ErrorKind::Server, "the server reported an error");
    };
    let kind = kind_of(None, &body.codes, &body.message);
    let mut error = assembly.error(kind, body.message);
    error.request_id = document
        .get("request_id")
        .and_then(Value::as_str)
        .map(str::to_owned);
    error
}

/// Compatible servers put errors of other forms into the stream.
fn unreadable(data: &str, cause: &serde_json::Error, assembly: &Assembly) -> Error {
    match serde_json::from_str::<Value>(data) {
        Ok(document) if error_body(&document).is_some() => stream_error(&document, assembly),
        Ok(_) | Err(_) => assembly.error(
            ErrorKind::Malformed,
            format!("an event cannot be read: {cause}"),
        ),
    }
}

#[cfg(test)]
mod tests;
