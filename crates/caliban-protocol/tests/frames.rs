//! Whatever happens in a run is told in frames that fit the schema, one line each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod anything;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anything::{encoder, event, init, json_value, outcome, text, totals};
use caliban_agent::{AnswerStep, Event, Outcome, RunTotals, ToolOutput};
use caliban_model::{Block, Message, Retry, RetryCategory, Role, Shown, Usage, Warning};
use caliban_protocol::{
    Encoder, HookEvents, Partial, Replay, command, frames_schema, line, result,
};
use jsonschema::Validator;
use proptest::prelude::*;
use rstest::rstest;
use rust_decimal::Decimal;
use serde_json::{Value, json};

static OUTPUT: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&frames_schema()).unwrap());
static INPUT: LazyLock<Validator> = LazyLock::new(|| {
    let mut schema = frames_schema()["$defs"]["Input"].clone();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    jsonschema::draft202012::new(&schema).unwrap()
});

/// One line for every reader, and a frame of the schema.
fn check(frame: &Value) -> Result<(), TestCaseError> {
    let line = line(frame);
    let body = line.strip_suffix('\n').unwrap();
    prop_assert!(
        !body.contains(
            |char: char| char.is_ascii_control() || matches!(char, '\u{2028}' | '\u{2029}')
        ),
        "{body:?}"
    );
    prop_assert_eq!(&serde_json::from_str::<Value>(body).unwrap(), frame);
    let complaints: Vec<String> = OUTPUT
        .iter_errors(frame)
        .map(|error| error.to_string())
        .collect();
    prop_assert!(complaints.is_empty(), "{frame}: {complaints:?}");
    Ok(())
}

proptest! {
    #[test]
    fn every_event_becomes_frames_of_the_schema(
        events in prop::collection::vec(event(), 1..6),
        encoder in encoder(),
    ) {
        for event in &events {
            let frames = encoder.frames(event);
            for frame in &frames {
                check(frame)?;
            }
            let lines: Vec<String> = frames.iter().map(line).collect();
            prop_assert_eq!(encoder.lines(event), lines);
        }
    }

    #[test]
    fn every_run_begins_and_ends_with_a_frame_of_the_schema(
        init in init(),
        outcome in outcome(),
        totals in totals(),
        session in text(),
    ) {
        check(&init.frame())?;
        let frame = result(&outcome, &totals, &session);
        check(&frame)?;
        prop_assert_eq!(&frame["subtype"], outcome.subtype());
        prop_assert_eq!(&frame["is_error"], &json!(outcome.exit_code() != 0));
    }

    #[test]
    fn a_prompt_is_read_exactly_if_it_fits_the_schema(
        content in prop_oneof![
            text().prop_map(Value::from),
            prop::collection::vec(
                text().prop_map(|text| json!({"type": "text", "text": text})), 0..3
            ).prop_map(Value::from),
            json_value(),
        ],
    ) {
        // A next line and a byte order mark are blank to the one and not to the other.
        prop_assume!(!content.to_string().contains(['\u{85}', '\u{feff}']));
        let frame = json!({"type": "user", "content": content});
        prop_assert_eq!(
            command(&frame.to_string(), 1).is_ok(),
            INPUT.is_valid(&frame),
            "{}", frame
        );
    }
}

#[rstest]
#[case(json!({"type": "user", "content": "hi"}), true)]
#[case(json!({"type": "user", "content": [{"type": "text", "text": "hi"}]}), true)]
#[case(json!({"type": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "hi"}]}), true)]
#[case(json!({"type": "control", "subtype": "interrupt"}), true)]
#[case(json!({"type": "user"}), false)]
#[case(json!({"type": "user", "content": " \n"}), false)]
#[case(json!({"type": "user", "content": []}), false)]
#[case(json!({"type": "user", "content": "x", "extra": 1}), false)]
#[case(json!({"type": "user", "message": {"role": "user", "content": "x"}}), false)]
#[case(json!({"type": "user", "content": [{"type": "image"}]}), false)]
#[case(json!({"type": "user", "content": [{"type": "text", "text": "x", "y": 1}]}), false)]
#[case(json!({"type": "control", "subtype": "stop"}), false)]
#[case(json!({"type": "control", "subtype": "interrupt", "x": 1}), false)]
#[case(json!({"type": "other"}), false)]
#[case(json!([]), false)]
fn input_frames_and_their_schema_agree(#[case] frame: Value, #[case] is_command: bool) {
    assert_eq!(command(&frame.to_string(), 1).is_ok(), is_command);
    assert_eq!(INPUT.is_valid(&frame), is_command);
}

/// The documented examples, in the documented order of fields.
#[test]
fn documented_frames_stand_to_the_letter() {
    let encoder = Encoder {
        partial: Partial::Included,
        hooks: HookEvents::Included,
        replay: Replay::Prompts,
    };
    let told = |event: Event| -> String { encoder.frames(&event).iter().map(line).collect() };
    let shown = |event: Event| told(event).trim_end().to_owned();
    let prompt = Arc::new(Message::new(Role::User, vec![Block::text("fix the tests")]));
    assert_eq!(
        shown(Event::PromptAccepted { prompt }),
        r#"{"type":"user","content":[{"type":"text","text":"fix the tests"}]}"#
    );
    let text = "Let me see".to_owned();
    assert_eq!(
        shown(Event::ThinkingDelta { text }),
        r#"{"type":"thinking","delta":"Let me see"}"#
    );
    assert_eq!(
        shown(Event::Answer(AnswerStep::BlockEnded {
            block: Arc::new(Block::ToolUse {
                id: "toolu_01ABC".into(),
                name: "Bash".into(),
                input: json!({"command": "cargo test"}),
                private: None
            })
        })),
        r#"{"type":"tool_use","id":"toolu_01ABC","name":"Bash","input":{"command":"cargo test"}}"#
    );
    assert_eq!(
        shown(Event::ToolFinished {
            id: "toolu_01ABC".into(),
            name: "Bash".into(),
            output: ToolOutput::ok("ok"),
            duration: Duration::ZERO,
            denial: None
        }),
        r#"{"type":"tool_result","tool_use_id":"toolu_01ABC","is_error":false,"content":[{"type":"text","text":"ok"}]}"#
    );
    assert_eq!(
        shown(Event::HookFired {
            event: "PreToolUse".into(),
            output: json!({"matcher": "Bash", "decision": "allow"})
        }),
        r#"{"type":"hook_event","hookEventName":"PreToolUse","hookSpecificOutput":{"matcher":"Bash","decision":"allow"}}"#
    );
    assert_eq!(
        shown(Event::Warning(Warning::model_mismatch(
            "llama3.1", "llama3.2"
        ))),
        r#"{"type":"warning","subtype":"model_mismatch","message":"model mismatch: requested \"llama3.1\" but provider responded with \"llama3.2\"","details":{"requested":"llama3.1","actual":"llama3.2"}}"#
    );
    assert_eq!(
        shown(Event::Retrying(Retry {
            attempt: 2,
            max_retries: 5,
            delay: Duration::from_millis(1500),
            status: Some(529),
            category: RetryCategory::Overloaded,
            message: "busy".to_owned(),
            shown: Shown::Nothing,
        })),
        r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":5,"retry_delay_ms":1500,"error_status":529,"error_category":"overloaded"}"#
    );
}

#[test]
fn results_have_the_documented_fields_first() {
    let totals = RunTotals {
        turns: 3,
        cost: Decimal::new(34, 4),
        usage: Usage {
            input: 8210,
            output: 621,
            ..Usage::default()
        },
        tool_calls: 2,
        last_text: Some("so far".to_owned()),
        ..RunTotals::default()
    };
    let success = Outcome::Success {
        text: "All pass.".to_owned(),
    };
    let shown = line(&result(&success, &totals, "s"));
    let documented = r#"{"type":"result","subtype":"success","result":"All pass.","session_id":"s","total_cost_usd":0.0034,"turns":3,"total_input_tokens":8210,"total_output_tokens":621,"is_error":false,"#;
    assert!(shown.starts_with(documented), "{shown}");
    let failed = Outcome::Internal {
        message: "no".to_owned(),
    };
    let shown = line(&result(&failed, &totals, "s"));
    let documented = r#"{"type":"result","subtype":"error","error":"no","last_assistant_text":"so far","tool_calls_seen":2,"session_id":"s","#;
    assert!(shown.starts_with(documented), "{shown}");
    let shown = line(&result(&Outcome::Cancelled, &RunTotals::default(), "s"));
    let documented =
        r#"{"type":"result","subtype":"cancelled","tool_calls_seen":0,"session_id":"s","#;
    assert!(shown.starts_with(documented), "{shown}");
}

#[rstest]
#[case(json!({"type": "text", "delta": "x", "extra": 1}))]
#[case(json!({"type": "text"}))]
#[case(json!({"type": "system", "subtype": "other"}))]
#[case(json!({"type": "warning", "subtype": "model_mismatch", "message": "m"}))]
#[case(json!({"type": "warning", "subtype": "hook", "message": "m", "details": {}}))]
#[case(json!({"type": "strange"}))]
fn the_schema_is_closed(#[case] frame: Value) {
    assert!(!OUTPUT.is_valid(&frame));
}
