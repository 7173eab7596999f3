use caliban_model::{StreamEvent, Usage};
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::openai::testing::{
    Answer, Outcome, answer, decode, decode_everywhere, decode_whole, sse, thinking, tool_use,
};

const TEXT: &str = include_str!("testdata/text.sse");
const TOOLS: &str = include_str!("testdata/reasoning_and_tools.sse");

fn read(stream: &str) -> Outcome {
    decode_everywhere(ResponsesDecoder::default, stream)
}

fn read_answer(stream: &str) -> Answer {
    answer(read(stream).unwrap())
}

fn completed(output: &Value) -> Value {
    json!({"type": "response.completed", "response": {"model": "m", "status": "completed", "output": output}})
}

fn refusal_item() -> Value {
    json!({"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]})
}

#[test]
fn text() {
    let usage = Usage {
        input: 3,
        output: 2,
        ..Usage::default()
    };
    assert_eq!(
        read(TEXT).unwrap(),
        [
            StreamEvent::Started {
                model: "gpt-4.1".into()
            },
            StreamEvent::TextDelta {
                index: 0,
                text: "Hé".into()
            },
            StreamEvent::TextDelta {
                index: 0,
                text: "llo".into()
            },
            StreamEvent::BlockEnded {
                index: 0,
                block: Block::text("Héllo")
            },
            StreamEvent::Usage { usage },
            StreamEvent::Stopped {
                reason: StopReason::EndTurn,
                detail: None
            },
        ]
    );
}

fn rich_answer() -> Answer {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [
        {"type": "summary_text", "text": "Plan it."}, {"type": "summary_text", "text": "Do it."}], "encrypted_content": "gAAAA"});
    Answer {
        model: "gpt-5.5-2026-04-23".into(),
        blocks: vec![
            thinking("Plan it.\n\nDo it.", Some(item)),
            Block::Text {
                text: "Let me look.".into(),
                private: Some(json!({"phase": "commentary"})),
            },
            tool_use(
                "call_1",
                "Bash",
                json!({"command": "ls"}),
                Some(json!({"id": "fc_1"})),
            ),
            tool_use(
                "call_2",
                "Read",
                json!({"path": "é.rs"}),
                Some(json!({"id": "fc_2"})),
            ),
        ],
        usage: Some(Usage {
            input: 40,
            cache_read: 60,
            output: 20,
            reasoning: 8,
            ..Usage::default()
        }),
        stop: (StopReason::ToolUse, None),
    }
}

#[test]
fn reasoning_text_and_two_calls() {
    assert_eq!(read_answer(TOOLS), rich_answer());
}

#[test]
fn a_whole_response_reads_like_a_streamed_one() {
    let last = TOOLS.trim_end().rsplit("data: ").next().unwrap();
    let event: Value = serde_json::from_str(last).unwrap();
    let whole = decode_whole(ResponsesDecoder::default(), &event["response"]).unwrap();
    assert_eq!(answer(whole), rich_answer());
    // The same from a stream that has no other events.
    assert_eq!(read_answer(&sse(&[event])), rich_answer());
}

#[test]
fn the_last_word_on_an_item_wins() {
    let stream = sse(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "id": "fc", "call_id": "c", "name": "A", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"x\":"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "function_call", "id": "fc", "call_id": "c", "name": "A", "arguments": "{\"x\":1}"}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Hé"}),
        json!({"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "Héll"}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "content": [{"type": "output_text", "text": "Héllo"}]}}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "content": [{"type": "output_text", "text": "again"}]}}),
        completed(&json!([])),
    ]);
    assert_eq!(
        read_answer(&stream).blocks,
        [
            tool_use("c", "A", json!({"x": 1}), Some(json!({"id": "fc"}))),
            Block::text("Héllo"),
        ]
    );
}

#[test]
fn open_models_show_their_reasoning_itself() {
    let item = json!({"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "hmm"}]});
    let streamed = sse(&[
        json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "h"}),
        json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "mm"}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "again"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        completed(&json!([])),
    ]);
    let silent = sse(&[completed(&json!([item]))]);
    for stream in [streamed, silent] {
        let blocks = read_answer(&stream).blocks;
        assert_eq!(blocks, [thinking("hmm", Some(item.clone()))]);
    }
}

#[test]
fn unknown_events_are_skipped_and_unknown_items_kept() {
    let item = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let stream = sse(&[
        json!({"type": "response.web_search_call.searching", "output_index": 0}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "function_call", "name": " "}}),
        completed(&json!([])),
    ]);
    let found = read_answer(&stream);
    assert_eq!(found.blocks, [Block::Opaque { value: item }]);
    assert_eq!(found.stop.0, StopReason::EndTurn);
}

#[rstest]
#[case(json!({"reason": "max_output_tokens"}), StopReason::MaxTokens)]
#[case(json!({"reason": "content_filter"}), StopReason::ContentFilter)]
#[case(json!({"reason": "new"}), StopReason::Other("new".into()))]
#[case(json!(null), StopReason::Other("incomplete".into()))]
fn incomplete_answers(#[case] details: Value, #[case] reason: StopReason) {
    let response = json!({"status": "incomplete", "incomplete_details": details, "output": []});
    let stream = sse(&[json!({"type": "response.incomplete", "response": response})]);
    assert_eq!(read_answer(&stream).stop, (reason.clone(), None));
    let whole = decode_whole(ResponsesDecoder::default(), &response).unwrap();
    assert_eq!(answer(whole).stop, (reason, None));
}

#[rstest]
#[case::streamed(sse(&[
    json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I can"}),
    json!({"type": "response.refusal.done", "output_index": 0, "content_index": 0, "refusal": "I cannot."}),
    json!({"type": "response.output_item.done", "output_index": 0, "item": refusal_item()}),
    completed(&json!([refusal_item()])),
]))]
#[case::at_the_end(sse(&[completed(&json!([refusal_item()]))]))]
fn a_refusal_is_the_reason_to_stop(#[case] stream: String) {
    let found = read_answer(&stream);
    assert_eq!(found.blocks, []);
    assert_eq!(found.stop, (StopReason::Refusal, Some("I cannot.".into())));
}

#[rstest]
#[case(json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Please try again in 2s"}}}), ErrorKind::RateLimited)]
#[case(json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "x"}}}), ErrorKind::Server)]
#[case(json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "invalid_prompt", "message": "x"}}}), ErrorKind::Filtered)]
#[case(json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "bio_policy", "message": "x"}}}), ErrorKind::Filtered)]
#[case(json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "misalignment_policy_violation", "message": "x"}}}), ErrorKind::Filtered)]
#[case(json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "image_too_large", "message": "x"}}}), ErrorKind::Invalid)]
#[case(json!({"type": "response.failed", "response": {"status": "failed", "error": null}}), ErrorKind::Server)]
#[case(json!({"type": "response.cancelled", "response": {"status": "cancelled"}}), ErrorKind::Server)]
#[case(json!({"type": "error", "code": "context_length_exceeded", "message": "x", "param": null}), ErrorKind::TooLong { limit: None })]
#[case(json!({"type": "error", "error": {"code": "context_length_exceeded", "message": "x"}}), ErrorKind::TooLong { limit: None })]
#[case(json!({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}), ErrorKind::Invalid)]
#[case(json!({"error": {"code": "insufficient_quota", "message": "x"}}), ErrorKind::Billing)]
fn failures_inside_a_stream(#[case] event: Value, #[case] kind: ErrorKind) {
    let start = json!({"type": "response.created", "response": {"model": "m"}});
    let error = read(&sse(&[start, event])).unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    let retryable = matches!(kind, ErrorKind::RateLimited | ErrorKind::Server);
    assert_eq!(error.is_retryable(), retryable);
}

#[test]
fn a_stream_without_its_end_is_malformed() {
    let cut = TOOLS.rsplit_once("event: response.completed").unwrap().0;
    for stream in [cut, "", "data: [DONE]\n\n", "data: {\n\n"] {
        let error = decode(ResponsesDecoder::default(), &[stream.as_bytes()]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed);
    }
}

#[rstest]
#[case(json!({"status": "failed", "error": {"code": "server_error", "message": "x"}}), ErrorKind::Server)]
#[case(json!({"error": {"code": "invalid_api_key", "message": "x"}}), ErrorKind::Auth)]
#[case(json!({"status": "queued", "output": []}), ErrorKind::Malformed)]
#[case(json!({}), ErrorKind::Malformed)]
fn a_whole_document_that_is_no_finished_response(#[case] body: Value, #[case] kind: ErrorKind) {
    let error = decode_whole(ResponsesDecoder::default(), &body).unwrap_err();
    assert_eq!(error.kind, kind);
}

#[test]
fn endless_items_are_refused() {
    let mut decoder = ResponsesDecoder::default();
    let mut assembly = Assembly::new(caliban_model::Origin::new("openai", "m"));
    let empty = json!({"type": "message", "content": []});
    let refused = (0..=4096).any(|at| decoder.end(at, &empty, &mut assembly).is_err());
    assert!(refused);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        let _ = decode(ResponsesDecoder::default(), &[&bytes]);
    }

    #[test]
    fn damaged_streams_are_survived(
        stream in prop::sample::select(vec![TEXT, TOOLS]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = stream.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _ = decode(ResponsesDecoder::default(), &[&bytes]);
    }

    #[test]
    fn items_of_any_shape_are_survived(
        items in prop::collection::vec(prop::sample::select(vec![
            "null", "1", "[]", "{}", "{\"type\":1}", "{\"type\":\"reasoning\",\"summary\":{}}",
            "{\"type\":\"message\",\"content\":[null,1]}", "{\"type\":\"function_call\",\"arguments\":{}}",
        ]), 0..8),
    ) {
        let output: Vec<Value> = items.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
        let stream = sse(&[completed(&json!(output))]);
        prop_assert!(decode(ResponsesDecoder::default(), &[stream.as_bytes()]).is_ok());
    }
}
