//! Ollama's answers into blocks.

use caliban_model::{Error, ErrorKind, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::error;
use super::wire::{Line, Message, ToolCall};
use crate::adapter::Decoder;
use crate::assembly::{Assembly, BlockId};
use crate::framing::Frame;

/// Reads the lines of one answer; the line that says `done` is the last.
#[derive(Debug)]
pub(super) struct OllamaDecoder {
    /// The context the request named: an answer that fills it was cut by it.
    num_ctx: u64,
    progress: Progress,
    /// The block that further text of its kind belongs to.
    open: Option<(Prose, BlockId)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Started,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prose {
    Text,
    Thinking,
}

impl OllamaDecoder {
    pub(super) fn new(num_ctx: u64) -> Self {
        Self {
            num_ctx,
            progress: Progress::Waiting,
            open: None,
        }
    }

    fn line(&mut self, line: Line, assembly: &mut Assembly) -> Result<(), Error> {
        if let Some(message) = line.failure.message() {
            return Err(error::in_stream(assembly.origin(), &line.failure, &message));
        }
        if self.progress == Progress::Waiting {
            let model = line
                .model
                .unwrap_or_else(|| assembly.origin().model.to_string());
            assembly.started(model);
            self.progress = Progress::Started;
        }
        if let Some(message) = line.message {
            self.message(message, assembly)?;
        }
        match line.done {
            Some(true) => {
                let prompt = line.prompt_eval_count.unwrap_or(0);
                let answer = line.eval_count.unwrap_or(0);
                // A server that counts nothing leaves the estimate to the adapter.
                if prompt > 0 || answer > 0 {
                    assembly.usage(Usage {
                        input: prompt,
                        output: answer,
                        ..Usage::default()
                    });
                }
                let total = prompt.saturating_add(answer);
                self.done(&line.done_reason.unwrap_or_default(), total, assembly)
            }
            Some(false) | None => Ok(()),
        }
    }

    fn message(&mut self, message: Message, assembly: &mut Assembly) -> Result<(), Error> {
        if let Some(thinking) = message.thinking {
            self.prose(Prose::Thinking, &thinking, assembly)?;
        }
        if let Some(content) = message.content {
            self.prose(Prose::Text, &content, assembly)?;
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.call(&call, assembly)?;
        }
        Ok(())
    }

    fn prose(&mut self, prose: Prose, text: &str, assembly: &mut Assembly) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.open {
            Some((open, block)) if open == prose => block,
            Some(_) | None => {
                self.close(assembly);
                let block = match prose {
                    Prose::Text => assembly.open_text()?,
                    Prose::Thinking => assembly.open_thinking()?,
                };
                self.open = Some((prose, block));
                block
            }
        };
        assembly.push(block, text)
    }

    /// Calls come whole; older servers give them no id.
    fn call(&mut self, call: &ToolCall, assembly: &mut Assembly) -> Result<(), Error> {
        if call.function.name.is_empty() {
            return Err(assembly.error(ErrorKind::Malformed, "a tool call has no name"));
        }
        self.close(assembly);
        let id = call.id.as_deref().unwrap_or_default();
        let block = assembly.open_tool(id, &call.function.name)?;
        match &call.function.arguments {
            Some(Value::String(json)) => assembly.push(block, json)?,
            Some(Value::Null) | None => {}
            Some(arguments) => assembly.push(block, &arguments.to_string())?,
        }
        assembly.end(block);
        Ok(())
    }

    fn done(&mut self, reason: &str, total: u64, assembly: &mut Assembly) -> Result<(), Error> {
        let reason = match reason {
            "stop" | "" => StopReason::EndTurn,
            "length" if total >= self.num_ctx => StopReason::ContextExceeded,
            "length" => StopReason::MaxTokens,
            "load" | "unload" => {
                return Err(assembly.error(
                    ErrorKind::Malformed,
                    format!("the server only did a model {reason} and answered nothing"),
                ));
            }
            other => StopReason::Other(other.to_owned()),
        };
        assembly.stop(reason, None);
        Ok(())
    }

    fn close(&mut self, assembly: &mut Assembly) {
        if let Some((_, block)) = self.open.take() {
            assembly.end(block);
        }
    }
}

impl Decoder for OllamaDecoder {
    fn frame(&mut self, frame: &Frame, assembly: &mut Assembly) -> Result<(), Error> {
        let line = serde_json::from_str(&frame.data).map_err(|error| unread(assembly, &error))?;
        self.line(line, assembly)
    }

    fn whole(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error> {
        let line = Line::deserialize(body).map_err(|error| unread(assembly, &error))?;
        self.line(line, assembly)?;
        if assembly.has_stopped() {
            return Ok(());
        }
        self.finish(assembly)
    }
}

fn unread(assembly: &Assembly, error: &serde_json::Error) -> Error {
    assembly.error(
        ErrorKind::Malformed,
        format!("a line of the answer cannot be read: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{blocks, decode, decode_every_way};
    use crate::transport::Framing;
    use caliban_model::{Block, Origin, StreamEvent};
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    const NUM_CTX: u64 = 1_000;

    fn decoder() -> Box<dyn Decoder> {
        Box::new(OllamaDecoder::new(NUM_CTX))
    }

    fn read(lines: &str) -> Result<Vec<StreamEvent>, Error> {
        decode_every_way(Framing::JsonLines, decoder, lines.as_bytes())
    }

    fn reason(events: &[StreamEvent]) -> StopReason {
        match events.last() {
            Some(StreamEvent::Stopped { reason, .. }) => reason.clone(),
            other => panic!("the stream ended with {other:?}"),
        }
    }

    const THINKING_AND_CALLS: &str = r#"{"model":"qwen3","created_at":"t","message":{"role":"assistant","content":"","thinking":"h"},"done":false}
{"model":"qwen3","created_at":"t","message":{"role":"assistant","content":"","thinking":"m é"},"done":false}
{"model":"qwen3","created_at":"t","message":{"role":"assistant","content":"I look."},"done":false}
{"model":"qwen3","created_at":"t","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_ab","function":{"index":0,"name":"Bash","arguments":{"command":"ls"}}}]},"done":false}
{"model":"qwen3","created_at":"t","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"Read"}},{"id":"","function":{"name":"Read","arguments":"{\"a\":1}"}}]},"done":false}
{"model":"qwen3","created_at":"t","message":{"role":"assistant","content":" Done."},"done":false}
{"model":"qwen3","created_at":"t","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1,"prompt_eval_count":812,"eval_count":40}
"#;

    #[test]
    fn text_arrives_in_deltas() {
        let events = read(concat!(
            r#"{"model":"llama3.1","message":{"role":"assistant","content":"Hel"},"done":false}"#,
            "\n",
            r#"{"model":"llama3.1","message":{"role":"assistant","content":"lo"},"done":false}"#,
            "\r\n\n",
            r#"{"model":"llama3.1","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":2}"#,
        ))
        .unwrap();
        let delta = |text: &str| StreamEvent::TextDelta {
            index: 0,
            text: text.into(),
        };
        assert_eq!(
            events,
            vec![
                StreamEvent::Started {
                    model: "llama3.1".into()
                },
                delta("Hel"),
                delta("lo"),
                StreamEvent::Usage {
                    usage: Usage {
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
    fn thinking_text_and_calls_over_several_lines_become_blocks() {
        let events = read(THINKING_AND_CALLS).unwrap();
        let mut blocks = blocks(&events);
        for block in &mut blocks {
            if let Block::ToolUse { id, .. } = block
                && id.len() > 30
            {
                "made".clone_into(id);
            }
        }
        let call = |id: &str, name: &str, input| Block::ToolUse {
            id: id.into(),
            name: name.into(),
            input,
            private: None,
        };
        assert_eq!(
            blocks,
            vec![
                Block::Thinking {
                    text: "hm é".into(),
                    signature: None,
                    private: None
                },
                Block::text("I look."),
                call("call_ab", "Bash", json!({"command": "ls"})),
                call("made", "Read", json!({})),
                call("made", "Read", json!({"a": 1})),
                Block::text(" Done."),
            ]
        );
        assert_eq!(reason(&events), StopReason::ToolUse);
        assert!(events.contains(&StreamEvent::Usage {
            usage: Usage {
                input: 812,
                output: 40,
                ..Usage::default()
            }
        }));
    }

    #[rstest]
    #[case(r#""done_reason":"stop""#, StopReason::EndTurn)]
    #[case(r#""done_reason":"""#, StopReason::EndTurn)]
    #[case(r#""done_reason":null"#, StopReason::EndTurn)]
    #[case(
        r#""done_reason":"length","prompt_eval_count":900,"eval_count":99"#,
        StopReason::MaxTokens
    )]
    #[case(
        r#""done_reason":"length","prompt_eval_count":900,"eval_count":100"#,
        StopReason::ContextExceeded
    )]
    #[case(r#""done_reason":"novel""#, StopReason::Other("novel".into()))]
    fn done_reasons_are_told_apart(#[case] fields: &str, #[case] expected: StopReason) {
        let line = format!(r#"{{"message":{{"content":"x"}},"done":true,{fields}}}"#);
        assert_eq!(reason(&read(&line).unwrap()), expected);
    }

    #[test]
    fn loading_is_no_answer() {
        for word in ["load", "unload"] {
            let line = format!(r#"{{"model":"m","done":true,"done_reason":"{word}"}}"#);
            let error = read(&line).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Malformed);
            assert!(error.is_retryable());
        }
    }

    #[test]
    fn no_counts_mean_no_usage() {
        let events = read(r#"{"message":{"content":"x"},"done":true}"#).unwrap();
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, StreamEvent::Usage { .. }))
        );
    }

    #[test]
    fn a_stream_that_is_never_done_was_cut() {
        let cut = THINKING_AND_CALLS.rsplit_once("{\"model\"").unwrap().0;
        assert_eq!(read(cut).unwrap_err().kind, ErrorKind::Malformed);
    }

    #[rstest]
    #[case(r#"{"error":"llama runner crashed"}"#, ErrorKind::Server)]
    #[case(r#"{"error":"busy","status":503}"#, ErrorKind::Overloaded)]
    #[case(r#"{"error":{"message":"odd"},"status":"odd"}"#, ErrorKind::Server)]
    #[case(r#"{"error":"the input length exceeds the context length"}"#, ErrorKind::TooLong { limit: None })]
    fn an_error_line_ends_the_stream(#[case] line: &str, #[case] kind: ErrorKind) {
        let lines = format!("{{\"message\":{{\"content\":\"x\"}},\"done\":false}}\n{line}\n");
        assert_eq!(read(&lines).unwrap_err().kind, kind);
    }

    #[test]
    fn a_whole_document_is_read_too() {
        let mut assembly = Assembly::new(Origin::new("ollama", "m"));
        let body = json!({"model": "m", "message": {"content": "x"}, "done": true});
        decoder().whole(&body, &mut assembly).unwrap();
        assert_eq!(blocks(&assembly.take_events()), vec![Block::text("x")]);

        let mut assembly = Assembly::new(Origin::new("ollama", "m"));
        let unfinished = decoder().whole(&json!({"message": {"content": "x"}}), &mut assembly);
        assert_eq!(unfinished.unwrap_err().kind, ErrorKind::Malformed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = decode(Framing::JsonLines, decoder(), &[&bytes]);
        }

        #[test]
        fn a_damaged_stream_is_survived(at: prop::sample::Index, cut in 0usize..40, with: Vec<u8>) {
            let mut bytes = THINKING_AND_CALLS.as_bytes().to_vec();
            let at = at.index(bytes.len());
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, with);
            let _ = decode(Framing::JsonLines, decoder(), &[&bytes]);
        }
    }
}
