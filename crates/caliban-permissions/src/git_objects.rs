//! The files that git prints from what it has stored: they may be gone from the workspace, and are
//! as closed as ever.

use std::path::{Path, PathBuf};

/// What prints the content of files that are named to it.
const PRINTERS: &[&str] = &[
    "annotate",
    "archive",
    "blame",
    "cat-file",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "format-patch",
    "grep",
    "log",
    "range-diff",
    "reflog",
    "show",
    "stash",
    "whatchanged",
];

/// The paths that a command of these words asks git for: what stands behind a revision
/// (`HEAD:path`, `:path`), and behind `--`. They begin in a directory or at the repository's root.
pub(crate) fn stored_paths<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let Some((program, arguments)) = words.split_first() else {
        return Vec::new();
    };
    let is_git = Path::new(program)
        .file_name()
        .is_some_and(|name| name == "git");
    if !is_git || !arguments.iter().any(|word| PRINTERS.contains(word)) {
        return Vec::new();
    }
    let separator = arguments.iter().position(|word| *word == "--");
    let (before, behind) = arguments.split_at(separator.unwrap_or(arguments.len()));
    let objects = before.iter().flat_map(|word| behind_colons(word));
    let paths = behind.iter().skip(1);
    objects
        .chain(paths.flat_map(|word| std::iter::once(*word).chain(behind_colons(word))))
        .filter(|path| !path.is_empty())
        .collect()
}

/// What may be a path behind each colon of a word; `:/path` and `:(top)path` begin at the root.
fn behind_colons(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices(':').map(|(at, _)| {
        let rest = &word[at + 1..];
        let magic = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let path = magic.map_or(rest, |(_, path)| path);
        path.trim_start_matches(['/', '!', '^'])
    })
}

/// The directories that such a path may begin in: where the command starts, and the roots of the
/// repositories there.
pub(crate) fn beginnings(bases: &[PathBuf]) -> Vec<PathBuf> {
    let root = |base: &PathBuf| {
        let mut above = base.ancestors();
        above
            .find(|it| it.join(".git").exists())
            .map(Path::to_owned)
    };
    let mut found: Vec<PathBuf> = bases.to_vec();
    found.extend(bases.iter().filter_map(root));
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_behind_revisions_and_dashes() {
        for (line, expected) in [
            ("git show HEAD:.env", &[".env"][..]),
            ("git cat-file -p :0:.env", &["0:.env", ".env"]),
            ("/usr/bin/git -C x show main:./a/.env", &["./a/.env"]),
            ("git diff -- .env", &[".env"]),
            (
                "git log -p -- :/.env :(top,glob)**/.env",
                &[":/.env", ".env", ":(top,glob)**/.env", "**/.env"],
            ),
            ("git checkout secret", &[]),
            ("git show HEAD", &[]),
            ("got show HEAD:.env", &[]),
            ("git push origin HEAD:main", &[]),
            ("git", &[]),
            ("", &[]),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(stored_paths(&words), expected, "{line}");
        }
    }
}
