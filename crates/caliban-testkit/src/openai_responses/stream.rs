//! Responses answers, streamed and whole.

use serde_json::{Value, json};

use super::{includes_encrypted, item_id};
use crate::ask::Ask;
use crate::frame::Event;
use crate::json::{given, is_true};
use crate::openai::CREATED;
use crate::quirk::Quirk;
use crate::script::{Stop, Usage};
use crate::text;
use crate::turn::{Part, Turn};

/// Collects events and numbers them.
#[derive(Default)]
struct Sequence {
    events: Vec<Event>,
}

impl Sequence {
    fn push(&mut self, name: &'static str, mut fields: Value) {
        fields["type"] = name.into();
        fields["sequence_number"] = self.events.len().into();
        self.events.push(Event::named(name, &fields));
    }
}

pub(crate) fn events(ask: &Ask, turn: &Turn) -> Vec<Event> {
    let mut out = Sequence::default();
    let opening = response(ask, turn, "in_progress", &json!([]));
    out.push("response.created", json!({"response": opening.clone()}));
    out.push("response.in_progress", json!({"response": opening}));
    let mut output = Vec::new();
    for (index, part) in turn.parts.iter().enumerate() {
        let Some(id) = item_id(turn, index, part) else {
            continue;
        };
        let done = item(ask, turn, part, &id);
        let at = output.len();
        stream_item(&mut out, turn, part, &id, at, &done);
        output.push(done);
    }
    let (terminal, status) = match incomplete_reason(turn) {
        Some(_) => ("response.incomplete", "incomplete"),
        None => ("response.completed", "completed"),
    };
    if !turn.quirks.has(Quirk::NoFinishReason) {
        out.push(
            terminal,
            json!({"response": response(ask, turn, status, &output.into())}),
        );
    }
    out.events
}

fn stream_item(out: &mut Sequence, turn: &Turn, part: &Part, id: &str, at: usize, done: &Value) {
    let mut added = done.clone();
    added["status"] = "in_progress".into();
    match part {
        Part::Text { pieces } => {
            added["content"] = json!([]);
            out.push(
                "response.output_item.added",
                json!({"output_index": at, "item": added}),
            );
            stream_text(out, turn, pieces, id, at, &done["content"][0]);
        }
        Part::Thinking { text, .. } => {
            added["summary"] = json!([]);
            if let Some(fields) = added.as_object_mut() {
                fields.remove("encrypted_content");
            }
            out.push(
                "response.output_item.added",
                json!({"output_index": at, "item": added}),
            );
            stream_summary(out, text, id, at);
        }
        Part::Call { input, .. } => {
            added["arguments"] = "".into();
            out.push(
                "response.output_item.added",
                json!({"output_index": at, "item": added}),
            );
            let arguments = input.to_string();
            for delta in text::fragments(&arguments) {
                let fields = json!({"item_id": id, "output_index": at, "delta": delta});
                out.push("response.function_call_arguments.delta", fields);
            }
            let fields = json!({"item_id": id, "output_index": at, "arguments": arguments});
            out.push("response.function_call_arguments.done", fields);
        }
        Part::Redacted { .. } => return,
    }
    out.push(
        "response.output_item.done",
        json!({"output_index": at, "item": done}),
    );
}

fn stream_text(
    out: &mut Sequence,
    turn: &Turn,
    pieces: &[String],
    id: &str,
    at: usize,
    part: &Value,
) {
    let place = |extra: Value| {
        let mut fields = json!({"item_id": id, "output_index": at, "content_index": 0});
        if let (Some(fields), Value::Object(extra)) = (fields.as_object_mut(), extra) {
            fields.extend(extra);
        }
        fields
    };
    let refuses = turn.stop == Stop::Refusal;
    let mut empty = part.clone();
    empty[if refuses { "refusal" } else { "text" }] = "".into();
    out.push("response.content_part.added", place(json!({"part": empty})));
    for piece in pieces {
        if refuses {
            out.push("response.refusal.delta", place(json!({"delta": piece})));
        } else {
            out.push(
                "response.output_text.delta",
                place(json!({"delta": piece, "logprobs": []})),
            );
        }
    }
    if refuses {
        out.push(
            "response.refusal.done",
            place(json!({"refusal": pieces.concat()})),
        );
    } else {
        out.push(
            "response.output_text.done",
            place(json!({"text": pieces.concat(), "logprobs": []})),
        );
    }
    out.push("response.content_part.done", place(json!({"part": part})));
}

fn stream_summary(out: &mut Sequence, text: &str, id: &str, at: usize) {
    if text.is_empty() {
        return;
    }
    let place = |key: &str, value: Value| json!({"item_id": id, "output_index": at, "summary_index": 0, key: value});
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    out.push(
        "response.reasoning_summary_part.added",
        place("part", part("")),
    );
    for piece in text::pieces(text) {
        out.push(
            "response.reasoning_summary_text.delta",
            place("delta", piece.into()),
        );
    }
    out.push(
        "response.reasoning_summary_text.done",
        place("text", text.into()),
    );
    out.push(
        "response.reasoning_summary_part.done",
        place("part", part(text)),
    );
}

fn item(ask: &Ask, turn: &Turn, part: &Part, id: &str) -> Value {
    match part {
        Part::Text { pieces } => {
            let text = pieces.concat();
            let content = if turn.stop == Stop::Refusal {
                json!({"type": "refusal", "refusal": text})
            } else {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            };
            let phase = if turn.has_calls() {
                "commentary"
            } else {
                "final_answer"
            };
            json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
                   "phase": phase, "content": [content]})
        }
        Part::Thinking { text, signature } => {
            let summary = if text.is_empty() {
                json!([])
            } else {
                json!([{"type": "summary_text", "text": text}])
            };
            let mut item =
                json!({"type": "reasoning", "id": id, "summary": summary, "status": "completed"});
            if includes_encrypted(ask) {
                item["encrypted_content"] = signature.as_str().into();
            }
            item
        }
        Part::Call {
            id: call,
            name,
            input,
        } => {
            json!({"type": "function_call", "id": id, "call_id": call, "name": name,
                   "arguments": input.to_string(), "status": "completed"})
        }
        Part::Redacted { .. } => Value::Null,
    }
}

pub(crate) fn document(ask: &Ask, turn: &Turn) -> Value {
    let output = turn
        .parts
        .iter()
        .enumerate()
        .filter_map(|(index, part)| Some(item(ask, turn, part, &item_id(turn, index, part)?)))
        .collect();
    let status = if incomplete_reason(turn).is_some() {
        "incomplete"
    } else {
        "completed"
    };
    response(ask, turn, status, &output)
}

fn incomplete_reason(turn: &Turn) -> Option<&str> {
    match &turn.stop {
        Stop::MaxTokens | Stop::ContextExceeded => Some("max_output_tokens"),
        Stop::ContentFilter => Some("content_filter"),
        Stop::Raw(raw) => Some(raw),
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence(_) | Stop::Refusal | Stop::Pause => None,
    }
}

fn response(ask: &Ask, turn: &Turn, status: &str, output: &Value) -> Value {
    let body = &ask.body;
    let ended = status != "in_progress";
    let details = incomplete_reason(turn)
        .filter(|_| ended)
        .map(|reason| json!({"reason": reason}));
    let usage = (ended && !turn.quirks.has(Quirk::NoUsage)).then(|| usage(&turn.usage));
    json!({
        "id": format!("resp_{:04}", turn.serial),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": details,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": {},
        "model": turn.model,
        "output": output,
        "parallel_tool_calls": given(body, "parallel_tool_calls").is_none() || is_true(body, "parallel_tool_calls"),
        "previous_response_id": null,
        "reasoning": given(body, "reasoning").cloned().unwrap_or_else(|| json!({"effort": null, "summary": null})),
        "store": given(body, "store").is_none() || is_true(body, "store"),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": given(body, "tool_choice").cloned().unwrap_or_else(|| "auto".into()),
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
    })
}

/// Totals include the cached and the reasoning tokens.
fn usage(usage: &Usage) -> Value {
    let mut details =
        json!({"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write()});
    if usage.cache_write() > 0 {
        details["cache_write_tokens_details"] =
            json!({"ttl_30m_tokens": usage.cache_write_5m, "ttl_12h_tokens": usage.cache_write_1h});
    }
    json!({
        "input_tokens": usage.prompt(),
        "input_tokens_details": details,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt() + usage.output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Api;
    use crate::script::Reply;
    use crate::turn::Ids;

    fn ask() -> Ask {
        let body = json!({"model": "gpt-5.5", "stream": true, "store": false,
            "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}});
        Ask::from_body(Api::OpenAiResponses, body.to_string().as_bytes()).unwrap()
    }

    fn data(reply: &Reply) -> Vec<Value> {
        let turn = Turn::resolve(reply, &ask(), &Ids::default());
        events(&ask(), &turn)
            .iter()
            .map(|event| serde_json::from_str(&event.data).unwrap())
            .collect()
    }

    #[test]
    fn events_are_numbered_and_nested() {
        let reply = Reply::text("Let me look there.")
            .thinking("Plan it")
            .and_tool("Bash", json!({"command": "ls"}));
        let all = data(&reply);
        for (number, event) in all.iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
        }
        let kinds: Vec<_> = all
            .iter()
            .map(|event| event["type"].as_str().unwrap())
            .collect();
        let mut distinct = kinds.clone();
        distinct.dedup();
        assert_eq!(
            distinct,
            [
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_text.done",
                "response.reasoning_summary_part.done",
                "response.output_item.done",
                "response.output_item.added",
                "response.content_part.added",
                "response.output_text.delta",
                "response.output_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.output_item.added",
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "response.output_item.done",
                "response.completed",
            ]
        );
        let last = &all[all.len() - 1]["response"];
        assert_eq!(last["output"][2]["arguments"], r#"{"command":"ls"}"#);
        assert_eq!(last["output"][2]["call_id"], "call_0001");
        assert!(last["output"][0]["encrypted_content"].is_string());
        assert_eq!(last["usage"]["total_tokens"], 19);
        assert_eq!(all[0]["response"]["usage"], Value::Null);
    }

    #[test]
    fn stops_become_statuses() {
        let status = |stop| {
            let all = data(&Reply::text("x").stop(stop));
            let last = all[all.len() - 1].clone();
            (
                last["type"].clone(),
                last["response"]["incomplete_details"]["reason"].clone(),
            )
        };
        assert_eq!(
            status(Stop::MaxTokens),
            (json!("response.incomplete"), json!("max_output_tokens"))
        );
        assert_eq!(
            status(Stop::ContentFilter),
            (json!("response.incomplete"), json!("content_filter"))
        );
        assert_eq!(
            status(Stop::EndTurn),
            (json!("response.completed"), Value::Null)
        );
        assert!(
            data(&Reply::text("no").stop(Stop::Refusal))
                .iter()
                .any(|e| e["type"] == "response.refusal.done")
        );
    }

    #[test]
    fn hidden_summaries_stay_hidden() {
        let ask = Ask::from_body(Api::OpenAiResponses, br#"{"model":"gpt-5.5"}"#).unwrap();
        let turn = Turn::resolve(&Reply::text("Hi").thinking("secret"), &ask, &Ids::default());
        let item = &document(&ask, &turn)["output"][0];
        assert_eq!(
            (&item["summary"], item.get("encrypted_content")),
            (&json!([]), None)
        );
    }
}
