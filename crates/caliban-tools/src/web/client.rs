//! HTTP clients that connect to checked addresses only.

use caliban_http::Proxies;
use url::Url;

use super::policy::{Route, Target};

/// A client for one request to a checked target: it connects to the checked addresses only.
/// Redirects are left to the caller, since each target must be checked; there are no cookies.
/// Proxies come from the environment; a proxied request goes to the proxy, which resolves the
/// name itself.
pub(super) fn pinned(target: &Target) -> reqwest::Result<reqwest::Client> {
    let builder = builder(&target.url);
    match target.url.domain() {
        // An empty list stands too: then only a proxy can reach the host.
        Some(name) => builder.resolve_to_addrs(name, &target.addresses),
        None => builder,
    }
    .build()
}

/// A client for calls to a fixed service.
pub(super) fn plain(base: &Url) -> reqwest::Result<reqwest::Client> {
    builder(base).build()
}

/// Whether the environment sends requests for such a URL through a proxy. Exceptions are not
/// looked at: an excepted host is reached directly, at its checked addresses or not at all.
pub(super) fn route(url: &Url, variable: impl Fn(&str) -> Option<String>) -> Route {
    let names: &[&str] = match url.scheme() {
        "https" => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        _ => &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
    };
    let is_set = |name: &&str| variable(name).is_some_and(|value| !value.trim().is_empty());
    if names.iter().any(is_set) {
        Route::Proxy
    } else {
        Route::Direct
    }
}

fn builder(url: &Url) -> reqwest::ClientBuilder {
    // Every client serves one exchange.
    caliban_http::builder(url, Proxies::OfEnvironment).pool_max_idle_per_host(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_of_the_scheme_counts() {
        let set = |wanted: &'static str| {
            move |name: &str| (name == wanted).then(|| "http://proxy:3128".to_owned())
        };
        let http = Url::parse("http://a.com").unwrap();
        let https = Url::parse("https://a.com").unwrap();
        assert_eq!(route(&https, set("HTTPS_PROXY")), Route::Proxy);
        assert_eq!(route(&http, set("HTTPS_PROXY")), Route::Direct);
        assert_eq!(route(&http, set("all_proxy")), Route::Proxy);
        assert_eq!(route(&https, |_| Some(" ".to_owned())), Route::Direct);
    }

    #[tokio::test]
    async fn a_pinned_client_never_asks_a_name_server() {
        let target = Target {
            url: Url::parse("http://localhost:9/").unwrap(),
            addresses: Vec::new(),
        };
        let error = pinned(&target)
            .unwrap()
            .get(target.url)
            .send()
            .await
            .unwrap_err();
        assert!(error.is_connect(), "{error:?}");
    }
}
