//! Files that have several names: a hard link is its target, whatever it is called.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::evaluation::Judge;
use crate::pattern::About;

/// How many entries of directories are looked at for the other names of a file, in the protected
/// places and again where rules say. What lies beyond is not found.
const MAX_ENTRIES: usize = 20_000;

/// The files with several names that lie where something may be closed to reading, by what tells
/// them apart from all others.
#[derive(Debug, Default)]
pub(crate) struct Twins(HashMap<Identity, Vec<PathBuf>>);

/// Device and number.
type Identity = (u64, u64);

impl Twins {
    /// Those beneath the protected places and beneath what the rules about reading spell.
    pub(crate) fn of(judge: &Judge) -> Self {
        let rules = judge.objections_to_reading();
        let patterns = rules.filter_map(|rule| match rule.pattern.about() {
            About::Path(pattern) => Some(pattern),
            About::Anything
            | About::Command(_)
            | About::Url(_)
            | About::Fields(_)
            | About::Never(_) => None,
        });
        let mut twins = Self::default();
        twins.gather(judge.protected.secrets().collect());
        twins.gather(
            patterns
                .flat_map(|pattern| pattern.begins(&judge.places))
                .collect(),
        );
        twins
    }

    /// Those beneath some directories.
    fn gather(&mut self, mut pending: Vec<PathBuf>) {
        pending.sort();
        pending.dedup_by(|later, earlier| later.starts_with(&*earlier));
        let mut left = MAX_ENTRIES;
        while let Some(path) = pending.pop() {
            let Ok(meta) = std::fs::symlink_metadata(&path) else {
                continue;
            };
            if let Some(identity) = shared_identity(&meta) {
                self.0.entry(identity).or_default().push(path);
            } else if meta.is_dir() {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                for entry in entries.take(left) {
                    left -= 1;
                    pending.push(entry.path());
                }
            }
        }
    }

    /// The other names of a file that were found.
    pub(crate) fn names(&self, meta: &Metadata) -> &[PathBuf] {
        let names = shared_identity(meta).and_then(|identity| self.0.get(&identity));
        names.map_or(&[], Vec::as_slice)
    }
}

/// The other names of a file, as far as they lie where something may be closed to reading.
pub(crate) fn names(judge: &Judge, real: &Path) -> Vec<PathBuf> {
    match std::fs::metadata(real) {
        Ok(meta) if is_shared(&meta) => Twins::of(judge).names(&meta).to_vec(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// Whether a file has more than one name.
pub(crate) fn is_shared(meta: &Metadata) -> bool {
    shared_identity(meta).is_some()
}

#[cfg(unix)]
fn shared_identity(meta: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    (meta.is_file() && meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn shared_identity(_meta: &Metadata) -> Option<Identity> {
    None
}
