//! What is looked up on the disk before a plan is made.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What there is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    Link,
    /// A socket, a pipe or a device.
    Special,
}

/// The most entries that are listed of one directory.
const MAX_ENTRIES: usize = 4096;

/// How long a configuration may be that is read.
const MAX_TEXT: u64 = 1024 * 1024;

/// How far the reading of a directory came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// To its end, or it is not there.
    Whole,
    /// There was more than anybody wanted to see.
    Stopped,
    /// It is there and cannot be read.
    Closed,
}

/// A look at the disk. Plans are made of nothing else, so that tests can show them any disk.
pub(crate) trait Disk {
    /// What is there, links not followed.
    fn kind(&self, path: &Path) -> Option<Kind>;
    /// Where a path leads, every link followed; nothing where it leads nowhere.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;
    /// Shows what is in a directory, one after the other, until enough is seen.
    fn read(
        &self,
        directory: &Path,
        see: &mut dyn FnMut(PathBuf, Kind) -> ControlFlow<()>,
    ) -> Extent;
    /// What is in a directory, as far as that can be listed: only for those whom less makes stricter.
    fn entries(&self, directory: &Path) -> Vec<(PathBuf, Kind)> {
        let mut entries = Vec::new();
        self.read(directory, &mut |path, kind| {
            entries.push((path, kind));
            if entries.len() < MAX_ENTRIES {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        entries
    }
    /// The text of a file that is not too long for a configuration.
    fn text(&self, path: &Path) -> Option<String>;
    /// Where the sockets of this machine's programs are.
    fn sockets(&self) -> Vec<PathBuf>;
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host;

impl From<std::fs::FileType> for Kind {
    fn from(kind: std::fs::FileType) -> Self {
        if kind.is_symlink() {
            Self::Link
        } else if kind.is_dir() {
            Self::Directory
        } else if kind.is_file() {
            Self::File
        } else {
            Self::Special
        }
    }
}

impl Disk for Host {
    fn kind(&self, path: &Path) -> Option<Kind> {
        let found = std::fs::symlink_metadata(path).ok()?;
        Some(found.file_type().into())
    }

    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn read(
        &self,
        directory: &Path,
        see: &mut dyn FnMut(PathBuf, Kind) -> ControlFlow<()>,
    ) -> Extent {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => return extent_of(&error),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return extent_of(&error),
            };
            // What vanished meanwhile is not there.
            if let Ok(kind) = entry.file_type()
                && see(entry.path(), kind.into()).is_break()
            {
                return Extent::Stopped;
            }
        }
        Extent::Whole
    }

    fn text(&self, path: &Path) -> Option<String> {
        // What is no file could keep its reader waiting.
        let is_short = path
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() <= MAX_TEXT);
        let bytes = is_short.then(|| std::fs::read(path).ok()).flatten()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn sockets(&self) -> Vec<PathBuf> {
        // Where there is no such list there are no such namespaces either.
        let listed = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let mut sockets: Vec<PathBuf> = listed.lines().filter_map(socket_of).collect();
        sockets.sort();
        sockets.dedup();
        sockets
    }
}

fn extent_of(error: &io::Error) -> Extent {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Extent::Whole,
        _ => Extent::Closed,
    }
}

/// The path in a line of `/proc/net/unix`, which stands after seven other fields. Abstract names
/// begin with `@` and are closed by the namespace of the network.
fn socket_of(line: &str) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..7 {
        rest = rest.trim_start();
        rest = &rest[rest.find(' ')?..];
    }
    let path = rest.trim_start();
    path.starts_with('/').then(|| PathBuf::from(path))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// A disk that is a list. Links lead to the path after `->`.
    #[derive(Debug, Default)]
    pub(crate) struct Listed {
        pub(crate) paths: BTreeMap<PathBuf, Kind>,
        pub(crate) links: BTreeMap<PathBuf, PathBuf>,
        pub(crate) sockets: Vec<PathBuf>,
        /// Directories that cannot be read.
        pub(crate) closed: BTreeSet<PathBuf>,
        /// Directories with so many others in them.
        crowds: BTreeMap<PathBuf, usize>,
        texts: BTreeMap<PathBuf, String>,
    }

    impl Listed {
        /// Directories end with a slash; what is above a path exists.
        pub(crate) fn new(paths: &[&str]) -> Self {
            let mut disk = Self::default();
            for path in paths {
                if let Some((link, target)) = path.split_once(" -> ") {
                    disk.links.insert(link.into(), target.into());
                    disk.paths.insert(link.into(), Kind::Link);
                    continue;
                }
                let kind = if path.ends_with('/') {
                    Kind::Directory
                } else {
                    Kind::File
                };
                let path = PathBuf::from(path.trim_end_matches('/'));
                for above in path.ancestors().skip(1) {
                    disk.paths.insert(above.to_owned(), Kind::Directory);
                }
                disk.paths.insert(path, kind);
            }
            disk
        }
    }

    impl Listed {
        pub(crate) fn write(&mut self, path: &str, text: &str) {
            self.paths.insert(path.into(), Kind::File);
            self.texts.insert(path.into(), text.to_owned());
        }

        /// Puts this many directories in one.
        pub(crate) fn fill(&mut self, directory: &str, count: usize) {
            self.crowds.insert(directory.into(), count);
            self.paths.insert(directory.into(), Kind::Directory);
        }
    }

    impl Disk for Listed {
        fn kind(&self, path: &Path) -> Option<Kind> {
            self.paths.get(path).copied()
        }

        fn resolve(&self, path: &Path) -> Option<PathBuf> {
            let path = self.links.get(path).map_or(path, PathBuf::as_path);
            self.paths.contains_key(path).then(|| path.to_owned())
        }

        fn read(
            &self,
            directory: &Path,
            see: &mut dyn FnMut(PathBuf, Kind) -> ControlFlow<()>,
        ) -> Extent {
            if self.closed.contains(directory) {
                return Extent::Closed;
            }
            let crowd = self.crowds.get(directory).copied().unwrap_or(0);
            for index in 0..crowd {
                if see(directory.join(index.to_string()), Kind::Directory).is_break() {
                    return Extent::Stopped;
                }
            }
            let of = |path: &Path| path.parent() == Some(directory);
            for (path, kind) in self.paths.iter().filter(|(path, _)| of(path)) {
                if see(path.clone(), *kind).is_break() {
                    return Extent::Stopped;
                }
            }
            Extent::Whole
        }

        fn text(&self, path: &Path) -> Option<String> {
            self.texts.get(path).cloned()
        }

        fn sockets(&self) -> Vec<PathBuf> {
            self.sockets.clone()
        }
    }

    #[test]
    fn sockets_are_read_from_the_kernels_list() {
        let line = "ffff8881: 00000002 00000000 00010000 0001 01 12345 /run/a b.sock";
        assert_eq!(socket_of(line), Some("/run/a b.sock".into()));
        let abstract_name = "ffff8881: 00000002 00000000 00010000 0001 01 12345 @/tmp/x";
        assert_eq!(socket_of(abstract_name), None);
        assert_eq!(socket_of("Num       RefCount Protocol Flags"), None);
        assert_eq!(socket_of(""), None);
        let unnamed = "ffff8881: 00000002 00000000 00010000 0001 01 12345";
        assert_eq!(socket_of(unnamed), None);
    }
}
