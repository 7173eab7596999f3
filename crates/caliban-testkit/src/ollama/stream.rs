//! Ollama answers, streamed and whole.

use serde_json::{Value, json};

use super::CREATED;
use crate::frame::Event;
use crate::quirk::Quirk;
use crate::script::Stop;
use crate::text;
use crate::turn::{Part, Turn};

pub(crate) fn events(turn: &Turn) -> Vec<Event> {
    let mut messages = Vec::new();
    let mut calls = 0;
    for part in &turn.parts {
        match part {
            Part::Text { pieces } => {
                messages.extend(
                    pieces
                        .iter()
                        .map(|piece| json!({"role": "assistant", "content": piece})),
                );
            }
            Part::Thinking { text, .. } => {
                let piece = |piece| json!({"role": "assistant", "content": "", "thinking": piece});
                messages.extend(text::pieces(text).into_iter().map(piece));
            }
            Part::Redacted { .. } => {}
            Part::Call { id, name, input } => {
                let call = call(turn, calls, id, name, input);
                messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
                calls += 1;
            }
        }
    }
    let mut out: Vec<_> = messages
        .into_iter()
        .map(|message| Event::unnamed(&line(turn, &message, json!({"done": false}))))
        .collect();
    out.push(Event::unnamed(&line(
        turn,
        &json!({"role": "assistant", "content": ""}),
        ending(turn),
    )));
    out
}

pub(crate) fn document(turn: &Turn) -> Value {
    let mut content = String::new();
    let mut thinking = String::new();
    let mut calls = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text { pieces } => content.extend(pieces.iter().map(String::as_str)),
            Part::Thinking { text, .. } => thinking.push_str(text),
            Part::Redacted { .. } => {}
            Part::Call { id, name, input } => calls.push(call(turn, calls.len(), id, name, input)),
        }
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !thinking.is_empty() {
        message["thinking"] = thinking.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    line(turn, &message, ending(turn))
}

fn call(turn: &Turn, index: usize, id: &str, name: &str, input: &Value) -> Value {
    let mut call = json!({"function": {"index": index, "name": name, "arguments": input}});
    if !turn.quirks.has(Quirk::NoIds) {
        call["id"] = id.into();
    }
    call
}

fn line(turn: &Turn, message: &Value, rest: Value) -> Value {
    let mut line = json!({"model": turn.model, "created_at": CREATED, "message": message});
    if let (Some(line), Value::Object(rest)) = (line.as_object_mut(), rest) {
        line.extend(rest);
    }
    line
}

fn ending(turn: &Turn) -> Value {
    let mut out = json!({"done": true, "total_duration": 1, "load_duration": 1});
    let reason = match &turn.stop {
        Stop::MaxTokens | Stop::ContextExceeded => "length",
        Stop::Raw(raw) => raw,
        Stop::EndTurn
        | Stop::ToolUse
        | Stop::StopSequence(_)
        | Stop::Refusal
        | Stop::ContentFilter
        | Stop::Pause => "stop",
    };
    if !turn.quirks.has(Quirk::NoFinishReason) {
        out["done_reason"] = reason.into();
    }
    // Counts of zero are left out.
    for (field, count) in [
        ("prompt_eval", turn.usage.prompt()),
        ("eval", turn.usage.output),
    ] {
        if count > 0 && !turn.quirks.has(Quirk::NoUsage) {
            out[format!("{field}_count")] = count.into();
            out[format!("{field}_duration")] = 1.into();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Ask;
    use crate::record::Api;
    use crate::script::{Reply, Usage};
    use crate::turn::Ids;

    fn turn(reply: &Reply, think: bool) -> Turn {
        let body = json!({"model": "qwen3", "think": think}).to_string();
        let ask = Ask::from_body(Api::Ollama, body.as_bytes()).unwrap();
        Turn::resolve(reply, &ask, &Ids::default())
    }

    #[test]
    fn calls_come_whole_and_the_end_says_stop() {
        let reply = Reply::tools([("Bash", json!({"a": 1})), ("Read", json!({}))]).thinking("hm");
        let lines: Vec<Value> = events(&turn(&reply, true))
            .iter()
            .map(|event| serde_json::from_str(&event.data).unwrap())
            .collect();
        assert_eq!(lines[0]["message"]["thinking"], "hm");
        assert_eq!(
            lines[1]["message"]["tool_calls"][0]["function"]["arguments"]["a"],
            1
        );
        assert_eq!(lines[2]["message"]["tool_calls"][0]["function"]["index"], 1);
        assert_eq!(
            (&lines[3]["done"], &lines[3]["done_reason"]),
            (&json!(true), &json!("stop"))
        );
        assert!(lines[..3].iter().all(|line| line["done"] == false));
        let silent = events(&turn(&reply.quirk(Quirk::NoIds), false));
        assert_eq!(silent.len(), 3);
        assert!(!silent[0].data.contains("call_"));
    }

    #[test]
    fn zero_counts_are_left_out() {
        let whole = document(&turn(
            &Reply::text("x").usage(Usage {
                output: 4,
                ..Usage::default()
            }),
            true,
        ));
        assert_eq!(
            (whole.get("prompt_eval_count"), &whole["eval_count"]),
            (None, &json!(4))
        );
    }
}
