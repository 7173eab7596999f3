//! The directory of an attempt. A lock says that it is in use, so that what a killed worker left
//! behind is known and removed.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// A directory that goes with this value.
#[derive(Debug)]
pub(super) struct Room {
    path: PathBuf,
    _lock: File,
}

impl Room {
    pub(super) fn new(parent: &Path, name: &str) -> io::Result<Self> {
        private(parent)?;
        let path = parent.join(name);
        remove(&path)?;
        private(&path)?;
        let lock = File::create(path.join(LOCK))?;
        lock.try_lock().map_err(io::Error::from)?;
        for part in ["tree", "session"] {
            private(&path.join(part))?;
        }
        Ok(Self { path, _lock: lock })
    }

    /// Where the job works.
    pub(super) fn tree(&self) -> PathBuf {
        self.path.join("tree")
    }

    /// Where its conversation is.
    pub(super) fn session(&self) -> PathBuf {
        self.path.join("session")
    }

    /// Where anything else may be put.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What stays is swept away by the next worker.
        let _ = remove(&self.path);
    }
}

fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes the rooms in which nobody is any more.
pub(super) fn sweep(parent: &Path) -> io::Result<()> {
    private(parent)?;
    for entry in std::fs::read_dir(parent)? {
        let path = entry?.path();
        let Ok(lock) = File::open(path.join(LOCK)) else {
            continue;
        };
        match lock.try_lock() {
            Ok(()) => remove(&path)?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_swept_when_nobody_is_in_them() {
        let parent = tempfile::tempdir().unwrap();
        let used = Room::new(parent.path(), "used").unwrap();
        let left = Room::new(parent.path(), "left").unwrap();
        let path = left.tree();
        // As a killed process leaves it: the lock is gone, the files are not.
        let Room { .. } = &left;
        std::fs::rename(&left.path, parent.path().join("orphan")).unwrap();
        drop(left);
        assert!(!path.exists() && parent.path().join("orphan").exists());
        sweep(parent.path()).unwrap();
        assert!(used.tree().exists() && !parent.path().join("orphan").exists());
        drop(used);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
