//! Which plugins were installed, where they came from, and with which files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::market::Origin;
use crate::name::PluginName;
use crate::state_file::{StateError, StateFile};

/// The file beside the plugins.
const FILE: &str = "installed.json";

/// A plugin that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    pub origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Of all its files, as they were acknowledged.
    pub digest: String,
    /// What it runs or decides.
    #[serde(default)]
    pub effects: Vec<String>,
    /// The digest of every file, so that it can be told which of them are others now.
    #[serde(default)]
    pub files: BTreeMap<PathBuf, String>,
    /// The only project that it is for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub only: Option<PathBuf>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Records {
    plugins: BTreeMap<PluginName, Installed>,
}

/// The list on disk.
#[derive(Debug, Clone)]
pub struct InstalledPlugins(StateFile<Records>);

impl InstalledPlugins {
    /// Of a directory that plugins are installed in.
    pub fn of(root: &Path) -> Self {
        Self(StateFile::new(root.join(FILE)))
    }

    pub fn all(&self) -> Result<BTreeMap<PluginName, Installed>, StateError> {
        Ok(self.0.read()?.plugins)
    }

    pub fn put(&self, name: &PluginName, installed: Installed) -> Result<(), StateError> {
        self.0.update(|records| {
            records.plugins.insert(name.clone(), installed);
        })
    }

    pub fn remove(&self, name: &PluginName) -> Result<Option<Installed>, StateError> {
        self.0.update(|records| records.plugins.remove(name))
    }
}

/// Where a plugin keeps its data, beside those that are installed.
pub fn data_directory(data: &Path, name: &PluginName) -> PathBuf {
    data.join("plugin-data").join(name.as_str())
}
