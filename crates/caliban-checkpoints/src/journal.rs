//! What a prompt changed so far, one checked line a record, until its manifest is written. After a
//! kill the journal is the manifest.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::manifest::{Coverage, Entry, Manifest};

/// The first record is the head; of several entries for a path the last one counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    Head(Manifest),
    Entry(Box<Entry>),
    Coverage(Coverage),
    /// The prompt was interrupted, and what its calls did meanwhile was found out since.
    Recovered,
}

/// How the prompt of a journal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Unknown,
    Recovered,
}

pub(crate) fn line(record: &Record) -> serde_json::Result<Vec<u8>> {
    checked(record)
}

/// Something as a line that tells whether it is whole.
pub(crate) fn checked<T: Serialize>(it: &T) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_string(it)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes())
}

/// The records up to the first line that is torn or damaged, and what is wrong there.
pub(crate) fn records(bytes: &[u8]) -> (Vec<Record>, Option<&'static str>) {
    checked_lines(bytes)
}

/// The same of lines of any kind.
pub(crate) fn checked_lines<T: DeserializeOwned>(bytes: &[u8]) -> (Vec<T>, Option<&'static str>) {
    let mut records = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match record(line) {
            Some(record) => records.push(record),
            None => return (records, Some("its end is torn or damaged")),
        }
    }
    (records, None)
}

fn record<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (sum, json) = text.split_once(' ')?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    if sum != crc32fast::hash(json.as_bytes()) {
        return None;
    }
    serde_json::from_str(json).ok()
}

/// The manifest that the records make; nothing without a head.
pub(crate) fn manifest(records: Vec<Record>) -> Option<(Manifest, Ending)> {
    let mut records = records.into_iter();
    let Some(Record::Head(mut manifest)) = records.next() else {
        return None;
    };
    let mut entries = std::collections::BTreeMap::new();
    let mut ending = Ending::Unknown;
    for record in records {
        match record {
            Record::Head(_) => return None,
            Record::Recovered => ending = Ending::Recovered,
            Record::Coverage(coverage) => manifest.coverage = Some(coverage),
            Record::Entry(entry) => {
                entries.insert(entry.path()?, *entry);
            }
        }
    }
    manifest.entries = entries.into_values().collect();
    Some((manifest, ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use std::path::Path;

    #[test]
    fn a_torn_end_costs_what_is_torn() {
        let entry = |path: &str| {
            Record::Entry(Box::new(Entry::new(
                Path::new(path),
                &Image::Absent,
                "Write",
            )))
        };
        let mut bytes = line(&entry("a")).unwrap();
        let whole = bytes.len();
        bytes.extend(line(&entry("b")).unwrap());
        for cut in whole + 1..bytes.len() {
            let (records, torn) = records(&bytes[..cut]);
            assert_eq!(records, [entry("a")]);
            assert!(torn.is_some());
        }
        assert_eq!(records(&bytes), (vec![entry("a"), entry("b")], None));
        bytes[whole + 12] ^= 1;
        assert_eq!(records(&bytes).0.len(), 1);
    }
}
