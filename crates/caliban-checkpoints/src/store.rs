//! Where checkpoints lie: `<session>/prompt-NNN/{manifest.json, blobs/<sha256>.bin}` in the
//! directory of a workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, Stored};
use crate::error::Error;
use crate::image::Digest;
use crate::journal::{self, Ending};
use crate::manifest::{Coverage, Kind, Manifest, Mark};

/// Bytes of a manifest or a journal that is read back.
const LARGEST_MANIFEST: u64 = 256 << 20;
/// Bytes of a name of a session.
const LONGEST_NAME: usize = 200;

/// What is kept at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all contents of a workspace.
    pub project: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 16 << 20,
            project: 5 << 30,
        }
    }
}

/// The checkpoints of all sessions in one workspace.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) directory: PathBuf,
    pub(crate) limits: Limits,
}

impl Store {
    /// The directory is `<root>/<key of the workspace>/checkpoints`; it need not exist yet.
    pub fn new(disk: Arc<dyn Disk>, directory: PathBuf, limits: Limits) -> Self {
        Self {
            disk,
            directory,
            limits,
        }
    }

    /// Where it lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The checkpoints of one session; nothing is made for it before there is something to keep.
    pub fn session(&self, name: &str) -> Result<Session, Error> {
        let is_harmless = !name.is_empty()
            && name.len() <= LONGEST_NAME
            && !name.starts_with('.')
            && !name.contains(['/', '\\', '\0'])
            && !name.chars().any(char::is_control);
        if !is_harmless {
            return Err(Error::Name(name.to_owned()));
        }
        Ok(Session {
            disk: Arc::clone(&self.disk),
            directory: self.directory.join(name),
            limits: self.limits,
        })
    }

    /// The names of the sessions that have checkpoints.
    pub fn sessions(&self) -> Result<Vec<String>, Error> {
        let mut names = self
            .disk
            .list(&self.directory)
            .map_err(Error::io("list", &self.directory))?;
        names.retain(|name| self.session(name).is_ok());
        Ok(names)
    }
}

/// The checkpoints of one session.
#[derive(Debug, Clone)]
pub struct Session {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) directory: PathBuf,
    pub(crate) limits: Limits,
}

/// What there is of a prompt that did not come to its end.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// It came to its end, or changed nothing.
    Nothing,
    /// What it changed was found out afterwards.
    Known(Manifest),
    /// What its last calls changed is not known.
    Unknown(Manifest),
}

/// All that is known of a session's checkpoints.
#[derive(Debug, Default)]
pub struct History {
    /// By their index.
    pub checkpoints: BTreeMap<u32, Manifest>,
    /// Checkpoints that cannot be understood, and why.
    pub damaged: BTreeMap<u32, String>,
}

impl History {
    /// The index of the last checkpoint; 0 if there is none.
    pub fn last(&self) -> u32 {
        let last = |key: Option<&u32>| key.copied().unwrap_or(0);
        last(self.checkpoints.keys().next_back()).max(last(self.damaged.keys().next_back()))
    }

    /// Where the conversation stood at the end of a prompt: as it was noted then, or else when the
    /// next one came. Nothing where neither is known.
    pub fn mark(&self, to: u32) -> Option<Mark> {
        let noted = self.checkpoints.get(&to).and_then(|it| it.ended);
        let mut later = self.checkpoints.range(to.saturating_add(1)..);
        noted.or_else(|| later.next().and_then(|(_, next)| next.began))
    }

    /// The prompts that count: those that no rewind has taken back.
    pub fn standing(&self) -> BTreeSet<u32> {
        let mut standing: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut now = BTreeSet::new();
        for (index, manifest) in &self.checkpoints {
            match manifest.rewound_to {
                Some(to) => now = standing.get(&to).cloned().unwrap_or_default(),
                None => {
                    now.insert(*index);
                }
            }
            standing.insert(*index, now.clone());
        }
        now
    }
}

impl Session {
    pub(crate) fn prompt(&self, index: u32) -> PathBuf {
        self.directory.join(format!("prompt-{index:03}"))
    }

    /// Where the checkpoints of all sessions lie.
    pub(crate) fn home(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }

    /// What a restore is about to do.
    pub(crate) fn intent(&self) -> PathBuf {
        self.directory.join("restore.json")
    }

    /// Contents that may become before-images; worth nothing to another process.
    pub(crate) fn pool(&self) -> PathBuf {
        self.directory.join("pool")
    }

    pub(crate) fn indices(&self) -> Result<Vec<u32>, Error> {
        let names = self
            .disk
            .list(&self.directory)
            .map_err(Error::io("list", &self.directory))?;
        let mut indices: Vec<u32> = names
            .iter()
            .filter_map(|name| name.strip_prefix("prompt-")?.parse().ok())
            .filter(|index| *index > 0)
            .collect();
        indices.sort_unstable();
        indices.dedup();
        Ok(indices)
    }

    /// What there is to go back to.
    pub fn history(&self) -> Result<History, Error> {
        let mut history = History::default();
        for index in self.indices()? {
            match self.load(index) {
                Ok(Some(manifest)) => {
                    history.checkpoints.insert(index, manifest);
                }
                // A prompt that was interrupted before anything of it was kept changed nothing.
                Ok(None) => {}
                Err(Error::Damaged { problem, .. }) => {
                    history.damaged.insert(index, problem);
                }
                Err(Error::Io { source, .. }) => {
                    history.damaged.insert(index, source.to_string());
                }
                Err(other) => return Err(other),
            }
        }
        Ok(history)
    }

    /// One checkpoint: of its manifest, else of its journal.
    pub(crate) fn load(&self, index: u32) -> Result<Option<Manifest>, Error> {
        let directory = self.prompt(index);
        let path = manifest_path(&directory);
        if let Some(bytes) = self.read(&path)? {
            let manifest: Manifest =
                serde_json::from_slice(&bytes).map_err(|error| Error::Damaged {
                    path: path.clone(),
                    problem: error.to_string(),
                })?;
            if manifest.prompt_index != index {
                return Err(Error::Damaged {
                    path,
                    problem: format!("it says that it is {}", manifest.prompt_index),
                });
            }
            return Ok(Some(manifest));
        }
        match self.interrupted(index)? {
            Interrupted::Nothing => Ok(None),
            Interrupted::Known(manifest) => Ok(Some(manifest)),
            Interrupted::Unknown(mut manifest) => {
                let coverage = manifest.coverage.get_or_insert_with(Coverage::default);
                coverage.lacks("the prompt was interrupted".to_owned());
                manifest.partial = true;
                Ok(Some(manifest))
            }
        }
    }

    /// What the journal of a prompt says that has no manifest.
    pub(crate) fn interrupted(&self, index: u32) -> Result<Interrupted, Error> {
        let directory = self.prompt(index);
        if self.stat(&manifest_path(&directory))?.is_some() {
            return Ok(Interrupted::Nothing);
        }
        let Some(bytes) = self.read(&journal_path(&directory))? else {
            return Ok(Interrupted::Nothing);
        };
        let (records, torn) = journal::records(&bytes);
        // What is torn was never confirmed; before the head nothing was changed.
        let Some((mut manifest, ending)) = journal::manifest(records) else {
            return Ok(Interrupted::Nothing);
        };
        if let Some(problem) = torn {
            let coverage = manifest.coverage.get_or_insert_with(Coverage::default);
            coverage.lacks(format!("its journal was cut off: {problem}"));
            manifest.partial = true;
        }
        Ok(match (manifest.kind, ending) {
            // It was interrupted before it was decided to change anything.
            (Kind::Rewind, _) if self.stat(&self.intent())?.is_none() => Interrupted::Nothing,
            (_, Ending::Recovered) => Interrupted::Known(manifest),
            (_, Ending::Unknown) => Interrupted::Unknown(manifest),
        })
    }

    fn stat(&self, path: &Path) -> Result<Option<Stored>, Error> {
        self.disk.stat(path).map_err(Error::io("look at", path))
    }

    /// Whether a restore was interrupted and has to be finished.
    pub fn is_interrupted(&self) -> Result<bool, Error> {
        Ok(self.stat(&self.intent())?.is_some())
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        match self.disk.read(path, LARGEST_MANIFEST) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", path)(error)),
        }
    }

    /// The content with a digest, which is checked: of the prompt that kept it, else of any other
    /// that has the same. The error is a sentence for people.
    pub(crate) fn content(&self, index: u32, digest: Digest, size: u64) -> Result<Vec<u8>, String> {
        let mut problem = "its content is no longer kept".to_owned();
        let others = self.indices().map_err(|error| error.to_string())?;
        for index in std::iter::once(index).chain(others) {
            match self
                .disk
                .read(&blob_path(&self.prompt(index), digest), size)
            {
                Ok(bytes) if Digest::of(&bytes) == digest => return Ok(bytes),
                Ok(_) => "the copy that was kept is damaged".clone_into(&mut problem),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // It is read as far as it should be long.
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    "the copy that was kept is damaged".clone_into(&mut problem);
                }
                Err(error) => problem = format!("the copy that was kept cannot be read: {error}"),
            }
        }
        Err(problem)
    }
}

pub(crate) fn manifest_path(prompt: &Path) -> PathBuf {
    prompt.join("manifest.json")
}

pub(crate) fn journal_path(prompt: &Path) -> PathBuf {
    prompt.join("entries.journal")
}

pub(crate) fn blobs_path(prompt: &Path) -> PathBuf {
    prompt.join("blobs")
}

pub(crate) fn blob_path(prompt: &Path, digest: Digest) -> PathBuf {
    blobs_path(prompt).join(format!("{digest}.bin"))
}

/// The digest that a file of the store is named by.
pub(crate) fn blob_digest(name: &str) -> Option<Digest> {
    Digest::parse(name.strip_suffix(".bin")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use rstest::rstest;

    #[rstest]
    #[case("")]
    #[case("..")]
    #[case(".hidden")]
    #[case("a/b")]
    #[case("a\nb")]
    fn a_name_never_leads_elsewhere(#[case] name: &str) {
        let store = Store::new(Arc::new(RealDisk), "/nowhere".into(), Limits::default());
        assert!(matches!(store.session(name), Err(Error::Name(_))));
    }
}
