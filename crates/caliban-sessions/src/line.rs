//! One line of a journal: `{"seq":7,"crc":"89abcdef","at":"…","record":{…}}`. The checksum is
//! that of the number, the time and the record's bytes.

use std::str;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::record::{Header, Record};

/// Bytes of a line, its end included. A record that would be longer goes into a snapshot.
pub(crate) const LONGEST_LINE: usize = 16 << 20;
/// Where the record begins at the latest.
const LONGEST_ENVELOPE: usize = 1024;
const RECORD: &str = ",\"record\":";

/// What surrounds a record.
#[derive(Deserialize)]
struct Envelope<'a> {
    seq: u64,
    crc: &'a str,
    at: &'a str,
}

/// A line whose checksum holds.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    record: &'a str,
}

/// What a line says.
#[derive(Debug)]
pub(crate) enum Content {
    Header,
    Record(Record),
    /// Written by a version that knows more.
    Unknown(Box<RawValue>),
}

/// The line of a record that is JSON already.
pub(crate) fn encode(seq: u64, at: Timestamp, record: &[u8]) -> Vec<u8> {
    let at = at.to_string();
    let crc = checksum(seq, &at, record);
    let mut line =
        format!("{{\"seq\":{seq},\"crc\":\"{crc}\",\"at\":\"{at}\"{RECORD}").into_bytes();
    line.reserve(record.len() + 2);
    line.extend_from_slice(record);
    line.extend_from_slice(b"}\n");
    line
}

fn checksum(seq: u64, at: &str, record: &[u8]) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(format!("{seq} {at} ").as_bytes());
    hasher.update(record);
    format!("{:08x}", hasher.finalize())
}

/// The line of a journal's header.
pub(crate) fn encode_header(
    seq: u64,
    at: Timestamp,
    header: &Header,
) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Wrapped<'a> {
        header: &'a Header,
    }
    Ok(encode(seq, at, &serde_json::to_vec(&Wrapped { header })?))
}

impl<'a> Line<'a> {
    /// Reads a line without its end; the problem if it is damaged.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let text = str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let envelope_end = text.len().min(LONGEST_ENVELOPE);
        let at = text.as_bytes()[..envelope_end]
            .windows(RECORD.len())
            .position(|window| window == RECORD.as_bytes())
            .ok_or("it is not a record")?;
        let envelope = format!("{}}}", &text[..at]);
        let envelope: Envelope<'_> =
            serde_json::from_str(&envelope).map_err(|error| error.to_string())?;
        let record = text[at + RECORD.len()..]
            .strip_suffix('}')
            .ok_or("it has no end")?;
        if checksum(envelope.seq, envelope.at, record.as_bytes()) != envelope.crc {
            return Err("its checksum is wrong".to_owned());
        }
        Ok(Self {
            seq: envelope.seq,
            at: envelope.at.parse().map_err(|_| "it has no time")?,
            record,
        })
    }

    /// The record as it is written.
    pub(crate) fn text(&self) -> &'a str {
        self.record
    }

    /// Which kind of record it is.
    pub(crate) fn kind(&self) -> &'a str {
        self.record
            .strip_prefix("{\"")
            .and_then(|rest| rest.split_once('"'))
            .map_or("", |(kind, _)| kind)
    }

    pub(crate) fn header(&self) -> Option<Box<Header>> {
        #[derive(Deserialize)]
        struct Wrapped {
            header: Box<Header>,
        }
        serde_json::from_str::<Wrapped>(self.record)
            .ok()
            .map(|wrapped| wrapped.header)
    }

    /// What the line says, given its record with whatever was stored elsewhere put back.
    pub(crate) fn content(
        &self,
        restored: Option<serde_json::Value>,
    ) -> serde_json::Result<Content> {
        if self.kind() == "header" {
            return Ok(Content::Header);
        }
        let record = match restored {
            Some(value) => serde_json::from_value(value),
            None => serde_json::from_str(self.record),
        };
        match record {
            Ok(record) => Ok(Content::Record(record)),
            Err(_) => RawValue::from_string(self.record.to_owned()).map(Content::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(record: &Record) -> Vec<u8> {
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        encode(7, at, &serde_json::to_vec(record).unwrap())
    }

    fn title(text: &str) -> Record {
        Record::Title { text: text.into() }
    }

    #[test]
    fn a_line_reads_as_it_was_written() {
        let written = line(&title("a\nb"));
        assert_eq!(
            String::from_utf8(written.clone()).unwrap(),
            "{\"seq\":7,\"crc\":\"60df1dd9\",\"at\":\"2026-01-02T03:04:05Z\",\"record\":{\"title\":{\"text\":\"a\\nb\"}}}\n"
        );
        let read = Line::parse(written.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(read.seq, 7);
        assert_eq!(read.kind(), "title");
        assert!(
            matches!(read.content(None), Ok(Content::Record(record)) if record == title("a\nb"))
        );
    }

    #[test]
    fn what_a_newer_version_wrote_is_kept() {
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        let written = encode(1, at, b"{\"renamed\":{\"to\":3}}");
        let read = Line::parse(written.strip_suffix(b"\n").unwrap()).unwrap();
        assert!(
            matches!(read.content(None), Ok(Content::Unknown(raw)) if raw.get() == "{\"renamed\":{\"to\":3}}")
        );
    }

    proptest! {
        #[test]
        fn a_damaged_line_is_noticed(text in ".{0,40}", position in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut written = line(&title(&text));
            written.pop();
            let index = position.index(written.len());
            written[index] ^= 1 << bit;
            prop_assert!(Line::parse(&written).is_err());
        }

        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Line::parse(&bytes);
        }

        #[test]
        fn a_cut_line_is_noticed(text in ".{0,40}", position in any::<prop::sample::Index>()) {
            let written = line(&title(&text));
            let cut = position.index(written.len() - 1);
            prop_assert!(Line::parse(&written[..cut]).is_err());
        }
    }
}
