//! Which plugins are used, as the settings of the user or of a project say.

use std::path::PathBuf;

use caliban_harness::Configuration;
use caliban_harness::plugins::{ManageError, PluginSet, dependants};
use caliban_plugins::Owner;
use caliban_settings::write::{SettingEdit, written_value};
use caliban_settings::{Layer, PluginChoice, Scope};
use serde_json::json;

use crate::args::PluginScope;
use crate::consent::Consent;
use crate::console::Console;
use crate::exit::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Wanted,
    Unwanted,
}

pub(super) fn set(
    name: &str,
    wanted: Use,
    scope: PluginScope,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let set = PluginSet::all(configuration);
    let known = set.found.iter().find(|found| found.name == name);
    let verb = match wanted {
        Use::Wanted => "enabled",
        Use::Unwanted => "disabled",
    };
    match (known.map(|found| found.owner), wanted) {
        (None, Use::Wanted | Use::Unwanted) => {
            return Err(Failure::NoInput(format!(
                "there is no plugin `{name}`; `caliban plugin list` shows those there are"
            )));
        }
        (Some(Owner::Managed), _) => {
            return Err(Failure::Runtime(format!(
                "`{name}` is the organisation's: it is always used"
            )));
        }
        (Some(Owner::Given | Owner::Project | Owner::User), _) => {}
    }
    if wanted == Use::Unwanted {
        let needed = dependants(&set, name);
        if !needed.is_empty() {
            return Err(ManageError::Needed(name.to_owned(), needed.join(", ")).into());
        }
    }
    let scope = match scope {
        PluginScope::User => Scope::User,
        PluginScope::Project => Scope::Project,
        PluginScope::Local => Scope::Local,
    };
    let consent = Consent::of(configuration);
    if consent == Consent::Missing && scope.is_workspace() {
        return Err(Failure::Runtime(
            "the workspace is not trusted, so its settings do not count; look at them and run `caliban trust` first".to_owned(),
        ));
    }
    let layers = configuration.loaded.layers();
    let own = layers.iter().find(|layer| layer.scope == scope);
    if wanted == Use::Wanted {
        refuse_if_off_elsewhere(name, scope, layers)?;
    }
    let plugins = own
        .map(|layer| layer.settings.plugins.clone())
        .unwrap_or_default();
    let mut edits = Vec::new();
    match (&plugins.enabled, wanted) {
        (Some(PluginChoice::Names(names)), wanted) => {
            let mut names = names.clone();
            names.retain(|known| known != name);
            if wanted == Use::Wanted {
                names.push(name.to_owned());
            }
            edits.push(("plugins.enabled".to_owned(), put(&json!(names))));
        }
        (Some(PluginChoice::Switches(_)), wanted) => {
            let value = put(&json!(wanted == Use::Wanted));
            edits.push((format!("plugins.enabled.\"{name}\""), value));
        }
        (None, Use::Unwanted) if !plugins.disabled.iter().any(|known| known == name) => {
            let mut names = plugins.disabled.clone();
            names.push(name.to_owned());
            edits.push(("plugins.disabled".to_owned(), put(&json!(names))));
        }
        (None, _) => {}
    }
    if wanted == Use::Wanted && plugins.disabled.iter().any(|known| known == name) {
        let names: Vec<&String> = plugins
            .disabled
            .iter()
            .filter(|known| *known != name)
            .collect();
        let edit = if names.is_empty() {
            SettingEdit::Remove
        } else {
            put(&json!(names))
        };
        edits.push(("plugins.disabled".to_owned(), edit));
    }
    let path = file(scope, configuration)?;
    let writer = configuration.writer();
    for (key, edit) in &edits {
        writer.edit_setting(&path, scope, key, edit)?;
    }
    consent.keep(scope, configuration);
    console.write(&format!(
        "`{name}` is {verb}; running sessions stay as they are\n"
    ))
}

fn file(scope: Scope, configuration: &Configuration) -> Result<PathBuf, Failure> {
    let files = configuration
        .locations
        .settings(scope, configuration.project());
    files
        .map(|files| files.toml)
        .ok_or_else(|| Failure::Runtime("there is no file for these settings".to_owned()))
}

/// What another scope switched off stays off.
fn refuse_if_off_elsewhere(name: &str, scope: Scope, layers: &[Layer]) -> Result<(), Failure> {
    let off = |layer: &&Layer| {
        let names = &layer.settings.plugins.disabled;
        layer.scope != scope && names.iter().any(|known| known == name)
    };
    match layers.iter().find(off) {
        None => Ok(()),
        Some(layer) => Err(Failure::Runtime(format!(
            "`{name}` is disabled by the settings of the scope `{0}`; `caliban plugin enable {name} --scope {0}` takes that back",
            layer.scope
        ))),
    }
}

fn put(value: &serde_json::Value) -> SettingEdit {
    SettingEdit::Put(written_value(value))
}
