//! The directory of sessions: creating, opening, finding, forking and removing them.

use std::fs;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use caliban_model::Message;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::accounts::Accounts;
use crate::accounts_listing::{self, AllAccounts};
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::disk::{Disk, HeldLock, LockAttempt, RealDisk};
use crate::error::{Error, Warning};
use crate::journal::{Journal, set_aside};
use crate::listing::{self, Listing, Summary};
use crate::load::{JournalFound, Loaded, SnapshotFound, load};
use crate::name::SessionName;
use crate::paths::Paths;
use crate::removal::remove_files;
use crate::repair::{Evidence, repairs};
use crate::snapshot;
use crate::state::{NewSession, Replica, SessionState};
use crate::tail::tail;
use crate::writer::{Durability, Holds, Parts, Writer};

/// How many files of one purpose and second a session may have beside it.
const ASIDE: u32 = 1000;
/// The least of an id that stands for the whole.
const SHORTEST_BEGINNING: usize = 6;

/// A directory with sessions in it.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    clock: Clock,
}

/// A session that is continued.
#[derive(Debug)]
pub struct Opened {
    pub state: SessionState,
    pub writer: Writer,
    pub warnings: Vec<Warning>,
}

/// What pruning did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pruned {
    pub removed: Vec<SessionName>,
    pub warnings: Vec<Warning>,
}

impl Store {
    /// The sessions in a directory, which need not exist. Links and a relative path are resolved
    /// now, wherever the process goes later.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        let directory = directory.as_ref();
        Self {
            directory: fs::canonicalize(directory)
                .or_else(|_| path::absolute(directory))
                .unwrap_or_else(|_| directory.to_owned()),
            disk: Arc::new(RealDisk),
            clock: Clock::new(Timestamp::now),
        }
    }

    #[must_use]
    pub fn with_disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(clock);
        self
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Begins a session. It stays only if something is recorded in it.
    pub fn create(&self, name: &SessionName, new: NewSession) -> Result<Writer, Error> {
        let paths = self.paths(name);
        let lock = self.claim(&paths)?;
        let now = self.clock.now();
        let mut replica = Replica::new(name.clone(), new, now);
        let journal = Journal::create(&*self.disk, &paths, &replica, now).map_err(|error| {
            let _ = self.disk.remove_file(&paths.journal());
            Error::io("create", paths.journal())(error)
        })?;
        replica.seq += 1;
        Ok(Writer::new(Parts {
            disk: Arc::clone(&self.disk),
            clock: self.clock.clone(),
            blobs: self.blobs(&paths),
            paths,
            replica,
            journal,
            snapshot: SnapshotFound::Behind { len: 0 },
            holds: Holds::Nothing,
            damaged_aside: None,
            lock,
        }))
    }

    /// Continues a session. What an interruption left open is settled, and the settlement
    /// recorded.
    pub fn open(&self, name: &SessionName) -> Result<Opened, Error> {
        let paths = self.paths(name);
        if !self.exists(&paths)? {
            return Err(not_found(name.as_str()));
        }
        let lock = self.lock(&paths)?;
        let blobs = self.blobs(&paths);
        let mut loaded = load(&*self.disk, &paths, &blobs)?;
        let journal = self.journal(&paths, &mut loaded)?;
        let has_bad = |warning: &Warning| matches!(warning, Warning::BadRecord { .. });
        let damaged_aside = if loaded.warnings.iter().any(has_bad) {
            Some(self.aside(&paths, "journal.damaged")?)
        } else {
            None
        };
        let writer = Writer::new(Parts {
            disk: Arc::clone(&self.disk),
            clock: self.clock.clone(),
            paths,
            replica: loaded.replica,
            blobs,
            journal,
            snapshot: loaded.snapshot,
            holds: Holds::Something,
            damaged_aside,
            lock,
        });
        Ok(settle(writer, loaded.evidence, loaded.warnings))
    }

    /// Reads a session, whoever is writing it meanwhile. Nothing is changed on disk.
    pub fn load(&self, name: &SessionName) -> Result<(SessionState, Vec<Warning>), Error> {
        let paths = self.paths(name);
        let loaded = load(&*self.disk, &paths, &self.blobs(&paths))?;
        let (mut replica, mut warnings) = (loaded.replica, loaded.warnings);
        for record in repairs(&replica, loaded.evidence, &mut warnings) {
            replica.apply(replica.seq, replica.state.updated_at, record);
        }
        Ok((replica.state, warnings))
    }

    /// Reads a session that somebody is writing as it stands: calls that still run, or wait, have
    /// no result.
    pub fn look(&self, name: &SessionName) -> Result<(SessionState, Vec<Warning>), Error> {
        let paths = self.paths(name);
        let loaded = load(&*self.disk, &paths, &self.blobs(&paths))?;
        Ok((loaded.replica.state, loaded.warnings))
    }

    /// The last messages of a session, from the ends of its files; none where these do not tell.
    /// It is for looking at while the session is opened, and is right but for what an interruption
    /// left.
    pub fn tail(&self, name: &SessionName) -> Vec<Arc<Message>> {
        let paths = self.paths(name);
        tail(&*self.disk, &paths, &self.blobs(&paths))
    }

    /// Begins a session with everything another one has, whoever is writing that meanwhile. It
    /// stays only if something more is recorded in it.
    pub fn fork(
        &self,
        source: &SessionName,
        name: &SessionName,
        session_id: Uuid,
    ) -> Result<Opened, Error> {
        let source = self.paths(source);
        let loaded = load(&*self.disk, &source, &self.blobs(&source))?;
        let paths = self.paths(name);
        let lock = self.claim(&paths)?;
        let now = self.clock.now();
        let mut replica = loaded.replica;
        replica.seq = 0;
        let state = &mut replica.state;
        state.parent = Some(state.session_id);
        state.session_id = session_id;
        state.name = name.clone();
        (state.created_at, state.updated_at) = (now, now);
        state.accounts = Accounts::of_copy(state.usage, state.cost);
        let mut blobs = self.blobs(&paths);
        let written = blobs.share(&source).and_then(|()| {
            let len = snapshot::write(&*self.disk, &paths, &replica, &mut blobs)?;
            let journal = Journal::create(&*self.disk, &paths, &replica, now)?;
            Ok((len, journal))
        });
        let (len, journal) = written.map_err(|error| {
            // The error that led here is the one to report.
            let _ = remove_files(&*self.disk, &paths);
            Error::io("create", paths.snapshot())(error)
        })?;
        replica.seq += 1;
        let writer = Writer::new(Parts {
            disk: Arc::clone(&self.disk),
            clock: self.clock.clone(),
            paths,
            replica,
            blobs,
            journal,
            snapshot: SnapshotFound::Current { len },
            holds: Holds::Nothing,
            damaged_aside: None,
            lock,
        });
        Ok(settle(writer, loaded.evidence, loaded.warnings))
    }

    /// What all sessions consumed, and what could not be read.
    pub fn accounts(&self) -> Result<AllAccounts, Error> {
        accounts_listing::read(&*self.disk, &self.directory)
    }

    /// All sessions, the most recently updated first.
    pub fn list(&self) -> Result<Listing, Error> {
        listing::list(&*self.disk, &self.directory)
    }

    /// The most recently updated session of those that have a prompt and whose directory is
    /// wanted, and what could not be looked at.
    pub fn latest(
        &self,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> Result<(Option<Summary>, Vec<Warning>), Error> {
        let listing = self.list()?;
        let latest = listing
            .summaries
            .into_iter()
            .find(|summary| summary.has_prompt() && is_wanted(&summary.cwd));
        Ok((latest, listing.warnings))
    }

    /// The session of exactly this name or id.
    pub fn named(&self, text: &str) -> Result<Option<SessionName>, Error> {
        if let Ok(name) = SessionName::new(text)
            && self.exists(&self.paths(&name))?
        {
            return Ok(Some(name));
        }
        let Ok(wanted) = text.parse::<Uuid>() else {
            return Ok(None);
        };
        let mut all = self.list()?.summaries.into_iter();
        Ok(all
            .find(|summary| summary.session_id == wanted)
            .map(|summary| summary.name))
    }

    /// The session of a name, of an id, or of the only id that begins so; in this order. What is
    /// shorter than six characters is a name: it would fit an id by chance.
    pub fn find(&self, text: &str) -> Result<SessionName, Error> {
        if let Some(name) = self.named(text)? {
            return Ok(name);
        }
        if text.len() < SHORTEST_BEGINNING {
            return Err(not_found(text));
        }
        let wanted = text.to_ascii_lowercase();
        let names: Vec<SessionName> = self
            .list()?
            .summaries
            .into_iter()
            .filter(|summary| summary.session_id.to_string().starts_with(&wanted))
            .map(|summary| summary.name)
            .collect();
        match <[SessionName; 1]>::try_from(names) {
            Ok([name]) => Ok(name),
            Err(names) if names.is_empty() => Err(not_found(text)),
            Err(names) => Err(Error::Ambiguous {
                text: text.to_owned(),
                names,
            }),
        }
    }

    /// Removes a session with all its files, unless somebody is writing it.
    pub fn remove(&self, name: &SessionName) -> Result<(), Error> {
        let paths = self.paths(name);
        if !self.exists(&paths)? {
            return Err(not_found(name.as_str()));
        }
        let _lock = self.lock(&paths)?;
        remove_files(&*self.disk, &paths)
    }

    /// Removes the sessions that nobody named and that were last updated longer ago than
    /// `older_than`. Those in use stay.
    pub fn prune(&self, older_than: SignedDuration, now: Timestamp) -> Result<Pruned, Error> {
        let is_old = |summary: &Summary| {
            !summary.is_named() && now.duration_since(summary.updated_at) > older_than
        };
        let listing = self.list()?;
        let mut pruned = Pruned {
            removed: Vec::new(),
            warnings: listing.warnings,
        };
        for summary in listing.summaries.into_iter().filter(is_old) {
            let name = summary.name;
            match self.prune_one(&self.paths(&name), is_old) {
                Ok(true) => pruned.removed.push(name),
                Ok(false) | Err(Error::Busy { .. }) => {}
                Err(error) => pruned.warnings.push(Warning::NotRemoved {
                    name,
                    problem: error.to_string(),
                }),
            }
        }
        self.sweep()?;
        Ok(pruned)
    }

    /// Removes what runs left that were killed while they began: files that were to take the place of
    /// others, and locks. Whoever holds the lock of a session is at work on them.
    fn sweep(&self) -> Result<(), Error> {
        let directory = &self.directory;
        let names = self.disk.list(directory);
        for file in names.map_err(Error::io("list", directory))? {
            let Some((name, kind @ ("journal.new" | "json.new" | "lock"))) = file.split_once('.')
            else {
                continue;
            };
            let Ok(name) = name.parse::<SessionName>() else {
                continue;
            };
            // Letting go of a lock removes it.
            if let Ok(_lock) = self.lock(&self.paths(&name))
                && kind != "lock"
            {
                let path = directory.join(&file);
                let _ = self.disk.remove_file(&path);
            }
        }
        Ok(())
    }

    /// Whether it was removed: between the listing and the lock it may have been continued.
    fn prune_one(&self, paths: &Paths, is_old: impl Fn(&Summary) -> bool) -> Result<bool, Error> {
        let _lock = self.lock(paths)?;
        match listing::summarise(&*self.disk, paths)? {
            Some(summary) if is_old(&summary) => remove_files(&*self.disk, paths).map(|()| true),
            Some(_) | None => Ok(false),
        }
    }

    /// The journal of a session that was read, fit to be continued.
    fn journal(&self, paths: &Paths, loaded: &mut Loaded) -> Result<Journal, Error> {
        let (disk, path) = (&*self.disk, paths.journal());
        let len = match loaded.journal {
            JournalFound::Nothing => 0,
            JournalFound::Whole { len } => len,
            JournalFound::Foreign => {
                let aside = self.aside(paths, "journal.foreign")?;
                disk.rename(&path, &aside)
                    .map_err(Error::io("rename", &path))?;
                loaded.warnings.push(Warning::SetAside {
                    path: path.clone(),
                    aside,
                });
                0
            }
            JournalFound::Torn { len } => {
                let aside = self.aside(paths, "journal.torn")?;
                set_aside(disk, &path, len, &aside).map_err(Error::io("repair", &path))?;
                loaded
                    .warnings
                    .retain(|warning| !matches!(warning, Warning::Torn { .. }));
                loaded.warnings.push(Warning::SetAside {
                    path: path.clone(),
                    aside,
                });
                len
            }
        };
        if len > 0 {
            return Journal::open(disk, path.clone(), len).map_err(Error::io("open", path));
        }
        let journal = Journal::create(disk, paths, &loaded.replica, self.clock.now())
            .map_err(Error::io("create", path))?;
        loaded.replica.seq += 1;
        Ok(journal)
    }

    /// A free name for something that is kept beside a session.
    fn aside(&self, paths: &Paths, purpose: &str) -> Result<PathBuf, Error> {
        let stamp = self.clock.now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut path = paths.with_suffix(&format!("{purpose}-{stamp}"));
        for count in 2..ASIDE {
            let taken = self.disk.stat(&path).map_err(Error::io("read", &path))?;
            if taken.is_none() {
                break;
            }
            path = paths.with_suffix(&format!("{purpose}-{stamp}-{count}"));
        }
        Ok(path)
    }

    pub(crate) fn paths(&self, name: &SessionName) -> Paths {
        Paths::new(&self.directory, name.clone())
    }

    fn blobs(&self, paths: &Paths) -> Blobs {
        Blobs::new(Arc::clone(&self.disk), paths.clone())
    }

    fn exists(&self, paths: &Paths) -> Result<bool, Error> {
        for path in [paths.snapshot(), paths.journal()] {
            if self
                .disk
                .stat(&path)
                .map_err(Error::io("read", &path))?
                .is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Locks a name that no session has.
    pub(crate) fn claim(&self, paths: &Paths) -> Result<Box<dyn HeldLock>, Error> {
        self.disk
            .make_directory(&self.directory)
            .map_err(Error::io("create", &self.directory))?;
        let lock = self.lock(paths)?;
        if self.exists(paths)? {
            return Err(Error::Exists {
                name: paths.name.clone(),
                directory: self.directory.clone(),
            });
        }
        Ok(lock)
    }

    fn lock(&self, paths: &Paths) -> Result<Box<dyn HeldLock>, Error> {
        let path = paths.lock();
        match self.disk.lock(&path).map_err(Error::io("lock", path))? {
            LockAttempt::Held(lock) => Ok(lock),
            LockAttempt::Busy(pid) => Err(Error::Busy {
                name: paths.name.clone(),
                pid,
            }),
        }
    }
}

fn not_found(text: &str) -> Error {
    Error::NotFound {
        text: text.to_owned(),
    }
}

/// Records what makes the conversation valid again.
fn settle(mut writer: Writer, evidence: Evidence, mut warnings: Vec<Warning>) -> Opened {
    for record in repairs(writer.replica(), evidence, &mut warnings) {
        if let Err(error) = writer.record(record, Durability::Written) {
            warnings.push(Warning::Unsaved(error.to_string()));
        }
    }
    Opened {
        state: writer.state().clone(),
        writer,
        warnings,
    }
}
