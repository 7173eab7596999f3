//! What `git status --porcelain -z` says of a tree.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use caliban_git::{Git, GitError};

/// One thing that differs from the last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Changed in the index, in the tree, or in both and then perhaps differently.
    Changed {
        staged: bool,
        unstaged: bool,
    },
    /// Gone from the tree, and nothing else.
    Missing,
    Untracked,
    /// A repository in the tree, which git does not look into.
    Nested,
    /// In the middle of a merge.
    Unmerged,
    Ignored,
}

/// Which files that are not tracked are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Directories stand for what is in them.
    Counting,
    /// Every file, and those that are ignored, too.
    Everything,
}

/// What differs in the tree that git works in.
pub(crate) async fn status(git: &Git, detail: Detail) -> Result<Vec<Change>, GitError> {
    let mut args = vec!["status", "--porcelain=v1", "-z", "--no-renames"];
    args.extend(match detail {
        Detail::Counting => &["--untracked-files=normal"][..],
        Detail::Everything => &["--untracked-files=all", "--ignored=matching"],
    });
    let said = git.run(args).await?;
    Ok(parse(&said.stdout))
}

fn parse(said: &[u8]) -> Vec<Change> {
    said.split(|byte| *byte == 0).filter_map(change).collect()
}

fn change(record: &[u8]) -> Option<Change> {
    let [index, tree, b' ', path @ ..] = record else {
        return None;
    };
    let is_directory = path.ends_with(b"/");
    let kind = match (index, tree) {
        (b'?', b'?') if is_directory => Kind::Nested,
        (b'?', b'?') => Kind::Untracked,
        (b'!', b'!') => Kind::Ignored,
        (b'U', _) | (_, b'U') | (b'A', b'A') | (b'D', b'D') => Kind::Unmerged,
        (b' ', b'D') => Kind::Missing,
        (index, tree) => Kind::Changed {
            staged: *index != b' ',
            unstaged: *tree != b' ',
        },
    };
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let path = name(path)?;
    Some(Change { path, kind })
}

/// A path as git writes it.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere not every name is one")]
pub(crate) fn name(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(bytes.to_vec()).into())
}

#[cfg(not(unix))]
pub(crate) fn name(bytes: &[u8]) -> Option<PathBuf> {
    Some(OsString::from(std::str::from_utf8(bytes).ok()?).into())
}

/// A path as git reads it.
pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_told_apart() {
        let said = b" M a b\0M  staged\0MM both\0?? new\n\0?? sub/\0!! target/\0UU u\0AA w\0 D gone\0D  removed\0";
        let kinds: Vec<(String, Kind)> = parse(said)
            .into_iter()
            .map(|change| (change.path.display().to_string(), change.kind))
            .collect();
        let changed = |staged, unstaged| Kind::Changed { staged, unstaged };
        let expected = [
            ("a b", changed(false, true)),
            ("staged", changed(true, false)),
            ("both", changed(true, true)),
            ("new\n", Kind::Untracked),
            ("sub", Kind::Nested),
            ("target", Kind::Ignored),
            ("u", Kind::Unmerged),
            ("w", Kind::Unmerged),
            ("gone", Kind::Missing),
            ("removed", changed(true, false)),
        ];
        let expected: Vec<(String, Kind)> = expected
            .map(|(path, kind)| (path.to_owned(), kind))
            .into_iter()
            .collect();
        assert_eq!(kinds, expected);
    }
}
