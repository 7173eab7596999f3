//! The entries of one repository's worktrees, on disk, and who holds which.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use caliban_settings::{ensure_private_dir, hex, replace_private_file};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use crate::disk::sync_directory;
use crate::entry::Entry;
use crate::error::WorktreeError;
use crate::name::Name;

/// How long others may work on the worktrees of the repository: as long as git may.
const PATIENCE: Duration = Duration::from_mins(5);
/// How often is looked whether they have ended.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a lock may be shared by a program that is being started: for somebody who only looks,
/// and for somebody who wants the worktree.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);
pub(crate) const INSISTENCE: Duration = Duration::from_millis(500);
/// Entries that are read.
const MAX_ENTRIES: usize = 1000;
/// The largest entry.
const MAX_ENTRY: u64 = 4 << 20;

/// Where the entries of a repository are.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    directory: PathBuf,
}

/// Whoever has this works in the worktree. It ends with its process, however that ends.
#[derive(Debug)]
pub struct Lease {
    _file: File,
}

/// Nobody else makes or removes worktrees of the repository.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Registry {
    /// Of the repository with this common directory; nothing is created yet.
    pub(crate) fn new(data: &Path, common: &Path) -> Self {
        let digest = hex(&Sha256::digest(common.as_os_str().as_encoded_bytes()));
        Self {
            directory: data.join("worktrees").join(&digest[..16]),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn file(&self, name: &Name, extension: &str) -> PathBuf {
        self.directory.join(format!("{name}.{extension}"))
    }

    /// Writes an entry; when this returns it outlasts a loss of power.
    pub(crate) fn write(&self, entry: &Entry) -> Result<(), WorktreeError> {
        let path = self.file(&entry.name, "json");
        let written = ensure_private_dir(&self.directory).and_then(|()| {
            let text = serde_json::to_vec_pretty(entry).map_err(io::Error::other)?;
            replace_private_file(&path, &text)?;
            sync_directory(&self.directory)
        });
        written.map_err(WorktreeError::io(path))
    }

    /// Forgets an entry.
    pub(crate) fn remove(&self, name: &Name) -> Result<(), WorktreeError> {
        let path = self.file(name, "json");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(WorktreeError::io(path)(error));
            }
            Ok(()) | Err(_) => {}
        }
        // Who opens it again makes a new one; nobody holds it for a tree that is gone.
        let _ = fs::remove_file(self.file(name, "lock"));
        Ok(())
    }

    pub(crate) fn read(&self, name: &Name) -> Option<Entry> {
        let path = self.file(name, "json");
        let size = fs::symlink_metadata(&path).ok()?.len();
        let text = (size <= MAX_ENTRY).then(|| fs::read(&path).ok())??;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        (entry.name == *name).then_some(entry)
    }

    /// All that can be read, by name.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let Ok(found) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let names = found.flatten().take(MAX_ENTRIES).filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            name.strip_suffix(".json")?.parse::<Name>().ok()
        });
        let mut entries: Vec<Entry> = names.filter_map(|name| self.read(&name)).collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        ensure_private_dir(&self.directory)?;
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
    }

    /// Takes a worktree; nothing where somebody has it. A program that is just being started shares
    /// every lock for a moment, which is waited for.
    pub(crate) async fn lease(
        &self,
        name: &Name,
        patience: Duration,
    ) -> Result<Option<Lease>, WorktreeError> {
        let path = self.file(name, "lock");
        let file = self.open(&path).map_err(WorktreeError::io(&path))?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Lease { _file: file })),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => return Ok(None),
                Err(TryLockError::WouldBlock) => sleep(PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(WorktreeError::io(path)(error)),
            }
        }
    }

    /// Waits until nobody else makes or removes worktrees.
    pub(crate) async fn lock(&self) -> Result<Lock, WorktreeError> {
        let path = self.directory.join("lock");
        let file = self.open(&path).map_err(WorktreeError::io(&path))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(WorktreeError::io(path)(error)),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                    return Err(WorktreeError::Busy(path));
                }
                Err(TryLockError::WouldBlock) => sleep(PAUSE).await,
            }
        }
    }
}
