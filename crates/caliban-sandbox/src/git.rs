//! What in a git directory makes git run programs, or read from elsewhere what makes it.

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
    if hooks.is_symlink() {
        found.push(hooks);
    } else {
        let is_sample = |path: &PathBuf| path.extension().is_some_and(|it| it == "sample");
        found.extend(entries(&hooks).into_iter().filter(|path| !is_sample(path)));
    }
    let modules = git.join(MODULES);
    if modules.is_symlink() {
        found.push(modules);
    }
    found.sort();
    found
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .take(MAX_ENTRIES)
        .map(|entry| entry.path())
        .collect()
}

fn is_harmless_file(path: &Path) -> bool {
    let is_plain = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_file() && found.len() <= MAX_CONFIG);
    is_plain && std::fs::read_to_string(path).is_ok_and(|text| is_harmless(&text))
}

/// Whether a configuration sets nothing but harmless keys. What is not understood is not harmless.
fn is_harmless(config: &str) -> bool {
    let mut section = String::new();
    for line in config.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A line that goes on could hide another.
        if line.ends_with('\\') {
            return false;
        }
        if let Some(heading) = line.strip_prefix('[') {
            let Some(heading) = heading.strip_suffix(']') else {
                return false;
            };
            let Some(named) = name_of(heading) else {
                return false;
            };
            section = named;
            continue;
        }
        let key = line.split_once('=').map_or(line, |(key, _)| key);
        let key = format!("{section}.{}", key.trim().to_ascii_lowercase());
        if !HARMLESS.iter().any(|harmless| fits(harmless, &key)) {
            return false;
        }
    }
    true
}

/// `remote "a"` as `remote.a`, with the name's own dots left out.
fn name_of(heading: &str) -> Option<String> {
    match heading.split_once(' ') {
        None => Some(heading.to_ascii_lowercase()),
        Some((section, name)) => {
            let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
            let name = name.replace('.', "_");
            Some(format!("{}.{name}", section.to_ascii_lowercase()))
        }
    }
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
    #[case("[core", false)]
    #[case("fsmonitor = x", false)]
    fn only_known_keys_are_harmless(#[case] config: &str, #[case] expected: bool) {
        assert_eq!(is_harmless(config), expected);
    }
}
