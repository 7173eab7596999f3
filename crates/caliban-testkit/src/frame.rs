//! Turning a family's events into the bytes of its stream.

use crate::ask::Mode;
use crate::cloud;
use crate::json;
use crate::quirk::{Quirk, Quirks};
use crate::record::Api;

/// One event before framing.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn unnamed(data: &impl ToString) -> Self {
        Self {
            name: None,
            data: data.to_string(),
        }
    }

    pub(crate) fn named(name: &'static str, data: &impl ToString) -> Self {
        Self {
            name: Some(name),
            data: data.to_string(),
        }
    }
}

/// The bytes of one event, as they go over the wire.
pub(crate) type Frame = Vec<u8>;

pub(crate) fn frames(api: Api, mode: Mode, quirks: &Quirks, events: &[Event]) -> Vec<Frame> {
    match (api, mode) {
        (Api::Ollama, _) => events
            .iter()
            .map(|event| format!("{}\n", event.data).into_bytes())
            .collect(),
        (_, Mode::Array) => array(events),
        (_, Mode::EventStream) => events.iter().map(|event| binary(api, event)).collect(),
        (_, Mode::Stream | Mode::Whole) => events
            .iter()
            .map(|event| server_sent(event, line_end(api, quirks), quirks))
            .collect(),
    }
}

/// Claude's events travel inside others, which say nothing else.
fn binary(api: Api, event: &Event) -> Frame {
    let data = event.data.as_bytes();
    match (event.name, api) {
        (Some(name), _) if name.ends_with("Exception") => cloud::exception(name, data),
        (Some(name), Api::Converse) => cloud::event(name, data),
        _ => {
            let wrapped = serde_json::json!({"bytes": json::to_base64(&event.data), "p": "abc"});
            cloud::event("chunk", wrapped.to_string().as_bytes())
        }
    }
}

/// Google separates its events with `\r\n\r\n`, always.
fn line_end(api: Api, quirks: &Quirks) -> &'static str {
    if api == Api::Gemini || quirks.has(Quirk::Crlf) {
        "\r\n"
    } else {
        "\n"
    }
}

fn server_sent(event: &Event, end: &str, quirks: &Quirks) -> Frame {
    let colon = if quirks.has(Quirk::NoSpaceAfterData) {
        ":"
    } else {
        ": "
    };
    let mut out = String::with_capacity(event.data.len() + 64);
    if quirks.has(Quirk::Comments) {
        out.extend([": keep-alive", end, end]);
    }
    if let Some(name) = event.name {
        out.extend(["event", colon, name, end]);
    }
    out.extend(["data", colon, &event.data, end, end]);
    out.into_bytes()
}

fn array(events: &[Event]) -> Vec<Frame> {
    let last = events.len().saturating_sub(1);
    let frame = |(index, event): (usize, &Event)| {
        let open = if index == 0 { "[" } else { ",\r\n" };
        let close = if index == last { "]" } else { "" };
        format!("{open}{}{close}", event.data).into_bytes()
    };
    events.iter().enumerate().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(api: Api, mode: Mode, quirks: &[Quirk]) -> String {
        let quirks: Quirks = quirks.iter().copied().collect();
        let events = [Event::named("a", &"{}"), Event::unnamed(&"[DONE]")];
        String::from_utf8(frames(api, mode, &quirks, &events).concat()).unwrap()
    }

    #[test]
    fn each_family_frames_its_own_way() {
        assert_eq!(
            bytes(Api::AnthropicMessages, Mode::Stream, &[]),
            "event: a\ndata: {}\n\ndata: [DONE]\n\n"
        );
        assert_eq!(
            bytes(Api::Gemini, Mode::Stream, &[]),
            "event: a\r\ndata: {}\r\n\r\ndata: [DONE]\r\n\r\n"
        );
        assert_eq!(bytes(Api::Gemini, Mode::Array, &[]), "[{},\r\n[DONE]]");
        assert_eq!(bytes(Api::Ollama, Mode::Stream, &[]), "{}\n[DONE]\n");
    }

    #[test]
    fn line_quirks_apply() {
        assert_eq!(
            bytes(
                Api::OpenAiChat,
                Mode::Stream,
                &[Quirk::Crlf, Quirk::NoSpaceAfterData]
            ),
            "event:a\r\ndata:{}\r\n\r\ndata:[DONE]\r\n\r\n"
        );
        assert!(
            bytes(Api::OpenAiChat, Mode::Stream, &[Quirk::Comments])
                .starts_with(": keep-alive\n\nevent")
        );
    }
}
