//! The names in a workspace that may be changed by commands and are worth keeping: what is not
//! ignored, and the few ignored ones that nobody can rebuild. Bounded; what is left out is told.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder};

use crate::manifest::Coverage;
use crate::tree::{Shape, Stamp};

/// Bytes of an ignored file that is kept nevertheless.
const SMALL: u64 = 1 << 20;
/// Bytes of `.worktreeinclude` that are read.
const INCLUDES: u64 = 256 << 10;

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// By their paths in the workspace.
    pub(crate) stamps: BTreeMap<PathBuf, Stamp>,
    pub(crate) coverage: Coverage,
    /// Changes whenever what is ignored may be something else.
    pub(crate) rules: Vec<(PathBuf, Stamp)>,
}

/// Looks at everything in a workspace but what lies in `ours`, at most so many entries.
pub(crate) fn walk(root: &Path, ours: &Path, most: usize) -> Found {
    let mut found = Found::default();
    let includes = Includes::read(root);
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .git_global(true)
        .sort_by_file_name(OsStr::cmp)
        .filter_entry({
            let ours = ours.to_owned();
            move |entry| entry.path() != ours && is_users(entry)
        });
    let mut rules = Vec::new();
    for entry in builder.build() {
        if found.stamps.len() >= most {
            found
                .coverage
                .lacks(format!("the workspace has more than {most} entries"));
            break;
        }
        let (entry, metadata) = match entry.and_then(|it| it.metadata().map(|meta| (it, meta))) {
            Ok(both) => both,
            Err(error) => {
                if !is_gone(&error) {
                    found.coverage.lacks(error.to_string());
                }
                continue;
            }
        };
        let stamp = Stamp::from(&metadata);
        if stamp.shape == Shape::Directory {
            includes.add(root, entry.path(), &mut found);
        }
        let Ok(path) = entry.path().strip_prefix(root) else {
            continue;
        };
        if matches!(entry.file_name().to_str(), Some(".gitignore" | ".ignore")) {
            rules.push((path.to_owned(), stamp));
        }
        if !path.as_os_str().is_empty() {
            found.stamps.insert(path.to_owned(), stamp);
        }
    }
    if let Ok(metadata) = fs::metadata(root.join(".git/info/exclude")) {
        rules.push((PathBuf::new(), Stamp::from(&metadata)));
    }
    found.rules = rules;
    found.coverage.compared = found.stamps.len() as u64;
    found
}

/// Not the repository itself, no repository in it, and no worktree of ours.
fn is_users(entry: &DirEntry) -> bool {
    if entry.file_name().eq_ignore_ascii_case(".git") {
        return false;
    }
    let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
    let path = entry.path();
    !(entry.depth() > 0
        && is_directory
        && (path.ends_with(".caliban/worktrees")
            || fs::symlink_metadata(path.join(".git")).is_ok()))
}

fn is_gone(error: &ignore::Error) -> bool {
    error
        .io_error()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Ignored files that are kept nevertheless.
#[derive(Debug)]
struct Includes {
    named: Gitignore,
}

impl Includes {
    fn read(root: &Path) -> Self {
        let mut builder = GitignoreBuilder::new(root);
        let path = root.join(".worktreeinclude");
        let is_small =
            fs::symlink_metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= INCLUDES);
        for line in is_small
            .then(|| fs::read_to_string(&path).ok())
            .flatten()
            .unwrap_or_default()
            .lines()
        {
            // A line that cannot be understood names nothing.
            let _ = builder.add_line(None, line);
        }
        Self {
            named: builder.build().unwrap_or_else(|_| Gitignore::empty()),
        }
    }

    /// Adds those in a directory that is not ignored itself.
    fn add(&self, root: &Path, directory: &Path, found: &mut Found) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_meant = is_irreplaceable(&entry.file_name())
                || self.named.matched(&path, false).is_ignore();
            if !is_meant {
                continue;
            }
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_file()
                && metadata.len() <= SMALL
                && let Ok(path) = path.strip_prefix(root)
            {
                found.stamps.insert(path.to_owned(), Stamp::from(&metadata));
            }
        }
    }
}

fn is_irreplaceable(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        let ends = |end: &str| name.len() > end.len() && name.ends_with(end);
        name.starts_with(".env") || name.contains(".local.") || ends(".tfvars") || ends(".pem")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(".env", true)]
    #[case(".env.test", true)]
    #[case("settings.local.json", true)]
    #[case("key.pem", true)]
    #[case("a.tfvars", true)]
    #[case("main.o", false)]
    fn what_nobody_can_rebuild(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_irreplaceable(OsStr::new(name)), expected);
    }

    #[test]
    fn only_what_is_worth_it_is_looked_at() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".gitignore", "target/\n*.log\n.env\nlocal/\n");
        write(".worktreeinclude", "keep.log\n");
        write(".git/config", "");
        write("target/a.o", "");
        write("a.log", "");
        write("keep.log", "");
        write("src/.env", "");
        write("src/main.rs", "");
        write("nested/.git/config", "");
        write("nested/file", "");
        write("ours/file", "");
        write(".caliban/worktrees/w/file", "");
        let found = walk(root.path(), &root.path().join("ours"), 100);
        let paths: Vec<&str> = found
            .stamps
            .keys()
            .map(|path| path.to_str().unwrap())
            .collect();
        assert_eq!(
            paths,
            [
                ".caliban",
                ".gitignore",
                ".worktreeinclude",
                "keep.log",
                "src",
                "src/.env",
                "src/main.rs"
            ]
        );
        assert!(found.coverage.is_full());

        let rules = found.rules;
        write(".gitignore", "target/\n");
        assert_ne!(
            walk(root.path(), &root.path().join("ours"), 100).rules,
            rules
        );
        let few = walk(root.path(), Path::new(""), 2);
        assert!(!few.coverage.is_full());
    }
}
