//! Whatever happens in a run is told in the heddle dialect: documented events, numbered without
//! gaps, and one result.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

#[allow(dead_code, reason = "each test file uses its part")]
mod anything;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anything::{event, outcome, text, totals};
use caliban_agent::{
    Answer, CompactionReason, Denial, Effect, Event, Inquiry, Opinion, Outcome, Question,
    RunTotals, ToolCall, ToolOutput, ToolStatus,
};
use caliban_model::{Block, Message, Origin, Role, Usage};
use caliban_protocol::heddle::{Baseline, Correlation, Exchange, Opening, Plan, Version};
use jsonschema::Validator;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

/// The frames of a `send` as the documentation has them, closed.
static FRAMES: LazyLock<Validator> = LazyLock::new(|| {
    let event = |name: &str, fields: Value, optional: &[&str]| {
        let mut properties = fields.as_object().unwrap().clone();
        let mut required: Vec<String> = properties.keys().cloned().collect();
        required.retain(|name| !optional.contains(&name.as_str()));
        required.push("event".to_owned());
        properties.insert("event".to_owned(), json!({"const": name}));
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    let flag = json!({"type": "boolean"});
    let object = json!({"type": "object"});
    let codes = json!({"enum": ["provider_error", "tool_error", "loop_detected", "cancelled", "max_iterations"]});
    let states = json!({"enum": ["model", "tools", "permission", "compaction"]});
    let events = [
        event(
            "content_delta",
            json!({"text": {"type": "string", "minLength": 1}}),
            &[],
        ),
        event(
            "tool_start",
            json!({"name": text, "args": object, "id": text}),
            &[],
        ),
        event(
            "tool_end",
            json!({"name": text, "result_preview": text, "id": text}),
            &[],
        ),
        event(
            "usage",
            json!({"prompt_tokens": count, "completion_tokens": count, "total_tokens": count, "routed_model": text}),
            &["routed_model"],
        ),
        event(
            "error",
            json!({"code": codes, "message": text, "retryable": flag, "provider": text, "details": {"type": ["object", "null"]}}),
            &["provider"],
        ),
        event(
            "permission_request",
            json!({"name": text, "reason": text, "request_id": text}),
            &["request_id"],
        ),
        event(
            "permission_denied",
            json!({"name": text, "reason": text}),
            &[],
        ),
        event("plan_complete", json!({"plan": text}), &[]),
        event("context_compact", json!({}), &[]),
        event(
            "context_prune",
            json!({"messages_pruned": count, "tokens_before": count, "tokens_after": count}),
            &[],
        ),
        event("heartbeat", json!({"duration_ms": count}), &[]),
        event(
            "turn_state",
            json!({"state": states, "iteration": count}),
            &[],
        ),
    ];
    let ids = json!({"session_id": text, "task_id": text, "worker_id": text});
    let with = |mut fields: Value, others: &Value| {
        let fields_map = fields.as_object_mut().unwrap();
        fields_map.extend(others.as_object().unwrap().clone());
        fields
    };
    let envelope = json!({
        "type": "object",
        "properties": {"code": codes, "message": text, "retryable": flag, "details": {"type": ["object", "null"]}},
        "required": ["code", "message", "retryable"],
        "additionalProperties": false,
    });
    let tokens = json!({
        "type": "object",
        "properties": {"prompt_tokens": count, "completion_tokens": count, "total_tokens": count},
        "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
        "additionalProperties": false,
    });
    let call = json!({
        "type": "object",
        "properties": {"name": text, "args": object},
        "required": ["name", "args"],
        "additionalProperties": false,
    });
    let event_frame = with(
        json!({"type": {"const": "event"}, "event": {"oneOf": events}, "event_seq": count, "send_id": text}),
        &ids,
    );
    let result = with(
        json!({
            "type": {"const": "result"}, "id": text, "status": {"enum": ["ok", "error"]},
            "response": text, "tool_calls_made": {"type": "array", "items": call},
            "usage": tokens, "iterations": count, "error": envelope, "routed_model": text,
            "model_latency_ms": count, "tool_latency_ms": count, "total_latency_ms": count,
        }),
        &ids,
    );
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "oneOf": [
            {
                "type": "object", "properties": event_frame, "additionalProperties": false,
                "required": ["type", "event", "event_seq", "send_id"],
            },
            {
                "type": "object", "properties": result, "additionalProperties": false,
                "required": ["type", "id", "status", "tool_calls_made", "iterations"],
            },
        ],
    });
    jsonschema::draft202012::new(&schema).unwrap()
});

fn opening(version: Version, plan: Plan) -> Opening {
    Opening {
        id: "2".to_owned(),
        version,
        correlation: Correlation {
            session_id: Some("s".to_owned()),
            task_id: Some("t".to_owned()),
            worker_id: None,
        },
        provider: "p".to_owned(),
        plan,
        before: Baseline::default(),
    }
}

fn frames(exchange: &mut Exchange, event: &Event) -> Vec<Value> {
    exchange
        .events(event)
        .iter()
        .map(|response| serde_json::from_str(&response.line()).unwrap())
        .collect()
}

/// The payloads of events, in version 0.2.
fn told(events: &[Event]) -> Vec<Value> {
    told_in(Version::V0_2, events)
}

fn told_in(version: Version, events: &[Event]) -> Vec<Value> {
    let mut exchange = Exchange::new(opening(version, Plan::None));
    events
        .iter()
        .flat_map(|event| frames(&mut exchange, event))
        .map(|frame| frame["event"].clone())
        .collect()
}

fn check(frame: &Value) -> Result<(), TestCaseError> {
    let complaints: Vec<String> = FRAMES
        .iter_errors(frame)
        .map(|error| error.to_string())
        .collect();
    prop_assert!(complaints.is_empty(), "{frame}: {complaints:?}");
    Ok(())
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V0_2), Just(Version::V0_5)]
}

fn plan() -> impl Strategy<Value = Plan> {
    prop_oneof![Just(Plan::Expected), Just(Plan::None)]
}

proptest! {
    #[test]
    fn any_events_are_told_in_documented_frames_without_gaps(
        events in prop::collection::vec(prop::option::weighted(0.9, event()), 0..12),
        version in version(),
        plan in plan(),
        outcome in outcome(),
        totals in prop::option::of(totals()),
        elapsed in any::<u64>(),
        id in text(),
    ) {
        let mut opening = opening(version, plan);
        opening.id.clone_from(&id);
        let mut exchange = Exchange::new(opening);
        let mut seq = 0u64;
        let elapsed = Duration::from_millis(elapsed);
        for event in &events {
            let told = match event {
                Some(event) => frames(&mut exchange, event),
                None => vec![serde_json::from_str(&exchange.heartbeat(elapsed).line()).unwrap()],
            };
            for frame in told {
                check(&frame)?;
                prop_assert_eq!(&frame["event_seq"], &json!(seq));
                prop_assert_eq!(&frame["send_id"], &json!(id));
                if version == Version::V0_2 {
                    prop_assert_ne!(&frame["event"]["event"], "turn_state");
                    prop_assert_eq!(frame["event"].get("routed_model"), None);
                    prop_assert_eq!(frame["event"].get("request_id"), None);
                    prop_assert_ne!(&frame["event"]["code"], "max_iterations");
                }
                seq += 1;
            }
        }
        let result = exchange.result(&outcome, totals.as_ref(), elapsed);
        let result: Value = serde_json::from_str(&result.line()).unwrap();
        check(&result)?;
        let is_ok = matches!(outcome, Outcome::Success { .. });
        prop_assert_eq!(&result["status"], if is_ok { "ok" } else { "error" });
        prop_assert_eq!(result.get("error").is_some(), !is_ok);
        prop_assert_eq!(result.get("response").is_some(), is_ok);
        if version == Version::V0_2 {
            prop_assert_ne!(&result["error"]["code"], "max_iterations");
            prop_assert_eq!(result.get("routed_model"), None);
        }
    }
}

fn ready(id: &str, name: &str, input: Value) -> Event {
    Event::ToolReady {
        id: Arc::from(id),
        name: Arc::from(name),
        input,
        first_arg: None,
    }
}

fn started(id: &str) -> Event {
    Event::ToolStarted {
        id: Arc::from(id),
        name: Arc::from("Bash"),
        first_arg: None,
    }
}

fn finished(id: &str, name: &str, output: ToolOutput, denial: Option<&str>) -> Event {
    Event::ToolFinished {
        id: Arc::from(id),
        name: Arc::from(name),
        output,
        duration: Duration::from_millis(50),
        denial: denial.map(Denial::by_hook),
    }
}

fn asked(id: &str) -> Event {
    let call = ToolCall {
        id: Arc::from(id),
        agent: None,
        name: "Bash".into(),
        input: json!({}),
        effect: Effect::Executes,
        first_arg: None,
        turn: 1,
        opinion: Opinion::None,
    };
    let question = Question {
        reason: "Bash needs consent".to_owned(),
        rule: None,
        remedy: String::new(),
        suggestions: Vec::new(),
        parts: Vec::new(),
        place: None,
        target: None,
        input: None,
    };
    Event::PermissionAsked {
        inquiry: Box::new(Inquiry::new(call, question)),
    }
}

fn answer(usage: Usage) -> Event {
    let mut message = Message::new(Role::Assistant, vec![Block::text("x")]);
    message.origin = Some(Origin::new("p", Arc::from("m")));
    Event::AssistantMessage {
        message: Arc::new(message),
        usage,
        cost: None,
    }
}

#[test]
fn a_call_begins_when_it_is_permitted() {
    let events = [
        ready("1", "Bash", json!({"command": "ls"})),
        asked("1"),
        Event::PermissionAnswered {
            inquiry: Arc::from("q"),
            id: Arc::from("1"),
            answer: Answer::Nobody,
        },
        started("1"),
        finished("1", "Bash", ToolOutput::ok("a"), None),
    ];
    let question =
        json!({"event": "permission_request", "name": "bash", "reason": "Bash needs consent"});
    let start =
        json!({"event": "tool_start", "name": "bash", "args": {"command": "ls"}, "id": "1"});
    let end = json!({"event": "tool_end", "name": "bash", "result_preview": "a", "id": "1"});
    assert_eq!(told(&events), [question, start.clone(), end.clone()]);
    let state = |state: &str| json!({"event": "turn_state", "state": state, "iteration": 0});
    assert_eq!(
        told_in(Version::V0_5, &events),
        [
            state("tools"),
            json!({"event": "permission_request", "name": "bash", "reason": "Bash needs consent", "request_id": "1"}),
            state("permission"),
            state("tools"),
            start,
            end,
        ]
    );
}

#[rstest]
#[case::denied(
    finished("1", "Read", ToolOutput::new(ToolStatus::Denied, "no"), Some("because")),
    json!([{"event": "permission_denied", "name": "read_file", "reason": "because"}])
)]
#[case::invalid(
    finished("1", "Read", ToolOutput::invalid("wrong"), None),
    json!([
        {"event": "tool_start", "name": "read_file", "args": {"file_path": "a"}, "id": "1"},
        {"event": "tool_end", "name": "read_file", "result_preview": "wrong", "id": "1"},
    ])
)]
#[case::cancelled(
    finished("1", "Read", ToolOutput::new(ToolStatus::Cancelled, "stopped"), None),
    json!([])
)]
fn calls_that_did_not_run(#[case] end: Event, #[case] expected: Value) {
    let told = told(&[ready("1", "Read", json!({"path": "a"})), end]);
    assert_eq!(Value::from(told), expected);
}

#[test]
fn of_sub_agents_only_what_costs_or_needs_somebody_is_told() {
    let nested = |event: Event| Event::Nested {
        parent: Arc::from("0"),
        event: Box::new(event),
    };
    let usage = Usage {
        input: 5,
        output: 2,
        ..Usage::default()
    };
    let told = told(&[
        nested(Event::TextDelta {
            text: "psst".to_owned(),
        }),
        nested(ready("1", "Bash", json!({}))),
        nested(asked("1")),
        nested(finished("1", "Bash", ToolOutput::ok("x"), Some("no"))),
        nested(answer(usage)),
    ]);
    assert_eq!(
        told,
        [
            json!({"event": "permission_request", "name": "bash", "reason": "Bash needs consent"}),
            json!({"event": "permission_denied", "name": "bash", "reason": "no"}),
            json!({"event": "usage", "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}),
        ]
    );
}

#[test]
fn compaction_tells_what_it_left_out() {
    let messages = |n: usize| (0..n).map(|_| Arc::new(Message::user("x"))).collect();
    let prompt = Event::PromptAccepted {
        prompt: Arc::new(Message::user("x")),
    };
    let mut events: Vec<Event> = std::iter::repeat_n(prompt, 7).collect();
    events.extend([
        Event::CompactionStarted {
            reason: CompactionReason::Threshold,
        },
        Event::HistoryReplaced {
            messages: messages(2),
        },
        Event::CompactionFinished {
            before_tokens: 45_000,
            after_tokens: 28_000,
        },
    ]);
    assert_eq!(
        told(&events),
        [
            json!({"event": "context_compact"}),
            json!({"event": "context_prune", "messages_pruned": 5, "tokens_before": 45_000, "tokens_after": 28_000}),
        ]
    );
    // One that changed nothing is not told.
    let nothing = [
        Event::CompactionStarted {
            reason: CompactionReason::Threshold,
        },
        Event::CompactionFinished {
            before_tokens: 9,
            after_tokens: 9,
        },
    ];
    assert_eq!(told(&nothing), [] as [Value; 0]);
}

#[test]
fn a_result_counts_its_own_send() {
    let usage = |input, output| Usage {
        input,
        output,
        ..Usage::default()
    };
    let sums = |turns, usage, millis| RunTotals {
        turns,
        usage,
        model_time: Duration::from_millis(millis),
        ..RunTotals::default()
    };
    let mut opening = opening(Version::V0_5, Plan::None);
    opening.before = Baseline::new(&sums(3, usage(100, 10), 700), 4);
    let mut exchange = Exchange::new(opening);
    for event in [
        answer(usage(20, 5)),
        ready("1", "Read", json!({"path": "a"})),
        started("1"),
        finished("1", "Read", ToolOutput::ok("x"), None),
    ] {
        exchange.events(&event);
    }
    assert_eq!(exchange.messages(), 5);
    let outcome = Outcome::Success {
        text: "done".to_owned(),
    };
    let totals = sums(5, usage(120, 15), 1900);
    let result = exchange.result(&outcome, Some(&totals), Duration::from_millis(1250));
    assert_eq!(
        result.line().trim_end(),
        r#"{"type":"result","id":"2","status":"ok","response":"done","tool_calls_made":[{"name":"read_file","args":{"file_path":"a"}}],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25},"iterations":2,"session_id":"s","task_id":"t","model_latency_ms":1200,"tool_latency_ms":50,"total_latency_ms":1250,"routed_model":"p/m"}"#
    );
}

#[test]
fn a_send_that_broke_off_has_a_result_all_the_same() {
    let mut exchange = Exchange::new(opening(Version::V0_2, Plan::None));
    exchange.events(&Event::TurnStarted { turn: 1 });
    exchange.events(&answer(Usage {
        input: 20,
        output: 5,
        ..Usage::default()
    }));
    let outcome = Outcome::Internal {
        message: "internal error: as told; please report it".to_owned(),
    };
    let result = exchange.result(&outcome, None, Duration::from_millis(3));
    assert_eq!(
        serde_json::from_str::<Value>(&result.line()).unwrap(),
        json!({
            "type": "result",
            "id": "2",
            "status": "error",
            "tool_calls_made": [],
            "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
            "iterations": 1,
            "error": {
                "code": "tool_error",
                "message": "internal error: as told; please report it",
                "retryable": false,
            },
            "session_id": "s",
            "task_id": "t",
            "model_latency_ms": 0,
            "tool_latency_ms": 0,
            "total_latency_ms": 3,
        })
    );
}
