//! The end of a worktree. What was done in it is on a branch before the tree goes; where that
//! cannot be had, everything stays.

use std::fs;

use crate::create::Worktree;
use crate::entry::{Entry, Stage};
use crate::error::WorktreeError;
use crate::identity::OURS;
use crate::registry::{GLANCE, Lease};
use crate::repository::Repository;
use crate::seed;
use crate::strays::Last;
use crate::survey::{Survey, shown, survey};
use crate::words::{add_everything, with_path};

/// Files that a summary of changes tells one by one.
const STAT_FILES: &str = "--stat-count=20";

/// Whether a worktree goes when its agent is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// As soon as nothing would be lost.
    #[default]
    UntilDone,
    /// Somebody wants to look at it.
    Always,
}

/// Whether files that git ignores may go with a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredFiles {
    /// Those that can be made again.
    Rebuildable,
    /// All of them; somebody said so.
    All,
}

/// What became of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Nothing was done in it: tree and branch are gone. What was stashed in it is told.
    Unchanged { besides: Vec<String> },
    /// The tree is gone; what was done is on a branch.
    Branch(Work),
    /// Everything is where it was, and this is why.
    Kept { reason: String, work: Option<Work> },
}

/// What was done in a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// What names it for git: a branch, or a ref of ours where there is none.
    pub branch: String,
    pub base: String,
    pub tip: String,
    pub commits: usize,
    /// What changed, in git's words.
    pub diffstat: String,
    /// How many files were committed by us, because nobody had.
    pub committed: usize,
    /// Where there is more that was done in it, a clause each.
    pub besides: Vec<String>,
}

impl Ending {
    /// Nothing is left of it, and nothing was done.
    pub const NOTHING: Self = Self::Unchanged {
        besides: Vec::new(),
    };
}

impl Worktree {
    /// Nobody works in it any more. `rebuildable` are names of ignored files that may go with it.
    pub async fn finish(mut self, rebuildable: &[String]) -> Result<Ending, WorktreeError> {
        let Some(lease) = self.lease.take() else {
            return Err(WorktreeError::InUse(self.entry.name.clone()));
        };
        let repository = self.repository.clone();
        let how = Finish {
            keep: self.keep,
            ignored: IgnoredFiles::Rebuildable,
            rebuildable,
        };
        repository.finish(self.entry.clone(), lease, &how).await
    }
}

/// How a worktree ends.
#[derive(Debug)]
pub(crate) struct Finish<'a> {
    pub(crate) keep: Keep,
    pub(crate) ignored: IgnoredFiles,
    pub(crate) rebuildable: &'a [String],
}

impl Repository {
    /// Removes a worktree that nobody works in; its work stays on its branch, which goes only if
    /// the checked out branch has all of it.
    pub async fn remove(
        &self,
        entry: Entry,
        ignored: IgnoredFiles,
        rebuildable: &[String],
    ) -> Result<Ending, WorktreeError> {
        let lease = self.hold(&entry.name).await?;
        let how = Finish {
            keep: Keep::UntilDone,
            ignored,
            rebuildable,
        };
        let ending = self.finish(entry.clone(), lease, &how).await?;
        let Ending::Branch(work) = &ending else {
            return Ok(ending);
        };
        if self.is_ancestor(&work.tip, "HEAD").await? {
            let _lock = self.registry.lock().await?;
            self.drop_merged(&entry, work).await?;
            return Ok(Ending::Unchanged {
                besides: work.besides.clone(),
            });
        }
        Ok(ending)
    }

    /// Forgets a branch whose commits are all somewhere else.
    async fn drop_merged(&self, entry: &Entry, work: &Work) -> Result<(), WorktreeError> {
        let branch = entry.branch_ref();
        if self.tip(&branch).await?.as_ref() == Some(&work.tip) {
            self.git
                .run(["update-ref", "-d", &branch, &work.tip])
                .await?;
        }
        self.drop_base(entry).await?;
        self.registry.remove(&entry.name)
    }

    /// Ends the worktrees whose agents were ended before they could: what is committed, what is
    /// kept and what goes is as ever. Those of agents in the background stay as long as their
    /// agents are registered.
    pub async fn sweep(
        &self,
        rebuildable: &[String],
    ) -> Result<Vec<(Entry, Result<Ending, WorktreeError>)>, WorktreeError> {
        let mut swept = Vec::new();
        for entry in self.registry.entries() {
            match entry.stage {
                Stage::Creating | Stage::Active => {}
                Stage::Kept(_) | Stage::Branch => continue,
            }
            if self.is_claimed(&entry) {
                continue;
            }
            let Some(lease) = self.registry.lease(&entry.name, GLANCE).await? else {
                continue;
            };
            let how = Finish {
                keep: Keep::UntilDone,
                ignored: IgnoredFiles::Rebuildable,
                rebuildable,
            };
            let ending = self.finish(entry.clone(), lease, &how).await;
            swept.push((entry, ending));
        }
        Ok(swept)
    }

    pub(crate) async fn finish(
        &self,
        entry: Entry,
        lease: Lease,
        how: &Finish<'_>,
    ) -> Result<Ending, WorktreeError> {
        let _lock = self.registry.lock().await?;
        let ended = self.end(&entry, how).await;
        let ending = match ended {
            Ok(ending) => ending,
            // Whatever it was, nothing is removed that was not looked at.
            Err(error) => Ending::Kept {
                reason: error.to_string(),
                work: None,
            },
        };
        self.note(entry, &ending)?;
        drop(lease);
        Ok(ending)
    }

    /// Writes down what became of it.
    fn note(&self, mut entry: Entry, ending: &Ending) -> Result<(), WorktreeError> {
        entry.stage = match ending {
            // Its entry went with it.
            Ending::Unchanged { .. } => return Ok(()),
            Ending::Branch(work) => {
                entry.branch.clone_from(&work.branch);
                Stage::Branch
            }
            Ending::Kept { reason, .. } => Stage::Kept(reason.clone()),
        };
        self.registry.write(&entry)
    }

    async fn end(&self, entry: &Entry, how: &Finish<'_>) -> Result<Ending, WorktreeError> {
        if fs::symlink_metadata(&entry.path).is_err() {
            return self.end_vanished(entry).await;
        }
        self.free(entry).await?;
        let found = survey(self, entry, how.rebuildable).await?;
        if entry.stage == Stage::Creating {
            return self.end_unfinished(entry, &found).await;
        }
        if let Some(reason) = &found.obstacle {
            let work = self.work(entry, &found, 0).await.ok().flatten();
            return Ok(kept(reason, work));
        }
        let committed = self.save(entry, &found).await?;
        let survey = survey(self, entry, how.rebuildable).await?;
        if !survey.changes.is_empty() {
            let names: Vec<String> = survey
                .changes
                .iter()
                .map(|change| change.path.display().to_string())
                .collect();
            return Ok(kept(
                &format!("{} could not be committed", shown(&names)),
                self.work(entry, &survey, committed).await?,
            ));
        }
        let work = self.work(entry, &survey, committed).await?;
        if let Some(reason) = self.divided(entry, &survey).await? {
            return Ok(kept(&reason, work));
        }
        if how.keep == Keep::Always {
            if survey.precious.is_empty() {
                // Whoever wanted it removes it with git, which asks about everything else.
                self.unlock(entry).await?;
            }
            return Ok(kept("it was to be kept", work));
        }
        if !survey.precious.is_empty() && how.ignored == IgnoredFiles::Rebuildable {
            let names = shown(&survey.precious);
            return Ok(kept(
                &format!("git ignores {names}, which would be lost"),
                work,
            ));
        }
        let tip = work.as_ref().map(|work| work.tip.clone());
        let last = tip.as_deref().map_or(Last::Base, Last::Kept);
        let mut strays = self.strays(entry, last).await?;
        let work = match work {
            Some(work) => Some(work),
            None if strays.refs.is_empty() => None,
            None => {
                let (name, tip) = strays.refs.remove(0);
                Some(self.described(entry, &tip, name, committed).await?)
            }
        };
        let besides = strays.told();
        self.remove_tree(entry).await?;
        match work {
            None => {
                self.forget(entry).await?;
                Ok(Ending::Unchanged { besides })
            }
            Some(work) => {
                if work.branch != entry.branch {
                    self.drop_unused(entry).await?;
                }
                Ok(Ending::Branch(Work { besides, ..work }))
            }
        }
    }

    /// Removes its branch if nothing was added to it.
    pub(crate) async fn drop_unused(&self, entry: &Entry) -> Result<(), WorktreeError> {
        let branch = entry.branch_ref();
        if self.tip(&branch).await?.as_ref() == Some(&entry.base) {
            self.git
                .run(["update-ref", "-d", &branch, &entry.base])
                .await?;
        }
        Ok(())
    }

    /// Nobody had worked in it when it was cut off.
    async fn end_unfinished(
        &self,
        entry: &Entry,
        survey: &Survey,
    ) -> Result<Ending, WorktreeError> {
        if survey.head == entry.base && survey.is_only_missing() && survey.obstacle.is_none() {
            self.unmake(entry).await?;
            return Ok(Ending::NOTHING);
        }
        Ok(kept(
            "its making was interrupted, and there is something in it",
            None,
        ))
    }

    /// The tree is gone without us: what was committed is all there is.
    async fn end_vanished(&self, entry: &Entry) -> Result<Ending, WorktreeError> {
        let mut besides = Vec::new();
        if self.is_known_to_git(entry).await? {
            // What had no branch gets a name before the log goes.
            besides = self.strays(entry, Last::CheckedOut).await?.told();
            self.remove_tree(entry).await?;
        }
        let rescued = entry.rescue_ref();
        for (reference, shown) in [
            (entry.branch_ref(), entry.branch.clone()),
            (rescued.clone(), rescued),
        ] {
            if let Some(tip) = self.tip(&reference).await?
                && tip != entry.base
            {
                besides.retain(|more| !more.contains(&format!("`{shown}`")));
                let work = self.described(entry, &tip, shown, 0).await?;
                return Ok(Ending::Branch(Work { besides, ..work }));
            }
        }
        self.forget(entry).await?;
        Ok(Ending::Unchanged { besides })
    }

    /// Commits what is not committed, on whatever the worktree has checked out. Says how many files
    /// that were.
    pub(crate) async fn save(
        &self,
        entry: &Entry,
        survey: &Survey,
    ) -> Result<usize, WorktreeError> {
        if survey.changes.is_empty() {
            return Ok(0);
        }
        let git = self.git.at(&entry.path).with(&OURS);
        let commit = |what: &str| {
            let message = format!("{what} of the agent in {}\n\n{}", entry.name, entry.purpose);
            let git = git.clone();
            async move {
                let args = [
                    "commit",
                    "--quiet",
                    "--no-verify",
                    "--no-gpg-sign",
                    "-F",
                    "-",
                ];
                git.run_with(args, message.trim_end().as_bytes()).await
            }
        };
        if survey.has_two_versions() {
            commit("Staged work").await?;
        }
        git.run(add_everything(entry)).await?;
        let staged = git.attempt(["diff", "--cached", "--quiet"], &[]).await?;
        if !staged.is_success() {
            commit("Uncommitted work").await?;
        }
        Ok(survey.changes.len())
    }

    /// What was done, if anything. Commits that no branch has get a ref.
    async fn work(
        &self,
        entry: &Entry,
        survey: &Survey,
        committed: usize,
    ) -> Result<Option<Work>, WorktreeError> {
        let named = survey.branch.as_deref();
        let named = named.and_then(|it| it.strip_prefix("refs/heads/"));
        if survey.head != entry.base {
            let branch = if let Some(branch) = named {
                branch.to_owned()
            } else {
                let rescue = entry.rescue_ref();
                self.git.run(["update-ref", &rescue, &survey.head]).await?;
                rescue
            };
            let work = self.described(entry, &survey.head, branch, committed);
            return Ok(Some(work.await?));
        }
        // It stands where it began; its own branch may have gone on without it.
        match self.tip(&entry.branch_ref()).await? {
            Some(tip) if tip != entry.base => {
                let branch = entry.branch.clone();
                Ok(Some(self.described(entry, &tip, branch, committed).await?))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Why what was done is not all on what the worktree has checked out: its own branch has
    /// commits that are not there.
    pub(crate) async fn divided(
        &self,
        entry: &Entry,
        survey: &Survey,
    ) -> Result<Option<String>, WorktreeError> {
        let own = entry.branch_ref();
        if survey.head == entry.base || survey.branch.as_deref() == Some(&own) {
            return Ok(None);
        }
        let Some(tip) = self.tip(&own).await?.filter(|tip| *tip != entry.base) else {
            return Ok(None);
        };
        let head = self
            .git
            .at(&entry.path)
            .run(["rev-parse", "HEAD"])
            .await?
            .text();
        if self.is_ancestor(&tip, &head).await? {
            return Ok(None);
        }
        let other = survey
            .branch
            .as_deref()
            .unwrap_or("a commit without a branch");
        let other = other.strip_prefix("refs/heads/").unwrap_or(other);
        Ok(Some(format!(
            "its work is on two branches, `{}` and `{other}`, which it has checked out; `git -C {} \
             merge {}` brings them together",
            entry.branch,
            entry.path.display(),
            entry.branch
        )))
    }

    pub(crate) async fn described(
        &self,
        entry: &Entry,
        tip: &str,
        branch: String,
        committed: usize,
    ) -> Result<Work, WorktreeError> {
        let args = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--stat=78",
            STAT_FILES,
            &entry.base,
            tip,
        ];
        let diffstat = self.git.run(args).await?.text();
        Ok(Work {
            branch,
            base: entry.base.clone(),
            tip: tip.to_owned(),
            commits: self.count(&entry.base, tip).await?,
            diffstat,
            committed,
            besides: Vec::new(),
        })
    }

    /// Removes a tree in which nothing is that is not committed. Git looks again and may refuse,
    /// which is final.
    async fn remove_tree(&self, entry: &Entry) -> Result<(), WorktreeError> {
        seed::unlink(entry);
        // It is unlocked already where we were cut off here before.
        self.unlock(entry).await?;
        let words = with_path(&["worktree", "remove"], &entry.path);
        if let Err(error) = self.git.run(words).await {
            // As it was before, so that nobody prunes it meanwhile.
            self.lock(entry).await;
            let _ = seed::link(entry);
            return Err(error.into());
        }
        Ok(())
    }

    async fn unlock(&self, entry: &Entry) -> Result<(), WorktreeError> {
        let words = with_path(&["worktree", "unlock"], &entry.path);
        self.git.attempt(words, &[]).await?;
        Ok(())
    }

    /// Keeps others from pruning and removing it; one that is locked stays so.
    pub(crate) async fn lock(&self, entry: &Entry) {
        let reason = format!("caliban {} {}", entry.name, entry.session);
        let words = with_path(&["worktree", "lock", "--reason", &reason], &entry.path);
        let _ = self.git.attempt(words, &[]).await;
    }
}

fn kept(reason: &str, work: Option<Work>) -> Ending {
    Ending::Kept {
        reason: reason.to_owned(),
        work,
    }
}
