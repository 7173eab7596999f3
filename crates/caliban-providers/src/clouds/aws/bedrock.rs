//! The transport: calls become invocations of a model, signed or with a bearer's token.

use std::sync::Arc;

use caliban_model::{Credentials, Error, ErrorKind, Freshness, ModelInfo, Origin, ProviderKind};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::credentials::Chain;
use super::names::Names;
use super::sign::{Keys, Scope, encoded, sign};
use super::{Guardrail, ID, Options, domain, errors, region};
use crate::body::Body;
use crate::clouds::fetch::check_private;
use crate::clouds::provider::is_claude;
use crate::clouds::surroundings::Surroundings;
use crate::config::{ConfigError, Connection, parse_base};
use crate::failure::{Refusal, fail};
use crate::framing::Exception;
use crate::transport::{Call, Framing, HttpRequest, Transport};

/// The version of Claude's API that all of its models take here.
const VERSION: &str = "bedrock-2023-05-31";
const BETAS: &str = "anthropic-beta";
/// What the Messages API has and Bedrock refuses.
const UNKNOWN_FIELDS: [&str; 4] = ["model", "stream", "metadata", "service_tier"];
const LOGIN: &str = "see `docs/clouds.md` for the ways to log in to AWS";

/// Where and as whom Bedrock is used.
#[derive(Debug)]
pub(super) struct Account {
    region: String,
    base: Url,
    /// Where models are listed.
    control: Url,
    names: Names,
    login: Login,
    service_tier: Option<String>,
    guardrail: Option<Guardrail>,
    surroundings: Arc<Surroundings>,
}

/// How requests prove whose they are.
#[derive(Debug)]
enum Login {
    /// A key of Bedrock's own.
    Bearer(SecretString),
    /// The same, from wherever keys come from.
    Keys(Arc<dyn Credentials>),
    Signed(Chain),
    /// A gateway sees to it.
    Gateway,
}

enum Proof {
    Bearer(SecretString),
    Signature(Keys),
    None,
}

impl Account {
    pub(super) fn new(
        surroundings: &Arc<Surroundings>,
        options: Options,
        connection: &Connection,
    ) -> Result<Self, ConfigError> {
        let region = region::find(
            options.region.as_deref(),
            options.profile.as_deref(),
            surroundings,
        )?;
        let base = match surroundings.first(&[
            "ANTHROPIC_BEDROCK_BASE_URL",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        ]) {
            Some((name, url)) => parse_base(name, url, ProviderKind::Bedrock)?,
            None => match &connection.base_url {
                Some(url) => parse_base("base_url", url, ProviderKind::Bedrock)?,
                None => own(&format!("bedrock-runtime.{region}.{}", domain(&region)))?,
            },
        };
        let control = match surroundings.variable("AWS_ENDPOINT_URL_BEDROCK") {
            Some(url) => parse_base("AWS_ENDPOINT_URL_BEDROCK", url, ProviderKind::Bedrock)?,
            None => own(&format!("bedrock.{region}.{}", domain(&region)))?,
        };
        let prefix = options.prefix.as_deref();
        let prefix = prefix.or_else(|| surroundings.variable("ANTHROPIC_BEDROCK_REGION_PREFIX"));
        let login = if surroundings.is_on("CLAUDE_CODE_SKIP_BEDROCK_AUTH") {
            Login::Gateway
        } else if let Some(credentials) = &connection.credentials {
            Login::Keys(Arc::clone(credentials))
        } else if let Some(token) = surroundings.variable("AWS_BEARER_TOKEN_BEDROCK") {
            Login::Bearer(token.into())
        } else {
            Login::Signed(Chain::new(
                Arc::clone(surroundings),
                options.profile,
                region.clone(),
            ))
        };
        let tier = surroundings.variable("ANTHROPIC_BEDROCK_SERVICE_TIER");
        Ok(Self {
            names: Names::new(options.models, prefix, &region),
            base,
            control,
            login,
            service_tier: options.service_tier.or_else(|| tier.map(str::to_owned)),
            guardrail: options.guardrail,
            surroundings: Arc::clone(surroundings),
            region,
        })
    }

    async fn proof(&self, freshness: Freshness, origin: &Origin) -> Result<Proof, Error> {
        match &self.login {
            Login::Bearer(token) => Ok(Proof::Bearer(token.clone())),
            Login::Keys(credentials) => match credentials.key(freshness).await? {
                Some(token) => Ok(Proof::Bearer(token)),
                None => Ok(Proof::None),
            },
            Login::Signed(chain) => chain.keys(freshness, origin).await.map(Proof::Signature),
            Login::Gateway => Ok(Proof::None),
        }
    }

    async fn prove(
        &self,
        request: &mut HttpRequest,
        freshness: Freshness,
        origin: &Origin,
    ) -> Result<(), Error> {
        let invalid = |reason: String| fail(origin, ErrorKind::Invalid, reason);
        match self.proof(freshness, origin).await? {
            Proof::Bearer(token) => {
                check_private(&request.url).map_err(invalid)?;
                let value = format!("Bearer {}", token.expose_secret());
                let mut value = HeaderValue::from_str(&value).map_err(|_| {
                    let reason = "the token for Bedrock holds characters that no header may carry";
                    fail(origin, ErrorKind::Auth, reason)
                })?;
                value.set_sensitive(true);
                request
                    .headers
                    .insert(HeaderName::from_static("authorization"), value);
            }
            Proof::Signature(keys) => {
                check_private(&request.url).map_err(invalid)?;
                let scope = Scope {
                    service: ID,
                    region: &self.region,
                    at: Timestamp::now(),
                };
                sign(request, &keys, &scope).map_err(invalid)?;
            }
            Proof::None => {}
        }
        Ok(())
    }

    /// The inference profiles of the region, and the models that need none.
    async fn list(&self, wanted: Wire) -> Result<Vec<ModelInfo>, Error> {
        let origin = Origin::new(ID, "");
        let malformed = |reason: String| fail(&origin, ErrorKind::Malformed, reason);
        let mut url = self.control.clone();
        url.set_path(&format!(
            "{}/inference-profiles",
            self.control.path().trim_end_matches('/')
        ));
        url.set_query(Some("maxResults=1000&type=SYSTEM_DEFINED"));
        let mut request = HttpRequest {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Vec::new(),
        };
        self.prove(&mut request, Freshness::Cached, &origin).await?;
        let answer = self.surroundings.fetcher.send(request).await;
        let answer = answer.map_err(|reason| fail(&origin, ErrorKind::Network, reason))?;
        if !answer.is_success() {
            let refusal = Refusal {
                origin: &origin,
                status: answer.status,
                headers: &answer.headers,
                body: &answer.body,
            };
            let complaint = || malformed(answer.complaint());
            return Err(errors::refusal(&refusal).unwrap_or_else(complaint));
        }
        let list: ProfileList = serde_json::from_slice(&answer.body)
            .map_err(|error| malformed(format!("the model list cannot be read: {error}")))?;
        let fits = |id: &str| is_claude(id) == (wanted == Wire::Messages);
        Ok(list
            .summaries
            .into_iter()
            .filter(|profile| profile.status.as_deref() != Some("INACTIVE") && fits(&profile.id))
            .map(|profile| {
                let known = caliban_model::capabilities(ID, &profile.id);
                ModelInfo {
                    id: profile.id,
                    context_window: known.context_window,
                    max_output: known.max_output,
                }
            })
            .collect())
    }
}

#[derive(Deserialize)]
struct ProfileList {
    #[serde(rename = "inferenceProfileSummaries", default)]
    summaries: Vec<ProfileSummary>,
}

#[derive(Deserialize)]
struct ProfileSummary {
    #[serde(rename = "inferenceProfileId")]
    id: String,
    status: Option<String>,
}

fn own(host: &str) -> Result<Url, ConfigError> {
    parse_base("region", &format!("https://{host}"), ProviderKind::Bedrock)
}

/// In which of Bedrock's two forms models are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// The Messages API's body, events wrapped.
    Messages,
    Converse,
}

/// Calls in one form.
#[derive(Debug)]
pub(super) struct Bedrock {
    account: Arc<Account>,
    wire: Wire,
}

impl Bedrock {
    pub(super) fn new(account: Arc<Account>, wire: Wire) -> Self {
        Self { account, wire }
    }

    async fn request(&self, mut call: Call, freshness: Freshness) -> Result<HttpRequest, Error> {
        let origin = call.origin.clone();
        let account = &*self.account;
        let invalid = |reason: String| fail(&origin, ErrorKind::Invalid, reason);
        let id = account.names.wire(&origin.model);
        let action = match self.wire {
            Wire::Messages => "invoke-with-response-stream",
            Wire::Converse => "converse-stream",
        };
        let base = account.base.as_str().trim_end_matches('/');
        let url = format!("{base}/model/{}/{action}", encoded(&id));
        let url = Url::parse(&url).map_err(|error| invalid(format!("`{url}`: {error}")))?;
        if let (Wire::Messages, Some(body)) = (self.wire, call.body.as_mut()) {
            wrap(body, &call.headers);
        }
        let body = call.body.unwrap_or_default();
        let body = body
            .bytes()
            .map_err(|error| invalid(format!("the request cannot be written: {error}")))?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let guardrail = account.guardrail.as_ref();
        for (name, value) in [
            ("x-amzn-bedrock-service-tier", account.service_tier.as_ref()),
            (
                "x-amzn-bedrock-guardrailidentifier",
                guardrail.map(|it| &it.id),
            ),
            (
                "x-amzn-bedrock-guardrailversion",
                guardrail.map(|it| &it.version),
            ),
        ] {
            if let Some(value) = value {
                let value = HeaderValue::from_str(value)
                    .map_err(|_| invalid(format!("`{value}` cannot stand in a header")))?;
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let mut request = HttpRequest {
            method: call.method,
            url,
            headers,
            body,
        };
        account.prove(&mut request, freshness, &origin).await?;
        Ok(request)
    }
}

/// A body of the Messages API as Bedrock takes it: the model stands in the path, versions and betas
/// in the body.
fn wrap(body: &mut Body, headers: &[(HeaderName, String)]) {
    for name in UNKNOWN_FIELDS {
        body.remove(name);
    }
    let betas: Vec<&str> = headers
        .iter()
        .filter(|(name, _)| name == BETAS)
        .flat_map(|(_, value)| value.split(','))
        .collect();
    if !betas.is_empty() {
        body.set_first("anthropic_beta", json!(betas));
    }
    body.set_first("anthropic_version", json!(VERSION));
}

impl Transport for Bedrock {
    fn prepare(
        &self,
        call: Call,
        freshness: Freshness,
    ) -> BoxFuture<'_, Result<HttpRequest, Error>> {
        self.request(call, freshness).boxed()
    }

    fn renewable(&self) -> bool {
        match &self.account.login {
            Login::Bearer(_) | Login::Gateway => false,
            Login::Keys(credentials) => credentials.renewable(),
            Login::Signed(_) => true,
        }
    }

    fn base(&self) -> &Url {
        &self.account.base
    }

    fn platform(&self) -> Option<&'static str> {
        Some(ID)
    }

    fn framing(&self) -> Option<Framing> {
        Some(Framing::EventStream)
    }

    fn refusal(&self, refusal: &Refusal<'_>) -> Option<Error> {
        errors::refusal(refusal)
    }

    fn exception(&self, origin: &Origin, exception: &Exception) -> Error {
        errors::exception(origin, exception)
    }

    fn remedy(&self, kind: &ErrorKind) -> Option<String> {
        match kind {
            ErrorKind::Auth => Some(LOGIN.to_owned()),
            _ => None,
        }
    }

    fn models(&self) -> Option<BoxFuture<'_, Result<Vec<ModelInfo>, Error>>> {
        Some(self.account.list(self.wire).boxed())
    }
}
