//! Git worktrees of agents: made, looked at, merged back and removed without losing a line.
//!
//! Every worktree has an entry in a registry of our own, written before git is asked to make it:
//! where it is, on which branch, and from which commit it began. What is in a worktree is judged by
//! that commit and never by where its own `HEAD` stands. What was not committed is committed before
//! a tree goes; what cannot be judged stays, with the reason. The parent's directory never takes the
//! place of a worktree that cannot be had.

mod create;
mod disk;
mod entry;
mod error;
mod finish;
mod identity;
mod listing;
mod merge;
mod name;
mod registry;
mod repository;
mod seed;
mod stale;
mod status;
mod strays;
mod survey;
mod words;

pub use create::{Base, Request, Worktree};
pub use entry::{Entry, Stage};
pub use error::WorktreeError;
pub use finish::{Ending, IgnoredFiles, Keep, Work};
pub use listing::{Listed, State};
pub use merge::{Merge, Merged};
pub use name::Name;
pub use registry::Lease;
pub use repository::{Repository, Uncommitted};
