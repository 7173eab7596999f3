//! The end of a conversation, read from the ends of its files: what a first screen shows while all
//! of it is still being read. It may be wrong about what an interruption left, and never says so.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::str;
use std::sync::Arc;

use caliban_model::Message;

use crate::blobs::Blobs;
use crate::disk::Disk;
use crate::line::{Content, Line};
use crate::paths::Paths;
use crate::record::Record;
use crate::snapshot::SnapshotText;

/// Bytes of each file's end that are looked at, growing until there are enough messages.
const WINDOWS: [u64; 3] = [128 << 10, 1 << 20, 8 << 20];
const ENOUGH: usize = 8;
/// Bytes of a journal's beginning that its header is in.
const HEADER: u64 = 16 << 10;
/// What follows the messages of a session file. Inside a text it cannot occur.
const AFTER_MESSAGES: &[u8] = b"\n  ],\n  \"todos\":";
/// How one of them begins.
const MESSAGE: &[u8] = b"\n    {";

/// The end of a file.
struct End {
    bytes: Vec<u8>,
    extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// Something stands before it.
    Part,
}

/// Messages in their order, and whether others come before them.
struct Messages {
    found: Vec<Arc<Message>>,
    extent: Extent,
}

/// The last messages of a session; none where the ends of its files do not tell.
pub(crate) fn tail(disk: &dyn Disk, paths: &Paths, blobs: &Blobs) -> Vec<Arc<Message>> {
    let mut last = Vec::new();
    for window in WINDOWS {
        let Ok(messages) = within(disk, paths, blobs, window) else {
            return last;
        };
        last = messages.found;
        if last.len() >= ENOUGH || messages.extent == Extent::Whole {
            break;
        }
    }
    last
}

fn within(disk: &dyn Disk, paths: &Paths, blobs: &Blobs, window: u64) -> io::Result<Messages> {
    let journal = end(disk, &paths.journal(), window)?;
    let head = SnapshotText::read_head(disk, &paths.snapshot()).map_err(io::Error::other)?;
    let head = head.as_ref().map(SnapshotText::parse).transpose();
    let head = head.map_err(io::Error::other)?;
    let base = head.as_ref().and_then(|head| head.journal_seq);
    let own = head.as_ref().and_then(|head| head.session_id);
    let journal = match journal {
        Some(journal) if own.is_none() || header_id(disk, &paths.journal())? == own => {
            recorded(&journal, base.unwrap_or_default(), blobs)
        }
        // It is another session's.
        Some(_) | None => Messages {
            found: Vec::new(),
            extent: Extent::Whole,
        },
    };
    if journal.extent == Extent::Part || head.is_none() {
        return Ok(journal);
    }
    let Some(snapshot) = end(disk, &paths.snapshot(), window)? else {
        return Ok(journal);
    };
    let mut messages = written(&snapshot, blobs);
    messages.found.extend(journal.found);
    Ok(messages)
}

/// The last bytes of a file; nothing if there is none.
fn end(disk: &dyn Disk, path: &Path, window: u64) -> io::Result<Option<End>> {
    let mut reader = match disk.read(path) {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = reader.seek(SeekFrom::End(0))?;
    let start = len.saturating_sub(window);
    reader.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    reader.take(window).read_to_end(&mut bytes)?;
    let extent = if start == 0 {
        Extent::Whole
    } else {
        Extent::Part
    };
    Ok(Some(End { bytes, extent }))
}

/// Whose journal it is.
fn header_id(disk: &dyn Disk, path: &Path) -> io::Result<Option<uuid::Uuid>> {
    let mut bytes = Vec::new();
    disk.read(path)?.take(HEADER).read_to_end(&mut bytes)?;
    let header = lines(&bytes).next().and_then(|line| line.header());
    Ok(header.map(|header| header.session_id))
}

/// The messages that a journal has after record `base`.
fn recorded(journal: &End, base: u64, blobs: &Blobs) -> Messages {
    let mut messages = Messages {
        found: Vec::new(),
        extent: journal.extent,
    };
    for line in lines(&journal.bytes) {
        if line.seq <= base {
            // Everything since the snapshot is among these lines.
            messages.extent = Extent::Whole;
            continue;
        }
        let resolved = blobs.resolve::<Record>(line.text(), &mut Vec::new());
        match line.content(resolved) {
            Ok(Content::Record(Record::Message(message))) => messages.found.push(message),
            Ok(Content::Record(
                Record::Compacted { messages: new, .. } | Record::Repaired { messages: new, .. },
            )) => {
                // Which of those before it stayed is not told here.
                messages.found = new;
                messages.extent = Extent::Part;
            }
            Ok(Content::Record(_) | Content::Header | Content::Unknown(_)) | Err(_) => {}
        }
    }
    messages
}

/// The messages that the end of a session file has.
fn written(snapshot: &End, blobs: &Blobs) -> Messages {
    let bytes = snapshot.bytes.as_slice();
    let after = bytes
        .windows(AFTER_MESSAGES.len())
        .rposition(|window| window == AFTER_MESSAGES);
    let bytes = &bytes[..after.unwrap_or_default()];
    let starts = bytes
        .windows(MESSAGE.len())
        .enumerate()
        .filter(|(_, window)| *window == MESSAGE)
        .map(|(start, _)| start);
    let starts: Vec<usize> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let texts = starts.iter().zip(ends).filter_map(|(start, end)| {
        let text = str::from_utf8(bytes.get(*start..end)?).ok()?;
        Some(text.trim().trim_end_matches(','))
    });
    Messages {
        found: texts
            .filter_map(|text| message(text, blobs))
            .map(Arc::new)
            .collect(),
        extent: snapshot.extent,
    }
}

fn message(text: &str, blobs: &Blobs) -> Option<Message> {
    match blobs.resolve::<Message>(text, &mut Vec::new()) {
        Some(value) => serde_json::from_value(value).ok(),
        None => serde_json::from_str(text).ok(),
    }
}

/// The whole lines among some bytes.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| Line::parse(line.strip_suffix(b"\n")?).ok())
}
