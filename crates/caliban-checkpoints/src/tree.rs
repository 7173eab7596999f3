//! Every operation on files of the user, so that tests can fail each of them. A path is relative to
//! the workspace or absolute; it is walked component by component, and no link on the way is
//! followed, whoever puts it there and when.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::image::{Digest, Image};

/// What is at a path, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub shape: Shape,
    /// The permissions alone.
    pub mode: u32,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i128,
    /// When anything about it changed last, which no program can set back.
    pub changed: i128,
    pub identity: (u64, u64),
    /// How many names it has.
    pub links: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    File,
    Link,
    Directory,
    Special,
}

/// The operations on the user's files.
pub trait Tree: Debug + Send + Sync {
    /// What is there; nothing where the path does not lead anywhere without following a link.
    fn look(&self, path: &Path) -> io::Result<Option<Stamp>>;
    /// The content of a regular file, if it has at most so many bytes.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;
    /// The digest of a regular file; nothing where it has more bytes than that.
    fn digest(&self, path: &Path, limit: u64) -> io::Result<Option<Digest>>;
    /// Where a link points to.
    fn target(&self, path: &Path) -> io::Result<PathBuf>;
    /// Creates a file that does not exist yet; its content is not durable yet.
    fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()>;
    /// Makes the content and the permissions of a file durable.
    fn sync(&self, path: &Path) -> io::Result<()>;
    fn create_link(&self, path: &Path, target: &Path) -> io::Result<()>;
    /// Gives what is in a directory another name there, in the place of what has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Sets the permissions of a directory.
    fn set_directory_mode(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// The names in a directory.
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>>;
    /// Makes the names beside this path durable.
    fn sync_beside(&self, path: &Path) -> io::Result<()>;
}

/// The largest file whose digest is taken in order to compare it.
pub(crate) const COMPARED: u64 = 256 << 20;

/// What is at a path now.
pub(crate) fn image(tree: &dyn Tree, path: &Path) -> io::Result<Image> {
    let Some(stamp) = tree.look(path)? else {
        return Ok(Image::Absent);
    };
    Ok(match stamp.shape {
        Shape::Special => Image::Special,
        Shape::Directory => Image::Directory { mode: stamp.mode },
        Shape::Link => Image::Link {
            target: tree.target(path)?,
        },
        Shape::File => Image::File {
            digest: tree.digest(path, COMPARED)?,
            size: stamp.size,
            mode: stamp.mode,
        },
    })
}

/// Whether a path belongs to a repository itself, which is never touched.
pub(crate) fn is_repository(path: &Path) -> bool {
    path.components().any(|component| match component {
        // Some file systems do not tell `.GIT` from `.git`.
        Component::Normal(name) => name.eq_ignore_ascii_case(".git"),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    })
}

/// The files of a workspace.
#[derive(Debug, Clone)]
pub struct RealTree {
    root: PathBuf,
}

impl RealTree {
    /// The root is canonical.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }
}

#[cfg(unix)]
pub(crate) use real::stamp_at;

#[cfg(unix)]
mod real {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
    use rustix::io::Errno;
    use sha2::{Digest as _, Sha256};

    use super::{Component, Digest, OsString, Path, PathBuf, RealTree, Shape, Stamp, Tree, io};
    use crate::platform;

    const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
    const DIRECTORY: OFlags = SAFE.union(OFlags::DIRECTORY);
    /// Bytes that are read at once for a digest.
    const CHUNK: usize = 64 << 10;

    impl RealTree {
        /// The directory that a path lies in, and its name there.
        fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
            let start = if path.is_absolute() {
                Path::new("/")
            } else {
                &self.root
            };
            // What is above the workspace was chosen by the user and may be a link.
            let flags = OFlags::CLOEXEC | OFlags::DIRECTORY;
            let mut directory = rustix::fs::open(start, flags, Mode::empty())?;
            let mut last = None;
            for component in path.components() {
                let name = match component {
                    Component::Normal(name) => name,
                    Component::RootDir => continue,
                    Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                        return Err(io::Error::from(io::ErrorKind::InvalidInput));
                    }
                };
                if let Some(inner) = last.replace(name) {
                    directory = rustix::fs::openat(&directory, inner, DIRECTORY, Mode::empty())?;
                }
            }
            let name = last.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
            Ok((directory, name))
        }

        fn open(&self, path: &Path) -> io::Result<File> {
            let (parent, name) = self.parent(path)?;
            let flags = SAFE | OFlags::NONBLOCK;
            let file = File::from(rustix::fs::openat(&parent, name, flags, Mode::empty())?);
            if file.metadata()?.is_file() {
                Ok(file)
            } else {
                Err(io::Error::from(io::ErrorKind::InvalidInput))
            }
        }
    }

    impl Tree for RealTree {
        fn look(&self, path: &Path) -> io::Result<Option<Stamp>> {
            let leads_nowhere = |errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP);
            let (parent, name) = match self.parent(path) {
                Err(error) if Errno::from_io_error(&error).is_some_and(leads_nowhere) => {
                    return Ok(None);
                }
                other => other?,
            };
            match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(errno) if leads_nowhere(errno) => Ok(None),
                Err(errno) => Err(errno.into()),
                Ok(stat) => Ok(Some(stamp(&stat))),
            }
        }

        fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let file = self.open(path)?;
            file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > limit {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            Ok(bytes)
        }

        fn digest(&self, path: &Path, limit: u64) -> io::Result<Option<Digest>> {
            let mut file = self.open(path)?.take(limit.saturating_add(1));
            let mut hasher = Sha256::new();
            let mut chunk = vec![0; CHUNK];
            loop {
                match file.read(&mut chunk)? {
                    0 => break,
                    len => hasher.update(&chunk[..len]),
                }
            }
            Ok((file.limit() > 0).then(|| Digest::finish(hasher)))
        }

        fn target(&self, path: &Path) -> io::Result<PathBuf> {
            let (parent, name) = self.parent(path)?;
            let read = rustix::fs::readlinkat(&parent, name, Vec::new())?;
            Ok(PathBuf::from(
                platform::name(read.into_bytes()).unwrap_or_default(),
            ))
        }

        fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
            let (parent, name) = self.parent(path)?;
            let flags = SAFE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let mut file = File::from(rustix::fs::openat(
                &parent,
                name,
                flags,
                Mode::RUSR | Mode::WUSR,
            )?);
            file.write_all(bytes)?;
            rustix::fs::fchmod(&file, permissions(mode))?;
            if mode & 0o400 == 0 {
                // It could not be opened any more to be made durable.
                file.sync_all()?;
            }
            Ok(())
        }

        fn sync(&self, path: &Path) -> io::Result<()> {
            let (parent, name) = self.parent(path)?;
            let flags = SAFE | OFlags::NONBLOCK;
            match rustix::fs::openat(&parent, name, flags, Mode::empty()) {
                Ok(file) => Ok(rustix::fs::fsync(&file)?),
                Err(Errno::ACCESS) => Ok(()),
                Err(errno) => Err(errno.into()),
            }
        }

        fn create_link(&self, path: &Path, target: &Path) -> io::Result<()> {
            let (parent, name) = self.parent(path)?;
            Ok(rustix::fs::symlinkat(target, &parent, name)?)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            let (old, from) = self.parent(from)?;
            let (new, to) = self.parent(to)?;
            Ok(rustix::fs::renameat(&old, from, &new, to)?)
        }

        fn remove_file(&self, path: &Path) -> io::Result<()> {
            let (parent, name) = self.parent(path)?;
            Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?)
        }

        fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()> {
            let (parent, name) = self.parent(path)?;
            rustix::fs::mkdirat(&parent, name, permissions(mode))?;
            // What the process's mask took away.
            self.set_directory_mode(path, mode)
        }

        fn remove_directory(&self, path: &Path) -> io::Result<()> {
            let (parent, name) = self.parent(path)?;
            Ok(rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
        }

        fn set_directory_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
            let (parent, name) = self.parent(path)?;
            let directory = rustix::fs::openat(&parent, name, DIRECTORY, Mode::empty())?;
            Ok(rustix::fs::fchmod(&directory, permissions(mode))?)
        }

        fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
            let (parent, name) = self.parent(path)?;
            let directory = rustix::fs::openat(&parent, name, DIRECTORY, Mode::empty())?;
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(directory)? {
                let name = entry?.file_name().to_bytes().to_vec();
                if name != b"." && name != b".." {
                    names.extend(platform::name(name));
                }
            }
            Ok(names)
        }

        fn sync_beside(&self, path: &Path) -> io::Result<()> {
            let (parent, _) = self.parent(path)?;
            platform::settled(rustix::fs::fsync(&parent).map_err(io::Error::from))
        }
    }

    fn permissions(mode: u32) -> Mode {
        Mode::from_bits_truncate((mode & 0o777) as rustix::fs::RawMode)
    }

    #[allow(
        clippy::cast_lossless,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "the types of these fields differ between systems"
    )]
    fn stamp(stat: &Stat) -> Stamp {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Stamp {
            shape: match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Shape::File,
                FileType::Symlink => Shape::Link,
                FileType::Directory => Shape::Directory,
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => Shape::Special,
            },
            mode: stat.st_mode as u32 & 0o777,
            size: stat.st_size as u64,
            modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            links: stat.st_nlink as u64,
        }
    }

    /// What is at a path beneath a directory that may be trusted on the way there.
    pub(crate) fn stamp_at(directory: &File, path: &Path) -> io::Result<Stamp> {
        let stat = rustix::fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stamp(&stat))
    }

    /// The same of what the standard library says.
    impl From<&std::fs::Metadata> for Stamp {
        fn from(metadata: &std::fs::Metadata) -> Self {
            use std::os::unix::fs::MetadataExt as _;
            let nanoseconds =
                |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
            let kind = metadata.file_type();
            Self {
                shape: if kind.is_file() {
                    Shape::File
                } else if kind.is_symlink() {
                    Shape::Link
                } else if kind.is_dir() {
                    Shape::Directory
                } else {
                    Shape::Special
                },
                mode: metadata.mode() & 0o777,
                size: metadata.size(),
                modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
                changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
                identity: (metadata.dev(), metadata.ino()),
                links: metadata.nlink(),
            }
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_anywhere() {
        let root = tempfile::tempdir().unwrap();
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join("f"), "theirs").unwrap();
        symlink(out.path(), root.path().join("d")).unwrap();
        symlink(out.path().join("f"), root.path().join("l")).unwrap();
        let tree = RealTree::new(root.path().to_owned());
        assert_eq!(tree.look(Path::new("d/f")).unwrap(), None);
        assert!(tree.read(Path::new("d/f"), 100).is_err());
        assert!(tree.read(Path::new("l"), 100).is_err());
        assert!(tree.create(Path::new("d/new"), b"", 0o600).is_err());
        assert!(tree.remove_file(Path::new("d/f")).is_err());
        assert!(tree.create(Path::new("../up"), b"", 0o600).is_err());
        assert!(tree.create(Path::new(""), b"", 0o600).is_err());
        assert!(matches!(
            image(&tree, Path::new("l")).unwrap(),
            Image::Link { .. }
        ));
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
    }

    #[test]
    fn both_ways_of_looking_see_the_same() {
        let root = tempfile::tempdir().unwrap();
        let tree = RealTree::new(root.path().to_owned());
        tree.create(Path::new("f"), b"abc", 0o640).unwrap();
        tree.create_link(Path::new("l"), Path::new("f")).unwrap();
        tree.make_directory(Path::new("d"), 0o777).unwrap();
        for name in ["f", "l", "d"] {
            let looked = tree.look(Path::new(name)).unwrap().unwrap();
            let listed = Stamp::from(&fs::symlink_metadata(root.path().join(name)).unwrap());
            assert_eq!(looked, listed);
        }
        assert_eq!(
            image(&tree, Path::new("f")).unwrap(),
            Image::File {
                digest: Some(Digest::of(b"abc")),
                size: 3,
                mode: 0o640
            }
        );
        assert_eq!(tree.digest(Path::new("f"), 2).unwrap(), None);
        assert!(tree.digest(Path::new("f"), 3).unwrap().is_some());
    }
}
