//! What is written down about a worktree before it is made, and until nothing of it is left.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::Name;

/// A worktree as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub name: Name,
    pub path: PathBuf,
    /// As people write it, without `refs/heads/`.
    pub branch: String,
    /// The commit that it began from; everything is judged by it.
    pub base: String,
    pub created: Timestamp,
    /// The session that asked for it; empty where that is not known any more.
    pub session: String,
    /// What its agent was to do.
    pub purpose: String,
    /// The agent in the background that it is for. It stays for as long as that one is registered,
    /// whether or not it has a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub stage: Stage,
    /// Files that git ignores and that were brought along.
    #[serde(default)]
    pub seeded: Vec<Seeded>,
    /// Directories of the parent that are linked.
    #[serde(default)]
    pub links: Vec<Link>,
}

/// How far a worktree is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is being made; nobody has worked in it.
    Creating,
    /// An agent works in it, or did when it was ended.
    Active,
    /// Its agent is done, and it stays for a reason.
    Kept(String),
    /// The tree is gone, and what was done is on its branch.
    Branch,
}

/// A file that was copied in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeded {
    /// Relative to the worktree.
    pub path: PathBuf,
    /// SHA-256 in hexadecimal.
    pub digest: String,
}

/// A link to a directory of the parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Relative to the worktree.
    pub path: PathBuf,
    pub target: PathBuf,
}

impl Entry {
    /// The ref of its branch.
    pub(crate) fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// What keeps the commit that it began from, whatever becomes of branches.
    pub(crate) fn base_ref(&self) -> String {
        base_ref(&self.name)
    }

    /// What keeps commits that no branch has.
    pub(crate) fn rescue_ref(&self) -> String {
        format!("refs/caliban/rescue/{}", self.name)
    }
}

/// The refs that name what worktrees began from.
pub(crate) const BASES: &str = "refs/caliban/base/";

pub(crate) fn base_ref(name: &Name) -> String {
    format!("{BASES}{name}")
}
