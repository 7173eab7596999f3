//! What both tools see of a directory: one after the other in path order, or all at once.

use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::{DirEntry, WalkBuilder, WalkState};

/// How many entries are looked at before a walk gives up and says so.
pub(super) const MAX_ENTRIES: usize = 200_000;

/// Whether names that start with a dot are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    Skipped,
    Included,
}

/// Everything beneath a directory but directories, `.git` and what ignore files exclude. Links
/// are entries like any other and not followed, so cycles are harmless.
pub(super) struct Walk {
    inner: ignore::Walk,
    base: PathBuf,
    /// How many entries may still be looked at.
    left: usize,
    pub(super) unreadable: usize,
    pub(super) end: WalkEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkEnd {
    Complete,
    /// [`MAX_ENTRIES`] was reached.
    GaveUp,
}

impl Walk {
    /// `descend` is asked for every directory, relative to `base`, whether anything in it can
    /// matter.
    pub(super) fn new(
        base: &Path,
        hidden: Hidden,
        descend: impl Fn(&Path) -> bool + Send + Sync + 'static,
    ) -> Self {
        let inner = builder(base, hidden, descend)
            .sort_by_file_name(Ord::cmp)
            .build();
        Self {
            inner,
            base: base.to_owned(),
            left: MAX_ENTRIES,
            unreadable: 0,
            end: WalkEnd::Complete,
        }
    }
}

impl Iterator for Walk {
    /// The path relative to the base, and what it is.
    type Item = (PathBuf, FileType);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.left == 0 {
                if self.inner.next().is_some() {
                    self.end = WalkEnd::GaveUp;
                }
                return None;
            }
            self.left -= 1;
            let Ok(entry) = self.inner.next()? else {
                self.unreadable += 1;
                continue;
            };
            if let Some((relative, kind)) = file(&entry, &self.base) {
                return Some((relative.to_owned(), kind));
            }
        }
    }
}

/// Everything that a walk found.
pub(super) struct Listing {
    /// Relative to the base, in path order.
    pub(super) paths: Vec<PathBuf>,
    pub(super) unreadable: usize,
    pub(super) end: WalkEnd,
}

/// What a [`Walk`] would yield and `select` accepts, found by several threads. `proceed` is asked
/// for every entry whether anybody still waits.
pub(super) fn list(
    base: &Path,
    hidden: Hidden,
    descend: impl Fn(&Path) -> bool + Send + Sync + 'static,
    select: impl Fn(&Path) -> bool + Sync,
    proceed: impl Fn() -> bool + Sync,
) -> Listing {
    let (seen, unreadable) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(Vec::new());
    builder(base, hidden, descend).build_parallel().run(|| {
        let mut found = Batch::new(&found);
        let (base, seen, unreadable) = (base, &seen, &unreadable);
        let (select, proceed) = (&select, &proceed);
        Box::new(move |entry| {
            if !proceed() || seen.fetch_add(1, Ordering::Relaxed) >= MAX_ENTRIES {
                return WalkState::Quit;
            }
            match &entry {
                Ok(entry) => {
                    if let Some((relative, _)) = file(entry, base)
                        && select(relative)
                    {
                        found.paths.push(relative.to_owned());
                    }
                }
                Err(_) => {
                    unreadable.fetch_add(1, Ordering::Relaxed);
                }
            }
            WalkState::Continue
        })
    });
    let mut paths = found.into_inner().unwrap_or_default();
    paths.sort_unstable();
    Listing {
        paths,
        unreadable: unreadable.into_inner(),
        end: if seen.into_inner() > MAX_ENTRIES {
            WalkEnd::GaveUp
        } else {
            WalkEnd::Complete
        },
    }
}

/// What one thread found, handed over when it has ended.
struct Batch<'all> {
    paths: Vec<PathBuf>,
    all: &'all Mutex<Vec<PathBuf>>,
}

impl<'all> Batch<'all> {
    fn new(all: &'all Mutex<Vec<PathBuf>>) -> Self {
        Self {
            paths: Vec::new(),
            all,
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if let Ok(mut all) = self.all.lock() {
            all.append(&mut self.paths);
        }
    }
}

fn builder(
    base: &Path,
    hidden: Hidden,
    descend: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let root = base.to_owned();
    let mut builder = WalkBuilder::new(base);
    builder
        .hidden(hidden == Hidden::Skipped)
        // Ignore files count outside of a repository too; those of the user's home do not, so
        // that results depend on the project only.
        .require_git(false)
        .git_global(false)
        // What keeps the worktrees of agents out of the sight of others does not count within them.
        .parents(!is_in_worktree(base))
        .follow_links(false)
        .filter_entry(move |entry| {
            if entry.depth() > 0 && entry.file_name() == ".git" {
                return false;
            }
            // The worktrees of agents hold the same files again.
            if entry.depth() > 0 && entry.path().ends_with(".caliban/worktrees") {
                return false;
            }
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            !is_directory || entry.path().strip_prefix(&root).is_ok_and(&descend)
        });
    builder
}

/// Whether a directory is a worktree of an agent, or lies in one.
fn is_in_worktree(base: &Path) -> bool {
    let mut above = base.ancestors().skip(1);
    above.any(|directory| directory.ends_with(".caliban/worktrees"))
}

/// The path of an entry relative to the base, and what it is, if it is no directory.
fn file<'entry>(entry: &'entry DirEntry, base: &Path) -> Option<(&'entry Path, FileType)> {
    let kind = entry.file_type().filter(|kind| !kind.is_dir())?;
    let relative = entry.path().strip_prefix(base).ok()?;
    (!relative.as_os_str().is_empty()).then_some((relative, kind))
}

/// What a reader must know about a walk that did not see everything.
pub(super) fn shortfall(end: WalkEnd, unreadable: usize) -> Option<String> {
    let stopped = match end {
        WalkEnd::Complete => None,
        WalkEnd::GaveUp => Some(format!(
            "The search stopped after {MAX_ENTRIES} directory entries; give a narrower `path`."
        )),
    };
    let hidden = (unreadable > 0).then(|| format!("Entries that could not be read: {unreadable}."));
    match (stopped, hidden) {
        (Some(stopped), Some(hidden)) => Some(format!("{stopped} {hidden}")),
        (stopped, hidden) => stopped.or(hidden),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(walk: &mut Walk) -> Vec<String> {
        walk.map(|(path, _)| path.display().to_string()).collect()
    }

    #[test]
    fn a_walk_that_is_too_long_gives_up() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(temp.path().join(name), "").unwrap();
        }
        // The directory itself is an entry too.
        for (left, end) in [(4, WalkEnd::Complete), (3, WalkEnd::GaveUp)] {
            let mut walk = Walk::new(temp.path(), Hidden::Skipped, |_| true);
            walk.left = left;
            assert_eq!(names(&mut walk).len(), left - 1);
            assert_eq!(walk.end, end);
        }
        assert_eq!(shortfall(WalkEnd::Complete, 0), None);
        let note = shortfall(WalkEnd::GaveUp, 2).unwrap();
        assert!(
            note.contains("200000") && note.contains("read: 2"),
            "{note}"
        );
    }

    #[test]
    fn a_listing_is_what_a_walk_yields() {
        let temp = tempfile::tempdir().unwrap();
        for directory in ["b", "a/b", "a-b", "a/.hidden", "skipped"] {
            std::fs::create_dir_all(temp.path().join(directory)).unwrap();
            for name in ["z", "a", ".dot", "m.log"] {
                std::fs::write(temp.path().join(directory).join(name), "").unwrap();
            }
        }
        std::fs::write(temp.path().join("a/.gitignore"), "*.log\n").unwrap();
        let descend = |path: &Path| path != Path::new("skipped");
        for hidden in [Hidden::Skipped, Hidden::Included] {
            let walk = Walk::new(temp.path(), hidden, descend);
            let in_order: Vec<PathBuf> = walk.map(|(path, _)| path).collect();
            let listing = list(temp.path(), hidden, descend, |_| true, || true);
            assert_eq!(listing.paths, in_order);
            assert_eq!((listing.end, listing.unreadable), (WalkEnd::Complete, 0));
            let ends_in_a = |path: &Path| path.ends_with("a");
            let some = list(temp.path(), hidden, descend, ends_in_a, || true);
            assert_eq!(
                some.paths.len(),
                if hidden == Hidden::Skipped { 3 } else { 4 }
            );
            assert!(
                list(temp.path(), hidden, descend, |_| true, || false)
                    .paths
                    .is_empty()
            );
        }
    }

    #[test]
    fn directories_that_cannot_matter_are_not_entered() {
        let temp = tempfile::tempdir().unwrap();
        for path in ["in/deep", "out/deep"] {
            std::fs::create_dir_all(temp.path().join(path)).unwrap();
            std::fs::write(temp.path().join(path).join("file"), "").unwrap();
        }
        let mut walk = Walk::new(temp.path(), Hidden::Skipped, |path| {
            path != Path::new("out")
        });
        assert_eq!(names(&mut walk), ["in/deep/file"]);
    }
}
