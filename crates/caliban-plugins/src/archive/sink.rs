//! Where the entries of an archive go, and what is not let through.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use caliban_settings::{TREE_BYTES, TREE_ENTRIES};

/// The longest name of an entry, in bytes.
const LONGEST: usize = 512;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is neither a tar.gz nor a zip archive")]
    Unknown,
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("it holds more than {TREE_ENTRIES} files")]
    TooMany,
    #[error("it holds more than {} MiB", TREE_BYTES / 1024 / 1024)]
    TooLarge,
    #[error("its entry `{0}` would lie elsewhere")]
    Escapes(String),
    #[error("its entry `{0}` is a link or a device; only files and directories are taken")]
    Special(String),
    #[error("it has two entries `{0}`, or two that differ only in case")]
    Twice(String),
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// A directory that entries are put into.
pub(super) struct Sink<'a> {
    root: &'a Path,
    entries: usize,
    bytes: u64,
    /// Names of files as systems that know no case see them.
    files: BTreeSet<String>,
    directories: BTreeSet<String>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self {
            root,
            entries: 0,
            bytes: 0,
            files: BTreeSet::new(),
            directories: BTreeSet::new(),
        }
    }

    pub(super) fn directory(&mut self, name: &str) -> Result<(), ArchiveError> {
        self.count()?;
        let path = inside(name)?;
        self.make(&path)
    }

    /// Takes a file; of its mode only whether it can be run.
    pub(super) fn file(
        &mut self,
        name: &str,
        mode: u32,
        content: &mut dyn Read,
    ) -> Result<(), ArchiveError> {
        self.count()?;
        let relative = inside(name)?;
        if relative.as_os_str().is_empty() {
            return Err(ArchiveError::Escapes(shown(name)));
        }
        if let Some(parent) = relative.parent() {
            self.make(parent)?;
        }
        let folded = fold(&relative);
        if self.directories.contains(&folded) || !self.files.insert(folded) {
            return Err(ArchiveError::Twice(shown(name)));
        }
        let path = self.root.join(&relative);
        let failed = |source| ArchiveError::Write {
            path: path.clone(),
            source,
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(if mode & 0o100 == 0 { 0o644 } else { 0o755 });
        }
        #[cfg(not(unix))]
        let _ = mode;
        let mut file = options.open(&path).map_err(failed)?;
        self.copy(content, &mut file, &path)?;
        file.sync_all().map_err(failed)
    }

    /// Copies what is left of the bound, and not a byte more.
    fn copy(
        &mut self,
        content: &mut dyn Read,
        file: &mut File,
        path: &Path,
    ) -> Result<(), ArchiveError> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = content
                .read(&mut buffer)
                .map_err(|error| ArchiveError::Damaged(error.to_string()))?;
            if read == 0 {
                return Ok(());
            }
            self.bytes += read as u64;
            if self.bytes > TREE_BYTES {
                return Err(ArchiveError::TooLarge);
            }
            file.write_all(&buffer[..read])
                .map_err(|source| ArchiveError::Write {
                    path: path.to_owned(),
                    source,
                })?;
        }
    }

    fn count(&mut self) -> Result<(), ArchiveError> {
        self.entries += 1;
        if self.entries > TREE_ENTRIES {
            return Err(ArchiveError::TooMany);
        }
        Ok(())
    }

    fn make(&mut self, relative: &Path) -> Result<(), ArchiveError> {
        let mut path = PathBuf::new();
        for part in relative.components() {
            path.push(part);
            let folded = fold(&path);
            if self.files.contains(&folded) {
                return Err(ArchiveError::Twice(shown(&path.display().to_string())));
            }
            if !self.directories.insert(folded) {
                continue;
            }
            let full = self.root.join(&path);
            fs::create_dir(&full).map_err(|source| ArchiveError::Write {
                path: full.clone(),
                source,
            })?;
        }
        Ok(())
    }
}

/// A name as a path that stays inside.
fn inside(name: &str) -> Result<PathBuf, ArchiveError> {
    let escapes = || ArchiveError::Escapes(shown(name));
    let is_strange = |letter: char| letter.is_control() || letter == '\\' || letter == ':';
    if name.len() > LONGEST || name.contains(is_strange) {
        return Err(escapes());
    }
    let mut path = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(escapes());
            }
        }
    }
    Ok(path)
}

fn fold(path: &Path) -> String {
    path.display().to_string().to_lowercase()
}

/// The beginning of a name, with nothing in it that steers a terminal.
pub(super) fn shown(name: &str) -> String {
    name.chars()
        .take(100)
        .flat_map(char::escape_debug)
        .collect()
}
