//! Directories held open by descriptor, so that what is done in one cannot be led elsewhere by a
//! link put in its place meanwhile.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{Access, AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

/// Names are only ever single components: nothing here leaves the directory.
#[derive(Debug)]
pub(super) struct Directory {
    descriptor: OwnedFd,
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
    Socket,
    Other,
}

impl Obstacle {
    pub(super) fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::NOENT) => Self::Missing,
            Some(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => Self::Swapped,
            Some(Errno::NXIO) => Self::Socket,
            Some(_) | None => Self::Other,
        }
    }
}

/// A handle for reaching what is inside, which needs no permission to list it.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// How files are opened: never through a link, never waiting for a FIFO's other end or a
/// device, never becoming the process's terminal.
const CAREFULLY: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl Directory {
    /// The directory `relative` beneath `root`. Both must be free of links: a link met on the
    /// way was put there after the path was checked, and is an error.
    pub(super) fn beneath(root: &Path, relative: &Path, parents: Parents) -> io::Result<Self> {
        let top = Self {
            descriptor: rustix::fs::openat(CWD, "/", DIRECTORY, Mode::empty())?,
        };
        let root = top.descend(root.strip_prefix("/").unwrap_or(root))?;
        match parents {
            Parents::MustExist => root.descend(relative),
            Parents::Create => root.step(relative, parents),
        }
    }

    /// Goes down without leaving this directory or following a link, in one operation.
    #[cfg(target_os = "linux")]
    fn descend(&self, relative: &Path) -> io::Result<Self> {
        use rustix::fs::ResolveFlags;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let path = Path::new(".").join(relative);
        match rustix::fs::openat2(&self.descriptor, &path, DIRECTORY, Mode::empty(), resolve) {
            Ok(descriptor) => Ok(Self { descriptor }),
            // Old kernels lack the call and some sandboxes forbid it.
            Err(Errno::NOSYS | Errno::PERM) => self.step(relative, Parents::MustExist),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn descend(&self, relative: &Path) -> io::Result<Self> {
        self.step(relative, Parents::MustExist)
    }

    /// Goes down one component at a time, each opened in the one before.
    fn step(&self, relative: &Path, parents: Parents) -> io::Result<Self> {
        let mut current = self.descriptor.try_clone()?;
        for component in relative.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                    return Err(Errno::XDEV.into());
                }
            };
            let open = || {
                let flags = DIRECTORY | OFlags::NOFOLLOW;
                rustix::fs::openat(&current, name, flags, Mode::empty())
            };
            let next = match (open(), parents) {
                (Err(Errno::NOENT), Parents::Create) => {
                    match rustix::fs::mkdirat(&current, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => open(),
                        Err(error) => Err(error),
                    }
                }
                (opened, Parents::Create | Parents::MustExist) => opened,
            };
            current = next?;
        }
        Ok(Self {
            descriptor: current,
        })
    }

    /// Opens a file to read.
    pub(super) fn open(&self, name: &OsStr) -> io::Result<File> {
        self.open_with(name, OFlags::RDONLY, Mode::empty())
    }

    /// Opens an existing file to write into, its content kept.
    pub(super) fn open_to_rewrite(&self, name: &OsStr) -> io::Result<File> {
        self.open_with(name, OFlags::WRONLY, Mode::empty())
    }

    /// Creates a file that must not exist, with these permissions less the process's mask.
    pub(super) fn create(&self, name: &OsStr, mode: u16) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        self.open_with(name, flags, Mode::from_raw_mode(mode.into()))
    }

    fn open_with(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
        let descriptor = rustix::fs::openat(&self.descriptor, name, flags | CAREFULLY, mode)?;
        Ok(File::from(descriptor))
    }

    /// Fails where the file's own permissions forbid writing, which replacing it would ignore.
    pub(super) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        let access = Access::WRITE_OK;
        Ok(rustix::fs::accessat(
            &self.descriptor,
            name,
            access,
            AtFlags::empty(),
        )?)
    }

    /// Puts one file in the place of another.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let here = &self.descriptor;
        Ok(rustix::fs::renameat(here, from, here, to)?)
    }

    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.descriptor,
            name,
            AtFlags::empty(),
        )?)
    }

    /// Makes renames in it survive a crash.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.readable()?)?)
    }

    /// The names of up to `limit` entries that are valid text.
    pub(super) fn names(&self, limit: usize) -> io::Result<Vec<String>> {
        let entries = Dir::new(self.readable()?)?;
        let text = |name: CString| name.into_string().ok();
        Ok(entries
            .map_while(Result::ok)
            .filter_map(|entry| text(entry.file_name().to_owned()))
            .filter(|name| name != "." && name != "..")
            .take(limit)
            .collect())
    }

    /// Another handle on it, which can do more than reach what is inside.
    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(
            &self.descriptor,
            ".",
            flags,
            Mode::empty(),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("root/a/b")).unwrap();
        std::fs::create_dir_all(base.join("outside/b")).unwrap();
        std::fs::write(base.join("root/a/b/file"), "inside").unwrap();
        std::fs::write(base.join("outside/b/file"), "outside").unwrap();
        symlink(base.join("outside"), base.join("root/link")).unwrap();
        symlink("a", base.join("root/inner")).unwrap();
        (temp, base)
    }

    #[test]
    fn both_ways_down_agree() {
        let (_temp, base) = tree();
        let root = Directory::beneath(&base, Path::new("root"), Parents::MustExist).unwrap();
        for (path, expected) in [
            ("", true),
            ("a", true),
            ("a/b", true),
            ("a/missing", false),
            ("a/b/file", false),
            ("link", false),
            ("link/b", false),
            ("inner/b", false),
            ("../outside", false),
            ("a/../../outside", false),
            ("/etc", false),
        ] {
            let path = Path::new(path);
            assert_eq!(root.descend(path).is_ok(), expected, "{path:?}");
            let step = root.step(path, Parents::MustExist);
            assert_eq!(step.is_ok(), expected, "{path:?}");
        }
    }

    #[test]
    fn a_root_that_became_a_link_is_refused() {
        let (_temp, base) = tree();
        let root = base.join("root/link");
        assert!(Directory::beneath(&root, Path::new("b"), Parents::MustExist).is_err());
        assert!(Directory::beneath(&root, Path::new("new"), Parents::Create).is_err());
        assert!(!base.join("outside/new").exists());
    }

    #[test]
    fn parents_are_created_only_inside() {
        let (_temp, base) = tree();
        let root = base.join("root");
        Directory::beneath(&root, Path::new("x/y/z"), Parents::Create).unwrap();
        assert!(root.join("x/y/z").is_dir());
        assert!(Directory::beneath(&root, Path::new("link/new"), Parents::Create).is_err());
        assert!(!base.join("outside/new").exists());
    }

    #[test]
    fn files_are_not_opened_through_links() {
        let (_temp, base) = tree();
        symlink("b/file", base.join("root/a/link")).unwrap();
        let directory =
            Directory::beneath(&base.join("root"), Path::new("a"), Parents::MustExist).unwrap();
        let error = directory.open(OsStr::new("link")).unwrap_err();
        assert_eq!(Obstacle::of(&error), Obstacle::Swapped);
        assert!(directory.open_to_rewrite(OsStr::new("link")).is_err());
        assert!(directory.create(OsStr::new("link"), 0o666).is_err());
    }

    #[test]
    fn names_are_bounded() {
        let (_temp, base) = tree();
        let directory = Directory::beneath(&base, Path::new("root"), Parents::MustExist).unwrap();
        let mut names = directory.names(10).unwrap();
        names.sort();
        assert_eq!(names, ["a", "inner", "link"]);
        assert_eq!(directory.names(2).unwrap().len(), 2);
    }
}
