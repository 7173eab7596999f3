//! Where the files of a session are.

use std::path::{Path, PathBuf};

use crate::name::SessionName;

/// The files of one session. Everything that is not `<name>/` begins with `<name>.`, and names
/// have no dot, so no two sessions share a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paths {
    pub(crate) directory: PathBuf,
    pub(crate) name: SessionName,
}

impl Paths {
    pub(crate) fn new(directory: &Path, name: SessionName) -> Self {
        Self {
            directory: directory.to_owned(),
            name,
        }
    }

    pub(crate) fn snapshot(&self) -> PathBuf {
        self.with_suffix("json")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.with_suffix("journal")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.with_suffix("lock")
    }

    /// What a file is called until it takes the place of the old one.
    pub(crate) fn replacement(of: &Path) -> PathBuf {
        let mut name = of.as_os_str().to_owned();
        name.push(".new");
        PathBuf::from(name)
    }

    pub(crate) fn with_suffix(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("{}.{suffix}", self.name))
    }

    /// The session's own directory.
    pub(crate) fn own(&self) -> PathBuf {
        self.directory.join(self.name.as_str())
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.own().join("blobs")
    }
}
