//! Where the repository of a workspace stands, read from its files: no program is asked, and what is
//! found is shown to people and nothing else.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes of a file that says one thing.
const SMALL: u64 = 4 << 10;
/// Bytes of the file that has many references.
const PACKED: u64 = 8 << 20;
/// Characters of a commit that are shown.
const SHORT: usize = 12;
/// Characters of a branch that are shown.
const BRANCH: usize = 100;

/// The branch and commit that a workspace is at, as `main 1a2b3c4d5e6f`; nothing outside of a
/// repository, and where it cannot be told.
pub fn git_head(workspace: &Path) -> Option<String> {
    let own = workspace.ancestors().find_map(git_directory)?;
    let head = text(&own.join("HEAD"), SMALL)?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else {
        return commit(head.trim());
    };
    let reference = reference.trim();
    // What belongs to all worktrees lies elsewhere.
    let common = match text(&own.join("commondir"), SMALL) {
        Some(path) => own.join(path.trim()),
        None => own.clone(),
    };
    let is_plain = !reference
        .split('/')
        .any(|part| part == ".." || part.is_empty());
    let loose = is_plain
        .then(|| text(&common.join(reference), SMALL))
        .flatten();
    let found = loose.or_else(|| {
        let packed = text(&common.join("packed-refs"), PACKED)?;
        let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
        let (commit, _) = lines.find(|(_, name)| *name == reference)?;
        Some(commit.to_owned())
    });
    let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
    let branch: String = branch.chars().take(BRANCH).collect();
    Some(match found.and_then(|found| commit(found.trim())) {
        Some(commit) => format!("{branch} {commit}"),
        None => format!("{branch} without a commit"),
    })
}

/// The directory of a repository whose work tree is here.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    let found = std::fs::symlink_metadata(&git).ok()?;
    if found.is_dir() {
        return Some(git);
    }
    let text = text(&git, SMALL)?;
    let path = text.trim().strip_prefix("gitdir: ")?;
    Some(directory.join(path))
}

fn commit(text: &str) -> Option<String> {
    let is_commit = text.len() >= SHORT && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| text.chars().take(SHORT).collect())
}

/// A file that is no longer than it may be.
fn text(path: &Path, longest: u64) -> Option<String> {
    let is_file = std::fs::metadata(path).ok()?.is_file();
    let mut text = String::new();
    let file = is_file.then(|| File::open(path).ok()).flatten()?;
    file.take(longest).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn it_is_found_wherever_it_is_written() {
        let place = tempfile::tempdir().unwrap();
        let work = place.path().join("work/below");
        let git = place.path().join("work/.git");
        fs::create_dir_all(&work).unwrap();
        assert_eq!(git_head(&work), None);
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(git_head(&work).unwrap(), "main without a commit");
        fs::write(
            git.join("packed-refs"),
            format!("# pack\n{ONE} refs/heads/main\n"),
        )
        .unwrap();
        assert_eq!(git_head(&work).unwrap(), "main 111111111111");
        fs::write(git.join("refs/heads/main"), format!("{TWO}\n")).unwrap();
        assert_eq!(git_head(&work).unwrap(), "main 222222222222");
        fs::write(git.join("HEAD"), format!("{ONE}\n")).unwrap();
        assert_eq!(git_head(&work).unwrap(), "111111111111");
        let tree = place.path().join("tree");
        let own = git.join("worktrees/tree");
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(git_head(&tree).unwrap(), "main 222222222222");
        fs::write(own.join("HEAD"), "ref: ../../../secret\n").unwrap();
        assert_eq!(git_head(&tree).unwrap(), "../../../secret without a commit");
        fs::write(own.join("HEAD"), "nonsense").unwrap();
        assert_eq!(git_head(&tree), None);
    }
}
