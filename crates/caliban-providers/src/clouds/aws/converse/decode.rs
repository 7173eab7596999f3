//! Converse's events into blocks. Usage follows the stop, so the answer ends with it.

use std::collections::HashMap;

use caliban_model::{Block, Error, ErrorKind, StopReason, Usage};
use serde_json::Value;

use crate::adapter::Decoder;
use crate::assembly::{Assembly, BlockId};
use crate::framing::Frame;

#[derive(Debug, Default)]
pub(super) struct ConverseDecoder {
    /// The open blocks by their place in the answer.
    open: HashMap<u64, BlockId>,
    /// Told, and waiting for the usage.
    stop: Option<StopReason>,
}

impl ConverseDecoder {
    fn delta(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        let index = place(body);
        let delta = &body["delta"];
        if let Some(text) = delta["text"].as_str() {
            let block = self.block(index, assembly, Assembly::open_text)?;
            return assembly.push(block, text);
        }
        if let Some(input) = delta.pointer("/toolUse/input").and_then(Value::as_str) {
            return match self.open.get(&index) {
                Some(block) => assembly.push(*block, input),
                None => {
                    Err(assembly.error(ErrorKind::Malformed, "a tool's input came before its name"))
                }
            };
        }
        let reasoning = &delta["reasoningContent"];
        if let Some(data) = reasoning["redactedContent"].as_str() {
            return assembly.whole(Block::RedactedThinking {
                data: data.to_owned(),
            });
        }
        if let Some(text) = reasoning["text"].as_str() {
            let block = self.block(index, assembly, Assembly::open_thinking)?;
            assembly.push(block, text)?;
        }
        if let Some(signature) = reasoning["signature"].as_str() {
            let block = self.block(index, assembly, Assembly::open_thinking)?;
            assembly.set_signature(block, signature)?;
        }
        Ok(())
    }

    /// The block at a place; text and thinking begin without being announced.
    fn block(
        &mut self,
        index: u64,
        assembly: &mut Assembly,
        open: fn(&mut Assembly) -> Result<BlockId, Error>,
    ) -> Result<BlockId, Error> {
        if let Some(block) = self.open.get(&index) {
            return Ok(*block);
        }
        let block = open(assembly)?;
        self.open.insert(index, block);
        Ok(block)
    }

    fn stopped(&mut self, assembly: &mut Assembly) {
        if let Some(reason) = self.stop.take() {
            assembly.stop(reason, None);
        }
    }
}

impl Decoder for ConverseDecoder {
    fn frame(&mut self, frame: &Frame, assembly: &mut Assembly) -> Result<(), Error> {
        let body: Value = serde_json::from_str(&frame.data).map_err(|error| {
            let message = format!("an event cannot be read: {error}");
            assembly.error(ErrorKind::Malformed, message)
        })?;
        match frame.event.as_str() {
            "messageStart" => {
                let model = assembly.origin().model.to_string();
                assembly.started(model);
            }
            "contentBlockStart" => {
                if let Some(call) = body.pointer("/start/toolUse") {
                    let text = |name: &str| call[name].as_str().unwrap_or_default();
                    let block = assembly.open_tool(text("toolUseId"), text("name"))?;
                    self.open.insert(place(&body), block);
                }
            }
            "contentBlockDelta" => self.delta(&body, assembly)?,
            "contentBlockStop" => {
                if let Some(block) = self.open.remove(&place(&body)) {
                    assembly.end(block);
                }
            }
            "messageStop" => {
                let reason = body["stopReason"].as_str().unwrap_or_default();
                self.stop = Some(stop_reason(reason));
            }
            "metadata" => {
                if let Some(usage) = usage(&body["usage"]) {
                    assembly.usage(usage);
                }
                self.stopped(assembly);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        if self.stop.is_none() {
            return Err(assembly.error(
                ErrorKind::Malformed,
                "the stream ended without its end marker",
            ));
        }
        self.stopped(assembly);
        Ok(())
    }

    fn whole(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        let model = assembly.origin().model.to_string();
        assembly.started(model);
        let content = body.pointer("/output/message/content");
        let content = content.and_then(Value::as_array);
        let Some(content) = content else {
            return Err(assembly.error(ErrorKind::Malformed, "the answer holds no message"));
        };
        for block in content {
            if let Some(text) = block["text"].as_str() {
                let id = assembly.open_text()?;
                assembly.push(id, text)?;
                assembly.end(id);
            } else if let Some(call) = block.get("toolUse") {
                let text = |name: &str| call[name].as_str().unwrap_or_default();
                let id = assembly.open_tool(text("toolUseId"), text("name"))?;
                assembly.push(id, &call["input"].to_string())?;
                assembly.end(id);
            }
        }
        if let Some(usage) = usage(&body["usage"]) {
            assembly.usage(usage);
        }
        assembly.stop(
            stop_reason(body["stopReason"].as_str().unwrap_or_default()),
            None,
        );
        Ok(())
    }
}

fn place(body: &Value) -> u64 {
    body["contentBlockIndex"].as_u64().unwrap_or_default()
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "guardrail_intervened" | "content_filtered" => StopReason::ContentFilter,
        "model_context_window_exceeded" => StopReason::ContextExceeded,
        other => StopReason::Other(other.to_owned()),
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |name: &str| usage[name].as_u64();
    Some(Usage {
        input: count("inputTokens")?,
        output: count("outputTokens")?,
        cache_read: count("cacheReadInputTokens").unwrap_or_default(),
        cache_write_5m: count("cacheWriteInputTokens").unwrap_or_default(),
        ..Usage::default()
    })
}
