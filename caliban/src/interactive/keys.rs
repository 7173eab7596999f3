//! Keys of providers, as they are given and forgotten at the screen.

use caliban_harness::provider::{self, KeySource};
use caliban_harness::{Configuration, Forgotten, KeptIn, forget_key, save_key};
use caliban_model::ProviderKind;
use caliban_tui::KeysDesk;

use crate::interactive::Program;

impl Program {
    /// The provider that a session would begin with.
    fn kind(&self, configuration: &Configuration) -> Result<ProviderKind, String> {
        let options = &self.options.model;
        let kind = provider::kind(options.provider, options.model.as_deref(), configuration);
        kind.map_err(|error| error.to_string())
    }
}

fn named(provider: &str) -> Result<ProviderKind, String> {
    provider
        .parse()
        .map_err(|error: caliban_model::UnknownProvider| error.to_string())
}

impl KeysDesk for Program {
    fn providers(&self) -> Result<Vec<String>, String> {
        let configuration = self.configuration().map_err(|error| error.to_string())?;
        let own = self.kind(&configuration)?;
        let others = ProviderKind::ALL.into_iter().filter(|kind| *kind != own);
        let all = std::iter::once(own).chain(others);
        let with_keys = all.filter(|kind| !kind.key_variables().is_empty());
        Ok(with_keys.map(|kind| kind.as_str().to_owned()).collect())
    }

    fn missing_key(&self) -> Option<String> {
        if self.options.cassette.is_some() {
            return None;
        }
        let configuration = self.configuration().ok()?;
        let kind = self.kind(&configuration).ok()?;
        if !kind.needs_key() {
            return None;
        }
        match provider::key_source(kind, &configuration).ok()? {
            KeySource::Absent => Some(kind.as_str().to_owned()),
            KeySource::Program { .. }
            | KeySource::Variable
            | KeySource::Keyring(_)
            | KeySource::File(_) => None,
        }
    }

    fn save_key(&self, provider: &str, key: &str) -> Result<String, String> {
        let configuration = self.configuration().map_err(|error| error.to_string())?;
        let kind = named(provider)?;
        let kept = save_key(kind, key, &configuration)?;
        let place = match kept {
            KeptIn::SecretStore => "the desktop's secret store".to_owned(),
            KeptIn::File(path) => format!("`{}`", path.display()),
        };
        let source = provider::key_source(kind, &configuration);
        let counts = match source.map_err(|error| error.to_string())? {
            KeySource::Program { .. } => "; `api_key_helper` goes before it",
            KeySource::Variable => "; a variable goes before it",
            KeySource::Keyring(_) | KeySource::File(_) | KeySource::Absent => {
                ", and counts for sessions that begin from here on"
            }
        };
        Ok(format!("The key of {kind} is in {place}{counts}."))
    }

    fn forget_key(&self, provider: &str) -> Result<String, String> {
        let configuration = self.configuration().map_err(|error| error.to_string())?;
        let kind = named(provider)?;
        let forgotten = match forget_key(kind, &configuration)? {
            Forgotten::Key => format!("The key of {kind} is forgotten"),
            Forgotten::Nothing => format!("No key of {kind} was kept here"),
        };
        let source = provider::key_source(kind, &configuration);
        Ok(match source.map_err(|error| error.to_string())? {
            KeySource::Program { .. } => {
                format!("{forgotten}; `api_key_helper` still gives one.")
            }
            KeySource::Variable => {
                let variable = kind.key_variables().first().copied().unwrap_or_default();
                format!("{forgotten}; `{variable}` still holds one.")
            }
            KeySource::Keyring(_) | KeySource::File(_) => {
                format!("{forgotten}; another one is still kept.")
            }
            KeySource::Absent => format!("{forgotten}."),
        })
    }
}
