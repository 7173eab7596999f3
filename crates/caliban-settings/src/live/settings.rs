//! The settings of a running program, swapped as a whole.

#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use serde_json::{Value, json};

use super::difference::{Loosening, changed_keys, loosened_keys, loosens, root};
use super::holding::hold;
use super::watcher::settings_files;
use crate::document::{Node, Table};
use crate::error::SettingsError;
use crate::load::{LoadRequest, combine, load};
use crate::policy::Trust;
use crate::scope::Scope;
use crate::snapshot::LoadedSettings;

/// Keys that are read at the start only.
const RESTART_REQUIRED: [&str; 6] = [
    "model",
    "fallback_model",
    "mcp_servers",
    "output_style",
    "auto_compact_threshold",
    "micro_compact_enabled",
];

/// Keys that a running session and its face follow.
const LIVE: [&str; 17] = [
    "permissions.allow",
    "permissions.ask",
    "permissions.deny",
    "permissions.rules",
    "hooks",
    "disable_all_hooks",
    "allow_managed_hooks_only",
    "allowed_http_hook_urls",
    "http_hook_allowed_env_vars",
    "env",
    "api_key_helper",
    "additional_directories",
    "claude_md_excludes",
    "editor_mode",
    "view_mode",
    "statusLine",
    "tui",
];

/// When another value of a key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesEffect {
    AtOnce,
    /// With the next start of the program.
    NextStart,
}

/// When another value of a dotted key counts.
pub fn takes_effect(key: &str) -> TakesEffect {
    let is_followed = |followed: &&str| {
        let rest = key.strip_prefix(*followed);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if LIVE.iter().any(is_followed) {
        TakesEffect::AtOnce
    } else {
        TakesEffect::NextStart
    }
}

/// Whether somebody agreed to what the workspace's files loosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Withheld,
    Given,
}

/// What a reload changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The dotted keys whose effective value is another.
    pub keys: Vec<String>,
    /// Those of them that take effect with the next start.
    pub restart_required: Vec<String>,
    /// What the workspace's files would loosen and which waits for consent.
    pub held: Vec<Loosening>,
}

/// How a reload ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    Unchanged,
    Applied(Change),
    /// The files cannot be used; the settings are what they were.
    Failed(SettingsError),
}

/// Settings that can be read at any time and are replaced as a whole. A reader that looks twice
/// may see two versions; one that needs a single version keeps what [`Self::load`] returned.
#[derive(Debug)]
pub struct LiveSettings {
    request: LoadRequest,
    current: ArcSwap<LoadedSettings>,
    /// What was held back last; also keeps reloads apart.
    held: Mutex<Vec<Loosening>>,
    /// How the files looked when they were read.
    stamps: Mutex<Vec<Option<Stamp>>>,
    /// Where they are, or would be.
    paths: Vec<PathBuf>,
}

/// What a file looks like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    inode: u64,
    /// When anything of it changed, which nobody can set.
    #[cfg(unix)]
    touched: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        Some(Self {
            changed: metadata.modified().ok(),
            length: metadata.len(),
            #[cfg(unix)]
            inode: metadata.ino(),
            #[cfg(unix)]
            touched: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl LiveSettings {
    /// Starts from what `request` has loaded.
    pub fn new(request: LoadRequest, loaded: LoadedSettings) -> Self {
        let paths: Vec<PathBuf> = settings_files(&request).into_iter().collect();
        let stamps = stamps(&paths);
        Self {
            paths,
            request,
            current: ArcSwap::from_pointee(loaded),
            held: Mutex::default(),
            stamps: Mutex::new(stamps),
        }
    }

    /// Whether a file looks otherwise than when it was last asked; costs a few looks at the disk.
    pub fn look_changed(&self) -> bool {
        let now = stamps(&self.paths);
        let mut seen = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *seen, now.clone()) != now
    }

    /// The settings of this moment.
    pub fn load(&self) -> Arc<LoadedSettings> {
        self.current.load_full()
    }

    pub fn request(&self) -> &LoadRequest {
        &self.request
    }

    /// Lets the operator write settings and takes over what was written; nobody reads it in
    /// between. Where somebody else has changed a file, or something is held back already, it is
    /// only written: consent to one change is none to another, and the next look tells of both.
    pub fn rewrite<T, E>(&self, write: impl FnOnce() -> Result<T, E>) -> Result<(T, Reload), E> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours_alone = held.is_empty() && *seen == stamps(&self.paths);
        let written = write()?;
        if !is_ours_alone {
            return Ok((written, Reload::Unchanged));
        }
        *seen = stamps(&self.paths);
        Ok((written, self.read_again(&mut held, Consent::Given)))
    }

    /// Reads the files again. Whoever gives consent for a workspace whose trust is recorded
    /// grants the new content first; without that its keys are left out, as at the start.
    pub fn reload(&self, consent: Consent) -> Reload {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.read_again(&mut held, consent)
    }

    fn read_again(&self, held: &mut Vec<Loosening>, consent: Consent) -> Reload {
        let old = self.load();
        let loaded = load(&self.request).and_then(|new| match consent {
            Consent::Given => Ok((new, Vec::new())),
            Consent::Withheld => hold_back(&old, new),
        });
        let (new, now_held) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => return Reload::Failed(error),
        };
        let is_news = *held != now_held;
        held.clone_from(&now_held);
        let change = describe(&old, &new, now_held);
        self.current.store(Arc::new(new));
        if change.keys.is_empty() && !is_news {
            Reload::Unchanged
        } else {
            Reload::Applied(change)
        }
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Option<Stamp>> {
    paths.iter().map(|path| Stamp::of(path)).collect()
}

fn describe(old: &LoadedSettings, new: &LoadedSettings, held: Vec<Loosening>) -> Change {
    let mut keys = changed_keys(&json!(old.settings), &json!(new.settings));
    // Rules and hooks depend on the scope they come from, even where the whole is the same.
    for scope in Scope::ALL {
        let policy = |loaded| {
            let mut map = root(loaded, scope)
                .and_then(Node::as_table)
                .map(Table::to_map)
                .unwrap_or_default();
            map.retain(|key, _| key == "permissions" || key == "hooks");
            Value::Object(map)
        };
        keys.extend(changed_keys(&policy(old), &policy(new)));
    }
    keys.sort();
    keys.dedup();
    let restart_required = keys
        .iter()
        .filter(|key| {
            let top = key.split('.').next().unwrap_or(key);
            RESTART_REQUIRED.contains(&top)
        })
        .cloned()
        .collect();
    Change {
        keys,
        restart_required,
        held,
    }
}

/// The new settings without what the workspace's own scopes loosen.
fn hold_back(
    old: &LoadedSettings,
    new: LoadedSettings,
) -> Result<(LoadedSettings, Vec<Loosening>), SettingsError> {
    let held: Vec<Loosening> = loosens(old, &new)
        .into_iter()
        .filter(|loosening| loosening.scope.is_workspace())
        .collect();
    if held.is_empty() {
        return Ok((new, held));
    }
    let roots = Scope::ALL
        .into_iter()
        .filter_map(|scope| {
            let (before, after) = (root(old, scope), root(&new, scope));
            let node = if scope.is_workspace() {
                hold(before, after, &loosened_keys(old, &new, scope))
            } else {
                after.cloned()
            };
            node.map(|node| (scope, node))
        })
        .collect();
    // What is left out for want of trust is out already; what is held was trusted before.
    let combined = combine(roots, Trust::Trusted)?;
    let new = LoadedSettings {
        settings: combined.settings,
        provenance: combined.provenance,
        layers: combined.layers,
        unbuilt: combined.unbuilt,
        ..new
    };
    Ok((new, held))
}
