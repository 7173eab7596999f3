//! The values that users give their plugins: in the user's settings, and where they are secret in
//! the keyring or, without one, in a file of the owner's. A workspace gives none.

use std::collections::BTreeMap;

use caliban_plugins::{Package, PluginName, PluginSecrets, UserOption, written_value};
use caliban_settings::Scope;
use caliban_settings::write::{SettingEdit, written_value as written};
use serde_json::Value;

use super::problem::ManageError;
use crate::configuration::Configuration;
use crate::logins;

/// Whose settings count, the strongest first.
const SCOPES: [Scope; 3] = [Scope::Managed, Scope::Cli, Scope::User];

/// The values of plugins.
#[derive(Debug)]
pub struct Values<'a> {
    configuration: &'a Configuration,
}

impl<'a> Values<'a> {
    pub fn new(configuration: &'a Configuration) -> Self {
        Self { configuration }
    }

    /// All that a plugin asks for and was given, or that has a default.
    pub fn of(&self, package: &Package) -> BTreeMap<String, String> {
        let options = package.manifest.options.iter();
        options
            .filter_map(|option| Some((option.key.clone(), self.get(package.name(), option)?)))
            .collect()
    }

    /// What was given for one, or its default.
    pub fn get(&self, plugin: &PluginName, option: &UserOption) -> Option<String> {
        let given = if option.is_sensitive {
            self.secret(plugin, &option.key)
        } else {
            self.setting(plugin, &option.key)
        };
        let given = given.and_then(|text| option.accept(&text).ok());
        given.or_else(|| option.default.clone())
    }

    fn setting(&self, plugin: &PluginName, key: &str) -> Option<String> {
        let layers = self.configuration.loaded.layers();
        SCOPES.iter().find_map(|scope| {
            let layer = layers.iter().find(|layer| layer.scope == *scope)?;
            let values = layer.settings.plugins.config.get(plugin.as_str())?;
            written_value(values.get(key)?)
        })
    }

    fn secret(&self, plugin: &PluginName, key: &str) -> Option<String> {
        let store = logins::find(self.configuration.environment());
        let kept = store.and_then(|store| store.get(&entry(plugin, key)).ok().flatten());
        kept.or_else(|| self.file().get(plugin, key).ok().flatten())
    }

    fn file(&self) -> PluginSecrets {
        let data = self.configuration.locations.data_dir();
        PluginSecrets::new(data.join("plugin-secrets.json"))
    }

    /// Keeps a value.
    pub fn set(
        &self,
        plugin: &PluginName,
        option: &UserOption,
        text: &str,
    ) -> Result<(), ManageError> {
        let wrong = |expected: &'static str| ManageError::Value {
            plugin: plugin.clone(),
            key: option.key.clone(),
            expected,
        };
        let text = option.accept(text).map_err(wrong)?;
        if option.is_sensitive {
            let store = logins::find(self.configuration.environment());
            let is_kept =
                store.is_some_and(|it| it.set(&entry(plugin, &option.key), &text).is_ok());
            if !is_kept {
                self.file().set(plugin, &option.key, text)?;
            }
            return Ok(());
        }
        let value = match option.kind {
            caliban_plugins::OptionKind::Text => Value::String(text),
            caliban_plugins::OptionKind::Number | caliban_plugins::OptionKind::Switch => {
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
        };
        self.edit(plugin, &option.key, &SettingEdit::Put(written(&value)))
    }

    /// Forgets a value.
    pub fn unset(&self, plugin: &PluginName, option: &UserOption) -> Result<(), ManageError> {
        if option.is_sensitive {
            if let Some(store) = logins::find(self.configuration.environment()) {
                // What cannot be reached was not kept there by us just now.
                let _ = store.remove(&entry(plugin, &option.key));
            }
            self.file().remove(plugin, &option.key)?;
            return Ok(());
        }
        if self.setting(plugin, &option.key).is_none() {
            return Ok(());
        }
        self.edit(plugin, &option.key, &SettingEdit::Remove)
    }

    fn edit(&self, plugin: &PluginName, key: &str, edit: &SettingEdit) -> Result<(), ManageError> {
        let files = self
            .configuration
            .locations
            .settings(Scope::User, self.configuration.project());
        let Some(files) = files else {
            return Ok(());
        };
        let writer = self.configuration.writer();
        let key = format!("plugins.config.\"{plugin}\".\"{key}\"");
        writer
            .edit_setting(&files.toml, Scope::User, &key, edit)
            .map(drop)
            .map_err(|error| ManageError::Settings(error.to_string()))
    }
}

/// Where the keyring has a value.
fn entry(plugin: &PluginName, key: &str) -> String {
    format!("plugin/{plugin}/{key}")
}
