//! How a plugin gets its place: put together beside it, and exchanged in one step.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use caliban_settings::{TREE_BYTES, TREE_ENTRIES, ensure_private_dir};
use tempfile::TempDir;

use crate::package::MANIFESTS;
use crate::state_file::lock;

const PREFIX: &str = ".incoming-";
/// What a run that was killed left behind is removed after this long.
const FORGOTTEN: Duration = Duration::from_hours(24);
/// Directories that are not part of a plugin.
const SKIPPED: [&str; 1] = [".git"];
const DEPTH: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    #[error("`{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is a device, or a link that leads elsewhere; plugins are made of files and directories", .0.display())]
    Special(PathBuf),
    #[error("`{}` holds more than {TREE_ENTRIES} files or {} MiB", .0.display(), TREE_BYTES / 1024 / 1024)]
    TooLarge(PathBuf),
}

/// A plugin that has no place yet; dropping it removes it.
#[derive(Debug)]
pub struct Staging {
    root: PathBuf,
    directory: TempDir,
}

impl Staging {
    /// Beside the plugins of a directory.
    pub fn new(root: &Path) -> Result<Self, StagingError> {
        let failed = |source| StagingError::Io {
            path: root.to_owned(),
            source,
        };
        ensure_private_dir(root).map_err(failed)?;
        sweep(root);
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root);
        Ok(Self {
            root: root.to_owned(),
            directory: directory.map_err(failed)?,
        })
    }

    /// Where to put things together. What is not the plugin may lie here too.
    pub fn scratch(&self) -> PathBuf {
        self.directory.path().join("scratch")
    }

    /// Where the plugin is put together.
    pub fn plugin(&self) -> PathBuf {
        self.directory.path().join("plugin")
    }

    /// Takes a directory as the plugin, without the history of its repository. Links in it count as
    /// what they lead to where that lies `within` a directory, which its marketplace may be.
    pub fn take(&self, from: &Path, within: &Path) -> Result<(), StagingError> {
        let real = |path: &Path| {
            path.canonicalize().map_err(|source| StagingError::Io {
                path: path.to_owned(),
                source,
            })
        };
        let (from, within) = (real(from)?, real(within)?);
        let mut copy = Copy {
            entries: 0,
            bytes: 0,
            root: &from,
            within: &within,
        };
        copy.directory(&from, &self.plugin(), 0)
    }

    /// The directory of what was unpacked: archives often have everything in one folder.
    pub fn unwrapped(&self) -> PathBuf {
        let scratch = self.scratch();
        let is_plugin = |path: &Path| MANIFESTS.iter().any(|(name, _)| path.join(name).exists());
        if is_plugin(&scratch) {
            return scratch;
        }
        let entries = fs::read_dir(&scratch).into_iter().flatten().flatten();
        let entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        match entries.as_slice() {
            [only] if only.is_dir() => only.clone(),
            _ => scratch,
        }
    }

    /// Puts the plugin in its place. Whoever looks sees the old one or the new one.
    pub fn settle(self, name: &str) -> Result<PathBuf, StagingError> {
        let target = self.root.join(name);
        let failed = |source| StagingError::Io {
            path: target.clone(),
            source,
        };
        let _lock = lock(&self.root.join(".lock")).map_err(failed)?;
        let staged = self.plugin();
        if target.symlink_metadata().is_ok() {
            exchange(&staged, &target).map_err(failed)?;
        } else {
            fs::rename(&staged, &target).map_err(failed)?;
        }
        File::open(&self.root)
            .and_then(|root| root.sync_all())
            .map_err(failed)?;
        Ok(target)
    }
}

/// Removes what runs that were killed left behind.
fn sweep(root: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|then| now.duration_since(then).ok());
        if is_ours && age.is_some_and(|age| age > FORGOTTEN) {
            // Somebody else may be faster.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Exchanges two directories.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // Not every file system can.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => in_turn(one, other),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    in_turn(one, other)
}

fn in_turn(one: &Path, other: &Path) -> io::Result<()> {
    let aside = one.with_file_name("outgoing");
    fs::rename(other, &aside)?;
    fs::rename(one, other).inspect_err(|_| {
        // What was there goes back.
        let _ = fs::rename(&aside, other);
    })
}

struct Copy<'a> {
    root: &'a Path,
    within: &'a Path,
    entries: usize,
    bytes: u64,
}

impl Copy<'_> {
    fn directory(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), StagingError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StagingError::Io { path, source }
        };
        if depth > DEPTH {
            return Err(StagingError::TooLarge(self.root.to_owned()));
        }
        fs::create_dir(to).map_err(failed(to))?;
        for entry in fs::read_dir(from).map_err(failed(from))? {
            let entry = entry.map_err(failed(from))?;
            let (path, name) = (entry.path(), entry.file_name());
            self.entries += 1;
            if self.entries > TREE_ENTRIES {
                return Err(StagingError::TooLarge(self.root.to_owned()));
            }
            let kind = entry.file_type().map_err(failed(&path))?;
            if kind.is_dir() {
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    self.directory(&path, &to.join(&name), depth + 1)?;
                }
            } else if kind.is_file() {
                self.file(&path, &to.join(&name))?;
            } else if let Some(real) = self.led(&path) {
                if real.is_dir() {
                    self.directory(&real, &to.join(&name), depth + 1)?;
                } else {
                    self.file(&real, &to.join(&name))?;
                }
            } else {
                return Err(StagingError::Special(path));
            }
        }
        Ok(())
    }

    /// What a link leads to, if that may be copied in its place.
    fn led(&self, link: &Path) -> Option<PathBuf> {
        let real = link.canonicalize().ok()?;
        let beneath = real.strip_prefix(self.within).ok()?;
        let is_history = beneath.components().any(|part| {
            let part: &std::ffi::OsStr = part.as_os_str();
            SKIPPED.iter().any(|skipped| part == *skipped)
        });
        // One that leads to what it lies in would never end.
        let is_around = real.is_dir() && link.starts_with(&real);
        let is_part = real.is_dir() || real.is_file();
        (is_part && !is_history && !is_around).then_some(real)
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), StagingError> {
        let failed = |source| StagingError::Io {
            path: from.to_owned(),
            source,
        };
        let mut source = File::open(from).map_err(failed)?;
        let metadata = source.metadata().map_err(failed)?;
        self.bytes += metadata.len();
        if self.bytes > TREE_BYTES {
            return Err(StagingError::TooLarge(self.root.to_owned()));
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
            let is_program = metadata.permissions().mode() & 0o100 != 0;
            options.mode(if is_program { 0o755 } else { 0o644 });
        }
        let mut target = options.open(to).map_err(failed)?;
        io::copy(&mut source, &mut target).map_err(failed)?;
        target.sync_all().map_err(failed)
    }
}
