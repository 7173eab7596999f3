//! For the tests of both formats: decodes recorded bytes in pieces, and builds conversations.

use std::sync::Arc;

use caliban_model::{
    Block, Error, Image, ImageMime, ImageSource, Message, Origin, Request, StopReason, StreamEvent,
    ToolContent, ToolSpec, Usage, Warning, WarningKind,
};
use serde_json::{Value, json};

use crate::adapter::Decoder;
use crate::assembly::Assembly;
use crate::testing;
use crate::transport::Framing;

pub(super) type Outcome = Result<Vec<StreamEvent>, Error>;

pub(super) fn decode(decoder: impl Decoder + 'static, chunks: &[&[u8]]) -> Outcome {
    testing::decode(Framing::ServerSentEvents, Box::new(decoder), chunks)
}

/// Decodes a stream whole and split in two at every byte, and checks that it makes no
/// difference. Ids that we make up are shown as `new`.
pub(super) fn decode_everywhere<D: Decoder + 'static>(
    decoder: impl Fn() -> D,
    stream: &str,
) -> Outcome {
    let bytes = stream.as_bytes();
    let whole = plain_ids(decode(decoder(), &[bytes]));
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        let split = plain_ids(decode(decoder(), &[left, right]));
        assert_eq!(split, whole, "split at byte {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(plain_ids(decode(decoder(), &single)), whole);
    whole
}

pub(super) fn decode_whole(mut decoder: impl Decoder, body: &Value) -> Outcome {
    let mut assembly = Assembly::new(Origin::new("openai", "m"));
    decoder.whole(body, &mut assembly)?;
    plain_ids(Ok(assembly.take_events()))
}

fn plain_ids(outcome: Outcome) -> Outcome {
    let mut events = outcome?;
    for event in &mut events {
        if let StreamEvent::ToolStarted { id, .. }
        | StreamEvent::BlockEnded {
            block: Block::ToolUse { id, .. },
            ..
        } = event
            && id.len() == 37
        {
            "new".clone_into(id);
        }
    }
    Ok(events)
}

/// What is left of an answer.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) model: String,
    pub(super) blocks: Vec<Block>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: (StopReason, Option<String>),
}

/// Also checks the order of events: one start before everything, one stop after it.
pub(super) fn answer(events: Vec<StreamEvent>) -> Answer {
    let mut models = Vec::new();
    let mut blocks = Vec::new();
    let mut usage = None;
    let mut stops = Vec::new();
    assert!(matches!(events.first(), Some(StreamEvent::Started { .. })));
    assert!(matches!(events.last(), Some(StreamEvent::Stopped { .. })));
    for event in events {
        match event {
            StreamEvent::Started { model } => models.push(model),
            StreamEvent::BlockEnded { index, block } => blocks.push((index, block)),
            StreamEvent::Usage { usage: seen } => usage = Some(seen),
            StreamEvent::Stopped { reason, detail } => stops.push((reason, detail)),
            _ => {}
        }
    }
    assert_eq!((models.len(), stops.len()), (1, 1));
    blocks.sort_by_key(|(index, _)| *index);
    Answer {
        model: models.remove(0),
        blocks: blocks.into_iter().map(|(_, block)| block).collect(),
        usage,
        stop: stops.remove(0),
    }
}

/// A stream of `data:` events.
pub(super) fn sse(events: &[Value]) -> String {
    let events: Vec<String> = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    events.concat()
}

pub(super) fn thinking(text: &str, private: Option<Value>) -> Block {
    Block::Thinking {
        text: text.into(),
        signature: None,
        private,
    }
}

pub(super) fn tool_use(id: &str, name: &str, input: Value, private: Option<Value>) -> Block {
    Block::ToolUse {
        id: id.into(),
        name: name.into(),
        input,
        private,
    }
}

pub(super) fn image(data: &str) -> Image {
    Image {
        mime: ImageMime::Png,
        source: ImageSource::Base64 { data: data.into() },
        dims: None,
    }
}

pub(super) fn text(text: &str) -> ToolContent {
    ToolContent::Text { text: text.into() }
}

pub(super) fn result(id: &str, content: Vec<ToolContent>, is_error: bool) -> Block {
    Block::ToolResult {
        tool_use_id: id.into(),
        content,
        is_error,
    }
}

pub(super) fn bash() -> ToolSpec {
    ToolSpec {
        name: "Bash".into(),
        description: "Runs a command".into(),
        input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
    }
}

pub(super) fn request(model: &str, messages: Vec<Message>) -> Request {
    Request::new(model, messages.into_iter().map(Arc::new).collect()).unwrap()
}

pub(super) fn hello(model: &str) -> Request {
    request(model, vec![Message::user("hi")])
}

/// The parameters that warnings say were dropped.
pub(super) fn dropped(warnings: Vec<Warning>) -> Vec<String> {
    warnings
        .into_iter()
        .map(|warning| match warning.kind {
            WarningKind::ParameterDropped { parameter } => parameter,
            other => panic!("{other:?}"),
        })
        .collect()
}
