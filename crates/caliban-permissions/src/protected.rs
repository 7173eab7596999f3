//! Places that no mode and no general rule opens: what they hold is run or trusted later by
//! somebody else. A rule that names the place opens it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Names that are protected wherever they stand in a path.
const NAMES: &[&str] = &[
    ".git",
    ".caliban",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".agents",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".husky",
    ".envrc",
    ".pre-commit-config.yaml",
    ".npmrc",
    "pip.conf",
    ".netrc",
    ".github/workflows",
    "claude.md",
    "claude.local.md",
    "agents.md",
    "gemini.md",
    ".caliban.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
];

/// Names that begin like this are protected.
const PREFIXES: &[&str] = &[".yarnrc"];

/// Places in the home directory that are protected against change.
const HOME: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/git",
    ".gitconfig",
    ".local/bin",
    ".cargo/config.toml",
    ".pam_environment",
    ".inputrc",
    ".vimrc",
    ".config/nvim",
];

/// Places in the home directory that are protected against being read as well.
const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".password-store",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".gem/credentials",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".oci",
    ".pgpass",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
];

/// What is wanted of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Change,
}

/// The protected places of a run.
#[derive(Debug, Clone, Default)]
pub struct Protected {
    home: Option<PathBuf>,
    /// Our own configuration and state, and where a `.git` file points.
    own: Vec<PathBuf>,
    /// Of those, what may not be read either.
    own_secrets: Vec<PathBuf>,
    /// Copies of files, which tell what rules about the files themselves close.
    copies: Vec<PathBuf>,
    /// The worktree that an agent works in. It lies beneath a protected name of ours and is not
    /// protected for that.
    worktree: Option<PathBuf>,
}

impl Protected {
    /// `own` are directories of this program; `secrets` hold credentials.
    pub fn new(
        home: Option<PathBuf>,
        own: impl IntoIterator<Item = PathBuf>,
        secrets: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let resolved = |path: PathBuf| path.canonicalize().unwrap_or(path);
        Self {
            home: home.map(resolved),
            own: own.into_iter().map(resolved).collect(),
            own_secrets: secrets.into_iter().map(resolved).collect(),
            copies: Vec::new(),
            worktree: None,
        }
    }

    /// The same where copies of files are kept in a directory.
    #[must_use]
    pub fn with_copies(mut self, directory: PathBuf) -> Self {
        let resolved = directory.canonicalize().unwrap_or(directory);
        self.copies.push(resolved);
        self
    }

    /// The same for whoever works in this worktree of ours.
    #[must_use]
    pub fn in_worktree(mut self, worktree: PathBuf) -> Self {
        self.worktree = Some(worktree);
        self
    }

    /// What of a path tells whether its name is protected.
    fn telling<'a>(&self, path: &'a Path) -> &'a Path {
        let worktree = self.worktree.as_deref();
        let within = worktree.and_then(|worktree| path.strip_prefix(worktree).ok());
        within.unwrap_or(path)
    }

    /// Adds the directory that a repository's `.git` file points to.
    pub fn add_git_directory(&mut self, repository: &Path) {
        let Ok(text) = std::fs::read_to_string(repository.join(".git")) else {
            return;
        };
        if let Some(target) = text.strip_prefix("gitdir:") {
            let target = repository.join(target.trim());
            self.own.push(target.canonicalize().unwrap_or(target));
        }
    }

    /// The name of the protected place that `path` lies in, as a rule has to spell it.
    pub fn name_of(&self, path: &Path, access: Access) -> Option<String> {
        let secret = self
            .in_home(path, SECRETS)
            .or_else(|| beneath(path, &self.own_secrets))
            .or_else(|| beneath(path, &self.copies));
        match access {
            Access::Read => secret,
            Access::Change => secret
                .or_else(|| named(self.telling(path)))
                .or_else(|| self.in_home(path, HOME))
                .or_else(|| beneath(path, &self.own))
                .or_else(|| virtual_environment(path)),
        }
    }

    /// The places that are protected against being read.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = PathBuf> {
        let home = self.home.iter();
        let in_home = home.flat_map(|home| SECRETS.iter().map(|place| home.join(place)));
        in_home.chain(self.own_secrets.iter().cloned())
    }

    pub(crate) fn keeps_copies_in(&self, directory: &Path) -> bool {
        self.copies.iter().any(|copies| directory == copies)
    }

    /// The places beneath which nothing is read.
    pub(crate) fn closed(&self) -> impl Iterator<Item = PathBuf> {
        self.secrets().chain(self.copies.iter().cloned())
    }

    fn in_home(&self, path: &Path, places: &[&str]) -> Option<String> {
        let rest = path.strip_prefix(self.home.as_deref()?).ok()?;
        // Every such place begins with a dot, and few others do. What is not ASCII may be folded
        // away before one.
        let first = *rest.as_os_str().as_encoded_bytes().first()?;
        if first.is_ascii() && first != b'.' {
            return None;
        }
        let rest = folded(rest);
        places
            .iter()
            .find(|place| rest == **place || rest.starts_with(&format!("{place}/")))
            .map(|place| (*place).to_owned())
    }
}

fn beneath(path: &Path, directories: &[PathBuf]) -> Option<String> {
    directories
        .iter()
        .find(|directory| path.starts_with(directory))
        .map(|directory| directory.display().to_string())
}

/// The protected name that stands somewhere in a path, by any spelling of it.
pub fn protected_name(path: &Path) -> Option<String> {
    named(path)
}

/// Whether a directory holds the programs of a Python environment, by what there is beside it.
pub fn is_environment_of_programs(directory: &Path, is_there: impl Fn(&Path) -> bool) -> bool {
    let Some(name) = directory.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let is_bin = name.eq_ignore_ascii_case("bin") || name.eq_ignore_ascii_case("scripts");
    let marker = directory.parent().map(|above| above.join("pyvenv.cfg"));
    is_bin && marker.is_some_and(|marker| is_there(&marker))
}

/// Where in a home directory credentials are kept.
pub fn credential_places() -> impl Iterator<Item = &'static str> {
    SECRETS.iter().copied()
}

/// What in a home directory only somebody who is not confined may change.
pub fn home_places() -> impl Iterator<Item = &'static str> {
    HOME.iter().chain(SECRETS).copied()
}

fn named(path: &Path) -> Option<String> {
    // Most names differ from all of them in the first letter.
    let could_be = |component: Component<'_>| match component {
        Component::Normal(name) => match name.as_encoded_bytes().first() {
            Some(first) if first.is_ascii() => {
                let begins =
                    |name: &&str| name.as_bytes().first() == Some(&first.to_ascii_lowercase());
                NAMES.iter().chain(PREFIXES).any(begins)
            }
            Some(_) | None => true,
        },
        _ => false,
    };
    if !path.components().any(could_be) {
        return None;
    }
    let path = format!("/{}/", folded(path));
    let by_name = NAMES
        .iter()
        .find(|name| path.contains(&format!("/{name}/")))
        .map(|name| (*name).to_owned());
    by_name.or_else(|| {
        path.split('/')
            .find(|component| PREFIXES.iter().any(|prefix| component.starts_with(prefix)))
            .map(str::to_owned)
    })
}

/// Programs of a Python environment: the directory above `bin` says that it is one.
fn virtual_environment(path: &Path) -> Option<String> {
    let found = path
        .ancestors()
        .find(|ancestor| is_environment_of_programs(ancestor, Path::is_file))?;
    let name = found.file_name().and_then(OsStr::to_str)?;
    Some(name.to_owned())
}

/// The path as the most forgiving filesystem would compare it: without case, and without
/// characters that cannot be seen.
fn folded(path: &Path) -> String {
    let components: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(fold(&name.to_string_lossy())),
            _ => None,
        })
        .collect();
    components.join("/")
}

pub(crate) fn fold(name: &str) -> String {
    let visible: String = name
        .chars()
        .filter(|letter| !is_ignorable(*letter))
        .collect();
    // Upper case first: some letters have a lower case only by way of it.
    visible
        .to_uppercase()
        .to_lowercase()
        .trim_end_matches(['.', ' '])
        .to_owned()
}

/// Characters that some filesystems ignore in names.
fn is_ignorable(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected() -> Protected {
        Protected {
            home: Some("/home/me".into()),
            own: vec!["/home/me/.config/caliban".into()],
            own_secrets: vec!["/home/me/.local/share/caliban/tokens".into()],
            copies: vec!["/home/me/.caliban/projects".into()],
            worktree: None,
        }
    }

    #[test]
    fn places_are_found_by_any_spelling() {
        let change = |path: &str| {
            protected()
                .name_of(Path::new(path), Access::Change)
                .is_some()
        };
        for path in [
            "/w/.git/config",
            "/w/.GIT/hooks/pre-commit",
            "/w/sub/.git",
            "/w/.g\u{200b}it/config",
            "/w/.git./config",
            "/w/CLAUDE.md",
            "/w/a/AGENTS.md",
            "/w/.github/workflows/ci.yml",
            "/w/.yarnrc.yml",
            "/w/.caliban/settings.toml",
            "/home/me/.ssh/config",
            "/home/me/.bashrc",
            "/home/me/.config/caliban/settings.toml",
            "/w/.husky",
            "/w/\u{212a}",
        ] {
            let expected = path != "/w/\u{212a}";
            assert_eq!(change(path), expected, "{path}");
        }
        for path in [
            "/w/src/git",
            "/w/.gitignore",
            "/w/x.git/y",
            "/w/.github/x",
            "/tmp/.bashrc",
        ] {
            assert!(!change(path), "{path}");
        }
    }

    #[test]
    fn a_worktree_of_ours_is_not_protected_for_where_it_lies() {
        let protected = protected().in_worktree("/w/.caliban/worktrees/x".into());
        let change = |path: &str| {
            let path = Path::new("/w/.caliban/worktrees").join(path);
            protected.name_of(&path, Access::Change).is_some()
        };
        assert!(!change("x/src/lib.rs"));
        for path in ["x/.git", "x/.caliban/settings.toml", "x/CLAUDE.md"] {
            assert!(change(path), "{path}");
        }
        // Those of others are.
        assert!(change("y/src/lib.rs") && change("../settings.toml"));
    }

    #[test]
    fn only_secrets_are_protected_against_reading() {
        let read = |path: &str| protected().name_of(Path::new(path), Access::Read).is_some();
        assert!(read("/home/me/.ssh/id_ed25519"));
        assert!(read("/home/me/.local/share/caliban/tokens/x"));
        assert!(read("/home/me/.caliban/projects/x/checkpoints"));
        assert!(!read("/w/.git/config"));
        assert!(!read("/w/CLAUDE.md"));
        assert!(!read("/home/me/.bashrc"));
    }

    #[test]
    fn a_virtual_environment_and_a_linked_git_directory_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("venv/bin")).unwrap();
        std::fs::write(root.join("venv/pyvenv.cfg"), "").unwrap();
        std::fs::create_dir_all(root.join("elsewhere")).unwrap();
        std::fs::write(root.join(".git"), "gitdir: elsewhere\n").unwrap();
        let mut protected = Protected::default();
        protected.add_git_directory(&root);
        let change = |path: &str| {
            protected
                .name_of(&root.join(path), Access::Change)
                .is_some()
        };
        assert!(change("venv/bin/python"));
        assert!(!change("venv/lib/x.py"));
        assert!(change("elsewhere/config"));
    }
}
