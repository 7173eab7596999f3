//! A server with OAuth, from its settings.

use caliban_settings::{McpServer, McpTransport, OauthMode};
use url::Url;

use super::address;
use crate::expand::{Variables, expand};

/// The settings of a server do not add up to a login.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`mcp_servers.{server}.{key}` cannot be used: {reason}")]
pub struct ServerError {
    pub server: String,
    pub key: &'static str,
    pub reason: String,
}

/// A server that wants tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthServer {
    pub(crate) url: Url,
    pub(crate) client: Client,
    /// Asked for instead of what the server suggests, where there are any.
    pub(crate) scopes: Vec<String>,
}

/// Who we are to the authorization server, and where that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Client {
    /// Everything is discovered.
    Registered,
    /// The endpoints are discovered; the operator has a client already.
    Known(Identity),
    /// Nothing is discovered.
    Manual {
        identity: Identity,
        authorization_endpoint: Url,
        token_endpoint: Url,
    },
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Identity")
            .field("id", &self.id)
            .field("has_secret", &self.secret.is_some())
            .finish()
    }
}

impl OauthServer {
    /// A server as it is written, its variables filled in; nothing where it does without OAuth.
    pub fn from_settings(
        name: &str,
        server: &McpServer,
        variables: &Variables,
    ) -> Result<Option<Self>, ServerError> {
        let mode = server.oauth.unwrap_or(OauthMode::Off);
        match (server.transport(), mode) {
            (McpTransport::Stdio, _) | (_, OauthMode::Off) => return Ok(None),
            (McpTransport::Http | McpTransport::Sse, OauthMode::Auto | OauthMode::Manual) => {}
        }
        let fail = |key, reason| ServerError {
            server: name.to_owned(),
            key,
            reason,
        };
        let filled = |key, text: &str| {
            expand(text, key, variables).map_err(|error| fail(key, error.to_string()))
        };
        let optional = |key, text: &Option<String>| {
            text.as_deref()
                .map(|text| filled(key, text))
                .transpose()
                .map(|text| text.filter(|text| !text.is_empty()))
        };
        let text = filled("url", server.url.as_deref().unwrap_or_default())?;
        let url = Url::parse(&text).map_err(|error| fail("url", error.to_string()))?;
        if let Some(objection) = address::objection(&url) {
            return Err(fail("url", objection.to_owned()));
        }
        let config = server.oauth_config.clone().unwrap_or_default();
        let identity = optional("oauth_config.client_id", &config.client_id)?
            .map(|id| {
                let secret = optional("oauth_config.client_secret", &config.client_secret)?;
                Ok(Identity { id, secret })
            })
            .transpose()?;
        let scopes = config
            .scopes
            .iter()
            .map(|scope| filled("oauth_config.scopes", scope))
            .collect::<Result<_, _>>()?;
        let client = match (mode, identity) {
            (OauthMode::Manual, Some(identity)) => {
                let endpoint = |key, text: &Option<String>| {
                    let text = optional(key, text)?
                        .ok_or_else(|| fail(key, "`oauth = \"manual\"` needs it".to_owned()))?;
                    address::endpoint(&text, &url).map_err(|reason| fail(key, reason))
                };
                Client::Manual {
                    identity,
                    authorization_endpoint: endpoint("oauth_config.auth_url", &config.auth_url)?,
                    token_endpoint: endpoint("oauth_config.token_url", &config.token_url)?,
                }
            }
            (OauthMode::Manual, None) => {
                return Err(fail(
                    "oauth_config.client_id",
                    "`oauth = \"manual\"` needs it".to_owned(),
                ));
            }
            (OauthMode::Auto | OauthMode::Off, Some(identity)) => Client::Known(identity),
            (OauthMode::Auto | OauthMode::Off, None) => Client::Registered,
        };
        Ok(Some(Self {
            url,
            client,
            scopes,
        }))
    }

    pub fn url(&self) -> &Url {
        &self.url
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<Option<OauthServer>, ServerError> {
        let server: McpServer = serde_json::from_value(value).unwrap();
        let variables = Variables::new(|name| (name == "ID").then(|| "the-id".to_owned()));
        OauthServer::from_settings("s", &server, &variables)
    }

    #[rstest]
    #[case(json!({"command": "x", "oauth": "auto"}))]
    #[case(json!({"type": "http", "url": "http://a.example"}))]
    #[case(json!({"type": "http", "url": "http://a.example", "oauth": "off"}))]
    fn not_every_server_has_oauth(#[case] server: Value) {
        assert_eq!(read(server), Ok(None));
    }

    #[test]
    fn variables_are_filled_in() {
        let server = read(json!({
            "type": "http", "url": "https://a.example/mcp", "oauth": "manual",
            "oauth_config": {
                "client_id": "${ID}", "client_secret": "${NONE:-}", "scopes": ["${NONE:-read}"],
                "auth_url": "https://auth.example/authorize",
                "token_url": "${NONE:-https://auth.example}/token",
            },
        }))
        .unwrap()
        .unwrap();
        assert_eq!(server.scopes, ["read"]);
        let Client::Manual {
            identity,
            token_endpoint,
            ..
        } = server.client
        else {
            panic!("{server:?}");
        };
        assert_eq!((identity.id.as_str(), identity.secret), ("the-id", None));
        assert_eq!(token_endpoint.as_str(), "https://auth.example/token");
    }

    #[rstest]
    #[case(json!({"url": "http://a.example"}), "url")]
    #[case(json!({"url": "${NONE}"}), "url")]
    #[case(json!({"oauth": "manual"}), "oauth_config.client_id")]
    #[case(json!({"oauth": "manual", "oauth_config": {"client_id": "i"}}), "oauth_config.auth_url")]
    #[case(
        json!({"oauth": "manual", "oauth_config": {
            "client_id": "i", "auth_url": "https://b.example", "token_url": "http://b.example"}}),
        "oauth_config.token_url"
    )]
    #[case(
        json!({"oauth": "manual", "oauth_config": {
            "client_id": "i", "auth_url": "javascript:x", "token_url": "https://b.example"}}),
        "oauth_config.auth_url"
    )]
    fn what_cannot_be_used_is_named(#[case] change: Value, #[case] key: &str) {
        let mut server = json!({"type": "http", "url": "https://a.example", "oauth": "auto"});
        for (name, value) in change.as_object().unwrap() {
            server[name] = value.clone();
        }
        assert_eq!(read(server).unwrap_err().key, key);
    }
}
