//! Writing a whole file so that it has either its old or its new content, and stays the file it
//! was: its permissions, owner and other names are kept.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};

use super::directory::Directory;
use super::opener::Opened;

/// Permissions of new files, less the process's mask.
const NEW_FILE: u16 = 0o666;
/// Permissions of a replacement until it has those of the file it replaces.
const PRIVATE: u16 = 0o600;

/// Writes the file `name`. `existing` is the file that is there now, if any.
pub(super) fn save(
    directory: &Directory,
    name: &OsStr,
    existing: Option<&Opened>,
    bytes: &[u8],
) -> io::Result<()> {
    let Some(existing) = existing else {
        return replace(directory, name, None, bytes);
    };
    directory.check_writable(name)?;
    // A replacement would separate this name from the file's others.
    if links(existing) > 1 {
        return rewrite(directory, name, bytes);
    }
    match replace(directory, name, Some(existing), bytes) {
        Err(error) if prevents_replacing(&error) => rewrite(directory, name, bytes),
        result => result,
    }
}

/// Whether a file may still be written into although it cannot be replaced: the directory is
/// not ours to change, the owner cannot be kept, or the file is a mount point.
fn prevents_replacing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::ResourceBusy
    )
}

fn replace(
    directory: &Directory,
    name: &OsStr,
    existing: Option<&Opened>,
    bytes: &[u8],
) -> io::Result<()> {
    let mode = existing.map_or(NEW_FILE, |_| PRIVATE);
    let temporary = Temporary::create(directory, mode)?;
    let mut file = &temporary.file;
    file.write_all(bytes)?;
    if let Some(existing) = existing {
        keep_owner(file, existing)?;
        file.set_permissions(existing.meta.permissions())?;
    }
    file.sync_all()?;
    temporary.rename(name)?;
    // The content is in place; that the system cannot sync a directory it may not read, or
    // does not sync at all, changes nothing about that.
    let _ = directory.sync();
    Ok(())
}

fn rewrite(directory: &Directory, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let mut file = directory.open_to_rewrite(name)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no longer a regular file"));
    }
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A file under a random name that is removed unless it gets its final one.
struct Temporary<'a> {
    directory: &'a Directory,
    name: OsString,
    file: File,
    outcome: Outcome,
}

enum Outcome {
    Abandoned,
    Renamed,
}

impl<'a> Temporary<'a> {
    fn create(directory: &'a Directory, mode: u16) -> io::Result<Self> {
        let name = OsString::from(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
        Ok(Self {
            file: directory.create(&name, mode)?,
            directory,
            name,
            outcome: Outcome::Abandoned,
        })
    }

    fn rename(mut self, to: &OsStr) -> io::Result<()> {
        self.directory.rename(&self.name, to)?;
        self.outcome = Outcome::Renamed;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        match self.outcome {
            // The error that led here is the one to report.
            Outcome::Abandoned => drop(self.directory.remove(&self.name)),
            Outcome::Renamed => {}
        }
    }
}

#[cfg(unix)]
fn links(opened: &Opened) -> u64 {
    use std::os::unix::fs::MetadataExt;
    opened.meta.nlink()
}

#[cfg(not(unix))]
fn links(_opened: &Opened) -> u64 {
    1
}

#[cfg(unix)]
fn keep_owner(file: &File, existing: &Opened) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (now, wanted) = (file.metadata()?, &existing.meta);
    if (now.uid(), now.gid()) == (wanted.uid(), wanted.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(wanted.uid()), Some(wanted.gid()))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
fn keep_owner(_file: &File, _existing: &Opened) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::path::Path;

    use super::super::directory::Parents;
    use super::*;

    #[test]
    fn a_failed_replacement_leaves_nothing_behind() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let directory = Directory::beneath(&root, Path::new(""), Parents::MustExist).unwrap();
        std::fs::create_dir(temp.path().join("taken")).unwrap();
        for name in ["n".repeat(300).as_str(), "taken"] {
            assert!(save(&directory, OsStr::new(name), None, b"text").is_err());
        }
        assert_eq!(directory.names(10).unwrap(), ["taken"]);
    }
}
