//! Directories by path, for systems without directory descriptors. The checks are the same, but
//! a path may change between the check and its use.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Names are only ever single components: nothing here leaves the directory.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

/// What to do about directories that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parents {
    MustExist,
    Create,
}

/// Why something in a directory could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    Missing,
    /// A link, or no directory, where there was none when the path was resolved.
    Swapped,
    /// Something that cannot be opened at all.
    #[expect(dead_code, reason = "there are none here")]
    Socket,
    Other,
}

impl Obstacle {
    pub(super) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::NotADirectory => Self::Swapped,
            _ => Self::Other,
        }
    }
}

impl Directory {
    fn at(path: &Path, parents: Parents) -> io::Result<Self> {
        match parents {
            Parents::MustExist => {}
            Parents::Create => std::fs::create_dir_all(path)?,
        }
        if !std::fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    pub(super) fn beneath(root: &Path, relative: &Path, parents: Parents) -> io::Result<Self> {
        Self::at(&root.join(relative), parents)
    }

    pub(super) fn open(&self, name: &OsStr) -> io::Result<File> {
        File::open(self.path.join(name))
    }

    pub(super) fn open_to_rewrite(&self, name: &OsStr) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join(name))
    }

    pub(super) fn create(&self, name: &OsStr, _mode: u16) -> io::Result<File> {
        File::create_new(self.path.join(name))
    }

    pub(super) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        let meta = std::fs::metadata(self.path.join(name))?;
        if meta.permissions().readonly() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    /// Nothing to do: there is no portable way to sync a directory.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as on Unix")]
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn names(&self, limit: usize) -> io::Result<Vec<String>> {
        Ok(std::fs::read_dir(&self.path)?
            .map_while(Result::ok)
            .filter_map(|entry| entry.file_name().into_string().ok())
            .take(limit)
            .collect())
    }
}
