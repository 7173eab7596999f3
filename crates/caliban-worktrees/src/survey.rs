//! What is in a worktree, judged by the commit that it began from.

use std::fs;
use std::path::{Component, Path};

use caliban_git::Git;

use crate::entry::Entry;
use crate::error::WorktreeError;
use crate::repository::Repository;
use crate::status::{Change, Detail, Kind, bytes, name, status};

/// Files that git would commit and that are larger than this stay where they are.
const MAX_UNTRACKED: u64 = 10 << 20;
/// What git ignores and can be made again.
const REBUILDABLE: [&str; 16] = [
    ".DS_Store",
    ".cache",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".turbo",
    ".venv",
    "__pycache__",
    "bower_components",
    "node_modules",
    "target",
    "venv",
];
/// What in a worktree's git directory tells that git is in the middle of something.
const UNDERWAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];
/// Names that a reason tells.
const SHOWN: usize = 3;

/// What a look at a worktree found.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The ref that it has checked out; nothing where it is detached.
    pub(crate) branch: Option<String>,
    pub(crate) head: String,
    /// What is not committed, links of ours and ignored files not counted.
    pub(crate) changes: Vec<Change>,
    /// Why nothing in it may be committed or removed.
    pub(crate) obstacle: Option<String>,
    /// Files that git ignores and nobody could make again.
    pub(crate) precious: Vec<String>,
}

impl Survey {
    /// Whether something was staged that then was changed again.
    pub(crate) fn has_two_versions(&self) -> bool {
        self.changes.iter().any(|change| {
            let both = Kind::Changed {
                staged: true,
                unstaged: true,
            };
            change.kind == both
        })
    }

    /// Whether only files are missing: what a checkout looks like that was cut off.
    pub(crate) fn is_only_missing(&self) -> bool {
        let is_missing = |change: &Change| change.kind == Kind::Missing;
        self.changes.iter().all(is_missing) && self.precious.is_empty()
    }
}

/// Looks at a worktree that is there. `rebuildable` are further names of what can be made again.
pub(crate) async fn survey(
    repository: &Repository,
    entry: &Entry,
    rebuildable: &[String],
) -> Result<Survey, WorktreeError> {
    let git = repository.git.at(&entry.path);
    let odd = |reason: &str| WorktreeError::Odd {
        name: entry.name.clone(),
        reason: reason.to_owned(),
    };
    let top = git
        .run(["rev-parse", "--path-format=absolute", "--show-toplevel"])
        .await?;
    let top = top.stdout.strip_suffix(b"\n").unwrap_or(&top.stdout);
    // Without its own `.git` the repository around it would answer.
    if name(top).is_none_or(|top| top != entry.path) {
        return Err(odd("its directory is no worktree any more"));
    }
    let head = git.run(["rev-parse", "HEAD"]).await?.text();
    let branch = git.attempt(["symbolic-ref", "-q", "HEAD"], &[]).await?;
    let branch = branch.is_success().then(|| branch.text());
    let mut obstacle = underway(&git, &entry.path).await?;
    let mut changes = Vec::new();
    let mut precious = Vec::new();
    for change in status(&git, Detail::Everything).await? {
        let is_ours = entry.links.iter().any(|link| link.path == change.path);
        match change.kind {
            _ if is_ours && is_link(&entry.path.join(&change.path)) => {}
            Kind::Ignored => {
                if !is_expendable(&change.path, entry, rebuildable) {
                    precious.push(change.path.display().to_string());
                }
            }
            Kind::Nested => {
                let path = change.path.display();
                obstacle.get_or_insert(format!("`{path}` is a repository of its own"));
            }
            Kind::Unmerged => {
                let path = change.path.display();
                obstacle.get_or_insert(format!("`{path}` has conflicts"));
            }
            Kind::Untracked => {
                let about = fs::symlink_metadata(entry.path.join(&change.path));
                if about.is_ok_and(|about| about.len() > MAX_UNTRACKED) {
                    let path = change.path.display();
                    let limit = MAX_UNTRACKED >> 20;
                    obstacle.get_or_insert(format!("`{path}` is larger than {limit} MiB"));
                }
                changes.push(change);
            }
            Kind::Changed { .. } | Kind::Missing => changes.push(change),
        }
    }
    if obstacle.is_none() {
        obstacle = hidden(&git, &entry.path).await?;
    }
    Ok(Survey {
        branch,
        head,
        changes,
        obstacle,
        precious,
    })
}

/// Names of files for a sentence.
pub(crate) fn shown(names: &[String]) -> String {
    let first: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    let rest = names.len().saturating_sub(SHOWN);
    match rest {
        0 => first.join(", "),
        rest => format!("{} and {rest} more", first.join(", ")),
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink())
}

/// What git is in the middle of.
async fn underway(git: &Git, tree: &Path) -> Result<Option<String>, WorktreeError> {
    let said = git.run(["rev-parse", "--absolute-git-dir"]).await?;
    let directory = said.stdout.strip_suffix(b"\n").unwrap_or(&said.stdout);
    let directory = name(directory).unwrap_or_default();
    let directory = tree.join(directory);
    let found = UNDERWAY
        .iter()
        .find(|(file, _)| fs::symlink_metadata(directory.join(file)).is_ok());
    Ok(found.map(|(_, what)| format!("{what} is under way in it")))
}

/// Files whose changes git was told not to see, and submodules that are checked out.
async fn hidden(git: &Git, tree: &Path) -> Result<Option<String>, WorktreeError> {
    let said = git.run(["ls-files", "-v", "-z", "--stage"]).await?;
    for record in said.stdout.split(|byte| *byte == 0) {
        // `H 100644 OBJECT STAGE\tPATH`
        let Some((tag, rest)) = record.split_first() else {
            continue;
        };
        let Some(at) = rest.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let (about, path) = (&rest[..at], &rest[at + 1..]);
        let Some(path) = name(path) else {
            continue;
        };
        let place = tree.join(&path);
        if about.trim_ascii_start().starts_with(b"160000") {
            let is_filled = fs::read_dir(&place).is_ok_and(|mut it| it.next().is_some());
            if is_filled {
                let path = path.display();
                return Ok(Some(format!("the submodule `{path}` is checked out in it")));
            }
        } else if (*tag == b'S' || tag.is_ascii_lowercase()) && fs::symlink_metadata(&place).is_ok()
        {
            let path = path.display();
            return Ok(Some(format!(
                "git was told to overlook changes of `{path}`"
            )));
        }
    }
    Ok(None)
}

/// Whether an ignored file or directory may go with the tree.
fn is_expendable(path: &Path, entry: &Entry, rebuildable: &[String]) -> bool {
    let mut names = path.components().map(Component::as_os_str);
    let is_listed = names.any(|name| {
        REBUILDABLE.iter().any(|known| name == *known)
            || rebuildable.iter().any(|known| name == known.as_str())
    });
    if is_listed {
        return true;
    }
    let place = entry.path.join(path);
    match fs::symlink_metadata(&place) {
        Ok(about) if about.is_dir() => is_seeded_directory(&place, entry),
        Ok(about) if about.is_file() => {
            let mut seeded = entry.seeded.iter();
            seeded.any(|it| bytes(&it.path) == bytes(path) && it.is_unchanged(&entry.path))
        }
        Ok(_) | Err(_) => false,
    }
}

/// Whether nothing is in a directory but what we brought along.
fn is_seeded_directory(directory: &Path, entry: &Entry) -> bool {
    /// Entries of a directory that are looked at before it is taken for somebody's.
    const MAX: usize = 10_000;
    let mut pending = vec![directory.to_owned()];
    let mut looked = 0;
    while let Some(directory) = pending.pop() {
        let Ok(found) = fs::read_dir(&directory) else {
            return false;
        };
        for file in found.flatten() {
            looked += 1;
            let Ok(kind) = file.file_type() else {
                return false;
            };
            let path = file.path();
            if kind.is_dir() {
                pending.push(path);
                continue;
            }
            let mut seeded = entry.seeded.iter();
            let is_ours =
                seeded.any(|it| entry.path.join(&it.path) == path && it.is_unchanged(&entry.path));
            if !is_ours || looked > MAX {
                return false;
            }
        }
    }
    true
}
