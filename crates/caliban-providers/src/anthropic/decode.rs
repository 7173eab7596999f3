//! Reads the answers of the Messages API, streamed or whole.

use std::collections::BTreeMap;

use caliban_model::{Block, Error, ErrorKind, StopReason};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error_body;
use super::messages::input_object;
use super::wire::{Delta, Ending, Event, Message, Usage};
use crate::adapter::Decoder;
use crate::assembly::{Assembly, BlockId, parse_input};
use crate::failure::kind_of;
use crate::framing::Frame;

/// The most blocks that may be open at once; today the API opens one at a time.
const MAX_OPEN: usize = 256;
/// The most that is kept beside the text: opaque blocks, their input and citations, in bytes of
/// the events that brought them.
const MAX_KEPT: usize = 32 * 1024 * 1024;

/// The state of one answer.
#[derive(Debug, Default)]
pub(super) struct Messages {
    started: Started,
    open: BTreeMap<u64, Open>,
    usage: Usage,
    ending: Ending,
    kept: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Started {
    #[default]
    No,
    Yes,
}

/// A block of which more may come.
#[derive(Debug)]
enum Open {
    Text {
        id: BlockId,
        citations: Vec<Value>,
    },
    Thinking {
        id: BlockId,
    },
    Tool {
        id: BlockId,
        /// The input as the block was opened with it; counts only if no other comes.
        input: Option<Value>,
    },
    Opaque {
        value: Value,
        input: String,
    },
}

impl Decoder for Messages {
    fn frame(&mut self, frame: &Frame, assembly: &mut Assembly) -> Result<(), Error> {
        let event = match serde_json::from_str(&frame.data) {
            Ok(event) => event,
            Err(error) => return Err(unreadable(&frame.data, &error, assembly)),
        };
        let size = frame.data.len();
        match event {
            Event::MessageStart { message } => {
                self.start(message.model, assembly);
                self.report(message.usage, assembly);
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                self.keep(size, assembly)?;
                self.start(None, assembly);
                if let Some(unfinished) = self.open.remove(&index) {
                    close(unfinished, assembly)?;
                }
                if self.open.len() >= MAX_OPEN {
                    return Err(assembly.error(
                        ErrorKind::Malformed,
                        format!("more than {MAX_OPEN} blocks are open at once"),
                    ));
                }
                let block = open(content_block, assembly)?;
                self.open.insert(index, block);
            }
            Event::ContentBlockDelta { index, delta } => {
                self.delta(index, delta, size, assembly)?;
            }
            Event::ContentBlockStop { index } => {
                if let Some(block) = self.open.remove(&index) {
                    close(block, assembly)?;
                }
            }
            Event::MessageDelta { delta, usage } => {
                self.start(None, assembly);
                self.report(usage, assembly);
                if delta.stop_reason.is_some() {
                    self.ending = delta;
                }
            }
            Event::MessageStop => {
                self.start(None, assembly);
                for block in std::mem::take(&mut self.open).into_values() {
                    close(block, assembly)?;
                }
                stop(std::mem::take(&mut self.ending), assembly);
            }
            Event::Error(document) => return Err(stream_error(&document, assembly)),
            Event::Unknown => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        if error_body(body).is_some() {
            return Err(stream_error(body, assembly));
        }
        let message = Message::deserialize(body).map_err(|error| {
            assembly.error(
                ErrorKind::Malformed,
                format!("the answer cannot be read: {error}"),
            )
        })?;
        self.start(message.model, assembly);
        for block in message.content {
            let block = open(block, assembly)?;
            close(block, assembly)?;
        }
        self.report(message.usage, assembly);
        stop(message.ending, assembly);
        Ok(())
    }
}

impl Messages {
    fn start(&mut self, model: Option<String>, assembly: &mut Assembly) {
        if std::mem::replace(&mut self.started, Started::Yes) == Started::No {
            let model = model.unwrap_or_else(|| assembly.origin().model.to_string());
            assembly.started(model);
        }
    }

    fn report(&mut self, usage: Option<Usage>, assembly: &mut Assembly) {
        let Some(usage) = usage else { return };
        self.usage.update(usage);
        if let Some(counts) = self.usage.counts() {
            assembly.usage(counts);
        }
    }

    fn keep(&mut self, bytes: usize, assembly: &Assembly) -> Result<(), Error> {
        self.kept += bytes;
        if self.kept > MAX_KEPT {
            return Err(assembly.error(
                ErrorKind::Malformed,
                format!(
                    "the answer holds more than {} MiB beside its text",
                    MAX_KEPT / (1024 * 1024)
                ),
            ));
        }
        Ok(())
    }

    /// A delta of another kind than its block is one we do not know, and is passed over.
    fn delta(
        &mut self,
        index: u64,
        delta: Delta,
        size: usize,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        match (self.open.get_mut(&index), delta) {
            (None, _) => Err(assembly.error(
                ErrorKind::Malformed,
                format!("content came for block {index}, which is not open"),
            )),
            (Some(Open::Text { id, .. }), Delta::Text { text }) => assembly.push(*id, &text),
            (Some(Open::Thinking { id }), Delta::Thinking { thinking }) => {
                assembly.push(*id, &thinking)
            }
            (Some(Open::Thinking { id }), Delta::Signature { signature }) => {
                sign(*id, &signature, assembly)
            }
            (Some(Open::Tool { id, .. }), Delta::Input { partial_json }) => {
                assembly.push(*id, &partial_json)
            }
            (Some(Open::Text { citations, .. }), Delta::Citation { citation }) => {
                citations.push(citation);
                self.keep(size, assembly)
            }
            (Some(Open::Opaque { input, .. }), Delta::Input { partial_json }) => {
                input.push_str(&partial_json);
                self.keep(size, assembly)
            }
            (
                Some(_),
                Delta::Text { .. }
                | Delta::Thinking { .. }
                | Delta::Signature { .. }
                | Delta::Input { .. }
                | Delta::Citation { .. }
                | Delta::Unknown,
            ) => Ok(()),
        }
    }
}

/// Opens a block with what its opening already holds: everything in a whole answer, next to
/// nothing in a stream.
fn open(mut block: Value, assembly: &mut Assembly) -> Result<Open, Error> {
    let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or("");
    match text("type") {
        "text" => {
            let id = assembly.open_text()?;
            assembly.push(id, text("text"))?;
            let citations = match block.get_mut("citations").map(Value::take) {
                Some(Value::Array(citations)) => citations,
                Some(_) | None => Vec::new(),
            };
            Ok(Open::Text { id, citations })
        }
        "thinking" => {
            let id = assembly.open_thinking()?;
            assembly.push(id, text("thinking"))?;
            sign(id, text("signature"), assembly)?;
            Ok(Open::Thinking { id })
        }
        "tool_use" => {
            let id = assembly.open_tool(text("id"), text("name"))?;
            if let Some(private) = private_fields(&block) {
                assembly.set_private(id, private);
            }
            let input = block.get_mut("input").map(Value::take);
            Ok(Open::Tool { id, input })
        }
        "" => Err(assembly.error(ErrorKind::Malformed, "a content block has no type")),
        _ => Ok(Open::Opaque {
            value: block,
            input: String::new(),
        }),
    }
}

/// An empty signature is a placeholder.
fn sign(id: BlockId, signature: &str, assembly: &mut Assembly) -> Result<(), Error> {
    if signature.is_empty() {
        return Ok(());
    }
    assembly.set_signature(id, signature)
}

/// The fields of a tool call that only this API knows.
fn private_fields(block: &Value) -> Option<Value> {
    let fields: Map<String, Value> = ["caller", "toolset_name"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), block.get(name)?.clone())))
        .filter(|(_, value)| !value.is_null())
        .collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn close(block: Open, assembly: &mut Assembly) -> Result<(), Error> {
    match block {
        Open::Text { id, citations } => {
            if !citations.is_empty() {
                assembly.set_private(id, json!({"citations": citations}));
            }
            assembly.end(id);
        }
        Open::Thinking { id } => assembly.end(id),
        Open::Tool { id, input } => {
            if let Some(Value::Object(fields)) = input
                && !fields.is_empty()
                && assembly.tool_input(id).is_empty()
            {
                assembly.push(id, &Value::Object(fields).to_string())?;
            }
            assembly.end(id);
        }
        Open::Opaque { mut value, input } => {
            if value["type"] == "redacted_thinking"
                && let Some(Value::String(data)) = value.get_mut("data").map(Value::take)
            {
                return assembly.whole(Block::RedactedThinking { data });
            }
            if let Some(slot) = value.get_mut("input")
                && !input.is_empty()
            {
                *slot = input_object(&parse_input(&input));
            }
            assembly.whole(Block::Opaque { value })?;
        }
    }
    Ok(())
}

fn stop(ending: Ending, assembly: &mut Assembly) {
    let reason = match ending.stop_reason.as_deref() {
        Some("end_turn") | None => StopReason::EndTurn,
        Some("tool_use") => StopReason::ToolUse,
        Some("max_tokens") => StopReason::MaxTokens,
        Some("stop_sequence") => StopReason::StopSequence,
        Some("refusal") => StopReason::Refusal,
        Some("model_context_window_exceeded") => StopReason::ContextExceeded,
        Some("pause_turn") => StopReason::Pause,
        Some(other) => StopReason::Other(other.to_owned()),
    };
    let detail =
        ending
            .stop_details
            .and_then(|details| match (details.explanation, details.category) {
                (Some(explanation), Some(category)) => Some(format!("{explanation} ({category})")),
                (Some(one), None) | (None, Some(one)) => Some(one),
                (None, None) => None,
            });
    assembly.stop(reason, detail);
}

/// An error that came after the status had already said success.
fn stream_error(document: &Value, assembly: &Assembly) -> Error {
    let Some(body) = error_body(document) else {
        return assembly.error(ErrorKind::Server, "the server reported an error");
    };
    let kind = kind_of(None, &body.codes, &body.message);
    let mut error = assembly.error(kind, body.message);
    error.request_id = document
        .get("request_id")
        .and_then(Value::as_str)
        .map(str::to_owned);
    error
}

/// Compatible servers put errors of other forms into the stream.
fn unreadable(data: &str, cause: &serde_json::Error, assembly: &Assembly) -> Error {
    match serde_json::from_str::<Value>(data) {
        Ok(document) if error_body(&document).is_some() => stream_error(&document, assembly),
        Ok(_) | Err(_) => assembly.error(
            ErrorKind::Malformed,
            format!("an event cannot be read: {cause}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_same_however_cut, blocks, decoded};
    use crate::transport::Framing;
    use caliban_model::{Origin, StreamEvent};
    use proptest::prelude::*;

    const TEXT: &str = include_str!("testdata/text.sse");
    const TOOLS: &str = include_str!("testdata/tools.sse");
    const SERVER_TOOL: &str = include_str!("testdata/server_tool.sse");

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
        let start = json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}});
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
        let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        assert_eq!(whole(&overloaded).unwrap_err().kind, ErrorKind::Overloaded);
        assert_eq!(whole(&json!([1])).unwrap_err().kind, ErrorKind::Malformed);
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
}
