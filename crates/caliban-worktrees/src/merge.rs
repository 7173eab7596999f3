//! Bringing back what was done in a worktree. Always asked for; either all of it arrives or
//! nothing is changed.

use std::fs;

use crate::entry::Entry;
use crate::error::WorktreeError;
use crate::finish::{Ending, IgnoredFiles};
use crate::identity::OURS;
use crate::repository::Repository;
use crate::survey::survey;

/// Files with conflicts that are named.
const SHOWN: usize = 5;

/// How it is brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// As changes in the checkout that nobody has committed.
    Apply,
    /// As a merge commit on the branch that is checked out.
    Commit,
    /// Not at all: everything is put on its branch, and the tree goes.
    Branch,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// There was nothing to bring back.
    Nothing,
    Applied {
        files: usize,
    },
    Committed {
        commit: String,
    },
    /// The checked out branch had everything already.
    Already,
    Left(Ending),
}

impl Repository {
    /// Brings back what was done in a worktree that nobody works in. What is not committed in it is
    /// committed there first.
    pub async fn merge(
        &self,
        entry: Entry,
        how: Merge,
        rebuildable: &[String],
    ) -> Result<Merged, WorktreeError> {
        match how {
            Merge::Branch => {
                let rule = IgnoredFiles::Rebuildable;
                let ending = self.remove(entry, rule, rebuildable).await?;
                Ok(Merged::Left(ending))
            }
            Merge::Apply => {
                let (_lease, tip) = self.settled(&entry, rebuildable).await?;
                match tip {
                    Some(tip) => self.apply(&entry, &tip).await,
                    None => Ok(Merged::Nothing),
                }
            }
            Merge::Commit => {
                let (_lease, tip) = self.settled(&entry, rebuildable).await?;
                match tip {
                    Some(tip) => self.merge_commit(&entry, &tip).await,
                    None => Ok(Merged::Nothing),
                }
            }
        }
    }

    /// The last commit of a worktree, when everything in it is committed; nothing where that is the
    /// one it began from.
    async fn settled(
        &self,
        entry: &Entry,
        rebuildable: &[String],
    ) -> Result<(crate::registry::Lease, Option<String>), WorktreeError> {
        let lease = self.hold(&entry.name).await?;
        if fs::symlink_metadata(&entry.path).is_ok() {
            let _lock = self.registry.lock().await?;
            self.free(entry).await?;
            let survey = survey(self, entry, rebuildable).await?;
            let reason = match survey.obstacle.clone() {
                Some(reason) => Some(reason),
                None => self.divided(entry, &survey).await?,
            };
            if let Some(reason) = reason {
                return Err(WorktreeError::Unsettled {
                    name: entry.name.clone(),
                    reason,
                });
            }
            self.save(entry, &survey).await?;
        }
        let tip = self.latest(entry).await?;
        Ok((lease, tip.filter(|tip| *tip != entry.base)))
    }

    async fn apply(&self, entry: &Entry, tip: &str) -> Result<Merged, WorktreeError> {
        let from = self.start(entry, tip).await?;
        let patch = self.patch(&from, tip).await?;
        if patch.is_empty() {
            return Ok(Merged::Nothing);
        }
        // One that does not fit as a whole changes nothing.
        let args = ["apply", "--whitespace=nowarn", "--binary", "-"];
        let said = self.git.attempt(args, &patch).await?;
        if !said.is_success() {
            return Err(WorktreeError::Conflict {
                branch: entry.branch.clone(),
                reason: format!("it does not fit here: {}", said.complaint()),
            });
        }
        let args = ["diff", "--name-only", "-z", "--no-renames", &from, tip];
        let names = self.git.run(args).await?.stdout;
        let files = names.split(|byte| *byte == 0).count().saturating_sub(1);
        Ok(Merged::Applied { files })
    }

    /// What the work is compared with: where it began, unless it was moved onto something else.
    async fn start(&self, entry: &Entry, tip: &str) -> Result<String, WorktreeError> {
        if self.is_ancestor(&entry.base, tip).await? {
            return Ok(entry.base.clone());
        }
        let said = self.git.run(["merge-base", "HEAD", tip]).await?;
        Ok(said.text())
    }

    async fn merge_commit(&self, entry: &Entry, tip: &str) -> Result<Merged, WorktreeError> {
        let head = self.commit("HEAD").await?;
        let head = head.ok_or_else(|| WorktreeError::Unborn(self.root.clone()))?;
        if self.is_ancestor(tip, &head).await? {
            return Ok(Merged::Already);
        }
        let conflict = |reason: String| WorktreeError::Conflict {
            branch: entry.branch.clone(),
            reason,
        };
        // Merged beside the checkout, which sees only what went well.
        let args = [
            "merge-tree",
            "--write-tree",
            "--name-only",
            "--no-messages",
            &head,
            tip,
        ];
        let said = self.git.attempt(args, &[]).await?;
        let text = said.text();
        let mut lines = text.lines();
        let tree = lines.next().unwrap_or_default();
        match said.code {
            Some(0) => {}
            Some(1) => {
                let names: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
                let first = names[..names.len().min(SHOWN)].join("`, `");
                return Err(conflict(format!("it conflicts in `{first}`")));
            }
            Some(_) | None => return Err(conflict(said.complaint())),
        }
        let ident = self.git.attempt(["var", "GIT_AUTHOR_IDENT"], &[]).await?;
        let git = if ident.is_success() {
            self.git.clone()
        } else {
            self.git.clone().with(&OURS)
        };
        let message = format!(
            "Merge the work of an agent ({})\n\n{}",
            entry.branch, entry.purpose
        );
        let args = ["commit-tree", tree, "-p", &head, "-p", tip, "-F", "-"];
        let made = git.run_with(args, message.trim_end().as_bytes()).await?;
        let commit = made.text();
        // Refuses before it changes anything where something of the user's is in the way.
        let args = ["merge", "--ff-only", "--quiet", "--no-verify", &commit];
        let said = self.git.attempt(args, &[]).await?;
        if !said.is_success() {
            return Err(conflict(said.complaint()));
        }
        Ok(Merged::Committed { commit })
    }
}
