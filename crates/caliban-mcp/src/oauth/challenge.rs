//! What a server says when it refuses a request.

use std::time::Duration;

use caliban_http::Proxies;
use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

/// How long a server may take to refuse somebody without a token.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest challenge that is looked at.
const LIMIT: usize = 8 << 10;

/// A request without a token, as a client would make it: what the server says to that. Some
/// servers say nothing to anything but a real request.
pub(crate) async fn probe(server: &Url) -> Option<String> {
    let client = caliban_http::builder(server, Proxies::NotForThisMachine)
        .timeout(PATIENCE)
        .build()
        .ok()?;
    let initialize = serde_json::json!({
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "caliban", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let response = client
        .post(server.clone())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(initialize.to_string())
        .send()
        .await
        .ok()?;
    if response.status().as_u16() != 401 {
        return None;
    }
    let header = response.headers().get("www-authenticate")?;
    header.to_str().ok().and_then(bounded)
}

/// A challenge that is worth keeping.
pub(crate) fn bounded(header: &str) -> Option<String> {
    (header.len() <= LIMIT).then(|| header.to_owned())
}

/// The scopes without which the server does not do what was asked, where it says so.
pub(crate) fn missing_scopes(www_authenticate: &str, server: &Url) -> Option<Vec<String>> {
    let challenge = WWWAuthenticateParams::parse(www_authenticate, server);
    let scopes: Vec<String> = challenge
        .scope
        .as_deref()
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    (challenge.is_insufficient_scope() && !scopes.is_empty()).then_some(scopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_scope_names_scopes() {
        let server = Url::parse("https://a.example/mcp").unwrap();
        let missing = |header| missing_scopes(header, &server);
        assert_eq!(
            missing(r#"Bearer error="insufficient_scope", scope="read write""#),
            Some(vec!["read".to_owned(), "write".to_owned()])
        );
        assert_eq!(
            missing(r#"Bearer error="invalid_token", scope="read""#),
            None
        );
        assert_eq!(missing(r#"Bearer error="insufficient_scope""#), None);
        assert_eq!(missing("Basic"), None);
    }
}
