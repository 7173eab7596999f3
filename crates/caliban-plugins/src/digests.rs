//! Digests of files that were read before. A file counts as known only while everything the system
//! says of it is the same, and only if that was settled when it was read: what changed in the same
//! moment could change again without a trace.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use caliban_settings::KnownDigests;
use serde::{Deserialize, Serialize};

use crate::state_file::{StateError, StateFile};

/// How long ago a file must have changed to be remembered; more than the coarsest clock of a file
/// system.
const SETTLED: Duration = Duration::from_secs(3);
/// The most files that are remembered.
const MOST: usize = 50_000;

/// What the system says of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    bytes: u64,
    device: u64,
    inode: u64,
    modified: i128,
    /// Nobody sets this back who is not the system.
    changed: i128,
    sha256: [u8; 32],
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Content {
    files: BTreeMap<PathBuf, Seen>,
}

#[derive(Debug, Default)]
struct Held {
    known: BTreeMap<PathBuf, Seen>,
    learned: BTreeMap<PathBuf, Seen>,
    is_read: bool,
}

/// The digests that were kept.
#[derive(Debug)]
pub struct DigestCache {
    file: StateFile<Content>,
    held: Mutex<Held>,
}

impl DigestCache {
    pub fn new(path: PathBuf) -> Self {
        Self {
            file: StateFile::new(path),
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.is_read {
            held.is_read = true;
            // What cannot be read is not known.
            held.known = self.file.read().unwrap_or_default().files;
        }
        held
    }

    /// Keeps what was learned; files that are gone are forgotten.
    pub fn save(&self) -> Result<(), StateError> {
        let learned = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut held.learned)
        };
        if learned.is_empty() {
            return Ok(());
        }
        self.file.update(|content| {
            content.files.retain(|path, _| path.exists());
            content.files.extend(learned);
            while content.files.len() > MOST {
                content.files.pop_last();
            }
        })
    }
}

impl KnownDigests for &DigestCache {
    fn digest(&mut self, path: &Path, metadata: &Metadata) -> Option<[u8; 32]> {
        let held = self.held();
        let known = held.known.get(path)?;
        (seen(metadata, known.sha256).as_ref() == Some(known)).then_some(known.sha256)
    }

    fn learn(&mut self, path: &Path, metadata: &Metadata, sha256: [u8; 32]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let Some(horizon) = now.and_then(|now| now.checked_sub(SETTLED)) else {
            return;
        };
        let horizon = i128::try_from(horizon.as_nanos()).unwrap_or(0);
        if let Some(seen) = seen(metadata, sha256)
            && seen.modified < horizon
            && seen.changed < horizon
        {
            self.held().learned.insert(path.to_owned(), seen);
        }
    }
}

#[cfg(unix)]
fn seen(metadata: &Metadata, sha256: [u8; 32]) -> Option<Seen> {
    use std::os::unix::fs::MetadataExt;
    let nanos = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Some(Seen {
        bytes: metadata.len(),
        device: metadata.dev(),
        inode: metadata.ino(),
        modified: nanos(metadata.mtime(), metadata.mtime_nsec()),
        changed: nanos(metadata.ctime(), metadata.ctime_nsec()),
        sha256,
    })
}

/// Where the system does not say when a file was really changed, every file is read.
#[cfg(not(unix))]
fn seen(_: &Metadata, _: [u8; 32]) -> Option<Seen> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use caliban_settings::Tree;

    use super::*;

    #[test]
    fn only_what_is_settled_and_the_same_is_known() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("p");
        fs::create_dir(&root).unwrap();
        let file = root.join("a");
        fs::write(&file, "one").unwrap();
        let path = temp.path().join("trust/files.json");
        let read = || {
            let cache = DigestCache::new(path.clone());
            let tree = Tree::read_known(&root, &mut &cache).unwrap();
            cache.save().unwrap();
            tree.digest
        };
        let first = read();
        assert_eq!(first, Tree::read(&root).unwrap().digest);
        assert!(!path.exists(), "it was changed just now");
        // As if it had been seen long ago.
        let metadata = fs::metadata(&file).unwrap();
        let wrong = [7; 32];
        let state: StateFile<Content> = StateFile::new(path.clone());
        state
            .update(|content| {
                let seen = seen(&metadata, wrong).unwrap();
                content.files.insert(file.clone(), seen);
            })
            .unwrap();
        assert_ne!(read(), first, "what is known is not read again");
        let old = metadata.modified().unwrap();
        fs::write(&file, "two").unwrap();
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(old)
            .unwrap();
        assert_eq!(
            read(),
            Tree::read(&root).unwrap().digest,
            "a date that was set back is seen"
        );
    }
}
