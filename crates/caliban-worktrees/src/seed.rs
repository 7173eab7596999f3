//! What a worktree has beside what is committed: files that git ignores and a build needs, and
//! directories of the parent that are too large to have twice.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use caliban_git::Git;
use caliban_settings::hex;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sha2::{Digest as _, Sha256};

use crate::disk::{descend, is_plain, open_plain};
use crate::entry::{Entry, Link, Seeded};
use crate::error::WorktreeError;
use crate::status::name;

/// The file that names, as `.gitignore` does, what is brought along of what git ignores.
const INCLUDE: &str = ".worktreeinclude";
/// The largest such file.
const MAX_INCLUDE: u64 = 64 * 1024;
/// The most files that are brought along, and the most bytes.
const MAX_FILES: usize = 2000;
const MAX_BYTES: u64 = 64 << 20;

/// From where to where files are brought.
pub(crate) struct Seeding {
    pub(crate) root: PathBuf,
    pub(crate) tree: PathBuf,
    pub(crate) git: Git,
}

impl Seeding {
    /// Copies what `.worktreeinclude` names of the files that git ignores; the rest is remarks.
    pub(crate) async fn bring(self) -> Result<(Vec<Seeded>, Vec<String>), WorktreeError> {
        let Some(wanted) = included(&self.root) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let args = [
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "-z",
        ];
        let said = self.git.run(args).await?;
        let paths: Vec<PathBuf> = said
            .stdout
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty() && !path.ends_with(b"/"))
            .filter_map(name)
            .filter(|path| !path.starts_with(".caliban/worktrees"))
            .filter(|path| wanted.matched_path_or_any_parents(path, false).is_ignore())
            .collect();
        let copying = tokio::task::spawn_blocking(move || copy(&self.root, &self.tree, &paths));
        let copied = copying.await.map_err(io::Error::other);
        copied.map_err(WorktreeError::io(INCLUDE))
    }
}

/// The patterns of the file, if there is one.
fn included(root: &Path) -> Option<Gitignore> {
    let mut text = String::new();
    open_plain(&root.join(INCLUDE))
        .ok()?
        .take(MAX_INCLUDE)
        .read_to_string(&mut text)
        .ok()?;
    let mut builder = GitignoreBuilder::new(root);
    for line in text.lines() {
        // A line that is no pattern names nothing.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

fn copy(root: &Path, tree: &Path, paths: &[PathBuf]) -> (Vec<Seeded>, Vec<String>) {
    let mut seeded = Vec::new();
    let mut remarks = Vec::new();
    let mut left = MAX_BYTES;
    for path in paths {
        if seeded.len() >= MAX_FILES {
            remarks.push(format!(
                "`{INCLUDE}` names more than {MAX_FILES} files; the rest was left out"
            ));
            break;
        }
        match copy_one(root, tree, path, left) {
            Ok((digest, size)) => {
                left = left.saturating_sub(size);
                seeded.push(Seeded {
                    path: path.clone(),
                    digest,
                });
            }
            Err(error) => remarks.push(format!(
                "`{}` was not brought along: {error}",
                path.display()
            )),
        }
    }
    (seeded, remarks)
}

fn copy_one(root: &Path, tree: &Path, path: &Path, left: u64) -> io::Result<(String, u64)> {
    let from = open_plain(&root.join(path))?;
    let about = from.metadata()?;
    if about.len() > left {
        return Err(io::Error::other(format!(
            "all of it would be more than {} MiB",
            MAX_BYTES >> 20
        )));
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    let directory = descend(tree, parent)?;
    let place = directory.join(path.file_name().unwrap_or_default());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(about.permissions().mode() & 0o777);
    }
    let mut to = options.open(&place)?;
    let digest = pour(from.take(about.len()), Some(&mut to))?;
    Ok((digest, about.len()))
}

/// Reads to the end; what was read is written where it is wanted.
fn pour(mut from: impl io::Read, mut to: Option<&mut File>) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut piece)?;
        if count == 0 {
            return Ok(hex(&digest.finalize()));
        }
        digest.update(&piece[..count]);
        if let Some(to) = &mut to {
            to.write_all(&piece[..count])?;
        }
    }
}

impl Seeded {
    /// Whether the file is what was brought along.
    pub(crate) fn is_unchanged(&self, tree: &Path) -> bool {
        let digest = open_plain(&tree.join(&self.path)).and_then(|file| pour(file, None));
        digest.is_ok_and(|digest| digest == self.digest)
    }
}

/// The directories to be linked, each of which must be there.
pub(crate) fn links(root: &Path, wanted: &[String]) -> Result<Vec<Link>, WorktreeError> {
    let mut links: Vec<Link> = Vec::new();
    for text in wanted {
        let no_link = |reason: &str| WorktreeError::NoLink {
            path: text.clone(),
            reason: reason.to_owned(),
        };
        let path = Path::new(text.trim_end_matches('/'));
        if !is_plain(path) {
            return Err(no_link("it must be a path beneath the repository"));
        }
        if path.starts_with(".git") || path.starts_with(".caliban") {
            return Err(no_link("it belongs to git or to caliban"));
        }
        let target = root.join(path);
        let real = target.canonicalize();
        let real = real.map_err(|_| no_link("there is no such directory"))?;
        if real != target || !real.is_dir() {
            return Err(no_link("it is not a directory of the repository itself"));
        }
        if links.iter().any(|link| link.path == path) {
            continue;
        }
        links.push(Link {
            path: path.to_owned(),
            target,
        });
    }
    Ok(links)
}

/// Makes the links of an entry.
pub(crate) fn link(entry: &Entry) -> Result<(), WorktreeError> {
    for link in &entry.links {
        let no_link = |reason: String| WorktreeError::NoLink {
            path: link.path.display().to_string(),
            reason,
        };
        let parent = link.path.parent().unwrap_or(Path::new(""));
        let directory = descend(&entry.path, parent).map_err(|error| no_link(error.to_string()))?;
        let place = directory.join(link.path.file_name().unwrap_or_default());
        if fs::symlink_metadata(&place).is_ok() {
            return Err(no_link("it is part of what is committed".to_owned()));
        }
        symlink(&link.target, &place).map_err(|error| no_link(error.to_string()))?;
    }
    Ok(())
}

#[cfg(unix)]
fn symlink(target: &Path, place: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

#[cfg(windows)]
fn symlink(target: &Path, place: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(target, place)
}

/// Takes the links away that are still what we made; what they lead to is not touched.
pub(crate) fn unlink(entry: &Entry) {
    for link in &entry.links {
        let place = entry.path.join(&link.path);
        if fs::read_link(&place).is_ok_and(|target| target == link.target) {
            // Git refuses to remove a tree in which it stays.
            let _ = fs::remove_file(&place);
        }
    }
}
