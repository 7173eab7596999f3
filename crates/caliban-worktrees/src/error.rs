//! Why a worktree cannot be had, looked at, merged or removed.

use std::io;
use std::path::PathBuf;

use caliban_git::GitError;

use crate::name::Name;

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("`{}` is not in a git repository; a worktree needs one (`git init` makes one)", .0.display())]
    NoRepository(PathBuf),
    #[error("`{}` is a bare repository or inside of one; a worktree needs a checkout to begin from", .0.display())]
    Bare(PathBuf),
    #[error("`{}` has no commit yet; a worktree needs one to begin from (`git commit` makes one)", .0.display())]
    Unborn(PathBuf),
    #[error("`{0}` names no commit of this repository")]
    NoCommit(String),
    #[error(
        "`{0}` is no name of a worktree: lower case letters, digits and dashes, at most 48 of them"
    )]
    BadName(String),
    #[error("there is a worktree `{0}` already; `caliban worktrees list` shows it")]
    Taken(Name),
    #[error("`{0}` is there already: take another name, or remove what is there")]
    InTheWay(String),
    #[error("there is no worktree `{0}`; `caliban worktrees list` shows those there are")]
    Unknown(String),
    #[error("`{0}` fits several worktrees: {1}")]
    Ambiguous(String, String),
    #[error(
        "there are {0} worktrees of agents already, which is the limit; `caliban worktrees list` shows them, `caliban worktrees rm NAME` removes one"
    )]
    TooMany(usize),
    #[error("an agent works in `{0}` at this moment; wait for it or end it first")]
    InUse(Name),
    #[error("`{path}` cannot be linked into the worktree: {reason}")]
    NoLink { path: String, reason: String },
    #[error("`{0}` is no path that a checkout can be limited to: it must lie in the repository")]
    BadSparsePath(String),
    #[error("`{}` is not a directory of the repository itself; remove what is in its place", .0.display())]
    Planted(PathBuf),
    #[error("the worktree `{name}` is not as it was made: {reason}")]
    Odd { name: Name, reason: String },
    #[error(
        "the worktree `{name}` is gone; `git worktree add {} {branch}` brings back what is on its branch", .path.display()
    )]
    Gone {
        name: Name,
        branch: String,
        path: PathBuf,
    },
    #[error("the worktree `{name}` stays as it is: {reason}")]
    Unsettled { name: Name, reason: String },
    #[error("{reason}; nothing was changed. `git merge {branch}` lets you resolve it")]
    Conflict { branch: String, reason: String },
    #[error("other work on the worktrees of `{}` did not end in time; try again", .0.display())]
    Busy(PathBuf),
    #[error("`{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
}

impl WorktreeError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
