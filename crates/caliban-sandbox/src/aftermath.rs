//! What a command leaves behind under protected names that were not there before. No mount can
//! protect what does not exist, so it is looked for afterwards, and taken out of the way before
//! anybody outside runs or trusts it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Host};
use crate::git::offences;
use crate::places::{Found, GIT_PLACES, beneath, modules_of};
use crate::policy::Policy;
use crate::private::private_directory;

/// Who a file is: another one at the same place is not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    file: u64,
}

/// The protected places that there are at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Census {
    places: BTreeMap<PathBuf, Option<Identity>>,
    git: Vec<PathBuf>,
}

/// Something that was taken out of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    pub from: PathBuf,
    /// Where it is now; nowhere if it could not be moved, which leaves it in its place.
    pub to: Option<PathBuf>,
}

impl Census {
    /// Looks at all roots, and at repositories elsewhere that they are worktrees of.
    pub(crate) fn take(policy: &Policy) -> Self {
        let mut census = Self::default();
        for root in &policy.roots {
            let Found {
                places,
                git,
                modules,
            } = beneath(root, &Host);
            for place in places {
                census.note(place);
            }
            for directory in git.into_iter().chain(modules) {
                census.note_git(directory);
            }
        }
        for linked in &policy.linked {
            let (own, common) = (&linked.directory, &linked.common);
            let modules = modules_of(own, &Host);
            census.note_git(common.clone());
            if own != common {
                census.note_git(own.clone());
            }
            for directory in modules {
                census.note_git(directory);
            }
        }
        census
    }

    fn note_git(&mut self, directory: PathBuf) {
        for name in GIT_PLACES {
            let place = directory.join(name);
            if Host.kind(&place).is_some() {
                self.note(place);
            }
        }
        self.note(directory.clone());
        self.git.push(directory);
    }

    fn note(&mut self, place: PathBuf) {
        let found = std::fs::symlink_metadata(&place).ok();
        let identity = found.map(|found| Identity {
            device: found.dev(),
            file: found.ino(),
        });
        self.places.insert(place, identity);
    }

    /// What is there now and was not, or is another one, and is not harmless.
    pub(crate) fn offences_since(&self, before: &Self, policy: &Policy) -> Vec<PathBuf> {
        let is_new = |place: &Path| self.places.get(place) != before.places.get(place);
        // A list that names a place opens it.
        let is_opened = |place: &Path| policy.roots.iter().any(|root| root == place);
        let in_git = |place: &Path| self.git.iter().any(|git| place.starts_with(git));
        let places = self.places.keys();
        let places = places.filter(|it| is_new(it) && !in_git(it) && !is_opened(it));
        let mut found: Vec<PathBuf> = places.cloned().collect();
        for git in &self.git {
            for offence in offences(git) {
                // What was there could not be changed; what stands in it is the user's.
                let mut tops = GIT_PLACES.iter().map(|name| git.join(name));
                let top = tops.find(|top| offence.starts_with(top));
                if is_new(git) || top.is_none_or(|top| is_new(&top)) {
                    found.push(offence);
                }
            }
        }
        found
    }
}

/// Moves things out of the way, each into a directory of its own beneath `place`, or where that is
/// on another disk, to a name beside it that means nothing to anybody.
pub(crate) fn quarantine(offences: &[PathBuf], place: &Path) -> Vec<Quarantined> {
    let moved = offences.iter().map(|from| Quarantined {
        from: from.clone(),
        to: set_aside(from, place).ok(),
    });
    moved.collect()
}

fn set_aside(from: &Path, place: &Path) -> io::Result<PathBuf> {
    let name = from
        .file_name()
        .ok_or_else(|| io::Error::other("it has no name"))?;
    private_directory(place)?;
    let directory = tempfile::Builder::new().prefix("kept-").tempdir_in(place)?;
    let to = directory.path().join(name);
    match std::fs::rename(from, &to) {
        Ok(()) => {
            let directory = directory.keep();
            // Where it came from, for whoever wants it back.
            let _ = std::fs::write(directory.join("from.txt"), format!("{}\n", from.display()));
            Ok(to)
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let unique = directory.path().file_name().unwrap_or_default().to_owned();
            let mut aside = name.to_owned();
            aside.push(".");
            aside.push(unique);
            let to = from.with_file_name(aside);
            std::fs::rename(from, &to)?;
            Ok(to)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Surroundings;

    struct Fixture {
        _folder: tempfile::TempDir,
        root: PathBuf,
        policy: Policy,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("w");
        std::fs::create_dir(&root).unwrap();
        let surroundings = Surroundings {
            roots: std::slice::from_ref(&root),
            home: Path::new("/nonexistent"),
            own: &[],
            variables: &[],
        };
        let policy = Policy::new(&caliban_settings::Sandbox::default(), &surroundings).unwrap();
        Fixture {
            _folder: folder,
            root,
            policy,
        }
    }

    fn git(root: &Path, args: &[&str]) {
        let done = std::process::Command::new("git")
            .current_dir(root)
            .args(args)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    impl Fixture {
        fn offences(&self, act: impl FnOnce(&Path)) -> Vec<String> {
            let before = Census::take(&self.policy);
            act(&self.root);
            let after = Census::take(&self.policy);
            let offences = after.offences_since(&before, &self.policy);
            let shown =
                |path: &PathBuf| path.strip_prefix(&self.root).unwrap().display().to_string();
            offences.iter().map(shown).collect()
        }
    }

    #[test]
    fn what_appears_under_a_protected_name_is_found() {
        let fixture = fixture();
        let write = |root: &Path, path: &str| {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), "x").unwrap();
        };
        let found = fixture.offences(|root| {
            for path in [
                ".envrc",
                "sub/.vscode/tasks.json",
                ".github/workflows/x.yml",
                "src/a.rs",
            ] {
                write(root, path);
            }
        });
        assert_eq!(found, [".envrc", ".github/workflows", "sub/.vscode"]);
        let again = fixture.offences(|_| {});
        assert!(again.is_empty(), "{again:?}");
    }

    #[test]
    fn a_link_that_was_replaced_is_found() {
        let fixture = fixture();
        std::os::unix::fs::symlink("nowhere", fixture.root.join(".envrc")).unwrap();
        let found = fixture.offences(|root| {
            std::fs::write(root.join("new"), "x").unwrap();
            std::fs::rename(root.join("new"), root.join(".envrc")).unwrap();
        });
        assert_eq!(found, [".envrc"]);
    }

    #[test]
    fn a_new_repository_stays_and_what_it_would_run_does_not() {
        let fixture = fixture();
        let harmless = fixture.offences(|root| git(root, &["init", "-q"]));
        assert!(harmless.is_empty(), "{harmless:?}");
        let fixture = self::fixture();
        let found = fixture.offences(|root| {
            git(root, &["init", "-q"]);
            git(root, &["config", "core.fsmonitor", "evil"]);
            std::fs::write(root.join(".git/hooks/pre-commit"), "x").unwrap();
            std::fs::write(root.join(".git/commondir"), "x").unwrap();
        });
        assert_eq!(
            found,
            [".git/commondir", ".git/config", ".git/hooks/pre-commit"]
        );
    }

    #[test]
    fn work_in_an_old_repository_is_no_offence() {
        let fixture = fixture();
        git(&fixture.root, &["init", "-q"]);
        git(
            &fixture.root,
            &["config", "core.fsmonitor", "the users own"],
        );
        std::fs::write(fixture.root.join(".git/hooks/pre-commit"), "the user's").unwrap();
        let found = fixture.offences(|root| {
            std::fs::write(root.join("a"), "x").unwrap();
            git(root, &["-c", "core.fsmonitor=false", "add", "a"]);
        });
        assert!(found.is_empty(), "{found:?}");
        let found = fixture.offences(|root| {
            std::fs::write(root.join(".git/commondir"), "x").unwrap();
        });
        assert_eq!(found, [".git/commondir"]);
    }

    #[test]
    fn what_is_taken_away_can_be_found_again() {
        let fixture = fixture();
        let place = fixture.root.parent().unwrap().join("kept");
        let file = fixture.root.join(".envrc");
        std::fs::write(&file, "content").unwrap();
        let moved = quarantine(std::slice::from_ref(&file), &place);
        assert!(!file.exists());
        let to = moved[0].to.as_ref().unwrap();
        assert_eq!(std::fs::read_to_string(to).unwrap(), "content");
    }
}
