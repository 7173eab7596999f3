//! Values of plugins that are secret, where there is no keyring: in a file of the owner's.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::name::PluginName;
use crate::state_file::{StateError, StateFile};

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Content {
    plugins: BTreeMap<PluginName, BTreeMap<String, String>>,
}

/// The file.
#[derive(Clone)]
pub struct PluginSecrets(StateFile<Content>);

impl fmt::Debug for PluginSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PluginSecrets")
    }
}

impl PluginSecrets {
    pub fn new(path: PathBuf) -> Self {
        Self(StateFile::new(path))
    }

    pub fn get(&self, plugin: &PluginName, key: &str) -> Result<Option<String>, StateError> {
        let mut content = self.0.read()?;
        let values = content.plugins.get_mut(plugin);
        Ok(values.and_then(|values| values.remove(key)))
    }

    pub fn set(&self, plugin: &PluginName, key: &str, value: String) -> Result<(), StateError> {
        self.0.update(|content| {
            let values = content.plugins.entry(plugin.clone()).or_default();
            values.insert(key.to_owned(), value);
        })
    }

    /// Whether there was something to remove.
    pub fn remove(&self, plugin: &PluginName, key: &str) -> Result<bool, StateError> {
        self.0.update(|content| {
            let values = content.plugins.get_mut(plugin);
            values.is_some_and(|values| values.remove(key).is_some())
        })
    }
}
