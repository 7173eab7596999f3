//! The directories from a workspace up to the root of its repository, found by looking only.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::Owner;

/// The most directories that are looked at.
const MAX_DIRECTORIES: usize = 64;

/// The names of instruction files in the order they are read.
pub(super) const NAMES: [&str; 3] = [".caliban.md", "CLAUDE.md", "AGENTS.md"];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// From the top down to the workspace.
    pub(super) directories: Vec<PathBuf>,
    /// The root of the repository, if it is one.
    pub(super) repository: Option<PathBuf>,
}

impl Walk {
    /// Walks up from a real directory to the repository's root, or else to the file system's.
    pub(super) fn from(start: &Path) -> Self {
        let owner = fs::metadata(start)
            .ok()
            .map(|metadata| Owner::of(&metadata));
        let mut directories = Vec::new();
        let mut repository = None;
        for directory in start.ancestors().take(MAX_DIRECTORIES) {
            directories.push(directory.to_owned());
            if is_repository(directory, owner) {
                repository = Some(directory.to_owned());
                break;
            }
        }
        directories.reverse();
        Self {
            directories,
            repository,
        }
    }
}

/// Somebody else's `.git` in a shared directory makes no repository of ours.
fn is_repository(directory: &Path, owner: Option<Owner>) -> bool {
    fs::symlink_metadata(directory.join(".git"))
        .is_ok_and(|git| owner.is_none_or(|owner| Owner::of(&git).speaks_to(owner)))
}
