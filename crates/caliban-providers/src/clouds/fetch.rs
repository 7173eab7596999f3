//! Small HTTP calls for logging in: tokens, roles, what a machine is.

use std::sync::OnceLock;
use std::time::Duration;

use caliban_http::{Proxies, builder};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::time::timeout;
use url::{Host, Url};

use crate::transport::HttpRequest;

/// How long one call may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(15);
/// How long a machine that may know who it is is waited for, and how often it is asked.
pub(crate) const METADATA_LIMIT: Duration = Duration::from_secs(1);
pub(crate) const METADATA_TRIES: usize = 2;
/// The most of an answer that is read.
const MAX_ANSWER: usize = 256 * 1024;

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Fetched {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().to_owned()
    }

    /// Status and the first line's worth of what was said.
    pub(crate) fn complaint(&self) -> String {
        const LONGEST: usize = 200;
        let said = self.json().and_then(|body| {
            let paths = ["/error_description", "/error/message", "/message", "/error"];
            let found = paths.iter().find_map(|path| body.pointer(path)?.as_str());
            found.map(str::to_owned)
        });
        let said = said.unwrap_or_else(|| self.text());
        let words: Vec<&str> = said.split_whitespace().collect();
        let line: String = words.join(" ").chars().take(LONGEST).collect();
        format!("status {}: {line}", self.status)
    }
}

/// Sends such calls.
#[derive(Debug, Default)]
pub(crate) struct Fetcher {
    outside: OnceLock<reqwest::Client>,
    nearby: OnceLock<reqwest::Client>,
}

impl Fetcher {
    /// Sends a request that may carry a secret.
    pub(crate) async fn send(&self, request: HttpRequest) -> Result<Fetched, String> {
        check_private(&request.url)?;
        let client = client(&self.outside, &request.url, |builder| builder)?;
        exchange(client, request, LIMIT).await
    }

    /// Asks the machine itself, without a proxy and not for long.
    pub(crate) async fn nearby(&self, request: HttpRequest) -> Result<Fetched, String> {
        let build =
            |builder: reqwest::ClientBuilder| builder.no_proxy().connect_timeout(METADATA_LIMIT);
        let client = client(&self.nearby, &request.url, build)?;
        exchange(client, request, METADATA_LIMIT).await
    }
}

fn client<'a>(
    slot: &'a OnceLock<reqwest::Client>,
    url: &Url,
    build: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<&'a reqwest::Client, String> {
    if let Some(client) = slot.get() {
        return Ok(client);
    }
    let client = build(builder(url, Proxies::OfEnvironment)).build();
    let client = client.map_err(|error| format!("the HTTP client cannot be set up: {error}"))?;
    Ok(slot.get_or_init(|| client))
}

async fn exchange(
    client: &reqwest::Client,
    request: HttpRequest,
    limit: Duration,
) -> Result<Fetched, String> {
    let host = request.url.host_str().unwrap_or_default().to_owned();
    let sending = async {
        let mut response = client
            .request(request.method, request.url)
            .headers(request.headers)
            .body(request.body)
            .send()
            .await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER {
                body.truncate(MAX_ANSWER);
                break;
            }
        }
        Ok::<_, reqwest::Error>(Fetched {
            status,
            headers,
            body,
        })
    };
    match timeout(limit, sending).await {
        Ok(Ok(fetched)) => Ok(fetched),
        Ok(Err(error)) => {
            let mut cause: &dyn std::error::Error = &error;
            while let Some(source) = cause.source() {
                cause = source;
            }
            Err(format!("{host}: {cause}"))
        }
        Err(_) => Err(format!("{host}: no answer within {} s", limit.as_secs())),
    }
}

/// Secrets travel encrypted or not at all, this machine aside.
pub(crate) fn check_private(url: &Url) -> Result<(), String> {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "https" || is_here {
        Ok(())
    } else {
        Err(format!(
            "`{}` is not encrypted, and credentials would be sent there: write https",
            url.origin().ascii_serialization()
        ))
    }
}

/// A request without a body.
pub(crate) fn get(url: Url, headers: &[(&'static str, &str)]) -> Result<HttpRequest, String> {
    request(Method::GET, url, headers, Vec::new())
}

/// A form.
pub(crate) fn form(url: Url, fields: &[(&str, &str)]) -> Result<HttpRequest, String> {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    request(Method::POST, url, &kind, form.finish().into_bytes())
}

pub(crate) fn request(
    method: Method,
    url: Url,
    headers: &[(&'static str, &str)],
    body: Vec<u8>,
) -> Result<HttpRequest, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of header `{name}` is not printable"))?;
        value.set_sensitive(true);
        map.insert(HeaderName::from_static(name), value);
    }
    Ok(HttpRequest {
        method,
        url,
        headers: map,
        body,
    })
}

pub(crate) fn parse(url: &str) -> Result<Url, String> {
    Url::parse(url).map_err(|error| format!("`{url}` is not a URL: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_nowhere_in_the_clear() {
        for (url, is_private) in [
            ("https://sts.us-east-1.amazonaws.com/", true),
            ("http://127.0.0.1:9/", true),
            ("http://localhost/", true),
            ("http://[::1]/", true),
            ("http://sts.us-east-1.amazonaws.com/", false),
            ("http://127.0.0.1.evil.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(check_private(&parse(url).unwrap()).is_ok(), is_private);
        }
    }
}
