//! What in a git directory makes git run programs, or read from elsewhere what makes it.

use std::io;
use std::path::{Path, PathBuf};

use crate::places::MODULES;

/// How long a configuration may be that is looked through; a longer one is not harmless.
const MAX_CONFIG: u64 = 64 * 1024;
/// How many entries of a directory are looked at.
const MAX_ENTRIES: usize = 1000;

/// Keys that only say how a repository is stored and who it belongs with. `*` is any name.
const HARMLESS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.worktree",
    "remote.*.url",
    "remote.*.fetch",
    "branch.*.remote",
    "branch.*.merge",
    "branch.*.rebase",
    "user.name",
    "user.email",
    "submodule.*.url",
    "submodule.*.active",
    "submodule.active",
    "extensions.*",
];

/// The files in a git directory that are not harmless. Modules are git directories of their own.
pub(crate) fn offences(git: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    for name in ["commondir", "info/attributes"] {
        let path = git.join(name);
        if is_there(&path) {
            found.push(path);
        }
    }
    for name in ["config", "config.worktree"] {
        let path = git.join(name);
        if is_there(&path) && !is_harmless_file(&path) {
            found.push(path);
        }
    }
    let hooks = git.join("hooks");
    match hooks_in(&hooks) {
        Hooks::These(hooks) => found.extend(hooks),
        Hooks::Anything => found.push(hooks),
    }
    let modules = git.join(MODULES);
    if modules.is_symlink() {
        found.push(modules);
    }
    found.sort();
    found
}

/// What there is of hooks.
enum Hooks {
    These(Vec<PathBuf>),
    /// More than can be looked at, or it cannot be looked at.
    Anything,
}

fn hooks_in(directory: &Path) -> Hooks {
    if directory.is_symlink() {
        return Hooks::Anything;
    }
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Hooks::These(Vec::new()),
        Err(_) => return Hooks::Anything,
    };
    let mut hooks = Vec::new();
    for (index, entry) in entries.enumerate() {
        let Ok(entry) = entry else {
            return Hooks::Anything;
        };
        if index >= MAX_ENTRIES {
            return Hooks::Anything;
        }
        let path = entry.path();
        if path.extension().is_none_or(|it| it != "sample") {
            hooks.push(path);
        }
    }
    Hooks::These(hooks)
}

fn is_harmless_file(path: &Path) -> bool {
    let is_plain = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_file() && found.len() <= MAX_CONFIG);
    is_plain && std::fs::read_to_string(path).is_ok_and(|text| is_harmless(&text))
}

/// What git takes for space between words.
const SPACE: [char; 3] = [' ', '\t', '\r'];

/// Whether a configuration sets nothing but harmless keys. What is not understood is not harmless.
fn is_harmless(config: &str) -> bool {
    let mut section = None;
    for line in config.lines() {
        let mut rest = line.trim_matches(SPACE);
        // What follows a heading on its line belongs to the section.
        while let Some(heading) = rest.strip_prefix('[') {
            let Some((named, after)) = heading_of(heading) else {
                return false;
            };
            section = Some(named);
            rest = after.trim_start_matches(SPACE);
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        // A line that goes on could hide another.
        if rest.ends_with('\\') {
            return false;
        }
        let (Some(section), Some(name)) = (&section, variable_of(rest)) else {
            return false;
        };
        let key = format!("{section}.{name}");
        if !HARMLESS.iter().any(|harmless| fits(harmless, &key)) {
            return false;
        }
    }
    true
}

/// `remote "a"]` as `remote.a`, with the name's own dots left out, and what follows. Names that git
/// reads by more rules than these are not understood.
fn heading_of(heading: &str) -> Option<(String, &str)> {
    let (heading, rest) = heading.split_once(']')?;
    let is_word = |word: &str| {
        let fits = |it: char| it.is_ascii_alphanumeric() || it == '.' || it == '-';
        !word.is_empty() && word.chars().all(fits)
    };
    let (section, name) = match heading.split_once(SPACE) {
        None => (heading, None),
        Some((section, name)) => {
            let name = name.trim_start_matches(SPACE);
            let name = name.strip_prefix('"')?.strip_suffix('"')?;
            if name.contains(['"', '\\', '[']) || name.chars().any(char::is_control) {
                return None;
            }
            (section, Some(name))
        }
    };
    if !is_word(section) {
        return None;
    }
    let section = section.to_ascii_lowercase();
    let named = match name {
        None => section,
        Some(name) => format!("{section}.{}", name.replace('.', "_")),
    };
    Some((named, rest))
}

/// The name in `name = value`, or alone.
fn variable_of(line: &str) -> Option<String> {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '-';
    let end = line.find(|it| !fits(it)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(SPACE);
    let is_one = name.starts_with(|it: char| it.is_ascii_alphabetic())
        && (rest.is_empty() || rest.starts_with(['=', '#', ';']));
    is_one.then(|| name.to_ascii_lowercase())
}

fn fits(pattern: &str, key: &str) -> bool {
    let (pattern, key): (Vec<&str>, Vec<&str>) =
        (pattern.split('.').collect(), key.split('.').collect());
    pattern.len() == key.len()
        && pattern
            .iter()
            .zip(&key)
            .all(|(want, have)| *want == "*" || want == have)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://x\n\tfetch = +refs/*\n",
        true
    )]
    #[case("[branch \"a.b\"]\n\tmerge = refs/heads/a.b\n", true)]
    #[case("", true)]
    #[case("[core]\n\tfsmonitor = evil\n", false)]
    #[case("[core]\n\tFsMonitor = evil\n", false)]
    #[case("[core] fsmonitor = evil\n", false)]
    #[case("[include]\n\tpath = x\n", false)]
    #[case("[includeIf \"gitdir:x\"]\n\tpath = x\n", false)]
    #[case("[alias]\n\tst = !evil\n", false)]
    #[case("[remote \"x\"]\n\tuploadpack = evil\n", false)]
    #[case("[filter \"x\"]\n\tsmudge = evil\n", false)]
    #[case("[core]\n\tbare = \\\nfsmonitor = evil\n", false)]
    #[case("[core]fsmonitor=/w/evil#]\n", false)]
    #[case("[core]hooksPath=/w/evil;]\n", false)]
    #[case("[core][core]fsmonitor=evil\n", false)]
    #[case("[core] bare = false\n", true)]
    #[case("[core] # said\n\tbare\n", true)]
    #[case("[core]\rfsmonitor = evil\n", false)]
    #[case("[branch \"a]\"]\n", false)]
    #[case("[branch \"a\\\"]\n", false)]
    #[case("[branch \"a\"x]\n", false)]
    #[case("[branch a]\n", false)]
    #[case("[co re]\n", false)]
    #[case("[core]\n\u{a0}bare = false\n", false)]
    #[case("[core]\nbare fsmonitor = x\n", false)]
    #[case("[core", false)]
    #[case("fsmonitor = x", false)]
    fn only_known_keys_are_harmless(#[case] config: &str, #[case] expected: bool) {
        assert_eq!(is_harmless(config), expected);
    }
}
