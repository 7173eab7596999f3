use caliban_model::{Block, StreamEvent};
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::openai::testing::{
    Answer, Outcome, answer, decode, decode_everywhere, decode_whole, sse, thinking, tool_use,
};

const TEXT: &str = include_str!("testdata/text.sse");
const TOOLS: &str = include_str!("testdata/thinking_and_tools.sse");
const AZURE: &str = include_str!("testdata/azure.sse");
const MISTRAL: &str = include_str!("testdata/mistral.sse");
const OPENROUTER: &str = include_str!("testdata/openrouter.sse");

fn read(server: Server, stream: &str) -> Outcome {
    decode_everywhere(|| ChatDecoder::new(server), stream)
}

fn read_answer(stream: &str) -> Answer {
    answer(read(Server::Compatible, stream).unwrap())
}

/// A stream of deltas, then a finish reason and the end.
fn deltas(deltas: &[Value]) -> String {
    let mut chunks: Vec<Value> = deltas
        .iter()
        .map(|delta| json!({"model": "m", "choices": [{"index": 0, "delta": delta}]}))
        .collect();
    chunks.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    sse(&chunks) + "data: [DONE]\n\n"
}

#[test]
fn text_with_usage_behind_the_finish_reason() {
    let events = read(Server::OpenAi, TEXT).unwrap();
    let expected = Usage {
        input: 176,
        cache_read: 1024,
        output: 80,
        ..Usage::default()
    };
    assert_eq!(
        events,
        [
            StreamEvent::Started {
                model: "gpt-4.1-2025-04-14".into()
            },
            StreamEvent::TextDelta {
                index: 0,
                text: "Let me".into()
            },
            StreamEvent::TextDelta {
                index: 0,
                text: " look: é✓".into()
            },
            StreamEvent::Usage { usage: expected },
            StreamEvent::BlockEnded {
                index: 0,
                block: Block::text("Let me look: é✓")
            },
            StreamEvent::Stopped {
                reason: StopReason::EndTurn,
                detail: None
            },
        ]
    );
}

#[test]
fn thinking_and_two_parallel_calls() {
    assert_eq!(
        read_answer(TOOLS),
        Answer {
            model: "deepseek-v3.2".into(),
            blocks: vec![
                thinking(
                    "I should look.",
                    Some(json!({"field": "reasoning_content"}))
                ),
                Block::text("Looking."),
                tool_use("call_1", "Bash", json!({"command": "ls"}), None),
                tool_use("call_2", "Read", json!({"path": "a.rs"}), None),
            ],
            usage: Some(Usage {
                input: 10,
                output: 9,
                reasoning: 4,
                ..Usage::default()
            }),
            stop: (StopReason::ToolUse, None),
        }
    );
}

#[test]
fn azure_opens_with_an_empty_chunk_and_adds_filter_results() {
    let found = read_answer(AZURE);
    assert_eq!(found.model, "gpt-4.1-2025-04-14");
    assert_eq!(found.blocks, [Block::text("Hi")]);
}

#[test]
fn mistral_sends_lists_of_parts_and_whole_arguments() {
    let found = read_answer(MISTRAL);
    assert_eq!(
        found.blocks,
        [
            thinking("First, look.", None),
            Block::text("Here."),
            tool_use("aB3dE6gH9", "Bash", json!({"command": "ls"}), None),
        ]
    );
    assert_eq!(found.stop.0, StopReason::ToolUse);
    assert_eq!(found.usage.map(|usage| usage.output), Some(5));
}

#[test]
fn openrouter_sends_comments_and_reasoning_twice() {
    let found = read_answer(OPENROUTER);
    let details = json!([
        {"type": "reasoning.text", "text": "Think hard", "format": "anthropic-claude-v1", "index": 0, "signature": "sig"},
    ]);
    assert_eq!(
        found.blocks,
        [
            thinking("Think hard", Some(json!({"reasoning_details": details}))),
            Block::text("Hi"),
        ]
    );
}

#[rstest]
#[case::reasoning_content(json!({"reasoning_content": "t"}), Some(json!({"field": "reasoning_content"})))]
#[case::reasoning(json!({"reasoning": "t"}), None)]
#[case::both(json!({"reasoning_content": "t", "reasoning": "t"}), Some(json!({"field": "reasoning_content"})))]
#[case::inline(json!({"content": "<think>t</think>\n\n"}), None)]
#[case::details(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "t"}]}),
    Some(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "t"}]})))]
#[case::parts(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]}), None)]
fn reasoning_is_found_under_every_name_and_once(
    #[case] delta: Value,
    #[case] private: Option<Value>,
) {
    let found = read_answer(&deltas(&[delta, json!({"content": "x"})]));
    assert_eq!(found.blocks, [thinking("t", private), Block::text("x")]);
}

#[test]
fn encrypted_reasoning_alone_is_kept() {
    let details = json!([{"type": "reasoning.encrypted", "data": "gAAA"}]);
    let stream = deltas(&[
        json!({"content": "x"}),
        json!({"reasoning_details": details}),
    ]);
    assert_eq!(
        read_answer(&stream).blocks,
        [
            Block::text("x"),
            thinking("", Some(json!({"reasoning_details": details}))),
        ]
    );
}

#[test]
fn an_inline_tag_split_over_chunks_is_thinking() {
    let pieces = ["\n<th", "ink>hm", "m</thi", "nk>", "\n\n", "hi"];
    let stream = deltas(&pieces.map(|piece| json!({ "content": piece })));
    let blocks = [thinking("hmm", None), Block::text("hi")];
    assert_eq!(read_answer(&stream).blocks, blocks);
    let literal = answer(read(Server::OpenAi, &stream).unwrap());
    assert_eq!(literal.blocks, [Block::text("\n<think>hmm</think>\n\nhi")]);
}

#[test]
fn calls_with_every_quirk_in_one_stream() {
    let stream = deltas(&[
        json!({"role": "", "content": null, "tool_calls": [{"index": 0, "id": "a", "function": {"name": "A", "arguments": {"x": 1}}}]}),
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "B", "arguments": null}}]}),
        json!({"tool_calls": [{"function": {"arguments": "{\"y\":"}}]}),
        json!({"tool_calls": [{"function": {"arguments": "2}"}}]}),
        json!({"tool_calls": [{"id": " ", "function": {"arguments": "{\"z\""}, "index": 9}]}),
        json!({"tool_calls": [{"index": 9, "function": {"name": "C", "arguments": ":3}"},
            "extra_content": {"google": {"thought_signature": "s"}}}]}),
        json!({"tool_calls": [{"index": 7, "function": {"name": "", "arguments": "{}"}}]}),
    ]);
    let found = read_answer(&stream);
    let signature = json!({"extra_content": {"google": {"thought_signature": "s"}}});
    assert_eq!(
        found.blocks,
        [
            tool_use("a", "A", json!({"x": 1}), None),
            tool_use("new", "B", json!({"y": 2}), None),
            tool_use("new", "C", json!({"z": 3}), Some(signature)),
        ]
    );
    assert_eq!(found.stop.0, StopReason::ToolUse);
}

#[rstest]
#[case("stop", StopReason::EndTurn)]
#[case("eos", StopReason::EndTurn)]
#[case("tool_calls", StopReason::EndTurn)]
#[case("length", StopReason::MaxTokens)]
#[case("model_length", StopReason::MaxTokens)]
#[case("content_filter", StopReason::ContentFilter)]
#[case("abort", StopReason::Other("abort".into()))]
fn finish_reasons(#[case] name: &str, #[case] reason: StopReason) {
    let chunk = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": name}]});
    // With and without the end marker.
    for end in [
        "data: [DONE]\n\n",
        "data:[DONE]   ",
        "",
        "data: [DONE]\n\ndata: [DONE]\n\n",
    ] {
        let found = read_answer(&(sse(std::slice::from_ref(&chunk)) + end));
        assert_eq!(found.stop, (reason.clone(), None), "{end:?}");
    }
}

#[test]
fn a_missing_finish_reason_needs_the_end_marker_and_content() {
    let content = sse(&[json!({"choices": [{"delta": {"content": "x"}}]})]);
    let found = read_answer(&(content.clone() + "data: [DONE]\n\n"));
    assert_eq!(found.stop.0, StopReason::EndTurn);
    for cut in [content.as_str(), "data: [DONE]\n\n", "", ": ping\n\n"] {
        let error = read(Server::Compatible, cut).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed, "{cut:?}");
    }
}

#[test]
fn usage_is_the_last_one_wherever_it_is() {
    let usage = |output: u64| json!({"prompt_tokens": 5, "completion_tokens": output});
    let last = |chunks: &[Value]| {
        let found = read_answer(&(sse(chunks) + "data: [DONE]\n\n"));
        found.usage.map(|usage| usage.output)
    };
    let chunk = |usage: Value| json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": usage});
    assert_eq!(
        last(&[chunk(usage(1)), chunk(usage(2)), chunk(Value::Null)]),
        Some(2)
    );
    assert_eq!(
        last(&[
            chunk(Value::Null),
            json!({"choices": [], "usage": usage(3)})
        ]),
        Some(3)
    );
    assert_eq!(
        last(&[chunk(Value::Null), json!({"usage": usage(4)})]),
        Some(4)
    );
    assert_eq!(last(&[chunk(Value::Null)]), None);
    assert_eq!(
        last(&[chunk(json!({"prompt_tokens": 0, "completion_tokens": 0}))]),
        None
    );
}

#[test]
fn a_refusal_is_the_reason_to_stop() {
    let stream = deltas(&[json!({"refusal": "I can"}), json!({"refusal": "not."})]);
    let found = read_answer(&stream);
    assert_eq!(found.blocks, []);
    assert_eq!(found.stop, (StopReason::Refusal, Some("I cannot.".into())));
}

#[rstest]
#[case(
    "data: {\"error\":{\"message\":\"no\",\"code\":502}}\n\n",
    ErrorKind::Server,
    "no"
)]
#[case("data: {\"error\":\"no\"}\n\n", ErrorKind::Server, "no")]
#[case("data: {\"detail\":\"no\"}\n\n", ErrorKind::Server, "no")]
#[case(
    "data: {\"object\":\"error\",\"message\":\"no\",\"code\":400}\n\n",
    ErrorKind::Invalid,
    "no"
)]
#[case(
    "event: error\ndata: {\"error\":{},\"message\":\"no\"}\n\n",
    ErrorKind::Server,
    "no"
)]
#[case(
    "event: error\ndata: out of memory\n\n",
    ErrorKind::Server,
    "out of memory"
)]
#[case("event: error\ndata: {\"error\":\"input length exceeds the context length\"}\n\n", ErrorKind::TooLong { limit: None }, "input length exceeds the context length")]
#[case(
    "data: {\"error\":{\"code\":429,\"message\":\"no\"},\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
    ErrorKind::RateLimited,
    "no"
)]
#[case(
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n",
    ErrorKind::Server,
    "the server ended the answer with an error"
)]
#[case(
    "event: error\ndata: {}\n\n",
    ErrorKind::Server,
    "the server gave no reason"
)]
fn errors_inside_a_stream(#[case] end: &str, #[case] kind: ErrorKind, #[case] message: &str) {
    for start in [
        "",
        "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n",
    ] {
        let error = read(Server::Compatible, &format!("{start}{end}")).unwrap_err();
        assert_eq!((&error.kind, error.message.as_str()), (&kind, message));
    }
}

#[test]
fn a_chunk_that_is_no_json_is_malformed() {
    let error = read(Server::Compatible, "data: {\"choices\":\n\n").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Malformed);
}

#[test]
fn a_whole_completion() {
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4.1-2025-04-14",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
            "content": "<think>hm</think>Hi", "refusal": null,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let found = answer(decode_whole(ChatDecoder::new(Server::Compatible), &body).unwrap());
    assert_eq!(
        found.blocks,
        [
            thinking("hm", None),
            Block::text("Hi"),
            tool_use("call_1", "Bash", json!({}), None),
        ]
    );
    assert_eq!(found.stop.0, StopReason::ToolUse);
    assert_eq!(found.usage.map(|usage| usage.input), Some(3));
}

#[rstest]
#[case(json!({"error": {"message": "no", "code": 400}}), ErrorKind::Invalid)]
#[case(json!({"message": "no"}), ErrorKind::Server)]
#[case(json!({"choices": []}), ErrorKind::Malformed)]
#[case(json!({}), ErrorKind::Malformed)]
#[case(json!([]), ErrorKind::Malformed)]
fn a_whole_document_that_is_no_completion(#[case] body: Value, #[case] kind: ErrorKind) {
    let error = decode_whole(ChatDecoder::new(Server::Compatible), &body).unwrap_err();
    assert_eq!(error.kind, kind);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        let _ = decode(ChatDecoder::new(Server::Compatible), &[&bytes]);
    }

    #[test]
    fn damaged_streams_are_survived(
        stream in prop::sample::select(vec![TEXT, TOOLS, AZURE, MISTRAL, OPENROUTER]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = stream.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _ = decode(ChatDecoder::new(Server::Compatible), &[&bytes]);
    }

    #[test]
    fn chunks_of_any_shape_are_survived(
        fields in prop::collection::vec((
            prop::sample::select(vec!["content", "reasoning", "reasoning_content", "reasoning_details", "tool_calls", "refusal", "role"]),
            prop::sample::select(vec!["null", "1", "\"x\"", "[]", "{}", "[1]", "[{}]", "[{\"function\":{\"name\":1}}]", "[{\"function\":\"x\",\"index\":-1}]", "{\"a\":[null]}"]),
        ), 0..12),
    ) {
        let chunks: Vec<Value> = fields
            .iter()
            .map(|(name, value)| {
                let value: Value = serde_json::from_str(value).unwrap();
                json!({"choices": [{"delta": {*name: value}}]})
            })
            .collect();
        let ended = sse(&chunks) + "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
        prop_assert!(decode(ChatDecoder::new(Server::Compatible), &[ended.as_bytes()]).is_ok());
    }
}
