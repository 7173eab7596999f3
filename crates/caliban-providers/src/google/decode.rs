//! Gemini's answers into blocks.

use caliban_model::{Block, Error, ErrorKind, StopReason};
use serde::Deserialize;
use serde_json::Value;

use super::wire::{Candidate, Chunk, FunctionCall, Part};
use super::{contents, error};
use crate::adapter::Decoder;
use crate::assembly::{Assembly, BlockId};
use crate::framing::Frame;

/// The most an answer may carry that is not text: signatures, ids, parts of unknown kinds.
const MAX_CARRIED: usize = 32 * 1024 * 1024;

/// Reads the chunks of one answer. Chunks may follow the one that says why the model finished,
/// so the answer stops with its body.
#[derive(Debug, Default)]
pub(super) struct GeminiDecoder {
    progress: Progress,
    /// The block that further unsigned text of its kind belongs to.
    open: Option<(Prose, BlockId)>,
    carried: usize,
    ending: Option<Ending>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Progress {
    #[default]
    Waiting,
    /// The server answers, with nothing but thoughts so far.
    Started,
    /// There is text or a call.
    Answered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prose {
    Text,
    Thinking,
}

/// Why the model finished, as the provider puts it.
#[derive(Debug)]
struct Ending {
    reason: String,
    message: Option<String>,
}

impl Decoder for GeminiDecoder {
    fn frame(&mut self, frame: &Frame, assembly: &mut Assembly) -> Result<(), Error> {
        let body = serde_json::from_str(&frame.data).map_err(|error| unread(assembly, &error))?;
        self.chunks(&body, assembly)
    }

    fn is_complete(&self) -> bool {
        self.ending.is_some()
    }

    fn finish(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        let Some(Ending { reason, message }) = self.ending.take() else {
            return Err(assembly.error(
                ErrorKind::Malformed,
                "the stream ended without a finish reason",
            ));
        };
        let answered = self.progress == Progress::Answered;
        let (stop, detail) = match reason.as_str() {
            "STOP" if !answered => {
                return Err(assembly.error(ErrorKind::Malformed, "the model answered nothing"));
            }
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "MALFORMED_RESPONSE"
            | "TOO_MANY_TOOL_CALLS" => {
                let why = message.map_or_else(String::new, |message| format!(": {message}"));
                return Err(assembly.error(
                    ErrorKind::Malformed,
                    format!("the model's answer was unusable ({reason}){why}"),
                ));
            }
            "STOP" => (StopReason::EndTurn, message),
            "MAX_TOKENS" | "CONTINUATION" if !answered => {
                let detail = "thinking used up the output limit; raise `--max-tokens`".to_owned();
                (StopReason::MaxTokens, Some(detail))
            }
            "MAX_TOKENS" | "CONTINUATION" => (StopReason::MaxTokens, message),
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                (StopReason::ContentFilter, message.or(Some(reason)))
            }
            image if image.starts_with("IMAGE_") => {
                (StopReason::ContentFilter, message.or(Some(reason)))
            }
            _ => (StopReason::Other(reason), message),
        };
        assembly.stop(stop, detail);
        Ok(())
    }

    fn whole(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        self.chunks(body, assembly)?;
        self.finish(assembly)
    }
}

impl GeminiDecoder {
    /// One chunk, or several in an array, which is how some endpoints wrap even a lone error.
    fn chunks(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        let chunks = match body {
            Value::Array(chunks) => chunks.as_slice(),
            other => std::slice::from_ref(other),
        };
        for chunk in chunks {
            let chunk = Chunk::deserialize(chunk).map_err(|error| unread(assembly, &error))?;
            self.chunk(chunk, assembly)?;
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: Chunk, assembly: &mut Assembly) -> Result<(), Error> {
        if let Some(error) = &chunk.error {
            return Err(error::in_stream(assembly.origin(), error));
        }
        if let Some(feedback) = chunk.prompt_feedback
            && let Some(reason) = feedback.block_reason
        {
            let why = feedback
                .block_reason_message
                .map_or_else(String::new, |message| format!(": {message}"));
            return Err(assembly.error(
                ErrorKind::Filtered,
                format!("the prompt was blocked ({reason}){why}"),
            ));
        }
        if self.progress == Progress::Waiting {
            let model = chunk
                .model_version
                .unwrap_or_else(|| assembly.origin().model.to_string());
            assembly.started(model);
            self.progress = Progress::Started;
        }
        // One answer was asked for; others would be alternatives to it.
        if let Some(candidate) = chunk.candidates.into_iter().flatten().next() {
            self.candidate(candidate, assembly)?;
        }
        if let Some(metadata) = chunk.usage_metadata {
            assembly.usage(metadata.usage());
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: Candidate, assembly: &mut Assembly) -> Result<(), Error> {
        let parts = candidate.content.and_then(|content| content.parts);
        for value in parts.into_iter().flatten() {
            let part = Part::deserialize(&value).map_err(|error| unread(assembly, &error))?;
            self.part(part, value, assembly)?;
        }
        if let Some(reason) = candidate.finish_reason {
            self.ending = Some(Ending {
                reason,
                message: candidate.finish_message,
            });
        }
        Ok(())
    }

    fn part(&mut self, part: Part, value: Value, assembly: &mut Assembly) -> Result<(), Error> {
        let signature = part.thought_signature.filter(|text| !text.is_empty());
        let prose = match part.thought {
            Some(true) => Prose::Thinking,
            Some(false) | None => Prose::Text,
        };
        match (part.function_call, part.text) {
            (Some(call), _) => self.call(&call, signature, assembly),
            (None, Some(text)) => self.prose(prose, &text, signature, assembly),
            (None, None) if is_bare(&value) => self.prose(prose, "", signature, assembly),
            (None, None) => self.opaque(value, assembly),
        }
    }

    /// Unsigned text continues the block before it. A signed part stays a block of its own,
    /// because its signature is valid for exactly that part.
    fn prose(
        &mut self,
        prose: Prose,
        text: &str,
        signature: Option<String>,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        if prose == Prose::Text && !text.is_empty() {
            self.progress = Progress::Answered;
        }
        let block = match self.open {
            Some((open, block)) if open == prose && signature.is_none() => block,
            Some(_) | None => {
                self.close(assembly);
                match prose {
                    Prose::Text => assembly.open_text()?,
                    Prose::Thinking => assembly.open_thinking()?,
                }
            }
        };
        assembly.push(block, text)?;
        match signature {
            Some(signature) => {
                self.carry(signature.len(), assembly)?;
                if let Some(private) = contents::private(None, Some(signature)) {
                    assembly.set_private(block, private);
                }
                assembly.end(block);
            }
            None => self.open = Some((prose, block)),
        }
        Ok(())
    }

    /// Calls come whole.
    fn call(
        &mut self,
        call: &FunctionCall,
        signature: Option<String>,
        assembly: &mut Assembly,
    ) -> Result<(), Error> {
        if call.name.is_empty() {
            return Err(assembly.error(ErrorKind::Malformed, "a function call has no name"));
        }
        self.close(assembly);
        self.progress = Progress::Answered;
        let id = call.id.as_deref().filter(|id| !id.is_empty());
        self.carry(
            id.map_or(0, str::len) + signature.as_ref().map_or(0, String::len),
            assembly,
        )?;
        let block = assembly.open_tool(id.unwrap_or_default(), &call.name)?;
        if let Some(args) = call.args.as_ref().filter(|args| !args.is_null()) {
            assembly.push(block, &args.to_string())?;
        }
        if let Some(private) = contents::private(id, signature) {
            assembly.set_private(block, private);
        }
        assembly.end(block);
        Ok(())
    }

    fn opaque(&mut self, value: Value, assembly: &mut Assembly) -> Result<(), Error> {
        self.close(assembly);
        self.carry(value.to_string().len(), assembly)?;
        self.progress = Progress::Answered;
        assembly.whole(Block::Opaque { value })
    }

    fn close(&mut self, assembly: &mut Assembly) {
        if let Some((_, block)) = self.open.take() {
            assembly.end(block);
        }
    }

    fn carry(&mut self, bytes: usize, assembly: &Assembly) -> Result<(), Error> {
        self.carried += bytes;
        if self.carried > MAX_CARRIED {
            return Err(assembly.error(
                ErrorKind::Malformed,
                format!(
                    "the answer carries more than {} MiB of private data",
                    MAX_CARRIED / (1024 * 1024)
                ),
            ));
        }
        Ok(())
    }
}

/// Whether a part says nothing beyond its signature.
fn is_bare(part: &Value) -> bool {
    part.as_object().is_some_and(|fields| {
        fields
            .keys()
            .all(|name| matches!(name.as_str(), "thought" | "thoughtSignature"))
    })
}

fn unread(assembly: &Assembly, error: &serde_json::Error) -> Error {
    assembly.error(
        ErrorKind::Malformed,
        format!("a piece of the answer cannot be read: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{blocks, decode, decode_every_way};
    use crate::transport::Framing;
    use caliban_model::{StreamEvent, Usage};
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    fn decoder() -> Box<dyn Decoder> {
        Box::new(GeminiDecoder::default())
    }

    /// A stream of these chunks, as Google frames it.
    fn stream(chunks: &[&str]) -> String {
        let frames: Vec<String> = chunks
            .iter()
            .map(|chunk| format!("data: {chunk}\r\n\r\n"))
            .collect();
        frames.concat()
    }

    fn read(chunks: &[&str]) -> Result<Vec<StreamEvent>, Error> {
        decode_every_way(
            Framing::ServerSentEvents,
            decoder,
            stream(chunks).as_bytes(),
        )
    }

    fn last(events: &[StreamEvent]) -> (StopReason, Option<String>) {
        match events.last() {
            Some(StreamEvent::Stopped { reason, detail }) => (reason.clone(), detail.clone()),
            other => panic!("the stream ended with {other:?}"),
        }
    }

    const FINISHED: &str =
        r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}"#;

    const THINKING_AND_CALLS: [&str; 4] = [
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Plan","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":900,"thoughtsTokenCount":12,"totalTokenCount":912},"modelVersion":"gemini-3.8-flash","responseId":"r1"}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":" é✓","thought":true},{"text":"I look."}]},"index":0}]}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"a1","name":"Bash","args":{"command":"ls"}},"thoughtSignature":"CsE="},{"functionCall":{"name":"Read"}}]},"index":0}]}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":900,"cachedContentTokenCount":512,"toolUsePromptTokenCount":10,"candidatesTokenCount":20,"thoughtsTokenCount":12,"totalTokenCount":942}}"#,
    ];

    #[test]
    fn text_arrives_in_deltas() {
        let events = read(&[
            r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}],"modelVersion":"gemini-3.8-flash"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}"#,
        ])
        .unwrap();
        let delta = |text: &str| StreamEvent::TextDelta {
            index: 0,
            text: text.into(),
        };
        assert_eq!(
            events,
            vec![
                StreamEvent::Started {
                    model: "gemini-3.8-flash".into()
                },
                delta("Hel"),
                delta("lo"),
                StreamEvent::Usage {
                    usage: Usage {
                        input: 3,
                        output: 2,
                        ..Usage::default()
                    }
                },
                StreamEvent::BlockEnded {
                    index: 0,
                    block: Block::text("Hello")
                },
                StreamEvent::Stopped {
                    reason: StopReason::EndTurn,
                    detail: None
                },
            ]
        );
    }

    #[test]
    fn thoughts_text_and_parallel_calls_become_blocks() {
        let events = read(&THINKING_AND_CALLS).unwrap();
        let blocks = blocks(&events);
        assert_eq!(
            blocks[..3],
            [
                Block::Thinking {
                    text: "Plan é✓".into(),
                    signature: None,
                    private: None
                },
                Block::text("I look."),
                Block::ToolUse {
                    id: "a1".into(),
                    name: "Bash".into(),
                    input: json!({"command": "ls"}),
                    private: Some(json!({"id": "a1", "thoughtSignature": "CsE="})),
                },
            ]
        );
        let Block::ToolUse {
            id,
            name,
            input,
            private: None,
        } = &blocks[3]
        else {
            panic!("{:?}", blocks[3]);
        };
        assert!(id.starts_with("call_"));
        assert_eq!((name.as_str(), input), ("Read", &json!({})));
        assert_eq!(blocks.len(), 4);
        assert_eq!(last(&events).0, StopReason::ToolUse);
        let usage = events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::Usage { usage } => Some(*usage),
                _ => None,
            })
            .next_back();
        assert_eq!(
            usage,
            Some(Usage {
                input: 398,
                cache_read: 512,
                output: 32,
                reasoning: 12,
                ..Usage::default()
            })
        );
        let starts = events
            .iter()
            .filter(|event| matches!(event, StreamEvent::Started { .. }));
        assert_eq!(starts.count(), 1);
    }

    #[test]
    fn a_signed_part_is_never_merged() {
        let events = read(&[
            r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b","thoughtSignature":"s1"},{"text":"c"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"t","thought":true,"thoughtSignature":"s2"},{"text":"","thoughtSignature":"s3"},{"thoughtSignature":"s4"}]},"finishReason":"STOP"}]}"#,
        ])
        .unwrap();
        let signed = |text: &str, signature: &str| Block::Text {
            text: text.into(),
            private: Some(json!({"thoughtSignature": signature})),
        };
        assert_eq!(
            blocks(&events),
            vec![
                Block::text("a"),
                signed("b", "s1"),
                Block::text("c"),
                Block::Thinking {
                    text: "t".into(),
                    signature: None,
                    private: Some(json!({"thoughtSignature": "s2"})),
                },
                signed("", "s3"),
                signed("", "s4"),
            ]
        );
    }

    #[test]
    fn unknown_parts_are_kept_as_they_came() {
        let events = read(&[
            r#"{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"s"}]},"finishReason":"STOP","novel":1}]}"#,
        ])
        .unwrap();
        assert_eq!(
            blocks(&events),
            vec![Block::Opaque {
                value: json!({"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s"})
            }]
        );
    }

    #[test]
    fn chunks_without_content_are_harmless_and_may_follow_the_finish() {
        let events = read(&[
            r#"{"usageMetadata":{"promptTokenCount":1},"candidates":null}"#,
            r#"{"candidates":[{"content":{"role":"model"}}]}"#,
            FINISHED,
            r#"{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":null}}"#,
        ])
        .unwrap();
        assert_eq!(last(&events).0, StopReason::EndTurn);
        assert!(events.contains(&StreamEvent::Usage {
            usage: Usage {
                input: 7,
                ..Usage::default()
            }
        }));
    }

    #[rstest]
    #[case("STOP", StopReason::EndTurn)]
    #[case("MAX_TOKENS", StopReason::MaxTokens)]
    #[case("CONTINUATION", StopReason::MaxTokens)]
    #[case("SAFETY", StopReason::ContentFilter)]
    #[case("RECITATION", StopReason::ContentFilter)]
    #[case("BLOCKLIST", StopReason::ContentFilter)]
    #[case("PROHIBITED_CONTENT", StopReason::ContentFilter)]
    #[case("SPII", StopReason::ContentFilter)]
    #[case("IMAGE_SAFETY", StopReason::ContentFilter)]
    #[case("LANGUAGE", StopReason::Other("LANGUAGE".into()))]
    #[case("NOVEL", StopReason::Other("NOVEL".into()))]
    fn finish_reasons_are_told_apart(#[case] reason: &str, #[case] expected: StopReason) {
        let chunk = json!({"candidates": [{"content": {"parts": [{"text": "x"}]},
            "finishReason": reason, "finishMessage": "why"}]});
        let events = read(&[&chunk.to_string()]).unwrap();
        assert_eq!(last(&events), (expected, Some("why".into())));
    }

    #[rstest]
    #[case("MALFORMED_FUNCTION_CALL")]
    #[case("UNEXPECTED_TOOL_CALL")]
    #[case("MALFORMED_RESPONSE")]
    #[case("TOO_MANY_TOOL_CALLS")]
    fn an_unusable_turn_is_an_error_worth_a_retry(#[case] reason: &str) {
        let chunk = json!({"candidates": [{"finishReason": reason, "finishMessage": "print(x("}]});
        let error = read(&[&chunk.to_string()]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed);
        assert!(error.is_retryable());
        assert!(error.message.contains(reason) && error.message.contains("print(x("));
    }

    #[test]
    fn a_turn_of_thoughts_alone_is_no_answer() {
        let thought = r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]},"finishReason":"STOP"}]}"#;
        let error = read(&[thought]).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Malformed, "the model answered nothing")
        );
        let cut = thought.replace("STOP", "MAX_TOKENS");
        let (reason, detail) = last(&read(&[&cut]).unwrap());
        assert_eq!(reason, StopReason::MaxTokens);
        assert!(detail.unwrap().contains("--max-tokens"));
    }

    #[test]
    fn a_stream_without_a_finish_reason_was_cut() {
        let error = read(&THINKING_AND_CALLS[..3]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed);
        assert_eq!(read(&[]).unwrap_err().kind, ErrorKind::Malformed);
    }

    #[test]
    fn a_blocked_prompt_is_filtered() {
        let error =
            read(&[r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}"#]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Filtered);
        assert!(error.message.contains("PROHIBITED_CONTENT"));
    }

    #[test]
    fn an_error_inside_the_stream_is_classified() {
        let error = read(&[
            THINKING_AND_CALLS[0],
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE","details":[{"retryDelay":"2s"}]}}"#,
        ])
        .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Overloaded);
        assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(2)));
        let wrapped = r#"[{"error":{"message":"Try later.","status":"RESOURCE_EXHAUSTED"}}]"#;
        assert_eq!(read(&[wrapped]).unwrap_err().kind, ErrorKind::RateLimited);
    }

    #[test]
    fn a_whole_document_or_an_array_of_chunks_is_read_too() {
        let assemble = |body: Value| {
            let mut assembly = Assembly::new(caliban_model::Origin::new("google", "m"));
            GeminiDecoder::default()
                .whole(&body, &mut assembly)
                .map(|()| blocks(&assembly.take_events()))
        };
        let chunk: Value = serde_json::from_str(FINISHED).unwrap();
        assert_eq!(assemble(chunk.clone()).unwrap(), vec![Block::text("x")]);
        let more = json!({"candidates": [{"content": {"parts": [{"text": "y"}]}}]});
        assert_eq!(
            assemble(json!([more, chunk])).unwrap(),
            vec![Block::text("yx")]
        );
        let refused = assemble(json!([{"error": {"status": "NOT_FOUND", "message": "no"}}]));
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Unavailable);
    }

    #[test]
    fn endless_private_data_is_refused() {
        let mut decoder = GeminiDecoder::default();
        let mut assembly = Assembly::new(caliban_model::Origin::new("google", "m"));
        let part = json!({"novel": "x".repeat(1024 * 1024)});
        let frame = Frame {
            event: String::new(),
            data: json!({"candidates": [{"content": {"parts": [part]}}]}).to_string(),
        };
        let refused = (0..=MAX_CARRIED / (1024 * 1024)).any(|_| {
            let result = decoder.frame(&frame, &mut assembly);
            assembly.take_events();
            result.is_err()
        });
        assert!(refused);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = decode(Framing::ServerSentEvents, decoder(), &[&bytes]);
            let framed = [b"data: ", bytes.as_slice(), b"\n\n"].concat();
            let _ = decode(Framing::ServerSentEvents, decoder(), &[&framed]);
        }

        #[test]
        fn a_damaged_stream_is_survived(at: prop::sample::Index, cut in 0usize..40, with: Vec<u8>) {
            let mut bytes = stream(&THINKING_AND_CALLS).into_bytes();
            let at = at.index(bytes.len());
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, with);
            let _ = decode(Framing::ServerSentEvents, decoder(), &[&bytes]);
        }
    }
}
