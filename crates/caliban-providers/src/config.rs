//! From the environment to a provider: which variables each reads, and what is wrong with them.

use std::sync::Arc;

use caliban_model::{Credentials, NoKey, OpenAiApi, Provider, ProviderKind, StaticKey};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use crate::adapter::Adapter;
use crate::anthropic::Anthropic;
use crate::clouds::{self, Programs, Refresh};
use crate::google::Gemini;
use crate::http::Timeouts;
use crate::ollama::Ollama;
use crate::openai::{Chat, Profile, Responses, Server};
use crate::sight::Blind;
use crate::transport::{AuthHeader, Direct};
use crate::wiretap::Wiretap;

/// How a provider is reached, where it differs from what the environment says.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    pub timeouts: Timeouts,
    /// Chosen by the base URL where absent.
    pub openai_api: Option<OpenAiApi>,
    /// Where keys come from instead of the environment.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// Beta features that are asked for, where the provider has such.
    pub betas: Vec<String>,
    /// Where a cloud is reached, unless a variable says otherwise.
    pub base_url: Option<String>,
    /// What else `[provider.…]` says.
    pub options: Map<String, Value>,
    /// How a cloud's credentials are renewed.
    pub refresh: Refresh,
    /// Who runs the programs that print credentials.
    pub programs: Option<Arc<dyn Programs>>,
    /// Who listens to what is sent and answered.
    pub tap: Option<Arc<dyn Wiretap>>,
}

/// A provider that cannot be set up. Nothing has been sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("no API key for {provider}: set `{variable}`")]
    MissingKey {
        provider: ProviderKind,
        variable: &'static str,
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
    #[error("this build cannot reach {provider}: build it with `--features {provider}`")]
    NotBuilt { provider: ProviderKind },
    #[error("no {what} for {provider}: set `{variable}`, or write in caliban.toml:\n{lines}")]
    MissingPlace {
        provider: ProviderKind,
        what: &'static str,
        variable: &'static str,
        lines: &'static str,
    },
    #[error("{source_name} is `{value}`, which names no place; write it like `{example}`")]
    BadPlace {
        source_name: &'static str,
        value: String,
        example: &'static str,
    },
    #[error("`[provider.{provider}]`: {reason}")]
    BadOptions {
        provider: ProviderKind,
        reason: String,
    },
    #[error("`{variable}`: line {line} is no header; write it like `Name: value`")]
    BadHeader { variable: &'static str, line: usize },
    #[error("`{variable}` must be a positive whole number, not `{value}`")]
    BadNumber {
        variable: &'static str,
        value: String,
    },
}

/// A token for gateways that stand in for Anthropic's API; presented as a bearer's.
const AUTH_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const CUSTOM_HEADERS: &str = "ANTHROPIC_CUSTOM_HEADERS";

/// Sets a provider up from `variable`, which reads the environment. Empty variables count
/// as unset.
pub fn connect(
    kind: ProviderKind,
    variable: &dyn Fn(&str) -> Option<String>,
    connection: &Connection,
) -> Result<Arc<dyn Provider>, ConfigError> {
    let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    if kind.is_cloud() {
        let platform = clouds::connect(kind, &variable, connection)?;
        return Ok(Arc::new(
            platform.attended(blind(&variable), connection.tap.as_ref()),
        ));
    }
    let base = base_url(kind, &variable)?;
    let credentials = match &connection.credentials {
        Some(credentials) => Arc::clone(credentials),
        None => credentials(kind, &base, &variable)?,
    };
    let timeouts = connection.timeouts;
    let adapter = match kind {
        ProviderKind::Anthropic => {
            let version = variable("ANTHROPIC_VERSION").unwrap_or_else(|| "2023-06-01".to_owned());
            let mut headers = vec![(HeaderName::from_static("anthropic-version"), version)];
            headers.extend(custom_headers(&variable)?);
            let header = match key(kind, &variable) {
                Some((AUTH_TOKEN, _)) if connection.credentials.is_none() => AuthHeader::Bearer,
                Some(_) | None => AuthHeader::XApiKey,
            };
            let transport = Direct::new(base, header, credentials, headers);
            Adapter::new(Anthropic::new(&connection.betas), transport, timeouts)
        }
        ProviderKind::OpenAi => {
            let headers = [
                ("openai-organization", "OPENAI_ORG_ID"),
                ("openai-project", "OPENAI_PROJECT"),
            ]
            .into_iter()
            .filter_map(|(header, name)| Some((HeaderName::from_static(header), variable(name)?)))
            .collect();
            let profile = profile(&base, connection)?;
            let server = profile.map_or(Server::Compatible, |profile| profile.server);
            let api = openai_api(connection.openai_api, &variable, server)?;
            let transport = Direct::new(base, AuthHeader::Bearer, credentials, headers);
            match api {
                OpenAiApi::Responses => Adapter::new(Responses::new(), transport, timeouts),
                OpenAiApi::Chat => Adapter::new(Chat::new(server, profile), transport, timeouts),
            }
        }
        ProviderKind::Google => {
            let version = variable("GEMINI_API_VERSION").unwrap_or_else(|| "v1beta".to_owned());
            let transport = Direct::new(base, AuthHeader::XGoogApiKey, credentials, Vec::new());
            Adapter::new(Gemini::new(version), transport, timeouts)
        }
        ProviderKind::Ollama => {
            let transport = Direct::new(base, AuthHeader::Bearer, credentials, Vec::new());
            let family = Ollama::new(context_length(&variable)?, blind(&variable));
            Adapter::new(family, transport, timeouts)
        }
        ProviderKind::Bedrock | ProviderKind::Vertex | ProviderKind::Azure => {
            return Err(ConfigError::NotBuilt { provider: kind });
        }
    };
    let adapter = adapter.seeing(blind(&variable));
    Ok(Arc::new(adapter.tapped(connection.tap.as_ref())))
}

/// The headers that somebody adds to each call, for gateways: lines of `Name: value`.
fn custom_headers(
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<(HeaderName, String)>, ConfigError> {
    let lines = variable(CUSTOM_HEADERS).unwrap_or_default();
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let read = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let name: HeaderName = name.trim().parse().ok()?;
        let value = value.trim();
        HeaderValue::from_str(value).ok()?;
        Some((name, value.to_owned()))
    };
    lines
        .enumerate()
        .map(|(place, line)| {
            // The line may hold a secret.
            read(line).ok_or(ConfigError::BadHeader {
                variable: CUSTOM_HEADERS,
                line: place + 1,
            })
        })
        .collect()
}

fn base_url(
    kind: ProviderKind,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Url, ConfigError> {
    let value =
        variable(kind.base_url_variable()).unwrap_or_else(|| kind.default_base_url().to_owned());
    parse_base(kind.base_url_variable(), &value, kind)
}

/// An address that calls can go to; `variable` is where it was written.
pub(crate) fn parse_base(
    variable: &'static str,
    value: &str,
    kind: ProviderKind,
) -> Result<Url, ConfigError> {
    let bad = |reason: String| ConfigError::BadBaseUrl {
        variable,
        value: value.to_owned(),
        reason,
        example: kind.default_base_url(),
    };
    let url = Url::parse(value.trim()).map_err(|error| bad(format!("does not parse ({error})")))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        "http" | "https" => Err(bad("names no host".to_owned())),
        other => Err(bad(format!(
            "has the scheme `{other}` instead of http or https"
        ))),
    }
}

/// The vendor's own server wants a key; any other says so itself if it does.
fn credentials(
    kind: ProviderKind,
    base: &Url,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Credentials>, ConfigError> {
    match (key(kind, variable), kind.key_variables().first()) {
        (Some((name, key)), _) => {
            let remedy = format!("set `{name}` to a valid key");
            Ok(Arc::new(
                StaticKey::new(key.trim().to_owned()).with_remedy(remedy),
            ))
        }
        (None, Some(first)) if is_vendors(kind, base) => Err(ConfigError::MissingKey {
            provider: kind,
            variable: first,
        }),
        (None, Some(_) | None) => Ok(Arc::new(NoKey)),
    }
}

fn is_vendors(kind: ProviderKind, base: &Url) -> bool {
    let own = Url::parse(kind.default_base_url());
    own.is_ok_and(|own| own.host_str() == base.host_str())
}

/// The first variable that holds a key, and the key.
fn key(
    kind: ProviderKind,
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<(&'static str, String)> {
    let names = kind.key_variables().iter();
    names
        .copied()
        .find_map(|name| Some((name, variable(name)?)))
}

/// What kind of server it is, as somebody says or its host does; nothing where it must be asked.
fn profile(base: &Url, connection: &Connection) -> Result<Option<&'static Profile>, ConfigError> {
    let wrong = |reason: String| ConfigError::BadOptions {
        provider: ProviderKind::OpenAi,
        reason,
    };
    match connection.options.get("server") {
        Some(Value::String(name)) => Profile::named(name).map(Some).ok_or_else(|| {
            let names = Profile::names();
            wrong(format!("`server` is `{name}`; use one of {names}"))
        }),
        Some(other) => Err(wrong(format!("`server` must be a name, not {other}"))),
        None => Ok(base.host_str().and_then(Profile::at_host)),
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
    let value = variable("CALIBAN_STRICT_ROUTING").map(|value| value.trim().to_ascii_lowercase());
    match value.as_deref() {
        Some("0" | "false" | "no" | "off") => Blind::Described,
        Some(_) | None => Blind::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::Provider;

    fn connect(
        kind: ProviderKind,
        variables: &[(&str, &str)],
    ) -> Result<Arc<dyn Provider>, ConfigError> {
        let lookup = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        super::connect(kind, &lookup, &Connection::default())
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
        let api = |base: &str| {
            let profile = profile(&url(base), &Connection::default()).unwrap();
            let server = profile.map_or(Server::Compatible, |profile| profile.server);
            openai_api(None, &|_: &str| None, server)
        };
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
    fn every_provider_answers_to_its_name() {
        for kind in ProviderKind::ALL {
            let key = [
                ("ANTHROPIC_API_KEY", "k"),
                ("OPENAI_API_KEY", "k"),
                ("GEMINI_API_KEY", "k"),
                ("AWS_REGION", "us-east-1"),
                ("ANTHROPIC_VERTEX_PROJECT_ID", "p"),
                ("AZURE_OPENAI_RESOURCE", "r"),
            ];
            match connect(kind, &key) {
                Err(ConfigError::NotBuilt { provider }) => assert!(provider.is_cloud()),
                connected => assert_eq!(connected.unwrap().id(), kind.as_str()),
            }
        }
    }
}
