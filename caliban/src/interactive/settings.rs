//! The settings as the face shows and changes them.

use std::collections::BTreeSet;

use caliban_harness::Configuration;
use caliban_settings::write::{WriteError, written_value};
use caliban_settings::{
    DescribedKey, IgnoredBecause, KeyShape, LoadedSettings, Scope, described_keys, load,
    takes_effect, value_at,
};
use caliban_tui::{FileChanged, SettingChange, SettingRow, SettingState, SettingsDesk};
use serde_json::{Value, json};

use crate::consent::Consent;
use crate::interactive::desk::ProgramDesk;
use crate::masking::Secrets;

impl SettingsDesk for ProgramDesk {
    fn settings(&self) -> Result<Vec<SettingRow>, String> {
        let configuration = &self.configuration;
        let now = load(&configuration.request).map_err(|error| error.to_string())?;
        let mut rows = rows(&configuration.loaded, &now);
        let style = rows.iter_mut().find(|row| row.key == "output_style");
        if let (Some(row), Some(plugin)) = (style, self.session.style_lock()) {
            row.locked
                .get_or_insert(format!("locked by plugin: {plugin}"));
        }
        Ok(rows)
    }

    fn change_setting(&self, change: &SettingChange) -> Result<FileChanged, String> {
        if let ("output_style", Some(plugin)) = (change.key.as_str(), self.session.style_lock()) {
            return Err(format!("`output_style` is locked by plugin: {plugin}"));
        }
        let mut configuration = self.configuration.clone();
        configuration.loaded = load(&configuration.request).map_err(|error| error.to_string())?;
        self.session
            .write_settings(|| changed(&configuration, change))
    }
}

fn changed(configuration: &Configuration, change: &SettingChange) -> Result<FileChanged, String> {
    let SettingChange { key, scope, edit } = change;
    if let Some(why) = locked(&configuration.loaded, key) {
        return Err(why);
    }
    let locations = &configuration.locations;
    let older = locations.legacy(*scope, configuration.project());
    if let Some(files) = older {
        let older = match key.split('.').next() {
            Some("permissions") => Some(files.permissions),
            Some("mcp_servers") => Some(files.mcp),
            Some("hooks") => Some(files.hooks),
            Some(_) | None => None,
        };
        if let Some(file) = older.filter(|file| file.is_file()) {
            return Err(format!(
                "`{}` is read instead of `{key}`; `caliban config migrate` makes it one file",
                file.display()
            ));
        }
    }
    let files = locations.settings(*scope, configuration.project());
    let path = files
        .ok_or_else(|| format!("the {scope} scope has no file"))?
        .toml;
    let consent = Consent::of(configuration);
    let writer = configuration.writer();
    writer
        .edit_setting(&path, *scope, key, edit)
        .map_err(|error| match error {
            // Who wrote it sees where; why is what matters.
            WriteError::Edit { source, .. } => format!("`{key}` is not written: {source}"),
            error => error.to_string(),
        })?;
    let trust = consent.kept(*scope, configuration);
    let remark = trust.or_else(|| in_vain(configuration, *scope, key));
    Ok(FileChanged { path, remark })
}

/// Why what was written does not count, where it does not.
fn in_vain(configuration: &Configuration, scope: Scope, key: &str) -> Option<String> {
    let now = load(&configuration.request).ok()?;
    let is_meant = |ignored: &str| {
        let rest = key.strip_prefix(ignored);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut ignored = now.ignored.iter();
    let ignored = ignored.find(|it| it.scope == scope && is_meant(&it.key));
    if let Some(ignored) = ignored {
        return Some(match ignored.because {
            IgnoredBecause::Scope => format!("it does not count in the {scope} scope"),
            IgnoredBecause::Locked => "it is locked by the managed settings".to_owned(),
            IgnoredBecause::Untrusted => {
                "it counts when the workspace is trusted: `caliban trust`".to_owned()
            }
        });
    }
    let above = now.provenance.of(key).filter(|winner| *winner != scope)?;
    now.scope(scope)
        .and_then(|settings| value_at(&json!(settings), key).cloned())
        .map(|_| format!("the {above} scope goes before it"))
}

/// Why nobody but the machine's operator can change a key.
fn locked(loaded: &LoadedSettings, key: &str) -> Option<String> {
    let managed = loaded
        .scope(Scope::Managed)
        .filter(|_| loaded.is_locked())?;
    value_at(&json!(managed), key)?;
    Some(format!("`{key}` is locked by the managed settings"))
}

/// Every key that can be set, and those that are set and were not described.
fn rows(begun: &LoadedSettings, now: &LoadedSettings) -> Vec<SettingRow> {
    let plain = json!(now.settings);
    let before = json!(begun.settings);
    let mut masked = plain.clone();
    Secrets::Masked.mask(&mut masked);
    let layers: Vec<(Scope, Value)> = now
        .layers()
        .iter()
        .map(|layer| {
            let mut settings = json!(layer.settings);
            Secrets::Masked.mask(&mut settings);
            (layer.scope, settings)
        })
        .collect();
    keys(now, &plain)
        .into_iter()
        .map(|described| {
            let key = &described.key;
            let value = value_at(&masked, key).filter(|value| !value.is_null());
            let scope = now.provenance.of(key);
            let written = layers.iter().filter_map(|(scope, settings)| {
                Some((*scope, written_value(value_at(settings, key)?)))
            });
            SettingRow {
                effective: value.map(written_value).zip(scope),
                written: written.collect(),
                takes_effect: takes_effect(key),
                state: if value_at(&plain, key) == value_at(&before, key) {
                    SettingState::AsBegun
                } else {
                    SettingState::Changed
                },
                locked: locked(now, key),
                kind: described.kind.replace('`', ""),
                about: described.about,
                key: described.key,
            }
        })
        .collect()
}

fn keys(now: &LoadedSettings, settings: &Value) -> Vec<DescribedKey> {
    let described = described_keys();
    let either: Vec<String> = described
        .iter()
        .filter(|it| it.shape == KeyShape::Either)
        .map(|it| format!("{}.", it.key))
        .collect();
    let is_within = |key: &str| either.iter().any(|prefix| key.starts_with(prefix));
    let mut keys: Vec<DescribedKey> = described
        .into_iter()
        .filter(|it| it.shape != KeyShape::Table)
        .filter(|it| !it.key.contains('<') && !is_within(&it.key) && it.key != "$schema")
        .collect();
    let known: BTreeSet<String> = keys.iter().map(|it| it.key.clone()).collect();
    let set = now.provenance.iter().filter(|(key, _)| {
        let value = value_at(settings, key);
        !known.contains(*key)
            && !is_within(key)
            && value.is_some_and(|value| !value.is_object() && !value.is_null())
    });
    keys.extend(set.map(|(key, _)| DescribedKey {
        key: key.to_owned(),
        kind: String::new(),
        about: String::new(),
        shape: KeyShape::Value,
    }));
    keys
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use caliban_settings::{LoadRequest, Locations, Platform};

    use super::*;

    /// Settings of a machine whose operator has something to say.
    fn loaded(root: &Path, managed: &str) -> LoadedSettings {
        let home = root.join("home");
        let workspace = root.join("work");
        let operator = root.join("etc");
        for directory in [&home, &workspace, &operator] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(operator.join("managed-settings.toml"), managed).unwrap();
        let locations = Locations::new(Platform::current(), home, &|_| None);
        let locations = locations.with_managed_dir(operator);
        load(&LoadRequest::new(locations, workspace)).unwrap()
    }

    fn row(rows: &[SettingRow], key: &str) -> SettingRow {
        rows.iter().find(|row| row.key == key).unwrap().clone()
    }

    #[test]
    fn what_the_operator_locked_stays() {
        let root = tempfile::tempdir().unwrap();
        let managed =
            "parent_settings_behavior = 'block'\neffort = 'low'\n[env]\nA_TOKEN = 'hush'\n";
        let loaded = loaded(root.path(), managed);
        let rows = rows(&loaded, &loaded);
        let effort = row(&rows, "effort");
        assert_eq!(effort.effective, Some(("low".to_owned(), Scope::Managed)));
        let why = effort.locked.unwrap();
        assert!(why.contains("managed settings"), "{why}");
        assert_eq!(row(&rows, "max_turns").locked, None);
        // And nobody reads a secret here.
        let token = row(&rows, "env.A_TOKEN");
        assert_eq!(token.effective, Some(("****".to_owned(), Scope::Managed)));
    }

    #[test]
    fn without_a_lock_the_operator_only_begins() {
        let root = tempfile::tempdir().unwrap();
        let before = loaded(root.path(), "");
        let after = loaded(root.path(), "effort = 'low'\npermissions.deny = ['Bash']\n");
        let rows = rows(&before, &after);
        assert_eq!(row(&rows, "effort").locked, None);
        assert!(row(&rows, "effort").needs_restart());
        // Rules are followed at once.
        let deny = row(&rows, "permissions.deny");
        assert_eq!(deny.state, SettingState::Changed);
        assert!(!deny.needs_restart());
    }
}
