//! Every operation on files that this crate makes, so that tests can fail each of them.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use crate::lock;

/// The operations on files. Files are private to their owner; no final link is followed.
pub trait Disk: Debug + Send + Sync {
    /// Makes a directory and its missing parents for the owner alone, durably. One that exists
    /// stays as it is; a link in its place is an error.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Creates a file that does not exist yet, to be appended to.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file that exists, to be appended to.
    fn append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskReader>>;
    /// Size and time of a regular file; nothing if there is none.
    fn stat(&self, path: &Path) -> io::Result<Option<FileStat>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory; none if it does not exist.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Tries to get an exclusive lock, which lasts until it is dropped or its process ends.
    fn lock(&self, path: &Path) -> io::Result<LockAttempt>;
}

/// A file that is written to. Every method may be called from any thread.
pub trait DiskFile: Debug + Send + Sync {
    /// Appends in one system call; returns how many bytes were taken.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes the content durable.
    fn sync(&self) -> io::Result<()>;
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Whether the file has lost its name: what is written to it can never be found again.
    fn is_gone(&self) -> io::Result<bool>;
}

/// A file that is read from.
pub trait DiskReader: Debug + Read + Seek + Send {}

impl DiskReader for File {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub len: u64,
    pub modified: Timestamp,
}

/// What became of an attempt to lock.
#[derive(Debug)]
pub enum LockAttempt {
    Held(Box<dyn HeldLock>),
    /// Somebody else has it; the process where known.
    Busy(Option<u32>),
}

/// A lock; dropping it sets it free.
pub trait HeldLock: Debug + Send + Sync {}

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = path
            .ancestors()
            .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.is_dir())
            .collect();
        for directory in missing.into_iter().rev() {
            match private_directory().create(directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
            if let Some(parent) = directory.parent() {
                self.sync_directory(parent)?;
            }
        }
        if fs::symlink_metadata(path)?.is_dir() {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                "it is not a directory",
            ))
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        Ok(Arc::new(private(&mut options).open(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = private(options.append(true)).open(path)?;
        check_regular(&file)?;
        Ok(Arc::new(file))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskReader>> {
        let mut options = OpenOptions::new();
        let file = private(options.read(true)).open(path)?;
        check_regular(&file)?;
        Ok(Box::new(file))
    }

    fn stat(&self, path: &Path) -> io::Result<Option<FileStat>> {
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        if !metadata.is_file() {
            return Err(not_regular());
        }
        Ok(Some(FileStat {
            len: metadata.len(),
            modified: Timestamp::try_from(metadata.modified()?).unwrap_or(Timestamp::UNIX_EPOCH),
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    #[cfg(unix)]
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        match File::open(path)?.sync_all() {
            // A file system that has no such operation has nothing to make durable by it.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                ) =>
            {
                Ok(())
            }
            other => other,
        }
    }

    #[cfg(not(unix))]
    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut names = Vec::new();
        for entry in entries {
            // A name that is not UTF-8 is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn lock(&self, path: &Path) -> io::Result<LockAttempt> {
        lock::acquire(path)
    }
}

impl DiskFile for File {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self;
        io::Write::write(&mut file, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    #[cfg(unix)]
    fn is_gone(&self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.metadata()?.nlink() == 0)
    }

    #[cfg(not(unix))]
    fn is_gone(&self) -> io::Result<bool> {
        Ok(false)
    }
}

fn private_directory() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "has no modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder
}

/// Files are created for the owner alone; links are not followed, and a pipe in the place of a
/// file is not waited for.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600);
        options.custom_flags(flags.bits().cast_signed());
    }
    options
}

fn check_regular(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        Ok(())
    } else {
        Err(not_regular())
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn files_are_private_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        let directory = root.path().join("a/b");
        RealDisk.make_directory(&directory).unwrap();
        RealDisk.make_directory(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);
        let file = directory.join("f");
        RealDisk.create(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert!(RealDisk.create(&file).is_err(), "nothing is taken over");

        let link = root.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(RealDisk.create(&link).is_err());
        assert!(RealDisk.append(&link).is_err());
        assert!(RealDisk.read(&link).is_err());
        assert!(RealDisk.stat(&link).is_err());
        let linked = root.path().join("linked");
        symlink(&directory, &linked).unwrap();
        assert!(RealDisk.make_directory(&linked).is_err());
        assert!(RealDisk.read(&directory).is_err());
    }

    #[test]
    fn a_file_without_a_name_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        let file = RealDisk.create(&path).unwrap();
        assert!(!file.is_gone().unwrap());
        RealDisk.remove_file(&path).unwrap();
        assert!(file.is_gone().unwrap());
        assert_eq!(RealDisk.stat(&path).unwrap(), None);
    }
}
