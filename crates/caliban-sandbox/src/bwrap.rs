//! Bubblewrap: which one is used, and a plan as its arguments.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::plan::{Mount, Plan};

/// The oldest that ends with its parent.
const OLDEST: Version = Version(0, 5, 0);
/// The first that can take away the right to make further namespaces.
const DISABLES_NAMESPACES: Version = Version(0, 8, 0);
/// The first whose way of making places for mounts cannot be led astray. Distributions mend older
/// ones, and we make no places where commands could have planted links.
const MENDED: Version = Version(0, 12, 0);

/// The bit of programs that run as their owner.
const SETUID: u32 = 0o4000;

/// A bubblewrap that may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bwrap {
    pub(crate) path: PathBuf,
    pub(crate) version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32, u32, u32);

/// How much of a sandbox bubblewrap can make here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespaces {
    All,
    /// No user namespace of its own: the container has one.
    NoUser,
    /// That, and the processes of the container can be seen.
    NoProcesses,
}

/// Why none is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BwrapError {
    #[error("bubblewrap is not installed")]
    Absent,
    #[error("`sandbox.bwrap_path` names `{}`, which cannot be used: {reason}", .path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error("`{}` runs with the rights of its owner, which makes a sandbox weaker", .0.display())]
    Setuid(PathBuf),
    #[error("`{}` lies where confined commands may write", .0.display())]
    Writable(PathBuf),
    #[error("`{}` is too old ({version}); 0.5.0 is the oldest that can be used", .path.display())]
    Old { path: PathBuf, version: String },
}

impl Version {
    /// From what `--version` prints.
    fn read(printed: &str) -> Option<Self> {
        let mut numbers = printed
            .trim()
            .strip_prefix("bubblewrap ")?
            .split('.')
            .map(|number| number.parse().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        Some(Self(major, minor, numbers.next().flatten().unwrap_or(0)))
    }

    pub(crate) fn warning(self) -> Option<String> {
        (self < MENDED).then(|| {
            format!(
                "bubblewrap {self} may have CVE-2026-87766 unless your distribution mended it; 0.12.0 does not"
            )
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(major, minor, patch) = self;
        write!(formatter, "{major}.{minor}.{patch}")
    }
}

/// Looks for bubblewrap: where the settings say, else in the directories of `search` that no
/// confined program may write.
pub(crate) fn find(
    named: Option<&Path>,
    search: Option<&OsStr>,
    writable: &[PathBuf],
) -> Result<PathBuf, BwrapError> {
    if let Some(path) = named {
        return check(path, writable).map_err(|error| match error {
            BwrapError::Absent => BwrapError::Unusable {
                path: path.to_owned(),
                reason: "there is no such file".to_owned(),
            },
            error => error,
        });
    }
    let directories = search.map(std::env::split_paths).into_iter().flatten();
    let candidates = directories
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("bwrap"));
    let mut found = candidates.map(|path| check(&path, writable));
    let mut first_problem = BwrapError::Absent;
    loop {
        match found.next() {
            None => return Err(first_problem),
            Some(Ok(path)) => return Ok(path),
            Some(Err(BwrapError::Absent)) => {}
            Some(Err(problem)) => {
                if first_problem == BwrapError::Absent {
                    first_problem = problem;
                }
            }
        }
    }
}

fn check(path: &Path, writable: &[PathBuf]) -> Result<PathBuf, BwrapError> {
    let real = path.canonicalize().map_err(|_| BwrapError::Absent)?;
    let found = real.metadata().map_err(|_| BwrapError::Absent)?;
    if !found.is_file() {
        return Err(BwrapError::Absent);
    }
    if writable.iter().any(|root| real.starts_with(root)) {
        return Err(BwrapError::Writable(real));
    }
    if found.mode() & SETUID != 0 {
        return Err(BwrapError::Setuid(real));
    }
    Ok(real)
}

impl Bwrap {
    /// With the version that it printed.
    pub(crate) fn new(path: PathBuf, printed: &str) -> Result<Self, BwrapError> {
        match Version::read(printed) {
            Some(version) if version >= OLDEST => Ok(Self { path, version }),
            Some(_) | None => Err(BwrapError::Old {
                path,
                version: printed.trim().chars().take(80).collect(),
            }),
        }
    }

    /// What it printed, to be read by [`Self::new`] again.
    pub(crate) fn printed(&self) -> String {
        format!("bubblewrap {}", self.version)
    }

    /// Everything that it is told. `blank` is an empty file to put over files.
    pub(crate) fn arguments(
        &self,
        plan: &Plan,
        namespaces: Namespaces,
        directory: &Path,
        blank: &Path,
    ) -> Vec<OsString> {
        let mut arguments = Arguments::default();
        for word in [
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-net",
            "--unshare-cgroup-try",
            "--die-with-parent",
            "--new-session",
        ] {
            arguments.word(word);
        }
        match namespaces {
            Namespaces::All => {
                arguments.word("--unshare-user");
                if self.version >= DISABLES_NAMESPACES {
                    arguments.word("--disable-userns");
                }
            }
            Namespaces::NoUser | Namespaces::NoProcesses => {}
        }
        let mut closed = Vec::new();
        for (place, mount) in &plan.mounts {
            match mount {
                Mount::ReadOnly(from) => arguments.pair("--ro-bind", from, place),
                Mount::Writable(from) => arguments.pair("--bind", from, place),
                Mount::Blank => arguments.pair("--ro-bind", blank, place),
                Mount::Fresh => arguments.path("--tmpfs", place),
                Mount::Hidden => {
                    // The root is empty by itself.
                    if place != Path::new("/") {
                        arguments.path("--tmpfs", place);
                    }
                    closed.push(place);
                }
                Mount::Devices => arguments.path("--dev", place),
                Mount::Processes => arguments.path("--proc", place),
            }
        }
        // Last, since mounts in them need places.
        for place in closed {
            arguments.path("--remount-ro", place);
        }
        arguments.path("--chdir", directory);
        // After all mounts: bubblewrap started by the superuser would leave every right otherwise.
        arguments.word("--cap-drop");
        arguments.word("ALL");
        arguments.0
    }
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn word(&mut self, word: &str) {
        self.0.push(word.into());
    }

    fn path(&mut self, option: &str, path: &Path) {
        self.0.extend([option.into(), path.into()]);
    }

    fn pair(&mut self, option: &str, from: &Path, to: &Path) {
        self.0.extend([option.into(), from.into(), to.into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn versions_are_read_and_compared() {
        let read = |text: &str| Bwrap::new("/b".into(), text).map(|it| it.version);
        assert_eq!(read("bubblewrap 0.8.0\n"), Ok(Version(0, 8, 0)));
        assert_eq!(read("bubblewrap 0.12"), Ok(Version(0, 12, 0)));
        assert!(read("bubblewrap 0.4.1").is_err());
        assert!(read("something else").is_err());
        assert!(Version(0, 11, 9).warning().is_some());
        assert!(Version(1, 0, 0).warning().is_none());
    }

    #[test]
    fn a_program_that_could_have_been_planted_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let program = root.join("bwrap");
        std::fs::write(&program, "").unwrap();
        let search = root.clone().into_os_string();
        let found = |writable: &[PathBuf]| find(None, Some(&search), writable);
        assert_eq!(found(&[]), Ok(program.clone()));
        assert_eq!(
            found(std::slice::from_ref(&root)),
            Err(BwrapError::Writable(program.clone()))
        );
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(found(&[]), Err(BwrapError::Setuid(program)));
        assert_eq!(
            find(None, Some(OsStr::new("bin:.")), &[]),
            Err(BwrapError::Absent)
        );
        let missing = find(Some(Path::new("/no/such")), None, &[]);
        assert!(matches!(missing, Err(BwrapError::Unusable { .. })));
    }
}
