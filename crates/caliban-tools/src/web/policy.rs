//! What may be fetched, and the check of every address before it is connected to.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_http::special_use;
use url::{Host, Url};

/// What a fetch may reach beyond the public internet. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebPolicy {
    pub private: PrivateAddresses,
    /// Hosts that may have addresses outside the public internet, as they stand in URLs.
    pub allowed_hosts: Vec<String>,
    /// Such hosts that come up while the session runs.
    pub opened: OpenedHosts,
}

/// Hosts of fetches that somebody approved one by one, shared with whoever hears of it.
#[derive(Debug, Clone, Default)]
pub struct OpenedHosts(Arc<Mutex<BTreeSet<String>>>);

impl OpenedHosts {
    /// More hosts than these are no approvals one by one.
    const MOST: usize = 256;

    /// Opens the host of a URL that was approved as it is. Every further fetch is judged for
    /// itself; only its addresses are no question any more.
    pub fn open(&self, url: &str) {
        let url = parse(url).ok();
        let Some(host) = url.as_ref().and_then(spelled) else {
            return;
        };
        let mut hosts = self.hosts();
        if hosts.len() < Self::MOST {
            hosts.insert(host);
        }
    }

    fn has(&self, host: &str) -> bool {
        self.hosts().contains(host)
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for OpenedHosts {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.hosts().clone() == other.hosts().clone()
    }
}

impl Eq for OpenedHosts {}

/// The host of a URL as it is compared.
fn spelled(url: &Url) -> Option<String> {
    Some(match url.host()? {
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
        Host::Domain(name) => name.to_owned(),
    })
}

/// Whether addresses outside the public internet may be reached: loopback, private networks,
/// link-local services and the like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    #[default]
    Refused,
    /// This machine itself, but no network it is in.
    LoopbackOnly,
    Allowed,
}

/// A URL that may be fetched, with the addresses it was checked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) url: Url,
    /// The only addresses to connect to. Empty when a proxy resolves the name.
    pub(super) addresses: Vec<SocketAddr>,
}

/// Why a URL is not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("`{url}` is not a valid URL: {reason}")]
    NotAUrl { url: String, reason: String },
    #[error("only http and https URLs can be fetched, not `{0}`")]
    Scheme(String),
    #[error("the URL holds a user name or password; credentials are never sent")]
    Credentials,
    #[error(
        "`{host}` has the address {address}, which is {kind} and not on the public internet; the user can open it with a rule that names it, such as `--allow 'WebFetch:{origin}/*'`"
    )]
    Private {
        host: String,
        /// The beginning of its URLs.
        origin: String,
        address: IpAddr,
        kind: &'static str,
    },
    #[error("the host `{host}` cannot be resolved: {reason}")]
    Unresolved { host: String, reason: String },
}

/// Parses a URL that a fetch may start from or be redirected to.
pub(super) fn parse(text: &str) -> Result<Url, Refusal> {
    let url = Url::parse(text.trim()).map_err(|error| Refusal::NotAUrl {
        url: text.to_owned(),
        reason: error.to_string(),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refusal::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refusal::Credentials);
    }
    Ok(url)
}

impl WebPolicy {
    /// Resolves the host and checks every address. Connecting only to the result makes it
    /// useless for a name server to answer differently the next time.
    ///
    /// Behind a proxy the proxy resolves names, so there only what this machine can resolve is
    /// checked.
    pub(super) async fn admit(&self, url: Url, route: Route) -> Result<Target, Refusal> {
        let port = url.port_or_known_default().unwrap_or(443);
        let (host, found) = match url.host() {
            Some(Host::Ipv4(address)) => (address.to_string(), Ok(vec![IpAddr::V4(address)])),
            Some(Host::Ipv6(address)) => (address.to_string(), Ok(vec![IpAddr::V6(address)])),
            Some(Host::Domain(name)) => (name.to_owned(), lookup(name, port).await),
            None => (String::new(), Err("the URL has no host".to_owned())),
        };
        let addresses = match (found, route) {
            (Ok(addresses), _) => addresses,
            (Err(_), Route::Proxy) => Vec::new(),
            (Err(reason), Route::Direct) => return Err(Refusal::Unresolved { host, reason }),
        };
        let refused = addresses
            .iter()
            .filter(|address| !self.admits(&host, **address))
            .find_map(|&address| Some((address, special_use(address)?)));
        if let Some((address, kind)) = refused {
            return Err(Refusal::Private {
                host,
                origin: url.origin().ascii_serialization(),
                address,
                kind,
            });
        }
        Ok(Target {
            url,
            addresses: addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, port))
                .collect(),
        })
    }

    /// Whether a host may have this address even if it is not on the public internet.
    fn admits(&self, host: &str, address: IpAddr) -> bool {
        let by_kind = match self.private {
            PrivateAddresses::Allowed => true,
            PrivateAddresses::LoopbackOnly => address.is_loopback(),
            PrivateAddresses::Refused => false,
        };
        by_kind
            || self.opened.has(host)
            || self
                .allowed_hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}

/// Whether a connection is made to the host itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Direct,
    Proxy,
}

async fn lookup(host: &str, port: u16) -> Result<Vec<IpAddr>, String> {
    let found: Vec<IpAddr> = tokio::net::lookup_host((host, port))
        .await
        .map_err(|error| error.to_string())?
        .map(|address| address.ip())
        .collect();
    if found.is_empty() {
        return Err("it has no address".to_owned());
    }
    Ok(found)
}

/// Whether a redirect stays on the site that was asked for: the same host, or a subdomain of it
/// or the other way round, `www.` ignored, and never from https to http.
pub(super) fn same_site(from: &Url, to: &Url) -> bool {
    if from.scheme() == "https" && to.scheme() != "https" {
        return false;
    }
    match (from.host(), to.host()) {
        (Some(Host::Domain(from)), Some(Host::Domain(to))) => {
            let (from, to) = (site(from), site(to));
            from == to || beneath(from, to) || beneath(to, from)
        }
        (from, to) => from.is_some() && from == to,
    }
}

fn site(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    host.strip_prefix("www.").unwrap_or(host)
}

/// Whether `host` is a subdomain of `parent`, which must itself be more than a suffix such as
/// `com`.
fn beneath(host: &str, parent: &str) -> bool {
    parent.contains('.')
        && host
            .strip_suffix(parent)
            .is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("http://a.com/", "https://a.com/x", true)]
    #[case("https://a.com/", "http://a.com/", false)]
    #[case("https://a.com/", "https://www.a.com/", true)]
    #[case("https://www.a.com/", "https://docs.a.com/", true)]
    #[case("https://docs.a.com/", "https://a.com/", true)]
    #[case("https://docs.a.com/", "https://blog.a.com/", false)]
    #[case("https://a.com/", "https://evil-a.com/", false)]
    #[case("https://a.com/", "https://a.com.evil.org/", false)]
    #[case("https://com/", "https://a.com/", false)]
    #[case("http://127.0.0.1:1/", "http://127.0.0.1:2/", true)]
    #[case("http://127.0.0.1/", "http://localhost/", false)]
    #[case("http://1.2.3.4/", "http://5.1.2.3/", false)]
    fn sites(#[case] from: &str, #[case] to: &str, #[case] expected: bool) {
        let url = |text| Url::parse(text).unwrap();
        assert_eq!(same_site(&url(from), &url(to)), expected);
    }

    #[rstest]
    #[case("ftp://a.com/")]
    #[case("file:///etc/passwd")]
    #[case("data:text/plain,x")]
    #[case("http://user:pass@a.com/")]
    #[case("http://user@a.com/")]
    #[case("a.com")]
    #[case("http://")]
    #[case("")]
    fn unusable_urls_are_refused(#[case] url: &str) {
        assert!(parse(url).is_err());
    }

    #[tokio::test]
    async fn a_name_no_one_can_resolve_is_left_to_a_proxy() {
        let policy = WebPolicy::default();
        let url = Url::parse("http://name.invalid/").unwrap();
        let direct = policy.admit(url.clone(), Route::Direct).await;
        assert!(matches!(direct, Err(Refusal::Unresolved { .. })));
        let proxied = policy.admit(url, Route::Proxy).await.unwrap();
        assert_eq!(proxied.addresses, []);
    }

    #[tokio::test]
    async fn a_proxy_does_not_open_private_addresses() {
        let url = Url::parse("http://192.168.0.1/").unwrap();
        let result = WebPolicy::default().admit(url, Route::Proxy).await;
        assert!(matches!(result, Err(Refusal::Private { .. })));
    }

    #[tokio::test]
    async fn a_host_is_opened_while_the_session_runs() {
        let policy = WebPolicy::default();
        let admit = |url: &str| policy.admit(Url::parse(url).unwrap(), Route::Direct);
        assert!(admit("http://127.0.0.1:9/").await.is_err());
        policy.clone().opened.open("http://127.0.0.1:9/x?y");
        policy.opened.open("no url");
        assert!(admit("http://127.0.0.1:9/").await.is_ok());
        assert!(admit("http://127.0.0.2:9/").await.is_err());
    }

    #[tokio::test]
    async fn a_host_can_be_allowed_by_name() {
        let policy = WebPolicy {
            allowed_hosts: vec!["192.168.0.1".to_owned()],
            ..WebPolicy::default()
        };
        let admit = |url: &str| policy.admit(Url::parse(url).unwrap(), Route::Direct);
        assert!(admit("http://192.168.0.1/").await.is_ok());
        assert!(admit("http://192.168.0.2/").await.is_err());
    }
}
