//! Decoding of server-sent events, with a bound on the size of one.

/// The most one message of a server may hold, on every transport.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server sent a message of more than {} MiB", MAX_MESSAGE / (1024 * 1024))]
pub(crate) struct TooLarge;

/// Collects bytes and yields events. Holds at most one unfinished event.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    /// The last byte was a CR that ended a line: a following LF belongs to it.
    after_cr: bool,
    event: Event,
}

impl Decoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
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
            self.line.extend_from_slice(&rest[..end]);
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            events.extend(self.end_line());
            self.check_size()?;
        }
        self.check_size()?;
        Ok(events)
    }

    fn check_size(&self) -> Result<(), TooLarge> {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let Event {
            kind,
            data,
            id,
            retry: _,
        } = &self.event;
        let held = self.line.len() + length(kind) + length(data) + length(id);
        if held > MAX_MESSAGE {
            return Err(TooLarge);
        }
        Ok(())
    }

    /// A blank line ends an event; what the body breaks off in is none.
    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return (event != Event::default()).then_some(event);
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.event.data = Some(value.to_owned()),
            },
            "event" => self.event.kind = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        let mut decoder = Decoder::default();
        chunks
            .iter()
            .flat_map(|chunk| decoder.push(chunk).unwrap())
            .collect()
    }

    const STREAM: &[u8] = ": hi\r\n\r\nevent: endpoint\r\ndata: /m?é\r\n\r\nid: 7\nretry: 10\ndata:a\ndata: b\n\rdata: unfinished".as_bytes();

    #[test]
    fn a_split_at_any_byte_changes_nothing() {
        let whole = read(&[STREAM]);
        let endpoint = Event {
            kind: Some("endpoint".to_owned()),
            data: Some("/m?é".to_owned()),
            ..Event::default()
        };
        let lines = Event {
            data: Some("a\nb".to_owned()),
            id: Some("7".to_owned()),
            retry: Some(10),
            kind: None,
        };
        assert_eq!(whole, [endpoint, lines]);
        for at in 0..=STREAM.len() {
            let (left, right) = STREAM.split_at(at);
            assert_eq!(read(&[left, right]), whole);
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let chunk = vec![b'x'; 1024 * 1024];
        let lines = [b"data: ".as_slice(), &chunk, b"\n"].concat();
        for piece in [chunk, lines] {
            let mut decoder = Decoder::default();
            let refused =
                (0..=MAX_MESSAGE / piece.len() + 1).any(|_| decoder.push(&piece).is_err());
            assert!(refused);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, size in 1usize..9) {
            let mut decoder = Decoder::default();
            for chunk in bytes.chunks(size) {
                decoder.push(chunk).unwrap();
            }
        }
    }
}
