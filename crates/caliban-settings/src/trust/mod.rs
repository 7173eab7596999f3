//! Workspace trust: what of the workspace's own settings is left out without it, who grants it,
//! and where that is recorded.

mod files;
mod gating;
mod programs;
mod store;
mod tree;

pub use files::{FilesDigest, WorkspaceFiles};
pub use gating::{Ignored, IgnoredBecause, TrustDecision, notice};
pub(crate) use gating::{apply_gate, covers};
pub use store::{Lookup, Recorded, TrustError, TrustRecord, TrustStore};
pub use tree::{TREE_BYTES, TREE_ENTRIES, Tree, TreeError, TreeFile, TreeShape};
