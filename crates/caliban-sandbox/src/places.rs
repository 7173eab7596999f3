//! The places in writable directories that nobody confined may change: what they hold is run or
//! trusted later by somebody who is not.

use std::path::{Path, PathBuf};

use caliban_permissions::{is_environment_of_programs, protected_name};

use crate::disk::{Disk, Kind};

/// How far below a root is looked, which is where tools look for such files too.
const MAX_DEPTH: usize = 2;
/// How many directories of one root are looked into.
const MAX_DIRECTORIES: usize = 400;
/// Directories that hold what others made, too many to look into.
const SKIPPED: [&str; 4] = ["node_modules", "target", ".venv", "__pycache__"];
/// How many directories are looked into for modules of one repository, and how deep: names of
/// modules have slashes, and modules have modules.
const MAX_MODULE_DIRECTORIES: usize = 1000;
const MAX_MODULE_DEPTH: usize = 8;
/// Where the repositories of submodules are.
pub(crate) const MODULES: &str = "modules";
/// What in a git directory decides which programs git runs, or where it reads that.
pub(crate) const GIT_PLACES: [&str; 6] = [
    "commondir",
    "config",
    "config.worktree",
    "hooks",
    "info/attributes",
    "worktrees",
];
/// What in a worktree's own git directory does.
pub(crate) const WORKTREE_PLACES: [&str; 3] = ["commondir", "config.worktree", "gitdir"];

/// What is protected beneath a root.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Nothing in these changes.
    pub(crate) places: Vec<PathBuf>,
    /// Git directories, which commands must be able to write.
    pub(crate) git: Vec<PathBuf>,
    /// Those of submodules, which lie within them.
    pub(crate) modules: Vec<PathBuf>,
}

/// Looks beneath a root.
pub(crate) fn beneath(root: &Path, disk: &dyn Disk) -> Found {
    let mut found = Found::default();
    let mut pending = vec![(root.to_owned(), 0)];
    let mut looked = 0;
    while let Some((directory, depth)) = pending.pop() {
        looked += 1;
        if looked > MAX_DIRECTORIES {
            break;
        }
        if depth > 0 && is_bare(&directory, disk) {
            found.git.push(directory);
            continue;
        }
        if is_environment_of_programs(&directory, |path| disk.kind(path).is_some()) {
            found.places.push(directory);
            continue;
        }
        for (path, kind) in disk.entries(&directory) {
            let Some(name) = path.file_name() else {
                continue;
            };
            if name.eq_ignore_ascii_case(".git") && kind == Kind::Directory {
                found.git.push(path);
            } else if protected_name(Path::new(name)).is_some() {
                found.places.push(path);
            } else if name.eq_ignore_ascii_case(".github") {
                let workflows = path.join("workflows");
                if disk.kind(&workflows).is_some() {
                    found.places.push(workflows);
                }
            } else if kind == Kind::Directory
                && depth < MAX_DEPTH
                && !SKIPPED.iter().any(|skipped| name == *skipped)
            {
                pending.push((path, depth + 1));
            } else if kind == Kind::Directory
                && is_environment_of_programs(&path.join("bin"), |it| disk.kind(it).is_some())
            {
                found.places.push(path.join("bin"));
            }
        }
    }
    let modules = found.git.iter().flat_map(|git| modules_of(git, disk));
    found.modules = modules.collect();
    found
}

/// The git directories of the submodules of a repository.
pub(crate) fn modules_of(git: &Path, disk: &dyn Disk) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![(git.join(MODULES), 0)];
    let mut looked = 0;
    while let Some((directory, depth)) = pending.pop() {
        for (path, kind) in disk.entries(&directory) {
            looked += 1;
            if kind != Kind::Directory || looked > MAX_MODULE_DIRECTORIES {
                continue;
            }
            let beneath = match disk.kind(&path.join("HEAD")) {
                Some(_) => path.join(MODULES),
                None => path.clone(),
            };
            if beneath != path {
                found.push(path);
            }
            if depth < MAX_MODULE_DEPTH {
                pending.push((beneath, depth + 1));
            }
        }
    }
    found
}

/// Whether a directory is what git takes for a repository without a `.git` of its own.
fn is_bare(directory: &Path, disk: &dyn Disk) -> bool {
    ["HEAD", "objects", "refs"]
        .iter()
        .all(|name| disk.kind(&directory.join(name)).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::Listed;

    fn names(paths: &[PathBuf]) -> Vec<String> {
        let mut names: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn protected_places_are_found_where_tools_look_for_them() {
        let disk = Listed::new(&[
            "/w/.git/hooks/",
            "/w/.envrc",
            "/w/CLAUDE.md",
            "/w/.github/workflows/ci.yml",
            "/w/.github/dependabot.yml",
            "/w/sub/.git/config",
            "/w/sub/deep/.vscode/",
            "/w/sub/deep/deeper/.vscode/",
            "/w/bare/HEAD",
            "/w/bare/objects/",
            "/w/bare/refs/",
            "/w/venv/pyvenv.cfg",
            "/w/venv/bin/python",
            "/w/.venv/pyvenv.cfg",
            "/w/.venv/bin/python",
            "/w/node_modules/x/.npmrc",
            "/w/src/main.rs",
            "/w/.git/modules/a/HEAD",
            "/w/.git/modules/a/modules/within/HEAD",
            "/w/.git/modules/with/slash/HEAD",
            "/w/.git/modules/nothing/",
        ]);
        let found = beneath(Path::new("/w"), &disk);
        assert_eq!(
            names(&found.places),
            [
                "/w/.envrc",
                "/w/.github/workflows",
                "/w/.venv/bin",
                "/w/CLAUDE.md",
                "/w/sub/deep/.vscode",
                "/w/venv/bin",
            ]
        );
        assert_eq!(names(&found.git), ["/w/.git", "/w/bare", "/w/sub/.git"]);
        assert_eq!(
            names(&found.modules),
            [
                "/w/.git/modules/a",
                "/w/.git/modules/a/modules/within",
                "/w/.git/modules/with/slash",
            ]
        );
    }

    #[test]
    fn a_file_that_names_a_git_directory_is_a_place() {
        let disk = Listed::new(&["/w/.git"]);
        let found = beneath(Path::new("/w"), &disk);
        assert_eq!(names(&found.places), ["/w/.git"]);
    }
}
