//! Every file and directory caliban uses, for each platform, from one place. Nothing here reads
//! the real environment: the platform, the home and the variables are given.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::scope::Scope;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    /// The platform this program was built for; systems that are neither macOS nor Windows
    /// follow the Linux conventions.
    pub fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }

    fn separator(self) -> &'static str {
        match self {
            Self::Linux | Self::MacOs => "/",
            Self::Windows => "\\",
        }
    }

    fn is_absolute(self, path: &str) -> bool {
        match self {
            Self::Linux | Self::MacOs => path.starts_with('/'),
            Self::Windows => path.starts_with(r"\\") || path.get(1..3) == Some(r":\"),
        }
    }
}

/// The settings files of one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeFiles {
    pub toml: PathBuf,
    pub json: PathBuf,
}

/// The single-purpose files that preceded `settings.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyFiles {
    pub permissions: PathBuf,
    pub mcp: PathBuf,
    pub hooks: PathBuf,
}

/// Where things are. Paths below a workspace take it as an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations {
    platform: Platform,
    home: PathBuf,
    config: PathBuf,
    data: PathBuf,
    state: PathBuf,
    cache: PathBuf,
    runtime: PathBuf,
    managed: PathBuf,
    plugins: Option<PathBuf>,
    memory: Option<PathBuf>,
    checkpoints: Option<PathBuf>,
}

impl Locations {
    /// Resolves the directories. `variable` reads the environment; an empty value and a relative
    /// path count as unset, because they would mean another place in every directory.
    pub fn new(
        platform: Platform,
        home: impl Into<PathBuf>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let home = home.into();
        let absolute = |name: &str| {
            variable(name)
                .filter(|path| platform.is_absolute(path))
                .map(PathBuf::from)
        };
        let under = |base: &Path, parts: &[&str]| join(platform, base, parts);
        // Only Linux follows the XDG convention; elsewhere those variables mean nothing.
        let xdg = |name: &str, default: &[&str]| {
            let base = absolute(name).unwrap_or_else(|| under(&home, default));
            under(&base, &["caliban"])
        };
        let (config, data, state, cache) = match platform {
            Platform::Linux => (
                xdg("XDG_CONFIG_HOME", &[".config"]),
                xdg("XDG_DATA_HOME", &[".local", "share"]),
                xdg("XDG_STATE_HOME", &[".local", "state"]),
                xdg("XDG_CACHE_HOME", &[".cache"]),
            ),
            Platform::MacOs => {
                let support = under(&home, &["Library", "Application Support", "caliban"]);
                let cache = under(&home, &["Library", "Caches", "caliban"]);
                (support.clone(), support.clone(), support, cache)
            }
            Platform::Windows => {
                let roaming =
                    absolute("APPDATA").unwrap_or_else(|| under(&home, &["AppData", "Roaming"]));
                let local =
                    absolute("LOCALAPPDATA").unwrap_or_else(|| under(&home, &["AppData", "Local"]));
                let data = under(&local, &["caliban"]);
                let cache = under(&data, &["cache", "caliban"]);
                (under(&roaming, &["caliban"]), data.clone(), data, cache)
            }
        };
        let runtime_home = match platform {
            Platform::Linux | Platform::MacOs => absolute("XDG_RUNTIME_DIR"),
            Platform::Windows => None,
        };
        let runtime = absolute("CALIBAN_DAEMON_RUNTIME_DIR")
            .or_else(|| runtime_home.map(|base| under(&base, &["caliban"])))
            .unwrap_or_else(|| under(&data, &["run"]));
        let managed = PathBuf::from(match platform {
            Platform::Linux => "/etc/caliban",
            Platform::MacOs => "/Library/Application Support/Caliban",
            Platform::Windows => r"C:\ProgramData\Caliban",
        });
        Self {
            platform,
            config,
            data,
            state,
            cache,
            runtime,
            managed,
            plugins: absolute("CALIBAN_PLUGIN_ROOT"),
            memory: absolute("CALIBAN_AUTO_MEMORY_DIRECTORY")
                .or_else(|| absolute("CALIBAN_MEMORY_DIR")),
            checkpoints: absolute("CALIBAN_CHECKPOINT_ROOT"),
            home,
        }
    }

    /// The same places with another managed directory. No variable can do this: whoever starts
    /// the program must not be able to leave the operator's policy behind.
    #[must_use]
    pub fn with_managed_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.managed = directory.into();
        self
    }

    pub fn platform(&self) -> Platform {
        self.platform
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn config_dir(&self) -> &Path {
        &self.config
    }

    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    pub fn state_dir(&self) -> &Path {
        &self.state
    }

    pub fn cache_dir(&self) -> &Path {
        &self.cache
    }

    /// The operator's directory; read, never written.
    pub fn managed_dir(&self) -> &Path {
        &self.managed
    }

    /// Sockets of the daemon.
    pub fn runtime_dir(&self) -> &Path {
        &self.runtime
    }

    /// The settings files of a scope; the overlay has none.
    pub fn settings(&self, scope: Scope, workspace: &Path) -> Option<ScopeFiles> {
        let (directory, stem) = match scope {
            Scope::Managed => (self.managed.clone(), "managed-settings"),
            Scope::User => (self.config.clone(), "settings"),
            Scope::Project => (self.project_dir(workspace), "settings"),
            Scope::Local => (self.project_dir(workspace), "settings.local"),
            Scope::Cli => return None,
        };
        Some(ScopeFiles {
            toml: self.under(&directory, &[&format!("{stem}.toml")]),
            json: self.under(&directory, &[&format!("{stem}.json")]),
        })
    }

    /// The single-purpose files of a scope, where it has any.
    pub fn legacy(&self, scope: Scope, workspace: &Path) -> Option<LegacyFiles> {
        let directory = match scope {
            Scope::User => self.config.clone(),
            Scope::Project => self.project_dir(workspace),
            Scope::Managed | Scope::Local | Scope::Cli => return None,
        };
        Some(LegacyFiles {
            permissions: self.under(&directory, &["permissions.toml"]),
            mcp: self.under(&directory, &["mcp.toml"]),
            hooks: self.under(&directory, &["hooks.toml"]),
        })
    }

    /// `.caliban` of a workspace.
    pub fn project_dir(&self, workspace: &Path) -> PathBuf {
        self.under(workspace, &[".caliban"])
    }

    /// The user's `caliban.toml`.
    pub fn user_router_file(&self) -> PathBuf {
        self.under(&self.config, &["caliban.toml"])
    }

    /// Where processes tell each other of routes that do not work.
    pub fn router_state(&self) -> PathBuf {
        self.under(&self.state, &["router"])
    }

    pub fn sessions(&self) -> PathBuf {
        self.under(&self.data, &["sessions"])
    }

    /// The state of all projects: checkpoints and input history.
    pub fn checkpoints_root(&self) -> PathBuf {
        self.checkpoints
            .clone()
            .unwrap_or_else(|| self.under(&self.home, &[".caliban", "projects"]))
    }

    /// The state of one project, keyed by the digest of its canonical path.
    pub fn project_state(&self, workspace: &Path) -> PathBuf {
        self.under(&self.checkpoints_root(), &[&path_key(workspace)])
    }

    pub fn checkpoints(&self, workspace: &Path) -> PathBuf {
        self.under(&self.project_state(workspace), &["checkpoints"])
    }

    pub fn input_history(&self, workspace: &Path) -> PathBuf {
        self.under(&self.project_state(workspace), &["input-history.txt"])
    }

    /// What servers of sessions keep: their tokens, and which requests there were.
    pub fn serve(&self) -> PathBuf {
        join(self.platform, &self.state, &["serve"])
    }

    pub fn debug_log(&self) -> PathBuf {
        self.under(&self.cache, &["debug.log"])
    }

    /// The log of permission decisions.
    pub fn audit_log(&self) -> PathBuf {
        self.under(&self.state, &["permission-decisions.jsonl"])
    }

    /// The directories skills are found in, in the order they are searched.
    pub fn skills(&self, workspace: &Path) -> Vec<PathBuf> {
        let mut roots = vec![
            self.under(&self.project_dir(workspace), &["skills"]),
            self.under(&self.config, &["skills"]),
            self.under(&self.data, &["skills"]),
        ];
        roots.dedup();
        roots
    }

    pub fn project_plugins(&self, workspace: &Path) -> PathBuf {
        self.under(&self.project_dir(workspace), &["plugins"])
    }

    pub fn user_plugins(&self) -> PathBuf {
        self.plugins
            .clone()
            .unwrap_or_else(|| self.under(&self.data, &["plugins"]))
    }

    pub fn managed_plugins(&self) -> PathBuf {
        self.under(&self.managed, &["plugins"])
    }

    /// Which plugins have been acknowledged.
    pub fn plugin_trust(&self) -> PathBuf {
        self.under(&self.data, &["trust", "plugins.json"])
    }

    /// Which workspaces have been trusted.
    pub fn workspace_trust(&self) -> PathBuf {
        self.under(&self.data, &["trust", "workspaces.json"])
    }

    pub fn marketplaces_allowlist(&self) -> PathBuf {
        self.under(&self.home, &[".caliban", "marketplaces-allowlist.json"])
    }

    /// Imports from outside a workspace that have been approved.
    pub fn imports_allowlist(&self) -> PathBuf {
        self.under(&self.home, &[".caliban", "imports-allowlist.json"])
    }

    /// Keys of providers that were given at the screen, where the system has no keyring.
    pub fn provider_keys(&self) -> PathBuf {
        self.under(&self.data, &["provider-keys.json"])
    }

    /// OAuth tokens of MCP servers, where the system has no keyring.
    pub fn mcp_tokens(&self) -> PathBuf {
        self.under(&self.data, &["mcp-tokens.json"])
    }

    /// What the writers of settings files take turns by.
    pub fn settings_locks(&self) -> PathBuf {
        self.under(&self.state, &["settings-locks"])
    }

    /// What keeps processes from renewing the same token.
    pub fn mcp_locks(&self) -> PathBuf {
        self.under(&self.data, &["mcp-locks"])
    }

    pub fn project_output_styles(&self, workspace: &Path) -> PathBuf {
        self.under(&self.project_dir(workspace), &["output-styles"])
    }

    pub fn user_output_styles(&self) -> PathBuf {
        self.under(&self.config, &["output-styles"])
    }

    /// Rules that count for some paths of a workspace.
    pub fn project_rules(&self, workspace: &Path) -> PathBuf {
        self.under(&self.project_dir(workspace), &["rules"])
    }

    /// The user's instructions for every project.
    pub fn user_instructions(&self) -> PathBuf {
        self.under(&self.config, &["CLAUDE.md"])
    }

    /// The agent's notes on a workspace, under its path with other separators. Two workspaces can
    /// come to one name; the second has its notes [apart](Self::auto_memory_apart).
    pub fn auto_memory(&self, workspace: &Path) -> PathBuf {
        let named = || match slug(workspace) {
            Some(name) => self.under(&self.data, &["projects", &name, "memory"]),
            None => self.auto_memory_apart(workspace),
        };
        self.memory.clone().unwrap_or_else(named)
    }

    /// Where the notes on a workspace are if its name is another's, or too long: under a digest
    /// of its path, which no two share.
    pub fn auto_memory_apart(&self, workspace: &Path) -> PathBuf {
        let name = path_key(workspace);
        self.under(&self.data, &["projects", &name, "memory"])
    }

    /// Tool results too long for the conversation, for all sessions.
    pub fn spill_root(&self) -> PathBuf {
        self.under(&self.cache, &["tool-overflows"])
    }

    /// As [`Self::spill_root`] for one session, whose id must be a plain name.
    pub fn spill(&self, session: &str) -> PathBuf {
        self.under(&self.spill_root(), &[session])
    }

    /// Generated sandbox profiles.
    pub fn sandbox_profiles(&self) -> PathBuf {
        self.under(&self.runtime, &["sandbox"])
    }

    pub fn worktrees(&self, repository: &Path) -> PathBuf {
        self.under(&self.project_dir(repository), &["worktrees"])
    }

    fn under(&self, base: &Path, parts: &[&str]) -> PathBuf {
        join(self.platform, base, parts)
    }
}

/// Joins with the separator of the platform that is described, which may not be this one.
fn join(platform: Platform, base: &Path, parts: &[&str]) -> PathBuf {
    let mut path = OsString::from(base);
    for part in parts {
        if !path
            .as_encoded_bytes()
            .ends_with(platform.separator().as_bytes())
        {
            path.push(platform.separator());
        }
        path.push(part);
    }
    PathBuf::from(path)
}

/// The first 16 hexadecimal digits of a path's SHA-256. The path should be canonical.
fn path_key(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    hex(&digest[..8])
}

/// The longest name of a directory that is made of a path, in bytes; file systems take 255.
const MAX_SLUG: usize = 200;

/// A path as one name: its separators replaced, none at its ends. None for one that is too long.
fn slug(path: &Path) -> Option<String> {
    let name = path.to_string_lossy().replace(['/', '\\', ':'], "-");
    let name = name.trim_matches('-');
    (!name.is_empty() && name.len() <= MAX_SLUG).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    fn shown(path: &Path) -> String {
        path.to_str().unwrap().to_owned()
    }

    #[rstest]
    #[case::linux(Platform::Linux, "/home/u", "/w", [
        "/etc/caliban/managed-settings.toml",
        "/home/u/.config/caliban/settings.toml",
        "/w/.caliban/settings.json",
        "/w/.caliban/settings.local.toml",
        "/home/u/.config/caliban/hooks.toml",
        "/w/.caliban/permissions.toml",
        "/home/u/.local/share/caliban/sessions",
        "/home/u/.cache/caliban/debug.log",
        "/home/u/.local/state/caliban/permission-decisions.jsonl",
        "/home/u/.local/share/caliban/plugins",
        "/home/u/.local/share/caliban/trust/workspaces.json",
        "/home/u/.local/share/caliban/trust/plugins.json",
        "/home/u/.caliban/marketplaces-allowlist.json",
        "/home/u/.config/caliban/caliban.toml",
        "/home/u/.config/caliban/output-styles",
        "/home/u/.cache/caliban/tool-overflows/s",
        "/home/u/.local/share/caliban/run",
        "/w/.caliban/worktrees",
        "/etc/caliban/plugins",
        "/home/u/.config/caliban/CLAUDE.md",
    ])]
    #[case::macos(Platform::MacOs, "/Users/u", "/w", [
        "/Library/Application Support/Caliban/managed-settings.toml",
        "/Users/u/Library/Application Support/caliban/settings.toml",
        "/w/.caliban/settings.json",
        "/w/.caliban/settings.local.toml",
        "/Users/u/Library/Application Support/caliban/hooks.toml",
        "/w/.caliban/permissions.toml",
        "/Users/u/Library/Application Support/caliban/sessions",
        "/Users/u/Library/Caches/caliban/debug.log",
        "/Users/u/Library/Application Support/caliban/permission-decisions.jsonl",
        "/Users/u/Library/Application Support/caliban/plugins",
        "/Users/u/Library/Application Support/caliban/trust/workspaces.json",
        "/Users/u/Library/Application Support/caliban/trust/plugins.json",
        "/Users/u/.caliban/marketplaces-allowlist.json",
        "/Users/u/Library/Application Support/caliban/caliban.toml",
        "/Users/u/Library/Application Support/caliban/output-styles",
        "/Users/u/Library/Caches/caliban/tool-overflows/s",
        "/Users/u/Library/Application Support/caliban/run",
        "/w/.caliban/worktrees",
        "/Library/Application Support/Caliban/plugins",
        "/Users/u/Library/Application Support/caliban/CLAUDE.md",
    ])]
    #[case::windows(Platform::Windows, r"C:\Users\u", r"D:\w", [
        r"C:\ProgramData\Caliban\managed-settings.toml",
        r"C:\Users\u\AppData\Roaming\caliban\settings.toml",
        r"D:\w\.caliban\settings.json",
        r"D:\w\.caliban\settings.local.toml",
        r"C:\Users\u\AppData\Roaming\caliban\hooks.toml",
        r"D:\w\.caliban\permissions.toml",
        r"C:\Users\u\AppData\Local\caliban\sessions",
        r"C:\Users\u\AppData\Local\caliban\cache\caliban\debug.log",
        r"C:\Users\u\AppData\Local\caliban\permission-decisions.jsonl",
        r"C:\Users\u\AppData\Local\caliban\plugins",
        r"C:\Users\u\AppData\Local\caliban\trust\workspaces.json",
        r"C:\Users\u\AppData\Local\caliban\trust\plugins.json",
        r"C:\Users\u\.caliban\marketplaces-allowlist.json",
        r"C:\Users\u\AppData\Roaming\caliban\caliban.toml",
        r"C:\Users\u\AppData\Roaming\caliban\output-styles",
        r"C:\Users\u\AppData\Local\caliban\cache\caliban\tool-overflows\s",
        r"C:\Users\u\AppData\Local\caliban\run",
        r"D:\w\.caliban\worktrees",
        r"C:\ProgramData\Caliban\plugins",
        r"C:\Users\u\AppData\Roaming\caliban\CLAUDE.md",
    ])]
    fn the_documented_paths(
        #[case] platform: Platform,
        #[case] home: &str,
        #[case] workspace: &str,
        #[case] expected: [&str; 20],
    ) {
        let places = Locations::new(platform, home, &none);
        let workspace = Path::new(workspace);
        let settings = |scope| places.settings(scope, workspace).unwrap();
        let legacy = |scope| places.legacy(scope, workspace).unwrap();
        let actual = [
            settings(Scope::Managed).toml,
            settings(Scope::User).toml,
            settings(Scope::Project).json,
            settings(Scope::Local).toml,
            legacy(Scope::User).hooks,
            legacy(Scope::Project).permissions,
            places.sessions(),
            places.debug_log(),
            places.audit_log(),
            places.user_plugins(),
            places.workspace_trust(),
            places.plugin_trust(),
            places.marketplaces_allowlist(),
            places.user_router_file(),
            places.user_output_styles(),
            places.spill("s"),
            places.runtime_dir().to_owned(),
            places.worktrees(workspace),
            places.managed_plugins(),
            places.user_instructions(),
        ];
        assert_eq!(actual.map(|path| shown(&path)), expected);
    }

    #[test]
    fn xdg_variables_count_on_linux_when_absolute() {
        let variable = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/c".to_owned()),
            "XDG_DATA_HOME" => Some("relative".to_owned()),
            "XDG_CACHE_HOME" => Some(String::new()),
            "XDG_RUNTIME_DIR" => Some("/run/user/1".to_owned()),
            _ => None,
        };
        let linux = Locations::new(Platform::Linux, "/h", &variable);
        assert_eq!(shown(linux.config_dir()), "/c/caliban");
        assert_eq!(shown(linux.data_dir()), "/h/.local/share/caliban");
        assert_eq!(shown(linux.cache_dir()), "/h/.cache/caliban");
        assert_eq!(shown(linux.runtime_dir()), "/run/user/1/caliban");
        let mac = Locations::new(Platform::MacOs, "/h", &variable);
        assert_eq!(
            shown(mac.config_dir()),
            "/h/Library/Application Support/caliban"
        );
        assert_eq!(shown(mac.runtime_dir()), "/run/user/1/caliban");
    }

    #[test]
    fn variables_move_single_places_but_never_the_managed_one() {
        let variable = |name: &str| Some(format!("/moved/{name}"));
        let places = Locations::new(Platform::Linux, "/h", &variable);
        assert_eq!(
            shown(&places.checkpoints_root()),
            "/moved/CALIBAN_CHECKPOINT_ROOT"
        );
        assert_eq!(shown(&places.user_plugins()), "/moved/CALIBAN_PLUGIN_ROOT");
        assert_eq!(
            shown(places.runtime_dir()),
            "/moved/CALIBAN_DAEMON_RUNTIME_DIR"
        );
        assert_eq!(
            shown(&places.auto_memory(Path::new("/w"))),
            "/moved/CALIBAN_AUTO_MEMORY_DIRECTORY"
        );
        assert_eq!(shown(places.managed_dir()), "/etc/caliban");
        let moved = places.with_managed_dir("/t");
        assert_eq!(shown(&moved.managed_plugins()), "/t/plugins");
    }

    #[test]
    fn workspaces_never_share_their_state() {
        let places = Locations::new(Platform::Linux, "/h", &none);
        let (one, two) = (Path::new("/a/b-c"), Path::new("/a-b/c"));
        assert_ne!(places.auto_memory_apart(one), places.auto_memory_apart(two));
        assert_ne!(places.checkpoints(one), places.checkpoints(two));
        let state = places.project_state(one);
        assert_eq!(state.file_name().unwrap().len(), 16);
        assert_eq!(state.parent().unwrap(), Path::new("/h/.caliban/projects"));
    }
    #[test]
    fn notes_are_under_the_path_of_their_workspace() {
        let places = Locations::new(Platform::Linux, "/h", &none);
        let memory = |workspace: &str| shown(&places.auto_memory(Path::new(workspace)));
        let projects = "/h/.local/share/caliban/projects";
        assert_eq!(
            memory("/Users/jf/dev/caliban"),
            format!("{projects}/Users-jf-dev-caliban/memory")
        );
        assert_eq!(memory("/a b/ü.x"), format!("{projects}/a b-ü.x/memory"));
        for unnamed in ["/".to_owned(), format!("/{}", "x".repeat(300))] {
            let apart = places.auto_memory_apart(Path::new(&unnamed));
            assert_eq!(memory(&unnamed), shown(&apart));
        }
    }
}
