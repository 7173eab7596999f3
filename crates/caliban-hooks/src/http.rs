//! Handlers that are URLs: the event is posted, the answer's body is the decision.

use std::fmt;
use std::sync::OnceLock;

use caliban_http::{Proxies, causes};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use url::Url;

/// The longest answer that is read, in bytes.
const BODY: usize = 1024 * 1024;

/// A URL that may be called, and the headers it is called with. The URL's path and the headers
/// may hold secrets and are never shown.
#[derive(Clone)]
pub(crate) struct Endpoint {
    url: Url,
    headers: HeaderMap,
    /// Built at the first call: reading the system's certificates costs more than starting up.
    client: OnceLock<reqwest::Client>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("it could not be called: {}", causes(.0))]
    Call(#[source] reqwest::Error),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("its answer is longer than {BODY} bytes")]
    TooLong,
    #[error("its answer is not UTF-8")]
    NotText,
}

impl Endpoint {
    pub(crate) fn new(url: Url, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        let mut map = HeaderMap::new();
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, mut value) in headers {
            value.set_sensitive(true);
            map.insert(name, value);
        }
        Self {
            url,
            headers: map,
            client: OnceLock::new(),
        }
    }

    /// Posts the event and returns the body of a successful answer. Redirects are not followed:
    /// they would carry the event and the headers to a host nobody listed.
    pub(crate) async fn post(&self, event: Vec<u8>) -> Result<String, HttpError> {
        let failed = |error: reqwest::Error| HttpError::Call(error.without_url());
        let mut response = self
            .client()
            .map_err(failed)?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(event)
            .send()
            .await
            .map_err(failed)?;
        if !response.status().is_success() {
            return Err(HttpError::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > BODY {
                return Err(HttpError::TooLong);
            }
            body.extend_from_slice(&piece);
        }
        String::from_utf8(body).map_err(|_| HttpError::NotText)
    }

    fn client(&self) -> reqwest::Result<&reqwest::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = build(&self.url)?;
        Ok(self.client.get_or_init(|| client))
    }

    /// What to call it in messages: the server, without the path.
    pub(crate) fn label(&self) -> String {
        label(&self.url)
    }
}

/// A URL without what may be secret in it.
pub(crate) fn label(url: &Url) -> String {
    url.origin().ascii_serialization()
}

impl PartialEq for Endpoint {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url && self.headers == other.headers
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.label())
    }
}

fn build(url: &Url) -> reqwest::Result<reqwest::Client> {
    caliban_http::builder(url, Proxies::NotForThisMachine)
        // A connection kept from the last call may be dead, and then the next would be refused.
        .pool_max_idle_per_host(0)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_shown() {
        let url = Url::parse("http://127.0.0.1:9/hook/app-secret/run-token").unwrap();
        let header = (
            HeaderName::from_static("authorization"),
            HeaderValue::from_static("Bearer key"),
        );
        let endpoint = Endpoint::new(url, vec![header]);
        assert_eq!(format!("{endpoint:?}"), "Endpoint(http://127.0.0.1:9)");
        assert!(!format!("{:?}", endpoint.headers).contains("key"));
    }
}
