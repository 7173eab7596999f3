//! Server-sent events, split anywhere by the network and bounded in size.

use std::borrow::Cow;

/// The most one event may hold: larger than any image or tool call that is sent, small enough that
/// a hostile server cannot exhaust memory.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;

/// One event. A field that did not come is absent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: Option<String>,
    pub data: Option<String>,
    pub id: Option<String>,
    pub retry: Option<u64>,
}

/// An event grew past [`MAX_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a single event is larger than {} MiB", MAX_EVENT / (1024 * 1024))]
pub struct EventTooLarge;

/// Collects bytes and yields events. Holds at most one unfinished event. Lines end with LF, CRLF
/// or CR; text is decoded line by line, so that a code point split between chunks is whole again.
/// Invalid UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    /// The last byte was a CR that ended a line: a following LF belongs to it.
    after_cr: bool,
    event: Event,
}

impl Events {
    /// Takes in what came and hands on what it completed.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(Event)) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        while let Some((&first, after_first)) = rest.split_first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = after_first;
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                break;
            };
            let line = &rest[..end];
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            // A line that came in one piece is read where it stands.
            let ended = if self.line.is_empty() {
                self.take(line)
            } else {
                self.line.extend_from_slice(line);
                self.end_line()
            };
            ended.into_iter().for_each(&mut sink);
            self.check_size()?;
        }
        self.check_size()
    }

    /// The body ended, for senders that leave out the blank line after the last event.
    pub fn finish(&mut self) -> Option<Event> {
        self.end_line().or_else(|| self.end_event())
    }

    fn check_size(&self) -> Result<(), EventTooLarge> {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let Event {
            kind,
            data,
            id,
            retry: _,
        } = &self.event;
        if self.line.len() + length(kind) + length(data) + length(id) > MAX_EVENT {
            return Err(EventTooLarge);
        }
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        self.take(&line)
    }

    /// A blank line ends an event.
    fn take(&mut self, line: &[u8]) -> Option<Event> {
        if line.is_empty() {
            return self.end_event();
        }
        // What is sound, as nearly everything is, needs no second look.
        let line = match str::from_utf8(line) {
            Ok(line) => Cow::Borrowed(line),
            Err(_) => String::from_utf8_lossy(line),
        };
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
            // Comments have no field name.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        (event != Event::default()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        let mut events = Events::default();
        let mut found = Vec::new();
        for chunk in chunks {
            events.push(chunk, |event| found.push(event)).unwrap();
        }
        found
    }

    fn event(kind: Option<&str>, data: Option<&str>) -> Event {
        Event {
            kind: kind.map(str::to_owned),
            data: data.map(str::to_owned),
            ..Event::default()
        }
    }

    const STREAM: &[u8] = ": hi\r\n\r\nevent: endpoint\r\ndata: /m?é✓\r\n\r\nid: 7\nretry: 10\ndata:a\ndata: b\n\revent: nothing\n\ndata: unfinished".as_bytes();

    #[test]
    fn all_forms_are_read_and_a_split_at_any_byte_changes_nothing() {
        let whole = read(&[STREAM]);
        let lines = Event {
            data: Some("a\nb".to_owned()),
            id: Some("7".to_owned()),
            retry: Some(10),
            kind: None,
        };
        assert_eq!(
            whole,
            [
                event(Some("endpoint"), Some("/m?é✓")),
                lines,
                event(Some("nothing"), None)
            ]
        );
        for at in 0..=STREAM.len() {
            let (left, right) = STREAM.split_at(at);
            assert_eq!(read(&[left, right]), whole);
        }
        let single: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(read(&single), whole);
    }

    #[test]
    fn the_last_event_may_lack_its_end() {
        let mut events = Events::default();
        events.push(STREAM, |_| {}).unwrap();
        assert_eq!(events.finish(), Some(event(None, Some("unfinished"))));
        assert_eq!(events.finish(), None);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let chunk = vec![b'x'; 1024 * 1024];
        let lines = [b"data: ".as_slice(), &chunk, b"\n"].concat();
        for piece in [chunk, lines] {
            let mut events = Events::default();
            let refused =
                (0..=MAX_EVENT / piece.len() + 1).any(|_| events.push(&piece, |_| {}).is_err());
            assert!(refused);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_chunks_are_survived(bytes: Vec<u8>, size in 1usize..9) {
            let mut events = Events::default();
            for chunk in bytes.chunks(size) {
                events.push(chunk, |_| {}).unwrap();
            }
            events.finish();
        }
    }
}
