//! Bytes into frames: server-sent events, JSON lines and AWS's event streams, split anywhere by
//! the network.

mod event_stream;

use caliban_http::{Event, EventTooLarge, Events, MAX_EVENT};

pub(crate) use event_stream::EventStream;

/// The most one frame may hold.
pub(crate) const MAX_FRAME: usize = MAX_EVENT;

/// One message of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The `event:` field of a server-sent event; empty if there was none.
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Frame {
    /// Events without data, and what `id` and `retry` say, mean nothing here.
    fn of(event: Event) -> Option<Self> {
        let data = event.data?;
        let event = event.kind.unwrap_or_default();
        Some(Self { event, data })
    }
}

/// What a platform says in the middle of a stream that it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exception {
    /// E.g. `throttlingException`.
    pub(crate) class: String,
    /// A JSON document with a message.
    pub(crate) body: String,
}

/// A frame, or why there are no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Frame(Frame),
    Exception(Exception),
}

/// A stream that cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FramingError {
    #[error(transparent)]
    TooLarge(#[from] EventTooLarge),
    #[error("{0}")]
    Corrupt(&'static str),
}

/// Collects bytes and yields frames. Holds at most one unfinished frame.
#[derive(Debug)]
pub(crate) enum Framer {
    Sse(Events),
    Lines(Lines),
    /// Not yet known: gateways turn event streams into server-sent events.
    Either,
    Messages(EventStream),
}

impl Framer {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, FramingError> {
        match self {
            Self::Sse(events) => {
                let mut frames = Vec::new();
                events.push(bytes, |event| frames.extend(Frame::of(event)))?;
                Ok(frames.into_iter().map(Piece::Frame).collect())
            }
            Self::Lines(lines) => {
                let frames = lines.push(bytes)?;
                Ok(frames.into_iter().map(Piece::Frame).collect())
            }
            Self::Messages(stream) => stream.push(bytes),
            Self::Either => {
                // The length of a message begins with a zero, text does not.
                *self = match bytes.first() {
                    None => return Ok(Vec::new()),
                    Some(0..=8) => Self::Messages(EventStream::default()),
                    Some(_) => Self::Sse(Events::default()),
                };
                self.push(bytes)
            }
        }
    }

    /// Whether the body ended inside a message that had a length.
    pub(crate) fn is_broken_off(&self) -> bool {
        match self {
            Self::Messages(stream) => stream.is_broken_off(),
            Self::Sse(_) | Self::Lines(_) | Self::Either => false,
        }
    }

    /// The body ended: what is still buffered is the last frame.
    pub(crate) fn finish(&mut self) -> Option<Frame> {
        match self {
            Self::Sse(events) => events.finish().and_then(Frame::of),
            Self::Lines(lines) => lines.finish(),
            Self::Either | Self::Messages(_) => None,
        }
    }
}

/// One JSON document per line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, EventTooLarge> {
        let mut frames = Vec::new();
        let mut pieces = bytes.split(|b| *b == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.line.extend_from_slice(piece);
            if self.line.len() > MAX_FRAME {
                return Err(EventTooLarge);
            }
            if pieces.peek().is_some() {
                frames.extend(self.finish());
            }
        }
        Ok(frames)
    }

    fn finish(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let data = line.trim();
        (!data.is_empty()).then(|| Frame {
            event: String::new(),
            data: data.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(mut framer: Framer, chunks: &[&[u8]]) -> Vec<Frame> {
        let mut found = Vec::new();
        for chunk in chunks {
            found.extend(framer.push(chunk).unwrap());
        }
        found.extend(framer.finish().map(Piece::Frame));
        found
            .into_iter()
            .map(|piece| match piece {
                Piece::Frame(frame) => frame,
                Piece::Exception(exception) => panic!("{exception:?}"),
            })
            .collect()
    }

    fn frame(event: &str, data: &str) -> Frame {
        Frame {
            event: event.into(),
            data: data.into(),
        }
    }

    const STREAM: &str = ": keep-alive\r\n\r\nevent: a\r\ndata: {\"x\":\"é✓\"}\r\n\r\ndata:no space\n\ndata: one\ndata: two\n\rid: 7\n\nevent: nothing\n\ndata: last";

    #[test]
    fn server_sent_events_are_read_in_all_their_forms() {
        assert_eq!(
            read(Framer::Sse(Events::default()), &[STREAM.as_bytes()]),
            vec![
                frame("a", "{\"x\":\"é✓\"}"),
                frame("", "no space"),
                frame("", "one\ntwo"),
                frame("", "last"),
            ]
        );
    }

    #[test]
    fn a_split_at_any_byte_changes_nothing() {
        let bytes = STREAM.as_bytes();
        let whole = read(Framer::Sse(Events::default()), &[bytes]);
        for at in 0..=bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(read(Framer::Sse(Events::default()), &[left, right]), whole);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(Framer::Sse(Events::default()), &single), whole);
    }

    #[test]
    fn a_gateway_may_turn_messages_into_events() {
        assert_eq!(
            read(Framer::Either, &[b"", b"data: x\n\n"]),
            [frame("", "x")]
        );
    }

    #[test]
    fn lines_skip_blanks_and_keep_an_unterminated_last_one() {
        assert_eq!(
            read(
                Framer::Lines(Lines::default()),
                &[b"{\"a\":1}\r\n\n{\"b\"", b":2}\n{\"c\":3}"]
            ),
            vec![
                frame("", "{\"a\":1}"),
                frame("", "{\"b\":2}"),
                frame("", "{\"c\":3}")
            ]
        );
    }

    #[test]
    fn an_endless_event_is_refused() {
        let chunk = vec![b'x'; 1024 * 1024];
        for mut framer in [
            Framer::Sse(Events::default()),
            Framer::Lines(Lines::default()),
        ] {
            let refused = (0..=MAX_FRAME / chunk.len()).any(|_| framer.push(&chunk).is_err());
            assert!(refused);
        }
        let mut many_lines = Framer::Sse(Events::default());
        let line = [b"data: ".as_slice(), &chunk, b"\n"].concat();
        let refused = (0..=MAX_FRAME / chunk.len()).any(|_| many_lines.push(&line).is_err());
        assert!(refused);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_chunks_are_survived(bytes: Vec<u8>, size in 1usize..9) {
            for framer in [Framer::Sse(Events::default()), Framer::Lines(Lines::default())] {
                let mut framer = framer;
                for chunk in bytes.chunks(size) {
                    framer.push(chunk).unwrap();
                }
                framer.finish();
            }
        }
    }
}
