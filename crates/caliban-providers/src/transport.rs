//! Where a family's calls go: address, authentication and the framing of the answer. Cloud
//! platforms are further transports; encoding and decoding never change for them.
//!
//! A transport may also know better than the family what a refusal means and which models there
//! are: platforms wrap what they serve in errors and lists of their own.

use std::fmt::Debug;
use std::sync::Arc;

use caliban_model::{Credentials, Error, ErrorKind, Freshness, ModelInfo, Origin};
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;
use url::Url;

use crate::body::Body;
use crate::failure::{Refusal, fail};
use crate::framing::Exception;

/// A call as its family encoded it, not yet bound to a platform.
#[derive(Debug, Clone)]
pub struct Call {
    /// Who is asked; errors name it.
    pub origin: Origin,
    pub method: Method,
    /// Path and query below the base URL, e.g. `v1/messages`.
    pub path: String,
    /// Absent for GET.
    pub body: Option<Body>,
    pub headers: Vec<(HeaderName, String)>,
}

/// A request ready to be sent.
#[derive(Debug)]
pub struct HttpRequest {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// How a streamed answer is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    ServerSentEvents,
    JsonLines,
    /// AWS's binary messages.
    EventStream,
}

/// Binds calls to a platform.
pub(crate) trait Transport: Send + Sync + Debug {
    fn prepare(
        &self,
        call: Call,
        freshness: Freshness,
    ) -> BoxFuture<'_, Result<HttpRequest, Error>>;

    /// Whether a rejected key is worth asking for anew.
    fn renewable(&self) -> bool;

    /// The address calls go to, for TLS set-up and error messages.
    fn base(&self) -> &Url;

    /// Whose calls these are, where it is not the family's own.
    fn platform(&self) -> Option<&'static str> {
        None
    }

    /// How answers are framed, where it is not the family's way.
    fn framing(&self) -> Option<Framing> {
        None
    }

    /// Reads a refusal in the platform's own shape; nothing where it is the family's.
    fn refusal(&self, _refusal: &Refusal<'_>) -> Option<Error> {
        None
    }

    /// What it means that the platform ends a stream with this.
    fn exception(&self, origin: &Origin, exception: &Exception) -> Error {
        fail(origin, ErrorKind::Server, exception.body.clone())
    }

    /// What the user can do about an error of this kind.
    fn remedy(&self, _kind: &ErrorKind) -> Option<String> {
        None
    }

    /// The platform's own list of models; nothing where the family asks for it.
    fn models(&self) -> Option<BoxFuture<'_, Result<Vec<ModelInfo>, Error>>> {
        None
    }
}

/// How a key is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthHeader {
    /// `x-api-key: KEY`
    XApiKey,
    /// `authorization: Bearer KEY`
    Bearer,
    /// `x-goog-api-key: KEY`
    XGoogApiKey,
}

/// The provider's own HTTP API, or a server that imitates it.
#[derive(Debug)]
pub struct Direct {
    base: Url,
    auth: AuthHeader,
    credentials: Arc<dyn Credentials>,
    headers: Vec<(HeaderName, String)>,
}

impl Direct {
    /// Calls go below `base`; `headers` are added to each.
    pub fn new(
        base: Url,
        auth: AuthHeader,
        credentials: Arc<dyn Credentials>,
        headers: Vec<(HeaderName, String)>,
    ) -> Self {
        Self {
            base,
            auth,
            credentials,
            headers,
        }
    }

    async fn prepare(&self, call: Call, freshness: Freshness) -> Result<HttpRequest, Error> {
        let origin = call.origin.clone();
        let invalid = |what: String| fail(&origin, ErrorKind::Invalid, what);
        let base = self.base.as_str().trim_end_matches('/');
        let url = Url::parse(&format!("{base}/{}", call.path))
            .map_err(|error| invalid(format!("`{base}/{}` is not a URL: {error}", call.path)))?;
        let mut request = request(call, url, &self.headers)?;
        if let Some(key) = self.credentials.key(freshness).await? {
            let (name, value) = match self.auth {
                AuthHeader::XApiKey => ("x-api-key", key.expose_secret().to_owned()),
                AuthHeader::Bearer => ("authorization", format!("Bearer {}", key.expose_secret())),
                AuthHeader::XGoogApiKey => ("x-goog-api-key", key.expose_secret().to_owned()),
            };
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                fail(
                    &origin,
                    ErrorKind::Auth,
                    "the API key holds characters that no header may carry",
                )
            })?;
            value.set_sensitive(true);
            request.headers.insert(HeaderName::from_static(name), value);
        }
        Ok(request)
    }
}

/// A request with the body and the headers of a call, and further headers before those. What proves
/// whose it is comes after.
pub(crate) fn request(
    call: Call,
    url: Url,
    further: &[(HeaderName, String)],
) -> Result<HttpRequest, Error> {
    let invalid = |what: String| fail(&call.origin, ErrorKind::Invalid, what);
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in further.iter().chain(&call.headers) {
        let value = HeaderValue::from_str(value)
            .map_err(|_| invalid(format!("the value of header `{name}` is not printable")))?;
        headers.insert(name, value);
    }
    let body = match &call.body {
        Some(body) => body
            .bytes()
            .map_err(|error| invalid(format!("the request cannot be written: {error}")))?,
        None => Vec::new(),
    };
    Ok(HttpRequest {
        method: call.method,
        url,
        headers,
        body,
    })
}

impl Transport for Direct {
    fn prepare(
        &self,
        call: Call,
        freshness: Freshness,
    ) -> BoxFuture<'_, Result<HttpRequest, Error>> {
        self.prepare(call, freshness).boxed()
    }

    fn renewable(&self) -> bool {
        self.credentials.renewable()
    }

    fn base(&self) -> &Url {
        &self.base
    }

    fn remedy(&self, kind: &ErrorKind) -> Option<String> {
        match kind {
            ErrorKind::Auth => self.credentials.remedy(),
            _ => None,
        }
    }
}
