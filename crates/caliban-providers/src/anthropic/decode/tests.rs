use super::*;
use crate::testing::{assert_same_however_cut, blocks, decoded};
use crate::transport::Framing;
use caliban_model::{Origin, StreamEvent};
use proptest::prelude::*;

const TEXT: &str = include_str!("../testdata/text.sse");
const TOOLS: &str = include_str!("../testdata/tools.sse");
const SERVER_TOOL: &str = include_str!("../testdata/server_tool.sse");

fn origin() -> Origin {
    Origin::new("anthropic", "claude-sonnet-4-6")
}

fn read(chunks: &[&[u8]]) -> (Vec<StreamEvent>, Option<Error>) {
    decoded(Framing::ServerSentEvents, &mut Messages::default(), chunks)
}

fn events(stream: &str) -> Vec<StreamEvent> {
    let (events, error) = read(&[stream.as_bytes()]);
    assert_eq!(error, None);
    events
}

fn failure(stream: &str) -> Error {
    read(&[stream.as_bytes()]).1.unwrap()
}

fn stream(documents: &[Value]) -> String {
    let events: Vec<String> = documents
        .iter()
        .map(|document| format!("data: {document}\n\n"))
        .collect();
    events.concat()
}

/// A stream with these events between its start and its end.
fn answer(documents: &[Value], ending: &Value) -> String {
    let start =
        json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}});
    let end = [
        json!({"type": "message_delta", "delta": ending}),
        json!({"type": "message_stop"}),
    ];
    stream(&[&[start], documents, &end].concat())
}

fn usages(events: &[StreamEvent]) -> Vec<caliban_model::Usage> {
    events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Usage { usage } => Some(*usage),
            _ => None,
        })
        .collect()
}

#[test]
fn text_is_told_as_it_comes() {
    let start = caliban_model::Usage {
        input: 25,
        cache_read: 4096,
        cache_write_5m: 300,
        cache_write_1h: 400,
        output: 1,
        ..Default::default()
    };
    let delta = |text: &str| StreamEvent::TextDelta {
        index: 0,
        text: text.into(),
    };
    assert_eq!(
        events(TEXT),
        [
            StreamEvent::Started {
                model: "claude-sonnet-4-6".into()
            },
            StreamEvent::Usage { usage: start },
            delta("Grüße, "),
            delta("世界 ✓"),
            StreamEvent::BlockEnded {
                index: 0,
                block: Block::text("Grüße, 世界 ✓")
            },
            StreamEvent::Usage {
                usage: caliban_model::Usage {
                    output: 12,
                    ..start
                }
            },
            StreamEvent::Stopped {
                reason: StopReason::EndTurn,
                detail: None
            },
        ]
    );
}

#[test]
fn thinking_and_parallel_calls_become_blocks() {
    let events = events(TOOLS);
    assert_eq!(
        blocks(&events),
        [
            Block::Thinking {
                text: "Need two calls".into(),
                signature: Some("EqQB+/==".into()),
                private: None,
            },
            Block::RedactedThinking {
                data: "c2VjcmV0".into()
            },
            Block::ToolUse {
                id: "toolu_01".into(),
                name: "Bash".into(),
                input: json!({"command": "ls"}),
                private: Some(json!({"caller": {"type": "direct"}})),
            },
            Block::ToolUse {
                id: "toolu_02".into(),
                name: "Status".into(),
                input: json!({}),
                private: None,
            },
        ]
    );
    assert_eq!(
        usages(&events).last(),
        Some(&caliban_model::Usage {
            input: 26,
            cache_read: 4096,
            cache_write_5m: 50,
            output: 89,
            reasoning: 31,
            ..Default::default()
        })
    );
    assert_eq!(
        events.last(),
        Some(&StreamEvent::Stopped {
            reason: StopReason::ToolUse,
            detail: None
        })
    );
}

#[test]
fn blocks_of_server_tools_are_kept_for_replay_and_unknown_events_passed_over() {
    let events = events(SERVER_TOOL);
    assert_eq!(
        blocks(&events),
        [
            Block::Opaque {
                value: json!({
                    "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
                    "input": {"query": "rust"},
                })
            },
            Block::Opaque {
                value: json!({
                    "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
                    "content": [{
                        "type": "web_search_result", "url": "https://example.org",
                        "encrypted_content": "eA==",
                    }],
                })
            },
            Block::Text {
                text: "As found".into(),
                private: Some(json!({"citations": [{"url": "https://example.org"}]})),
            },
        ]
    );
    assert_eq!(usages(&events).last().map(|usage| usage.output), Some(21));
    assert_eq!(
        events.last(),
        Some(&StreamEvent::Stopped {
            reason: StopReason::Pause,
            detail: None
        })
    );
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for stream in [TEXT, TOOLS, SERVER_TOOL] {
        assert_same_however_cut(stream.as_bytes(), read);
        assert_same_however_cut(stream.replace('\n', "\r\n").as_bytes(), read);
    }
}

#[test]
fn stop_reasons_are_told_apart() {
    for (name, reason) in [
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("model_context_window_exceeded", StopReason::ContextExceeded),
        ("compaction", StopReason::Other("compaction".into())),
    ] {
        let events = events(&answer(&[], &json!({"stop_reason": name})));
        let stopped = StreamEvent::Stopped {
            reason,
            detail: None,
        };
        assert_eq!(events.last(), Some(&stopped));
    }
}

#[test]
fn a_refusal_says_why() {
    let detail = |details: Value| {
        let ending = json!({"stop_reason": "refusal", "stop_details": details});
        match events(&answer(&[], &ending)).pop() {
            Some(StreamEvent::Stopped {
                reason: StopReason::Refusal,
                detail,
            }) => detail,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        detail(json!({"type": "refusal", "category": "cyber", "explanation": "Not that."})),
        Some("Not that. (cyber)".into())
    );
    assert_eq!(
        detail(json!({"type": "refusal", "category": null, "explanation": "No."})),
        Some("No.".into())
    );
    assert_eq!(detail(Value::Null), None);
}

#[test]
fn silent_thinking_keeps_its_signature() {
    let events = events(&answer(
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}}),
            json!({"type": "content_block_stop", "index": 0}),
        ],
        &json!({"stop_reason": "end_turn"}),
    ));
    assert_eq!(
        blocks(&events),
        [Block::Thinking {
            text: String::new(),
            signature: Some("s".into()),
            private: None
        }]
    );
}

#[test]
fn input_cut_off_by_the_limit_is_kept_as_text() {
    let events = events(&answer(
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "Write", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"path\": \"a"}}),
        ],
        &json!({"stop_reason": "max_tokens"}),
    ));
    assert!(
        matches!(&blocks(&events)[..], [Block::ToolUse { input, .. }] if *input == json!("{\"path\": \"a"))
    );
}

#[test]
fn a_server_that_counts_nothing_reports_nothing() {
    let silent = stream(&[
        json!({"type": "message_start", "message": {"model": "m", "usage": {}}}),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(usages(&events(&silent)), []);
}

#[test]
fn an_error_in_the_stream_is_classified() {
    let overloaded = failure(&format!(
        "{}{}",
        TEXT.split("event: message_delta").next().unwrap(),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"req_7\"}\n\n",
    ));
    assert_eq!(overloaded.kind, ErrorKind::Overloaded);
    assert_eq!(overloaded.message, "Overloaded");
    assert_eq!(overloaded.request_id.as_deref(), Some("req_7"));
    assert_eq!(
        failure("data: {\"error\":{\"message\":\"model x not found\"}}\n\n").kind,
        ErrorKind::Unavailable
    );
}

#[test]
fn what_is_not_an_answer_is_malformed() {
    let unfinished = TEXT.split("event: message_stop").next().unwrap();
    for stream in [
        unfinished,
        "",
        "data: nonsense\n\n",
        "data: {}\n\n",
        "data: {\"type\":\"content_block_start\",\"content_block\":[]}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n",
    ] {
        assert_eq!(failure(stream).kind, ErrorKind::Malformed, "{stream}");
    }
}

#[test]
fn endless_openings_are_refused() {
    let many: Vec<Value> = (0..=MAX_OPEN)
        .map(|index| json!({"type": "content_block_start", "index": index, "content_block": {"type": "x"}}))
        .collect();
    assert!(failure(&stream(&many)).message.contains("open at once"));

    let large = "x".repeat(8 * 1024 * 1024);
    let event =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": large}});
    let frame = Frame {
        event: String::new(),
        data: event.to_string(),
    };
    let mut decoder = Messages::default();
    let mut assembly = Assembly::new(origin());
    let refused = (0..=MAX_KEPT / large.len()).any(|_| {
        let result = decoder.frame(&frame, &mut assembly);
        assembly.take_events();
        result.is_err()
    });
    assert!(refused);
}

fn whole(body: &Value) -> Result<Vec<StreamEvent>, Error> {
    let mut assembly = Assembly::new(origin());
    Messages::default().whole(body, &mut assembly)?;
    Ok(assembly.take_events())
}

#[test]
fn a_document_is_read_like_a_stream() {
    let events = whole(&json!({
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "ls"}},
            {"type": "novelty", "x": 1},
        ],
        "stop_reason": "tool_use", "stop_sequence": null, "stop_details": null,
        "usage": {
            "input_tokens": 12, "cache_read_input_tokens": 9000,
            "cache_creation_input_tokens": 300,
            "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 57, "output_tokens_details": {"thinking_tokens": 20},
            "service_tier": "standard",
        },
    }))
    .unwrap();
    assert_eq!(
        blocks(&events),
        [
            Block::Thinking {
                text: "hm".into(),
                signature: Some("sig".into()),
                private: None
            },
            Block::RedactedThinking { data: "d".into() },
            Block::text("Hi"),
            Block::ToolUse {
                id: "toolu_01".into(),
                name: "Bash".into(),
                input: json!({"command": "ls"}),
                private: None
            },
            Block::Opaque {
                value: json!({"type": "novelty", "x": 1})
            },
        ]
    );
    assert_eq!(
        usages(&events),
        [caliban_model::Usage {
            input: 12,
            cache_read: 9000,
            cache_write_5m: 300,
            output: 57,
            reasoning: 20,
            ..Default::default()
        }]
    );
    assert!(matches!(
        events.last(),
        Some(StreamEvent::Stopped {
            reason: StopReason::ToolUse,
            ..
        })
    ));
}

#[test]
fn a_document_that_is_no_answer_is_an_error() {
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(whole(&overloaded).unwrap_err().kind, ErrorKind::Overloaded);
    for body in [
        json!([1]),
        json!({}),
        json!({"ok": true}),
        json!({"content": "x"}),
    ] {
        assert_eq!(
            whole(&body).unwrap_err().kind,
            ErrorKind::Malformed,
            "{body}"
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        let (events, _) = read(&[&bytes]);
        prop_assert!(events.len() <= bytes.len());
    }

    /// Each event of the wire makes at most a few of ours, whatever is changed in it.
    #[test]
    fn damaged_streams_are_survived(
        which in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        dropped in any::<prop::sample::Index>(),
        copied in any::<prop::sample::Index>(),
    ) {
        let mut lines: Vec<&str> = [TEXT, TOOLS, SERVER_TOOL][which].lines().collect();
        let copy = lines[copied.index(lines.len())];
        lines.push(copy);
        lines.remove(dropped.index(lines.len()));
        let mut bytes = lines.join("\n").into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (events, error) = read(&[&bytes]);
        prop_assert!(events.len() <= 4 * lines.len());
        let stops = events.iter().filter(|event| matches!(event, StreamEvent::Stopped { .. })).count();
        prop_assert_eq!(stops, usize::from(error.is_none()));
    }
}
