//! One directory walk for both tools, in path order.

use std::fs::FileType;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

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
        let root = base.to_owned();
        let inner = WalkBuilder::new(base)
            .hidden(hidden == Hidden::Skipped)
            // Ignore files count outside of a repository too; those of the user's home do not,
            // so that results depend on the project only.
            .require_git(false)
            .git_global(false)
            .follow_links(false)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(move |entry| {
                if entry.depth() > 0 && entry.file_name() == ".git" {
                    return false;
                }
                let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                !is_directory || entry.path().strip_prefix(&root).is_ok_and(&descend)
            })
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
            let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else {
                continue;
            };
            if let Ok(relative) = entry.path().strip_prefix(&self.base)
                && !relative.as_os_str().is_empty()
            {
                return Some((relative.to_owned(), kind));
            }
        }
    }
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
