//! Where the bearer tokens of HTTP servers come from.

use std::fmt::Debug;

use futures::future::BoxFuture;
use url::Url;

/// Gives tokens for servers that want them. Asked before every request, so that a token that was
/// renewed meanwhile is used at once.
pub trait Authorization: Send + Sync + Debug {
    /// The token to send to `url`; nothing where the server has none, which is no error.
    fn token<'a>(
        &'a self,
        server: &'a str,
        url: &'a Url,
    ) -> BoxFuture<'a, Result<Option<String>, AuthError>>;

    /// The server refused the token, or the lack of one, with this `WWW-Authenticate` header.
    /// Another token is tried once; nothing means that somebody has to log in.
    fn refused<'a>(
        &'a self,
        server: &'a str,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, AuthError>>;
}

/// Why there is no token. The text is shown to the operator and must hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthError(pub String);
