//! Checks of the providers: is somebody there, is the key accepted, is the model offered?

use std::sync::Arc;
use std::time::Duration;

use caliban_harness::Configuration;
use caliban_harness::provider::{self, KeySource};
use caliban_model::{Error, ErrorKind, ModelInfo, NoKey, ProviderKind, base_model};
use caliban_settings::Scope;
use tokio::time::timeout;
use url::Url;

use super::report::Row;
use crate::exit::Failure;

/// How long a provider may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// Whether addresses that nobody configured are called, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Shallow,
    Deep,
}

/// What the checks start from.
pub(super) struct Providers<'a> {
    pub(super) configuration: &'a Configuration,
    /// By a flag.
    pub(super) selected: Option<ProviderKind>,
    pub(super) depth: Depth,
    /// By a flag.
    pub(super) model: Option<&'a str>,
}

/// What is sent as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Sent,
    /// There is none.
    Absent,
    /// A program of the workspace would have to be run for it.
    Withheld(Scope),
}

/// What it means when nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Somebody configured it, or a run would use it.
    Wanted,
    Optional,
}

/// A provider that was called.
struct Called<'a> {
    kind: ProviderKind,
    /// Without what must not be shown.
    address: String,
    key: Key,
    need: Need,
    /// The model that must be among those offered.
    model: Option<&'a str>,
}

/// Why there is no list of models.
enum Silence {
    Late,
    Error(Error),
}

impl Providers<'_> {
    /// One row for each, all asked at the same time.
    pub(super) async fn rows(&self) -> [Row; 4] {
        let (ollama, openai, anthropic, google) = tokio::join!(
            self.row(ProviderKind::Ollama),
            self.row(ProviderKind::OpenAi),
            self.row(ProviderKind::Anthropic),
            self.row(ProviderKind::Google),
        );
        [ollama, openai, anthropic, google]
    }

    /// The cloud that a run would use; nothing where it uses none. Its logins are tried with
    /// `--deep` only.
    pub(super) async fn cloud_row(&self) -> Option<Row> {
        let kind = self.kind().ok().filter(|kind| kind.is_cloud())?;
        let name = kind.as_str();
        let provider = match provider::connect(kind, &[], self.configuration) {
            Ok(provider) => provider,
            Err(error) => return Some(Row::fail(name, error.to_string())),
        };
        if self.depth == Depth::Shallow {
            let message = "configured (no login attempted; use --deep)";
            return Some(Row::skip(name, message));
        }
        Some(match timeout(DEADLINE, provider.models()).await {
            Ok(Ok(models)) => Row::pass(name, format!("{} model(s) known", models.len())),
            Ok(Err(error)) => Row::fail(name, error.to_string()),
            Err(_) => Row::fail(name, format!("no answer within {} s", DEADLINE.as_secs())),
        })
    }

    /// What a run would use.
    pub(super) fn model_row(&self) -> Row {
        const NAME: &str = "model";
        let chosen = self.kind().and_then(|kind| {
            let source = provider::key_source(kind, self.configuration)?;
            Ok((kind, source))
        });
        let (kind, source) = match chosen {
            Ok(chosen) => chosen,
            Err(failure) => return Row::fail(NAME, failure.to_string()),
        };
        let model = provider::model(self.model, kind, self.configuration);
        let message = format!("{kind}/{model}");
        match (source, kind.key_variables().first()) {
            (KeySource::Absent, Some(variable)) if kind.needs_key() => Row::warn(
                NAME,
                format!("{message}, but there is no API key: set `{variable}`"),
            ),
            _ => Row::pass(NAME, message),
        }
    }

    /// Where the key of a run comes from. Whether it is accepted, the row of the provider tells:
    /// `rows` are those of all of them.
    pub(super) fn auth_row(&self, rows: &[Row]) -> Row {
        const NAME: &str = "auth";
        let chosen = self.kind().and_then(|kind| {
            let source = provider::key_source(kind, self.configuration)?;
            Ok((kind, source))
        });
        let (kind, source) = match chosen {
            Ok(chosen) => chosen,
            Err(failure) => return Row::fail(NAME, failure.to_string()),
        };
        if kind.is_cloud() && matches!(source, KeySource::Absent) {
            let message =
                format!("{kind} has logins of its own, which the first request looks for");
            return Row::skip(NAME, message);
        }
        let variables = kind.key_variables();
        let Some(variable) = variables.first() else {
            return Row::pass(NAME, format!("{kind} needs no key"));
        };
        let whence = match source {
            KeySource::Absent => {
                let message = format!("there is no API key for {kind}: set `{variable}`");
                return Row::warn(NAME, message);
            }
            KeySource::Program { scope, .. } => {
                format!("`api_key_helper` of the {scope} settings gives the API key for {kind}")
            }
            KeySource::Variable => format!("the API key for {kind} is in the environment"),
            KeySource::Keyring(_) => format!("the API key for {kind} is in the keyring"),
            KeySource::File(_) => format!("the API key for {kind} was given to `/login`"),
        };
        if rows.iter().any(|row| row.has_passed(kind.as_str())) {
            return Row::pass(NAME, format!("{whence} and is accepted"));
        }
        Row::skip(
            NAME,
            format!("{whence} (not tried here; see `{kind}`, or use --deep)"),
        )
    }

    async fn row(&self, kind: ProviderKind) -> Row {
        let name = kind.as_str();
        let configured = provider::base_url(kind, self.configuration);
        if configured.is_none() && self.depth == Depth::Shallow {
            let message = format!(
                "{} unset (no probe attempted; use --deep to ping {})",
                kind.base_url_variable(),
                host(kind.default_base_url())
            );
            return Row::skip(name, message);
        }
        match self.call(kind, configured).await {
            Ok(row) => row,
            Err(failure) => Row::fail(name, failure.to_string()),
        }
    }

    async fn call(&self, kind: ProviderKind, configured: Option<String>) -> Result<Row, Failure> {
        let is_selected = self.kind().is_ok_and(|selected| selected == kind);
        let source = provider::key_source(kind, self.configuration)?;
        let key = match &source {
            KeySource::Program { scope, .. } if scope.is_workspace() => Key::Withheld(*scope),
            KeySource::Program { .. }
            | KeySource::Variable
            | KeySource::Keyring(_)
            | KeySource::File(_) => Key::Sent,
            KeySource::Absent => Key::Absent,
        };
        let variable = kind.key_variables().first();
        if let (None, Key::Absent, Some(variable)) = (&configured, key, variable) {
            let message = format!("no API key (no probe attempted): set `{variable}`");
            return Ok(if is_selected {
                Row::fail(kind.as_str(), message)
            } else {
                Row::warn(kind.as_str(), message)
            });
        }
        let credentials = match (key, source.credentials()) {
            (Key::Sent, credentials) => credentials,
            (Key::Absent | Key::Withheld(_), _) => Some(Arc::new(NoKey) as _),
        };
        let is_wanted = is_selected || configured.is_some() || key != Key::Absent;
        let called = Called {
            kind,
            address: shown(configured.as_deref().unwrap_or(kind.default_base_url())),
            key,
            need: if is_wanted {
                Need::Wanted
            } else {
                Need::Optional
            },
            model: self
                .model
                .filter(|_| is_selected && self.depth == Depth::Deep),
        };
        let provider = provider::connect_with(kind, credentials, &[], self.configuration)?;
        let listed = match timeout(DEADLINE, provider.models()).await {
            Ok(Ok(models)) => Ok(models),
            Ok(Err(error)) => Err(Silence::Error(error)),
            Err(_) => Err(Silence::Late),
        };
        Ok(called.row(listed))
    }

    fn kind(&self) -> Result<ProviderKind, Failure> {
        Ok(provider::kind(
            self.selected,
            self.model,
            self.configuration,
        )?)
    }
}

impl Called<'_> {
    /// A rejected key fails, since a run would; a missing one is worth knowing. So is an answer
    /// that proves somebody is there and says nothing else.
    fn row(&self, listed: Result<Vec<ModelInfo>, Silence>) -> Row {
        let (name, address) = (self.kind.as_str(), &self.address);
        let error = match listed {
            Ok(models) => return self.reachable(&models),
            Err(Silence::Late) => {
                let seconds = DEADLINE.as_secs();
                return self
                    .unreachable(&format!("no answer within {seconds} s"))
                    .with(self.unverified());
            }
            Err(Silence::Error(error)) => error,
        };
        let reason = error.to_string();
        let reason = reason.strip_prefix(&format!("{name}: ")).unwrap_or(&reason);
        match (&error.kind, self.key) {
            (ErrorKind::Auth, Key::Sent) => Row::fail(
                name,
                format!("{address} reachable, but the key is not accepted: {reason}"),
            ),
            (ErrorKind::Auth, Key::Absent) => Row::warn(
                name,
                match self.kind.key_variables().first() {
                    Some(variable) => {
                        format!("{address} reachable, but asks for a key: set `{variable}`")
                    }
                    None => format!("{address} reachable, but asks for a key"),
                },
            ),
            (ErrorKind::Auth, Key::Withheld(scope)) => Row::warn(
                name,
                format!(
                    "{address} reachable; the key was not tried, because `api_key_helper` of the {scope} settings is not run here"
                ),
            ),
            (ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Billing, _) => {
                Row::warn(name, format!("{address} reachable, but: {reason}"))
            }
            (ErrorKind::Unavailable | ErrorKind::Invalid, _)
                if matches!(error.status, Some(404 | 405 | 501)) =>
            {
                Row::warn(
                    name,
                    format!("{address} reachable, but lists no models: {reason}"),
                )
            }
            _ => self.unreachable(reason),
        }
        .with(self.unverified())
    }

    fn reachable(&self, models: &[ModelInfo]) -> Row {
        let (name, address) = (self.kind.as_str(), &self.address);
        let message = format!("{address} reachable ({} model(s))", models.len());
        let Some(model) = self.model else {
            return Row::pass(name, message);
        };
        if models.iter().any(|offered| is_offered(&offered.id, model)) {
            return Row::pass(name, format!("{message}; `{model}` is among them"));
        }
        let other = ProviderKind::of_model(model).filter(|other| *other != self.kind);
        let remedy = match other {
            Some(other) => format!("for a model of {other} add `--provider {other}`"),
            None => format!("`caliban models --provider {name}` lists them"),
        };
        Row::fail(
            name,
            format!("{message}, but `{model}` is not among them; {remedy}"),
        )
    }

    fn unreachable(&self, reason: &str) -> Row {
        let (name, address) = (self.kind.as_str(), &self.address);
        match self.need {
            Need::Wanted => Row::fail(name, format!("{address} cannot be used: {reason}")),
            Need::Optional => Row::warn(name, format!("nobody answers at {address}: {reason}")),
        }
    }

    fn unverified(&self) -> Option<String> {
        let model = self.model?;
        Some(format!("`{model}` could not be looked up"))
    }
}

/// Whether a name in a list is the model that was asked for: lists have dates, tags and paths that
/// may be left out.
fn is_offered(listed: &str, wanted: &str) -> bool {
    listed == wanted
        || base_model(listed) == wanted
        || wanted.strip_prefix("models/") == Some(base_model(listed))
        || listed.strip_suffix(":latest") == Some(wanted)
}

/// An address without a user's name, password or query.
fn shown(address: &str) -> String {
    let Ok(mut url) = Url::parse(address.trim()) else {
        return address.to_owned();
    };
    // These fail for addresses that have no such parts.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.as_str().trim_end_matches('/').to_owned()
}

fn host(address: &str) -> String {
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.unwrap_or(address).to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn called(key: Key, need: Need) -> Called<'static> {
        Called {
            kind: ProviderKind::Anthropic,
            address: "http://host".to_owned(),
            key,
            need,
            model: None,
        }
    }

    fn row(kind: ErrorKind, status: u16, key: Key, need: Need) -> String {
        let error = Error::new(kind, "anthropic", "", "why").with_status(status);
        let row = called(key, need).row(Err(Silence::Error(error)));
        let text = super::super::report::Report(vec![row]).text();
        text.lines().nth(1).unwrap().to_owned()
    }

    #[rstest]
    #[case(ErrorKind::Auth, 401, Key::Sent, "✗", "not accepted")]
    #[case(ErrorKind::Auth, 401, Key::Absent, "!", "set `ANTHROPIC_API_KEY`")]
    #[case(
        ErrorKind::Auth,
        403,
        Key::Withheld(Scope::Project),
        "!",
        "project settings is not run"
    )]
    #[case(ErrorKind::RateLimited, 429, Key::Sent, "!", "reachable, but")]
    #[case(ErrorKind::Unavailable, 404, Key::Sent, "!", "lists no models")]
    #[case(ErrorKind::Server, 500, Key::Sent, "✗", "cannot be used")]
    #[case(ErrorKind::Malformed, 200, Key::Sent, "✗", "cannot be used")]
    fn every_answer_has_its_mark(
        #[case] kind: ErrorKind,
        #[case] status: u16,
        #[case] key: Key,
        #[case] mark: &str,
        #[case] text: &str,
    ) {
        let row = row(kind, status, key, Need::Wanted);
        assert!(
            row.starts_with(&format!("{mark} anthropic — http://host ")),
            "{row}"
        );
        assert!(row.contains(text), "{row}");
    }

    #[test]
    fn nobody_at_an_address_that_nobody_configured_is_no_failure() {
        let silent = row(ErrorKind::Network, 0, Key::Absent, Need::Optional);
        assert!(silent.starts_with("! "), "{silent}");
        let silent = row(ErrorKind::Network, 0, Key::Absent, Need::Wanted);
        assert!(silent.starts_with("✗ "), "{silent}");
    }

    #[rstest]
    #[case("claude-haiku-4-5-20251001", "claude-haiku-4-5", true)]
    #[case("claude-haiku-4-5", "claude-haiku-4-5-20251001", false)]
    #[case("gemini-3.8-flash", "models/gemini-3.8-flash", true)]
    #[case("llama3.1:latest", "llama3.1", true)]
    #[case("llama3.1:8b", "llama3.1", false)]
    fn names_in_lists_may_say_more(#[case] listed: &str, #[case] wanted: &str, #[case] is: bool) {
        assert_eq!(is_offered(listed, wanted), is);
    }

    #[test]
    fn secrets_in_addresses_are_not_shown() {
        assert_eq!(shown("https://user:pass@host/v1/?key=k"), "https://host/v1");
        assert_eq!(host("http://localhost:11434"), "localhost");
    }
}
