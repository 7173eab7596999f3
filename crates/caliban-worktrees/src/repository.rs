//! A repository that worktrees are made of.

use std::path::{Path, PathBuf};

use caliban_git::{Git, GitError};
use jiff::Timestamp;

use crate::entry::{BASES, Entry, Stage};
use crate::error::WorktreeError;
use crate::name::Name;
use crate::registry::{INSISTENCE, Lease, Registry};
use crate::status::{Detail, status};

/// Names of files that are told beside their number.
const SHOWN: usize = 5;

/// A repository with a checkout, and the registry of its worktrees.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(crate) git: Git,
    /// The directory of the checkout.
    pub(crate) root: PathBuf,
    pub(crate) registry: Registry,
    /// A directory for each agent in the background that is registered.
    pub(crate) agents: PathBuf,
}

/// What the parent has changed and not committed, which no worktree has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uncommitted {
    pub files: usize,
    /// Some of them.
    pub names: Vec<String>,
}

impl Repository {
    /// The one around the directory that `git` works in. `data` is where the program keeps what
    /// must last.
    pub async fn open(git: Git, data: &Path) -> Result<Self, WorktreeError> {
        let directory = git.directory().to_owned();
        let inside = match git.run(["rev-parse", "--is-inside-work-tree"]).await {
            Ok(said) => said.text(),
            Err(GitError::Refused(reason)) if reason.starts_with("not a git repository") => {
                return Err(WorktreeError::NoRepository(directory));
            }
            Err(error) => return Err(error.into()),
        };
        if inside != "true" {
            return Err(WorktreeError::Bare(directory));
        }
        let place = |what: &'static str| {
            let git = git.clone();
            async move {
                let args = ["rev-parse", "--path-format=absolute", what];
                let said = git.run(args).await?;
                let path = said.stdout.strip_suffix(b"\n").unwrap_or(&said.stdout);
                let path = crate::status::name(path).unwrap_or_default();
                path.canonicalize().map_err(WorktreeError::io(path))
            }
        };
        let root = place("--show-toplevel").await?;
        let common = place("--git-common-dir").await?;
        Ok(Self {
            git: git.at(&root),
            registry: Registry::new(data, &common),
            agents: data.join("agents"),
            root,
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What is changed in the checkout and not committed.
    pub async fn uncommitted(&self) -> Result<Uncommitted, WorktreeError> {
        let changes = status(&self.git, Detail::Counting).await?;
        let names = changes.iter().take(SHOWN);
        Ok(Uncommitted {
            files: changes.len(),
            names: names
                .map(|change| change.path.display().to_string())
                .collect(),
        })
    }

    /// The commit that a revision names.
    pub(crate) async fn commit(&self, revision: &str) -> Result<Option<String>, WorktreeError> {
        let wanted = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let args = args.into_iter().chain([wanted.as_str()]);
        let said = self.git.attempt(args, &[]).await?;
        Ok(said.is_success().then(|| said.text()))
    }

    /// The commit that a ref is at, links of refs not followed beyond it.
    pub(crate) async fn tip(&self, reference: &str) -> Result<Option<String>, WorktreeError> {
        self.commit(reference).await
    }

    /// Whether one commit is among those that another came from.
    pub(crate) async fn is_ancestor(&self, old: &str, new: &str) -> Result<bool, WorktreeError> {
        let args = ["merge-base", "--is-ancestor", old, new];
        Ok(self.git.attempt(args, &[]).await?.is_success())
    }

    /// How many commits `tip` has that `base` has not.
    pub(crate) async fn count(&self, base: &str, tip: &str) -> Result<usize, WorktreeError> {
        let range = format!("{base}..{tip}");
        let said = self.git.run(["rev-list", "--count", &range]).await?;
        Ok(said.text().parse().unwrap_or(0))
    }

    /// Every worktree that is known. Of one whose entry is lost, what its refs still say.
    pub(crate) async fn entries(&self) -> Result<Vec<Entry>, WorktreeError> {
        let mut entries = self.registry.entries();
        let format = "--format=%(refname) %(objectname)";
        let said = self.git.run(["for-each-ref", format, BASES]).await?;
        for line in said.text().lines() {
            let Some((reference, base)) = line.split_once(' ') else {
                continue;
            };
            let name = reference.strip_prefix(BASES).and_then(|it| it.parse().ok());
            let Some(name): Option<Name> = name else {
                continue;
            };
            if entries.iter().any(|entry| entry.name == name) {
                continue;
            }
            entries.push(Entry {
                path: self.place(&name),
                branch: name.branch(),
                base: base.to_owned(),
                created: Timestamp::UNIX_EPOCH,
                session: String::new(),
                purpose: String::new(),
                agent: None,
                stage: Stage::Active,
                seeded: Vec::new(),
                links: Vec::new(),
                name,
            });
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Whether an agent in the background may still go on in it.
    pub(crate) fn is_claimed(&self, entry: &Entry) -> bool {
        // An agent that is gone has no directory; one that cannot be read is not gone.
        let directory = |agent: &String| self.agents.join(agent).exists();
        entry.agent.as_ref().is_some_and(directory)
    }

    /// Where a worktree of this name is.
    pub(crate) fn place(&self, name: &Name) -> PathBuf {
        self.root.join(".caliban/worktrees").join(name.as_str())
    }

    /// The one that is called so, or the only one whose name begins so.
    pub async fn find(&self, name: &str) -> Result<Entry, WorktreeError> {
        let wanted = name.strip_prefix("caliban/").unwrap_or(name);
        let mut entries = self.entries().await?;
        if let Some(exact) = entries.iter().position(|it| it.name.as_str() == wanted) {
            return Ok(entries.swap_remove(exact));
        }
        entries.retain(|entry| !wanted.is_empty() && entry.name.as_str().starts_with(wanted));
        match entries.as_slice() {
            [_] => Ok(entries.swap_remove(0)),
            [] => Err(WorktreeError::Unknown(name.to_owned())),
            several => {
                let names: Vec<&str> = several.iter().map(|it| it.name.as_str()).collect();
                Err(WorktreeError::Ambiguous(name.to_owned(), names.join(", ")))
            }
        }
    }

    /// Takes a worktree for oneself; nobody else may have it.
    pub async fn hold(&self, name: &Name) -> Result<Lease, WorktreeError> {
        let lease = self.registry.lease(name, INSISTENCE).await?;
        lease.ok_or_else(|| WorktreeError::InUse(name.clone()))
    }
}
