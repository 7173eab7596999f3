//! Looking at worktrees: which there are, and what was done in them.

use std::fs;
use std::path::Path;

use crate::entry::{Entry, Stage};
use crate::error::WorktreeError;
use crate::registry::GLANCE;
use crate::repository::Repository;
use crate::status::{Detail, Kind, status};
use crate::words::add_everything;

/// A worktree as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub entry: Entry,
    pub state: State,
    /// Commits that its branch has beyond the one it began from.
    pub commits: usize,
    /// Files in it that are not committed.
    pub uncommitted: usize,
}

/// How a worktree stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Somebody works in it.
    Active,
    /// Its agent in the background has no process at the moment and can go on in it.
    Resting,
    /// Whoever worked in it was ended; the next one cleans up.
    Abandoned,
    /// Its agent is done, and it stays for this reason.
    Kept(String),
    /// The tree is gone, and what was done is on its branch.
    Branch,
    /// The tree is gone, and nobody said so.
    Vanished,
}

impl State {
    /// In one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Resting => "resting",
            Self::Abandoned => "abandoned",
            Self::Kept(_) => "kept",
            Self::Branch => "branch",
            Self::Vanished => "vanished",
        }
    }
}

impl Repository {
    /// All worktrees. Entries of which nothing is left are forgotten.
    pub async fn list(&self) -> Result<Vec<Listed>, WorktreeError> {
        let mut listed = Vec::new();
        for entry in self.entries().await? {
            let is_there = fs::symlink_metadata(&entry.path).is_ok();
            let tip = self.latest(&entry).await?;
            if !is_there && tip.is_none() {
                if self.registry.lease(&entry.name, GLANCE).await?.is_some() {
                    self.forget(&entry).await?;
                }
                continue;
            }
            let commits = match &tip {
                Some(tip) => self.count(&entry.base, tip).await?,
                None => 0,
            };
            let uncommitted = if is_there {
                self.uncommitted_in(&entry).await
            } else {
                0
            };
            listed.push(Listed {
                state: self.state(&entry, is_there).await?,
                entry,
                commits,
                uncommitted,
            });
        }
        Ok(listed)
    }

    async fn state(&self, entry: &Entry, is_there: bool) -> Result<State, WorktreeError> {
        if entry.stage == Stage::Branch && !is_there {
            return Ok(State::Branch);
        }
        if self.registry.lease(&entry.name, GLANCE).await?.is_none() {
            return Ok(State::Active);
        }
        Ok(match &entry.stage {
            _ if !is_there => State::Vanished,
            Stage::Creating | Stage::Active if self.is_claimed(entry) => State::Resting,
            Stage::Kept(reason) => State::Kept(reason.clone()),
            Stage::Creating | Stage::Active | Stage::Branch => State::Abandoned,
        })
    }

    /// How many files of a tree are not committed, as far as that can be told.
    async fn uncommitted_in(&self, entry: &Entry) -> usize {
        let git = self.git.at(&entry.path);
        let changes = status(&git, Detail::Counting).await.unwrap_or_default();
        let is_ours = |path: &Path| entry.links.iter().any(|link| link.path == path);
        let counted = changes
            .iter()
            .filter(|change| change.kind != Kind::Ignored && !is_ours(&change.path));
        counted.count()
    }

    /// The newest commit of a worktree: where it stands if it is there, else its branch.
    pub(crate) async fn latest(&self, entry: &Entry) -> Result<Option<String>, WorktreeError> {
        if fs::symlink_metadata(&entry.path).is_ok() {
            let git = self.git.at(&entry.path);
            let said = git.attempt(["rev-parse", "--verify", "HEAD"], &[]).await?;
            if said.is_success() && said.text() != entry.base {
                return Ok(Some(said.text()));
            }
        }
        for reference in [entry.branch_ref(), entry.branch.clone(), entry.rescue_ref()] {
            let is_full = reference.starts_with("refs/");
            if let (true, Some(tip)) = (is_full, self.tip(&reference).await?) {
                return Ok(Some(tip));
            }
        }
        Ok(None)
    }

    /// Everything that was done in a worktree, committed or not, as a patch.
    pub async fn diff(&self, entry: &Entry) -> Result<Vec<u8>, WorktreeError> {
        let new = if fs::symlink_metadata(&entry.path).is_ok() {
            self.snapshot(entry).await?
        } else {
            let latest = self.latest(entry).await?;
            latest.ok_or_else(|| WorktreeError::Unknown(entry.name.to_string()))?
        };
        self.patch(&entry.base, &new).await
    }

    pub(crate) async fn patch(&self, old: &str, new: &str) -> Result<Vec<u8>, WorktreeError> {
        let args = [
            "diff",
            "--binary",
            "--full-index",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
            old,
            new,
        ];
        Ok(self.git.run(args).await?.stdout)
    }

    /// A tree of objects that holds what is in a worktree now. Nothing in it is changed.
    async fn snapshot(&self, entry: &Entry) -> Result<String, WorktreeError> {
        let git = self.git.at(&entry.path);
        let said = git
            .run(["rev-parse", "--path-format=absolute", "--git-path", "index"])
            .await?;
        let index = said.stdout.strip_suffix(b"\n").unwrap_or(&said.stdout);
        let index = crate::status::name(index).unwrap_or_default();
        let folder = tempfile::Builder::new()
            .prefix(".index-")
            .tempdir_in(self.registry.directory())
            .map_err(WorktreeError::io(self.registry.directory()))?;
        let copy = folder.path().join("index");
        fs::copy(&index, &copy).map_err(WorktreeError::io(&index))?;
        let copy = copy.display().to_string();
        let git = git.with(&[("GIT_INDEX_FILE", copy.as_str())]);
        git.run(add_everything(entry)).await?;
        Ok(git.run(["write-tree"]).await?.text())
    }
}
