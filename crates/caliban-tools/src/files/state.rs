//! What was read: a fingerprint per file, so that a change made by somebody else is noticed
//! before it is overwritten.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use super::opener::Stamp;

/// Files remembered. The one seen longest ago is forgotten first; a forgotten file counts as
/// never read.
const MAX_FILES: usize = 4096;

/// Shared by all file tools of a session.
#[derive(Debug, Default)]
pub struct FileState {
    seen: Mutex<SeenFiles>,
}

#[derive(Debug, Default)]
struct SeenFiles {
    files: HashMap<PathBuf, (u64, Seen)>,
    clock: u64,
}

/// A version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// All of it was read or written.
    Whole(Fingerprint),
    /// Parts were read, of a file too large to be read whole.
    Part(Stamp),
}

/// A digest of a file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl FileState {
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers a version of the file at this real path.
    pub(super) fn record(&self, path: &Path, seen: Seen) {
        let mut state = self.lock();
        state.clock += 1;
        let now = state.clock;
        state.files.insert(path.to_owned(), (now, seen));
        if state.files.len() > MAX_FILES {
            let oldest = state.files.iter().min_by_key(|(_, (time, _))| *time);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                state.files.remove(&oldest);
            }
        }
    }

    /// The version last read or written here.
    pub(super) fn seen(&self, path: &Path) -> Option<Seen> {
        self.lock().files.get(path).map(|(_, seen)| *seen)
    }

    /// Forgets the files that are not to be remembered.
    pub fn retain(&self, keep: impl Fn(&Path) -> bool) {
        self.lock().files.retain(|path, _| keep(path));
    }

    fn lock(&self) -> MutexGuard<'_, SeenFiles> {
        // Nothing panics while holding it, and the map is valid after every statement.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fingerprint {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads to the end, holding only a small buffer.
    pub(super) fn read(mut reader: impl Read) -> io::Result<Self> {
        let mut digest = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(Self(digest.finalize().into())),
                Ok(length) => digest.update(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_bounded_and_forgets_the_oldest() {
        let state = FileState::new();
        let seen = Seen::Whole(Fingerprint::of(b"x"));
        let path = |index: usize| PathBuf::from(format!("/{index}"));
        for index in 0..MAX_FILES {
            state.record(&path(index), seen);
        }
        state.record(&path(0), seen);
        state.record(&path(MAX_FILES), seen);
        assert_eq!(state.lock().files.len(), MAX_FILES);
        assert_eq!(state.seen(&path(0)), Some(seen));
        assert_eq!(state.seen(&path(1)), None);
    }

    #[test]
    fn fingerprints_agree_however_they_are_taken() {
        let bytes = vec![7; 200_000];
        let fingerprint = Fingerprint::of(&bytes);
        assert_eq!(Fingerprint::read(bytes.as_slice()).unwrap(), fingerprint);
        assert_ne!(Fingerprint::of(b""), fingerprint);
    }
}
