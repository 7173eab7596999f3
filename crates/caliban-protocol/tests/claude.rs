//! The dialect of Claude Code: whatever happens, its clients can read the frames; and each frame
//! to the letter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

#[allow(dead_code, reason = "each test file uses its part")]
mod anything;

use std::sync::Arc;
use std::time::Duration;

use anything::event;
use caliban_agent::{AnswerStep, Denial, Event, ModelTotals, Outcome, RunTotals, ToolOutput};
use caliban_model::{
    Block, Error, ErrorKind, Message, Retry, RetryCategory, Shown, StopReason, Usage,
};
use caliban_protocol::claude::{
    Audience, Emitted, Encoder, FrameKinds, InitFacts, Options, States, Turn, UserInput, Wording,
    failure, fit,
};
use caliban_protocol::{HookEvents, Partial, Replay};
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::{Value, json};

fn encoder(partial: Partial, replay: Replay, states: States) -> Encoder {
    let options = Options {
        partial,
        hooks: HookEvents::Included,
        replay,
        states,
        sub_agent_text: false,
        kinds: FrameKinds::All,
    };
    let mut count = 0;
    let ids = Box::new(move || {
        count += 1;
        format!("u{count}")
    });
    Encoder::new(options, "s", Decimal::ZERO, ids)
}

fn turn() -> Turn {
    Turn {
        init: InitFacts {
            cwd: "/p".to_owned(),
            model: "m".to_owned(),
            ..InitFacts::default()
        },
        prompt: UserInput {
            unfit: None,
            message: Message::user("hi"),
            uuid: None,
            wording: Wording::Typed,
        },
    }
}

/// What the strictest of the clients needs of a frame.
fn check(frame: &Value) -> Result<(), TestCaseError> {
    let text = |value: &Value| value.is_string();
    prop_assert!(
        text(&frame["session_id"]) && text(&frame["uuid"]),
        "{frame}"
    );
    let message = &frame["message"];
    match frame["type"].as_str() {
        Some("system") => prop_assert!(text(&frame["subtype"])),
        Some("assistant") => {
            prop_assert!(text(&message["model"]) && text(&message["id"]));
            prop_assert_eq!(&message["role"], "assistant");
            prop_assert_eq!(&message["stop_reason"], &Value::Null);
            prop_assert!(message["usage"]["input_tokens"].is_u64());
            let blocks = message["content"].as_array().unwrap();
            prop_assert_eq!(blocks.len(), 1);
            let block = &blocks[0];
            let is_whole = match block["type"].as_str() {
                Some("text") => text(&block["text"]),
                Some("thinking") => text(&block["thinking"]) && text(&block["signature"]),
                Some("redacted_thinking") => text(&block["data"]),
                Some("tool_use") => {
                    text(&block["id"]) && text(&block["name"]) && block["input"].is_object()
                }
                Some("image" | "tool_result") => true,
                _ => false,
            };
            prop_assert!(is_whole, "{block}");
            prop_assert!(
                frame
                    .as_object()
                    .unwrap()
                    .contains_key("parent_tool_use_id")
            );
        }
        Some("user") => {
            prop_assert_eq!(&message["role"], "user");
            prop_assert!(message["content"].is_string() || message["content"].is_array());
        }
        Some("stream_event") => prop_assert!(text(&frame["event"]["type"])),
        Some("result") => {
            for key in ["duration_ms", "duration_api_ms", "num_turns"] {
                prop_assert!(frame[key].is_u64(), "{key}");
            }
            prop_assert!(frame["is_error"].is_boolean() && text(&frame["subtype"]));
            prop_assert!(frame["total_cost_usd"].is_number() && frame["usage"].is_object());
            prop_assert!(frame["modelUsage"].is_object() && frame["permission_denials"].is_array());
            if frame["subtype"] == "success" {
                prop_assert!(text(&frame["result"]));
            } else {
                prop_assert!(frame["errors"].is_array() && frame.get("result").is_none());
            }
        }
        other => prop_assert!(false, "{other:?}"),
    }
    let line = fit(frame);
    prop_assert!(line.starts_with("{\"type\":"), "{line}");
    Ok(())
}

/// The events that only this dialect tells.
fn step() -> impl Strategy<Value = Event> {
    let id = || prop_oneof![Just("a"), Just("b")];
    let block = prop_oneof![
        "[a-z]{0,6}".prop_map(Block::text),
        ("[a-z]{0,6}", prop::option::of("[a-z]{0,6}")).prop_map(|(text, signature)| {
            Block::Thinking {
                text,
                signature,
                private: None,
            }
        }),
        id().prop_map(|id| Block::ToolUse {
            id: id.to_owned(),
            name: "Read".to_owned(),
            input: json!({"path": "x"}),
            private: None,
        }),
        Just(Block::Opaque { value: json!(1) }),
    ];
    let step = prop_oneof![
        Just(AnswerStep::Started {
            model: Arc::from("m")
        }),
        any::<u8>().prop_map(|input| AnswerStep::Measured {
            usage: Usage {
                input: input.into(),
                ..Usage::default()
            }
        }),
        id().prop_map(|id| AnswerStep::ToolBegun {
            id: Arc::from(id),
            name: Arc::from("AgentTool"),
        }),
        "[a-z{}]{0,5}".prop_map(|json| AnswerStep::ToolInput { json }),
        block.prop_map(|block| AnswerStep::BlockEnded {
            block: Arc::new(block)
        }),
        Just(AnswerStep::Stopped {
            reason: StopReason::EndTurn
        }),
    ];
    step.prop_map(Event::Answer)
}

proptest! {
    #[test]
    fn every_sequence_of_events_becomes_frames_that_clients_read(
        events in prop::collection::vec(prop_oneof![event(), step()], 1..24),
        is_partial in any::<bool>(),
    ) {
        let partial = if is_partial { Partial::Included } else { Partial::Left };
        let mut encoder = encoder(partial, Replay::Prompts, States::Told);
        let mut frames = encoder.begin(turn());
        frames.extend(events.iter().flat_map(|event| encoder.frames(event)));
        let mut open: Vec<Value> = Vec::new();
        for Emitted { frame, .. } in &frames {
            check(frame)?;
            // Blocks begin once, end once, and only grow between.
            let event = &frame["event"];
            match event["type"].as_str() {
                Some("message_start") => open.clear(),
                Some("content_block_start") => {
                    prop_assert!(!open.contains(&event["index"]));
                    open.push(event["index"].clone());
                }
                Some("content_block_delta") => prop_assert!(open.contains(&event["index"])),
                Some("content_block_stop") => {
                    prop_assert!(open.contains(&event["index"]));
                    open.retain(|index| *index != event["index"]);
                }
                Some("message_stop") => prop_assert!(open.is_empty()),
                _ => {}
            }
        }
    }
}

fn frames(encoder: &mut Encoder, event: &Event) -> Vec<Value> {
    let shown = encoder.frames(event).into_iter();
    shown.map(|emitted| emitted.frame).collect()
}

fn said(text: &str) -> Event {
    Event::Answer(AnswerStep::BlockEnded {
        block: Arc::new(Block::text(text)),
    })
}

fn started(encoder: &mut Encoder) {
    let model = Arc::from("claude-x");
    encoder.frames(&Event::Answer(AnswerStep::Started { model }));
    let usage = Usage {
        input: 10,
        output: 1,
        ..Usage::default()
    };
    encoder.frames(&Event::Answer(AnswerStep::Measured { usage }));
}

#[test]
fn frames_stand_to_the_letter() {
    let mut encoder = encoder(Partial::Left, Replay::Nothing, States::ForLibrary);
    let begun = encoder.begin(turn());
    assert_eq!(
        begun[0].frame,
        json!({"type": "system", "subtype": "session_state_changed", "state": "running", "sdk_host_only": true, "session_id": "s", "uuid": "u1"})
    );
    let opening = encoder.frames(&Event::PromptAccepted {
        prompt: Arc::new(Message::user("hi")),
    });
    assert_eq!(
        opening[0].frame,
        json!({
            "type": "system", "subtype": "init", "cwd": "/p", "tools": [], "mcp_servers": [],
            "model": "m", "permissionMode": "", "slash_commands": [], "apiKeySource": "",
            "claude_code_version": "", "output_style": "", "agents": [], "skills": [],
            "plugins": [], "memory_paths": {}, "fast_mode_state": "", "session_id": "s", "uuid": "u2",
        })
    );
    // The prompt is kept, but not echoed.
    assert_eq!(opening[1].to, Audience::Transcript);
    assert_eq!(
        opening[1].frame,
        json!({
            "type": "user", "message": {"role": "user", "content": "hi"},
            "parent_tool_use_id": null, "session_id": "s", "uuid": "u3", "isReplay": true,
        })
    );
    started(&mut encoder);
    assert_eq!(
        frames(&mut encoder, &said("Hello.")),
        [json!({
            "type": "assistant",
            "message": {
                "id": "msg_u4", "type": "message", "role": "assistant", "model": "claude-x",
                "content": [{"type": "text", "text": "Hello."}],
                "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1},
            },
            "parent_tool_use_id": null, "session_id": "s", "uuid": "u5",
        })]
    );
    let retry = Retry {
        attempt: 1,
        max_retries: 2,
        delay: Duration::from_millis(523),
        status: Some(529),
        category: RetryCategory::Overloaded,
        message: "busy".to_owned(),
        shown: Shown::Nothing,
    };
    assert_eq!(
        frames(&mut encoder, &Event::Retrying(retry)),
        [
            json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 2, "retry_delay_ms": 523, "error_status": 529, "error": "overloaded", "session_id": "s", "uuid": "u6"})
        ]
    );
    let compacted = Event::CompactionFinished {
        before_tokens: 9,
        after_tokens: 4,
    };
    let compacted = frames(&mut encoder, &compacted);
    assert_eq!(
        compacted[1],
        json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto", "pre_tokens": 9, "post_tokens": 4}, "session_id": "s", "uuid": "u8"})
    );
}

#[test]
fn a_refused_call_is_told_and_listed() {
    let mut encoder = encoder(Partial::Left, Replay::Nothing, States::Untold);
    encoder.begin(turn());
    encoder.frames(&Event::ToolReady {
        id: Arc::from("t"),
        name: Arc::from("Write"),
        input: json!({"path": "a", "content": "b"}),
        first_arg: None,
    });
    let finished = Event::ToolFinished {
        id: Arc::from("t"),
        name: Arc::from("Write"),
        output: ToolOutput::new(caliban_agent::ToolStatus::Denied, "no"),
        duration: Duration::ZERO,
        denial: Some(Denial::by_hook("not here")),
    };
    let told = frames(&mut encoder, &finished);
    assert_eq!(
        told[0]["message"]["content"],
        json!([{"tool_use_id": "t", "type": "tool_result", "content": "not here", "is_error": true}])
    );
    let end = Event::Finished {
        outcome: Outcome::Success {
            text: "done".to_owned(),
        },
        totals: Box::default(),
    };
    let result = frames(&mut encoder, &end).pop().unwrap();
    assert_eq!(
        result["permission_denials"],
        json!([{"tool_name": "Write", "tool_use_id": "t", "tool_input": {"file_path": "a", "content": "b"}}])
    );
    assert_eq!(result["num_turns"], 2);
}

#[test]
fn results_stand_to_the_letter_and_count_their_own_turn() {
    let mut encoder = encoder(Partial::Left, Replay::Nothing, States::Untold);
    let mut totals = RunTotals {
        usage: Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        },
        cost: Decimal::new(105, 6),
        duration: Duration::from_millis(539),
        model_time: Duration::from_millis(118),
        ..RunTotals::default()
    };
    totals.models = vec![ModelTotals {
        provider: "anthropic".to_owned(),
        model: "claude-sonnet-4-6".to_owned(),
        usage: totals.usage,
        cost: Some(totals.cost),
    }];
    let finish = |encoder: &mut Encoder, totals: &RunTotals| {
        encoder.begin(turn());
        encoder.frames(&Event::Answer(AnswerStep::Stopped {
            reason: StopReason::EndTurn,
        }));
        let end = Event::Finished {
            outcome: Outcome::Success {
                text: "Hi.".to_owned(),
            },
            totals: Box::new(totals.clone()),
        };
        frames(encoder, &end).pop().unwrap()
    };
    let first = finish(&mut encoder, &totals);
    assert_eq!(
        first,
        json!({
            "type": "result", "subtype": "success", "is_error": false, "api_error_status": null,
            "duration_ms": 539, "duration_api_ms": 118, "num_turns": 1, "result": "Hi.",
            "stop_reason": "end_turn", "session_id": "s", "total_cost_usd": 0.000_105,
            "usage": {
                "input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "output_tokens": 5, "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
                "service_tier": "standard",
                "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
            },
            "modelUsage": {"claude-sonnet-4-6": {
                "inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 0,
                "cacheCreationInputTokens": 0, "webSearchRequests": 0, "costUSD": 0.000_105,
                "contextWindow": 1_000_000, "maxOutputTokens": 128_000,
            }},
            "permission_denials": [], "terminal_reason": "completed", "uuid": first["uuid"],
        })
    );
    totals.usage.input += 7;
    totals.duration += Duration::from_millis(11);
    let second = finish(&mut encoder, &totals);
    assert_eq!(second["usage"]["input_tokens"], 7);
    assert_eq!(second["duration_ms"], 11);
    let lost = failure("No conversation", "s", "u");
    assert_eq!(lost["errors"], json!(["No conversation"]));
    assert_eq!(
        (&lost["num_turns"], &lost["subtype"]),
        (&json!(0), &json!("error_during_execution"))
    );
}

#[test]
fn every_outcome_is_a_documented_result() {
    let provider = |kind| Outcome::Provider(Error::new(kind, "p", "m", "no").with_status(500));
    let message = || "why".to_owned();
    for (outcome, subtype, is_error, terminal) in [
        (
            Outcome::MaxTurns { limit: 1 },
            "error_max_turns",
            true,
            "max_turns",
        ),
        (
            Outcome::BudgetExceeded { message: message() },
            "error_max_budget_usd",
            true,
            "budget_exhausted",
        ),
        (
            Outcome::Cancelled,
            "error_during_execution",
            true,
            "aborted_streaming",
        ),
        (provider(ErrorKind::Server), "success", true, "api_error"),
        (Outcome::MaxTokens, "success", true, "api_error"),
        (
            Outcome::HookDenied { reason: message() },
            "success",
            false,
            "completed",
        ),
        (
            Outcome::Refusal { detail: None },
            "success",
            true,
            "api_error",
        ),
        (
            Outcome::SchemaMismatch { message: message() },
            "error_max_structured_output_retries",
            true,
            "structured_output_retry_exhausted",
        ),
        (
            Outcome::Internal { message: message() },
            "error_during_execution",
            true,
            "api_error",
        ),
    ] {
        let mut encoder = encoder(Partial::Left, Replay::Nothing, States::Untold);
        encoder.begin(turn());
        let end = Event::Finished {
            outcome: outcome.clone(),
            totals: Box::default(),
        };
        let result = frames(&mut encoder, &end).pop().unwrap();
        assert_eq!(result["subtype"], subtype, "{outcome:?}");
        assert_eq!(result["is_error"], is_error, "{outcome:?}");
        assert_eq!(result["terminal_reason"], terminal, "{outcome:?}");
    }
}
