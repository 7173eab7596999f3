//! The session file: pretty-printed JSON whose small fields come first, so that a listing needs
//! to read its beginning only.

use std::collections::VecDeque;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::str;
use std::sync::Arc;
use std::thread;

use caliban_model::{Message, Reasoning, Role, Usage};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::accounts::Accounts;
use crate::blobs::Blobs;
use crate::disk::{Disk, DiskReader};
use crate::error::{Error, Warning};
use crate::listing::threads;
use crate::name::SessionName;
use crate::past::{Earlier, Past, Piece};
use crate::paths::Paths;
use crate::record::{FORMAT, Notice, path as path_text};
use crate::replace::replace;
use crate::state::{Replica, SessionState, Turn, title};
use crate::stored::{OpenCall, Stored};

/// Bytes of a session file.
const LARGEST: u64 = 2 << 30;
/// A record's number beyond which nobody has counted.
const LARGEST_SEQ: u64 = 1 << 53;
/// The length from which on a session is read by several threads.
const LONG: usize = 4 << 20;
/// How far a listing reads, in steps.
const HEAD: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 512 << 10];
/// Messages among which the first prompt is looked for.
const BEFORE_PROMPT: usize = 8;
/// What ends the small fields in a file that was written here. Inside a text it cannot occur.
const MESSAGES: &[u8] = b",\n  \"messages\": [";

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    name: &'a str,
    session_id: Uuid,
    named: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    provider: &'a str,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'a str>,
    plan_mode: bool,
    #[serde(serialize_with = "path_text")]
    cwd: &'a Path,
    program_version: &'a str,
    created_at: Timestamp,
    updated_at: Timestamp,
    turns: u64,
    total_usage: Usage,
    cost: Decimal,
    journal_seq: u64,
    #[serde(skip_serializing_if = "Accounts::is_empty")]
    accounts: &'a Accounts,
    messages: Vec<Stored<'a, Message>>,
    todos: &'a Value,
    turn: Turn,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Stored<'a, OpenCall>>,
    #[serde(skip_serializing_if = "<[Notice]>::is_empty")]
    notices: &'a [Notice],
    #[serde(skip_serializing_if = "Option::is_none")]
    past: Option<WrittenPast<'a>>,
    #[serde(skip_serializing_if = "<[Box<RawValue>]>::is_empty")]
    unknown_records: &'a [Box<RawValue>],
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

/// A session file as it is read: everything may be missing, in any order. The large parts stay
/// text until they are wanted.
#[derive(Debug, Deserialize)]
pub(crate) struct Snapshot<'a> {
    #[serde(default)]
    format: u32,
    #[serde(default, rename = "name")]
    _name: IgnoredAny,
    #[serde(default, rename = "named")]
    _named: IgnoredAny,
    #[serde(default)]
    pub(crate) session_id: Option<Uuid>,
    #[serde(default)]
    pub(crate) parent: Option<Uuid>,
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) model: String,
    #[serde(default)]
    effort: Option<Reasoning>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    plan_mode: bool,
    #[serde(default)]
    pub(crate) cwd: PathBuf,
    #[serde(default)]
    program_version: String,
    #[serde(default)]
    pub(crate) created_at: Option<Timestamp>,
    #[serde(default)]
    pub(crate) updated_at: Option<Timestamp>,
    #[serde(default)]
    pub(crate) turns: u64,
    #[serde(default)]
    pub(crate) total_usage: Usage,
    #[serde(default)]
    pub(crate) cost: Decimal,
    #[serde(default)]
    pub(crate) journal_seq: Option<u64>,
    /// None of them is better than no session.
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) accounts: Accounts,
    #[serde(default, borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(default)]
    todos: Option<Value>,
    #[serde(default)]
    turn: Turn,
    #[serde(default, borrow)]
    calls: Vec<&'a RawValue>,
    #[serde(default)]
    notices: Vec<Notice>,
    #[serde(default, borrow)]
    past: Option<ReadPast<'a>>,
    #[serde(default)]
    unknown_records: Vec<Box<RawValue>>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// What the conversation was before, as it is written.
#[derive(Serialize)]
struct WrittenPast<'a> {
    epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rewound: Option<&'a str>,
    replaced: Vec<Vec<WrittenPiece<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum WrittenPiece<'a> {
    Same(usize, usize),
    Was(Stored<'a, Message>),
}

/// The same as it is read.
#[derive(Debug, Deserialize)]
struct ReadPast<'a> {
    epoch: u64,
    #[serde(default)]
    rewound: Option<String>,
    #[serde(default, borrow)]
    replaced: Vec<Vec<ReadPiece<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReadPiece<'a> {
    Same(usize, usize),
    #[serde(borrow)]
    Was(&'a RawValue),
}

impl<'a> WrittenPast<'a> {
    /// Nothing where nothing ever happened.
    fn of(past: &'a Past, blobs: &mut Blobs) -> io::Result<Option<Self>> {
        if *past == Past::default() {
            return Ok(None);
        }
        let mut replaced = Vec::with_capacity(past.replaced.len());
        for earlier in &past.replaced {
            let pieces = earlier.0.iter().map(|piece| match piece {
                Piece::Same { from, count } => Ok(WrittenPiece::Same(*from, *count)),
                Piece::Was(message) => blobs.store(&**message).map(WrittenPiece::Was),
            });
            replaced.push(pieces.collect::<io::Result<_>>()?);
        }
        Ok(Some(Self {
            epoch: past.epoch,
            rewound: past.rewound(),
            replaced,
        }))
    }
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct SnapshotText {
    path: PathBuf,
    text: String,
    modified: Timestamp,
}

/// Writes the session file of a session; returns its size.
pub(crate) fn write(
    disk: &dyn Disk,
    paths: &Paths,
    replica: &Replica,
    blobs: &mut Blobs,
) -> io::Result<u64> {
    let state = &replica.state;
    let messages = state.messages.iter().map(|message| blobs.store(&**message));
    let messages = messages.collect::<io::Result<_>>()?;
    let calls = replica.calls.iter().map(|call| blobs.store(call));
    let calls = calls.collect::<io::Result<_>>()?;
    let past = WrittenPast::of(&state.past, blobs)?;
    let written = Written {
        format: FORMAT,
        name: state.name.as_str(),
        session_id: state.session_id,
        named: state.is_named(),
        parent: state.parent,
        title: state.title.as_deref(),
        provider: &state.provider,
        model: &state.model,
        effort: state.effort,
        mode: state.mode.as_deref(),
        plan_mode: state.plan_mode,
        cwd: &state.cwd,
        program_version: &state.program_version,
        created_at: state.created_at,
        updated_at: state.updated_at,
        turns: state.turns,
        total_usage: state.usage,
        cost: state.cost,
        journal_seq: replica.seq,
        accounts: &state.accounts,
        messages,
        todos: &state.todos,
        turn: replica.turn,
        calls,
        notices: &state.notices,
        past,
        unknown_records: &replica.unknown,
        extra: &replica.extra,
    };
    let path = paths.snapshot();
    replace(disk, &path, &Paths::replacement(&path), |file| {
        serde_json::to_writer_pretty(&mut *file, &written)?;
        file.write_all(b"\n")
    })
}

impl Snapshot<'_> {
    /// The title, or what the first prompt would make of it.
    pub(crate) fn title_or_prompt(&self) -> Option<String> {
        self.title.clone().or_else(|| {
            let messages = self.messages.iter().take(BEFORE_PROMPT);
            messages
                .filter_map(|raw| serde_json::from_str::<Message>(raw.get()).ok())
                .filter(|message| message.role == Role::User)
                .find_map(|message| title(&message))
        })
    }
}

impl SnapshotText {
    /// Reads a whole session file; nothing if there is none.
    pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, Error> {
        let Some(mut reader) = open(disk, path)? else {
            return Ok(None);
        };
        let len = disk.stat(path).ok().flatten().map_or(0, |stat| stat.len);
        let bytes = read_all(&mut *reader, path, len)?;
        Self::of(disk, path, bytes).map(Some)
    }

    /// Reads the small fields of a session file: its beginning where they are there, and all of
    /// it where they are not.
    pub(crate) fn read_head(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, Error> {
        let Some(mut reader) = open(disk, path)? else {
            return Ok(None);
        };
        // Room for one byte more, or the end of a file that fits exactly is looked for elsewhere.
        let mut bytes = Vec::with_capacity(HEAD[0] + 1);
        for limit in HEAD {
            let wanted = (limit - bytes.len()) as u64;
            (&mut *reader)
                .take(wanted)
                .read_to_end(&mut bytes)
                .map_err(Error::io("read", path))?;
            if let Some(text) = small_fields(&bytes) {
                return Ok(Some(Self {
                    path: path.to_owned(),
                    text,
                    modified: Timestamp::UNIX_EPOCH,
                }));
            }
        }
        reader
            .seek(SeekFrom::Start(0))
            .map_err(Error::io("read", path))?;
        let bytes = read_all(&mut *reader, path, 0)?;
        Self::of(disk, path, bytes).map(Some)
    }

    fn of(disk: &dyn Disk, path: &Path, bytes: Vec<u8>) -> Result<Self, Error> {
        let stat = disk.stat(path).map_err(Error::io("read", path))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let (line, column) = position(&error.as_bytes()[..valid]);
            not_understood(path, line, column, "it is not UTF-8")
        })?;
        Ok(Self {
            path: path.to_owned(),
            text,
            modified: stat.map_or(Timestamp::UNIX_EPOCH, |stat| stat.modified),
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.text.len() as u64
    }

    pub(crate) fn parse(&self) -> Result<Snapshot<'_>, Error> {
        if self.text.trim().is_empty() {
            return Err(not_understood(&self.path, 1, 1, "it is empty"));
        }
        let mut snapshot: Snapshot<'_> = serde_json::from_str(&self.text).map_err(|error| {
            not_understood(&self.path, error.line(), error.column(), &error.to_string())
        })?;
        if snapshot.format > FORMAT {
            return Err(Error::Newer {
                path: self.path.clone(),
                format: snapshot.format,
            });
        }
        snapshot.journal_seq = snapshot.journal_seq.filter(|seq| *seq <= LARGEST_SEQ);
        let updated_at = *snapshot.updated_at.get_or_insert(self.modified);
        snapshot.created_at.get_or_insert(updated_at);
        Ok(snapshot)
    }

    /// The session that a snapshot of this text describes.
    pub(crate) fn replica(
        &self,
        snapshot: Snapshot<'_>,
        name: SessionName,
        session_id: Uuid,
        blobs: &Blobs,
        warnings: &mut Vec<Warning>,
    ) -> Result<Replica, Error> {
        let messages = self.messages(&snapshot.messages, blobs, warnings)?;
        let mut calls = Vec::with_capacity(snapshot.calls.len());
        for raw in &snapshot.calls {
            let call = blobs.restore::<OpenCall>(raw, warnings);
            calls.push(call.map_err(|error| self.misread(raw, &error))?);
        }
        let past = self.past(snapshot.past.as_ref(), blobs, warnings)?;
        let created_at = snapshot.created_at.unwrap_or(self.modified);
        let title = snapshot.title_or_prompt();
        let state = SessionState {
            name,
            session_id,
            parent: snapshot.parent,
            title,
            provider: snapshot.provider,
            model: snapshot.model,
            effort: snapshot.effort,
            mode: snapshot.mode,
            plan_mode: snapshot.plan_mode,
            todos: snapshot.todos.unwrap_or(Value::Array(Vec::new())),
            cwd: snapshot.cwd,
            program_version: snapshot.program_version,
            created_at,
            updated_at: snapshot.updated_at.unwrap_or(created_at),
            turns: snapshot.turns,
            usage: snapshot.total_usage,
            cost: snapshot.cost,
            accounts: snapshot.accounts,
            messages,
            notices: snapshot.notices,
            past,
        };
        Ok(Replica {
            state,
            seq: snapshot.journal_seq.unwrap_or_default(),
            turn: snapshot.turn,
            calls,
            unknown: snapshot.unknown_records,
            extra: snapshot.extra,
        })
    }

    /// The messages, of a long conversation in several threads: whoever opens it again waits.
    fn messages(
        &self,
        raw: &[&RawValue],
        blobs: &Blobs,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<Arc<Message>>, Error> {
        let restored = |raw: &[&RawValue]| {
            let mut warnings = Vec::new();
            let messages = raw.iter().map(|raw| {
                let message = blobs.restore::<Message>(raw, &mut warnings);
                message
                    .map(Arc::new)
                    .map_err(|error| self.misread(raw, &error))
            });
            let messages = messages.collect::<Result<Vec<_>, Error>>();
            messages.map(|messages| (messages, warnings))
        };
        let threads = if self.text.len() < LONG { 1 } else { threads() };
        let share = raw.len().div_ceil(threads).max(1);
        let parts: Vec<_> = thread::scope(|scope| {
            let mut shares = raw.chunks(share);
            let own = shares.next().unwrap_or_default();
            let others: Vec<_> = shares
                .map(|raw| scope.spawn(move || restored(raw)))
                .collect();
            let others = others.into_iter().map(|other| match other.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(restored(own)).chain(others).collect()
        });
        let mut messages = Vec::with_capacity(raw.len());
        for part in parts {
            let (part, told) = part?;
            messages.extend(part);
            warnings.extend(told);
        }
        Ok(messages)
    }

    fn past(
        &self,
        read: Option<&ReadPast<'_>>,
        blobs: &Blobs,
        warnings: &mut Vec<Warning>,
    ) -> Result<Past, Error> {
        let Some(read) = read else {
            return Ok(Past::default());
        };
        let mut replaced = VecDeque::with_capacity(read.replaced.len());
        for pieces in &read.replaced {
            let pieces = pieces.iter().map(|piece| match piece {
                ReadPiece::Same(from, count) => Ok(Piece::Same {
                    from: *from,
                    count: *count,
                }),
                ReadPiece::Was(raw) => {
                    let message = blobs.restore::<Message>(raw, warnings);
                    let message = message.map_err(|error| self.misread(raw, &error))?;
                    Ok(Piece::Was(Arc::new(message)))
                }
            });
            replaced.push_back(Earlier(pieces.collect::<Result<_, Error>>()?));
        }
        Ok(Past {
            epoch: read.epoch,
            replaced,
            rewound: read.rewound.clone(),
        })
    }

    /// An error in a part of the file, placed in the file.
    fn misread(&self, part: &RawValue, error: &serde_json::Error) -> Error {
        let start = part.get().as_ptr().addr() - self.text.as_ptr().addr();
        let (line, column) = position(&self.text.as_bytes()[..start]);
        // An error without a position stands where the part begins.
        let (line, column) = match (error.line(), error.column()) {
            (0, _) => (line, column),
            (1, within) => (line, column + within.saturating_sub(1)),
            (lines, within) => (line + lines - 1, within),
        };
        not_understood(&self.path, line, column, &error.to_string())
    }
}

/// The id of a session whose file has none: always the same for the same file.
pub(crate) fn derived_id(name: &SessionName, created_at: Option<Timestamp>) -> Uuid {
    Uuid::parse_str(name.as_str()).unwrap_or_else(|_| {
        let digest = Sha256::digest(format!("{name} {created_at:?}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    })
}

/// Accounts as they are written, and none where somebody wrote something else.
fn lenient<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Accounts, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// The small fields as a document of their own, if the beginning of a file has all of them.
fn small_fields(head: &[u8]) -> Option<String> {
    let end = head
        .windows(MESSAGES.len())
        .position(|window| window == MESSAGES)?;
    let text = format!("{}\n}}", str::from_utf8(&head[..end]).ok()?);
    let snapshot: Snapshot<'_> = serde_json::from_str(&text).ok()?;
    let is_complete = snapshot.session_id.is_some()
        && snapshot.created_at.is_some()
        && snapshot.updated_at.is_some()
        && snapshot.journal_seq.is_some();
    is_complete.then_some(text)
}

fn open(disk: &dyn Disk, path: &Path) -> Result<Option<Box<dyn DiskReader>>, Error> {
    match disk.read(path) {
        Ok(reader) => Ok(Some(reader)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// Everything in a file that probably has this length.
fn read_all(reader: &mut dyn DiskReader, path: &Path, len: u64) -> Result<Vec<u8>, Error> {
    // One more, so that the end is seen without room for twice as much.
    let len = usize::try_from(len.min(LARGEST) + 1).unwrap_or_default();
    let mut bytes = Vec::with_capacity(len);
    reader
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(Error::io("read", path))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            limit: LARGEST,
        });
    }
    Ok(bytes)
}

pub(crate) fn not_understood(path: &Path, line: usize, column: usize, problem: &str) -> Error {
    // The position stands in front; the parser repeats it.
    let problem = problem.split(" at line ").next().unwrap_or(problem);
    Error::Snapshot {
        path: path.to_owned(),
        line,
        column,
        problem: problem.to_owned(),
    }
}

/// Line and column of what follows a text.
fn position(before: &[u8]) -> (usize, usize) {
    let lines = before.split(|byte| *byte == b'\n');
    let (count, last) = lines.fold((0, 0), |(count, _), line| (count + 1, line.len()));
    (count, last + 1)
}
