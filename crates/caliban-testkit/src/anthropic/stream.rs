//! Messages answers, streamed and whole.

use serde_json::{Value, json};

use crate::frame::Event;
use crate::quirk::Quirk;
use crate::script::Stop;
use crate::text;
use crate::turn::{Part, Turn};

pub(crate) fn events(turn: &Turn) -> Vec<Event> {
    let mut out = Vec::new();
    let mut start = message(turn, &json!([]), &Value::Null, &Value::Null);
    if let Some(usage) = start.get_mut("usage") {
        // The final count comes with `message_delta`.
        usage["output_tokens"] = json!(1);
    }
    push(
        &mut out,
        &json!({"type": "message_start", "message": start}),
    );
    for (index, part) in turn.parts.iter().enumerate() {
        if turn.quirks.has(Quirk::Comments) {
            push(&mut out, &json!({"type": "ping"}));
        }
        block(&mut out, index, part);
    }
    let (reason, sequence) = stop(turn);
    let mut delta = json!({"type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": sequence, "stop_details": stop_details(turn)}});
    if !turn.quirks.has(Quirk::NoUsage) {
        delta["usage"] = json!({
            "output_tokens": turn.usage.output,
            "output_tokens_details": {"thinking_tokens": turn.usage.reasoning},
        });
    }
    push(&mut out, &delta);
    push(&mut out, &json!({"type": "message_stop"}));
    out
}

fn push(out: &mut Vec<Event>, data: &Value) {
    let name = match data["type"].as_str() {
        Some("message_start") => "message_start",
        Some("content_block_start") => "content_block_start",
        Some("content_block_delta") => "content_block_delta",
        Some("content_block_stop") => "content_block_stop",
        Some("message_delta") => "message_delta",
        Some("message_stop") => "message_stop",
        _ => "ping",
    };
    out.push(Event::named(name, data));
}

fn block(out: &mut Vec<Event>, index: usize, part: &Part) {
    let (empty, deltas) = match part {
        Part::Text { pieces } => {
            let deltas = pieces
                .iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect();
            (json!({"type": "text", "text": ""}), deltas)
        }
        Part::Thinking { text, signature } => {
            let mut deltas: Vec<_> = text::pieces(text)
                .into_iter()
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .collect();
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
            (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                deltas,
            )
        }
        Part::Redacted { data } => (
            json!({"type": "redacted_thinking", "data": data}),
            Vec::new(),
        ),
        Part::Call { id, name, input } => {
            let fragments =
                std::iter::once(String::new()).chain(text::fragments(&input.to_string()));
            let deltas = fragments
                .map(|part| json!({"type": "input_json_delta", "partial_json": part}))
                .collect();
            (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                deltas,
            )
        }
    };
    push(
        out,
        &json!({"type": "content_block_start", "index": index, "content_block": empty}),
    );
    for delta in deltas {
        push(
            out,
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        );
    }
    push(out, &json!({"type": "content_block_stop", "index": index}));
}

pub(crate) fn document(turn: &Turn) -> Value {
    let content = turn
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { pieces } => json!({"type": "text", "text": pieces.concat()}),
            Part::Thinking { text, signature } => {
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
            Part::Redacted { data } => json!({"type": "redacted_thinking", "data": data}),
            Part::Call { id, name, input } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
        })
        .collect();
    let (reason, sequence) = stop(turn);
    message(turn, &content, &reason, &sequence)
}

fn message(turn: &Turn, content: &Value, reason: &Value, sequence: &Value) -> Value {
    let details = if reason.is_null() {
        Value::Null
    } else {
        stop_details(turn)
    };
    let mut message = json!({
        "id": format!("msg_{:04}", turn.serial),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": sequence,
        "stop_details": details,
    });
    if !turn.quirks.has(Quirk::NoUsage) {
        let usage = &turn.usage;
        message["usage"] = json!({
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write(),
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write_5m,
                "ephemeral_1h_input_tokens": usage.cache_write_1h,
            },
            "output_tokens": usage.output,
            "output_tokens_details": {"thinking_tokens": usage.reasoning},
            "service_tier": "standard",
            "speed": "standard",
        });
    }
    message
}

/// `stop_reason` and `stop_sequence`.
fn stop(turn: &Turn) -> (Value, Value) {
    if turn.quirks.has(Quirk::NoFinishReason) {
        return (Value::Null, Value::Null);
    }
    let reason = match &turn.stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::StopSequence(text) => return ("stop_sequence".into(), text.as_str().into()),
        Stop::Refusal | Stop::ContentFilter => "refusal",
        Stop::ContextExceeded => "model_context_window_exceeded",
        Stop::Pause => "pause_turn",
        Stop::Raw(raw) => raw,
    };
    (reason.into(), Value::Null)
}

fn stop_details(turn: &Turn) -> Value {
    match turn.stop {
        Stop::Refusal | Stop::ContentFilter => {
            json!({"type": "refusal", "category": null, "explanation": "declined by the script"})
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Ask;
    use crate::record::Api;
    use crate::script::{Block, Reply, Usage};
    use crate::turn::Ids;

    fn turn(reply: &Reply, model: &str) -> Turn {
        let body = json!({"model": model}).to_string();
        let ask = Ask::from_body(Api::AnthropicMessages, body.as_bytes()).unwrap();
        Turn::resolve(reply, &ask, &Ids::default())
    }

    fn data(turn: &Turn) -> Vec<Value> {
        events(turn)
            .iter()
            .map(|event| serde_json::from_str(&event.data).unwrap())
            .collect()
    }

    #[test]
    fn events_come_in_order_and_add_up() {
        let reply = Reply::text("Let me look at that.")
            .thinking("I need ls")
            .block(Block::RedactedThinking { data: "xx".into() })
            .and_tool("Bash", json!({"command": "ls"}));
        let turn = turn(&reply, "claude-sonnet-4-6");
        let all = data(&turn);
        for (event, value) in events(&turn).iter().zip(&all) {
            assert_eq!(event.name, value["type"].as_str());
        }
        let kinds: Vec<_> = all
            .iter()
            .map(|value| value["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            (kinds[0], kinds[kinds.len() - 2], kinds[kinds.len() - 1]),
            ("message_start", "message_delta", "message_stop")
        );
        let joined = |field: &str| -> String {
            all.iter()
                .filter_map(|value| value["delta"][field].as_str())
                .collect()
        };
        assert_eq!(joined("text"), "Let me look at that.");
        assert_eq!(joined("thinking"), "I need ls");
        assert_eq!(joined("partial_json"), r#"{"command":"ls"}"#);
        assert_eq!(all[all.len() - 2]["delta"]["stop_reason"], "tool_use");
        let starts: Vec<_> = all
            .iter()
            .filter(|v| v["type"] == "content_block_start")
            .collect();
        assert_eq!(starts.len(), 4);
        assert_eq!(starts[2]["content_block"]["data"], "xx");
        assert_eq!(starts[3]["content_block"]["id"], "toolu_0001");
    }

    #[test]
    fn hidden_thinking_keeps_its_signature() {
        let document = document(&turn(
            &Reply::text("Hi").thinking("secret"),
            "claude-opus-4-7",
        ));
        assert_eq!(document["content"][0]["thinking"], "");
        assert!(
            !document["content"][0]["signature"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn usage_keeps_cached_tokens_apart() {
        let usage = Usage {
            input: 1,
            cache_read: 2,
            cache_write_5m: 3,
            cache_write_1h: 4,
            output: 9,
            reasoning: 5,
        };
        let document = document(&turn(&Reply::text("Hi").usage(usage), "m"));
        assert_eq!(document["usage"]["input_tokens"], 1);
        assert_eq!(document["usage"]["cache_creation_input_tokens"], 7);
        assert_eq!(
            document["usage"]["output_tokens_details"]["thinking_tokens"],
            5
        );
    }

    #[test]
    fn stop_reasons_are_translated() {
        for (given, expected) in [
            (Stop::MaxTokens, "max_tokens"),
            (Stop::StopSequence("END".into()), "stop_sequence"),
            (Stop::Refusal, "refusal"),
            (Stop::ContextExceeded, "model_context_window_exceeded"),
            (Stop::Pause, "pause_turn"),
            (Stop::Raw("odd".into()), "odd"),
        ] {
            assert_eq!(
                document(&turn(&Reply::text("x").stop(given), "m"))["stop_reason"],
                expected
            );
        }
    }
}
