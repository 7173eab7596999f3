//! Chat completion answers, streamed and whole.

use serde_json::{Map, Value, json};

use crate::ask::Ask;
use crate::frame::Event;
use crate::json::is_true;
use crate::openai::CREATED;
use crate::quirk::{Quirk, Quirks};
use crate::script::{Stop, Usage};
use crate::text;
use crate::turn::{Part, Turn};

pub(crate) fn events(ask: &Ask, turn: &Turn) -> Vec<Event> {
    let quirks = &turn.quirks;
    let asked = ask
        .body
        .get("stream_options")
        .is_some_and(|options| is_true(options, "include_usage"));
    let every = quirks.has(Quirk::UsageEveryChunk);
    let sends_usage = !quirks.has(Quirk::NoUsage);
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let mut call = 0;
    for part in &turn.parts {
        match part {
            Part::Text { pieces } => deltas.extend(pieces.iter().map(|piece| content(turn, piece))),
            Part::Thinking { text, .. } => {
                deltas.extend(
                    text::pieces(text)
                        .into_iter()
                        .map(|piece| reasoning(quirks, &piece)),
                );
            }
            Part::Redacted { .. } => {}
            Part::Call { id, name, input } => {
                deltas.extend(fragments(quirks, call, id, name, input));
                call += 1;
            }
        }
    }
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": id(turn),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": turn.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        Event::unnamed(&chunk)
    };
    let beside = || match (every && sends_usage, asked && sends_usage) {
        (true, _) => Some(usage(&turn.usage)),
        (false, true) => Some(Value::Null),
        (false, false) => None,
    };
    let choice = |delta: &Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let mut out: Vec<_> = deltas
        .iter()
        .map(|delta| chunk(choice(delta, Value::Null), beside()))
        .collect();
    if !quirks.has(Quirk::NoFinishReason) {
        out.push(chunk(choice(&json!({}), finish_reason(turn)), beside()));
    }
    if asked && sends_usage && !every {
        out.push(chunk(json!([]), Some(usage(&turn.usage))));
    }
    if !quirks.has(Quirk::NoDoneMarker) {
        out.push(Event::unnamed(&"[DONE]"));
    }
    out
}

fn content(turn: &Turn, piece: &str) -> Value {
    if turn.stop == Stop::Refusal {
        json!({"refusal": piece})
    } else if turn.quirks.has(Quirk::ContentAsParts) {
        json!({"content": [{"type": "text", "text": piece}]})
    } else {
        json!({"content": piece})
    }
}

fn reasoning(quirks: &Quirks, piece: &str) -> Value {
    let field = if quirks.has(Quirk::Reasoning) {
        "reasoning"
    } else {
        "reasoning_content"
    };
    json!({field: piece})
}

/// The deltas of one tool call.
fn fragments(quirks: &Quirks, position: usize, id: &str, name: &str, input: &Value) -> Vec<Value> {
    let whole = quirks.has(Quirk::WholeArguments);
    let arguments: Vec<Value> = if quirks.has(Quirk::ObjectArguments) {
        vec![input.clone()]
    } else if quirks.has(Quirk::EmptyArguments) {
        vec![json!("")]
    } else if whole {
        vec![json!(input.to_string())]
    } else {
        std::iter::once(String::new())
            .chain(text::fragments(&input.to_string()))
            .map(Value::from)
            .collect()
    };
    let named = usize::from(quirks.has(Quirk::NameLate));
    let named = named.min(arguments.len() - 1);
    let fragment = |(order, arguments): (usize, Value)| {
        let mut function = Map::new();
        if order == named {
            function.insert("name".into(), name.into());
        }
        function.insert("arguments".into(), arguments);
        let mut call = Map::new();
        if !quirks.has(Quirk::NoToolIndex) {
            let index = if quirks.has(Quirk::AllIndexesZero) {
                0
            } else {
                position
            };
            call.insert("index".into(), index.into());
        }
        if !quirks.has(Quirk::NoToolIds) && (order == 0 || quirks.has(Quirk::RepeatedIds)) {
            call.insert("id".into(), id.into());
        }
        if order == 0 {
            call.insert("type".into(), "function".into());
        }
        call.insert("function".into(), function.into());
        json!({"tool_calls": [call]})
    };
    arguments.into_iter().enumerate().map(fragment).collect()
}

pub(crate) fn document(turn: &Turn) -> Value {
    let quirks = &turn.quirks;
    let mut written = String::new();
    let mut thought = String::new();
    let mut calls = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text { pieces } => written.extend(pieces.iter().map(String::as_str)),
            Part::Thinking { text, .. } => thought.push_str(text),
            Part::Redacted { .. } => {}
            Part::Call { id, name, input } => calls.push(whole_call(quirks, id, name, input)),
        }
    }
    let content = match (written.is_empty(), quirks.has(Quirk::ContentAsParts)) {
        (true, _) => Value::Null,
        (false, true) => json!([{"type": "text", "text": written}]),
        (false, false) => json!(written),
    };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if turn.stop == Stop::Refusal {
        message["refusal"] = message["content"].take();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    if !thought.is_empty() {
        let field = if quirks.has(Quirk::Reasoning) {
            "reasoning"
        } else {
            "reasoning_content"
        };
        message[field] = thought.into();
    }
    let finish = if quirks.has(Quirk::NoFinishReason) {
        Value::Null
    } else {
        finish_reason(turn)
    };
    let mut body = json!({
        "id": id(turn),
        "object": "chat.completion",
        "created": CREATED,
        "model": turn.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": null}],
    });
    if !quirks.has(Quirk::NoUsage) {
        body["usage"] = usage(&turn.usage);
    }
    body
}

fn whole_call(quirks: &Quirks, id: &str, name: &str, input: &Value) -> Value {
    let arguments = if quirks.has(Quirk::ObjectArguments) {
        input.clone()
    } else if quirks.has(Quirk::EmptyArguments) {
        json!("")
    } else {
        json!(input.to_string())
    };
    let mut call = json!({"type": "function", "function": {"name": name, "arguments": arguments}});
    if !quirks.has(Quirk::NoToolIds) {
        call["id"] = id.into();
    }
    call
}

fn id(turn: &Turn) -> String {
    format!("chatcmpl-{:04}", turn.serial)
}

fn finish_reason(turn: &Turn) -> Value {
    if turn.quirks.has(Quirk::StopDespiteTools) && turn.stop == Stop::ToolUse {
        return "stop".into();
    }
    match &turn.stop {
        Stop::EndTurn | Stop::StopSequence(_) | Stop::Refusal | Stop::Pause => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens | Stop::ContextExceeded => "length",
        Stop::ContentFilter => "content_filter",
        Stop::Raw(raw) => raw,
    }
    .into()
}

/// Cached and cache-write tokens are part of the prompt, reasoning of the completion.
fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt(),
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt() + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write()},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Api;
    use crate::script::Reply;
    use crate::turn::Ids;

    fn ask() -> Ask {
        let body =
            json!({"model": "gpt-4.1", "stream": true, "stream_options": {"include_usage": true}});
        Ask::from_body(Api::OpenAiChat, body.to_string().as_bytes()).unwrap()
    }

    fn chunks(reply: &Reply) -> Vec<Value> {
        let turn = Turn::resolve(reply, &ask(), &Ids::default());
        events(&ask(), &turn)
            .iter()
            .map(|e| serde_json::from_str(&e.data).unwrap_or_default())
            .collect()
    }

    fn two_calls() -> Reply {
        Reply::tools([
            ("Bash", json!({"command": "ls"})),
            ("Read", json!({"path": "a"})),
        ])
    }

    fn calls(reply: &Reply) -> Vec<Value> {
        let found = chunks(reply)
            .into_iter()
            .map(|c| c["choices"][0]["delta"]["tool_calls"][0].clone());
        found.filter(|call| !call.is_null()).collect()
    }

    #[test]
    fn a_plain_stream_has_every_part() {
        let all = chunks(&two_calls().and_text("Looking around."));
        assert_eq!(all[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(all[all.len() - 1], Value::Null);
        assert_eq!(all[all.len() - 2]["choices"], json!([]));
        assert_eq!(all[all.len() - 2]["usage"]["total_tokens"], 19);
        assert_eq!(
            all[all.len() - 3]["choices"][0]["finish_reason"],
            "tool_calls"
        );
        let calls = calls(&two_calls());
        assert_eq!(
            calls.iter().filter(|call| call.get("id").is_some()).count(),
            2
        );
        let joined = |index: u64| -> String {
            let own = calls.iter().filter(|call| call["index"] == index);
            own.filter_map(|call| call["function"]["arguments"].as_str())
                .collect()
        };
        assert_eq!(
            (joined(0), joined(1)),
            (r#"{"command":"ls"}"#.into(), r#"{"path":"a"}"#.into())
        );
    }

    #[test]
    fn call_quirks_change_the_fragments() {
        let with = |quirk| calls(&two_calls().quirk(quirk));
        assert!(
            with(Quirk::NoToolIndex)
                .iter()
                .all(|call| call.get("index").is_none())
        );
        assert!(
            with(Quirk::AllIndexesZero)
                .iter()
                .all(|call| call["index"] == 0)
        );
        assert!(
            with(Quirk::NoToolIds)
                .iter()
                .all(|call| call.get("id").is_none())
        );
        assert!(
            with(Quirk::RepeatedIds)
                .iter()
                .all(|call| call.get("id").is_some())
        );
        assert_eq!(with(Quirk::WholeArguments).len(), 2);
        assert_eq!(
            with(Quirk::ObjectArguments)[0]["function"]["arguments"]["command"],
            "ls"
        );
        assert_eq!(with(Quirk::EmptyArguments)[1]["function"]["arguments"], "");
        let late = with(Quirk::NameLate);
        assert!(late[0]["function"].get("name").is_none() && late[1]["function"]["name"] == "Bash");
    }

    #[test]
    fn stream_quirks_change_the_frame() {
        let text = || Reply::text("Hello there, friend.").thinking("hm");
        assert!(
            chunks(&text().quirk(Quirk::NoDoneMarker))
                .last()
                .unwrap()
                .is_object()
        );
        let no_finish = chunks(&text().quirk(Quirk::NoFinishReason));
        assert!(
            no_finish
                .iter()
                .all(|c| c["choices"][0]["finish_reason"].is_null())
        );
        assert!(
            chunks(&text().quirk(Quirk::NoUsage))
                .iter()
                .all(|c| c.get("usage").is_none())
        );
        let every = chunks(&text().quirk(Quirk::UsageEveryChunk));
        assert!(
            every
                .iter()
                .filter(|c| c.is_object())
                .all(|c| c["usage"]["total_tokens"] == 19)
        );
        assert!(
            chunks(&text().quirk(Quirk::ContentAsParts))
                .iter()
                .any(|c| c["choices"][0]["delta"]["content"].is_array())
        );
        for (quirk, field) in [
            (Quirk::Reasoning, "reasoning"),
            (Quirk::ReasoningContent, "reasoning_content"),
        ] {
            assert!(
                chunks(&text().quirk(quirk))
                    .iter()
                    .any(|c| c["choices"][0]["delta"][field] == "hm")
            );
        }
        let stop = chunks(&two_calls().quirk(Quirk::StopDespiteTools));
        assert!(
            stop.iter()
                .any(|c| c["choices"][0]["finish_reason"] == "stop")
        );
    }

    #[test]
    fn prompt_tokens_include_the_cached_ones() {
        let counts = Usage {
            input: 1,
            cache_read: 2,
            cache_write_5m: 3,
            cache_write_1h: 4,
            output: 9,
            reasoning: 5,
        };
        let turn = Turn::resolve(&Reply::text("x").usage(counts), &ask(), &Ids::default());
        let usage = &document(&turn)["usage"];
        assert_eq!(
            (
                usage["prompt_tokens"].as_u64(),
                usage["total_tokens"].as_u64()
            ),
            (Some(10), Some(19))
        );
        assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 5);
    }
}
