//! Hosts and targets, as they are compared, looked up and shown: one spelling for each.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use caliban_http::special_use;

/// The longest name there can be in the domain name system, without the last dot.
const NAME: usize = 253;
const LABEL: usize = 63;

/// A name in the domain name system: lower case, letters, digits, `-` and `_` in labels between dots,
/// no dot at the end, and nothing that any resolver could take for an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

/// Who is to be reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    Name(Name),
    /// An IPv4 address that was written as IPv6 is IPv4 here, so that each address is one host.
    Address(IpAddr),
}

/// Who is to be reached, and on which port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    pub host: Host,
    /// Never 0.
    pub port: u16,
}

/// Why something is not a host. The text that was given is hostile and not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("the host is empty")]
    Empty,
    #[error("the host has more than {NAME} characters")]
    TooLong,
    #[error("a part of the host between dots is empty or has more than {LABEL} characters")]
    Label,
    #[error("the host has a character that no host name has")]
    Character,
    #[error("the host is a number, but not four decimal ones between dots")]
    Numeric,
    #[error("what stands in brackets is not an IPv6 address")]
    Bracketed,
}

/// Why something is not a host and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error("the port is missing")]
    NoPort,
}

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it has one label or more before `parent`.
    pub(crate) fn is_beneath(&self, parent: &Self) -> bool {
        self.0
            .strip_suffix(&*parent.0)
            .is_some_and(|rest| rest.ends_with('.'))
    }

    pub(crate) fn has_one_label(&self) -> bool {
        !self.0.contains('.')
    }

    fn parse(text: &[u8]) -> Result<Self, HostError> {
        let text = text.strip_suffix(b".").unwrap_or(text);
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > NAME {
            return Err(HostError::TooLong);
        }
        let mut last: &[u8] = text;
        for label in text.split(|&byte| byte == b'.') {
            if label.is_empty() || label.len() > LABEL {
                return Err(HostError::Label);
            }
            let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if !label.iter().all(is_letter) {
                return Err(HostError::Character);
            }
            last = label;
        }
        // What ends in a number is an address to some resolvers, in octal, hexadecimal or with parts
        // left out. Only the strict form is read as one, and not here.
        if is_number(last) {
            return Err(HostError::Numeric);
        }
        let name = std::str::from_utf8(text).map_err(|_| HostError::Character)?;
        Ok(Self(name.to_ascii_lowercase().into()))
    }
}

fn is_number(label: &[u8]) -> bool {
    let hexadecimal = match label {
        [b'0', b'x' | b'X', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        _ => false,
    };
    hexadecimal || label.iter().all(u8::is_ascii_digit)
}

fn quad(text: &[u8]) -> Option<Ipv4Addr> {
    Ipv4Addr::from_str(std::str::from_utf8(text).ok()?).ok()
}

impl Host {
    /// Reads a name, four decimal numbers, or an IPv6 address in brackets.
    pub fn parse(text: &[u8]) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix(b"[") {
            let inner = rest.strip_suffix(b"]").ok_or(HostError::Bracketed)?;
            return std::str::from_utf8(inner)
                .ok()
                .and_then(|inner| Ipv6Addr::from_str(inner).ok())
                .map(|address| Self::from(IpAddr::V6(address)))
                .ok_or(HostError::Bracketed);
        }
        match quad(text) {
            Some(address) => Ok(Self::Address(IpAddr::V4(address))),
            None => Name::parse(text).map(Self::Name),
        }
    }

    /// Whether somebody may be asked about it: what lies outside the public internet is opened by an
    /// entry, never by an answer in passing.
    pub(crate) fn is_askable(&self) -> bool {
        match self {
            Self::Address(address) => special_use(*address).is_none(),
            Self::Name(_) => !self.is_localhost(),
        }
    }

    /// Whether it is this machine by its name, which is never looked up.
    pub(crate) fn is_localhost(&self) -> bool {
        match self {
            Self::Name(name) => name.as_str() == "localhost",
            Self::Address(_) => false,
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl Target {
    /// Reads `host:port`, as it stands in a `CONNECT` request.
    pub fn parse(text: &[u8]) -> Result<Self, TargetError> {
        match Self::split(text)? {
            (host, Some(port)) => Ok(Self { host, port }),
            (_, None) => Err(TargetError::NoPort),
        }
    }

    /// Reads `host` or `host:port`, as it stands in addresses and `Host` fields.
    pub fn parse_or(text: &[u8], default: u16) -> Result<Self, TargetError> {
        let (host, port) = Self::split(text)?;
        Ok(Self {
            host,
            port: port.unwrap_or(default),
        })
    }

    fn split(text: &[u8]) -> Result<(Host, Option<u16>), TargetError> {
        // Within brackets colons belong to the host; no name has one.
        let from = match text.first() {
            Some(b'[') => memchr::memchr(b']', text).unwrap_or(text.len()),
            Some(_) | None => 0,
        };
        let colon = text
            .get(from..)
            .and_then(|rest| memchr::memchr(b':', rest))
            .map(|at| from + at);
        match colon.and_then(|at| text.split_at_checked(at)) {
            None => Ok((Host::parse(text)?, None)),
            Some((host, port)) => {
                let port = port.strip_prefix(b":").unwrap_or(port);
                let port = parse_port(port).ok_or(TargetError::Port)?;
                Ok((Host::parse(host)?, Some(port)))
            }
        }
    }
}

/// Reads a port without signs, spaces or zeros before it.
pub(crate) fn parse_port(text: &[u8]) -> Option<u16> {
    if !text.iter().all(u8::is_ascii_digit) || text.first() == Some(&b'0') {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("example.com", "example.com")]
    #[case("EXAMPLE.Com", "example.com")]
    #[case("example.com.", "example.com")]
    #[case("a_b.example", "a_b.example")]
    #[case("xn--bcher-kva.example", "xn--bcher-kva.example")]
    #[case("localhost", "localhost")]
    #[case("1.example", "1.example")]
    #[case("1.2.3.4", "1.2.3.4")]
    #[case("0xg", "0xg")]
    #[case("[::1]", "[::1]")]
    #[case("[2606:4700::1]", "[2606:4700::1]")]
    #[case("[::ffff:10.0.0.1]", "10.0.0.1")]
    #[case("[0:0:0:0:0:ffff:7f00:1]", "127.0.0.1")]
    fn hosts_have_one_spelling(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(Host::parse(text.as_bytes()).unwrap().to_string(), shown);
    }

    #[rstest]
    #[case::empty(b"", HostError::Empty)]
    #[case::only_a_dot(b".", HostError::Empty)]
    #[case::two_dots_at_the_end(b"example.com..", HostError::Label)]
    #[case::dot_at_the_start(b".example.com", HostError::Label)]
    #[case::dots_in_the_middle(b"a..b", HostError::Label)]
    #[case::nul(b"evil.org\0.example.com", HostError::Character)]
    #[case::space(b"example.com ", HostError::Character)]
    #[case::percent(b"example%2ecom", HostError::Character)]
    #[case::zone(b"[fe80::1%eth0]", HostError::Bracketed)]
    #[case::encoded_zone(b"[fe80::1%25eth0]", HostError::Bracketed)]
    #[case::user(b"example.com@evil.org", HostError::Character)]
    #[case::backslash(b"example.com\\.evil.org", HostError::Character)]
    #[case::slash(b"example.com/evil.org", HostError::Character)]
    #[case::hash(b"example.com#.evil.org", HostError::Character)]
    #[case::newline(b"example.com\r\nHost: evil.org", HostError::Character)]
    #[case::not_ascii("ex\u{e4}mple.com".as_bytes(), HostError::Character)]
    #[case::full_width_dot("example\u{ff0e}com".as_bytes(), HostError::Character)]
    #[case::not_utf8(b"\xff\xfe.com", HostError::Character)]
    #[case::star(b"*.example.com", HostError::Character)]
    #[case::decimal(b"2130706433", HostError::Numeric)]
    #[case::hexadecimal(b"0x7f000001", HostError::Numeric)]
    #[case::hexadecimal_part(b"127.0.0.0x1", HostError::Numeric)]
    #[case::bare_prefix(b"a.0x", HostError::Numeric)]
    #[case::octal(b"0177.0.0.1", HostError::Numeric)]
    #[case::short(b"127.1", HostError::Numeric)]
    #[case::long(b"1.2.3.4.5", HostError::Numeric)]
    #[case::too_large(b"1.2.3.256", HostError::Numeric)]
    #[case::quad_with_a_dot(b"127.0.0.1.", HostError::Numeric)]
    #[case::number_at_the_end(b"example.1", HostError::Numeric)]
    #[case::unbracketed(b"::1", HostError::Character)]
    #[case::unclosed(b"[::1", HostError::Bracketed)]
    #[case::name_in_brackets(b"[example.com]", HostError::Bracketed)]
    #[case::quad_in_brackets(b"[127.0.0.1]", HostError::Bracketed)]
    fn what_could_be_read_in_two_ways_is_refused(#[case] text: &[u8], #[case] error: HostError) {
        assert_eq!(Host::parse(text), Err(error));
    }

    #[test]
    fn lengths_are_limited() {
        let label = "a".repeat(63);
        let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert_eq!(longest.len(), 253);
        assert!(Host::parse(longest.as_bytes()).is_ok());
        assert!(Host::parse(format!("{longest}.").as_bytes()).is_ok());
        let one_more = format!("{longest}a");
        assert_eq!(Host::parse(one_more.as_bytes()), Err(HostError::TooLong));
        let label = "a".repeat(64);
        assert_eq!(Host::parse(label.as_bytes()), Err(HostError::Label));
    }

    #[rstest]
    #[case("example.com:443", "example.com:443")]
    #[case("[::1]:8080", "[::1]:8080")]
    #[case("1.2.3.4:1", "1.2.3.4:1")]
    fn targets_are_read(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(Target::parse(text.as_bytes()).unwrap().to_string(), shown);
    }

    #[rstest]
    #[case(b"example.com", TargetError::NoPort)]
    #[case(b"[::1]", TargetError::NoPort)]
    #[case(b"example.com:", TargetError::Port)]
    #[case(b"example.com:0", TargetError::Port)]
    #[case(b"example.com:00443", TargetError::Port)]
    #[case(b"example.com:+443", TargetError::Port)]
    #[case(b"example.com: 443", TargetError::Port)]
    #[case(b"example.com:65536", TargetError::Port)]
    #[case(b"example.com:443:80", TargetError::Port)]
    #[case(b"::1:443", TargetError::Port)]
    #[case(b":443", TargetError::Host(HostError::Empty))]
    #[case(b"a@b:443", TargetError::Host(HostError::Character))]
    #[case(b"a:x@b:443", TargetError::Port)]
    #[case(b"[::1]x:443", TargetError::Host(HostError::Bracketed))]
    fn other_targets_are_refused(#[case] text: &[u8], #[case] error: TargetError) {
        assert_eq!(Target::parse(text), Err(error));
    }

    #[rstest]
    #[case("a.example.com", true)]
    #[case("a.b.example.com", true)]
    #[case("example.com", false)]
    #[case("notexample.com", false)]
    #[case("example.com.evil.org", false)]
    fn names_lie_beneath_at_dots(#[case] name: &str, #[case] expected: bool) {
        let name = Name::parse(name.as_bytes()).unwrap();
        let parent = Name::parse(b"example.com").unwrap();
        assert_eq!(name.is_beneath(&parent), expected);
    }

    proptest! {
        /// Whatever is read is read the same when it is shown and read again, and a resolver that is
        /// given the text finds no other address in it.
        #[test]
        fn what_is_read_is_stable(bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            "[0-9a-fx.:%@\\[\\]*-]{0,30}".prop_map(String::into_bytes),
            "([0-9]{1,10}|0x[0-9a-f]{1,9}|[a-z]{1,3})(\\.([0-9]{1,4}|0x[0-9a-f]{0,3}|[a-z]{1,3})){0,4}\\.?"
                .prop_map(String::into_bytes),
        ]) {
            if let Ok(host) = Host::parse(&bytes) {
                let shown = host.to_string();
                prop_assert_eq!(Host::parse(shown.as_bytes()), Ok(host.clone()));
                if let Host::Name(name) = &host {
                    prop_assert!(name.as_str().bytes().all(|byte| byte.is_ascii_lowercase()
                        || byte.is_ascii_digit() || b"-_.".contains(&byte)));
                    let last = name.as_str().rsplit('.').next().unwrap();
                    prop_assert!(!last.starts_with("0x") || u64::from_str_radix(&last[2..], 16).is_err() && last.len() > 2);
                    prop_assert!(last.parse::<u128>().is_err());
                }
            }
        }

        #[test]
        fn targets_are_stable(bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            "[a-z0-9.\\[\\]:@%+-]{0,20}:[0-9]{0,6}".prop_map(String::into_bytes),
        ]) {
            if let Ok(target) = Target::parse(&bytes) {
                prop_assert!(target.port != 0);
                prop_assert_eq!(Target::parse(target.to_string().as_bytes()), Ok(target));
            }
        }
    }
}
