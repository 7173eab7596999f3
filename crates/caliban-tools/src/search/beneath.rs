//! Opening files beneath a directory without ever following a link, so that a link planted
//! between the walk and the open leads nowhere.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

/// Directories on the way need not be readable, only passable, where the system can say so.
#[cfg(target_os = "linux")]
const PASSAGE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASSAGE: OFlags = OFlags::RDONLY;

/// A directory held open.
#[derive(Debug)]
pub(super) struct Directory(OwnedFd);

/// What stands under a name.
#[derive(Debug)]
pub(super) enum Opened {
    Regular(File, Metadata),
    /// A link, device, FIFO, socket or directory; it was not opened.
    Other,
}

/// Where the name of a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// Somebody said it; what stands there is not known.
    Given,
    /// A walk found a regular file there a moment ago.
    Listed,
}

impl Directory {
    /// Opens a resolved absolute path; a link that appeared in it since is an error.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let top = openat(CWD, "/", directory_flags(), Mode::empty())?;
        Ok(Self(descend(top, path)?))
    }

    /// Opens files in it.
    pub(super) fn opener(&self) -> Opener<'_> {
        Opener {
            base: self,
            parent: None,
        }
    }

    /// Whether something has this name here, links on the way not followed.
    pub(super) fn holds(&self, relative: &Path) -> bool {
        let found = split(relative).and_then(|(parent, name)| {
            let parent = self.directory(parent)?;
            Ok(statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
        });
        found.is_ok()
    }

    fn directory(&self, relative: &Path) -> std::io::Result<OwnedFd> {
        descend(self.0.try_clone()?, relative)
    }
}

/// Opens files that come in path order: the directory of the last one is likely that of the next.
#[derive(Debug)]
pub(super) struct Opener<'base> {
    base: &'base Directory,
    parent: Option<(PathBuf, OwnedFd)>,
}

impl Opener<'_> {
    /// Opens a regular file. Anything else is left alone: opening a FIFO or a device can block
    /// or do things.
    pub(super) fn file(&mut self, relative: &Path, origin: Name) -> std::io::Result<Opened> {
        let (parent, name) = split(relative)?;
        let parent = match &mut self.parent {
            Some((path, directory)) if path == parent => directory,
            last => {
                let directory = self.base.directory(parent)?;
                &mut last.insert((parent.to_owned(), directory)).1
            }
        };
        if origin == Name::Given {
            let before = statat(&*parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
                return Ok(Opened::Other);
            }
        }
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&*parent, name, flags, Mode::empty()) {
            // A link took its place.
            Err(Errno::LOOP) => return Ok(Opened::Other),
            opened => File::from(opened?),
        };
        // It may have been replaced after the first look; what was opened cannot have blocked.
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Ok(Opened::Other);
        }
        Ok(Opened::Regular(file, meta))
    }
}

/// The directory of a file and its name there.
fn split(relative: &Path) -> std::io::Result<(&Path, &OsStr)> {
    let name = relative.file_name().ok_or(Errno::INVAL)?;
    Ok((relative.parent().unwrap_or(Path::new("")), name))
}

fn directory_flags() -> OFlags {
    PASSAGE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn descend(from: OwnedFd, path: &Path) -> std::io::Result<OwnedFd> {
    let mut directory = from;
    for component in path.components() {
        match component {
            Component::Normal(name) => {
                directory = openat(&directory, name, directory_flags(), Mode::empty())?;
            }
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
        }
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_refused_wherever_they_stand() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("root/sub")).unwrap();
        std::fs::create_dir(base.join("outside")).unwrap();
        std::fs::write(base.join("root/sub/file"), "inside").unwrap();
        std::fs::write(base.join("outside/file"), "outside").unwrap();
        symlink("../outside", base.join("root/link")).unwrap();
        symlink("../outside/file", base.join("root/file")).unwrap();
        let root = Directory::open(&base.join("root")).unwrap();

        for origin in [Name::Given, Name::Listed] {
            let open = |path: &str| root.opener().file(Path::new(path), origin);
            let Opened::Regular(mut file, _) = open("sub/file").unwrap() else {
                panic!("a regular file");
            };
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside");
            assert!(matches!(open("file").unwrap(), Opened::Other));
            assert!(open("link/file").is_err());
            assert!(open("../outside/file").is_err());
        }
        assert!(root.holds(Path::new("link")));
        assert!(!root.holds(Path::new("link/file")));
        assert!(Directory::open(&base.join("root/link")).is_err());
    }

    #[test]
    fn special_files_are_not_opened() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        rustix::fs::mkfifoat(CWD, base.join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let root = Directory::open(&base).unwrap();
        // One that takes the place of a listed file is opened without waiting, and closed.
        for origin in [Name::Given, Name::Listed] {
            let opened = root.opener().file(Path::new("pipe"), origin).unwrap();
            assert!(matches!(opened, Opened::Other));
        }
        let devices = Directory::open(Path::new("/dev")).unwrap();
        assert!(matches!(
            devices
                .opener()
                .file(Path::new("zero"), Name::Given)
                .unwrap(),
            Opened::Other
        ));
    }
}
