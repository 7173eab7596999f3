//! AWS event streams: binary messages with checksums, of which each carries one event.

use std::collections::HashMap;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde::Deserialize;

use super::{Exception, Frame, FramingError, Piece};

/// Lengths of message and headers, and their checksum.
const PRELUDE: usize = 12;
/// A checksum at the end.
const TRAILER: usize = 4;
/// The most one message may hold, as the format has it.
const MAX_MESSAGE: usize = 24 * 1024 * 1024;

/// Collects bytes and yields messages. Holds at most one that is unfinished.
#[derive(Debug, Default)]
pub(crate) struct EventStream {
    held: Vec<u8>,
}

/// What a model call's event wraps: the model's own event.
#[derive(Deserialize)]
struct Chunk {
    bytes: String,
}

impl EventStream {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, FramingError> {
        self.held.extend_from_slice(bytes);
        let mut pieces = Vec::new();
        let mut read = 0;
        while let Some(length) = message_length(&self.held[read..])? {
            let end = read + length;
            if self.held.len() < end {
                break;
            }
            pieces.extend(piece(&self.held[read..end])?);
            read = end;
        }
        self.held.drain(..read);
        Ok(pieces)
    }

    /// Whether the body ended inside a message.
    pub(super) fn is_broken_off(&self) -> bool {
        !self.held.is_empty()
    }
}

/// The length of the message that begins here; nothing as long as its prelude is incomplete. A
/// length is believed only behind its checksum.
fn message_length(bytes: &[u8]) -> Result<Option<usize>, FramingError> {
    let Some(prelude) = bytes.get(..PRELUDE) else {
        return Ok(None);
    };
    if crc32fast::hash(&prelude[..8]) != word(&prelude[8..]) {
        return Err(FramingError::Corrupt(
            "the length of a message does not fit its checksum",
        ));
    }
    let total = word(prelude) as usize;
    let headers = word(&prelude[4..]) as usize;
    if !(PRELUDE + TRAILER..=MAX_MESSAGE).contains(&total) || headers > total - PRELUDE - TRAILER {
        return Err(FramingError::Corrupt("a message has an impossible length"));
    }
    Ok(Some(total))
}

fn piece(message: &[u8]) -> Result<Option<Piece>, FramingError> {
    let (content, checksum) = message.split_at(message.len() - TRAILER);
    if crc32fast::hash(content) != word(checksum) {
        return Err(FramingError::Corrupt(
            "a message does not fit its checksum: something between here and the server changed it",
        ));
    }
    let (headers, payload) = content[PRELUDE..].split_at(word(&content[4..]) as usize);
    let headers = read_headers(headers).ok_or(FramingError::Corrupt(
        "the headers of a message cannot be read",
    ))?;
    let header = |name: &str| headers.get(name).copied().unwrap_or_default();
    let text = || String::from_utf8_lossy(payload).into_owned();
    match header(":message-type") {
        "exception" => Ok(Some(Piece::Exception(Exception {
            class: header(":exception-type").to_owned(),
            body: text(),
        }))),
        "error" => Ok(Some(Piece::Exception(Exception {
            class: header(":error-code").to_owned(),
            body: serde_json::json!({"message": header(":error-message")}).to_string(),
        }))),
        _ => event(header(":event-type"), payload).map(|frame| frame.map(Piece::Frame)),
    }
}

fn event(kind: &str, payload: &[u8]) -> Result<Option<Frame>, FramingError> {
    if kind == "initial-response" {
        return Ok(None);
    }
    let unreadable = || FramingError::Corrupt("an event cannot be read");
    let data = match serde_json::from_slice::<Chunk>(payload) {
        Ok(chunk) if kind == "chunk" => {
            let bytes = BASE64_STANDARD.decode(chunk.bytes.as_bytes());
            let bytes = bytes.map_err(|_| unreadable())?;
            String::from_utf8(bytes).map_err(|_| unreadable())?
        }
        Ok(_) | Err(_) => String::from_utf8(payload.to_vec()).map_err(|_| unreadable())?,
    };
    Ok(Some(Frame {
        event: kind.to_owned(),
        data,
    }))
}

/// The headers that are text; others are stepped over.
fn read_headers(mut bytes: &[u8]) -> Option<HashMap<&str, &str>> {
    let mut headers = HashMap::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let (size, rest) = match kind {
            0 | 1 => (0, rest),
            2 => (1, rest),
            3 => (2, rest),
            4 => (4, rest),
            5 | 8 => (8, rest),
            9 => (16, rest),
            6 | 7 => {
                let (size, rest) = rest.split_at_checked(2)?;
                (usize::from(u16::from_be_bytes([size[0], size[1]])), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(size)?;
        if *kind == 7 {
            let (name, value) = (std::str::from_utf8(name), std::str::from_utf8(value));
            headers.insert(name.ok()?, value.ok()?);
        }
        bytes = rest;
    }
    Some(headers)
}

/// The big-endian number at the start; zero where there is none.
fn word(bytes: &[u8]) -> u32 {
    match bytes {
        [a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As AWS's own client reads them.
    const PING: &str = "0000007b0000004b0a2e96af0b3a6576656e742d747970650700056368756e6b0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b226279746573223a2265794a306558426c496a6f6963476c755a794a39227da01f56c4";
    const THROTTLED: &str = "00000090000000618e91a9b70f3a657863657074696f6e2d747970650700137468726f74746c696e67457863657074696f6e0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d74797065070009657863657074696f6e7b226d657373616765223a22546f6f206d616e79207265717565737473227de67f8005";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    fn expected() -> Vec<Piece> {
        vec![
            Piece::Frame(Frame {
                event: "chunk".into(),
                data: r#"{"type":"ping"}"#.into(),
            }),
            Piece::Exception(Exception {
                class: "throttlingException".into(),
                body: r#"{"message":"Too many requests"}"#.into(),
            }),
        ]
    }

    #[test]
    fn the_vendors_own_messages_are_read_however_they_are_cut() {
        let stream = [bytes(PING), bytes(THROTTLED)].concat();
        for size in [1, 2, 7, 100, 4096] {
            let mut reader = EventStream::default();
            let found: Vec<Piece> = stream
                .chunks(size)
                .flat_map(|chunk| reader.push(chunk).unwrap())
                .collect();
            assert_eq!(found, expected());
            assert!(!reader.is_broken_off());
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let message = bytes(PING);
        for at in 0..message.len() {
            let mut changed = message.clone();
            changed[at] ^= 0x10;
            assert!(EventStream::default().push(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_message_that_breaks_off_is_waited_for() {
        let mut reader = EventStream::default();
        assert_eq!(reader.push(&bytes(PING)[..50]), Ok(Vec::new()));
        assert!(reader.is_broken_off());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, size in 1usize..40) {
            let mut reader = EventStream::default();
            for chunk in bytes.chunks(size) {
                if reader.push(chunk).is_err() {
                    break;
                }
            }
        }

        #[test]
        fn any_headers_are_survived(bytes: Vec<u8>) {
            let _ = read_headers(&bytes);
        }
    }
}
