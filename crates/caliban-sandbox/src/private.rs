//! A directory of the session's own: its temporary files, and what is put over what is hidden.
//! It goes with the session; what a killed one left is removed by the next.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::plan::{Plan, Shape};

/// How directories of sessions begin.
const PREFIX: &str = "session-";
/// Held for as long as a session lives.
const LOCK: &str = "lock";
/// The most that are removed of those whose sessions were killed.
const MAX_SWEPT: usize = 64;

#[derive(Debug)]
pub(crate) struct Private {
    directory: TempDir,
    _lock: File,
    /// A copy of the executable, where the file it was started from is another by now.
    copied: OnceLock<PathBuf>,
}

impl Private {
    /// Makes one beneath `parent`.
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        private_directory(parent)?;
        sweep(parent);
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        // Mounts take no links.
        let root = directory.path().canonicalize()?;
        let lock = File::create_new(root.join(LOCK))?;
        lock.try_lock().map_err(io::Error::from)?;
        for name in ["tmp", "var-tmp"] {
            private_directory(&root.join(name))?;
        }
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o444)
            .open(root.join("blank"))?;
        Ok(Self {
            directory,
            _lock: lock,
            copied: OnceLock::new(),
        })
    }

    /// Removes it before its time, for those who cannot wait until nobody holds it any more.
    pub(crate) fn remove(&self) {
        // What cannot be removed is tried again by the next session.
        let _ = std::fs::remove_dir_all(self.path());
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn blank(&self) -> PathBuf {
        self.path().join("blank")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.path().join("tmp")
    }

    /// Makes the places that a plan needs in the temporary directories. No command can have put
    /// anything else there: in their sandboxes these are mounts, which stay where they are.
    pub(crate) fn make(plan: &Plan) -> io::Result<()> {
        for (path, shape) in &plan.made {
            match shape {
                Shape::Directory => private_directory(path)?,
                Shape::File => {
                    OpenOptions::new()
                        .append(true)
                        .create(true)
                        .mode(0o600)
                        .open(path)?;
                }
            }
        }
        Ok(())
    }

    /// A file that is this executable, at a path without links.
    pub(crate) fn program(&self, executable: &Path) -> io::Result<PathBuf> {
        let running = executable.metadata()?;
        // Of the kernel's own link this is the name it had.
        let named = executable.canonicalize();
        if let Ok(named) = named
            && named
                .metadata()
                .is_ok_and(|found| (found.dev(), found.ino()) == (running.dev(), running.ino()))
        {
            return Ok(named);
        }
        if let Some(copied) = self.copied.get() {
            return Ok(copied.clone());
        }
        let copy = self.path().join("caliban");
        std::fs::copy(executable, &copy)?;
        Ok(self.copied.get_or_init(|| copy).clone())
    }
}

/// A directory that only its owner sees, with those above it.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes the directories that nobody holds any more.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    let is_one = |name: &std::ffi::OsStr| name.to_str().is_some_and(|it| it.starts_with(PREFIX));
    let entries = entries.flatten().filter(|entry| is_one(&entry.file_name()));
    for entry in entries.take(MAX_SWEPT) {
        // One without a lock is being made at this moment.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            continue;
        };
        if lock.try_lock().is_ok() {
            // What cannot be removed is tried again by the next session.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_session_left_is_removed_and_a_living_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let living = Private::new(folder.path()).unwrap();
        let dead = folder.path().join("session-dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        let another = Private::new(folder.path()).unwrap();
        assert!(!dead.exists());
        assert!(living.path().exists());
        let gone = another.path().to_owned();
        drop(another);
        assert!(!gone.exists());
    }

    #[test]
    fn an_executable_that_was_replaced_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let private = Private::new(folder.path()).unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "x").unwrap();
        let found = private.program(&program).unwrap();
        assert_eq!(found, program.canonicalize().unwrap());
    }
}
