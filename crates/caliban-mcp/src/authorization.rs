//! Who answers when an HTTP server wants to know who is asking.

use std::fmt::Debug;

use futures::future::BoxFuture;
use url::Url;

/// Why there is no token for a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Only a person can help.
    #[error("the MCP server `{server}` needs a login: {reason}; run `caliban mcp login {server}`")]
    NeedsLogin { server: String, reason: String },
    /// The address is none that a token may be sent to.
    #[error("no token is sent to `{address}`, the address of the MCP server `{server}`: {reason}")]
    Address {
        server: String,
        address: String,
        reason: String,
    },
    /// It may work another time.
    #[error("the token of the MCP server `{server}` could not be renewed: {reason}")]
    Renewal { server: String, reason: String },
    /// The login did not come to an end.
    #[error("the login to the MCP server `{server}` failed: {reason}")]
    Login { server: String, reason: String },
    /// What was kept cannot be read or written.
    #[error("{reason}")]
    Store { reason: String },
}

/// Tokens for HTTP servers.
pub trait Authorization: Send + Sync + Debug {
    /// The bearer token to send to this server, refreshed if it is about to expire; nothing where
    /// none is known or needed.
    fn token<'a>(
        &'a self,
        server: &'a str,
        url: &'a Url,
    ) -> BoxFuture<'a, Result<Option<String>, AuthError>>;

    /// The server answered 401: a new token to try once more, or nothing.
    fn refused<'a>(
        &'a self,
        server: &'a str,
        url: &'a Url,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, AuthError>>;
}
