//! The transport: calls go below the paths of a project, with a bearer's token.

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_model::{Error, ErrorKind, Freshness, ModelInfo, ProviderKind};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use url::Url;

use super::adc::Adc;
use super::regions::Regions;
use super::{ID, Options};
use crate::body::Body;
use crate::clouds::fetch::check_private;
use crate::clouds::surroundings::Surroundings;
use crate::config::{ConfigError, Connection, parse_base};
use crate::failure::{ErrorBody, Refusal, fail};
use crate::transport::{Call, HttpRequest, Transport, request};

/// The version of Claude's API here.
const VERSION: &str = "vertex-2023-10-16";
const LINES: &str = "[provider.vertex]\nproject = \"my-project\"";
/// Ids that do not follow from the name: older models carry dates.
const DATED: [(&str, &str); 5] = [
    ("claude-haiku-4-5", "claude-haiku-4-5@20251001"),
    ("claude-sonnet-4-5", "claude-sonnet-4-5@20250929"),
    ("claude-opus-4-5", "claude-opus-4-5@20251101"),
    ("claude-opus-4-1", "claude-opus-4-1@20250805"),
    ("claude-sonnet-4", "claude-sonnet-4@20250514"),
];

/// Whose models they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Publisher {
    Anthropic,
    Google,
}

/// Where and as whom Vertex is used.
#[derive(Debug)]
pub(super) struct Site {
    project: String,
    location: String,
    locations: BTreeMap<String, String>,
    regions: Regions,
    models: BTreeMap<String, String>,
    /// Instead of Google's own servers.
    base: Option<Url>,
    default_base: Url,
    /// Nothing where a gateway sees to it.
    adc: Option<Adc>,
}

impl Site {
    pub(super) fn new(
        surroundings: &Arc<Surroundings>,
        options: Options,
        regions: Regions,
        connection: &Connection,
    ) -> Result<Self, ConfigError> {
        let project = match &options.project {
            Some(project) => Some(project.as_str()),
            None => surroundings
                .first(&["ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"])
                .map(|(_, project)| project),
        };
        let project = project.ok_or(ConfigError::MissingPlace {
            provider: ProviderKind::Vertex,
            what: "Google Cloud project",
            variable: "GOOGLE_CLOUD_PROJECT",
            lines: LINES,
        })?;
        check("the project", project, "my-project")?;
        let location = match &options.location {
            Some(location) => location.as_str(),
            None => surroundings
                .first(&["CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"])
                .map_or("global", |(_, location)| location),
        };
        for location in options
            .locations
            .values()
            .map(String::as_str)
            .chain(regions.all())
            .chain([location])
        {
            check("the location", location, "us-east5")?;
        }
        let base = match surroundings.variable("ANTHROPIC_VERTEX_BASE_URL") {
            Some(url) => Some(("ANTHROPIC_VERTEX_BASE_URL", url)),
            None => connection.base_url.as_deref().map(|url| ("base_url", url)),
        };
        let base = base.map(|(name, url)| parse_base(name, url, ProviderKind::Vertex));
        let base = base.transpose()?;
        let default_base = match &base {
            Some(base) => base.clone(),
            None => own(location)?,
        };
        let is_gateway = surroundings.is_on("CLAUDE_CODE_SKIP_VERTEX_AUTH");
        Ok(Self {
            project: project.to_owned(),
            location: location.to_owned(),
            locations: options.locations,
            regions,
            models: options.models,
            base,
            default_base,
            adc: (!is_gateway).then(|| Adc::new(Arc::clone(surroundings))),
        })
    }

    fn wire<'a>(&'a self, model: &'a str) -> &'a str {
        if let Some(id) = self.models.get(model) {
            return id;
        }
        let dated = DATED.iter().find(|(name, _)| *name == model);
        dated.map_or(model, |(_, id)| id)
    }

    /// The address of a model, without what is done with it.
    fn address(&self, publisher: Publisher, model: &str) -> Result<String, String> {
        let location = self.locations.get(model);
        let location = location.or_else(|| self.regions.of(self.wire(model)));
        let location = location.unwrap_or(&self.location);
        let base = match &self.base {
            Some(base) => base.clone(),
            None => own(location).map_err(|error| error.to_string())?,
        };
        let base = base.as_str().trim_end_matches('/');
        // Gateways are named with the version, as Claude's own client wants it.
        let base = base.strip_suffix("/v1").unwrap_or(base);
        let publisher = match publisher {
            Publisher::Anthropic => "anthropic",
            Publisher::Google => "google",
        };
        let id = crate::google::escaped(self.wire(model)).replace("%40", "@");
        Ok(format!(
            "{base}/v1/projects/{}/locations/{location}/publishers/{publisher}/models/{id}",
            self.project
        ))
    }
}

fn own(location: &str) -> Result<Url, ConfigError> {
    let host = match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
        region => format!("{region}-aiplatform.googleapis.com"),
    };
    parse_base("location", &format!("https://{host}"), ProviderKind::Vertex)
}

/// What becomes part of an address holds letters, digits, dashes, and in old projects a domain.
fn check(what: &'static str, value: &str, example: &'static str) -> Result<(), ConfigError> {
    let allowed =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b':' | b'.');
    let is_location = what == "the location";
    let fits = !value.is_empty()
        && value.bytes().all(allowed)
        && !(is_location && value.contains([':', '.']));
    if fits {
        return Ok(());
    }
    Err(ConfigError::BadPlace {
        source_name: what,
        value: value.to_owned(),
        example,
    })
}

/// Calls to the models of one publisher.
#[derive(Debug)]
pub(super) struct Vertex {
    site: Arc<Site>,
    publisher: Publisher,
}

impl Vertex {
    pub(super) fn new(site: Arc<Site>, publisher: Publisher) -> Self {
        Self { site, publisher }
    }

    async fn request(&self, mut call: Call, freshness: Freshness) -> Result<HttpRequest, Error> {
        let origin = call.origin.clone();
        let invalid = |reason: String| fail(&origin, ErrorKind::Invalid, reason);
        let address = self
            .site
            .address(self.publisher, &origin.model)
            .map_err(invalid)?;
        let verb = match self.publisher {
            Publisher::Anthropic => "streamRawPredict",
            Publisher::Google => "streamGenerateContent?alt=sse",
        };
        let url = format!("{address}:{verb}");
        let url = Url::parse(&url).map_err(|error| invalid(format!("`{url}`: {error}")))?;
        if let (Publisher::Anthropic, Some(body)) = (self.publisher, call.body.as_mut()) {
            wrap(body);
        }
        let mut request = request(call, url, &[])?;
        if let Some(adc) = &self.site.adc {
            check_private(&request.url).map_err(invalid)?;
            let token = adc.token(freshness, &origin).await?;
            let unusable = |_| fail(&origin, ErrorKind::Auth, "Google's token fits no header");
            let bearer = format!("Bearer {}", token.secret.expose_secret());
            let mut bearer = HeaderValue::from_str(&bearer).map_err(unusable)?;
            bearer.set_sensitive(true);
            let headers = &mut request.headers;
            headers.insert(HeaderName::from_static("authorization"), bearer);
            if let Some(project) = &token.quota_project {
                let project = HeaderValue::from_str(project).map_err(unusable)?;
                headers.insert(HeaderName::from_static("x-goog-user-project"), project);
            }
        }
        Ok(request)
    }
}

/// A body of the Messages API as Vertex takes it.
fn wrap(body: &mut Body) {
    body.remove("model");
    body.set_first("anthropic_version", json!(VERSION));
}

impl Transport for Vertex {
    fn prepare(
        &self,
        call: Call,
        freshness: Freshness,
    ) -> BoxFuture<'_, Result<HttpRequest, Error>> {
        self.request(call, freshness).boxed()
    }

    fn renewable(&self) -> bool {
        self.site.adc.is_some()
    }

    fn base(&self) -> &Url {
        &self.site.default_base
    }

    fn platform(&self) -> Option<&'static str> {
        Some(ID)
    }

    /// Claude's own errors come as they are, or as a text inside Google's; Google's come as Google
    /// has them, which Gemini's family reads by itself.
    fn refusal(&self, refusal: &Refusal<'_>) -> Option<Error> {
        let body = refusal.json()?;
        let body = body.get(0).unwrap_or(&body);
        let error = body.get("error")?;
        if self.publisher == Publisher::Google || body.get("type").is_some() {
            return None;
        }
        let message = error.get("message")?.as_str()?;
        let inner: Value = serde_json::from_str(message).unwrap_or_default();
        let text = |value: &Value, path: &str| {
            value
                .pointer(path)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let inner_message = text(&inner, "/error/message");
        let codes = match &inner_message {
            Some(_) => text(&inner, "/error/type"),
            None => text(error, "/status"),
        };
        let copy = Refusal { ..*refusal };
        Some(copy.into_error(ErrorBody {
            codes: codes.into_iter().collect(),
            message: inner_message.unwrap_or_else(|| message.to_owned()),
            retry_after: None,
        }))
    }

    fn remedy(&self, kind: &ErrorKind) -> Option<String> {
        match kind {
            ErrorKind::Auth => Some(format!(
                "run `gcloud auth application-default login` as somebody who may use Vertex AI in `{}`",
                self.site.project
            )),
            ErrorKind::Unavailable => Some(format!(
                "enable the model in Vertex's Model Garden for `{}`, or name another location than `{}`",
                self.site.project, self.site.location
            )),
            _ => None,
        }
    }

    /// Vertex has no list of what a project may use; the known models stand for it.
    fn models(&self) -> Option<BoxFuture<'_, Result<Vec<ModelInfo>, Error>>> {
        Some(ready(Ok(Vec::new())).boxed())
    }
}
