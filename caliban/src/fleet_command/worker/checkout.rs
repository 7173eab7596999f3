//! The files that a job works on: fetched, kept after every turn that changed them, and brought
//! back. Git does all of it, and nothing that the repository configures is run.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use caliban_fleet_nats::{Artefact, Board, Files, JobSpec, Publish, Stored};
use caliban_git::{Git, GitError, Reach};
use caliban_harness::Configuration;

use super::journal::Kept;
use super::room::Room;
use super::terms::is_far;
use crate::console::note;

/// Who the commits are by.
const IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "caliban"),
    ("GIT_AUTHOR_EMAIL", "caliban@localhost"),
    ("GIT_COMMITTER_NAME", "caliban"),
    ("GIT_COMMITTER_EMAIL", "caliban@localhost"),
];
/// When there was nothing yet: the same commit for every attempt.
const LONG_AGO: [(&str, &str); 2] = [
    ("GIT_AUTHOR_DATE", "2000-01-01T00:00:00Z"),
    ("GIT_COMMITTER_DATE", "2000-01-01T00:00:00Z"),
];
/// The ref that bundles are made of.
const HERE: &str = "refs/caliban/here";

/// A checkout.
#[derive(Debug)]
pub(super) struct Checkout {
    git: Git,
    /// The same with an index of its own: that of the agent stays as it is.
    aside: Git,
    far: Option<(Git, String)>,
    prefix: String,
    publish: Publish,
    base: String,
    /// What was kept last.
    kept: Option<(String, String)>,
    /// Refs and artefacts that are not needed once there is a result.
    passing: Vec<Kept>,
    turn: u32,
    bundle: PathBuf,
    most: u64,
}

/// What changed, or why it cannot be kept.
pub(super) struct Brought {
    pub(super) files: Option<Files>,
    pub(super) artefacts: Vec<Stored>,
    pub(super) left_out: Vec<String>,
}

impl Checkout {
    /// Fetches what the job names into a directory that is empty.
    pub(super) async fn new(
        spec: &JobSpec,
        attempt: u32,
        room: &Room,
        most: u64,
        configuration: &Configuration,
    ) -> Result<Self, GitError> {
        let tree = room.tree();
        let environment = configuration.child_environment();
        let guard = configuration.process.guard.clone();
        let start = Git::fetching(
            tree.clone(),
            environment.clone(),
            guard.clone(),
            Reach::Directory,
        );
        start
            .run(["init", "--quiet", "--initial-branch=main"])
            .await?;
        let far = spec.repo.as_ref().map(|repo| {
            let reach = if is_far(&repo.remote) {
                Reach::Network
            } else {
                Reach::Directory
            };
            let git = Git::fetching(tree.clone(), environment.clone(), guard.clone(), reach);
            (git, repo.remote.clone())
        });
        let git = Git::new(tree, environment, guard).await.with(&IDENTITY);
        let base = if let (Some(repo), Some((far, remote))) = (&spec.repo, &far) {
            fetch(far, remote, &repo.commit).await?;
            git.run(["checkout", "--quiet", "--detach", &repo.commit])
                .await?;
            repo.commit.clone()
        } else {
            let nothing = ["commit", "--quiet", "--allow-empty", "-m", "Nothing yet"];
            git.clone().with(&LONG_AGO).run(nothing).await?;
            git.run(["rev-parse", "HEAD"]).await?.text()
        };
        let index = room.file("index");
        let aside = git
            .clone()
            .with(&[("GIT_INDEX_FILE", &index.to_string_lossy())]);
        aside.run(["read-tree", "HEAD"]).await?;
        Ok(Self {
            git,
            aside,
            far,
            prefix: format!("{}/{attempt}", spec.job),
            publish: spec.publish,
            base,
            kept: None,
            passing: Vec::new(),
            turn: 0,
            bundle: room.file("changes.bundle"),
            most,
        })
    }

    /// Puts the files in the state that an earlier attempt kept.
    pub(super) async fn restore<B: Board>(&mut self, board: &B, kept: &Kept) -> Result<(), String> {
        let reason = |error: GitError| error.to_string();
        let commit = match (kept, &self.far) {
            (Kept::Ref { name, commit }, Some((far, remote))) => {
                let wanted = ["fetch", "--quiet", "--no-tags", remote, name];
                far.run(wanted).await.map_err(reason)?;
                commit
            }
            (Kept::Ref { .. }, None) => return Err("there is no repository to ask".to_owned()),
            (Kept::Bundle { name, commit }, _) => {
                let found = board.fetch(name, self.most).await;
                let found = found.map_err(|error| error.to_string())?;
                let bytes = found.ok_or_else(|| format!("`{name}` is not kept any more"))?;
                let path = self.bundle.clone();
                std::fs::write(&path, &bytes).map_err(|error| error.to_string())?;
                let path = path.to_string_lossy();
                let unbundle = ["bundle", "unbundle", &*path];
                self.git.run(unbundle).await.map_err(reason)?;
                commit
            }
        };
        let parent = format!("{commit}^");
        let work: [&[&str]; 3] = [
            &["checkout", "--quiet", "--detach", &parent],
            &["read-tree", "--reset", "-u", commit],
            &["reset", "--quiet", &parent],
        ];
        for args in work {
            self.git.run(args).await.map_err(reason)?;
        }
        self.aside
            .run(["read-tree", "HEAD"])
            .await
            .map_err(reason)?;
        self.kept = Some(self.snapshot().await.map_err(reason)?);
        Ok(())
    }

    /// Where the agent is, and the tree of all its files.
    async fn snapshot(&self) -> Result<(String, String), GitError> {
        let head = self.git.run(["rev-parse", "HEAD"]).await?.text();
        self.aside.run(["add", "--all"]).await?;
        let tree = self.aside.run(["write-tree"]).await?.text();
        Ok((head, tree))
    }

    async fn commit(&self, head: &str, tree: &str) -> Result<String, GitError> {
        let message = format!("Work of job {}", self.prefix);
        let made = self
            .aside
            .run(["commit-tree", tree, "-p", head, "-m", &message])
            .await?;
        Ok(made.text())
    }

    async fn is_changed(&self, (head, tree): &(String, String)) -> Result<bool, GitError> {
        let name = format!("{}^{{tree}}", self.base);
        let base = self.git.run(["rev-parse", &name]).await?.text();
        Ok(*head != self.base || *tree != base)
    }

    /// Keeps the files, if they have changed since the last time.
    pub(super) async fn keep<B: Board>(&mut self, board: &B) -> Result<Option<Kept>, String> {
        let reason = |error: GitError| error.to_string();
        let now = self.snapshot().await.map_err(reason)?;
        let is_known = match &self.kept {
            Some(kept) => *kept == now,
            None => !self.is_changed(&now).await.map_err(reason)?,
        };
        if is_known {
            return Ok(None);
        }
        self.turn += 1;
        let commit = self.commit(&now.0, &now.1).await.map_err(reason)?;
        let kept = if let (Some((far, remote)), Publish::Branch) = (&self.far, self.publish) {
            let name = format!("refs/caliban/{}/{}", self.prefix, self.turn);
            push(far, remote, &format!("{commit}:{name}"))
                .await
                .map_err(reason)?;
            Kept::Ref { name, commit }
        } else {
            let bytes = self.bundled(&commit).await?;
            let name = format!("{}/files-{}.bundle", self.prefix, self.turn);
            let artefact = Artefact {
                name: name.clone(),
                bytes,
            };
            let stored = board.store(artefact).await;
            stored.map_err(|error| error.to_string())?;
            Kept::Bundle { name, commit }
        };
        self.kept = Some(now);
        self.passing.push(kept.clone());
        Ok(Some(kept))
    }

    async fn bundled(&self, commit: &str) -> Result<Bytes, String> {
        let reason = |error: GitError| error.to_string();
        let set = ["update-ref", HERE, commit];
        self.git.run(set).await.map_err(reason)?;
        let path = self.bundle.to_string_lossy();
        let without = format!("^{}", self.base);
        let make = ["bundle", "create", "--quiet", &*path, HERE, &without];
        self.git.run(make).await.map_err(reason)?;
        let about = std::fs::metadata(&self.bundle).map_err(|error| error.to_string())?;
        if about.len() > self.most {
            return Err(format!(
                "the changes are {} MiB, and {} are kept",
                about.len() >> 20,
                self.most >> 20
            ));
        }
        let bytes = std::fs::read(&self.bundle).map_err(|error| error.to_string())?;
        Ok(bytes.into())
    }

    /// Brings back what changed, as the job wants it.
    pub(super) async fn bring<B: Board>(&mut self, board: &B) -> Brought {
        let mut brought = Brought {
            files: None,
            artefacts: Vec::new(),
            left_out: Vec::new(),
        };
        if let Err(reason) = self.try_bring(board, &mut brought).await {
            brought.left_out.push(format!("the changes: {reason}"));
        }
        brought
    }

    async fn try_bring<B: Board>(
        &mut self,
        board: &B,
        brought: &mut Brought,
    ) -> Result<(), String> {
        let reason = |error: GitError| error.to_string();
        let now = self.snapshot().await.map_err(reason)?;
        if !self.is_changed(&now).await.map_err(reason)? {
            return Ok(());
        }
        let commit = self.commit(&now.0, &now.1).await.map_err(reason)?;
        if let (Some((far, remote)), Publish::Branch) = (&self.far, self.publish) {
            let name = format!("caliban/{}", self.prefix);
            let spec = format!("{commit}:refs/heads/{name}");
            push(far, remote, &spec).await.map_err(reason)?;
            brought.files = Some(Files::Branch { name, commit });
            return Ok(());
        }
        let (name, bytes) = if self.publish == Publish::Patch {
            let args = ["diff", "--binary", "--no-ext-diff", &self.base, &commit];
            let said = self.git.run(args).await.map_err(reason)?;
            (format!("{}/changes.patch", self.prefix), said.stdout.into())
        } else {
            let bytes = self.bundled(&commit).await?;
            (format!("{}/changes.bundle", self.prefix), bytes)
        };
        if bytes.len() as u64 > self.most {
            return Err(format!(
                "more than the {} MiB that are kept",
                self.most >> 20
            ));
        }
        let artefact = Artefact {
            name: name.clone(),
            bytes,
        };
        let stored = board.store(artefact).await;
        brought
            .artefacts
            .push(stored.map_err(|error| error.to_string())?);
        brought.files = Some(match self.publish {
            Publish::Patch => Files::Patch { name },
            Publish::Bundle | Publish::Branch => Files::Bundle { name, commit },
        });
        Ok(())
    }

    /// Removes the refs that were only kept for another attempt; artefacts expire.
    pub(super) async fn tidy(&self) {
        let Some((far, remote)) = &self.far else {
            return;
        };
        for kept in &self.passing {
            if let Kept::Ref { name, .. } = kept
                && let Err(error) = push(far, remote, &format!(":{name}")).await
            {
                // It is named after the job, and whoever keeps the remote can tell.
                note(&format!(
                    "warning: `{name}` stays in the repository: {error}"
                ));
            }
        }
    }

    /// Takes back a branch whose result does not count.
    pub(super) async fn withdraw(&self, files: &Files) {
        if let (Some((far, remote)), Files::Branch { name, .. }) = (&self.far, files) {
            let _ = push(far, remote, &format!(":refs/heads/{name}")).await;
        }
    }

    pub(super) fn directory(&self) -> &Path {
        self.git.directory()
    }
}

/// Fetches a commit; a server that hands out no single ones hands out all branches.
async fn fetch(far: &Git, remote: &str, commit: &str) -> Result<(), GitError> {
    let options = ["fetch", "--quiet", "--no-tags", "--end-of-options", remote];
    let one = options.iter().copied().chain([commit]);
    if far.run(one).await.is_ok() {
        return Ok(());
    }
    let all = options
        .iter()
        .copied()
        .chain(["+refs/heads/*:refs/remotes/origin/*"]);
    far.run(all).await.map(drop)
}

async fn push(far: &Git, remote: &str, spec: &str) -> Result<(), GitError> {
    let args = ["push", "--quiet", "--end-of-options", remote, spec];
    far.run(args).await.map(drop)
}
