//! Every operation on files of the store, so that tests can fail each of them.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use crate::platform;

/// The operations on the store. Files are private to their owner; no final link is followed.
pub trait Disk: Debug + Send + Sync {
    /// Makes a directory and its missing parents for the owner alone, durably. One that exists
    /// stays as it is; a link in its place is an error.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Creates a file that does not exist yet; its content is not durable yet.
    fn create(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Appends to a file, which is created if it is missing; not durable yet.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content of a file durable.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// The whole file, if it has at most so many bytes.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;
    /// A regular file as it lies there; nothing if there is none.
    fn stat(&self, path: &Path) -> io::Result<Option<Stored>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory; none if it does not exist.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
}

/// A file of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub len: u64,
    /// Device and inode: two names of one file are counted once.
    pub identity: (u64, u64),
}

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
            Err(io::Error::from(io::ErrorKind::NotADirectory))
        }
    }

    fn create(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        platform::private(&mut options).open(path)?.write_all(bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        platform::private(&mut options).open(path)?.write_all(bytes)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        platform::private(options.read(true))
            .open(path)?
            .sync_data()
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut options = OpenOptions::new();
        let file = platform::private(options.read(true)).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        Ok(bytes)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Stored>> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(metadata) if metadata.is_file() => Ok(Some(Stored {
                len: metadata.len(),
                identity: platform::identity(&metadata),
            })),
            Ok(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
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

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        platform::settled(File::open(path)?.sync_all())
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
        names.sort();
        Ok(names)
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

/// Writes a file under a temporary name and gives it its own, durably: whoever reads sees the old
/// content or the new one.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    forget(disk, &temporary)?;
    disk.create(&temporary, bytes)?;
    disk.sync(&temporary)?;
    disk.rename(&temporary, path)?;
    disk.sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// The same without waiting for it to be durable.
pub(crate) fn place(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    forget(disk, &temporary)?;
    disk.create(&temporary, bytes)?;
    disk.rename(&temporary, path)
}

/// Removes a file that may be missing.
pub(crate) fn forget(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn files_are_private_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        let directory = root.path().join("a/b");
        RealDisk.make_directory(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);
        let file = directory.join("f");
        RealDisk.create(&file, b"one").unwrap();
        assert_eq!(mode(&file), 0o600);
        assert!(
            RealDisk.create(&file, b"two").is_err(),
            "nothing is taken over"
        );
        assert!(RealDisk.read(&file, 2).is_err(), "larger than the bound");
        assert_eq!(RealDisk.read(&file, 3).unwrap(), b"one");

        let link = root.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(RealDisk.append(&link, b"x").is_err());
        assert!(RealDisk.read(&link, 10).is_err());
        assert!(RealDisk.stat(&link).is_err());
    }
}
