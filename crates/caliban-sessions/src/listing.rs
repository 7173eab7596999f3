//! What there is to resume, read from the ends of files only: the head of a snapshot, and the
//! head and tail of a journal that goes on after it.

use std::cmp::Reverse;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;

use caliban_model::{Message, Role, Usage};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;
use uuid::Uuid;

use crate::accounts::Accounts;
use crate::disk::{Disk, DiskReader};
use crate::error::{Error, Warning};
use crate::line::Line;
use crate::name::SessionName;
use crate::paths::Paths;
use crate::record::{FORMAT, Header, Record, Totals};
use crate::snapshot::{Snapshot, SnapshotText, derived_id};
use crate::state::{is_named, title};

/// Bytes of a journal's beginning that are looked at.
const HEAD: u64 = 16 << 10;
/// Bytes of a journal's end that are looked at, growing until a turn's end is among them. If
/// none is, what lies between the snapshot and there is missing from the sums.
const TAIL: [u64; 3] = [16 << 10, 128 << 10, 1 << 20];

/// Sessions that one thread looks at before another helps it, and how many there are at most.
const SHARE: usize = 128;
const THREADS: usize = 4;

/// A session as it is listed.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub name: SessionName,
    pub session_id: Uuid,
    pub parent: Option<Uuid>,
    pub title: Option<String>,
    pub provider: String,
    pub model: String,
    pub cwd: PathBuf,
    pub turns: u64,
    pub usage: Usage,
    pub cost: Decimal,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// All sessions, the most recently updated first, and what could not be listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    pub summaries: Vec<Summary>,
    pub warnings: Vec<Warning>,
}

impl Listing {
    fn of(disk: &dyn Disk, directory: &Path, names: &[SessionName]) -> Self {
        let mut listing = Self::default();
        for name in names {
            let paths = Paths::new(directory, name.clone());
            match summarise(disk, &paths) {
                Ok(Some(summary)) => listing.summaries.push(summary),
                // Removed meanwhile.
                Ok(None) => {}
                Err(error) => listing.warnings.push(Warning::Unlisted {
                    path: paths.snapshot(),
                    problem: error.to_string(),
                }),
            }
        }
        listing
    }

    fn append(&mut self, mut other: Self) {
        self.summaries.append(&mut other.summaries);
        self.warnings.append(&mut other.warnings);
    }
}

/// How many threads work side by side.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS))
}

impl Summary {
    /// Whether a person gave the name.
    pub fn is_named(&self) -> bool {
        is_named(&self.name, self.session_id)
    }

    /// Whether anything was ever asked in it: what was asked gives the title, and an answer came
    /// to what has no words.
    pub fn has_prompt(&self) -> bool {
        self.title.is_some() || self.turns > 0
    }

    /// Every token, read or written.
    pub fn total_tokens(&self) -> u64 {
        self.usage.total_input() + self.usage.output
    }
}

/// The names of all sessions of a directory.
pub(crate) fn names(disk: &dyn Disk, directory: &Path) -> Result<Vec<SessionName>, Error> {
    let mut names: Vec<SessionName> = disk
        .list(directory)
        .map_err(Error::io("list", directory))?
        .iter()
        .filter_map(|file| {
            let (name, kind) = file.split_once('.')?;
            matches!(kind, "json" | "journal").then(|| SessionName::new(name).ok())?
        })
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Lists a directory.
pub(crate) fn list(disk: &dyn Disk, directory: &Path) -> Result<Listing, Error> {
    let names = names(disk, directory)?;
    let share = names.len().div_ceil(threads()).max(SHARE);
    let mut listing = Listing::default();
    let mut shares = names.chunks(share);
    let own = shares.next().unwrap_or_default();
    thread::scope(|scope| {
        let helpers: Vec<_> = shares
            .map(|names| scope.spawn(|| Listing::of(disk, directory, names)))
            .collect();
        listing.append(Listing::of(disk, directory, own));
        for helper in helpers {
            match helper.join() {
                Ok(part) => listing.append(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    listing
        .summaries
        .sort_by_key(|summary| Reverse(summary.updated_at));
    Ok(listing)
}

/// The summary of a session; nothing if there is none.
pub(crate) fn summarise(disk: &dyn Disk, paths: &Paths) -> Result<Option<Summary>, Error> {
    let found = summary_with_accounts(disk, paths)?;
    Ok(found.map(|found| found.summary))
}

/// A summary, the accounts of its session file, and the last record that these have.
pub(crate) struct Found {
    pub(crate) summary: Summary,
    pub(crate) accounts: Accounts,
    pub(crate) base: u64,
}

pub(crate) fn summary_with_accounts(
    disk: &dyn Disk,
    paths: &Paths,
) -> Result<Option<Found>, Error> {
    let path = paths.journal();
    // In this order, as when a session is loaded.
    let journal = match disk.read(&path) {
        Ok(reader) => Some(Ends::read(reader).map_err(Error::io("read", &path))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    let text = SnapshotText::read_head(disk, &paths.snapshot())?;
    if journal.is_none() && text.is_none() {
        return Ok(None);
    }
    let mut snapshot = text.as_ref().map(SnapshotText::parse).transpose()?;
    let accounts = snapshot
        .as_mut()
        .map(|snapshot| std::mem::take(&mut snapshot.accounts));
    let header = journal.as_ref().and_then(Ends::header);
    if let Some(header) = &header
        && header.format > FORMAT
    {
        return Err(Error::Newer {
            path,
            format: header.format,
        });
    }
    let is_foreign = match (&header, snapshot.as_ref().and_then(|s| s.session_id)) {
        (Some(header), Some(id)) => header.session_id != id,
        _ => false,
    };
    let (journal, header) = if is_foreign {
        (None, None)
    } else {
        (journal, header)
    };
    let base = snapshot
        .as_ref()
        .and_then(|snapshot| snapshot.journal_seq)
        .or(header.as_ref().map(|header| header.base))
        .unwrap_or_default();
    let mut summary = match (snapshot, header) {
        (Some(snapshot), header) => from_snapshot(paths, snapshot, header.as_deref()),
        (None, header) => from_header(paths, header.as_deref()),
    };
    if let Some(journal) = journal {
        journal.bring_up_to_date(&mut summary, base);
    }
    Ok(Some(Found {
        summary,
        accounts: accounts.unwrap_or_default(),
        base,
    }))
}

fn from_snapshot(paths: &Paths, snapshot: Snapshot<'_>, header: Option<&Header>) -> Summary {
    let name = paths.name.clone();
    let title = snapshot.title_or_prompt();
    let session_id = snapshot
        .session_id
        .or(header.map(|header| header.session_id))
        .unwrap_or_else(|| derived_id(&name, snapshot.created_at));
    Summary {
        name,
        session_id,
        parent: snapshot.parent,
        title,
        provider: snapshot.provider,
        model: snapshot.model,
        cwd: snapshot.cwd,
        turns: snapshot.turns,
        usage: snapshot.total_usage,
        cost: snapshot.cost,
        created_at: snapshot.created_at.unwrap_or(Timestamp::UNIX_EPOCH),
        updated_at: snapshot.updated_at.unwrap_or(Timestamp::UNIX_EPOCH),
    }
}

fn from_header(paths: &Paths, header: Option<&Header>) -> Summary {
    let name = paths.name.clone();
    let id = header.map_or_else(|| derived_id(&name, None), |header| header.session_id);
    let created_at = header.map_or(Timestamp::UNIX_EPOCH, |header| header.created_at);
    let text = |of: fn(&Header) -> &String| header.map(of).cloned().unwrap_or_default();
    Summary {
        name,
        session_id: id,
        parent: header.and_then(|header| header.parent),
        title: None,
        provider: text(|header| &header.provider),
        model: text(|header| &header.model),
        cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
        turns: 0,
        usage: Usage::default(),
        cost: Decimal::ZERO,
        created_at,
        updated_at: created_at,
    }
}

/// The two ends of a journal.
struct Ends {
    head: Vec<u8>,
    /// Nothing where the head is all there is.
    tail: Vec<u8>,
}

impl Ends {
    fn read(mut reader: Box<dyn DiskReader>) -> io::Result<Self> {
        let mut head = Vec::new();
        (&mut reader).take(HEAD).read_to_end(&mut head)?;
        let len = reader.seek(SeekFrom::End(0))?;
        let mut tail = Vec::new();
        if len <= HEAD {
            return Ok(Self { head, tail });
        }
        for window in TAIL {
            let start = len.saturating_sub(window);
            reader.seek(SeekFrom::Start(start))?;
            tail.clear();
            (&mut reader).take(window).read_to_end(&mut tail)?;
            let has_turn = lines(&tail).any(|line| line.kind() == TURN_ENDED);
            if has_turn || start == 0 {
                break;
            }
        }
        Ok(Self { head, tail })
    }

    fn header(&self) -> Option<Box<Header>> {
        lines(&self.head).next()?.header()
    }

    /// Adds what the journal says after record `base`.
    fn bring_up_to_date(&self, summary: &mut Summary, base: u64) {
        let is_new = |line: &Line<'_>| line.seq > base;
        let head = lines(&self.head).filter(is_new).collect::<Vec<_>>();
        if summary.title.is_none() {
            let mut messages = head.iter().filter(|line| line.kind() == "message");
            summary.title = messages.find_map(prompt);
        }
        let tail = if self.tail.is_empty() {
            head
        } else {
            lines(&self.tail).filter(is_new).collect()
        };
        for line in tail {
            if line.kind() != "header" {
                summary.updated_at = summary.updated_at.max(line.at);
            }
            match line.kind() {
                TURN_ENDED => summary.take_totals(&line),
                "usage" | "state" | "title" => summary.take(&line),
                _ => {}
            }
        }
    }
}

const TURN_ENDED: &str = "turn_ended";

impl Summary {
    fn take_totals(&mut self, line: &Line<'_>) {
        #[derive(Deserialize)]
        struct TurnEnd {
            turn_ended: Totals,
        }
        let Ok(TurnEnd { turn_ended: totals }) = serde_json::from_str(line.text()) else {
            return;
        };
        self.turns = totals.turns;
        self.usage = totals.usage;
        self.cost = totals.cost;
        self.provider = totals.provider;
        self.model = totals.model;
        self.title = totals.title.or(self.title.take());
    }

    fn take(&mut self, line: &Line<'_>) {
        match serde_json::from_str(line.text()) {
            Ok(Record::Usage { usage, cost, .. }) => {
                self.usage += usage;
                self.cost = self.cost.saturating_add(cost.unwrap_or_default());
            }
            Ok(Record::State(change)) => {
                self.provider = change
                    .provider
                    .unwrap_or(std::mem::take(&mut self.provider));
                self.model = change.model.unwrap_or(std::mem::take(&mut self.model));
                self.cwd = change.cwd.unwrap_or(std::mem::take(&mut self.cwd));
            }
            Ok(Record::Title { text }) => self.title = Some(text),
            _ => {}
        }
    }
}

/// The title that a prompt gives.
fn prompt(line: &Line<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Added {
        message: Message,
    }
    let added: Added = serde_json::from_str(line.text()).ok()?;
    (added.message.role == Role::User)
        .then(|| title(&added.message))
        .flatten()
}

/// The whole lines among some bytes.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| Line::parse(line.strip_suffix(b"\n")?).ok())
}
