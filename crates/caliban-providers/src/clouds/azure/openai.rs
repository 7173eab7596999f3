//! OpenAI's models on Azure.

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_model::{
    Credentials, Error, ErrorKind, Freshness, ModelInfo, OpenAiApi, Origin, ProviderKind, StaticKey,
};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use url::Url;

use super::entra::Entra;
use super::{ID, Options, check_resource};
use crate::clouds::fetch::check_private;
use crate::clouds::surroundings::Surroundings;
use crate::config::{ConfigError, Connection, parse_base};
use crate::failure::{Refusal, fail};
use crate::google::escaped;
use crate::transport::{Call, HttpRequest, Transport, request};

/// The resource that tokens are for.
const RESOURCE: &str = "https://cognitiveservices.azure.com";
/// The version of the dated form where none is named.
const DEFAULT_VERSION: &str = "2024-10-21";
const LINES: &str = "[provider.azure]\nresource = \"my-resource\"";

/// The two forms of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// Chat, with a version in the query and the deployment in the path.
    Dated(String),
    /// Like OpenAI's own, with the deployment for a model.
    Current(OpenAiApi),
}

/// How requests prove whose they are.
#[derive(Debug)]
pub(super) enum Login {
    /// With a key.
    Key(Arc<dyn Credentials>),
    Token(Entra),
    /// A gateway sees to it.
    Gateway,
}

/// Calls to OpenAI's models.
#[derive(Debug)]
pub(super) struct OpenAi {
    base: Url,
    form: Form,
    deployments: BTreeMap<String, String>,
    login: Login,
}

impl OpenAi {
    pub(super) fn new(
        surroundings: &Arc<Surroundings>,
        options: &Options,
        connection: &Connection,
    ) -> Result<Self, ConfigError> {
        let version = options.api_version.as_deref();
        let version = version.or_else(|| surroundings.variable("AZURE_OPENAI_API_VERSION"));
        let form = match (connection.openai_api, version) {
            (None | Some(OpenAiApi::Chat), Some(version)) => Form::Dated(version.to_owned()),
            (Some(OpenAiApi::Chat), None) => Form::Dated(DEFAULT_VERSION.to_owned()),
            (Some(OpenAiApi::Responses), _) | (None, None) => Form::Current(OpenAiApi::Responses),
        };
        let login = if let Some(credentials) = &connection.credentials {
            Login::Key(Arc::clone(credentials))
        } else if let Some(key) = surroundings.variable("AZURE_OPENAI_API_KEY") {
            Login::Key(Arc::new(StaticKey::new(key.to_owned())))
        } else {
            Login::Token(Entra::new(Arc::clone(surroundings), RESOURCE))
        };
        Ok(Self {
            base: base(surroundings, options, connection)?,
            form,
            deployments: options.deployments.clone(),
            login,
        })
    }

    pub(super) fn form(&self) -> &Form {
        &self.form
    }

    async fn request(&self, mut call: Call, freshness: Freshness) -> Result<HttpRequest, Error> {
        let origin = call.origin.clone();
        let invalid = |reason: String| fail(&origin, ErrorKind::Invalid, reason);
        let deployment = self
            .deployments
            .get(&*origin.model)
            .map_or(&*origin.model, String::as_str);
        let base = self.base.as_str().trim_end_matches('/');
        let url = match &self.form {
            Form::Dated(version) => format!(
                "{base}/openai/deployments/{}/{}?api-version={}",
                escaped(deployment),
                call.path,
                escaped(version)
            ),
            Form::Current(_) => format!("{base}/openai/v1/{}", call.path),
        };
        let url = Url::parse(&url).map_err(|error| invalid(format!("`{url}`: {error}")))?;
        if let Some(body) = call.body.as_mut() {
            body.set_first("model", json!(deployment));
            if matches!(self.form, Form::Dated(_)) {
                // These came with later versions.
                body.remove("store");
                body.remove("prompt_cache_key");
            }
        }
        prepared(call, url, &self.login, "api-key", freshness).await
    }
}

/// The request, with what proves whose it is.
pub(super) async fn prepared(
    call: Call,
    url: Url,
    login: &Login,
    key_header: &'static str,
    freshness: Freshness,
) -> Result<HttpRequest, Error> {
    let origin = call.origin.clone();
    let mut request = request(call, url, &[])?;
    if let Some((name, value)) = proof(login, key_header, freshness, &origin).await? {
        check_private(&request.url).map_err(|reason| fail(&origin, ErrorKind::Invalid, reason))?;
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            let reason = "the key for Azure holds characters that no header may carry";
            fail(&origin, ErrorKind::Auth, reason)
        })?;
        value.set_sensitive(true);
        request.headers.insert(HeaderName::from_static(name), value);
    }
    Ok(request)
}

async fn proof(
    login: &Login,
    key_header: &'static str,
    freshness: Freshness,
    origin: &Origin,
) -> Result<Option<(&'static str, String)>, Error> {
    match login {
        Login::Key(credentials) => {
            let key = credentials.key(freshness).await?;
            Ok(key.map(|key| (key_header, key.expose_secret().to_owned())))
        }
        Login::Token(entra) => {
            let token = entra.token(freshness, origin).await?;
            let bearer = format!("Bearer {}", token.expose_secret());
            Ok(Some(("authorization", bearer)))
        }
        Login::Gateway => Ok(None),
    }
}

impl Login {
    pub(super) fn renewable(&self) -> bool {
        match self {
            Self::Key(credentials) => credentials.renewable(),
            Self::Token(_) => true,
            Self::Gateway => false,
        }
    }
}

fn base(
    surroundings: &Surroundings,
    options: &Options,
    connection: &Connection,
) -> Result<Url, ConfigError> {
    let kind = ProviderKind::Azure;
    if let Some(url) = surroundings.variable("AZURE_OPENAI_ENDPOINT") {
        return parse_base("AZURE_OPENAI_ENDPOINT", url, kind);
    }
    let written = options.endpoint.as_ref().or(connection.base_url.as_ref());
    if let Some(url) = written {
        return parse_base("endpoint", url, kind);
    }
    let (source, resource) = match (
        &options.resource,
        surroundings.variable("AZURE_OPENAI_RESOURCE"),
    ) {
        (Some(name), _) => ("`resource`", name.as_str()),
        (None, Some(name)) => ("`AZURE_OPENAI_RESOURCE`", name),
        // Claude alone needs no resource of OpenAI's; what is asked there then fails by its name.
        (None, None) if has_foundry(surroundings, options) => {
            return parse_base("endpoint", "https://unset.invalid", kind);
        }
        (None, None) => {
            return Err(ConfigError::MissingPlace {
                provider: kind,
                what: "Azure OpenAI resource",
                variable: "AZURE_OPENAI_RESOURCE",
                lines: LINES,
            });
        }
    };
    check_resource(source, resource)?;
    parse_base(
        "resource",
        &format!("https://{resource}.openai.azure.com"),
        kind,
    )
}

fn has_foundry(surroundings: &Surroundings, options: &Options) -> bool {
    let variables = ["ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"];
    options.foundry_resource.is_some()
        || options.foundry_endpoint.is_some()
        || surroundings.first(&variables).is_some()
}

impl Transport for OpenAi {
    fn prepare(
        &self,
        call: Call,
        freshness: Freshness,
    ) -> BoxFuture<'_, Result<HttpRequest, Error>> {
        self.request(call, freshness).boxed()
    }

    fn renewable(&self) -> bool {
        self.login.renewable()
    }

    fn base(&self) -> &Url {
        &self.base
    }

    fn platform(&self) -> Option<&'static str> {
        Some(ID)
    }

    /// A path or version that is not there is told apart from a deployment that is not.
    fn refusal(&self, refusal: &Refusal<'_>) -> Option<Error> {
        let body = refusal.json()?;
        let message = body.pointer("/error/message").and_then(Value::as_str)?;
        if refusal.status != 404 || message != "Resource not found" {
            return None;
        }
        let form = match &self.form {
            Form::Dated(version) => format!("api-version {version}"),
            Form::Current(_) => "the v1 form of the API".to_owned(),
        };
        let said = format!("Azure knows no such path below `{}` ({form})", self.base);
        let error = fail(refusal.origin, ErrorKind::Unavailable, said).with_status(404);
        Some(error.with_remedy("check `endpoint` and `api_version` in `[provider.azure]`"))
    }

    fn remedy(&self, kind: &ErrorKind) -> Option<String> {
        match kind {
            ErrorKind::Auth => Some("set `AZURE_OPENAI_API_KEY` to a key of this resource, or run `az login`".to_owned()),
            ErrorKind::Unavailable => Some("name the deployment: `[provider.azure] deployments = { \"gpt-5.5\" = \"my-deployment\" }`".to_owned()),
            _ => None,
        }
    }

    /// A key may use deployments, not list them; those that are configured are known.
    fn models(&self) -> Option<BoxFuture<'_, Result<Vec<ModelInfo>, Error>>> {
        let names = self.deployments.keys();
        let models = names.map(|name| {
            let known = caliban_model::capabilities(ID, name);
            ModelInfo {
                id: name.clone(),
                context_window: known.context_window,
                max_output: known.max_output,
            }
        });
        Some(ready(Ok(models.collect())).boxed())
    }
}
