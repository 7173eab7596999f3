//! The directories and files that context is read from, resolved by the caller.

use std::path::{Path, PathBuf};

/// Where everything is. All paths are absolute; none needs to exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The directory the session works in.
    pub workspace: PathBuf,
    /// The directory whose `.caliban` counts: the workspace, or one above it.
    pub project: PathBuf,
    /// What `~/` means.
    pub home: PathBuf,
    /// The user's configuration: `CLAUDE.md`, `skills`, `output-styles`, `commands`.
    pub config: PathBuf,
    /// The program's data; holds `skills` too.
    pub data: PathBuf,
    /// The agent's notes on this workspace. No two workspaces may share it.
    pub notes: PathBuf,
    /// Which imports from outside have been approved.
    pub imports_allowlist: PathBuf,
    /// The plugins that are enabled.
    pub plugins: Vec<PluginPlace>,
}

/// An enabled plugin, whose `skills`, `output-styles` and `commands` are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginPlace {
    pub name: String,
    pub path: PathBuf,
}

/// A directory of a project's own configuration.
pub(crate) fn project_part(directory: &Path, part: &str) -> PathBuf {
    directory.join(".caliban").join(part)
}

/// The same of a project that was set up for another program of our kind.
pub(crate) fn foreign_part(directory: &Path, part: &str) -> PathBuf {
    directory.join(".claude").join(part)
}
