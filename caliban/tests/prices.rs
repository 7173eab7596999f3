//! What answers of providers cost, through the built binary: transcripts in the form that each of
//! them sends, and beside each what it costs by the provider's own word, or else reckoned by hand
//! from the prices that it publishes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use rstest::rstest;
use serde_json::{Value, json};
use support::{Wire, bare, run};

/// How far a sum may be from the provider's own, as a part of it.
const TOLERANCE: f64 = 0.001;

/// Answers every request with this stream, and says where.
fn provider(stream: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = BufReader::new(connection.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while connection.read_line(&mut line).unwrap() > 2 {
                let header = line.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            connection.read_exact(&mut vec![0; length]).unwrap();
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let connection = connection.get_mut();
            write!(connection, "{head}{stream}").unwrap();
        }
    });
    format!("http://{address}")
}

/// Events with names, as two of the wires have them.
fn named(events: &[Value]) -> String {
    let event = |event: &Value| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}

fn anthropic(model: &str, at_first: &Value, at_last: &Value) -> String {
    named(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": model, "content": [], "stop_reason": null,
            "stop_sequence": null, "usage": at_first}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": "Hello."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": at_last}),
        json!({"type": "message_stop"}),
    ])
}

fn responses(model: &str, usage: Value) -> String {
    let part = json!({"type": "output_text", "text": "Hello.", "annotations": []});
    let item = |content: Value| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": content})
    };
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status,
            "model": model, "output": output, "usage": usage, "error": null,
            "incomplete_details": null, "service_tier": "default"})
    };
    let place = |mut event: Value| {
        event["item_id"] = "msg_1".into();
        event["output_index"] = 0.into();
        event["content_index"] = 0.into();
        event
    };
    named(&[
        json!({"type": "response.created", "response": response("in_progress", json!([]), Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item(json!([]))}),
        place(json!({"type": "response.output_text.delta", "delta": "Hello."})),
        place(json!({"type": "response.output_text.done", "text": "Hello."})),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item(json!([part]))}),
        json!({"type": "response.completed",
            "response": response("completed", json!([item(json!([part]))]), usage)}),
    ])
}

fn chat(model: &str, usage: &Value) -> String {
    let chunk = |delta: Value, reason: Value| {
        json!({"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let last = json!({"id": "gen-1", "object": "chat.completion.chunk", "created": 1,
        "model": model, "choices": [], "usage": usage});
    let events = [
        chunk(
            json!({"role": "assistant", "content": "Hello."}),
            Value::Null,
        ),
        chunk(json!({}), json!("stop")),
        last,
    ];
    let lines = events.map(|event| format!("data: {event}\n\n"));
    format!(": PROCESSING\n\n{}data: [DONE]\n\n", lines.concat())
}

fn gemini(model: &str, usage: &Value) -> String {
    let event = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]},
        "finishReason": "STOP", "index": 0}], "usageMetadata": usage, "modelVersion": model,
        "responseId": "r1"});
    format!("data: {event}\r\n\r\n")
}

/// 1,234 at $3, 50,000 of a cache at $0.30, 2,000 kept for five minutes at $3.75 and 8,000 for an
/// hour at $6, 777 written at $15.
fn both_caches() -> String {
    let at_first = json!({"input_tokens": 1_234, "cache_creation_input_tokens": 10_000,
        "cache_read_input_tokens": 50_000, "output_tokens": 3, "service_tier": "standard",
        "cache_creation": {"ephemeral_5m_input_tokens": 2_000, "ephemeral_1h_input_tokens": 8_000}});
    anthropic(
        "claude-sonnet-4-6",
        &at_first,
        &json!({"output_tokens": 777}),
    )
}

/// Above 100,000 everything costs five times as much: 120,000 at $0.50, 1,000 at $2.50.
fn long_prompt() -> String {
    let at_first = json!({"input_tokens": 120_000, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "output_tokens": 1});
    anthropic(
        "claude-haiku-5-5",
        &at_first,
        &json!({"output_tokens": 1_000,
        "output_tokens_details": {"thinking_tokens": 900}}),
    )
}

/// Above 272,000: 100,000 at $10 and 200,000 of a cache at $1, 4,000 at $45, thoughts included.
fn long_prompt_with_thoughts() -> String {
    responses(
        "gpt-5.5",
        json!({"input_tokens": 300_000, "output_tokens": 4_000,
        "total_tokens": 304_000, "input_tokens_details": {"cached_tokens": 200_000},
        "output_tokens_details": {"reasoning_tokens": 3_000}}),
    )
}

/// 3,000 at $1, 4,000 of a cache at $0.05, 2,000 kept for half an hour at $1.25 and 1,000 for
/// twelve at $2.50, 500 at $5.
fn both_caches_of_another() -> String {
    responses(
        "gpt-6.1-terra",
        json!({"input_tokens": 10_000, "output_tokens": 500,
        "total_tokens": 10_500, "input_tokens_details": {"cached_tokens": 4_000,
            "cache_write_tokens": 3_000,
            "cache_write_tokens_details": {"ttl_30m_tokens": 2_000, "ttl_12h_tokens": 1_000}},
        "output_tokens_details": {"reasoning_tokens": 0}}),
    )
}

/// 2,000 at $2, 6,000 of a cache at $0.50, 250 at $8.
fn cached_chat() -> String {
    chat(
        "gpt-4.1",
        &json!({"prompt_tokens": 8_000, "completion_tokens": 250,
        "total_tokens": 8_250, "prompt_tokens_details": {"cached_tokens": 6_000}}),
    )
}

/// Thoughts are counted beside the answer: 40,000 at $1.25, 10,000 of a cache at $0.125, 500 and
/// 1,500 at $10.
fn thoughts_beside_the_answer() -> String {
    gemini(
        "gemini-2.5-pro",
        &json!({"promptTokenCount": 50_000, "cachedContentTokenCount": 10_000,
        "candidatesTokenCount": 500, "thoughtsTokenCount": 1_500, "totalTokenCount": 52_000}),
    )
}

/// Above 200,000: 150,000 at $2.50, 100,000 of a cache at $0.25, 2,000 at $15.
fn long_prompt_of_a_third() -> String {
    gemini(
        "gemini-2.5-pro",
        &json!({"promptTokenCount": 250_000,
        "cachedContentTokenCount": 100_000, "candidatesTokenCount": 800,
        "thoughtsTokenCount": 1_200, "totalTokenCount": 252_000}),
    )
}

/// A gateway has prices of its own, and tells the sum.
fn charged() -> String {
    chat(
        "vendor/its-model",
        &json!({"prompt_tokens": 1_942, "completion_tokens": 211,
        "total_tokens": 2_153, "cost": 0.009_184_5, "is_byok": false,
        "prompt_tokens_details": {"cached_tokens": 0},
        "cost_details": {"upstream_inference_cost": null},
        "completion_tokens_details": {"reasoning_tokens": 64}}),
    )
}

/// It charges its fee; the rest is on the bill of whose key it is.
fn charged_for_a_key_of_ones_own() -> String {
    chat(
        "vendor/its-model",
        &json!({"prompt_tokens": 1_942, "completion_tokens": 211,
        "total_tokens": 2_153, "cost": 0.000_459_225, "is_byok": true,
        "cost_details": {"upstream_inference_cost": 0.009_184_5}}),
    )
}

#[rstest]
#[case::both_caches(Wire::Anthropic, "claude-sonnet-4-6", both_caches(), 0.085_857)]
#[case::long_prompt(Wire::Anthropic, "claude-haiku-5-5", long_prompt(), 0.0625)]
#[case::thoughts(Wire::Responses, "gpt-5.5", long_prompt_with_thoughts(), 1.38)]
#[case::both_caches_of_another(Wire::Responses, "gpt-6.1-terra", both_caches_of_another(), 0.0107)]
#[case::chat(Wire::Chat, "gpt-4.1", cached_chat(), 0.009)]
#[case::thoughts_beside(Wire::Gemini, "gemini-2.5-pro", thoughts_beside_the_answer(), 0.071_25)]
#[case::third(Wire::Gemini, "gemini-2.5-pro", long_prompt_of_a_third(), 0.43)]
#[case::charged(Wire::Chat, "vendor/its-model", charged(), 0.009_184_5)]
#[case::own_key(
    Wire::Chat,
    "vendor/its-model",
    charged_for_a_key_of_ones_own(),
    0.009_643_725
)]
fn a_transcript_costs_what_its_provider_takes(
    #[case] wire: Wire,
    #[case] model: &str,
    #[case] stream: String,
    #[case] cost: f64,
) {
    let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = provider(stream);
    let caliban = || {
        let mut command = bare(home.path(), workspace.path());
        command.envs(wire.variables(&url));
        command
    };
    let is_right = |told: &Value| {
        let told = told.as_f64().unwrap();
        assert!(
            (told - cost).abs() <= cost * TOLERANCE,
            "{told} instead of {cost}"
        );
    };
    let mut command = caliban();
    command.args(["--provider", wire.provider(), "--model", model]);
    command.args(["-p", "hi", "--session", "s", "--output-format", "json"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["result"], "Hello.", "{result}");
    is_right(&result["total_cost_usd"]);
    // The same is written down, by model and by what it was for.
    for by in ["model", "purpose"] {
        let ran = run(caliban().args(["usage", "--json", "--by", by]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        is_right(&report["total"]["cost_usd"]);
        is_right(&report["rows"][0]["cost_usd"]);
    }
}
