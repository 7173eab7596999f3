//! The places in writable directories that nobody confined may change: what they hold is run or
//! trusted later by somebody who is not.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use caliban_permissions::{home_places, is_environment_of_programs, protected_name};

use crate::disk::{Disk, Extent, Kind};
use crate::git_programs::{Repository, checked_out, named_by};
use crate::policy::Policy;

/// How far below a root is looked, which is where tools look for such files too.
pub(crate) const MAX_DEPTH: usize = 2;
/// How many directories are looked into, and how many entries are seen, of all roots together. It is
/// far beyond what people keep; where there is more, nothing runs until there is less.
const MAX_DIRECTORIES: usize = 50_000;
const MAX_ENTRIES: usize = 1_000_000;
/// Directories that hold what others made, too many to look into.
const SKIPPED: [&str; 4] = ["node_modules", "target", ".venv", "__pycache__"];
/// How deep modules are looked for: their names have slashes, and modules have modules.
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

/// What is protected beneath all roots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Nothing in these changes.
    pub(crate) places: Vec<PathBuf>,
    /// Git directories, which commands must be able to write.
    pub(crate) git: Vec<PathBuf>,
    /// Those of submodules, which lie within them.
    pub(crate) modules: Vec<PathBuf>,
    /// Those of submodules of repositories elsewhere that roots are worktrees of.
    pub(crate) linked: Vec<PathBuf>,
    /// Of the places those that the configuration of a repository names.
    pub(crate) named: Vec<PathBuf>,
    /// Programs of environments that commands of this session made, which are not protected. Only
    /// what is known has any.
    pub(crate) made: Vec<PathBuf>,
    /// Where the looking ended before everything was seen.
    pub(crate) unseen: Option<PathBuf>,
}

impl Found {
    /// Looks beneath the roots. What is known from before is protected for as long as it is there,
    /// whatever has been done to the things by which it is recognised.
    pub(crate) fn look(policy: &Policy, known: &Self, disk: &dyn Disk) -> Self {
        let mut look = Look {
            disk,
            found: Self::default(),
            directories: 0,
            entries: 0,
        };
        for root in &policy.roots {
            look.beneath(root);
        }
        look.in_home(policy);
        let is_there = |path: &&PathBuf| disk.kind(path).is_some();
        let Self {
            places,
            git,
            modules,
            linked,
            named: _,
            made,
            unseen: _,
        } = known;
        let add = |to: &mut Vec<PathBuf>, from: &[PathBuf]| {
            to.extend(from.iter().filter(is_there).cloned());
            to.sort();
            to.dedup();
        };
        add(&mut look.found.places, places);
        look.found.places.retain(|place| !made.contains(place));
        add(&mut look.found.git, git);
        for git in look.found.git.clone() {
            let modules = look.modules_of(&git);
            look.found.modules.extend(modules);
        }
        for repository in &policy.linked {
            let modules = look.modules_of(&repository.directory);
            look.found.linked.extend(modules);
        }
        add(&mut look.found.modules, modules);
        add(&mut look.found.linked, linked);
        look.named(policy);
        look.found
    }
}

/// A look, and how much it has seen.
struct Look<'a> {
    disk: &'a dyn Disk,
    found: Found,
    directories: usize,
    entries: usize,
}

impl Look<'_> {
    fn is_there(&self, path: &Path) -> bool {
        self.disk.kind(path).is_some()
    }

    /// Shows what is in a directory; what cannot be seen of it counts as protected or as unseen.
    fn read(&mut self, directory: &Path, see: &mut dyn FnMut(&mut Found, PathBuf, Kind)) {
        self.directories += 1;
        let (found, entries) = (&mut self.found, &mut self.entries);
        let extent = if self.directories > MAX_DIRECTORIES {
            Extent::Stopped
        } else {
            self.disk.read(directory, &mut |path, kind| {
                *entries += 1;
                if *entries > MAX_ENTRIES {
                    return ControlFlow::Break(());
                }
                see(found, path, kind);
                ControlFlow::Continue(())
            })
        };
        match extent {
            Extent::Whole => {}
            Extent::Closed => self.found.places.push(directory.to_owned()),
            Extent::Stopped => {
                self.found.unseen.get_or_insert(directory.to_owned());
            }
        }
    }

    fn beneath(&mut self, root: &Path) {
        let mut pending = VecDeque::from([(root.to_owned(), 0)]);
        while let Some((directory, depth)) = pending.pop_front() {
            if self.found.unseen.is_some() {
                return;
            }
            if is_environment_of_programs(&directory, |path| self.is_there(path)) {
                self.found.places.push(directory);
                continue;
            }
            let is_skipped = depth > 0 && is_skipped(&directory);
            if depth > MAX_DEPTH && !is_skipped {
                self.programs_in(&directory);
                continue;
            }
            if depth > 0 && is_bare(&directory, self.disk) {
                self.found.git.push(directory);
                continue;
            }
            if is_skipped {
                self.git_in(&directory);
                self.programs_in(&directory);
                continue;
            }
            let disk = self.disk;
            self.read(&directory, &mut |found, path, kind| {
                let Some(name) = path.file_name() else {
                    return;
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
                } else if kind == Kind::Directory {
                    pending.push_back((path, depth + 1));
                }
            });
        }
    }

    /// What shells, git and the session start from in the home, where that can be written.
    fn in_home(&mut self, policy: &Policy) {
        for place in home_places() {
            let path = policy.home.join(place);
            let mut roots = policy.roots.iter();
            if roots.any(|root| path.starts_with(root)) && self.is_there(&path) {
                self.found.places.push(path);
            }
        }
    }

    /// What the configurations of repositories name.
    fn named(&mut self, policy: &Policy) {
        let mut found = BTreeSet::new();
        let mut add = |files: Vec<PathBuf>, tree: &Path| {
            let repository = Repository { files, tree };
            let home = &policy.home;
            found.extend(named_by(&repository, home, &policy.roots, self.disk));
        };
        let files = |git: &Path| ["config", "config.worktree"].map(|name| git.join(name));
        for git in &self.found.git {
            let is_plain = git.file_name().is_some_and(|name| name == ".git");
            let tree = git.parent().filter(|_| is_plain).unwrap_or(git);
            add(files(git).into(), tree);
        }
        for git in self.found.modules.iter().chain(&self.found.linked) {
            let tree = checked_out(git, self.disk);
            add(files(git).into(), tree.as_deref().unwrap_or(git));
        }
        for linked in &policy.linked {
            let both = files(&linked.common).into_iter();
            let both: Vec<PathBuf> = both.chain(files(&linked.directory)).collect();
            for root in &policy.roots {
                add(both.clone(), root);
            }
        }
        for root in &policy.roots {
            // Those who work in a part of a repository have its configuration above them.
            let mut above = root.ancestors().skip(1);
            if let Some(tree) = above.find(|above| self.is_there(&above.join(".git"))) {
                add(files(&tree.join(".git")).into(), tree);
            }
        }
        self.found.places.extend(found.iter().cloned());
        self.found.places.sort();
        self.found.places.dedup();
        self.found.named = found.into_iter().collect();
    }

    /// The repository of a directory that is not looked through.
    fn git_in(&mut self, directory: &Path) {
        let git = directory.join(".git");
        match self.disk.kind(&git) {
            Some(Kind::Directory) => self.found.git.push(git),
            Some(Kind::File | Kind::Link | Kind::Special) => self.found.places.push(git),
            None => {}
        }
    }

    /// The same of programs of a Python environment.
    fn programs_in(&mut self, directory: &Path) {
        let programs = directory.join("bin");
        if is_environment_of_programs(&programs, |path| self.is_there(path))
            && self.is_there(&programs)
        {
            self.found.places.push(programs);
        }
    }

    /// The git directories of the submodules of a repository.
    fn modules_of(&mut self, git: &Path) -> Vec<PathBuf> {
        let mut modules = Vec::new();
        let mut pending = VecDeque::from([(git.join(MODULES), 0)]);
        while let Some((directory, depth)) = pending.pop_front() {
            if self.found.unseen.is_some() {
                break;
            }
            let mut beneath = Vec::new();
            self.read(&directory, &mut |_, path, kind| {
                if kind == Kind::Directory {
                    beneath.push(path);
                }
            });
            for path in beneath {
                let next = if self.is_there(&path.join("HEAD")) {
                    let next = path.join(MODULES);
                    modules.push(path);
                    next
                } else {
                    path
                };
                if depth < MAX_MODULE_DEPTH {
                    pending.push_back((next, depth + 1));
                }
            }
        }
        modules
    }
}

fn is_skipped(directory: &Path) -> bool {
    let name = directory.file_name();
    SKIPPED
        .iter()
        .any(|skipped| name == Some(OsStr::new(skipped)))
}

/// Whether a directory is what git takes for a repository without a `.git` of its own: what it
/// lacks may lie where `commondir` says.
fn is_bare(directory: &Path, disk: &dyn Disk) -> bool {
    let has = |name: &str| disk.kind(&directory.join(name)).is_some();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::Listed;
    use crate::policy::Surroundings;

    fn policy() -> Policy {
        let surroundings = Surroundings {
            roots: &["/w".into()],
            home: Path::new("/home/me"),
            own: &[],
            variables: &[],
        };
        Policy::new(&caliban_settings::Sandbox::default(), &surroundings).unwrap()
    }

    fn look(disk: &Listed) -> Found {
        Found::look(&policy(), &Found::default(), disk)
    }

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
            "/w/target/.git/config",
            "/w/__pycache__/HEAD",
            "/w/__pycache__/objects/",
            "/w/__pycache__/refs/",
            "/w/elsewhere/HEAD",
            "/w/elsewhere/commondir",
            "/w/a/env/pyvenv.cfg",
            "/w/a/env/bin/python",
            "/w/src/main.rs",
            "/w/.git/modules/a/HEAD",
            "/w/.git/modules/a/modules/within/HEAD",
            "/w/.git/modules/with/slash/HEAD",
            "/w/.git/modules/nothing/",
        ]);
        let found = look(&disk);
        assert_eq!(
            names(&found.places),
            [
                "/w/.envrc",
                "/w/.github/workflows",
                "/w/.venv/bin",
                "/w/CLAUDE.md",
                "/w/a/env/bin",
                "/w/sub/deep/.vscode",
                "/w/venv/bin",
            ]
        );
        assert_eq!(
            names(&found.git),
            [
                "/w/.git",
                "/w/__pycache__",
                "/w/bare",
                "/w/elsewhere",
                "/w/sub/.git",
                "/w/target/.git",
            ]
        );
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
    fn what_a_repository_is_told_to_run_is_a_place() {
        let mut disk = Listed::new(&[
            "/w/.githooks/pre-commit",
            "/w/sub/tools/clean.sh",
            "/w/part/hooks/",
        ]);
        disk.write("/w/.git/config", "[core]\nhooksPath = .githooks\n");
        disk.write(
            "/w/sub/.git/config",
            "[filter \"x\"]\nclean = tools/clean.sh\n",
        );
        disk.write(
            "/w/.git/modules/part/config",
            "[core]\nworktree = ../../../part\nhooksPath = hooks\n",
        );
        disk.write("/w/.git/modules/part/HEAD", "");
        for directory in [
            "/w/.git/modules",
            "/w/.git/modules/part",
            "/w/.git",
            "/w/sub/.git",
        ] {
            disk.paths.insert(directory.into(), Kind::Directory);
        }
        let found = look(&disk);
        let expected = ["/w/.githooks", "/w/part/hooks", "/w/sub/tools/clean.sh"];
        assert_eq!(names(&found.named), expected);
        assert_eq!(names(&found.places), expected);
    }

    #[test]
    fn a_home_that_can_be_written_keeps_what_it_starts_from() {
        let disk = Listed::new(&[
            "/w/me/.bashrc",
            "/w/me/.ssh/id",
            "/w/me/.local/bin/x",
            "/w/me/a",
        ]);
        let surroundings = Surroundings {
            roots: &["/w".into()],
            home: Path::new("/w/me"),
            own: &[],
            variables: &[],
        };
        let policy = Policy::new(&caliban_settings::Sandbox::default(), &surroundings).unwrap();
        let found = Found::look(&policy, &Found::default(), &disk);
        assert_eq!(
            names(&found.places),
            ["/w/me/.bashrc", "/w/me/.local/bin", "/w/me/.ssh"]
        );
    }

    #[test]
    fn a_file_that_names_a_git_directory_is_a_place() {
        let disk = Listed::new(&["/w/.git"]);
        let found = look(&disk);
        assert_eq!(names(&found.places), ["/w/.git"]);
    }

    #[test]
    fn what_was_known_stays_protected_without_what_it_is_recognised_by() {
        let before = look(&Listed::new(&[
            "/w/bare/HEAD",
            "/w/bare/objects/",
            "/w/bare/refs/",
            "/w/env/pyvenv.cfg",
            "/w/env/bin/python",
            "/w/gone/.envrc",
        ]));
        let disk = Listed::new(&["/w/bare/objects/", "/w/env/bin/python"]);
        let found = Found::look(&policy(), &before, &disk);
        assert_eq!(names(&found.git), ["/w/bare"]);
        assert_eq!(names(&found.places), ["/w/env/bin"]);
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_protected_as_a_whole() {
        let mut disk = Listed::new(&["/w/shut/.git/config"]);
        disk.closed.insert("/w/shut".into());
        assert_eq!(names(&look(&disk).places), ["/w/shut"]);
    }

    #[test]
    fn more_directories_than_are_looked_into_are_told() {
        let mut disk = Listed::new(&["/w/.envrc"]);
        disk.fill("/w/many", MAX_DIRECTORIES);
        let found = look(&disk);
        assert!(found.unseen.is_some());
        assert_eq!(names(&found.places), ["/w/.envrc"]);
    }
}
