//! The one place that begins HTTP clients.

use std::error::Error;
use std::sync::Once;
use std::time::Duration;

use reqwest::redirect::Policy;
use url::{Host, Url};

/// How long connecting may take, unless the caller knows better.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Which proxies of the environment count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proxies {
    /// All of them, for all that they are meant for.
    OfEnvironment,
    /// None where the address is this machine.
    NotForThisMachine,
}

/// Begins a client for calls to `url`. It follows no redirects, which would carry keys to another
/// host, and tells nobody where it came from.
pub fn builder(url: &Url, proxies: Proxies) -> reqwest::ClientBuilder {
    install_crypto();
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the constructor that everybody else must use"
    )]
    let builder = reqwest::Client::builder();
    let builder = builder
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::none())
        .referer(false)
        .user_agent(concat!("caliban/", env!("CARGO_PKG_VERSION")));
    let is_direct = proxies == Proxies::NotForThisMachine && is_loopback(url);
    let builder = if is_direct {
        builder.no_proxy()
    } else {
        builder
    };
    if url.scheme() == "http" && (is_direct || !has_tls_proxy()) {
        // Reading the system's roots takes longer than a whole local exchange.
        builder.tls_certs_only([])
    } else {
        builder
    }
}

/// Whether a proxy for plain requests is itself spoken to in TLS.
fn has_tls_proxy() -> bool {
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        .iter()
        .filter_map(std::env::var_os)
        .any(|proxy| proxy.to_string_lossy().starts_with("https://"))
}

/// Names the implementation of cryptography; to be called before anything makes a client of its
/// own.
pub fn install_crypto() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Fails only when a provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Whether an address names this machine by itself, without asking a name server.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// An error with its causes: the first alone rarely says what happened, and many repeat the next.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("http://localhost:1/x", true)]
    #[case("http://LOCALHOST/", true)]
    #[case("http://127.9.9.9", true)]
    #[case("http://2130706433/", true)]
    #[case("https://[::1]/", true)]
    #[case("http://localhost.example.com", false)]
    #[case("http://me.localhost", false)]
    #[case("http://127.0.0.1.evil.org/", false)]
    #[case("http://0.0.0.0/", false)]
    #[case("http://10.0.0.1", false)]
    #[case("data:text/plain,localhost", false)]
    fn this_machine_is_what_needs_no_name_server(#[case] url: &str, #[case] expected: bool) {
        assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected);
    }

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("it broke: the disk is full")]
        struct Outer(#[source] Inner);
        #[derive(Debug, thiserror::Error)]
        #[error("the disk is full")]
        struct Inner(#[source] std::io::Error);
        let told = causes(&Outer(Inner(std::io::Error::other("no blocks"))));
        assert_eq!(told, "it broke: the disk is full: no blocks");
    }
}
