//! Patterns about URLs: scheme, host, port and path are matched each for itself, so that no
//! spelling of one part can pass for another.

use url::Url;

use crate::wildcard::Wildcard;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct UrlPattern {
    scheme: Option<Wildcard>,
    /// The labels of the host, last first. A label that is only `*` stands for one or more.
    labels: Vec<Label>,
    port: Port,
    path: Option<Wildcard>,
    literal_host: Option<String>,
    text: Wildcard,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Label {
    Many,
    One(Wildcard),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    /// The scheme's own.
    Default,
    Any,
    Is(u16),
}

/// Why a text is no pattern about URLs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlPatternError {
    #[error("it has no host")]
    NoHost,
    #[error("a user name in a URL is never allowed")]
    UserInfo,
    #[error("`{0}` is not a port")]
    Port(String),
}

impl UrlPattern {
    /// Everything on one host, its name given in full.
    pub fn domain(host: &str) -> Result<Self, UrlPatternError> {
        Self::new(&format!("{host}:*/*"))
    }

    pub fn new(text: &str) -> Result<Self, UrlPatternError> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (
                Some(Wildcard::without_classes(&scheme.to_lowercase())),
                rest,
            ),
            None => (None, text),
        };
        let cut = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        if authority.contains('@') {
            return Err(UrlPatternError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        if host.is_empty() {
            return Err(UrlPatternError::NoHost);
        }
        let host = host.to_lowercase();
        let labels = if host.starts_with('[') {
            vec![Label::One(Wildcard::without_classes(&host))]
        } else {
            host.trim_end_matches('.')
                .split('.')
                .rev()
                .map(|label| match label {
                    "*" | "**" => Label::Many,
                    label => Label::One(Wildcard::without_classes(label)),
                })
                .collect()
        };
        Ok(Self {
            scheme,
            labels,
            port,
            path: (!path.is_empty()).then(|| Wildcard::without_classes(path)),
            literal_host: literal(&host).map(str::to_owned),
            text: Wildcard::without_classes(text),
        })
    }

    /// Whether it may allow this URL.
    pub fn allows(&self, url: &str) -> bool {
        let text = url.trim();
        let Ok(url) = Url::parse(text) else {
            return false;
        };
        if needs_repair(text) {
            return false;
        }
        let plain = url.username().is_empty() && url.password().is_none();
        let known = matches!(url.scheme(), "http" | "https");
        plain && known && self.matches(&url)
    }

    /// Whether it objects to this URL, as parsed or as written.
    pub fn objects(&self, url: &str) -> bool {
        let parsed = Url::parse(url.trim()).is_ok_and(|mut url| {
            if self.matches(&url) {
                return true;
            }
            // Another port of a refused host is refused too.
            let _ = url.set_port(None);
            url.set_query(None);
            self.matches(&url) || self.matches_path(&plain_path(url.path()), &url)
        });
        parsed || self.text.matches(url)
    }

    /// The host, where the pattern spells it; `http://localhost*` does, and means more.
    pub fn literal_host(&self) -> Option<&str> {
        self.literal_host.as_deref()
    }

    fn matches(&self, url: &Url) -> bool {
        let full = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        self.matches_path(&full, url)
    }

    /// Whether it matches a URL that has this path.
    fn matches_path(&self, path: &str, url: &Url) -> bool {
        let Some(host) = url.host_str() else {
            return false;
        };
        let host = host.trim_end_matches('.');
        let labels: Vec<&str> = if host.starts_with('[') {
            vec![host]
        } else {
            host.split('.').rev().collect()
        };
        let scheme = self
            .scheme
            .as_ref()
            .is_none_or(|scheme| scheme.matches(url.scheme()));
        let port = match self.port {
            Port::Any => true,
            Port::Default => url.port().is_none(),
            Port::Is(port) => url.port_or_known_default() == Some(port),
        };
        let path = self.path.as_ref().is_none_or(|wanted| wanted.matches(path));
        scheme && port && path && host_matches(&self.labels, &labels)
    }
}

/// The host that a pattern spells, before a last wildcard.
fn literal(host: &str) -> Option<&str> {
    let spelled = host.strip_suffix('*').unwrap_or(host);
    (!spelled.is_empty() && !spelled.contains(['*', '?'])).then_some(spelled)
}

/// Whether a parser has to guess what was meant, in which another may guess otherwise.
fn needs_repair(text: &str) -> bool {
    let has_host = text
        .split_once("://")
        .is_some_and(|(_, rest)| !rest.starts_with('/'));
    !has_host || text.contains(|letter: char| letter == '\\' || letter.is_control())
}

/// A path as a server may understand it: encoded bytes decoded, empty components left out.
fn plain_path(path: &str) -> String {
    let mut bytes = path.as_bytes().iter();
    let mut plain = Vec::with_capacity(path.len());
    while let Some(&byte) = bytes.next() {
        let hex = bytes.as_slice().get(..2).filter(|_| byte == b'%');
        let decoded = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if decoded.is_some() {
            bytes.nth(1);
        }
        let byte = decoded.unwrap_or(byte);
        if byte != b'/' || plain.last() != Some(&b'/') {
            plain.push(byte);
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn split_port(authority: &str) -> Result<(&str, Port), UrlPatternError> {
    let after_brackets = authority.rfind(']').map_or(0, |end| end + 1);
    let Some(colon) = authority[after_brackets..].rfind(':') else {
        let port = if authority.ends_with('*') && authority.len() > 1 {
            // `http://127.0.0.1*` reads as "whatever follows".
            Port::Any
        } else if authority == "*" {
            Port::Any
        } else {
            Port::Default
        };
        return Ok((authority, port));
    };
    let (host, port) = authority.split_at(after_brackets + colon);
    let port = &port[1..];
    let port = match port {
        "*" => Port::Any,
        text => Port::Is(
            // `http://127.0.0.1:8080*` reads as "whatever follows" the port.
            text.strip_suffix('*')
                .unwrap_or(text)
                .parse()
                .map_err(|_| UrlPatternError::Port(text.to_owned()))?,
        ),
    };
    Ok((host, port))
}

/// Both last label first; a `*` label takes one or more.
fn host_matches(pattern: &[Label], labels: &[&str]) -> bool {
    match (pattern.split_first(), labels.split_first()) {
        (None, None) => true,
        (Some((Label::One(wildcard), pattern)), Some((label, labels))) => {
            wildcard.matches(label) && host_matches(pattern, labels)
        }
        (Some((Label::Many, rest)), Some((_, labels))) => {
            host_matches(rest, labels) || host_matches(pattern, labels)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("http://localhost:3000/*", Some("localhost"))]
    #[case("http://127.0.0.1*", Some("127.0.0.1"))]
    #[case("http://*.local/", None)]
    #[case("http://*", None)]
    fn a_host_is_spelled_or_not(#[case] pattern: &str, #[case] host: Option<&str>) {
        assert_eq!(UrlPattern::new(pattern).unwrap().literal_host(), host);
    }

    #[rstest]
    #[case("https://docs.*", "https://docs.rs/tokio", true)]
    #[case("https://docs.*", "https://docs.anthropic.com/en/x?y=1", true)]
    #[case("https://docs.*", "https://api.example.com/", false)]
    #[case("https://docs.*", "http://docs.rs/", false)]
    #[case("https://docs.*", "https://evil.com/https://docs.rs", false)]
    #[case("https://example.com/*", "https://example.com.evil.com/", false)]
    #[case("https://example.com*", "https://example.com.evil.com/", false)]
    #[case("https://example.com/*", "https://example.com@evil.com/", false)]
    #[case(
        "https://example.com/*",
        "https://evil.com/?https://example.com/",
        false
    )]
    #[case("https://example.com/*", "https://user@example.com/", false)]
    #[case("https://*.example.com/*", "https://a.b.example.com/x", true)]
    #[case("https://*.example.com/*", "https://example.com/x", false)]
    #[case("https://*.example.com/*", "https://evilexample.com/x", false)]
    #[case(
        "https://example.com/docs/*",
        "https://example.com/docs/../admin",
        false
    )]
    #[case("https://example.com/docs/*", "https://EXAMPLE.com/docs/a", true)]
    #[case("https://example.com/*", "https://example.com:8443/", false)]
    #[case("https://example.com:8443/*", "https://example.com:8443/", true)]
    #[case("http://127.0.0.1*", "http://127.0.0.1:8080/x", true)]
    #[case("http://127.0.0.1:*/x", "http://127.0.0.1:9/x", true)]
    #[case("http://127.0.0.1:80*", "http://127.0.0.1:80/x?y", true)]
    #[case("http://127.0.0.1:80*", "http://127.0.0.1:8080/x", false)]
    #[case("http://127.0.0.1:*/x", "http://2130706433:9/x", true)]
    #[case("docs.rs/*", "https://docs.rs/x", true)]
    #[case("docs.rs", "https://docs.rs/x", true)]
    #[case("docs.rs", "ftp://docs.rs/x", false)]
    #[case("https://example.com/a", "https://example.com/a?leak=1", false)]
    #[case("*", "https://anything.example/", true)]
    #[case("https://example.com/*", "https://example.com\\@evil.com/", false)]
    #[case("https://example.com/*", "https:///example.com/", false)]
    #[case("https://example.com/*", "https://exa\tmple.com/", false)]
    fn urls_are_matched_by_their_parts(
        #[case] pattern: &str,
        #[case] url: &str,
        #[case] allowed: bool,
    ) {
        assert_eq!(UrlPattern::new(pattern).unwrap().allows(url), allowed);
    }

    #[test]
    fn objections_ignore_ports_and_hold_for_the_text_too() {
        let pattern = UrlPattern::new("https://example.com/*").unwrap();
        for url in [
            "https://example.com:8443/x",
            "https://user:pw@example.com/x",
            "https://EXAMPLE.com./x",
        ] {
            assert!(pattern.objects(url), "{url}");
        }
        assert!(!pattern.objects("https://example.org/"));
    }

    #[test]
    fn objections_hold_for_every_spelling_of_a_path() {
        let pattern = UrlPattern::new("https://example.com/admin*").unwrap();
        for path in ["%61dmin", "/admin", "x/../admin", "%2fadmin", "admin/%zz"] {
            assert!(
                pattern.objects(&format!("https://example.com/{path}")),
                "{path}"
            );
        }
        assert!(!pattern.objects("https://example.com/public%"));
    }

    #[test]
    fn what_is_no_pattern_is_an_error() {
        for wrong in ["https:///x", "https://a@b/", "https://a:x/"] {
            assert!(UrlPattern::new(wrong).is_err(), "{wrong}");
        }
    }
}
