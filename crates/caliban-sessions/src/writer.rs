//! The one who writes a session: every record is in the journal before `append` returns, or the
//! caller is told that it is not.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::disk::{Disk, DiskFile, HeldLock};
use crate::error::{Error, Warning};
use crate::journal::Journal;
use crate::line::{LONGEST_LINE, encode};
use crate::load::SnapshotFound;
use crate::name::SessionName;
use crate::paths::Paths;
use crate::record::{Record, Totals};
use crate::removal::{remove_files, take_asides};
use crate::snapshot;
use crate::state::{Replica, SessionState};

/// Records that wait in memory while the disk takes none. Beyond that they are given up as
/// records: the state has what they said, and a snapshot will bring it to disk.
const MOST_PENDING: usize = 4096;
/// Bytes of a journal that are never too many.
const SMALL_JOURNAL: u64 = 1 << 20;

/// How safe a record must be before the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives the end of the process.
    Written,
    /// It survives a power loss.
    Synced,
}

/// Whether everything that was recorded is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Sound,
    /// `records` wait in memory; with none, what was written may not survive a power loss.
    Unsaved {
        path: PathBuf,
        records: usize,
        cause: String,
    },
}

/// Writes one session, alone until it is dropped.
#[derive(Debug)]
pub struct Writer {
    disk: Arc<dyn Disk>,
    clock: Clock,
    paths: Paths,
    replica: Replica,
    blobs: Blobs,
    journal: Journal,
    pending: VecDeque<Pending>,
    remedy: Remedy,
    /// Why the last attempt to write failed.
    fault: Option<Fault>,
    sync_fault: SyncFault,
    snapshot_len: u64,
    snapshot_is: SnapshotIs,
    following: Following,
    holds: Holds,
    /// Where a journal with damaged records is kept when it is replaced.
    damaged_aside: Option<PathBuf>,
    /// Released last.
    lock: Box<dyn HeldLock>,
}

/// When the file follows the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Following {
    /// When the journal has become the longer of the two.
    AtLength,
    /// Whenever there is time for it.
    AtOnce,
}

#[derive(Debug)]
struct Pending {
    seq: u64,
    at: Timestamp,
    record: Record,
}

/// How what waits gets to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    Append,
    /// The journal cannot be relied on any more, or does not have room for a record.
    Snapshot,
}

/// How much work an attempt to get to disk is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// In proportion to what waits.
    Small,
    /// In proportion to the session.
    Whole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SnapshotIs {
    Current,
    Behind,
}

/// Whether there is anything worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// A session that was begun for nobody: it goes with its writer.
    Nothing,
    Something,
}

#[derive(Debug, Clone)]
struct Fault {
    path: PathBuf,
    kind: io::ErrorKind,
    cause: String,
}

type SyncFault = Arc<Mutex<Option<Fault>>>;

/// Makes what was written so far durable, from any thread, while the writer goes on.
#[derive(Debug, Clone)]
pub struct SyncHandle {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    fault: SyncFault,
}

/// The end of a turn as it is written.
#[derive(Serialize)]
struct TurnEnd {
    turn_ended: Totals,
}

/// What a writer is made of.
pub(crate) struct Parts {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Clock,
    pub(crate) paths: Paths,
    pub(crate) replica: Replica,
    pub(crate) blobs: Blobs,
    pub(crate) journal: Journal,
    pub(crate) snapshot: SnapshotFound,
    pub(crate) holds: Holds,
    pub(crate) damaged_aside: Option<PathBuf>,
    pub(crate) lock: Box<dyn HeldLock>,
}

impl Writer {
    pub(crate) fn new(parts: Parts) -> Self {
        let (snapshot_len, snapshot_is) = match parts.snapshot {
            SnapshotFound::Current { len } => (len, SnapshotIs::Current),
            SnapshotFound::Behind { len } => (len, SnapshotIs::Behind),
        };
        Self {
            disk: parts.disk,
            clock: parts.clock,
            paths: parts.paths,
            replica: parts.replica,
            blobs: parts.blobs,
            journal: parts.journal,
            pending: VecDeque::new(),
            remedy: Remedy::Append,
            fault: None,
            sync_fault: SyncFault::default(),
            snapshot_len,
            snapshot_is,
            following: Following::AtLength,
            holds: parts.holds,
            damaged_aside: parts.damaged_aside,
            lock: parts.lock,
        }
    }

    pub fn name(&self) -> &SessionName {
        &self.paths.name
    }

    /// The session with everything recorded, saved or not.
    pub fn state(&self) -> &SessionState {
        &self.replica.state
    }

    pub(crate) fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The number of the last record.
    pub fn seq(&self) -> u64 {
        self.replica.seq
    }

    /// Records something. `Ok` means that it, and everything before it, is as safe as asked for.
    /// [`Error::Unsaved`] means that it is part of the state but only in memory; the next call
    /// tries again.
    pub fn append(&mut self, record: Record, durability: Durability) -> Result<(), Error> {
        self.holds = Holds::Something;
        self.record(record, durability)
    }

    /// Records something that alone is no reason to keep a session.
    pub(crate) fn record(&mut self, record: Record, durability: Durability) -> Result<(), Error> {
        let (seq, at) = (self.replica.seq + 1, self.clock.now());
        self.replica.apply(seq, at, record.clone());
        self.snapshot_is = SnapshotIs::Behind;
        self.pending.push_back(Pending { seq, at, record });
        if self.pending.len() > MOST_PENDING {
            self.pending.clear();
            self.remedy = Remedy::Snapshot;
        }
        match durability {
            Durability::Written => self.flush(Effort::Small),
            Durability::Synced => self.sync(),
        }
    }

    /// Makes everything durable.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.flush(Effort::Whole)?;
        // Right after a snapshot there is nothing to do, which costs nothing.
        self.handle().sync()
    }

    /// What makes everything recorded so far durable when it is run, on whatever thread.
    pub fn sync_handle(&mut self) -> Result<SyncHandle, Error> {
        self.flush(Effort::Whole)?;
        Ok(self.handle())
    }

    /// Tries again to get to disk what could not be written.
    pub fn retry(&mut self) -> Result<(), Error> {
        self.sync()
    }

    pub fn health(&self) -> Health {
        match self.current_fault() {
            Some(fault) => Health::Unsaved {
                path: fault.path,
                records: self.pending.len(),
                cause: fault.cause,
            },
            None => Health::Sound,
        }
    }

    /// From now on every tidying brings the session's file up to date, for those who read it while
    /// the session goes on.
    pub fn keep_file_current(&mut self) {
        self.following = Following::AtOnce;
    }

    /// Writes a snapshot if the journal has become longer than one; costs nothing otherwise. To
    /// be called now and then, best between turns.
    pub fn tidy(&mut self) -> Result<(), Error> {
        let is_due = match self.following {
            Following::AtLength => self.journal.len > self.snapshot_len.max(SMALL_JOURNAL),
            Following::AtOnce => self.snapshot_is == SnapshotIs::Behind,
        };
        if is_due { self.snapshot() } else { Ok(()) }
    }

    /// Writes the whole session to its file and begins a new journal. Whenever this is
    /// interrupted, the files make up the same session.
    pub fn snapshot(&mut self) -> Result<(), Error> {
        self.write_snapshot()?;
        self.keep_damaged();
        let at = self.clock.now();
        match Journal::create(&*self.disk, &self.paths, &self.replica, at) {
            Ok(journal) => {
                self.journal = journal;
                self.replica.seq += 1;
                self.remedy = Remedy::Append;
                self.sync_fault = SyncFault::default();
                Ok(())
            }
            Err(error) => {
                // The old journal serves on, unless it was replaced after all, which the next
                // record finds out.
                let path = self.paths.journal();
                Err(self.failed(&path, error))
            }
        }
    }

    /// Ends the writing of a session: all of it is in its file afterwards, without a journal.
    /// After an error everything that was confirmed is still on disk. One that nothing was ever
    /// recorded in is gone.
    pub fn close(mut self) -> Result<(), Error> {
        if self.holds == Holds::Nothing {
            return Ok(());
        }
        if self.snapshot_is == SnapshotIs::Behind {
            self.write_snapshot()?;
        }
        self.keep_damaged();
        let path = self.paths.journal();
        let removed = match self.disk.remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => self.disk.sync_directory(&self.paths.directory),
        };
        removed.map_err(Error::io("remove", path))
    }

    /// Goes on under another name, whose lock is given. Everything is there before anything is
    /// gone here: whatever interrupts this, the session is whole under one name or under both.
    pub(crate) fn move_to(
        &mut self,
        paths: Paths,
        lock: Box<dyn HeldLock>,
    ) -> Result<Vec<Warning>, Error> {
        self.keep_damaged();
        let former = std::mem::replace(&mut self.replica.state.name, paths.name.clone());
        let mut blobs = Blobs::new(Arc::clone(&self.disk), paths.clone());
        let at = self.clock.now();
        let written = blobs.share(&self.paths).and_then(|()| {
            let len = snapshot::write(&*self.disk, &paths, &self.replica, &mut blobs)?;
            let journal = Journal::create(&*self.disk, &paths, &self.replica, at)?;
            Ok((len, journal))
        });
        let (len, journal) = match written {
            Ok(written) => written,
            Err(error) => {
                self.replica.state.name = former;
                // The error that led here is the one to report.
                let _ = remove_files(&*self.disk, &paths);
                return Err(Error::io("create", paths.snapshot())(error));
            }
        };
        self.replica.seq += 1;
        self.snapshot_len = len;
        self.snapshot_is = SnapshotIs::Current;
        self.pending.clear();
        self.remedy = Remedy::Append;
        self.fault = None;
        self.sync_fault = SyncFault::default();
        (self.blobs, self.journal) = (blobs, journal);
        let old = std::mem::replace(&mut self.paths, paths);
        let removed = take_asides(&*self.disk, &old, &self.paths)
            .and_then(|()| remove_files(&*self.disk, &old));
        self.lock = lock;
        Ok(match removed {
            Ok(()) => Vec::new(),
            Err(error) => vec![Warning::NotRemoved {
                name: former,
                problem: error.to_string(),
            }],
        })
    }

    fn write_snapshot(&mut self) -> Result<(), Error> {
        let written = snapshot::write(&*self.disk, &self.paths, &self.replica, &mut self.blobs);
        match written {
            Ok(len) => {
                self.snapshot_len = len;
                self.snapshot_is = SnapshotIs::Current;
                self.pending.clear();
                self.fault = None;
                Ok(())
            }
            Err(error) => {
                let path = self.paths.snapshot();
                Err(self.failed(&path, error))
            }
        }
    }

    /// Keeps a journal with damaged records under another name. They are of no use to this
    /// program, so failing to keep them is no reason to stop.
    fn keep_damaged(&mut self) {
        if let Some(aside) = self.damaged_aside.take() {
            let _ = self.disk.link(&self.journal.path, &aside);
        }
    }

    fn flush(&mut self, effort: Effort) -> Result<(), Error> {
        let mut effort = effort;
        if self.remedy == Remedy::Append {
            match self.flush_lines() {
                Ok(Remedy::Append) => {
                    self.fault = None;
                    // After a failed sync the system may take lost pages for clean; only new
                    // files help.
                    if lock(&self.sync_fault).is_none() {
                        return Ok(());
                    }
                }
                Ok(Remedy::Snapshot) => {
                    self.remedy = Remedy::Snapshot;
                    effort = Effort::Whole;
                }
                Err(error) => {
                    let path = self.journal.path.clone();
                    return Err(self.failed(&path, error));
                }
            }
        }
        match effort {
            Effort::Small => Err(self.unsaved()),
            Effort::Whole => self.snapshot(),
        }
    }

    /// Writes what waits; the remedy if a line is not the way.
    fn flush_lines(&mut self) -> io::Result<Remedy> {
        if self.journal.file.is_gone()? {
            return Ok(Remedy::Snapshot);
        }
        while let Some(pending) = self.pending.front() {
            let record = match &pending.record {
                Record::TurnEnded {} => {
                    let turn_ended = self.replica.totals();
                    serde_json::to_vec(&TurnEnd { turn_ended })?
                }
                record => serde_json::to_vec(&self.blobs.store(record)?)?,
            };
            let line = encode(pending.seq, pending.at, &record);
            if line.len() > LONGEST_LINE {
                return Ok(Remedy::Snapshot);
            }
            self.journal.append(&line)?;
            self.pending.pop_front();
        }
        Ok(Remedy::Append)
    }

    fn handle(&self) -> SyncHandle {
        SyncHandle {
            file: Arc::clone(&self.journal.file),
            path: self.journal.path.clone(),
            fault: Arc::clone(&self.sync_fault),
        }
    }

    fn current_fault(&self) -> Option<Fault> {
        let sync_fault = lock(&self.sync_fault).clone();
        sync_fault.or_else(|| self.fault.clone())
    }

    fn failed(&mut self, path: &Path, error: io::Error) -> Error {
        self.fault = Some(Fault::new(path, &error));
        Error::Unsaved {
            path: path.to_owned(),
            records: self.pending.len(),
            source: error,
        }
    }

    /// The error of the last attempt, again.
    fn unsaved(&self) -> Error {
        let fault = self.current_fault().unwrap_or_else(|| Fault {
            path: self.journal.path.clone(),
            kind: io::ErrorKind::Other,
            cause: "too many records wait".to_owned(),
        });
        Error::Unsaved {
            path: fault.path,
            records: self.pending.len(),
            source: io::Error::new(fault.kind, fault.cause),
        }
    }
}

impl Drop for Writer {
    /// Under the lock, which is released after this. What cannot be removed does no harm: a session
    /// without a prompt is nobody's latest, and an empty journal says nothing.
    fn drop(&mut self) {
        match (self.holds, self.snapshot_is) {
            (Holds::Nothing, _) => {
                let _ = remove_files(&*self.disk, &self.paths);
            }
            (Holds::Something, SnapshotIs::Current) => {
                self.keep_damaged();
                let _ = self.disk.remove_file(&self.paths.journal());
            }
            (Holds::Something, SnapshotIs::Behind) => {}
        }
    }
}

impl SyncHandle {
    /// Waits until everything written before is durable.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync().map_err(|error| {
            *lock(&self.fault) = Some(Fault::new(&self.path, &error));
            Error::Unsaved {
                path: self.path.clone(),
                records: 0,
                source: error,
            }
        })
    }
}

impl Fault {
    fn new(path: &Path, error: &io::Error) -> Self {
        Self {
            path: path.to_owned(),
            kind: error.kind(),
            cause: error.to_string(),
        }
    }
}

/// A fault is a plain value; whoever panicked while holding it left it whole.
fn lock(fault: &SyncFault) -> MutexGuard<'_, Option<Fault>> {
    fault.lock().unwrap_or_else(PoisonError::into_inner)
}
