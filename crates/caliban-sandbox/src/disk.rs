//! What is looked up on the disk before a plan is made.

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

/// The most entries of one directory that are looked at; more than people keep in one.
const MAX_ENTRIES: usize = 4096;

/// A look at the disk. Plans are made of nothing else, so that tests can show them any disk.
pub(crate) trait Disk {
    /// What is there, links not followed.
    fn kind(&self, path: &Path) -> Option<Kind>;
    /// Where a path leads, every link followed; nothing where it leads nowhere.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;
    /// Names and kinds in a directory.
    fn entries(&self, directory: &Path) -> Vec<(PathBuf, Kind)>;
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

    fn entries(&self, directory: &Path) -> Vec<(PathBuf, Kind)> {
        let Ok(entries) = std::fs::read_dir(directory) else {
            return Vec::new();
        };
        entries
            .flatten()
            .take(MAX_ENTRIES)
            .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?.into())))
            .collect()
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
    use std::collections::BTreeMap;

    /// A disk that is a list. Links lead to the path after `->`.
    #[derive(Debug, Default)]
    pub(crate) struct Listed {
        pub(crate) paths: BTreeMap<PathBuf, Kind>,
        pub(crate) links: BTreeMap<PathBuf, PathBuf>,
        pub(crate) sockets: Vec<PathBuf>,
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

    impl Disk for Listed {
        fn kind(&self, path: &Path) -> Option<Kind> {
            self.paths.get(path).copied()
        }

        fn resolve(&self, path: &Path) -> Option<PathBuf> {
            let path = self.links.get(path).map_or(path, PathBuf::as_path);
            self.paths.contains_key(path).then(|| path.to_owned())
        }

        fn entries(&self, directory: &Path) -> Vec<(PathBuf, Kind)> {
            let of = |path: &Path| path.parent() == Some(directory);
            let paths = self.paths.iter().filter(|(path, _)| of(path));
            paths.map(|(path, kind)| (path.clone(), *kind)).collect()
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
