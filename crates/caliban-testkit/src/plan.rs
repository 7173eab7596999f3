//! The exact writes that make up a response, prepared before the first byte goes out.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::fault::Fault;
use crate::frame::Frame;
use crate::http::{self, Framing};
use crate::script::{Chunking, Document, Reply};

/// What happens after the last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    KeepAlive,
    Close,
    Reset,
    /// Nothing more, until the client goes away.
    Stall,
}

#[derive(Debug)]
pub(crate) struct Plan {
    /// Before anything is written.
    pub(crate) delay: Duration,
    pub(crate) head: Bytes,
    pub(crate) chunks: Vec<Bytes>,
    /// Between two chunks.
    pub(crate) gap: Duration,
    /// Where delivery waits to be released.
    pub(crate) hold: Option<Hold>,
    pub(crate) end: End,
}

/// A place in the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    BeforeHead,
    /// Behind the head and so many chunks.
    AfterChunks(usize),
}

pub(crate) type Headers = Vec<(String, String)>;

pub(crate) const JSON: &str = "application/json";

impl Plan {
    /// A response with a body of known length, in one write.
    pub(crate) fn fixed(status: u16, content_type: &str, headers: &Headers, body: &[u8]) -> Self {
        let mut head =
            http::head(status, content_type, headers, Framing::Length(body.len())).into_bytes();
        head.extend_from_slice(body);
        Self {
            delay: Duration::ZERO,
            head: head.into(),
            chunks: Vec::new(),
            gap: Duration::ZERO,
            hold: None,
            end: End::KeepAlive,
        }
    }

    pub(crate) fn json(status: u16, headers: &Headers, body: &Value) -> Self {
        Self::fixed(status, JSON, headers, body.to_string().as_bytes())
    }

    /// What a script has at an address.
    pub(crate) fn document(document: &Document) -> Self {
        let headers: Headers = document
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let kind = if document.body.starts_with('<') {
            "text/xml"
        } else {
            JSON
        };
        Self::fixed(document.status, kind, &headers, document.body.as_bytes())
    }

    /// No response at all.
    pub(crate) fn nothing(end: End) -> Self {
        Self {
            delay: Duration::ZERO,
            head: Bytes::new(),
            chunks: Vec::new(),
            gap: Duration::ZERO,
            hold: None,
            end,
        }
    }

    pub(crate) fn delayed(mut self, reply: &Reply) -> Self {
        self.delay = Duration::from_millis(reply.delay_ms);
        self.hold = reply.hold_after.map(|_| Hold::BeforeHead);
        self
    }
}

/// The frames a mid-stream fault may need.
pub(crate) struct Spares {
    pub(crate) malformed: Frame,
    pub(crate) error: Frame,
}

/// A streamed answer, cut or spoilt as the reply's fault says.
pub(crate) fn streamed(
    content_type: &str,
    headers: &Headers,
    mut frames: Vec<Frame>,
    reply: &Reply,
    spares: Spares,
) -> Plan {
    let ending = spoil(&mut frames, reply.fault.as_ref(), spares);
    let last = frames.len().saturating_sub(1);
    let (before, after) = frames.split_at(reply.hold_after.unwrap_or(0).min(last));
    let mut chunks = cut(before, reply.chunking);
    let hold = reply.hold_after.map(|events| match events {
        0 => Hold::BeforeHead,
        _ => Hold::AfterChunks(chunks.len()),
    });
    chunks.extend(cut(after, reply.chunking));
    let end = match ending {
        Ending::Complete => End::KeepAlive,
        Ending::Closed => End::Close,
        Ending::Reset => End::Reset,
        Ending::Stalled => End::Stall,
    };
    match ending {
        // The terminal chunk rides with the last one: it costs neither a write nor a gap.
        Ending::Complete | Ending::Closed => match chunks.pop() {
            Some(last) => chunks.push([last, http::LAST_CHUNK].concat().into()),
            None => chunks.push(http::LAST_CHUNK),
        },
        Ending::Reset | Ending::Stalled => {}
    }
    Plan {
        delay: Duration::from_millis(reply.delay_ms),
        head: http::head(200, content_type, headers, Framing::Chunked).into(),
        chunks,
        gap: Duration::from_millis(reply.chunk_delay_ms),
        hold,
        end,
    }
}

enum Ending {
    Complete,
    Closed,
    Reset,
    Stalled,
}

fn spoil(frames: &mut Vec<Frame>, fault: Option<&Fault>, spares: Spares) -> Ending {
    match fault {
        Some(Fault::ResetMidStream { after_events }) => {
            frames.truncate(*after_events);
            Ending::Reset
        }
        Some(Fault::CloseMidStream { after_events }) => {
            frames.truncate(*after_events);
            Ending::Closed
        }
        Some(Fault::StallMidStream { after_events }) => {
            frames.truncate(*after_events);
            Ending::Stalled
        }
        Some(Fault::MalformedEvent { after_events }) => {
            frames.insert((*after_events).min(frames.len()), spares.malformed);
            Ending::Complete
        }
        Some(Fault::TruncatedEvent { after_events }) => {
            frames.truncate(after_events.saturating_add(1));
            if let Some(last) = frames.last_mut() {
                last.truncate(last.len() / 2);
            }
            Ending::Closed
        }
        Some(Fault::ErrorEvent { after_events, .. }) => {
            frames.truncate(*after_events);
            frames.push(spares.error);
            Ending::Complete
        }
        // These replace the whole answer and never get here.
        None
        | Some(
            Fault::Status { .. }
            | Fault::ResetBeforeHeaders
            | Fault::StallBeforeHeaders
            | Fault::Garbage
            | Fault::HtmlBody { .. }
            | Fault::JsonErrorWith200,
        ) => Ending::Complete,
    }
}

fn cut(frames: &[Frame], chunking: Chunking) -> Vec<Bytes> {
    // An empty chunk would end the body.
    let pieces = frames.iter().filter(|frame| !frame.is_empty());
    match chunking {
        Chunking::PerEvent => pieces.map(|frame| http::chunk(frame)).collect(),
        Chunking::Whole if frames.is_empty() => Vec::new(),
        Chunking::Whole => vec![http::chunk(&frames.concat())],
        Chunking::Bytes(size) => frames
            .concat()
            .chunks(size.get())
            .map(http::chunk)
            .collect(),
    }
}

/// An answer in one body, cut or spoilt as the reply's fault says.
pub(crate) fn whole(headers: &Headers, body: &Value, error: &Value, reply: &Reply) -> Plan {
    let text = body.to_string();
    let half = &text.as_bytes()[..text.len() / 2];
    let plan = match &reply.fault {
        Some(Fault::ResetMidStream { .. }) => partial(headers, half, text.len(), End::Reset),
        Some(Fault::CloseMidStream { .. }) => partial(headers, half, text.len(), End::Close),
        Some(Fault::StallMidStream { .. }) => partial(headers, half, text.len(), End::Stall),
        Some(Fault::MalformedEvent { .. } | Fault::TruncatedEvent { .. }) => {
            Plan::fixed(200, JSON, headers, half)
        }
        Some(Fault::ErrorEvent { .. }) => Plan::json(200, headers, error),
        None
        | Some(
            Fault::Status { .. }
            | Fault::ResetBeforeHeaders
            | Fault::StallBeforeHeaders
            | Fault::Garbage
            | Fault::HtmlBody { .. }
            | Fault::JsonErrorWith200,
        ) => Plan::fixed(200, JSON, headers, text.as_bytes()),
    };
    plan.delayed(reply)
}

fn partial(headers: &Headers, half: &[u8], announced: usize, end: End) -> Plan {
    let mut head = http::head(200, JSON, headers, Framing::Length(announced)).into_bytes();
    head.extend_from_slice(half);
    Plan {
        head: head.into(),
        ..Plan::nothing(end)
    }
}

/// Bytes that are neither text nor JSON, the same in every run.
pub(crate) fn garbage() -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    let mut out: Vec<u8> = std::iter::repeat_with(&mut step).take(512).collect();
    out.extend_from_slice(b"\xff\xfe\n\n");
    out
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    fn plan(reply: &Reply) -> Plan {
        let frames = ["one\n", "two\n", "three\n"]
            .map(|f| f.as_bytes().to_vec())
            .to_vec();
        let spares = Spares {
            malformed: b"bad\n".to_vec(),
            error: b"err\n".to_vec(),
        };
        streamed("text/event-stream", &Headers::new(), frames, reply, spares)
    }

    fn body(reply: &Reply) -> String {
        String::from_utf8(plan(reply).chunks.concat()).unwrap()
    }

    #[test]
    fn chunking_changes_only_the_cuts() {
        let reply = Reply::text("");
        assert_eq!(
            body(&reply),
            "4\r\none\n\r\n4\r\ntwo\n\r\n6\r\nthree\n\r\n0\r\n\r\n"
        );
        let whole = reply.clone().chunking(Chunking::Whole);
        assert_eq!(body(&whole), "e\r\none\ntwo\nthree\n\r\n0\r\n\r\n");
        let five = reply.chunking(Chunking::Bytes(NonZeroUsize::new(5).unwrap()));
        assert_eq!(plan(&five).chunks.len(), 3);
    }

    #[test]
    fn faults_cut_where_they_say() {
        let with = |fault| Reply::text("").with_fault(fault);
        let reset = with(Fault::ResetMidStream { after_events: 1 });
        assert_eq!(
            (body(&reset).as_str(), plan(&reset).end),
            ("4\r\none\n\r\n", End::Reset)
        );
        let close = with(Fault::CloseMidStream { after_events: 0 });
        assert_eq!(
            (body(&close).as_str(), plan(&close).end),
            ("0\r\n\r\n", End::Close)
        );
        let stall = with(Fault::StallMidStream { after_events: 9 });
        assert_eq!(
            (plan(&stall).chunks.len(), plan(&stall).end),
            (3, End::Stall)
        );
        let truncated = with(Fault::TruncatedEvent { after_events: 1 });
        assert_eq!(body(&truncated), "4\r\none\n\r\n2\r\ntw\r\n0\r\n\r\n");
        let malformed = with(Fault::MalformedEvent { after_events: 1 });
        assert!(body(&malformed).contains("one\n\r\n4\r\nbad\n\r\n4\r\ntwo"));
        let error = with(Fault::ErrorEvent {
            after_events: 1,
            kind: crate::ErrorKind::Overloaded,
        });
        assert_eq!(body(&error), "4\r\none\n\r\n4\r\nerr\n\r\n0\r\n\r\n");
    }

    #[test]
    fn a_held_answer_is_the_same_with_a_pause_in_it() {
        let reply = Reply::text("").chunking(Chunking::Whole);
        let held = plan(&reply.clone().hold_after(2));
        assert_eq!(held.hold, Some(Hold::AfterChunks(1)));
        assert_eq!(
            String::from_utf8(held.chunks.concat()).unwrap(),
            "8\r\none\ntwo\n\r\n6\r\nthree\n\r\n0\r\n\r\n"
        );
        assert_eq!(
            plan(&reply.clone().hold_after(0)).hold,
            Some(Hold::BeforeHead)
        );
        assert_eq!(plan(&reply).hold, None);
    }

    #[test]
    fn garbage_is_stable_and_no_text() {
        assert_eq!(garbage(), garbage());
        assert!(String::from_utf8(garbage()).is_err());
    }
}
