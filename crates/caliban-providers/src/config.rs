//! From the environment to a provider: which variables each reads, and what is wrong with them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use reqwest::header::HeaderName;
use url::Url;

use crate::adapter::Adapter;
use crate::anthropic::Anthropic;
use crate::credentials::{Credentials, NoKey, StaticKey};
use crate::google::Gemini;
use crate::http::Timeouts;
use crate::ollama::{Blind, Ollama};
use crate::openai::{Chat, Responses, Server};
use crate::transport::{AuthHeader, Direct};

/// The providers that `--provider` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    Anthropic,
    OpenAi,
    Google,
    Ollama,
}

/// Which of OpenAI's two APIs is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenAiApi {
    Responses,
    Chat,
}

/// How a provider is reached, where it differs from what the environment says.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    pub timeouts: Timeouts,
    /// Chosen by the base URL where absent.
    pub openai_api: Option<OpenAiApi>,
    /// Where keys come from instead of the environment.
    pub credentials: Option<Arc<dyn Credentials>>,
}

/// A provider that cannot be set up. Nothing has been sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("no API key for {provider}: set `{variable}`{hint}")]
    MissingKey {
        provider: ProviderKind,
        variable: &'static str,
        hint: &'static str,
    },
    #[error("`{variable}` is not a usable base URL: `{value}` {reason}; write it like `{example}`")]
    BadBaseUrl {
        variable: &'static str,
        value: String,
        reason: String,
        example: &'static str,
    },
    #[error("`{variable}` must be `responses` or `chat`, not `{value}`")]
    BadApi {
        variable: &'static str,
        value: String,
    },
    #[error("`{variable}` must be a positive whole number, not `{value}`")]
    BadNumber {
        variable: &'static str,
        value: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider `{0}`; use anthropic, openai, google or ollama")]
pub struct UnknownProvider(pub String);

/// A token for gateways that stand in for Anthropic's API; presented as a bearer's.
const AUTH_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";

/// What is fixed about a provider.
struct Facts {
    name: &'static str,
    default_model: &'static str,
    keys: &'static [&'static str],
    base_variable: &'static str,
    base: &'static str,
}

impl ProviderKind {
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::Google, Self::Ollama];

    fn facts(self) -> Facts {
        match self {
            Self::Anthropic => Facts {
                name: "anthropic",
                default_model: "claude-sonnet-4-6",
                keys: &["ANTHROPIC_API_KEY", AUTH_TOKEN],
                base_variable: "ANTHROPIC_BASE_URL",
                base: "https://api.anthropic.com",
            },
            Self::OpenAi => Facts {
                name: "openai",
                default_model: "gpt-5.5",
                keys: &["OPENAI_API_KEY"],
                base_variable: "OPENAI_BASE_URL",
                base: "https://api.openai.com/v1",
            },
            Self::Google => Facts {
                name: "google",
                default_model: "gemini-3.8-flash",
                keys: &["GEMINI_API_KEY", "GOOGLE_GEMINI_API_KEY"],
                base_variable: "GEMINI_BASE_URL",
                base: "https://generativelanguage.googleapis.com",
            },
            Self::Ollama => Facts {
                name: "ollama",
                default_model: "llama3.1",
                keys: &[],
                base_variable: "OLLAMA_BASE_URL",
                base: "http://localhost:11434",
            },
        }
    }

    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The variable that holds the address of another server.
    pub fn base_url_variable(self) -> &'static str {
        self.facts().base_variable
    }

    /// The address of the provider itself.
    pub fn default_base_url(self) -> &'static str {
        self.facts().base
    }

    /// The variables that may hold the key, the first to be set wins.
    pub fn key_variables(self) -> &'static [&'static str] {
        self.facts().keys
    }

    /// The model used when none is named.
    pub fn default_model(self) -> &'static str {
        self.facts().default_model
    }

    /// Whose model a name sounds like; nothing for names that anybody might serve.
    pub fn of_model(name: &str) -> Option<Self> {
        let base = caliban_model::base_model(name);
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| base.starts_with(prefix));
        if starts(&["claude-"]) {
            Some(Self::Anthropic)
        } else if starts(&["gpt-", "chatgpt-", "o1", "o3", "o4"]) {
            Some(Self::OpenAi)
        } else if starts(&["gemini-"]) {
            Some(Self::Google)
        } else {
            None
        }
    }

    /// Sets the provider up from `variable`, which reads the environment. Empty variables count
    /// as unset.
    pub fn connect(
        self,
        variable: &dyn Fn(&str) -> Option<String>,
        connection: &Connection,
    ) -> Result<Adapter, ConfigError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let base = self.base_url(&variable)?;
        let credentials = match &connection.credentials {
            Some(credentials) => Arc::clone(credentials),
            None => self.credentials(&variable)?,
        };
        let timeouts = connection.timeouts;
        Ok(match self {
            Self::Anthropic => {
                let version =
                    variable("ANTHROPIC_VERSION").unwrap_or_else(|| "2023-06-01".to_owned());
                let headers = vec![(HeaderName::from_static("anthropic-version"), version)];
                let header = match variable(self.facts().keys[0]) {
                    None if variable(AUTH_TOKEN).is_some() && connection.credentials.is_none() => {
                        AuthHeader::Bearer
                    }
                    Some(_) | None => AuthHeader::XApiKey,
                };
                let transport = Direct::new(base, header, credentials, headers);
                Adapter::new(Anthropic::new(), transport, timeouts)
            }
            Self::OpenAi => {
                let headers = [
                    ("openai-organization", "OPENAI_ORG_ID"),
                    ("openai-project", "OPENAI_PROJECT"),
                ]
                .into_iter()
                .filter_map(|(header, name)| {
                    Some((HeaderName::from_static(header), variable(name)?))
                })
                .collect();
                let server = server_at(&base);
                let api = openai_api(connection.openai_api, &variable, server)?;
                let transport = Direct::new(base, AuthHeader::Bearer, credentials, headers);
                match api {
                    OpenAiApi::Responses => Adapter::new(Responses::new(), transport, timeouts),
                    OpenAiApi::Chat => Adapter::new(Chat::new(server), transport, timeouts),
                }
            }
            Self::Google => {
                let version = variable("GEMINI_API_VERSION").unwrap_or_else(|| "v1beta".to_owned());
                let transport = Direct::new(base, AuthHeader::XGoogApiKey, credentials, Vec::new());
                Adapter::new(Gemini::new(version), transport, timeouts)
            }
            Self::Ollama => {
                let transport = Direct::new(base, AuthHeader::Bearer, credentials, Vec::new());
                let family = Ollama::new(context_length(&variable)?, blind(&variable));
                Adapter::new(family, transport, timeouts)
            }
        })
    }

    fn base_url(self, variable: &impl Fn(&str) -> Option<String>) -> Result<Url, ConfigError> {
        let facts = self.facts();
        let value = variable(facts.base_variable).unwrap_or_else(|| facts.base.to_owned());
        let bad = |reason: String| ConfigError::BadBaseUrl {
            variable: facts.base_variable,
            value: value.clone(),
            reason,
            example: facts.base,
        };
        let url =
            Url::parse(value.trim()).map_err(|error| bad(format!("does not parse ({error})")))?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(url),
            "http" | "https" => Err(bad("names no host".to_owned())),
            other => Err(bad(format!(
                "has the scheme `{other}` instead of http or https"
            ))),
        }
    }

    fn credentials(
        self,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Arc<dyn Credentials>, ConfigError> {
        let keys = self.facts().keys;
        match (keys.iter().find_map(|name| variable(name)), keys.first()) {
            (Some(key), _) => Ok(Arc::new(StaticKey::new(key.trim().to_owned()))),
            (None, None) => Ok(Arc::new(NoKey)),
            (None, Some(first)) => Err(ConfigError::MissingKey {
                provider: self,
                variable: first,
                hint: match self {
                    Self::OpenAi => " (any value will do for a server that asks for none)",
                    Self::Anthropic | Self::Google | Self::Ollama => "",
                },
            }),
        }
    }
}

fn server_at(base: &Url) -> Server {
    match base.host_str() {
        Some("api.openai.com") => Server::OpenAi,
        Some("api.mistral.ai") => Server::Mistral,
        Some(_) | None => Server::Compatible,
    }
}

/// OpenAI's own server is spoken to in Responses, which keeps reasoning across tool calls; every
/// other in Chat Completions, which all of them understand.
fn openai_api(
    chosen: Option<OpenAiApi>,
    variable: &impl Fn(&str) -> Option<String>,
    server: Server,
) -> Result<OpenAiApi, ConfigError> {
    const VARIABLE: &str = "CALIBAN_OPENAI_API";
    match variable(VARIABLE).as_deref() {
        Some("responses") => Ok(OpenAiApi::Responses),
        Some("chat") => Ok(OpenAiApi::Chat),
        Some(other) => Err(ConfigError::BadApi {
            variable: VARIABLE,
            value: other.to_owned(),
        }),
        None => Ok(chosen.unwrap_or(match server {
            Server::OpenAi => OpenAiApi::Responses,
            Server::Compatible | Server::Mistral => OpenAiApi::Chat,
        })),
    }
}

/// The context length to ask Ollama for, where the user knows better than the default.
fn context_length(variable: &impl Fn(&str) -> Option<String>) -> Result<Option<u64>, ConfigError> {
    const VARIABLE: &str = "CALIBAN_OLLAMA_NUM_CTX";
    let Some(value) = variable(VARIABLE) else {
        return Ok(None);
    };
    match value.trim().parse() {
        Ok(tokens) if tokens > 0 => Ok(Some(tokens)),
        Ok(_) | Err(_) => Err(ConfigError::BadNumber {
            variable: VARIABLE,
            value,
        }),
    }
}

/// Whether images may be replaced by a note for models that cannot see.
fn blind(variable: &impl Fn(&str) -> Option<String>) -> Blind {
    match variable("CALIBAN_STRICT_ROUTING").as_deref().map(str::trim) {
        Some("false" | "0") => Blind::Described,
        Some(_) | None => Blind::Refused,
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProviderKind {
    type Err = UnknownProvider;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownProvider(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::Provider;

    fn connect(kind: ProviderKind, variables: &[(&str, &str)]) -> Result<Adapter, ConfigError> {
        let lookup = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        kind.connect(&lookup, &Connection::default())
    }

    #[test]
    fn a_missing_key_names_the_variable() {
        let error = connect(ProviderKind::Anthropic, &[("ANTHROPIC_API_KEY", " ")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no API key for anthropic: set `ANTHROPIC_API_KEY`"
        );
        assert!(connect(ProviderKind::Google, &[("GOOGLE_GEMINI_API_KEY", "k")]).is_ok());
        assert!(connect(ProviderKind::Ollama, &[]).is_ok());
    }

    #[test]
    fn a_bad_base_url_is_reported_as_such_even_without_a_key() {
        for (value, reason) in [
            ("localhost:8080", "has the scheme `localhost`"),
            ("not a url", "does not parse"),
            ("ftp://host", "has the scheme `ftp`"),
        ] {
            let error = connect(ProviderKind::Anthropic, &[("ANTHROPIC_BASE_URL", value)])
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{error}");
            assert!(error.contains("`ANTHROPIC_BASE_URL`"), "{error}");
        }
    }

    #[test]
    fn the_api_of_an_openai_server_follows_its_address() {
        let url = |text: &str| Url::parse(text).unwrap();
        let api = |base: &str| openai_api(None, &|_: &str| None, server_at(&url(base)));
        assert_eq!(api("https://api.openai.com/v1"), Ok(OpenAiApi::Responses));
        assert_eq!(api("http://localhost:1234/v1"), Ok(OpenAiApi::Chat));
        let named = |value: &str| {
            let value = value.to_owned();
            openai_api(
                None,
                &move |_: &str| Some(value.clone()),
                Server::Compatible,
            )
        };
        assert_eq!(named("responses"), Ok(OpenAiApi::Responses));
        assert!(named("soap").is_err());
    }

    #[test]
    fn a_models_name_tells_its_provider() {
        for (name, provider) in [
            ("claude-sonnet-4-6", Some(ProviderKind::Anthropic)),
            ("gpt-5.5", Some(ProviderKind::OpenAi)),
            ("o3-mini", Some(ProviderKind::OpenAi)),
            ("models/gemini-3.8-flash", Some(ProviderKind::Google)),
            ("llama3.1", None),
        ] {
            assert_eq!(ProviderKind::of_model(name), provider, "{name}");
        }
    }

    #[test]
    fn every_provider_answers_to_its_name() {
        for kind in ProviderKind::ALL {
            let key = [
                ("ANTHROPIC_API_KEY", "k"),
                ("OPENAI_API_KEY", "k"),
                ("GEMINI_API_KEY", "k"),
            ];
            assert_eq!(connect(kind, &key).unwrap().id(), kind.as_str());
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("bard".parse::<ProviderKind>().is_err());
    }
}
