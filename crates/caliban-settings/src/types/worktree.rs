//! Worktrees of sub-agents as they are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What counts where a call says nothing else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Worktree {
    /// What a worktree begins from: `head` unless set, `fresh` for one with almost no files, or a
    /// revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_ref: Option<String>,
    /// Check out only these directories and files; all of them unless set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sparse_paths: Vec<String>,
    /// Directories of the checkout that are linked in instead of being there twice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symlink_directories: Vec<String>,
    /// Keep worktrees when their agents are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_on_exit: Option<bool>,
    /// Further names of ignored files and directories that can be made again, and go with a
    /// worktree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rebuildable: Vec<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Worktree {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
