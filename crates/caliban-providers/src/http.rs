//! The HTTP client for calls to a provider.

use std::time::Duration;

use caliban_http::Proxies;
use caliban_model::{Error, ErrorKind, Origin};
use url::Url;

use crate::failure::fail;

/// How long to wait for what. There is no limit on a whole answer: long ones are normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// From sending the request to the first byte of the answer.
    pub first_byte: Duration,
    /// Between any two bytes of an answer.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(2),
            idle: Duration::from_mins(5),
        }
    }
}

/// A client for calls to `base`. Proxies come from the environment.
pub(crate) fn client(
    base: &Url,
    timeouts: &Timeouts,
    origin: &Origin,
) -> Result<reqwest::Client, Error> {
    caliban_http::builder(base, Proxies::OfEnvironment)
        .connect_timeout(timeouts.connect)
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_nodelay(true)
        .build()
        .map_err(|error| {
            fail(
                origin,
                ErrorKind::Network,
                format!("the HTTP client cannot be set up: {error}"),
            )
        })
}
