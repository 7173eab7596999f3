//! The one place that builds HTTP clients.

use std::sync::Once;
use std::time::Duration;

use caliban_model::{Error, ErrorKind, Origin};
use reqwest::redirect::Policy;
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

/// A client for calls to `base`. Proxies come from the environment. Redirects are not followed:
/// they would carry the key to another host.
pub(crate) fn client(
    base: &Url,
    timeouts: &Timeouts,
    origin: &Origin,
) -> Result<reqwest::Client, Error> {
    install_crypto();
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the constructor that everybody else must use"
    )]
    let builder = reqwest::Client::builder();
    let builder = builder
        .connect_timeout(timeouts.connect)
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_nodelay(true)
        .redirect(Policy::none())
        .user_agent(concat!("caliban/", env!("CARGO_PKG_VERSION")));
    let builder = if needs_tls(base) {
        builder
    } else {
        // Reading the system's roots takes longer than a whole local exchange.
        builder.tls_certs_only([])
    };
    builder.build().map_err(|error| {
        fail(
            origin,
            ErrorKind::Network,
            format!("the HTTP client cannot be set up: {error}"),
        )
    })
}

/// A plain-http address needs no TLS unless a proxy on the way does.
fn needs_tls(base: &Url) -> bool {
    base.scheme() != "http"
        || ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
            .iter()
            .filter_map(std::env::var_os)
            .any(|proxy| proxy.to_string_lossy().starts_with("https://"))
}

fn install_crypto() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Fails only when a provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
