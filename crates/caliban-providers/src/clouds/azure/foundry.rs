//! Claude's models in Microsoft Foundry: the Messages API at another address.

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_model::{Error, ErrorKind, Freshness, ModelInfo, ProviderKind, StaticKey};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use reqwest::header::HeaderName;
use serde_json::json;
use url::Url;

use super::entra::Entra;
use super::openai::{Login, prepared};
use super::{ID, Options, check_resource};
use crate::clouds::surroundings::Surroundings;
use crate::config::{ConfigError, Connection, parse_base};
use crate::failure::fail;
use crate::transport::{Call, HttpRequest, Transport};

/// The resource that tokens are for.
const RESOURCE: &str = "https://ai.azure.com";
const VERSION: &str = "2023-06-01";

/// Calls to Claude's models.
#[derive(Debug)]
pub(super) struct Foundry {
    base: Url,
    /// Whether anybody said where it is.
    place: Place,
    deployments: BTreeMap<String, String>,
    login: Login,
    key_header: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Known,
    Unknown,
}

impl Foundry {
    pub(super) fn new(
        surroundings: &Arc<Surroundings>,
        options: &Options,
        connection: &Connection,
    ) -> Result<Self, ConfigError> {
        let kind = ProviderKind::Azure;
        let variable = |name: &str| surroundings.variable(name);
        let written = options.foundry_endpoint.as_deref();
        let endpoint = written.or_else(|| variable("ANTHROPIC_FOUNDRY_BASE_URL"));
        let resource = options.foundry_resource.as_deref();
        let resource = resource.or_else(|| variable("ANTHROPIC_FOUNDRY_RESOURCE"));
        let resource = resource
            .or(options.resource.as_deref())
            .or_else(|| variable("AZURE_OPENAI_RESOURCE"));
        let (base, place) = match (endpoint, resource) {
            (Some(url), _) => (
                parse_base("ANTHROPIC_FOUNDRY_BASE_URL", url, kind)?,
                Place::Known,
            ),
            (None, Some(name)) => {
                check_resource("the Foundry resource", name)?;
                let url = format!("https://{name}.services.ai.azure.com/anthropic");
                (parse_base("resource", &url, kind)?, Place::Known)
            }
            (None, None) => (
                parse_base("resource", "https://unset.invalid", kind)?,
                Place::Unknown,
            ),
        };
        let (login, key_header) = if surroundings.is_on("CLAUDE_CODE_SKIP_FOUNDRY_AUTH") {
            (Login::Gateway, "x-api-key")
        } else if let Some(token) = variable("ANTHROPIC_FOUNDRY_AUTH_TOKEN") {
            let bearer = format!("Bearer {token}");
            (
                Login::Key(Arc::new(StaticKey::new(bearer))),
                "authorization",
            )
        } else if let Some(key) =
            variable("ANTHROPIC_FOUNDRY_API_KEY").or_else(|| variable("AZURE_OPENAI_API_KEY"))
        {
            (
                Login::Key(Arc::new(StaticKey::new(key.to_owned()))),
                "x-api-key",
            )
        } else if let Some(credentials) = &connection.credentials {
            (Login::Key(Arc::clone(credentials)), "x-api-key")
        } else {
            let entra = Entra::new(Arc::clone(surroundings), RESOURCE);
            (Login::Token(entra), "authorization")
        };
        Ok(Self {
            base,
            place,
            deployments: options.deployments.clone(),
            login,
            key_header,
        })
    }

    async fn request(&self, mut call: Call, freshness: Freshness) -> Result<HttpRequest, Error> {
        let origin = call.origin.clone();
        if self.place == Place::Unknown {
            let error = fail(
                &origin,
                ErrorKind::Invalid,
                "nobody said in which Foundry resource Claude is",
            );
            return Err(error.with_remedy(
                "set `foundry_resource` in `[provider.azure]` or `ANTHROPIC_FOUNDRY_RESOURCE`",
            ));
        }
        let base = self.base.as_str().trim_end_matches('/');
        let url = format!("{base}/{}", call.path);
        let url = Url::parse(&url)
            .map_err(|error| fail(&origin, ErrorKind::Invalid, format!("`{url}`: {error}")))?;
        let deployment = self.deployments.get(&*origin.model);
        if let (Some(body), Some(deployment)) = (call.body.as_mut(), deployment) {
            body.set_first("model", json!(deployment));
        }
        let version = HeaderName::from_static("anthropic-version");
        call.headers.push((version, VERSION.to_owned()));
        prepared(call, url, &self.login, self.key_header, freshness).await
    }
}

impl Transport for Foundry {
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

    fn remedy(&self, kind: &ErrorKind) -> Option<String> {
        match kind {
            ErrorKind::Auth => Some("set `ANTHROPIC_FOUNDRY_API_KEY` to a key of this resource, or run `az login`".to_owned()),
            ErrorKind::Unavailable => Some("name the deployment: `[provider.azure] deployments = { \"claude-sonnet-4-6\" = \"my-deployment\" }`".to_owned()),
            _ => None,
        }
    }

    /// Those that are configured are listed with OpenAI's.
    fn models(&self) -> Option<BoxFuture<'_, Result<Vec<ModelInfo>, Error>>> {
        Some(ready(Ok(Vec::new())).boxed())
    }
}
