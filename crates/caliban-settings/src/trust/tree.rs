//! What a directory holds, in one value: whoever trusts it recognises it again, whatever changed.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use crate::hex::hex;

/// The most files and directories, the most bytes in them, and how deep they may lie.
pub const TREE_ENTRIES: usize = 10_000;
pub const TREE_BYTES: u64 = 64 * 1024 * 1024;
const DEPTH: usize = 32;

/// Versions of a repository; they are not what is used.
const HISTORY: &str = ".git";

/// A directory as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// `sha256:` and the digest of all paths, kinds and contents.
    pub digest: String,
    /// In the order of their paths, which are relative to the directory.
    pub files: Vec<TreeFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    pub path: PathBuf,
    pub bytes: u64,
    /// The digest of what it holds, in hexadecimal digits.
    pub sha256: String,
}

/// Why a directory cannot be recognised again.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("`{}` holds more than {TREE_ENTRIES} files", .0.display())]
    TooMany(PathBuf),
    #[error("`{}` holds more than {} MiB", .0.display(), TREE_BYTES / 1024 / 1024)]
    TooLarge(PathBuf),
    #[error("`{}` is nested more than {DEPTH} levels deep", .0.display())]
    TooDeep(PathBuf),
    #[error("`{}` is neither a file nor a directory nor a link", .0.display())]
    Special(PathBuf),
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

/// What the system says of a directory's files, without what is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeShape {
    pub digest: String,
    /// When the last of them was changed, as nobody but the system sets it.
    pub newest: SystemTime,
}

impl Tree {
    /// Reads everything below a directory but `.git`. Links are not followed: where they point is
    /// part of the value.
    pub fn read(root: &Path) -> Result<Self, TreeError> {
        let mut walk = Walk {
            root,
            extent: Extent::Contents,
            newest: SystemTime::UNIX_EPOCH,
            hasher: Sha256::new(),
            files: Vec::new(),
            entries: 0,
            bytes: 0,
        };
        walk.directory(root, 0)?;
        Ok(Self {
            digest: format!("sha256:{}", hex(&walk.hasher.finalize())),
            files: walk.files,
        })
    }

    /// What the system says of everything below a directory; nothing where it does not say when a
    /// file was really changed.
    pub fn shape(root: &Path) -> Result<Option<TreeShape>, TreeError> {
        if !cfg!(unix) {
            return Ok(None);
        }
        let mut walk = Walk {
            root,
            extent: Extent::Shape,
            newest: SystemTime::UNIX_EPOCH,
            hasher: Sha256::new(),
            files: Vec::new(),
            entries: 0,
            bytes: 0,
        };
        walk.directory(root, 0)?;
        Ok(Some(TreeShape {
            digest: format!("sha256:{}", hex(&walk.hasher.finalize())),
            newest: walk.newest,
        }))
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// What of files is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Contents,
    Shape,
}

struct Walk<'a> {
    root: &'a Path,
    extent: Extent,
    newest: SystemTime,
    hasher: Sha256,
    files: Vec<TreeFile>,
    entries: usize,
    bytes: u64,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &Path, depth: usize) -> Result<(), TreeError> {
        if depth > DEPTH {
            return Err(TreeError::TooDeep(self.root.to_owned()));
        }
        let unreadable = |source| TreeError::Unreadable {
            path: directory.to_owned(),
            source,
        };
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            self.entries += 1;
            if self.entries > TREE_ENTRIES {
                return Err(TreeError::TooMany(self.root.to_owned()));
            }
            paths.push(entry.map_err(unreadable)?.path());
        }
        paths.sort_unstable();
        for path in paths {
            if path.file_name().is_none_or(|name| name == HISTORY) {
                continue;
            }
            self.entry(&path, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, depth: usize) -> Result<(), TreeError> {
        let unreadable = |source| TreeError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let metadata = fs::symlink_metadata(path).map_err(unreadable)?;
        let kind = metadata.file_type();
        if self.extent == Extent::Shape {
            self.shape(path, &metadata);
            if kind.is_dir() {
                return self.directory(path, depth + 1);
            }
            return Ok(());
        }
        if kind.is_dir() {
            self.field(path, b"directory", &[]);
            return self.directory(path, depth + 1);
        }
        if kind.is_symlink() {
            let target = fs::read_link(path).map_err(unreadable)?;
            self.field(path, b"link", target.as_os_str().as_encoded_bytes());
            return Ok(());
        }
        if !kind.is_file() {
            return Err(TreeError::Special(path.to_owned()));
        }
        let left = TREE_BYTES.saturating_sub(self.bytes);
        let mut file = File::open(path).map_err(unreadable)?.take(left + 1);
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut bytes = 0;
        loop {
            let read = file.read(&mut buffer).map_err(unreadable)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            bytes += read as u64;
        }
        if bytes > left {
            return Err(TreeError::TooLarge(self.root.to_owned()));
        }
        let sha256: [u8; 32] = hasher.finalize().into();
        self.file(path, &metadata, bytes, &sha256);
        Ok(())
    }

    fn file(&mut self, path: &Path, metadata: &Metadata, bytes: u64, sha256: &[u8; 32]) {
        self.bytes += bytes;
        let kind: &[u8] = if is_executable(metadata) {
            b"program"
        } else {
            b"file"
        };
        self.field(path, kind, sha256);
        self.files.push(TreeFile {
            path: path.strip_prefix(self.root).unwrap_or(path).to_owned(),
            bytes,
            sha256: hex(sha256),
        });
    }

    #[cfg(unix)]
    fn shape(&mut self, path: &Path, metadata: &Metadata) {
        use std::os::unix::fs::MetadataExt;
        let numbers = [
            u64::from(metadata.mode()),
            metadata.len(),
            metadata.dev(),
            metadata.ino(),
            metadata.mtime().cast_unsigned(),
            metadata.mtime_nsec().cast_unsigned(),
            metadata.ctime().cast_unsigned(),
            metadata.ctime_nsec().cast_unsigned(),
        ];
        let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        self.field(path, b"shape", &bytes);
        let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
        let nanoseconds = u32::try_from(metadata.ctime_nsec()).unwrap_or(0);
        let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        self.newest = self.newest.max(changed);
    }

    #[cfg(not(unix))]
    fn shape(&mut self, _: &Path, _: &Metadata) {}

    fn field(&mut self, path: &Path, kind: &[u8], content: &[u8]) {
        let name = path.strip_prefix(self.root).unwrap_or(path);
        for bytes in [name.as_os_str().as_encoded_bytes(), kind, content] {
            self.hasher.update((bytes.len() as u64).to_le_bytes());
            self.hasher.update(bytes);
        }
    }
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn digest(root: &Path) -> String {
        Tree::read(root).unwrap().digest
    }

    #[test]
    fn every_change_is_noticed_and_history_is_none() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let mut seen = vec![digest(root)];
        let mut changed = |what: &str| {
            let now = digest(root);
            assert!(!seen.contains(&now), "{what}");
            seen.push(now);
        };
        fs::create_dir(root.join("d")).unwrap();
        changed("a directory");
        fs::write(root.join("d/f"), "a").unwrap();
        changed("a file");
        fs::write(root.join("d/f"), "b").unwrap();
        changed("its content");
        fs::set_permissions(root.join("d/f"), fs::Permissions::from_mode(0o755)).unwrap();
        changed("that it can be run");
        symlink("d/f", root.join("l")).unwrap();
        changed("a link");
        fs::remove_file(root.join("l")).unwrap();
        symlink("d", root.join("l")).unwrap();
        changed("where it leads");
        fs::rename(root.join("d/f"), root.join("f")).unwrap();
        changed("its place");
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/x"), "").unwrap();
        assert_eq!(digest(root), *seen.last().unwrap());
    }

    #[test]
    fn what_has_no_bound_has_no_value() {
        let temp = tempfile::tempdir().unwrap();
        let file = File::create(temp.path().join("f")).unwrap();
        file.set_len(TREE_BYTES + 1).unwrap();
        let error = Tree::read(temp.path()).unwrap_err();
        assert!(matches!(error, TreeError::TooLarge(_)), "{error}");
        file.set_len(0).unwrap();
        let mut deep = temp.path().to_owned();
        for _ in 0..=DEPTH {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let error = Tree::read(temp.path()).unwrap_err();
        assert!(matches!(error, TreeError::TooDeep(_)), "{error}");
    }
}
