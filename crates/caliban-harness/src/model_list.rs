//! The models that may be chosen, where somebody listed them.

use std::sync::Arc;

use caliban_settings::Scope;

use crate::configuration::Configuration;
use crate::surroundings::ModelNames;

/// A list of models; everything where there is none. What the organisation lists nobody adds to.
#[derive(Debug, Clone, Default)]
pub struct ModelList {
    listed: Option<Arc<[String]>>,
    /// What names stand for, where a dialect knows more.
    names: Option<ModelNames>,
}

impl ModelList {
    pub fn of(configuration: &Configuration) -> Self {
        let layers = configuration.loaded.layers();
        let managed = layers.iter().find(|layer| layer.scope == Scope::Managed);
        let managed = managed.map(|layer| &layer.settings.available_models);
        let listed = match managed {
            Some(models) if !models.is_empty() => models,
            Some(_) | None => &configuration.settings().available_models,
        };
        Self {
            listed: (!listed.is_empty()).then(|| listed.as_slice().into()),
            names: None,
        }
    }

    pub(crate) fn with_names(self, names: Option<ModelNames>) -> Self {
        Self { names, ..self }
    }

    /// The model that a name stands for.
    pub(crate) fn meant(&self, name: String) -> String {
        let known = self.names.as_ref().and_then(|names| names.0(&name));
        known.unwrap_or(name)
    }

    /// Whether a model may be chosen. Entries are names, with or without the provider before them,
    /// words for families such as `sonnet`, or beginnings of names before a star.
    pub fn permits(&self, model: &str) -> bool {
        let Some(listed) = &self.listed else {
            return true;
        };
        let bare = |name: &str| name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let (full, short) = (model.to_ascii_lowercase(), bare(model));
        listed.iter().any(|entry| {
            let entry = entry.trim().to_ascii_lowercase();
            if let Some(start) = entry.strip_suffix('*') {
                return full.starts_with(start) || short.starts_with(start);
            }
            let is_word = !entry.is_empty() && entry.bytes().all(|byte| byte.is_ascii_alphabetic());
            entry == full
                || entry == short
                || bare(&entry) == full
                || (is_word && short.split(['-', '.', ':', '@']).any(|word| word == entry))
        })
    }

    /// What is said of a model that may not be chosen.
    pub fn check(&self, model: &str) -> Result<(), String> {
        if self.permits(model) {
            return Ok(());
        }
        let listed = self.listed.iter().flat_map(|listed| listed.iter());
        let listed: Vec<&str> = listed.map(String::as_str).collect();
        Err(format!(
            "`{model}` is not one of the models that may be chosen: {} (`available_models` in the settings)",
            listed.join(", ")
        ))
    }

    /// Leaves the models that may be chosen.
    pub fn keep<T>(&self, models: &mut Vec<T>, name: impl Fn(&T) -> &str) {
        models.retain(|model| self.permits(name(model)));
    }
}

impl caliban_tools::ModelPolicy for ModelList {
    fn check(&self, model: &str) -> Result<(), String> {
        Self::check(self, model)
    }

    fn meant(&self, name: String) -> String {
        Self::meant(self, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_names_families_and_beginnings() {
        let entries = ["sonnet", "anthropic/claude-opus-4-8", "gpt-5*"];
        let list = ModelList {
            listed: Some(entries.map(str::to_owned).as_slice().into()),
            names: None,
        };
        for good in [
            "claude-sonnet-4-6",
            "anthropic/claude-sonnet-4-6",
            "claude-opus-4-8",
            "anthropic/claude-opus-4-8",
            "sonnet",
            "gpt-5.5",
            "openai/gpt-5.5",
        ] {
            assert!(list.permits(good), "{good}");
        }
        for bad in [
            "claude-haiku-4-5",
            "claude-opus-4-7",
            "gpt-4.1",
            "sonnets",
            "xsonnet-1",
        ] {
            assert!(list.check(bad).is_err(), "{bad}");
        }
        assert!(ModelList::default().permits("anything"));
    }
}
