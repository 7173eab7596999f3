//! Puts a session together from its snapshot and its journal, whatever became of either.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::blobs::Blobs;
use crate::disk::{Disk, DiskReader};
use crate::error::{Error, Warning};
use crate::journal::{Found, Scanner};
use crate::line::{Content, Line};
use crate::paths::Paths;
use crate::record::{FORMAT, Header, Record};
use crate::repair::Evidence;
use crate::snapshot::{SnapshotText, derived_id, not_understood};
use crate::state::{NewSession, Replica};

/// Characters of an unknown record's kind that are told.
const LONGEST_KIND: usize = 40;

/// A session as its files have it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) replica: Replica,
    pub(crate) journal: JournalFound,
    pub(crate) snapshot: SnapshotFound,
    pub(crate) evidence: Evidence,
    pub(crate) warnings: Vec<Warning>,
}

/// What is in the place of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalFound {
    Nothing,
    /// That of another session.
    Foreign,
    Whole {
        len: u64,
    },
    /// After `len` there is something that is not a record.
    Torn {
        len: u64,
    },
}

/// How the snapshot compares to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotFound {
    /// It is the whole session.
    Current { len: u64 },
    /// There is more in the journal, or all of it.
    Behind { len: u64 },
}

/// What a journal is replayed onto.
struct Start {
    replica: Replica,
    snapshot: SnapshotStart,
    journal: JournalOwner,
}

#[derive(PartialEq, Eq)]
enum SnapshotStart {
    Complete,
    /// It is missing, or was written by hand.
    Wanting,
}

#[derive(PartialEq, Eq)]
enum JournalOwner {
    This,
    Another,
}

/// Reads a session. The journal is opened before the snapshot is read: a writer that replaces
/// both meanwhile puts everything of the old journal into the new snapshot first.
pub(crate) fn load(disk: &dyn Disk, paths: &Paths, blobs: &Blobs) -> Result<Loaded, Error> {
    let path = paths.journal();
    let mut scanner = open(disk, &path)?.map(Scanner::new);
    let text = SnapshotText::read(disk, &paths.snapshot())?;
    if scanner.is_none() && text.is_none() {
        return Err(Error::NotFound {
            text: paths.name.to_string(),
        });
    }
    let header = match &mut scanner {
        Some(scanner) => scanner.header().map_err(Error::io("read", &path))?,
        None => None,
    };
    if let Some(header) = &header
        && header.format > FORMAT
    {
        return Err(Error::Newer {
            path,
            format: header.format,
        });
    }
    let mut warnings = Vec::new();
    let snapshot_len = text.as_ref().map_or(0, SnapshotText::len);
    let start = start(paths, text, header.as_deref(), blobs, &mut warnings)?;
    let mut replay = Replay {
        path: &path,
        blobs,
        replica: start.replica,
        warnings,
        applied: 0,
    };
    let journal = match scanner {
        None => JournalFound::Nothing,
        Some(_) if start.journal == JournalOwner::Another => {
            let path = path.clone();
            replay.warnings.push(Warning::ForeignJournal { path });
            JournalFound::Foreign
        }
        Some(scanner) => replay.run(scanner)?,
    };
    if snapshot_len == 0 && header.is_none() && replay.applied == 0 {
        return Err(not_understood(&path, 1, 1, "there is no record in it"));
    }
    let snapshot = if start.snapshot == SnapshotStart::Complete && replay.applied == 0 {
        SnapshotFound::Current { len: snapshot_len }
    } else {
        SnapshotFound::Behind { len: snapshot_len }
    };
    let evidence = if replay.warnings.iter().any(Warning::is_loss) {
        Evidence::Damaged
    } else {
        Evidence::Complete
    };
    Ok(Loaded {
        replica: replay.replica,
        journal,
        snapshot,
        evidence,
        warnings: replay.warnings,
    })
}

fn open(disk: &dyn Disk, path: &Path) -> Result<Option<Box<dyn DiskReader>>, Error> {
    match disk.read(path) {
        Ok(reader) => Ok(Some(reader)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

fn start(
    paths: &Paths,
    text: Option<SnapshotText>,
    header: Option<&Header>,
    blobs: &Blobs,
    warnings: &mut Vec<Warning>,
) -> Result<Start, Error> {
    let Some(text) = text else {
        return Ok(Start {
            replica: without_snapshot(paths, header, warnings),
            snapshot: SnapshotStart::Wanting,
            journal: JournalOwner::This,
        });
    };
    let mut snapshot = text.parse()?;
    let journal = match (header, snapshot.session_id) {
        (Some(header), Some(id)) if header.session_id != id => JournalOwner::Another,
        _ => JournalOwner::This,
    };
    let header = header.filter(|_| journal == JournalOwner::This);
    let start = match (snapshot.session_id, snapshot.journal_seq) {
        (Some(_), Some(_)) => SnapshotStart::Complete,
        _ => SnapshotStart::Wanting,
    };
    let session_id = snapshot
        .session_id
        .or(header.map(|header| header.session_id))
        .unwrap_or_else(|| derived_id(&paths.name, snapshot.created_at));
    // A file without this field was written by hand; the journal knows where it began.
    let base = header.map_or(0, |header| header.base);
    snapshot.journal_seq.get_or_insert(base);
    let name = paths.name.clone();
    Ok(Start {
        replica: text.replica(snapshot, name, session_id, blobs, warnings)?,
        snapshot: start,
        journal,
    })
}

/// What a journal alone begins with.
fn without_snapshot(
    paths: &Paths,
    header: Option<&Header>,
    warnings: &mut Vec<Warning>,
) -> Replica {
    let name = paths.name.clone();
    let Some(header) = header else {
        let new = NewSession {
            session_id: derived_id(&name, None),
            provider: String::new(),
            model: String::new(),
            mode: None,
            cwd: PathBuf::new(),
            program_version: String::new(),
        };
        return Replica::new(name, new, Timestamp::UNIX_EPOCH);
    };
    let mut replica = Replica::from_header(name, header);
    if header.base > 0 {
        replica.seq = header.base;
        warnings.push(Warning::SnapshotMissing {
            path: paths.snapshot(),
            base: header.base,
        });
    }
    replica
}

struct Replay<'a> {
    path: &'a Path,
    blobs: &'a Blobs,
    replica: Replica,
    warnings: Vec<Warning>,
    /// Records that the snapshot did not have.
    applied: u64,
}

impl Replay<'_> {
    fn run(&mut self, mut scanner: Scanner) -> Result<JournalFound, Error> {
        let base = self.replica.seq;
        let (mut len, mut torn) = (0, None);
        // Damaged lines since the last good one: they explain as many missing numbers.
        let mut damaged = 0;
        while let Some(scanned) = scanner.next().map_err(Error::io("read", self.path))? {
            torn = None;
            len = scanned.end;
            match scanned.found {
                Found::Line(line) if line.seq <= base => {}
                Found::Line(line) => {
                    self.check_number(&line, scanned.number, damaged);
                    damaged = 0;
                    self.take(&line, scanned.number);
                }
                Found::Bad(problem) => {
                    damaged += 1;
                    torn = Some(scanned.start);
                    self.bad(scanned.number, problem);
                }
                Found::Unterminated => {
                    torn = Some(scanned.start);
                    let path = self.path.to_owned();
                    self.warnings.push(Warning::Torn { path });
                }
            }
        }
        Ok(match torn {
            Some(start) => JournalFound::Torn { len: start },
            None => JournalFound::Whole { len },
        })
    }

    fn check_number(&mut self, line: &Line<'_>, number: u64, damaged: u64) {
        let (expected, seq) = (self.replica.seq + 1, line.seq);
        if seq > expected + damaged {
            self.warnings.push(Warning::Gap {
                path: self.path.to_owned(),
                from: expected,
                to: seq - 1,
            });
        }
        if seq < expected {
            self.bad(number, "its number was used before".to_owned());
        }
    }

    fn take(&mut self, line: &Line<'_>, number: u64) {
        let (seq, at) = (line.seq, line.at);
        if seq <= self.replica.seq {
            return;
        }
        let resolved = self
            .blobs
            .resolve::<Record>(line.text(), &mut self.warnings);
        match line.content(resolved) {
            Ok(Content::Header) => self.replica.seq = seq,
            Ok(Content::Record(record)) => {
                self.applied += 1;
                self.replica.apply(seq, at, record);
            }
            Ok(Content::Unknown(raw)) => {
                self.applied += 1;
                self.warnings.push(Warning::UnknownRecord {
                    path: self.path.to_owned(),
                    line: number,
                    kind: line.kind().chars().take(LONGEST_KIND).collect(),
                });
                self.replica.keep_unknown(seq, at, raw);
            }
            Err(error) => self.bad(number, error.to_string()),
        }
    }

    fn bad(&mut self, line: u64, problem: String) {
        self.warnings.push(Warning::BadRecord {
            path: self.path.to_owned(),
            line,
            problem,
        });
    }
}
