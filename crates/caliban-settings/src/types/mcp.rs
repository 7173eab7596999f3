//! MCP servers as they are written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One server. Which fields belong to which transport is checked once all scopes are merged,
/// because a scope may add to a server of another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpServer {
    /// How the server is reached; `stdio` unless set. `transport` is the same key.
    #[serde(
        rename = "type",
        alias = "transport",
        skip_serializing_if = "Option::is_none"
    )]
    pub transport: Option<McpTransport>,
    /// The program of a stdio server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of a stdio server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The working directory of a stdio server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Run a stdio server in the sandbox, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<bool>,
    /// The address of an HTTP or SSE server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers sent with every request to an HTTP or SSE server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthMode>,
    /// Endpoints and client for `oauth = "manual"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_config: Option<McpOauth>,
    /// Leave the server out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Offer the server's tools by search; `false` always offers them all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lazy: Option<bool>,
    #[serde(skip_serializing_if = "McpPermissions::is_empty")]
    pub permissions: McpPermissions,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl McpServer {
    pub fn transport(&self) -> McpTransport {
        self.transport.unwrap_or(McpTransport::Stdio)
    }

    pub fn is_disabled(&self) -> bool {
        self.disabled == Some(true)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpTransport {
    Stdio,
    #[serde(alias = "streamable-http", alias = "streamableHttp")]
    Http,
    Sse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OauthMode {
    Off,
    Auto,
    Manual,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpOauth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// For clients that have one; better a `${VAR}` than the secret itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Rules for one server's tools, by their own names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpPermissions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl McpPermissions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
