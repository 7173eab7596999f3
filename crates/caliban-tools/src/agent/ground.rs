//! Directories of their own for sub-agents.

use std::fmt::Debug;
use std::sync::Arc;

use caliban_agent::Agent;
use futures::future::BoxFuture;
use serde::Deserialize;

/// What a call says about the worktree of its sub-agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroundWish {
    /// What it begins from: head (default), fresh (almost no files), or a revision.
    pub base_ref: Option<String>,
    /// Check out only these directories and files.
    pub sparse_paths: Option<Vec<String>>,
    /// Large directories that are linked instead of copied, such as target.
    pub symlink_directories: Option<Vec<String>>,
    pub keep_on_exit: Option<bool>,
    pub name: Option<String>,
}

/// For whom a directory is wanted.
#[derive(Debug, Clone)]
pub struct Occupant {
    /// The call that it works for.
    pub call_id: Arc<str>,
    /// What it is to do, in a few words.
    pub purpose: String,
}

/// Where sub-agents can have directories of their own.
pub trait Grounds: Send + Sync + Debug {
    /// Makes one; the error says why there is none. The directory of the parent is never given
    /// instead.
    fn prepare(
        &self,
        occupant: Occupant,
        wish: GroundWish,
    ) -> BoxFuture<'_, Result<Box<dyn Ground>, String>>;
}

/// A directory that a sub-agent works in. When it is dropped before [`leave`](Self::leave) has
/// ended, what is in it is taken care of all the same.
pub trait Ground: Send + Sync + Debug {
    /// Makes it the place where an agent works.
    fn furnish(&self, agent: &mut Agent);

    /// What the agent is told about where it is.
    fn briefing(&self) -> String;

    /// The agent is done: says what became of its work, for its parent to read.
    fn leave(self: Box<Self>) -> BoxFuture<'static, String>;
}
