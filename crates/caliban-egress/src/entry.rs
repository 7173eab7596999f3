//! Entries of the lists of domains: which hosts one of them names, on which ports.

use std::fmt;

use crate::host::{Host, HostError, Name, Target, parse_port};

/// The ports of the web, which a host without a port stands for in the list of what is allowed.
pub(crate) const PLAIN: u16 = 80;
pub(crate) const TLS: u16 = 443;

/// Which list an entry stands in. What denies may be broad, what allows may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Allowed,
    Denied,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    hosts: Hosts,
    ports: Ports,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Hosts {
    One(Host),
    /// All names with one label or more before this one.
    Beneath(Name),
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ports {
    Web,
    One(u16),
    All,
}

/// Why an entry names nothing that can be allowed or denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("it is an address of a page; write its host alone, such as `example.com`")]
    Url,
    #[error("it would allow everything; name hosts, such as `example.com` or `*.example.com`")]
    Everything,
    #[error("it would allow a whole top-level domain; name hosts beneath it")]
    TopLevel,
    #[error("a `*` stands only before the first dot, as in `*.example.com`, or for all ports")]
    Star,
    #[error("the port must be a number from 1 to 65535, or `*`")]
    Port,
    #[error("an IPv6 address stands in brackets, as in `[2001:db8::1]:443`")]
    Unbracketed,
    #[error("names are written in ASCII; use the form that begins with `xn--`")]
    NotAscii,
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Entry {
    pub(crate) fn parse(text: &str, list: List) -> Result<Self, EntryError> {
        let text = text.trim();
        if text.contains('/') {
            return Err(EntryError::Url);
        }
        if !text.is_ascii() {
            return Err(EntryError::NotAscii);
        }
        let (host, port) = split(text)?;
        Ok(Self {
            hosts: Hosts::parse(host, list)?,
            ports: Ports::parse(port, list)?,
        })
    }

    /// The narrowest entry that names this target: the two ports of the web go together.
    pub(crate) fn covering(target: &Target) -> Self {
        Self {
            hosts: Hosts::One(target.host.clone()),
            ports: match target.port {
                PLAIN | TLS => Ports::Web,
                port => Ports::One(port),
            },
        }
    }

    pub(crate) fn names(&self, target: &Target) -> bool {
        let host = match &self.hosts {
            Hosts::One(host) => *host == target.host,
            Hosts::Beneath(parent) => match &target.host {
                Host::Name(name) => name.is_beneath(parent),
                Host::Address(_) => false,
            },
            Hosts::All => true,
        };
        let port = match self.ports {
            Ports::Web => matches!(target.port, PLAIN | TLS),
            Ports::One(port) => port == target.port,
            Ports::All => true,
        };
        host && port
    }
}

/// Splits what stands after the last colon from the host, where it is not part of an address.
fn split(text: &str) -> Result<(&str, Option<&str>), EntryError> {
    if text.starts_with('[') {
        let (host, rest) = match text.find(']').and_then(|at| text.split_at_checked(at + 1)) {
            Some(parts) => parts,
            None => (text, ""),
        };
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(EntryError::Host(HostError::Bracketed)),
        };
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => Err(EntryError::Unbracketed),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((text, None)),
    }
}

impl Hosts {
    fn parse(text: &str, list: List) -> Result<Self, EntryError> {
        if text == "*" {
            return match list {
                List::Allowed => Err(EntryError::Everything),
                List::Denied => Ok(Self::All),
            };
        }
        let Some(parent) = text.strip_prefix("*.") else {
            if text.contains('*') {
                return Err(EntryError::Star);
            }
            return Ok(Self::One(Host::parse(text.as_bytes())?));
        };
        if parent.contains('*') {
            return Err(EntryError::Star);
        }
        match (Host::parse(parent.as_bytes())?, list) {
            (Host::Address(_), _) => Err(EntryError::Star),
            (Host::Name(name), List::Allowed) if name.has_one_label() => Err(EntryError::TopLevel),
            (Host::Name(name), List::Allowed | List::Denied) => Ok(Self::Beneath(name)),
        }
    }
}

impl Ports {
    fn parse(text: Option<&str>, list: List) -> Result<Self, EntryError> {
        match (text, list) {
            (None, List::Allowed) => Ok(Self::Web),
            (None, List::Denied) | (Some("*"), _) => Ok(Self::All),
            (Some(port), _) => parse_port(port.as_bytes())
                .map(Self::One)
                .ok_or(EntryError::Port),
        }
    }
}

/// As it would be written in the list of what is allowed.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::One(host) => write!(f, "{host}")?,
            Hosts::Beneath(name) => write!(f, "*.{name}")?,
            Hosts::All => f.write_str("*")?,
        }
        match self.ports {
            Ports::Web => Ok(()),
            Ports::One(port) => write!(f, ":{port}"),
            Ports::All => f.write_str(":*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text.as_bytes()).unwrap()
    }

    #[rstest]
    #[case("example.com", "example.com:443", true)]
    #[case("example.com", "example.com:80", true)]
    #[case("example.com", "example.com:8080", false)]
    #[case("example.com", "a.example.com:443", false)]
    #[case("Example.COM.", "example.com:443", true)]
    #[case(" example.com ", "example.com:443", true)]
    #[case("*.example.com", "a.example.com:443", true)]
    #[case("*.example.com", "a.b.example.com:443", true)]
    #[case("*.example.com", "example.com:443", false)]
    #[case("*.example.com", "badexample.com:443", false)]
    #[case("*.example.com", "a.example.com:22", false)]
    #[case("*.example.com:*", "a.example.com:22", true)]
    #[case("example.com:8443", "example.com:8443", true)]
    #[case("example.com:8443", "example.com:443", false)]
    #[case("example.com:*", "example.com:1", true)]
    #[case("127.0.0.1:8080", "127.0.0.1:8080", true)]
    #[case("127.0.0.1:8080", "localhost:8080", false)]
    #[case("127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", true)]
    #[case("[::1]:8080", "[::1]:8080", true)]
    #[case("[::1]", "[::1]:80", true)]
    #[case("[::1]:*", "[::1]:9", true)]
    #[case("localhost:3000", "localhost:3000", true)]
    #[case("localhost:3000", "127.0.0.1:3000", false)]
    fn allowed(#[case] entry: &str, #[case] asked: &str, #[case] expected: bool) {
        let entry = Entry::parse(entry, List::Allowed).unwrap();
        assert_eq!(entry.names(&target(asked)), expected);
    }

    #[rstest]
    #[case("example.com", "example.com:8080", true)]
    #[case("example.com", "a.example.com:80", false)]
    #[case("*.com", "example.com:22", true)]
    #[case("*", "[::1]:22", true)]
    #[case("example.com:443", "example.com:80", false)]
    fn denied(#[case] entry: &str, #[case] asked: &str, #[case] expected: bool) {
        let entry = Entry::parse(entry, List::Denied).unwrap();
        assert_eq!(entry.names(&target(asked)), expected);
    }

    #[rstest]
    #[case("*", EntryError::Everything)]
    #[case("*:443", EntryError::Everything)]
    #[case("*.com", EntryError::TopLevel)]
    #[case("*.com.", EntryError::TopLevel)]
    #[case("*.com:*", EntryError::TopLevel)]
    #[case("*.*.com", EntryError::Star)]
    #[case("a.*.com", EntryError::Star)]
    #[case("a*.example.com", EntryError::Star)]
    #[case("**.example.com", EntryError::Star)]
    #[case("*.1.2.3.4", EntryError::Star)]
    #[case("https://example.com", EntryError::Url)]
    #[case("example.com/path", EntryError::Url)]
    #[case("10.0.0.0/8", EntryError::Url)]
    #[case("example.com:", EntryError::Port)]
    #[case("example.com:https", EntryError::Port)]
    #[case("example.com:0", EntryError::Port)]
    #[case("example.com:80-90", EntryError::Port)]
    #[case("::1", EntryError::Unbracketed)]
    #[case("2001:db8::1", EntryError::Unbracketed)]
    #[case("[::1", EntryError::Host(HostError::Bracketed))]
    #[case("[::1]8080", EntryError::Host(HostError::Bracketed))]
    #[case("b\u{fc}cher.example", EntryError::NotAscii)]
    #[case("", EntryError::Host(HostError::Empty))]
    #[case("user@example.com", EntryError::Host(HostError::Character))]
    #[case("127.1", EntryError::Host(HostError::Numeric))]
    fn entries_that_name_nothing_or_too_much(#[case] entry: &str, #[case] error: EntryError) {
        assert_eq!(Entry::parse(entry, List::Allowed), Err(error));
    }

    proptest! {
        /// What is offered to be added to the list names the target it was offered for, and little else.
        #[test]
        fn what_covers_a_target_is_an_entry(
            host in "([a-z]{1,5}\\.){1,3}[a-z]{2,4}|[1-9]\\.[1-9]\\.[1-9]\\.[1-9]|\\[::[1-9a-f]{1,4}\\]",
            port in 1..=u16::MAX,
            other in 1..=u16::MAX,
        ) {
            let target = Target { host: Host::parse(host.as_bytes()).unwrap(), port };
            let entry = Entry::covering(&target);
            prop_assert_eq!(&Entry::parse(&entry.to_string(), List::Allowed).unwrap(), &entry);
            prop_assert!(entry.names(&target));
            let elsewhere = Target { port: other, ..target };
            let together = [PLAIN, TLS];
            prop_assert_eq!(
                entry.names(&elsewhere),
                other == port || together.contains(&port) && together.contains(&other)
            );
        }
    }
}
