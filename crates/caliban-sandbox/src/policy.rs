//! What the settings say about the sandbox, read once into what cannot be wrong: paths are
//! absolute, lists that are there and empty grant nothing, and what cannot be understood is an
//! error.

use std::path::{Component, Path, PathBuf};

use caliban_settings::Sandbox as Settings;

use crate::outside::Outside;

/// Where a sandbox is set up.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// The workspace and the further directories of the session, links followed.
    pub roots: &'a [PathBuf],
    pub home: &'a Path,
    /// Directories of this program, which no confined program sees.
    pub own: &'a [PathBuf],
    /// The variables that settings may name.
    pub variables: &'a [(String, String)],
}

/// What confined programs may do. Nothing a program or the model says changes it.
#[derive(Debug, Clone)]
pub struct Policy {
    pub reading: Reading,
    /// Where they may write, links followed. The first is where the session works.
    pub roots: Vec<PathBuf>,
    /// Where the session works, which is seen even where it cannot be written.
    pub places: Vec<PathBuf>,
    /// `filesystem.deny_read`: need not exist yet.
    pub hidden: Vec<PathBuf>,
    /// `filesystem.deny_write`: need not exist yet.
    pub fixed: Vec<PathBuf>,
    pub network: Network,
    pub sockets: UnixSockets,
    pub binding: LocalBinding,
    pub mach_services: Vec<String>,
    /// Which commands run unconfined.
    pub outside: Outside,
    pub requirement: Requirement,
    pub strength: Strength,
    pub consent: Consent,
    pub bwrap: Option<PathBuf>,
    pub sandbox_exec: Option<PathBuf>,
    pub home: PathBuf,
    pub own: Vec<PathBuf>,
    /// What of our own is read all the same, links followed.
    pub shown: Vec<PathBuf>,
    /// The git directories of roots that are worktrees of a repository elsewhere.
    pub linked: Vec<LinkedGit>,
    /// What whoever set it should know.
    pub warnings: Vec<String>,
}

/// What may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The whole disk but for what is hidden.
    Everything,
    /// These places and what programs need to start.
    Only(Vec<PathBuf>),
}

/// Who can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    Closed,
    /// The hosts that the list names, by way of our proxy, which uses the operator's where there
    /// is one.
    Domains {
        allowed: Vec<String>,
        upstream: Option<u16>,
    },
    /// The operator's own proxy decides.
    Operator {
        port: u16,
    },
}

/// Whether programs reach sockets of programs outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixSockets {
    Masked,
    Visible,
}

/// Whether programs may bind ports that others on this machine reach. On Linux they can bind what
/// they want and nobody outside reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalBinding {
    Refused,
    Permitted,
}

/// What happens where there is no sandbox to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Nothing begins.
    Required,
    /// Commands run unconfined, which is said.
    Preferred,
}

/// How weak a sandbox may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    Full,
    /// `enable_weaker_nested_sandbox`: better than none.
    WeakerPermitted,
}

/// Whether commands that are confined need consent where only the defaults ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Asked,
    /// `auto_allow_bash_if_sandboxed`.
    Given,
}

/// The repository that a worktree belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedGit {
    /// The worktree's own directory in it.
    pub directory: PathBuf,
    /// What all worktrees share.
    pub common: PathBuf,
}

/// Why settings make no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error(
        "`sandbox.{key}`: `{value}` names the variable `{name}`, which is not set; write the path"
    )]
    Variable {
        key: &'static str,
        value: String,
        name: String,
    },
    #[error("`sandbox.{key}`: `{value}` is not closed by `}}`")]
    Unclosed { key: &'static str, value: String },
    #[error(
        "`sandbox.{key}`: `{value}` is not a place on the disk; name the directory or file itself, without wildcards"
    )]
    NoPath { key: &'static str, value: String },
    #[error("`sandbox.{key}`: `{value}` cannot be opened: {reason}; name a path that is there")]
    Missing {
        key: &'static str,
        value: String,
        reason: String,
    },
    #[error(
        "`sandbox.{key}`: `{value}` lies in the workspace and leads out of it by a link, to `{}`; name that path itself if it is meant",
        .to.display()
    )]
    LedOut {
        key: &'static str,
        value: String,
        to: PathBuf,
    },
    #[error(
        "the sandbox cannot confine commands that may write everywhere: `/` is a root; work in a directory of its own"
    )]
    WholeDisk,
    #[error("`sandbox.network.http_proxy_port`: {0} is not a port")]
    Port(u64),
}

impl Policy {
    /// Reads the `sandbox` table.
    pub fn new(settings: &Settings, place: &Surroundings<'_>) -> Result<Self, PolicyError> {
        let reader = Paths { place };
        let files = &settings.filesystem;
        let mut warnings = Vec::new();
        let reading = match &files.allow_read {
            None => Reading::Everything,
            Some(list) => Reading::Only(reader.existing("filesystem.allow_read", list)?),
        };
        let roots = match &files.allow_write {
            None => place.roots.to_vec(),
            Some(list) => reader.existing("filesystem.allow_write", list)?,
        };
        if roots.iter().any(|root| root == Path::new("/")) {
            return Err(PolicyError::WholeDisk);
        }
        let hidden = reader.denied("filesystem.deny_read", &files.deny_read, &mut warnings)?;
        let fixed = reader.denied("filesystem.deny_write", &files.deny_write, &mut warnings)?;
        let network = &settings.network;
        let linked = roots.iter().filter_map(|root| linked_git(root)).collect();
        Ok(Self {
            reading,
            hidden,
            fixed,
            network: reach(settings)?,
            sockets: match network.allow_unix_sockets {
                Some(true) => UnixSockets::Visible,
                Some(false) | None => UnixSockets::Masked,
            },
            binding: match network.allow_local_binding {
                Some(true) => LocalBinding::Permitted,
                Some(false) | None => LocalBinding::Refused,
            },
            mach_services: network.allow_mach_lookup.clone().unwrap_or_default(),
            outside: Outside::new(
                settings
                    .allow_unsandboxed_commands
                    .as_deref()
                    .unwrap_or_default(),
                &roots,
            ),
            requirement: match settings.fail_if_unavailable {
                Some(true) => Requirement::Required,
                Some(false) | None => Requirement::Preferred,
            },
            strength: match settings.enable_weaker_nested_sandbox {
                Some(true) => Strength::WeakerPermitted,
                Some(false) | None => Strength::Full,
            },
            consent: match settings.auto_allow_bash_if_sandboxed {
                Some(true) => Consent::Given,
                Some(false) | None => Consent::Asked,
            },
            bwrap: reader.program("bwrap_path", settings.bwrap_path.as_ref())?,
            sandbox_exec: reader
                .program("sandbox_exec_path", settings.sandbox_exec_path.as_ref())?,
            home: real(place.home),
            own: place.own.to_vec(),
            shown: Vec::new(),
            places: place.roots.to_vec(),
            roots,
            linked,
            warnings,
        })
    }

    /// What of our own is read, as far as the operator permits that.
    pub(crate) fn returned(&self) -> impl Iterator<Item = &PathBuf> {
        let is_in = |list: &[PathBuf], path: &Path| list.iter().any(|it| path.starts_with(it));
        self.shown.iter().filter(move |path| {
            let is_listed = match &self.reading {
                Reading::Everything => true,
                Reading::Only(list) => is_in(list, path),
            };
            is_listed && !is_in(&self.hidden, path)
        })
    }

    /// Why a file tool may not read a path whose links are followed, if so: the setting that says so.
    pub fn hides(&self, path: &Path) -> Option<&'static str> {
        let is_above = |hidden: &PathBuf| path.starts_with(real(hidden));
        let listed = self.hidden.iter().any(is_above);
        listed.then_some("sandbox.filesystem.deny_read")
    }

    /// The same for changing it.
    pub fn fixes(&self, path: &Path) -> Option<&'static str> {
        let is_above = |fixed: &PathBuf| path.starts_with(real(fixed));
        let listed = self.fixed.iter().any(is_above);
        let fixed = listed.then_some("sandbox.filesystem.deny_write");
        fixed.or_else(|| self.hides(path))
    }
}

/// The path with links followed as far as it exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            // Joining nothing would add a slash.
            return if rest.as_os_str().is_empty() {
                found
            } else {
                found.join(rest)
            };
        }
    }
    path.to_owned()
}

fn reach(settings: &Settings) -> Result<Network, PolicyError> {
    let network = &settings.network;
    let port = network
        .http_proxy_port
        .map(|port| u16::try_from(port).map_err(|_| PolicyError::Port(port)))
        .transpose()?;
    let allowed = network.allowed_domains.clone().unwrap_or_default();
    Ok(match (allowed.is_empty(), port) {
        (true, None) => Network::Closed,
        (true, Some(port)) => Network::Operator { port },
        (false, upstream) => Network::Domains { allowed, upstream },
    })
}

/// Reads paths of the settings.
struct Paths<'a> {
    place: &'a Surroundings<'a>,
}

impl Paths<'_> {
    /// What is granted must be there: a name that somebody else may make later is no grant. Nor is
    /// what a link in the workspace leads to, which whoever filled the workspace chose.
    fn existing(&self, key: &'static str, list: &[String]) -> Result<Vec<PathBuf>, PolicyError> {
        let paths = list.iter().map(|value| {
            let path = self.path(key, value)?;
            let found = path.canonicalize().map_err(|error| PolicyError::Missing {
                key,
                value: value.clone(),
                reason: error.to_string(),
            })?;
            let workspace = self.workspace();
            if path.starts_with(workspace) && !found.starts_with(real(workspace)) {
                return Err(PolicyError::LedOut {
                    key,
                    value: value.clone(),
                    to: found,
                });
            }
            Ok(found)
        });
        paths.collect()
    }

    fn denied(
        &self,
        key: &'static str,
        list: &[String],
        warnings: &mut Vec<String>,
    ) -> Result<Vec<PathBuf>, PolicyError> {
        let mut paths = Vec::new();
        for value in list {
            let path = self.path(key, value)?;
            if !path.exists() {
                warnings.push(format!(
                    "`sandbox.{key}`: `{value}` is not there; it is denied once it is"
                ));
            }
            paths.push(path);
        }
        Ok(paths)
    }

    fn program(
        &self,
        key: &'static str,
        value: Option<&String>,
    ) -> Result<Option<PathBuf>, PolicyError> {
        value.map(|value| self.path(key, value)).transpose()
    }

    /// One path: variables filled in, `~` expanded, relative to the workspace.
    fn path(&self, key: &'static str, value: &str) -> Result<PathBuf, PolicyError> {
        let filled = self.filled(key, value)?;
        let no_path = || PolicyError::NoPath {
            key,
            value: value.to_owned(),
        };
        if filled.is_empty() || filled.contains(['*', '?', '\0']) {
            return Err(no_path());
        }
        let path = match filled.strip_prefix('~') {
            Some("") => self.place.home.to_owned(),
            Some(rest) if rest.starts_with('/') => self.place.home.join(&rest[1..]),
            Some(_) | None => self.workspace().join(&filled),
        };
        // What `..` means depends on links that may change.
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(no_path());
        }
        Ok(path)
    }

    fn workspace(&self) -> &Path {
        self.place
            .roots
            .first()
            .map_or(self.place.home, PathBuf::as_path)
    }

    fn filled(&self, key: &'static str, value: &str) -> Result<String, PolicyError> {
        let mut filled = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or_else(|| PolicyError::Unclosed {
                key,
                value: value.to_owned(),
            })?;
            filled.push_str(before);
            filled.push_str(&self.variable(name).ok_or_else(|| PolicyError::Variable {
                key,
                value: value.to_owned(),
                name: name.to_owned(),
            })?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// The workspace, the home, and the places of the XDG specification with their defaults.
    fn variable(&self, name: &str) -> Option<String> {
        let in_home = |path: &str| Some(self.place.home.join(path).display().to_string());
        match name {
            "WORKSPACE" => return Some(self.workspace().display().to_string()),
            "HOME" => return Some(self.place.home.display().to_string()),
            _ => {}
        }
        let mut set = self.place.variables.iter();
        let set = set.find(|(known, value)| known == name && !value.is_empty());
        set.map(|(_, value)| value.clone()).or_else(|| match name {
            "XDG_CONFIG_HOME" => in_home(".config"),
            "XDG_DATA_HOME" => in_home(".local/share"),
            "XDG_STATE_HOME" => in_home(".local/state"),
            "XDG_CACHE_HOME" => in_home(".cache"),
            _ => None,
        })
    }
}

/// The repository of a root whose `.git` is a file. It is believed only where the repository says
/// the same of the root: the file alone could name any directory.
fn linked_git(root: &Path) -> Option<LinkedGit> {
    let file = root.join(".git");
    if !file.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let text = std::fs::read_to_string(&file).ok()?;
    let directory = root.join(text.strip_prefix("gitdir:")?.trim());
    let directory = directory.canonicalize().ok()?;
    if is_module_of(&directory, root) {
        return Some(LinkedGit {
            common: directory.clone(),
            directory,
        });
    }
    let back = std::fs::read_to_string(directory.join("gitdir")).ok()?;
    if directory.join(back.trim()).canonicalize().ok()? != file.canonicalize().ok()? {
        return None;
    }
    let common = std::fs::read_to_string(directory.join("commondir")).ok()?;
    let common = directory.join(common.trim()).canonicalize().ok()?;
    let is_one = directory.parent()? == common.join("worktrees");
    is_one.then_some(LinkedGit { directory, common })
}

/// Whether a git directory is a submodule's that says of itself that it is checked out here.
fn is_module_of(directory: &Path, root: &Path) -> bool {
    let Ok(config) = std::fs::read_to_string(directory.join("config")) else {
        return false;
    };
    let mut section = "";
    let mut worktree = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section.eq_ignore_ascii_case("[core]")
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("worktree")
        {
            worktree = Some(value.trim());
        }
    }
    let checked_out = worktree.map(|worktree| directory.join(worktree));
    let real = |path: PathBuf| path.canonicalize().ok();
    checked_out
        .and_then(real)
        .is_some_and(|path| Some(path) == real(root.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn policy(toml: &str) -> Result<Policy, PolicyError> {
        let settings: Settings = toml_settings(toml);
        Policy::new(
            &settings,
            &Surroundings {
                roots: &["/usr".into()],
                home: Path::new("/etc"),
                own: &[],
                variables: &[("XDG_DATA_HOME".into(), "/usr/share".into())],
            },
        )
    }

    fn toml_settings(text: &str) -> Settings {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn nothing_set_is_the_strictest_that_is_usable() {
        let policy = policy("{}").unwrap();
        assert_eq!(policy.reading, Reading::Everything);
        assert_eq!(policy.roots, [Path::new("/usr")]);
        assert_eq!(policy.network, Network::Closed);
        assert_eq!(policy.sockets, UnixSockets::Masked);
        assert_eq!(policy.requirement, Requirement::Preferred);
        assert_eq!(policy.strength, Strength::Full);
        assert_eq!(policy.consent, Consent::Asked);
    }

    #[test]
    fn an_empty_list_grants_nothing() {
        let policy = policy(r#"{"filesystem": {"allow_read": [], "allow_write": []}, "network": {"allowed_domains": []}}"#).unwrap();
        assert_eq!(policy.reading, Reading::Only(Vec::new()));
        assert_eq!(policy.roots, Vec::<PathBuf>::new());
        assert_eq!(policy.network, Network::Closed);
    }

    #[rstest]
    #[case("${WORKSPACE}/bin", "/usr/bin")]
    #[case("bin", "/usr/bin")]
    #[case("${HOME}", "/etc")]
    #[case("~", "/etc")]
    #[case("~/ssl", "/etc/ssl")]
    #[case("${XDG_DATA_HOME}/doc", "/usr/share/doc")]
    #[case("${XDG_CONFIG_HOME}/x", "/etc/.config/x")]
    fn paths_are_filled_in(#[case] written: &str, #[case] expected: &str) {
        let json = serde_json::json!({"filesystem": {"deny_read": [written]}});
        let policy = policy(&json.to_string()).unwrap();
        assert_eq!(policy.hidden, [Path::new(expected)]);
    }

    #[rstest]
    #[case::an_unknown_variable("deny_read", "${NOBODY}/x")]
    #[case::an_open_brace("deny_read", "${HOME/x")]
    #[case::a_wildcard("deny_write", "src/*")]
    #[case::nothing("deny_write", "")]
    #[case::upwards("allow_write", "../x")]
    #[case::not_there("allow_write", "/no/such/place")]
    #[case::not_there_either("allow_read", "/no/such/place")]
    #[case::everything("allow_write", "/")]
    fn what_is_no_place_is_an_error(#[case] key: &str, #[case] value: &str) {
        let json = serde_json::json!({"filesystem": {key: [value]}});
        assert!(policy(&json.to_string()).is_err());
    }

    #[test]
    fn no_link_of_the_workspace_grants_what_lies_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = root.join("w");
        std::fs::create_dir_all(workspace.join("inside")).unwrap();
        std::os::unix::fs::symlink("..", workspace.join("out")).unwrap();
        std::os::unix::fs::symlink("inside", workspace.join("within")).unwrap();
        let granted = |list: &str, path: &str| {
            let json = serde_json::json!({"filesystem": {list: [path]}});
            let settings = toml_settings(&json.to_string());
            let surroundings = Surroundings {
                roots: std::slice::from_ref(&workspace),
                home: Path::new("/etc"),
                own: &[],
                variables: &[],
            };
            Policy::new(&settings, &surroundings)
        };
        for list in ["allow_write", "allow_read"] {
            let led_out = granted(list, "${WORKSPACE}/out").unwrap_err();
            assert!(matches!(led_out, PolicyError::LedOut { .. }), "{led_out}");
            assert!(granted(list, "out").is_err());
            assert!(granted(list, "${WORKSPACE}/within").is_ok());
            assert!(granted(list, &root.display().to_string()).is_ok());
        }
    }

    #[test]
    fn what_is_denied_and_missing_is_told_and_kept() {
        let policy = policy(r#"{"filesystem": {"deny_read": ["/no/such/place"]}}"#).unwrap();
        assert_eq!(policy.hidden, [Path::new("/no/such/place")]);
        assert_eq!(policy.warnings.len(), 1);
        assert!(policy.hides(Path::new("/no/such/place/below")).is_some());
        assert!(policy.hides(Path::new("/no/such/places")).is_none());
    }

    #[test]
    fn who_is_reached_depends_on_both_keys() {
        let reached = |network: &str| {
            policy(&format!(r#"{{"network": {network}}}"#))
                .unwrap()
                .network
        };
        let operator = Network::Operator { port: 8888 };
        assert_eq!(reached(r#"{"http_proxy_port": 8888}"#), operator);
        assert_eq!(
            reached(r#"{"http_proxy_port": 8888, "allowed_domains": ["a.b"]}"#),
            Network::Domains {
                allowed: vec!["a.b".into()],
                upstream: Some(8888)
            }
        );
    }

    #[test]
    fn a_worktree_is_one_only_where_its_repository_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (tree, git) = (root.join("tree"), root.join("main/.git"));
        let entry = git.join("worktrees/tree");
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir_all(&entry).unwrap();
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        std::fs::write(entry.join("commondir"), "../..\n").unwrap();
        let back = |text: String| std::fs::write(entry.join("gitdir"), text).unwrap();
        back(format!("{}\n", tree.join(".git").display()));
        let linked = LinkedGit {
            directory: entry.clone(),
            common: git,
        };
        assert_eq!(linked_git(&tree), Some(linked));
        back(format!("{}\n", root.join("other/.git").display()));
        assert_eq!(linked_git(&tree), None);
        std::fs::remove_file(entry.join("gitdir")).unwrap();
        assert_eq!(linked_git(&tree), None);
    }
}
