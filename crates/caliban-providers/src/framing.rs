//! Bytes into frames: server-sent events and JSON lines, split anywhere by the network.

/// The most one frame may hold. Larger than any image or tool call a provider sends, small
/// enough that a hostile server cannot exhaust memory.
pub(crate) const MAX_FRAME: usize = 16 * 1024 * 1024;

/// One message of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The `event:` field of a server-sent event; empty if there was none.
    pub(crate) event: String,
    pub(crate) data: String,
}

/// A frame grew past [`MAX_FRAME`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a single event is larger than {} MiB", MAX_FRAME / (1024 * 1024))]
pub(crate) struct FrameTooLarge;

/// Collects bytes and yields frames. Holds at most one unfinished frame.
#[derive(Debug)]
pub(crate) enum Framer {
    Sse(Sse),
    Lines(Lines),
}

impl Framer {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, FrameTooLarge> {
        match self {
            Self::Sse(sse) => sse.push(bytes),
            Self::Lines(lines) => lines.push(bytes),
        }
    }

    /// The body ended: what is still buffered is the last frame.
    pub(crate) fn finish(&mut self) -> Option<Frame> {
        match self {
            Self::Sse(sse) => sse.finish(),
            Self::Lines(lines) => lines.finish(),
        }
    }
}

/// Server-sent events. Lines end with LF, CRLF or CR; text is decoded line by line, so that a
/// code point split between chunks is whole again. Invalid UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    line: Vec<u8>,
    /// The last byte was a CR that ended a line: a following LF belongs to it.
    after_cr: bool,
    event: String,
    data: Option<String>,
}

impl Sse {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, FrameTooLarge> {
        let mut frames = Vec::new();
        let mut rest = bytes;
        while let Some((&first, after_first)) = rest.split_first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = after_first;
                continue;
            }
            let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                break;
            };
            let line = &rest[..end];
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            // A line that came in one piece is read where it stands.
            frames.extend(if self.line.is_empty() {
                self.take(line)
            } else {
                self.line.extend_from_slice(line);
                self.end_line()
            });
            self.check_size()?;
        }
        self.check_size()?;
        Ok(frames)
    }

    fn check_size(&self) -> Result<(), FrameTooLarge> {
        if self.line.len() + self.data.as_ref().map_or(0, String::len) > MAX_FRAME {
            return Err(FrameTooLarge);
        }
        Ok(())
    }

    fn end_line(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        self.take(&line)
    }

    fn take(&mut self, line: &[u8]) -> Option<Frame> {
        if line.is_empty() {
            return self.dispatch();
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => value.clone_into(&mut self.event),
            // Comments (an empty field name), `id`, `retry` and unknown fields mean nothing here.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Frame> {
        let event = std::mem::take(&mut self.event);
        let data = self.data.take()?;
        Some(Frame { event, data })
    }

    fn finish(&mut self) -> Option<Frame> {
        self.end_line().or_else(|| self.dispatch())
    }
}

/// One JSON document per line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, FrameTooLarge> {
        let mut frames = Vec::new();
        let mut pieces = bytes.split(|b| *b == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.line.extend_from_slice(piece);
            if self.line.len() > MAX_FRAME {
                return Err(FrameTooLarge);
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
        found.extend(framer.finish());
        found
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
            read(Framer::Sse(Sse::default()), &[STREAM.as_bytes()]),
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
        let whole = read(Framer::Sse(Sse::default()), &[bytes]);
        for at in 0..=bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(read(Framer::Sse(Sse::default()), &[left, right]), whole);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(Framer::Sse(Sse::default()), &single), whole);
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
        for mut framer in [Framer::Sse(Sse::default()), Framer::Lines(Lines::default())] {
            let refused = (0..=MAX_FRAME / chunk.len()).any(|_| framer.push(&chunk).is_err());
            assert!(refused);
        }
        let mut many_lines = Framer::Sse(Sse::default());
        let line = [b"data: ".as_slice(), &chunk, b"\n"].concat();
        let refused = (0..=MAX_FRAME / chunk.len()).any(|_| many_lines.push(&line).is_err());
        assert!(refused);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_chunks_are_survived(bytes: Vec<u8>, size in 1usize..9) {
            for framer in [Framer::Sse(Sse::default()), Framer::Lines(Lines::default())] {
                let mut framer = framer;
                for chunk in bytes.chunks(size) {
                    framer.push(chunk).unwrap();
                }
                framer.finish();
            }
        }
    }
}
