//! Work that a worktree does not end with: commits that were made in it and switched away from, and
//! what was put into the stash. The log of its `HEAD` knows them, and goes with the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::entry::Entry;
use crate::error::WorktreeError;
use crate::repository::Repository;
use crate::status::name;

/// Commits that are looked after; whoever leaves more has names for them.
const MOST: usize = 32;

/// Which commits of a worktree are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last<'a> {
    /// Those that what it ends with has not.
    Kept(&'a str),
    /// All but where it began.
    Base,
    /// The one that it had checked out too, because its tree is gone.
    CheckedOut,
}

/// What a worktree has besides what it has checked out.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    /// Refs that have commits made in it, as people write them, with their commits.
    pub(crate) refs: Vec<(String, String)>,
    /// Commits of the stash.
    pub(crate) stashed: Vec<String>,
}

impl Strays {
    /// All of it for a sentence.
    pub(crate) fn told(&self) -> Vec<String> {
        let refs = self.refs.iter();
        let refs = refs.map(|(name, _)| format!("commits that were made in it are on `{name}`"));
        let stashed = self.stashed.iter().map(|commit| {
            let short = commit.get(..12).unwrap_or(commit);
            format!("something was stashed in it, `git stash apply {short}` brings it here")
        });
        refs.chain(stashed).collect()
    }
}

impl Repository {
    /// Looks for it. Commits that nothing names get a ref.
    pub(crate) async fn strays(
        &self,
        entry: &Entry,
        last: Last<'_>,
    ) -> Result<Strays, WorktreeError> {
        let mut strays = Strays {
            stashed: self.stashed(entry).await?,
            ..Strays::default()
        };
        for commit in self.left(entry, last).await? {
            let is_kept = match last {
                Last::Kept(kept) => self.is_ancestor(&commit, kept).await?,
                Last::Base | Last::CheckedOut => false,
            };
            if is_kept || self.is_ancestor(&commit, &entry.base).await? {
                continue;
            }
            let contains = format!("--contains={commit}");
            let args = ["for-each-ref", "--format=%(refname)", &contains];
            let refs = self.git.run(args).await?.text();
            let named = refs.lines().find(|it| *it != "refs/stash");
            let name = match named {
                Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
                None => self.rescue(entry, &commit).await?,
            };
            if strays.refs.iter().all(|(known, _)| *known != name) {
                strays.refs.push((name, commit));
            }
        }
        Ok(strays)
    }

    /// The commits that were made in a worktree and then switched away from, the latest first.
    async fn left(&self, entry: &Entry, last: Last<'_>) -> Result<Vec<String>, WorktreeError> {
        // As the repository calls it, which knows it without its tree.
        let Some(head) = self.head_of(entry).await? else {
            return Ok(Vec::new());
        };
        let args = ["log", "--walk-reflogs", "--format=%H%x00%gs", &head];
        let said = self.git.attempt(args, &[]).await?;
        let text = said.text();
        let steps = text.lines().filter_map(|line| line.split_once('\0'));
        let steps: Vec<(&str, &str)> = steps.collect();
        let is_switch = |what: &str| what.starts_with("checkout: ");
        let is_made = |what: &str| !is_switch(what) && !what.starts_with("reset: ");
        let mut known = BTreeSet::new();
        let checked_out = steps
            .first()
            .filter(|(_, what)| last == Last::CheckedOut && is_made(what))
            .map(|(commit, _)| *commit);
        let switched = steps
            .windows(2)
            .filter(|pair| is_switch(pair[0].1) && is_made(pair[1].1))
            .map(|pair| pair[1].0);
        Ok(checked_out
            .into_iter()
            .chain(switched)
            .filter(|commit| known.insert(*commit))
            .take(MOST)
            .map(str::to_owned)
            .collect())
    }

    /// The `HEAD` of a worktree, as git spells it elsewhere.
    async fn head_of(&self, entry: &Entry) -> Result<Option<String>, WorktreeError> {
        let places = self.places_of(entry).await?;
        let called = places.and_then(|(_, own)| {
            let name = own.file_name()?;
            Some(format!("worktrees/{}/HEAD", name.to_string_lossy()))
        });
        Ok(called)
    }

    /// Git's directory, and the one in it that is about a worktree.
    pub(crate) async fn places_of(
        &self,
        entry: &Entry,
    ) -> Result<Option<(PathBuf, PathBuf)>, WorktreeError> {
        let args = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let said = self.git.run(args).await?;
        let common = said.stdout.strip_suffix(b"\n").unwrap_or(&said.stdout);
        let Some(common) = name(common) else {
            return Ok(None);
        };
        let wanted = entry.path.join(".git");
        let known = fs::read_dir(common.join("worktrees"));
        let found = known.into_iter().flatten().flatten().find(|known| {
            let place = fs::read(known.path().join("gitdir")).unwrap_or_default();
            name(place.trim_ascii_end()).is_some_and(|place| place == wanted)
        });
        Ok(found.map(|found| (common, found.path())))
    }

    /// What the stash says was put away on the worktree's branch.
    async fn stashed(&self, entry: &Entry) -> Result<Vec<String>, WorktreeError> {
        let args = ["stash", "list", "--format=%H%x00%gs"];
        let said = self.git.attempt(args, &[]).await?;
        let text = said.text();
        let on = format!("on {}:", entry.branch.to_lowercase());
        let is_its = |what: &str| {
            let what = what.to_lowercase();
            what.strip_prefix("wip ").unwrap_or(&what).starts_with(&on)
        };
        let stashes = text.lines().filter_map(|line| line.split_once('\0'));
        Ok(stashes
            .filter(|(_, what)| is_its(what))
            .map(|(commit, _)| commit.to_owned())
            .take(MOST)
            .collect())
    }

    /// Names a commit that nothing else names.
    async fn rescue(&self, entry: &Entry, commit: &str) -> Result<String, WorktreeError> {
        let first = entry.rescue_ref();
        let mut name = first.clone();
        for number in 2.. {
            match self.tip(&name).await? {
                None => {
                    self.git.run(["update-ref", &name, commit]).await?;
                    break;
                }
                Some(known) if known == commit => break,
                Some(_) => name = format!("{first}-{number}"),
            }
        }
        Ok(name)
    }
}
