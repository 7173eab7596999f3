//! Which URLs HTTP handlers may call: patterns over the parts of a parsed URL, never over its
//! text.

use url::{Host, Url};

use crate::matcher::glob;

/// A pattern of URLs: `https://hooks.example.com/*`, `https://*.example.com`,
/// `http://localhost:*`, or `*` for all.
///
/// The scheme is exact. A host that starts with `*.` covers its subdomains, `*` any host at any
/// port. Without a port the scheme's own is meant. In the path a star stands for any letters,
/// slashes too; without a path the whole host is meant, and a star at the end of the host or the
/// port is whatever follows it: `http://127.0.0.1*` is that host at any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlPattern(Option<Parts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    scheme: String,
    host: HostPattern,
    port: PortPattern,
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Any,
    Exact(String),
    /// Any host beneath this one.
    Beneath(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PortPattern {
    Any,
    Exact(u16),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrlPattern {
    #[error("it must start with `https://` or `http://`")]
    Scheme,
    #[error("it must not hold a user name or password")]
    Credentials,
    #[error(
        "its host is not valid; a star may only be the whole host or stand before the first dot"
    )]
    Host,
    #[error("its port must be a number or `*`")]
    Port,
    #[error("it must end with the path: a query or fragment is not compared")]
    Query,
}

impl UrlPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, BadUrlPattern> {
        let text = text.trim();
        if text == "*" || text == "**" {
            return Ok(Self(None));
        }
        let (scheme, rest) = text.split_once("://").ok_or(BadUrlPattern::Scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        let default_port = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return Err(BadUrlPattern::Scheme),
        };
        if rest.contains(['?', '#']) {
            return Err(BadUrlPattern::Query);
        }
        let cut = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        let path = Some(path).filter(|path| !path.is_empty());
        if authority.contains('@') {
            return Err(BadUrlPattern::Credentials);
        }
        let (host, port) = split_port(authority);
        let (host, port) = match port {
            None if host == "*" => (host, PortPattern::Any),
            None => match open(host, path) {
                Some(host) => (host, PortPattern::Any),
                None => (host, PortPattern::Exact(default_port)),
            },
            Some("*") => (host, PortPattern::Any),
            Some(port) => {
                let digits = open(port, path).unwrap_or(port);
                let port = digits.parse().map_err(|_| BadUrlPattern::Port)?;
                (host, PortPattern::Exact(port))
            }
        };
        Ok(Self(Some(Parts {
            host: HostPattern::parse(host)?,
            port,
            scheme,
            path: path.unwrap_or("*").to_owned(),
        })))
    }

    pub(crate) fn matches(&self, url: &Url) -> bool {
        let Self(Some(parts)) = self else {
            return true;
        };
        parts.scheme == url.scheme()
            && url.host_str().is_some_and(|host| parts.host.matches(host))
            && match parts.port {
                PortPattern::Any => true,
                PortPattern::Exact(port) => url.port_or_known_default() == Some(port),
            }
            && glob(&parts.path, url.path())
    }
}

impl HostPattern {
    fn parse(text: &str) -> Result<Self, BadUrlPattern> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (host, is_parent) = match text.strip_prefix("*.") {
            Some(parent) => (parent, true),
            None => (text, false),
        };
        if host.contains('*') {
            return Err(BadUrlPattern::Host);
        }
        // Spelt as it is in a parsed URL: lower case, and names in other scripts encoded.
        match (Host::parse(host), is_parent) {
            (Ok(host), false) => Ok(Self::Exact(host.to_string())),
            (Ok(Host::Domain(name)), true) => Ok(Self::Beneath(name)),
            (Ok(_), true) | (Err(_), _) => Err(BadUrlPattern::Host),
        }
    }

    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(name) => host == name,
            Self::Beneath(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|labels| labels.len() > 1 && labels.ends_with('.')),
        }
    }
}

/// What stands before a star that ends a pattern: whatever follows it is in the star. A name that
/// goes on in it could be anybody's.
fn open<'a>(text: &'a str, path: Option<&str>) -> Option<&'a str> {
    let spelled = text.strip_suffix('*').filter(|_| path.is_none())?;
    (!spelled.is_empty() && !spelled.ends_with('.')).then_some(spelled)
}

/// Splits `host:port`; the colons of `[::1]` belong to the host.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "https://hooks.example.com/*",
        "https://hooks.example.com/preflight",
        true
    )]
    #[case(
        "https://hooks.example.com/*",
        "https://hooks.example.com/a/b?c=d",
        true
    )]
    #[case("https://hooks.example.com/*", "https://HOOKS.example.com:443/a", true)]
    #[case("https://hooks.example.com/*", "http://hooks.example.com/a", false)]
    #[case(
        "https://hooks.example.com/*",
        "https://hooks.example.com:8443/a",
        false
    )]
    #[case(
        "https://hooks.example.com/*",
        "https://hooks.example.com.evil.org/a",
        false
    )]
    #[case(
        "https://hooks.example.com/*",
        "https://evil.org/hooks.example.com/a",
        false
    )]
    #[case(
        "https://hooks.example.com/*",
        "https://evil.org/?https://hooks.example.com/",
        false
    )]
    #[case(
        "https://hooks.example.com/*",
        "https://evil.org#https://hooks.example.com/",
        false
    )]
    #[case(
        "https://hooks.example.com/a/*",
        "https://hooks.example.com/a/../b",
        false
    )]
    #[case(
        "https://hooks.example.com",
        "https://hooks.example.com/any/path",
        true
    )]
    #[case("https://hooks.example.com/", "https://hooks.example.com/", true)]
    #[case("https://hooks.example.com/", "https://hooks.example.com/a", false)]
    #[case("https://*.example.com/*", "https://a.b.example.com/", true)]
    #[case("https://*.example.com/*", "https://example.com/", false)]
    #[case("https://*.example.com/*", "https://evilexample.com/", false)]
    #[case("https://*/hook", "https://anything.org/hook", true)]
    #[case("https://*/hook", "https://anything.org/other", false)]
    #[case("http://localhost:*", "http://localhost:19836/hook", true)]
    #[case("http://localhost*", "http://localhost:19836/hook", true)]
    #[case("https://example.com*", "https://example.com.evil.org/", false)]
    #[case("http://localhost:19836*", "http://localhost:19836/hook", true)]
    #[case("http://localhost:1983*", "http://localhost:19836/hook", false)]
    #[case("http://*", "http://localhost:19836/hook", true)]
    #[case("http://*", "https://localhost/hook", false)]
    #[case("**", "https://localhost/hook", true)]
    #[case("http://[::1]:9/*", "http://[::1]:9/a", true)]
    #[case("http://[::1]/*", "http://[::1]:9/a", false)]
    #[case("https://bücher.example/*", "https://xn--bcher-kva.example/", true)]
    #[case("*", "http://anything.org/", true)]
    fn patterns(#[case] pattern: &str, #[case] url: &str, #[case] expected: bool) {
        let pattern = UrlPattern::parse(pattern).unwrap();
        assert_eq!(pattern.matches(&Url::parse(url).unwrap()), expected);
    }

    #[rstest]
    #[case("hooks.example.com/*", BadUrlPattern::Scheme)]
    #[case("ftp://a/", BadUrlPattern::Scheme)]
    #[case("*://a/", BadUrlPattern::Scheme)]
    #[case("https://user@a/", BadUrlPattern::Credentials)]
    #[case("https://a.*.com/", BadUrlPattern::Host)]
    #[case("https://a*.com/", BadUrlPattern::Host)]
    #[case("https://docs.*", BadUrlPattern::Host)]
    #[case("https://a*/", BadUrlPattern::Host)]
    #[case("https://*.1.2.3.4/", BadUrlPattern::Host)]
    #[case("https:///x", BadUrlPattern::Host)]
    #[case("https://a:b/", BadUrlPattern::Port)]
    #[case("https://a/?q=*", BadUrlPattern::Query)]
    fn patterns_that_cannot_be_meant(#[case] pattern: &str, #[case] expected: BadUrlPattern) {
        assert_eq!(UrlPattern::parse(pattern).unwrap_err(), expected);
    }

    proptest! {
        #[test]
        fn a_pattern_never_covers_another_host(host in "[a-z]{1,5}(\\.[a-z]{1,5}){0,2}", path in "[a-z/:@.?#*]{0,20}") {
            let pattern = UrlPattern::parse("https://hooks.example.com/*").unwrap();
            if let Ok(url) = Url::parse(&format!("https://{host}/{path}")) {
                prop_assert_eq!(pattern.matches(&url), url.host_str() == Some("hooks.example.com"));
            }
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,40}") {
            let _ = UrlPattern::parse(&text);
        }
    }
}
