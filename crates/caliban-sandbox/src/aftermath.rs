//! What a command leaves behind under protected names that were not there before. No mount can
//! protect what does not exist, so it is looked for afterwards, and taken out of the way before
//! anybody outside runs or trusts it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use caliban_permissions::is_environment_of_programs;

use crate::disk::{Disk, Host, Kind};
use crate::git::offences;
use crate::places::{Found, GIT_PLACES};
use crate::policy::Policy;
use crate::private::private_directory;

/// How far the clock by which files are stamped may be behind.
const LAG: Duration = Duration::from_millis(10);

/// Who a file is: another one at the same place is not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    file: u64,
}

/// The protected places that there are at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Census {
    at: SystemTime,
    places: BTreeMap<PathBuf, Option<Identity>>,
    git: Vec<PathBuf>,
    /// What configurations name, in git directories too.
    named: Vec<PathBuf>,
}

/// Something that was taken out of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    pub from: PathBuf,
    /// Where it is now; nowhere if it could not be moved, which leaves it in its place.
    pub to: Option<PathBuf>,
}

impl Census {
    /// Notes what was found, and repositories elsewhere that roots are worktrees of.
    pub(crate) fn of(found: &Found, policy: &Policy) -> Self {
        let mut census = Self {
            at: SystemTime::now() - LAG,
            places: BTreeMap::new(),
            git: Vec::new(),
            named: found.named.clone(),
        };
        for place in &found.places {
            census.note(place.clone());
        }
        for linked in &policy.linked {
            census.note_git(linked.common.clone());
            if linked.directory != linked.common {
                census.note_git(linked.directory.clone());
            }
        }
        let git = found.git.iter().chain(&found.modules).chain(&found.linked);
        for directory in git {
            census.note_git(directory.clone());
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

    /// Programs of Python environments that were made since, from the directory up: nobody outside
    /// knows them. `search` is where programs are looked for outside.
    pub(crate) fn environments_since(&self, before: &Self, search: Option<&OsStr>) -> Vec<PathBuf> {
        let is_searched = |place: &Path| {
            let mut searched = search.into_iter().flat_map(std::env::split_paths);
            searched.any(|it| it == place || it.canonicalize().is_ok_and(|it| it == place))
        };
        let is_made = |place: &&PathBuf| {
            let Some(environment) = place.parent() else {
                return false;
            };
            let is_there = |path: &Path| Host.kind(path) == Some(Kind::File);
            let made = environment.symlink_metadata().and_then(|it| it.created());
            !before.places.contains_key(*place)
                && Host.kind(place) == Some(Kind::Directory)
                && is_environment_of_programs(place, is_there)
                // One that was there and got a marker is not new; what cannot tell is old.
                && made.is_ok_and(|made| made >= before.at)
                && !is_searched(place)
        };
        self.places.keys().filter(is_made).cloned().collect()
    }

    /// What is there now and was not, or is another one, and is not harmless.
    pub(crate) fn offences_since(&self, before: &Self, policy: &Policy) -> Vec<PathBuf> {
        let is_new = |place: &Path| self.places.get(place) != before.places.get(place);
        // A list that names a place opens it.
        let is_opened = |place: &Path| policy.roots.iter().any(|root| root == place);
        let is_named = |place: &Path| self.named.iter().any(|named| named == place);
        let in_git =
            |place: &Path| !is_named(place) && self.git.iter().any(|git| place.starts_with(git));
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
            let look = || {
                let found = Found::look(&self.policy, &Found::default(), &Host);
                Census::of(&found, &self.policy)
            };
            let before = look();
            act(&self.root);
            let after = look();
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
    fn an_environment_that_is_new_as_a_whole_is_told_from_others() {
        let fixture = fixture();
        let look = || {
            let found = Found::look(&fixture.policy, &Found::default(), &Host);
            Census::of(&found, &fixture.policy)
        };
        std::fs::create_dir_all(fixture.root.join("tools/bin")).unwrap();
        // As if the look came long after.
        let before = Census {
            at: fixture
                .root
                .join("tools")
                .metadata()
                .unwrap()
                .created()
                .unwrap()
                + LAG,
            ..look()
        };
        while SystemTime::now() < before.at + LAG {
            std::thread::yield_now();
        }
        for name in ["env", "tools", "searched"] {
            std::fs::create_dir_all(fixture.root.join(name).join("bin")).unwrap();
            std::fs::write(fixture.root.join(name).join("pyvenv.cfg"), "").unwrap();
        }
        let search = fixture.root.join("searched/bin");
        let made = look().environments_since(&before, Some(search.as_os_str()));
        assert_eq!(made, [fixture.root.join("env/bin")]);
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
