//! Lock files that a git left behind which was killed. Nothing can be committed beside them, and whoever
//! works in the worktree next would fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::entry::Entry;
use crate::error::WorktreeError;
use crate::repository::Repository;

/// How old a lock file must be: a git that works removes it sooner or is seen in the tree.
const AGE: Duration = Duration::from_secs(2);

impl Repository {
    /// Removes lock files of a worktree that nobody works in, neither an agent, whose lease the
    /// caller has, nor any process in its directory.
    pub(crate) async fn free(&self, entry: &Entry) -> Result<(), WorktreeError> {
        let Some((common, own)) = self.places_of(entry).await? else {
            return Ok(());
        };
        let branch = common.join(format!("{}.lock", entry.branch_ref()));
        let locks = [own.join("index.lock"), own.join("HEAD.lock"), branch];
        let locks: Vec<PathBuf> = locks.into_iter().filter(|lock| is_there(lock)).collect();
        if locks.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(AGE.saturating_sub(youngest(&locks))).await;
        let tree = entry.path.clone();
        let looked = tokio::task::spawn_blocking(move || is_worked_in(&tree)).await;
        if looked.unwrap_or(true) {
            return Ok(());
        }
        for lock in locks.iter().filter(|lock| age(lock) >= Some(AGE)) {
            // Where it cannot be, git says so when it is used.
            let _ = fs::remove_file(lock);
        }
        Ok(())
    }
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

fn age(path: &Path) -> Option<Duration> {
    let changed = fs::symlink_metadata(path).ok()?.modified().ok()?;
    SystemTime::now().duration_since(changed).ok()
}

fn youngest(paths: &[PathBuf]) -> Duration {
    let ages = paths.iter().filter_map(|path| age(path));
    ages.min().unwrap_or_default()
}

/// Whether a process but this one is in a directory. Where that cannot be seen, one is.
#[cfg(target_os = "linux")]
fn is_worked_in(tree: &Path) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else {
        return true;
    };
    let own = std::process::id().to_string();
    let mut others = processes
        .flatten()
        .filter(|process| process.file_name() != own.as_str());
    others.any(|process| {
        let directory = fs::read_link(process.path().join("cwd"));
        directory.is_ok_and(|directory| directory.starts_with(tree))
    })
}

#[cfg(not(target_os = "linux"))]
fn is_worked_in(_tree: &Path) -> bool {
    true
}
