//! A home, a managed directory and a workspace that exist for one test.

use std::fs;
use std::path::PathBuf;

use caliban_settings::{
    LoadRequest, LoadedSettings, Locations, Platform, Scope, SettingsError, TrustDecision, load,
};

pub(crate) struct World {
    _root: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) locations: Locations,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let locations = Locations::new(Platform::Linux, root.join("home"), &|_| None)
            .with_managed_dir(root.join("managed"));
        let workspace = root.join("repo");
        fs::create_dir_all(workspace.join(".caliban")).unwrap();
        fs::create_dir_all(locations.config_dir()).unwrap();
        fs::create_dir_all(locations.managed_dir()).unwrap();
        Self {
            _root: directory,
            root,
            workspace,
            locations,
        }
    }

    pub(crate) fn toml(&self, scope: Scope) -> PathBuf {
        self.locations
            .settings(scope, &self.workspace)
            .unwrap()
            .toml
    }

    pub(crate) fn json(&self, scope: Scope) -> PathBuf {
        self.locations
            .settings(scope, &self.workspace)
            .unwrap()
            .json
    }

    pub(crate) fn write(&self, scope: Scope, text: &str) -> &Self {
        fs::write(self.toml(scope), text).unwrap();
        self
    }

    /// Writes a scope's settings as JSON, which is what tests have at hand.
    pub(crate) fn write_json(&self, scope: Scope, value: &serde_json::Value) -> &Self {
        fs::write(self.json(scope), value.to_string()).unwrap();
        self
    }

    pub(crate) fn request(&self, trust: TrustDecision) -> LoadRequest {
        LoadRequest {
            trust,
            ..LoadRequest::new(self.locations.clone(), &self.workspace)
        }
    }

    pub(crate) fn load(&self, trust: TrustDecision) -> LoadedSettings {
        load(&self.request(trust)).unwrap()
    }

    /// What loading complains about, with the paths of this world taken out.
    pub(crate) fn failure(&self) -> String {
        self.shorten(&self.error().to_string())
    }

    pub(crate) fn error(&self) -> SettingsError {
        load(&self.request(TrustDecision::Recorded)).unwrap_err()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let loaded = self.load(TrustDecision::Recorded);
        let warnings = loaded.warnings.iter();
        warnings.map(|warning| self.shorten(warning)).collect()
    }

    pub(crate) fn shorten(&self, text: &str) -> String {
        text.replace(self.root.to_str().unwrap(), "")
    }
}
