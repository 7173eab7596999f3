//! The directory of the agent's notes on a workspace: topic files and their index.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::topic::{InvalidTopic, MAX_BODY, Topic, TopicName};
use super::{index, owner};
use crate::notice::Notice;
use crate::private;
use crate::source::{self, Fence, FileProblem};

/// The name of the index.
pub(super) const INDEX: &str = "MEMORY.md";
/// The largest index on disk.
pub(super) const MAX_INDEX: u64 = 1024 * 1024;
/// The largest topic file: a note and its head.
const MAX_FILE: u64 = MAX_BODY as u64 + 16 * 1024;
/// The most topics of a workspace.
const MAX_TOPICS: usize = 500;

#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    #[error("there is no topic `{}`", .0.as_str())]
    Unknown(TopicName),
    #[error(transparent)]
    Invalid(#[from] InvalidTopic),
    #[error("`{}` cannot be used: {problem}", path.display())]
    Unusable { path: PathBuf, problem: FileProblem },
    #[error("there are {MAX_TOPICS} topics already; merge or remove some first")]
    Full,
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// The notes in their directory, which need not exist.
#[derive(Debug, Clone)]
pub struct NoteStore {
    directory: PathBuf,
}

/// What a look at all topic files found.
#[derive(Debug, Default)]
pub struct Topics {
    pub topics: BTreeMap<TopicName, Topic>,
    /// Files that are no topics.
    pub notices: Vec<Notice>,
}

impl NoteStore {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directory this workspace's, with an index to begin with, unless there is one.
    pub fn bootstrap(&self, workspace: &Path) -> Result<(), NotesError> {
        if self.directory.join(INDEX).exists() && owner::is_claimed(&self.directory) {
            return Ok(());
        }
        let path = self.directory.join(INDEX);
        private::ensure_directory(&self.directory)
            .and_then(|()| owner::claim(&self.directory, workspace))
            .and_then(|()| private::begin(&path, index::TEMPLATE))
            .map_err(|source| NotesError::Write { path, source })
    }

    /// Every topic on disk.
    pub fn topics(&self) -> Topics {
        let mut found = Topics::default();
        for file in source::names(&self.directory, 10 * MAX_TOPICS) {
            let Some(stem) = source::markdown_stem(&file) else {
                continue;
            };
            if file == INDEX || stem.starts_with('.') {
                continue;
            }
            let read = stem
                .parse::<TopicName>()
                .map_err(NotesError::Invalid)
                .and_then(|name| self.read(&name).map(|topic| (name, topic)));
            match read {
                Ok((name, topic)) => {
                    found.topics.insert(name, topic);
                }
                Err(error) => found.notices.push(Notice::Malformed {
                    path: self.directory.join(&file),
                    reason: error.to_string(),
                }),
            }
        }
        found
    }

    pub fn read(&self, name: &TopicName) -> Result<Topic, NotesError> {
        match self.text(&name.file_name(), MAX_FILE)? {
            Some(text) => Ok(Topic::from_file(name, &text)?),
            None => Err(NotesError::Unknown(name.clone())),
        }
    }

    /// Writes a topic and its line in the index. Whatever happens in between, each file is whole;
    /// a line that is missing is found by [`Self::rebuild_index`].
    pub fn write(&self, name: &TopicName, topic: &Topic) -> Result<(), NotesError> {
        let lock = self.lock()?;
        let file = name.file_name();
        let is_new = !self.directory.join(&file).exists();
        if is_new && self.count() >= MAX_TOPICS {
            return Err(NotesError::Full);
        }
        let index = self.index()?;
        self.replace(&file, &topic.to_file(name))?;
        self.replace(INDEX, &index::with_topic(&index, name, topic))?;
        drop(lock);
        Ok(())
    }

    /// Removes a topic and its line; whether there was one.
    pub fn remove(&self, name: &TopicName) -> Result<bool, NotesError> {
        if !self.directory.exists() {
            return Ok(false);
        }
        let lock = self.lock()?;
        let path = self.directory.join(name.file_name());
        let removed =
            private::remove(&path).map_err(|source| NotesError::Write { path, source })?;
        let index = self.index()?;
        self.replace(INDEX, &index::without_topic(&index, name))?;
        drop(lock);
        Ok(removed)
    }

    /// Makes the index agree with the topic files, which it returns. Lines that are not entries
    /// stay.
    pub fn rebuild_index(&self) -> Result<Topics, NotesError> {
        let lock = self.lock()?;
        let found = self.topics();
        let index = self.index()?;
        self.replace(INDEX, &index::rebuilt(&index, &found.topics))?;
        drop(lock);
        Ok(found)
    }

    /// The file of a topic, whether it is there or not.
    pub fn path(&self, name: &TopicName) -> PathBuf {
        self.directory.join(name.file_name())
    }

    pub fn index_path(&self) -> PathBuf {
        self.directory.join(INDEX)
    }

    /// The index as it is on disk, if it is there.
    pub fn index_text(&self) -> Result<Option<String>, NotesError> {
        self.text(INDEX, MAX_INDEX)
    }

    /// The index, or what a new one begins with.
    fn index(&self) -> Result<String, NotesError> {
        let text = self.index_text()?;
        Ok(text.unwrap_or_else(|| index::TEMPLATE.to_owned()))
    }

    fn count(&self) -> usize {
        source::names(&self.directory, 10 * MAX_TOPICS)
            .iter()
            .filter(|name| source::markdown_stem(name).is_some() && *name != INDEX)
            .count()
    }

    /// A file of the directory that does not lead out of it.
    fn text(&self, file: &str, limit: u64) -> Result<Option<String>, NotesError> {
        let path = self.directory.join(file);
        let unusable = |problem| NotesError::Unusable {
            path: path.clone(),
            problem,
        };
        let Some(directory) = source::resolve(&self.directory).map_err(unusable)? else {
            return Ok(None);
        };
        let document =
            source::read_within(&path, &Fence::Within(directory), limit).map_err(unusable)?;
        Ok(document.map(|document| document.text))
    }

    fn lock(&self) -> Result<File, NotesError> {
        let path = self.directory.join(".lock");
        private::ensure_directory(&self.directory)
            .and_then(|()| private::lock(&path))
            .map_err(|source| NotesError::Write { path, source })
    }

    fn replace(&self, file: &str, text: &str) -> Result<(), NotesError> {
        let path = self.directory.join(file);
        private::replace(&path, text).map_err(|source| NotesError::Write { path, source })
    }
}
