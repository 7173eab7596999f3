//! A Chat Completions answer, streamed or whole. A completion has at most one text and one
//! reasoning, so their blocks stay open until it ends.

use caliban_model::{Error, ErrorKind, StopReason, Usage};
use serde_json::{Map, Value, json};

use super::Server;
use super::calls::Calls;
use super::details::Details;
use super::inline::{Inline, Piece};
use super::printed::{Ending, PrintedCalls};
use super::wire::{Chunk, Delta};
use crate::adapter::Decoder;
use crate::assembly::{Assembly, BlockId};
use crate::framing::Frame;
use crate::openai::lenient::filled;
use crate::openai::{error, usage};

/// The longest explanation of a refusal that is kept.
const MAX_REFUSAL: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct ChatDecoder {
    started: bool,
    text: Option<BlockId>,
    thinking: Option<BlockId>,
    /// Reasoning came as `reasoning_content`, and is expected back there.
    reasoning_content: bool,
    details: Details,
    inline: Inline,
    printed: PrintedCalls,
    calls: Calls,
    refusal: String,
    usage: Option<Usage>,
    finish_reason: Option<String>,
}

impl ChatDecoder {
    pub(super) fn new(server: Server) -> Self {
        Self {
            started: false,
            text: None,
            thinking: None,
            reasoning_content: false,
            details: Details::default(),
            inline: Inline::new(server),
            printed: PrintedCalls::default(),
            calls: Calls::default(),
            refusal: String::new(),
            usage: None,
            finish_reason: None,
        }
    }

    /// Understands calls that are printed as text.
    pub(super) fn with_printed(self, printed: PrintedCalls) -> Self {
        Self { printed, ..self }
    }

    fn chunk(&mut self, chunk: Chunk, assembly: &mut Assembly) -> Result<(), Error> {
        let model = chunk.model.unwrap_or_default();
        // Some servers open with a chunk that names nothing; wait for one that does.
        if !model.is_empty() || !chunk.choices.is_empty() {
            self.start(model, assembly);
        }
        for choice in chunk.choices {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            self.delta(choice.delta, assembly)?;
            if filled(choice.finish_reason.as_deref()).is_some() {
                self.finish_reason = choice.finish_reason;
            }
        }
        if let Some(usage) = usage::read(&chunk.usage)
            && self.usage != Some(usage)
        {
            self.usage = Some(usage);
            assembly.usage(usage);
        }
        Ok(())
    }

    fn start(&mut self, model: String, assembly: &mut Assembly) {
        if !std::mem::replace(&mut self.started, true) {
            assembly.started(model);
        }
    }

    fn delta(&mut self, delta: Delta, assembly: &mut Assembly) -> Result<(), Error> {
        let detailed = self.details.add(delta.reasoning_details, assembly)?;
        // Servers that send reasoning under several names send the same text under each.
        if let Some(text) = filled_text(delta.reasoning_content) {
            self.reasoning_content = true;
            self.think(&text, assembly)?;
        } else if let Some(text) = filled_text(delta.reasoning) {
            self.think(&text, assembly)?;
        } else {
            self.think(&detailed, assembly)?;
        }
        match delta.content {
            Value::String(text) => self.content(&text, assembly)?,
            Value::Array(parts) => {
                for part in &parts {
                    self.part(part, assembly)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
        if let Some(refusal) = delta.refusal
            && self.refusal.len() + refusal.len() <= MAX_REFUSAL
        {
            self.refusal.push_str(&refusal);
        }
        for fragment in delta.tool_calls {
            self.calls.add(fragment, assembly)?;
        }
        Ok(())
    }

    /// Mistral's parts: text, and thinking that is a list of texts.
    fn part(&mut self, part: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        if let Some(text) = part.as_str().or_else(|| part.get("text")?.as_str()) {
            self.content(text, assembly)?;
        }
        match part.get("thinking") {
            Some(Value::String(text)) => self.think(text, assembly),
            Some(Value::Array(texts)) => {
                for text in texts {
                    let text = text.get("text").and_then(Value::as_str).unwrap_or_default();
                    self.think(text, assembly)?;
                }
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn content(&mut self, text: &str, assembly: &mut Assembly) -> Result<(), Error> {
        for piece in self.inline.push(text) {
            self.piece(&piece, assembly)?;
        }
        Ok(())
    }

    fn piece(&mut self, piece: &Piece, assembly: &mut Assembly) -> Result<(), Error> {
        match piece {
            Piece::Thinking(text) => self.think(text, assembly),
            Piece::Text(text) => {
                let text = self.printed.push(text);
                self.say(&text, assembly)
            }
        }
    }

    fn say(&mut self, text: &str, assembly: &mut Assembly) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.text {
            Some(block) => block,
            None => *self.text.insert(assembly.open_text()?),
        };
        assembly.push(block, text)
    }

    /// What was held back is a call, if the answer made no other.
    fn ending(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        match self.printed.finish() {
            Ending::Text(text) => self.say(&text, assembly),
            Ending::Calls(calls) if assembly.has_tool_calls() => {
                let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
                self.say(&format!("[printed calls: {}]", names.join(", ")), assembly)
            }
            Ending::Calls(calls) => {
                for call in calls {
                    let block = assembly.open_tool("", &call.name)?;
                    assembly.push(block, &call.input.to_string())?;
                    assembly.end(block);
                }
                Ok(())
            }
        }
    }

    fn think(&mut self, text: &str, assembly: &mut Assembly) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        let block = self.thinking_block(assembly)?;
        assembly.push(block, text)
    }

    fn thinking_block(&mut self, assembly: &mut Assembly) -> Result<BlockId, Error> {
        match self.thinking {
            Some(block) => Ok(block),
            None => Ok(*self.thinking.insert(assembly.open_thinking()?)),
        }
    }

    /// The answer is complete.
    fn done(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        if let Some(piece) = self.inline.finish() {
            self.piece(&piece, assembly)?;
        }
        self.ending(assembly)?;
        let mut private = Map::new();
        if self.reasoning_content {
            private.insert("field".into(), json!("reasoning_content"));
        }
        if let Some(details) = self.details.take() {
            private.insert("reasoning_details".into(), details);
        }
        if !private.is_empty() {
            let block = self.thinking_block(assembly)?;
            assembly.set_private(block, Value::Object(private));
        }
        let reason = match self.finish_reason.take() {
            Some(reason) => stop_reason(reason, assembly)?,
            None if assembly.has_content() || !self.refusal.is_empty() => StopReason::EndTurn,
            None => {
                return Err(assembly.error(ErrorKind::Malformed, "the answer is empty"));
            }
        };
        if self.refusal.is_empty() {
            assembly.stop(reason, None);
        } else {
            assembly.stop(StopReason::Refusal, Some(std::mem::take(&mut self.refusal)));
        }
        Ok(())
    }
}

fn filled_text(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn stop_reason(reason: String, assembly: &Assembly) -> Result<StopReason, Error> {
    Ok(match reason.as_str() {
        // Whether there are calls to run is known from the calls, not from the name.
        "stop" | "eos" | "end_turn" | "tool_calls" | "function_call" => StopReason::EndTurn,
        "length" | "model_length" | "max_tokens" => StopReason::MaxTokens,
        "content_filter" => StopReason::ContentFilter,
        "error" => {
            return Err(assembly.error(
                ErrorKind::Server,
                "the server ended the answer with an error",
            ));
        }
        _ => StopReason::Other(reason),
    })
}

impl Decoder for ChatDecoder {
    fn frame(&mut self, frame: &Frame, assembly: &mut Assembly) -> Result<(), Error> {
        let data = frame.data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.done(assembly);
        }
        let value: Value = match serde_json::from_str(data) {
            Ok(value) => value,
            Err(_) if frame.event == "error" => json!({ "error": data }),
            Err(error) => {
                return Err(assembly.error(
                    ErrorKind::Malformed,
                    format!("a chunk of the answer is not JSON: {error}"),
                ));
            }
        };
        if frame.event == "error" || is_error(&value) {
            return Err(error::in_stream(assembly.origin(), &value));
        }
        let chunk = serde_json::from_value(value).unwrap_or_default();
        self.chunk(chunk, assembly)
    }

    /// Not every server marks the end; one that named a reason has said everything.
    fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn finish(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        if self.finish_reason.is_some() {
            return self.done(assembly);
        }
        Err(assembly.error(
            ErrorKind::Malformed,
            "the stream ended without its end marker",
        ))
    }

    fn whole(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        if is_error(body) {
            return Err(error::in_stream(assembly.origin(), body));
        }
        let mut chunk: Chunk = serde_json::from_value(body.clone()).unwrap_or_default();
        for choice in &mut chunk.choices {
            choice.delta = std::mem::take(&mut choice.message);
        }
        if chunk.choices.is_empty() {
            return Err(assembly.error(ErrorKind::Malformed, "the answer holds no choice"));
        }
        self.chunk(chunk, assembly)?;
        self.done(assembly)
    }
}

/// A chunk with choices may carry a message of its own; only `error` makes it one then.
fn is_error(value: &Value) -> bool {
    match value.get("error") {
        Some(Value::Null) | None => value.get("choices").is_none() && error::read(value).is_some(),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests;
