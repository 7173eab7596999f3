//! A Responses answer, streamed or whole. Items are keyed by their position; what their last
//! event says replaces or completes what the deltas said.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use caliban_model::{Block, Error, ErrorKind, StopReason};
use serde_json::{Value, json};

use super::wire::{Event, Item, Part, Response};
use crate::adapter::Decoder;
use crate::assembly::{Assembly, BlockId};
use crate::framing::Frame;
use crate::openai::content::PARAGRAPH;
use crate::openai::lenient::filled;
use crate::openai::{error, usage};

/// The most items one answer may have.
const MAX_ITEMS: usize = 4096;
/// The longest explanation of a refusal that is kept.
const MAX_REFUSAL: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    started: bool,
    /// By output index.
    reasoning: BTreeMap<u64, Reasoning>,
    calls: BTreeMap<u64, BlockId>,
    /// By output and content index.
    texts: BTreeMap<(u64, u64), Text>,
    /// Output indexes of the items that are complete.
    ended: BTreeSet<u64>,
    refusal: String,
}

#[derive(Debug)]
struct Reasoning {
    block: BlockId,
    /// What the text was made from, so far.
    source: Option<Source>,
}

/// A summary part, or the reasoning itself as open models show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Summary(u64),
    Verbatim(u64),
}

#[derive(Debug)]
struct Text {
    block: BlockId,
    /// Bytes told so far.
    length: usize,
}

impl ResponsesDecoder {
    fn start(&mut self, model: &str, assembly: &mut Assembly) {
        if !std::mem::replace(&mut self.started, true) {
            assembly.started(model);
        }
    }

    fn event(&mut self, event: &Event, assembly: &mut Assembly) -> Result<(), Error> {
        let at = event.output_index;
        match event.kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                let model = event.response.get("model").and_then(Value::as_str);
                self.start(model.unwrap_or_default(), assembly);
                Ok(())
            }
            "response.output_item.added" => self.begin(at, &event.item, assembly),
            "response.output_item.done" => self.end(at, &event.item, assembly),
            "response.output_text.delta" => {
                self.say(at, event.content_index, &event.delta, assembly)
            }
            "response.output_text.done" => {
                self.complete_text(at, event.content_index, &event.text, assembly)
            }
            "response.reasoning_summary_text.delta" => {
                let source = Source::Summary(event.summary_index);
                self.think(at, source, &event.delta, assembly)
            }
            "response.reasoning_text.delta" => {
                let source = Source::Verbatim(event.content_index);
                self.think(at, source, &event.delta, assembly)
            }
            "response.refusal.delta" => {
                if self.refusal.len() + event.delta.len() <= MAX_REFUSAL {
                    self.refusal.push_str(&event.delta);
                }
                Ok(())
            }
            "response.refusal.done" => {
                self.refuse(&event.refusal);
                Ok(())
            }
            "response.function_call_arguments.delta" => match self.calls.get(&at) {
                Some(block) => assembly.push(*block, &event.delta),
                None => Ok(()),
            },
            "response.function_call_arguments.done" => {
                self.complete_input(at, event.arguments.as_deref(), assembly)
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let status = event.kind.trim_start_matches("response.");
                self.stop(status, &event.response, assembly)
            }
            // Parts' beginnings and ends, annotations, progress of hosted tools, and whatever
            // comes next.
            _ => Ok(()),
        }
    }

    fn begin(&mut self, at: u64, item: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        let item = read_item(item);
        match item.kind.as_str() {
            "reasoning" => self.reasoning(at, assembly).map(|_| ()),
            "function_call" if filled(Some(&item.name)).is_some() => {
                self.call(at, &item, assembly).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Takes the complete copy of an item; a second one is ignored.
    fn end(&mut self, at: u64, raw: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        if !self.ended.insert(at) {
            return Ok(());
        }
        if self.ended.len() > MAX_ITEMS {
            return Err(assembly.error(
                ErrorKind::Malformed,
                format!("the answer has more than {MAX_ITEMS} items"),
            ));
        }
        let item = read_item(raw);
        match item.kind.as_str() {
            "reasoning" => self.end_reasoning(at, &item, raw, assembly),
            "function_call" if filled(Some(&item.name)).is_none() => Ok(()),
            "function_call" => {
                let block = self.call(at, &item, assembly)?;
                self.complete_input(at, item.arguments.as_deref(), assembly)?;
                if !item.id.is_empty() {
                    assembly.set_private(block, json!({ "id": item.id }));
                }
                assembly.end(block);
                Ok(())
            }
            "message" => self.end_message(at, &item, assembly),
            "" => Ok(()),
            _ => {
                self.start("", assembly);
                assembly.whole(Block::Opaque { value: raw.clone() })
            }
        }
    }

    fn end_reasoning(
        &mut self,
        at: u64,
        item: &Item,
        raw: &Value,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        let (block, silent) = {
            let reasoning = self.reasoning(at, assembly)?;
            (reasoning.block, reasoning.source.is_none())
        };
        if silent {
            let parts = if item.summary.is_empty() {
                &item.content
            } else {
                &item.summary
            };
            let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
            assembly.push(block, &texts.join(PARAGRAPH))?;
        }
        assembly.set_private(block, raw.clone());
        assembly.end(block);
        Ok(())
    }

    fn end_message(&mut self, at: u64, item: &Item, assembly: &mut Assembly) -> Result<(), Error> {
        for (index, part) in (0..).zip(&item.content) {
            match part {
                Part { kind, refusal, .. } if kind == "refusal" => self.refuse(refusal),
                Part { text, .. } => self.complete_text(at, index, text, assembly)?,
            }
        }
        for (_, text) in self.texts.range((at, 0)..=(at, u64::MAX)) {
            if let Some(phase) = &item.phase {
                assembly.set_private(text.block, json!({ "phase": phase }));
            }
            assembly.end(text.block);
        }
        Ok(())
    }

    fn reasoning(&mut self, at: u64, assembly: &mut Assembly) -> Result<&mut Reasoning, Error> {
        self.start("", assembly);
        match self.reasoning.entry(at) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(Reasoning {
                block: assembly.open_thinking()?,
                source: None,
            })),
        }
    }

    /// Summary parts are paragraphs. Where a server sends both a summary and the reasoning
    /// itself, the one that came first is shown.
    fn think(
        &mut self,
        at: u64,
        source: Source,
        delta: &str,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        let reasoning = self.reasoning(at, assembly)?;
        let gap = match (reasoning.source, source) {
            (None, _) => "",
            (Some(Source::Summary(_)), Source::Verbatim(_))
            | (Some(Source::Verbatim(_)), Source::Summary(_)) => return Ok(()),
            (Some(before), now) if before == now => "",
            (Some(_), _) => PARAGRAPH,
        };
        reasoning.source = Some(source);
        let block = reasoning.block;
        assembly.push(block, gap)?;
        assembly.push(block, delta)
    }

    fn call(&mut self, at: u64, item: &Item, assembly: &mut Assembly) -> Result<BlockId, Error> {
        self.start("", assembly);
        if let Some(block) = self.calls.get(&at) {
            return Ok(*block);
        }
        // The id to answer is the call's, not the item's.
        let id = filled(Some(&item.call_id)).unwrap_or(&item.id);
        let block = assembly.open_tool(id, &item.name)?;
        self.calls.insert(at, block);
        Ok(block)
    }

    fn complete_input(
        &mut self,
        at: u64,
        input: Option<&str>,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        match (self.calls.get(&at), input) {
            (Some(block), Some(input)) if assembly.tool_input(*block).is_empty() => {
                assembly.push(*block, input)
            }
            (Some(block), Some(input)) if assembly.tool_input(*block) != input => {
                assembly.set_tool_input(*block, input)
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    fn text(&mut self, at: u64, part: u64, assembly: &mut Assembly) -> Result<&mut Text, Error> {
        self.start("", assembly);
        match self.texts.entry((at, part)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(Text {
                block: assembly.open_text()?,
                length: 0,
            })),
        }
    }

    fn say(
        &mut self,
        at: u64,
        part: u64,
        delta: &str,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        let text = self.text(at, part, assembly)?;
        text.length += delta.len();
        let block = text.block;
        assembly.push(block, delta)
    }

    /// Adds what the deltas left out of a text.
    fn complete_text(
        &mut self,
        at: u64,
        part: u64,
        whole: &str,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        let told = self.texts.get(&(at, part)).map_or(0, |text| text.length);
        match whole.get(told..) {
            Some(rest) if !rest.is_empty() => self.say(at, part, rest, assembly),
            Some(_) | None => Ok(()),
        }
    }

    fn refuse(&mut self, refusal: &str) {
        if !refusal.is_empty() && refusal.len() <= MAX_REFUSAL {
            refusal.clone_into(&mut self.refusal);
        }
    }

    /// The response is over. Items that had no events of their own are taken from its copy.
    fn stop(&mut self, status: &str, raw: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        let response: Response = serde_json::from_value(raw.clone()).unwrap_or_default();
        if status == "failed" {
            return Err(match raw.get("error").filter(|error| !error.is_null()) {
                Some(_) => error::in_stream(assembly.origin(), raw),
                None => assembly.error(ErrorKind::Server, "the response failed"),
            });
        }
        if status == "cancelled" {
            return Err(assembly.error(ErrorKind::Server, "the server cancelled the response"));
        }
        self.start(&response.model, assembly);
        if self.ended.len() < response.output.len() {
            for (at, item) in (0..).zip(&response.output) {
                self.end(at, item, assembly)?;
            }
        }
        if let Some(usage) = usage::read(&response.usage) {
            assembly.usage(usage);
        }
        let reason = match (status, response.incomplete_details.reason.as_str()) {
            ("incomplete", "max_output_tokens") => StopReason::MaxTokens,
            ("incomplete", "content_filter") => StopReason::ContentFilter,
            ("incomplete", "") => StopReason::Other("incomplete".to_owned()),
            ("incomplete", other) => StopReason::Other(other.to_owned()),
            _ => StopReason::EndTurn,
        };
        if self.refusal.is_empty() {
            assembly.stop(reason, None);
        } else {
            assembly.stop(StopReason::Refusal, Some(std::mem::take(&mut self.refusal)));
        }
        Ok(())
    }
}

fn read_item(raw: &Value) -> Item {
    serde_json::from_value(raw.clone()).unwrap_or_default()
}

impl Decoder for ResponsesDecoder {
    fn frame(&mut self, frame: &Frame, assembly: &mut Assembly) -> Result<(), Error> {
        let data = frame.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let value: Value = match serde_json::from_str(data) {
            Ok(value) => value,
            Err(_) if frame.event == "error" => json!({ "error": data }),
            Err(error) => {
                return Err(assembly.error(
                    ErrorKind::Malformed,
                    format!("an event of the answer is not JSON: {error}"),
                ));
            }
        };
        let kind = value.get("type").and_then(Value::as_str);
        let nested = value.get("error").is_some_and(|error| !error.is_null());
        if frame.event == "error" || kind == Some("error") || (kind.is_none() && nested) {
            return Err(error::in_stream(assembly.origin(), &value));
        }
        let mut event: Event = serde_json::from_value(value).unwrap_or_default();
        if event.kind.is_empty() {
            event.kind.clone_from(&frame.event);
        }
        self.event(&event, assembly)
    }

    fn whole(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        let status = body.get("status").and_then(Value::as_str);
        match status {
            Some(status @ ("completed" | "incomplete" | "failed" | "cancelled")) => {
                self.stop(status, body, assembly)
            }
            Some(_) | None if error::read(body).is_some() => {
                Err(error::in_stream(assembly.origin(), body))
            }
            Some(_) | None => {
                Err(assembly.error(ErrorKind::Malformed, "the answer is no finished response"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
