//! Opening the file a call names: resolved, confined and known to be a regular file.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use caliban_agent::{PathError, ReadGuard, ResolvedPath};
use caliban_model::CancellationToken;

use super::Site;
use super::directory::{Directory, Obstacle, Parents};
use super::error::FileError;
use super::similarity::most_alike;

/// Entries of a directory looked at for a similar name.
const NAMES_LIMIT: usize = 5000;
/// Similar names offered.
const SUGGESTIONS: usize = 3;
/// How alike a name must be to be offered, in percent.
const ALIKE: usize = 50;

/// The file a call is about, which need not exist.
#[derive(Debug)]
pub(super) struct Place {
    resolved: ResolvedPath,
    /// The path as people read it.
    pub(super) shown: String,
    working_directory: PathBuf,
    reading: Arc<dyn ReadGuard>,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) meta: Metadata,
}

/// What tells one version of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
}

impl Place {
    /// A file that is only read.
    pub(super) fn to_read(site: &Site, path: &str) -> Result<Self, FileError> {
        Self::new(site, path, site.workspace.resolve_to_read(path))
    }

    /// A file that is changed, and perhaps read before.
    pub(super) fn to_change(site: &Site, path: &str) -> Result<Self, FileError> {
        Self::new(site, path, site.workspace.resolve(path))
    }

    fn new(
        site: &Site,
        path: &str,
        resolved: Result<ResolvedPath, PathError>,
    ) -> Result<Self, FileError> {
        let resolved = resolved?;
        if path.ends_with('/') && !resolved.real.is_dir() {
            return Err(FileError::Invalid(format!(
                "`{path}` names a directory that does not exist; name a file."
            )));
        }
        Ok(Self {
            shown: site.workspace.display(&resolved.given),
            resolved,
            working_directory: site.workspace.root().to_owned(),
            reading: Arc::clone(&site.reading),
        })
    }

    /// The path with all links followed.
    pub(super) fn real(&self) -> &Path {
        &self.resolved.real
    }

    /// Refuses a file that the call may not read. It is the one that was resolved: nothing on the
    /// way to it was a link when it was opened.
    pub(super) fn check_readable(&self, opened: &Opened) -> Result<(), FileError> {
        let ResolvedPath { given, real, .. } = &self.resolved;
        let checked = self.reading.by_name(given, real);
        checked
            .and_then(|()| self.reading.by_identity(&opened.meta))
            .map_err(|reason| FileError::Closed {
                shown: self.shown.clone(),
                reason,
            })
    }

    /// The directory of the file, held open, and its name in there.
    pub(super) fn directory(&self, parents: Parents) -> Result<(Directory, &OsStr), FileError> {
        let real = &self.resolved.real;
        // What was resolved is free of links; one that is met now was put there since.
        let top = || real.ancestors().last();
        let root = self.resolved.root.as_deref().or_else(top).unwrap_or(real);
        let beneath = real.strip_prefix(root).unwrap_or(Path::new(""));
        // Without a name the path is a root itself; its parent is none of our business.
        let (Some(parent), Some(name)) = (beneath.parent(), beneath.file_name()) else {
            return Err(FileError::Directory {
                shown: self.shown.clone(),
            });
        };
        match Directory::beneath(root, parent, parents) {
            Ok(directory) => Ok((directory, name)),
            Err(error) => Err(self.explain(error, None)),
        }
    }

    /// Opens the file to read, or says what is there instead and what may have been meant.
    pub(super) fn open(&self) -> Result<Opened, FileError> {
        let (directory, name) = self.directory(Parents::MustExist)?;
        let file = directory
            .open(name)
            .map_err(|error| self.explain(error, Some((&directory, name))))?;
        self.regular(file)
    }

    /// Opens the file to read, if there is one.
    pub(super) fn open_in(
        &self,
        directory: &Directory,
        name: &OsStr,
    ) -> Result<Option<Opened>, FileError> {
        match directory.open(name) {
            Ok(file) => self.regular(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.explain(error, None)),
        }
    }

    /// The error for a file that is not in this directory, naming similar ones that are.
    pub(super) fn missing_in(&self, directory: &Directory, name: &OsStr) -> FileError {
        FileError::NotFound(self.not_found(Some((directory, name))))
    }

    fn regular(&self, file: File) -> Result<Opened, FileError> {
        let meta = file
            .metadata()
            .map_err(|error| FileError::io("examined", &self.shown, error))?;
        let shown = || self.shown.clone();
        if meta.is_dir() {
            return Err(FileError::Directory { shown: shown() });
        }
        if !meta.is_file() {
            return Err(FileError::Special {
                shown: shown(),
                kind: kind(&meta),
            });
        }
        Ok(Opened { file, meta })
    }

    /// Words an error of opening; for a missing file, with its neighbours in the directory.
    fn explain(&self, error: io::Error, looked_in: Option<(&Directory, &OsStr)>) -> FileError {
        match Obstacle::of(&error) {
            Obstacle::Missing => FileError::NotFound(self.not_found(looked_in)),
            Obstacle::Swapped => FileError::Swapped {
                shown: self.shown.clone(),
            },
            Obstacle::Socket => FileError::Special {
                shown: self.shown.clone(),
                kind: "a socket or an absent device",
            },
            Obstacle::Other => FileError::io("opened", &self.shown, error),
        }
    }

    fn not_found(&self, looked_in: Option<(&Directory, &OsStr)>) -> String {
        let working = self.working_directory.display();
        let Some((directory, name)) = looked_in else {
            return format!(
                "`{}` was not found, and neither was its directory. The working directory is \
                 `{working}`.",
                self.shown
            );
        };
        let names = directory.names(NAMES_LIMIT).unwrap_or_default();
        let name = name.to_string_lossy();
        let similar = most_alike(&name, names.into_iter(), |name| name, ALIKE, SUGGESTIONS);
        let offer = match similar.as_slice() {
            [] => String::new(),
            similar => {
                let beside = |name: &String| {
                    let path = Path::new(&self.shown).with_file_name(name);
                    format!("`{}`", path.display())
                };
                let list: Vec<_> = similar.iter().map(beside).collect();
                format!(" Did you mean {}?", list.join(" or "))
            }
        };
        format!(
            "`{}` was not found.{offer} The working directory is `{working}`.",
            self.shown
        )
    }
}

impl Opened {
    /// Reads all of it, unless it has more than `limit` bytes.
    pub(super) fn read_all(
        &self,
        place: &Place,
        limit: u64,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<u8>>, FileError> {
        let mut bytes = Vec::new();
        Stoppable::new(&self.file, stop)
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| FileError::io("read", &place.shown, error))?;
        Ok((bytes.len() as u64 <= limit).then_some(bytes))
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp {
            size: self.meta.len(),
            modified: self.meta.modified().ok(),
        }
    }
}

/// A reader that ends with an error once its call is cancelled.
#[derive(Debug)]
pub(super) struct Stoppable<'a, R> {
    inner: R,
    stop: &'a CancellationToken,
}

impl<'a, R> Stoppable<'a, R> {
    pub(super) fn new(inner: R, stop: &'a CancellationToken) -> Self {
        Self { inner, stop }
    }
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other(Stopped));
        }
        self.inner.read(buffer)
    }
}

/// Why a [`Stoppable`] reader ended.
#[derive(Debug, thiserror::Error)]
#[error("cancelled")]
pub(super) struct Stopped;

#[cfg(unix)]
fn kind(meta: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = meta.file_type();
    if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn kind(_meta: &Metadata) -> &'static str {
    "a device"
}
