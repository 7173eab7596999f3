//! The names in a workspace that may be changed by commands and are worth keeping: what is not
//! ignored, and the few ignored ones that nobody can rebuild. Bounded; what is left out is told.

use std::cmp::Ordering as CmpOrdering;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};

use crate::manifest::Coverage;
use crate::platform;
use crate::tree::{Shape, Stamp};

/// Bytes of an ignored file that is kept nevertheless.
const SMALL: u64 = 1 << 20;
/// Names ignored files that are kept nevertheless.
const INCLUDED: &str = ".worktreeinclude";
/// Bytes of it that are read.
const INCLUDES: u64 = 256 << 10;
/// Threads that look at the same time.
const THREADS: usize = 4;
/// Files that say what is ignored beneath them.
const RULES: [&str; 2] = [".gitignore", ".ignore"];

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// By their paths in the workspace, in the order of [`in_order`].
    pub(crate) stamps: Vec<(PathBuf, Stamp)>,
    pub(crate) coverage: Coverage,
    /// Changes whenever what is ignored may be something else.
    pub(crate) rules: Vec<(PathBuf, Stamp)>,
}

/// Looks at everything in a workspace but what lies in `ours`, at most so many entries.
pub(crate) fn walk(root: &Path, ours: &Path, most: usize) -> Found {
    let seen = visit(root, ours, most, &HashSet::new());
    seen.found(root)
}

/// How many threads look at the same time.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |it| it.get().min(THREADS))
}

/// Looks at everything but what lies in directories that are known to be as they were.
pub(crate) fn visit(root: &Path, ours: &Path, most: usize, calm: &HashSet<&Path>) -> Seen {
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .git_global(true)
        .threads(threads())
        .filter_entry({
            let ours = ours.to_owned();
            move |entry| entry.path() != ours && is_users(entry)
        });
    let whole = Whole {
        root,
        includes: Includes::read(root),
        most,
        calm,
        count: AtomicUsize::new(0),
        seen: Mutex::default(),
    };
    builder.build_parallel().visit(&mut &whole);
    whole
        .seen
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

/// The rules that are not in the workspace: the repository's own, those above it, and the user's;
/// and what names ignored files that are kept nevertheless.
fn rules_beside(root: &Path) -> Vec<(PathBuf, Stamp)> {
    let above = root.ancestors().skip(1);
    above
        .flat_map(|directory| RULES.map(|name| directory.join(name)))
        .chain(root.ancestors().map(|it| it.join(".git/info/exclude")))
        .chain([root.join(INCLUDED)])
        .chain(ignore::gitignore::gitconfig_excludes_path())
        .filter_map(|path| {
            let stamp = Stamp::from(&fs::metadata(&path).ok()?);
            Some((path, stamp))
        })
        .collect()
}

/// The order of names as bytes, which is quick to tell.
pub(crate) fn in_order(one: &Path, another: &Path) -> CmpOrdering {
    let (one, another) = (one.as_os_str(), another.as_os_str());
    platform::bytes(one).cmp(platform::bytes(another))
}

/// What the threads of a walk share.
struct Whole<'a> {
    root: &'a Path,
    includes: Includes,
    most: usize,
    calm: &'a HashSet<&'a Path>,
    count: AtomicUsize,
    seen: Mutex<Seen>,
}

/// What was seen, in no order.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) stamps: Vec<(PathBuf, Stamp)>,
    pub(crate) shortfalls: Vec<String>,
    pub(crate) rules: Vec<(PathBuf, Stamp)>,
    /// Directories that were not looked into.
    pub(crate) skipped: Vec<PathBuf>,
}

impl Seen {
    pub(crate) fn found(mut self, root: &Path) -> Found {
        let mut coverage = Coverage::default();
        for shortfall in self.shortfalls {
            coverage.lacks(shortfall);
        }
        self.rules.sort_by(|one, another| one.0.cmp(&another.0));
        self.rules.extend(rules_beside(root));
        // Those that are known come in their order already.
        self.stamps
            .sort_by(|one, another| in_order(&one.0, &another.0));
        // What is kept nevertheless may not be ignored at all.
        self.stamps.dedup_by(|one, another| one.0 == another.0);
        coverage.compared = self.stamps.len() as u64;
        Found {
            stamps: self.stamps,
            coverage,
            rules: self.rules,
        }
    }
}

/// One thread of a walk, with what it alone has seen.
struct Part<'a> {
    whole: &'a Whole<'a>,
    seen: Seen,
}

impl<'a> ParallelVisitorBuilder<'a> for &'a Whole<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new(Part {
            whole: self,
            seen: Seen::default(),
        })
    }
}

impl ParallelVisitor for Part<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        let whole = self.whole;
        if whole.count.fetch_add(1, Ordering::Relaxed) > whole.most {
            let most = whole.most;
            let shortfall = format!("the workspace has more than {most} entries");
            self.seen.shortfalls.push(shortfall);
            return WalkState::Quit;
        }
        match entry.and_then(|it| it.metadata().map(|meta| (it, meta))) {
            Ok((entry, metadata)) => return self.take(&entry, Stamp::from(&metadata)),
            Err(error) if is_gone(&error) => {}
            Err(error) => self.seen.shortfalls.push(error.to_string()),
        }
        WalkState::Continue
    }
}

impl Part<'_> {
    fn take(&mut self, entry: &DirEntry, stamp: Stamp) -> WalkState {
        let whole = self.whole;
        let Ok(path) = entry.path().strip_prefix(whole.root) else {
            return WalkState::Continue;
        };
        if !path.as_os_str().is_empty() {
            self.seen.stamps.push((path.to_owned(), stamp));
        }
        if stamp.shape == Shape::Directory {
            if whole.calm.contains(path) {
                self.seen.skipped.push(path.to_owned());
                return WalkState::Skip;
            }
            let includes = &whole.includes;
            includes.add(whole.root, entry.path(), &mut self.seen.stamps);
        }
        if RULES.iter().any(|name| entry.file_name() == *name) {
            self.seen.rules.push((path.to_owned(), stamp));
        }
        WalkState::Continue
    }
}

impl Drop for Part<'_> {
    /// The thread is done.
    fn drop(&mut self) {
        let mut all = self
            .whole
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.stamps.append(&mut self.seen.stamps);
        all.shortfalls.append(&mut self.seen.shortfalls);
        all.rules.append(&mut self.seen.rules);
        all.skipped.append(&mut self.seen.skipped);
    }
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
        let path = root.join(INCLUDED);
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
    fn add(&self, root: &Path, directory: &Path, found: &mut Vec<(PathBuf, Stamp)>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_named = || self.named.matched(directory.join(&name), false).is_ignore();
            if !is_irreplaceable(&name) && (self.named.is_empty() || !is_named()) {
                continue;
            }
            let path = directory.join(&name);
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_file()
                && metadata.len() <= SMALL
                && let Ok(path) = path.strip_prefix(root)
            {
                found.push((path.to_owned(), Stamp::from(&metadata)));
            }
        }
    }
}

fn is_irreplaceable(name: &OsStr) -> bool {
    let name = platform::bytes(name);
    let ends = |end: &[u8]| name.len() > end.len() && name.ends_with(end);
    let has = |part: &[u8]| name.windows(part.len()).any(|it| it == part);
    name.starts_with(b".env") || ends(b".tfvars") || ends(b".pem") || has(b".local.")
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
            .iter()
            .map(|(path, _)| path.to_str().unwrap())
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
