//! What the model server of a bench says, written out beforehand.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

/// A whole HTTP answer, ready to be written in one piece.
pub(super) type Answer = Arc<[u8]>;

/// An answer of one word.
pub(super) fn text(text: &str) -> Answer {
    deltas(text, 1)
}

/// An answer of `count` deltas with the same text.
pub(super) fn deltas(text: &str, count: usize) -> Answer {
    let block = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": text});
    message(&block, &delta, count, "end_turn")
}

/// A call of a tool. The id makes it unlike any other.
pub(super) fn call(number: usize, name: &str, input: &Value) -> Answer {
    let id = format!("toolu_{number:06}");
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    message(&block, &delta, 1, "tool_use")
}

/// A refusal that is not worth a second attempt.
pub(super) fn refusal() -> Answer {
    let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#;
    http("400 Bad Request", "application/json", body)
}

fn message(block: &Value, delta: &Value, deltas: usize, stop: &str) -> Answer {
    let mut events = String::new();
    let mut event = |data: Value| {
        let name = data["type"].as_str().unwrap_or_default();
        let _ = write!(events, "event: {name}\ndata: {data}\n\n");
    };
    event(json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6",
        "content": [], "usage": {"input_tokens": 9, "output_tokens": 1},
    }}));
    event(json!({"type": "content_block_start", "index": 0, "content_block": block}));
    for _ in 0..deltas {
        event(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    }
    event(json!({"type": "content_block_stop", "index": 0}));
    event(
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}}),
    );
    event(json!({"type": "message_stop"}));
    http("200 OK", "text/event-stream", &events)
}

fn http(status: &str, kind: &str, body: &str) -> Answer {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
        .into()
}
