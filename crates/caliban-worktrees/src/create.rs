//! Making a worktree: either there is one and everything about it is written down, or there is
//! nothing.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use caliban_git::Git;
use jiff::Timestamp;

use crate::disk::{descend, sync_directory};
use crate::entry::{Entry, Stage, base_ref};
use crate::error::WorktreeError;
use crate::finish::{Ending, Finish, IgnoredFiles, Keep};
use crate::name::Name;
use crate::registry::Lease;
use crate::repository::{Repository, Uncommitted};
use crate::seed;
use crate::words::with_path;

/// The most worktrees of agents that a repository has at a time.
const MAX_LIVE: usize = 16;
/// What a checkout is limited to that shall hold nothing.
const SENTINEL: &str = "/.caliban-fresh";
/// Where our worktrees are, beneath the repository.
const PLACE: &str = ".caliban/worktrees";
/// The longest purpose that is kept.
const MAX_PURPOSE: usize = 200;

/// What a worktree begins from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Base {
    /// The commit that is checked out.
    #[default]
    Head,
    /// The same, with next to no file checked out.
    Fresh,
    /// A commit that was decided upon before, with next to no file checked out.
    FreshAt(String),
    /// Whatever this names.
    Revision(String),
}

impl From<&str> for Base {
    fn from(text: &str) -> Self {
        match text {
            "" | "head" | "HEAD" => Self::Head,
            "fresh" => Self::Fresh,
            revision => Self::Revision(revision.to_owned()),
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What the agent is to do: the name is made of it, unless one is given.
    pub purpose: String,
    pub name: Option<Name>,
    pub base: Base,
    /// What is checked out; everything where there is none.
    pub sparse_paths: Vec<String>,
    /// Directories of the checkout that are linked in.
    pub linked: Vec<String>,
    pub session: String,
    /// The agent in the background that it is for.
    pub agent: Option<String>,
    pub keep: Keep,
}

/// A worktree that somebody works in.
#[derive(Debug)]
pub struct Worktree {
    pub entry: Entry,
    /// What its parent has and it has not.
    pub uncommitted: Uncommitted,
    pub keep: Keep,
    /// What could not be brought along.
    pub remarks: Vec<String>,
    pub(crate) repository: Repository,
    pub(crate) lease: Option<Lease>,
}

impl Worktree {
    pub fn path(&self) -> &Path {
        &self.entry.path
    }
}

impl Repository {
    /// Makes a worktree.
    pub async fn create(&self, request: Request) -> Result<Worktree, WorktreeError> {
        let base = self.begin_from(&request.base).await?;
        let uncommitted = self.uncommitted().await?;
        for path in &request.sparse_paths {
            check_sparse(path)?;
        }
        let links = seed::links(&self.root, &request.linked)?;
        let name = match &request.name {
            Some(name) => name.clone(),
            None => Name::of(&request.purpose),
        };
        let lock = self.registry.lock().await?;
        self.check_room(&name).await?;
        let lease = self.hold(&name).await?;
        let entry = Entry {
            path: self.place(&name),
            branch: name.branch(),
            base,
            created: Timestamp::now(),
            session: request.session.clone(),
            purpose: request.purpose.chars().take(MAX_PURPOSE).collect(),
            agent: request.agent.clone(),
            stage: Stage::Creating,
            seeded: Vec::new(),
            links: Vec::new(),
            name,
        };
        self.make_place()?;
        if fs::symlink_metadata(&entry.path).is_ok() {
            return Err(WorktreeError::InTheWay(entry.path.display().to_string()));
        }
        if self.tip(&entry.branch_ref()).await?.is_some() {
            return Err(WorktreeError::InTheWay(format!(
                "the branch {}",
                entry.branch
            )));
        }
        self.registry.write(&entry)?;
        let made = self.make(entry.clone(), links, &request).await;
        drop(lock);
        match made {
            Ok((entry, remarks)) => Ok(Worktree {
                entry,
                uncommitted,
                keep: request.keep,
                remarks,
                repository: self.clone(),
                lease: Some(lease),
            }),
            Err(error) => {
                // Nobody worked in it; what cannot be undone now is told by the list.
                let _ = self.undo(&entry).await;
                drop(lease);
                Err(error)
            }
        }
    }

    /// The worktree of an agent that may have been there before: made where there never was one,
    /// entered where there is, and made anew where its making was cut off. One whose tree is gone
    /// is an error that says how to get it back; no other directory takes its place.
    pub async fn occupy(&self, name: Name, request: Request) -> Result<Worktree, WorktreeError> {
        let mut entries = self.entries().await?;
        let found = entries.iter().position(|entry| entry.name == name);
        let Some(entry) = found.map(|found| entries.swap_remove(found)) else {
            let name = Some(name);
            return self.create(Request { name, ..request }).await;
        };
        let is_there = fs::symlink_metadata(&entry.path).is_ok();
        match entry.stage {
            Stage::Creating => {
                self.undo_unfinished(&entry).await?;
                let name = Some(name);
                self.create(Request { name, ..request }).await
            }
            Stage::Active | Stage::Kept(_) if is_there && self.is_known_to_git(&entry).await? => {
                self.enter(entry, request.keep).await
            }
            Stage::Active | Stage::Kept(_) | Stage::Branch => Err(WorktreeError::Gone {
                name,
                branch: entry.branch,
                path: entry.path,
            }),
        }
    }

    async fn undo_unfinished(&self, entry: &Entry) -> Result<(), WorktreeError> {
        let lease = self.hold(&entry.name).await?;
        let how = Finish {
            keep: Keep::UntilDone,
            ignored: IgnoredFiles::Rebuildable,
            rebuildable: &[],
        };
        match self.finish(entry.clone(), lease, &how).await? {
            Ending::Unchanged { .. } => Ok(()),
            Ending::Branch(work) => Err(WorktreeError::Unsettled {
                name: entry.name.clone(),
                reason: format!("there is work on `{}`", work.branch),
            }),
            Ending::Kept { reason, .. } => Err(WorktreeError::Unsettled {
                name: entry.name.clone(),
                reason,
            }),
        }
    }

    /// Goes on in a worktree that nobody else works in.
    async fn enter(&self, mut entry: Entry, keep: Keep) -> Result<Worktree, WorktreeError> {
        let lease = self.hold(&entry.name).await?;
        let uncommitted = self.uncommitted().await?;
        entry.stage = Stage::Active;
        self.registry.write(&entry)?;
        self.lock(&entry).await;
        self.free(&entry).await?;
        Ok(Worktree {
            entry,
            uncommitted,
            keep,
            remarks: Vec::new(),
            repository: self.clone(),
            lease: Some(lease),
        })
    }

    /// The commit that a worktree would begin from, decided before anything is made.
    pub async fn begin_from(&self, base: &Base) -> Result<String, WorktreeError> {
        match base {
            Base::Head | Base::Fresh => {
                let head = self.commit("HEAD").await?;
                head.ok_or_else(|| WorktreeError::Unborn(self.root.clone()))
            }
            Base::Revision(revision) | Base::FreshAt(revision) => {
                let found = self.commit(revision).await?;
                found.ok_or_else(|| WorktreeError::NoCommit(revision.clone()))
            }
        }
    }

    async fn check_room(&self, name: &Name) -> Result<(), WorktreeError> {
        let entries = self.entries().await?;
        if entries.iter().any(|entry| entry.name == *name) {
            return Err(WorktreeError::Taken(name.clone()));
        }
        let live = entries.iter().filter(|entry| entry.stage != Stage::Branch);
        let live = live.filter(|entry| entry.path.exists()).count();
        if live >= MAX_LIVE {
            return Err(WorktreeError::TooMany(live));
        }
        Ok(())
    }

    /// The directory of our worktrees, which git looks over.
    fn make_place(&self) -> Result<(), WorktreeError> {
        let path = self.root.join(PLACE);
        descend(&self.root, Path::new(PLACE)).map_err(|_| WorktreeError::Planted(path.clone()))?;
        let ignore = path.join(".gitignore");
        match fs::symlink_metadata(&ignore) {
            Ok(found) if found.is_file() => return Ok(()),
            Ok(_) => return Err(WorktreeError::Planted(ignore)),
            Err(_) => {}
        }
        let written = fs::File::create_new(&ignore)
            .and_then(|mut file| {
                file.write_all(b"*\n")?;
                file.sync_all()
            })
            .and_then(|()| sync_directory(&path));
        written.map_err(WorktreeError::io(ignore))
    }

    async fn make(
        &self,
        mut entry: Entry,
        links: Vec<crate::entry::Link>,
        request: &Request,
    ) -> Result<(Entry, Vec<String>), WorktreeError> {
        let kept = base_ref(&entry.name);
        // Only where there is none yet.
        let none = "0".repeat(entry.base.len());
        self.git
            .run(["update-ref", &kept, &entry.base, &none])
            .await?;
        let is_sparse = !request.sparse_paths.is_empty()
            || matches!(request.base, Base::Fresh | Base::FreshAt(_));
        let reason = format!("caliban {} {}", entry.name, entry.session);
        let mut words = vec!["worktree", "add", "--lock", "--reason", &reason];
        if is_sparse {
            words.push("--no-checkout");
        }
        words.extend(["--no-track", "-b", &entry.branch]);
        let mut args = with_path(&words, &entry.path);
        args.push(entry.base.as_ref());
        self.git.run(args).await?;
        let git = self.git.at(&entry.path);
        let mut absent = Vec::new();
        if is_sparse {
            absent = self.limit(&git, &entry.base, &request.sparse_paths).await?;
        }
        verify(&git, &entry).await?;
        let seeding = seed::Seeding {
            root: self.root.clone(),
            tree: entry.path.clone(),
            git: self.git.clone(),
        };
        let (seeded, mut remarks) = seeding.bring().await?;
        remarks.extend(absent);
        entry.seeded = seeded;
        // Written down before they are there, so that none is taken for work.
        entry.links = links;
        self.registry.write(&entry)?;
        seed::link(&entry)?;
        remarks.extend(self.submodules(&entry).await?);
        entry.stage = Stage::Active;
        self.registry.write(&entry)?;
        Ok((entry, remarks))
    }

    /// Checks out no more than these paths. Says which of them are not there.
    async fn limit(
        &self,
        git: &Git,
        base: &str,
        paths: &[String],
    ) -> Result<Vec<String>, WorktreeError> {
        let mut form = "--cone";
        let mut lines = String::new();
        let mut absent = Vec::new();
        for path in paths {
            let plain = path.trim_matches('/');
            let kind = self.kind(base, plain).await?;
            if kind.as_deref() != Some("tree") {
                form = "--no-cone";
            }
            // What has a star may mean anything.
            if kind.is_none() && !plain.contains(['*', '?', '[']) {
                absent.push(format!("`{plain}` is nothing that is committed"));
            }
        }
        if paths.is_empty() {
            form = "--no-cone";
            lines.push_str(SENTINEL);
        }
        for path in paths {
            let plain = path.trim_start_matches('/');
            if form == "--no-cone" {
                lines.push('/');
            }
            lines.push_str(match form {
                "--cone" => plain.trim_end_matches('/'),
                _ => plain,
            });
            lines.push('\n');
        }
        let args = ["sparse-checkout", "set", form, "--stdin"];
        git.run_with(args, lines.as_bytes()).await?;
        git.run(["read-tree", "-mu", "HEAD"]).await?;
        Ok(absent)
    }

    /// What a path is in a commit; nothing where it is not there.
    async fn kind(&self, base: &str, path: &str) -> Result<Option<String>, WorktreeError> {
        let object = format!("{base}:{path}");
        let said = self.git.attempt(["cat-file", "-t", &object], &[]).await?;
        Ok(said.is_success().then(|| said.text()))
    }

    /// What is said of submodules, which a worktree has none of.
    async fn submodules(&self, entry: &Entry) -> Result<Option<String>, WorktreeError> {
        let said = self.git.run(["ls-tree", "-r", "-z", &entry.base]).await?;
        let count = said
            .stdout
            .split(|byte| *byte == 0)
            .filter(|record| record.starts_with(b"160000 "))
            .count();
        Ok((count > 0).then(|| format!("{count} submodules are empty in it")))
    }

    /// Takes back what was begun. Nobody worked in it.
    async fn undo(&self, entry: &Entry) -> Result<(), WorktreeError> {
        let _lock = self.registry.lock().await?;
        self.unmake(entry).await
    }

    /// The same, by whoever has the lock.
    pub(crate) async fn unmake(&self, entry: &Entry) -> Result<(), WorktreeError> {
        seed::unlink(entry);
        if self.is_known_to_git(entry).await? {
            let words = ["worktree", "remove", "--force", "--force"];
            self.git.run(with_path(&words, &entry.path)).await?;
        }
        self.forget(entry).await
    }

    /// Whether git has a worktree there.
    pub(crate) async fn is_known_to_git(&self, entry: &Entry) -> Result<bool, WorktreeError> {
        let said = self
            .git
            .run(["worktree", "list", "--porcelain", "-z"])
            .await?;
        let wanted = [b"worktree ", entry.path.as_os_str().as_encoded_bytes()].concat();
        let mut records = said.stdout.split(|byte| *byte == 0);
        Ok(records.any(|record| record == wanted))
    }

    /// Removes the branch if nothing was added to it, the ref of the base, and the entry.
    pub(crate) async fn forget(&self, entry: &Entry) -> Result<(), WorktreeError> {
        self.drop_unused(entry).await?;
        self.drop_base(entry).await?;
        self.registry.remove(&entry.name)
    }

    pub(crate) async fn drop_base(&self, entry: &Entry) -> Result<(), WorktreeError> {
        let kept = entry.base_ref();
        if self.tip(&kept).await?.is_some() {
            self.git.run(["update-ref", "-d", &kept]).await?;
        }
        Ok(())
    }
}

fn check_sparse(path: &str) -> Result<(), WorktreeError> {
    let is_odd = path.trim_matches('/').is_empty()
        || path.contains(['\n', '\0'])
        || path.starts_with(['!', '#', '-'])
        || path.split('/').any(|part| part == "..");
    if is_odd {
        return Err(WorktreeError::BadSparsePath(path.to_owned()));
    }
    Ok(())
}

/// Looks whether what is there is what was asked for.
async fn verify(git: &Git, entry: &Entry) -> Result<(), WorktreeError> {
    let odd = |reason: String| WorktreeError::Odd {
        name: entry.name.clone(),
        reason,
    };
    let real = entry.path.canonicalize();
    let real = real.map_err(WorktreeError::io(&entry.path))?;
    if real != entry.path {
        return Err(odd(format!("it is really at `{}`", real.display())));
    }
    let head = git.run(["rev-parse", "HEAD"]).await?.text();
    if head != entry.base {
        return Err(odd(format!("it is at {head}")));
    }
    let branch = git.run(["symbolic-ref", "HEAD"]).await?.text();
    if branch != entry.branch_ref() {
        return Err(odd(format!("it is on `{branch}`")));
    }
    Ok(())
}
