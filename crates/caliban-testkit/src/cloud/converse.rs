//! Bedrock's Converse: what it refuses, and its events.

use serde_json::{Value, json};

use crate::ask::Ask;
use crate::fault::{Rejection, Verdict, ensure};
use crate::frame::Event;
use crate::json::{list, text};
use crate::quirk::Quirk;
use crate::script::Stop;
use crate::text;
use crate::turn::{Part, Turn};

/// Turns alternate and begin with the user; every call is followed by its result.
pub(crate) fn check(ask: &Ask) -> Verdict {
    let messages = list(&ask.body, "messages");
    ensure(!messages.is_empty(), || {
        "A conversation must start with a user message.".to_owned()
    })?;
    let mut wanted = "user";
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let role = text(message, "role").unwrap_or_default();
        ensure(role == wanted, || {
            format!("messages: roles must alternate, found {role} for {wanted}")
        })?;
        wanted = if role == "user" { "assistant" } else { "user" };
        let content = list(message, "content");
        ensure(!content.is_empty(), || {
            "The content field is empty.".to_owned()
        })?;
        let ids = |kind: &str| -> Vec<&str> {
            content
                .iter()
                .filter_map(|block| text(block.get(kind)?, "toolUseId"))
                .collect()
        };
        let results = ids("toolResult");
        if role == "user" && open.iter().any(|id| !results.contains(id)) {
            return Err(Rejection::invalid(
                "Expected toolResult blocks for all toolUse blocks of the turn before",
            ));
        }
        if role == "user" && results.iter().any(|id| !open.contains(id)) {
            return Err(Rejection::invalid("A toolResult has no toolUse"));
        }
        open = ids("toolUse");
    }
    let uses_tools = messages
        .iter()
        .flat_map(|message| list(message, "content"))
        .any(|block| block.get("toolUse").is_some());
    let tools = ask.body.pointer("/toolConfig/tools");
    let tools = tools.and_then(Value::as_array);
    ensure(!uses_tools || tools.is_some(), || {
        "The toolConfig field must be defined when using toolUse and toolResult content blocks."
            .to_owned()
    })?;
    for tool in tools.into_iter().flatten() {
        ensure(
            tool.pointer("/toolSpec/inputSchema/json/type").is_some(),
            || "toolConfig.tools: a tool needs inputSchema.json".to_owned(),
        )?;
    }
    Ok(())
}

pub(crate) fn events(turn: &Turn) -> Vec<Event> {
    let mut out = vec![Event::named("messageStart", &json!({"role": "assistant"}))];
    for (index, part) in turn.parts.iter().enumerate() {
        let mut delta = |delta: Value| {
            out.push(Event::named(
                "contentBlockDelta",
                &json!({"delta": delta, "contentBlockIndex": index}),
            ));
        };
        match part {
            Part::Text { pieces } => pieces
                .iter()
                .for_each(|piece| delta(json!({"text": piece}))),
            Part::Thinking { text, signature } => {
                for piece in text::pieces(text) {
                    delta(json!({"reasoningContent": {"text": piece}}));
                }
                delta(json!({"reasoningContent": {"signature": signature}}));
            }
            Part::Redacted { data } => {
                delta(json!({"reasoningContent": {"redactedContent": data}}));
            }
            Part::Call { id, name, input } => {
                out.push(Event::named(
                    "contentBlockStart",
                    &json!({"start": {"toolUse": {"toolUseId": id, "name": name}},
                            "contentBlockIndex": index}),
                ));
                for fragment in text::fragments(&input.to_string()) {
                    out.push(Event::named(
                        "contentBlockDelta",
                        &json!({"delta": {"toolUse": {"input": fragment}},
                                "contentBlockIndex": index}),
                    ));
                }
            }
        }
        out.push(Event::named(
            "contentBlockStop",
            &json!({"contentBlockIndex": index}),
        ));
    }
    out.push(Event::named(
        "messageStop",
        &json!({"stopReason": stop(turn)}),
    ));
    if !turn.quirks.has(Quirk::NoUsage) {
        out.push(Event::named(
            "metadata",
            &json!({"usage": usage(turn), "metrics": {"latencyMs": 1}}),
        ));
    }
    out
}

pub(crate) fn document(turn: &Turn) -> Value {
    let content: Vec<Value> = turn
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { pieces } => Some(json!({"text": pieces.concat()})),
            Part::Call { id, name, input } => {
                Some(json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}))
            }
            Part::Thinking { .. } | Part::Redacted { .. } => None,
        })
        .collect();
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop(turn),
        "usage": usage(turn),
    })
}

fn usage(turn: &Turn) -> Value {
    let usage = &turn.usage;
    json!({
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "totalTokens": usage.input + usage.output,
        "cacheReadInputTokens": usage.cache_read,
        "cacheWriteInputTokens": usage.cache_write_5m,
    })
}

fn stop(turn: &Turn) -> String {
    let name = match &turn.stop {
        Stop::EndTurn | Stop::Pause => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::StopSequence(_) => "stop_sequence",
        Stop::Refusal | Stop::ContentFilter => "content_filtered",
        Stop::ContextExceeded => "model_context_window_exceeded",
        Stop::Raw(raw) => raw,
    };
    name.to_owned()
}
