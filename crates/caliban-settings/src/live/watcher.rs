//! Watches the directories of the settings files and reloads when one of them changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::directories::{Directories, Noticed};
use super::settings::{Consent, LiveSettings, Reload};
use crate::load::LoadRequest;
use crate::scope::Scope;

/// Keeps the settings up to date for as long as it lives.
#[derive(Debug)]
pub struct SettingsWatcher {
    _inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    directories: Option<Directories>,
    targets: Targets,
    watched: BTreeSet<PathBuf>,
}

/// Every file that settings may come from, whether it is there or not.
pub(super) fn settings_files(request: &LoadRequest) -> BTreeSet<PathBuf> {
    let workspace =
        std::fs::canonicalize(&request.workspace).unwrap_or_else(|_| request.workspace.clone());
    let mut files = BTreeSet::new();
    for scope in Scope::ON_DISK {
        if let Some(paths) = request.locations.settings(scope, &workspace) {
            files.extend([paths.toml, paths.json]);
        }
        if let Some(paths) = request.locations.legacy(scope, &workspace) {
            files.extend([paths.permissions, paths.mcp, paths.hooks]);
        }
    }
    let overlay = request
        .overlay
        .as_ref()
        .filter(|overlay| !overlay.trim_start().starts_with('{'));
    files.extend(overlay.and_then(|path| std::path::absolute(path).ok()));
    if let Some(foreign) = &request.foreign {
        let file = |scope: &Scope| foreign.file(*scope, &workspace);
        files.extend(Scope::ON_DISK.iter().filter_map(file));
    }
    files.insert(workspace.join(".mcp.json"));
    files
}

/// What is watched.
#[derive(Debug, Clone)]
struct Targets {
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl Targets {
    fn of(request: &LoadRequest) -> Self {
        let files = settings_files(request);
        let directories = files
            .iter()
            .filter_map(|file| file.parent())
            .map(Path::to_owned)
            .collect();
        Self { files, directories }
    }

    fn concerns(&self, path: &Path) -> bool {
        // A directory on the way that comes or goes brings its files with it.
        self.files.contains(path) || self.directories.iter().any(|dir| dir.starts_with(path))
    }

    /// The directories to watch now: each target's, or the nearest one above it that exists.
    fn present(&self) -> BTreeSet<PathBuf> {
        self.directories
            .iter()
            .filter_map(|directory| directory.ancestors().find(|path| path.is_dir()))
            .map(Path::to_owned)
            .collect()
    }
}

impl SettingsWatcher {
    /// Begins to watch. `listener` is told about every reload that did something, on a thread of
    /// the watcher's own.
    pub fn start(
        settings: Arc<LiveSettings>,
        mut listener: impl FnMut(Reload) + Send + 'static,
    ) -> std::io::Result<Self> {
        let inner = Arc::new(Mutex::new(Inner {
            directories: None,
            targets: Targets::of(settings.request()),
            watched: BTreeSet::new(),
        }));
        let weak: Weak<Mutex<Inner>> = Arc::downgrade(&inner);
        let handler = move |noticed: Noticed| {
            let Some(inner) = weak.upgrade() else {
                return;
            };
            if !inner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take_notice(&noticed)
            {
                return;
            }
            match settings.reload(Consent::Withheld) {
                Reload::Unchanged => {}
                outcome @ (Reload::Applied(_) | Reload::Failed(_)) => listener(outcome),
            }
        };
        let directories = Directories::start(handler)?;
        {
            let mut guard = inner.lock().unwrap_or_else(PoisonError::into_inner);
            guard.directories = Some(directories);
            guard.follow();
        }
        Ok(Self { _inner: inner })
    }
}

impl Inner {
    /// Whether events concern the settings; directories that have come into being are watched
    /// from now on.
    fn take_notice(&mut self, noticed: &Noticed) -> bool {
        let concerns = match noticed {
            Noticed::Paths(paths) => paths.iter().any(|path| self.targets.concerns(path)),
            // Looking is cheap.
            Noticed::Lost => true,
        };
        if concerns {
            self.follow();
        }
        concerns
    }

    fn follow(&mut self) {
        let Some(directories) = &mut self.directories else {
            return;
        };
        let present = self.targets.present();
        for gone in self.watched.difference(&present) {
            directories.unwatch(gone);
        }
        let new: Vec<PathBuf> = present.difference(&self.watched).cloned().collect();
        self.watched = present;
        for path in new {
            if directories.watch(&path).is_err() {
                self.watched.remove(&path);
            }
        }
    }
}
