//! SOCKS 5: no authentication, `CONNECT` alone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::host::{Host, Target};
use crate::inbound::{Inbound, NoMore};

pub(crate) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// Why a client cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SocksFault {
    #[error("this is not SOCKS 5")]
    Version,
    #[error("the client wants to authenticate, which this proxy has no use for")]
    Authentication,
    #[error("only CONNECT is served, neither BIND nor UDP")]
    Command,
    #[error("the type of address is unknown")]
    AddressType,
    #[error("{0}")]
    Target(String),
}

impl SocksFault {
    /// What the client is told.
    pub(crate) fn answer(&self) -> Vec<u8> {
        match self {
            Self::Version => Vec::new(),
            Self::Authentication => vec![VERSION, NO_ACCEPTABLE_METHOD],
            Self::Command => reply(7),
            Self::AddressType => reply(8),
            Self::Target(_) => reply(2),
        }
    }
}

/// What became of a client that began with the first byte of SOCKS.
#[derive(Debug)]
pub(crate) enum Negotiated {
    Wants(Target),
    Fault(SocksFault),
    NoMore(NoMore),
}

/// Hears what the client wants.
pub(crate) async fn negotiate(client: &mut Inbound) -> Negotiated {
    match heard(client, greeting).await {
        Ok(()) => {}
        Err(end) => return end,
    }
    if let Err(end) = client.answer(&[VERSION, NO_AUTHENTICATION]).await {
        return Negotiated::NoMore(end);
    }
    match heard(client, request).await {
        Ok(target) => Negotiated::Wants(target),
        Err(end) => end,
    }
}

/// What a parser found at the start: a value and its length, or nothing yet.
type Found<T> = Result<Option<(T, usize)>, SocksFault>;

async fn heard<T>(
    client: &mut Inbound,
    parse: impl Fn(&[u8]) -> Found<T>,
) -> Result<T, Negotiated> {
    loop {
        match parse(client.said()) {
            Ok(Some((value, length))) => {
                client.taken(length);
                return Ok(value);
            }
            Ok(None) => client.more().await.map_err(Negotiated::NoMore)?,
            Err(fault) => return Err(Negotiated::Fault(fault)),
        }
    }
}

/// The answer to a request, with a code that says how it went.
pub(crate) fn reply(code: u8) -> Vec<u8> {
    // The address at the end is ours to the outside, which is nobody's business.
    vec![VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

fn greeting(said: &[u8]) -> Found<()> {
    match said {
        [] | [VERSION] => Ok(None),
        [VERSION, count, methods @ ..] => {
            let count = usize::from(*count);
            match methods.get(..count) {
                None => Ok(None),
                Some(offered) if offered.contains(&NO_AUTHENTICATION) => Ok(Some(((), 2 + count))),
                Some(_) => Err(SocksFault::Authentication),
            }
        }
        [_, ..] => Err(SocksFault::Version),
    }
}

fn request(said: &[u8]) -> Found<Target> {
    let (kind, rest) = match said {
        [VERSION, CONNECT, 0, kind, rest @ ..] => (*kind, rest),
        [VERSION, CONNECT, 0] | [VERSION, CONNECT] | [VERSION] | [] => return Ok(None),
        [VERSION, CONNECT, ..] => {
            return Err(SocksFault::Target("the reserved byte is used".to_owned()));
        }
        [VERSION, ..] => return Err(SocksFault::Command),
        [_, ..] => return Err(SocksFault::Version),
    };
    let (host, used, rest) = match (kind, rest) {
        (1, [a, b, c, d, rest @ ..]) => {
            let address = IpAddr::V4(Ipv4Addr::new(*a, *b, *c, *d));
            (Ok(Host::from(address)), 8, rest)
        }
        (4, rest) => match rest.split_first_chunk::<16>() {
            Some((address, rest)) => {
                let address = IpAddr::V6(Ipv6Addr::from(*address));
                (Ok(Host::from(address)), 20, rest)
            }
            None => return Ok(None),
        },
        (3, [length, rest @ ..]) => match rest.split_at_checked(usize::from(*length)) {
            Some((name, rest)) => (Host::parse(name), 5 + name.len(), rest),
            None => return Ok(None),
        },
        (1 | 3, _) => return Ok(None),
        (_, _) => return Err(SocksFault::AddressType),
    };
    let Some((port, _)) = rest.split_first_chunk::<2>() else {
        return Ok(None);
    };
    let host = host.map_err(|error| SocksFault::Target(error.to_string()))?;
    match u16::from_be_bytes(*port) {
        0 => Err(SocksFault::Target("the port is 0".to_owned())),
        port => Ok(Some((Target { host, port }, used + 2))),
    }
}

/// What came after a request has no say in it.
#[cfg(any(test, feature = "fuzzed"))]
pub(crate) fn keeps_its_promises(said: &[u8]) {
    if let Ok(Some(((), used))) = greeting(said) {
        assert!(used <= said.len());
    }
    if let Ok(Some((target, used))) = request(said) {
        assert!(used <= said.len() && target.port != 0);
        assert_eq!(request(&said[..used]), Ok(Some((target, used))));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn domain(name: &[u8], port: u16) -> Vec<u8> {
        let mut bytes = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
        bytes.extend(name);
        bytes.extend(port.to_be_bytes());
        bytes
    }

    #[rstest]
    #[case(&[5, 1, 0], Ok(Some(((), 3))))]
    #[case(&[5, 2, 2, 0, 9], Ok(Some(((), 4))))]
    #[case(&[5], Ok(None))]
    #[case(&[5, 2, 0], Ok(None))]
    #[case(&[5, 0], Err(SocksFault::Authentication))]
    #[case(&[5, 1, 2], Err(SocksFault::Authentication))]
    #[case(&[4, 1], Err(SocksFault::Version))]
    fn greetings(#[case] said: &[u8], #[case] expected: Found<()>) {
        assert_eq!(greeting(said), expected);
    }

    #[rstest]
    #[case::name(domain(b"Example.com", 443), "example.com:443")]
    #[case::quad_as_a_name(domain(b"127.0.0.1", 80), "127.0.0.1:80")]
    #[case::v4(vec![5, 1, 0, 1, 10, 0, 0, 1, 0, 80], "10.0.0.1:80")]
    #[case::v6(
        vec![5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 187],
        "[2001:db8::1]:443"
    )]
    #[case::mapped(
        vec![5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, 0, 80],
        "127.0.0.1:80"
    )]
    fn requests(#[case] mut said: Vec<u8>, #[case] expected: &str) {
        let length = said.len();
        said.extend(b"and what follows");
        let (target, used) = request(&said).unwrap().unwrap();
        assert_eq!((target.to_string().as_str(), used), (expected, length));
        for short in 0..length {
            assert_eq!(request(&said[..short]), Ok(None), "{short}");
        }
    }

    #[rstest]
    #[case::bind(vec![5, 2, 0, 1, 1, 2, 3, 4, 0, 80], 7)]
    #[case::udp(vec![5, 3, 0, 1, 1, 2, 3, 4, 0, 80], 7)]
    #[case::kind(vec![5, 1, 0, 2, 1, 2, 3, 4, 0, 80], 8)]
    #[case::reserved(vec![5, 1, 9, 1, 1, 2, 3, 4, 0, 80], 2)]
    #[case::port(domain(b"example.com", 0), 2)]
    #[case::empty(domain(b"", 443), 2)]
    #[case::nul(domain(b"evil.org\0.example.com", 443), 2)]
    #[case::nul_at_the_end(domain(b"example.com\0", 443), 2)]
    #[case::user(domain(b"a@example.com", 443), 2)]
    #[case::with_a_port(domain(b"example.com:80", 443), 2)]
    #[case::number(domain(b"2130706433", 443), 2)]
    #[case::v6_as_a_name(domain(b"::1", 443), 2)]
    #[case::brackets_are_not_socks_but_harmless(domain(b"[::1%lo]", 443), 2)]
    fn refused(#[case] said: Vec<u8>, #[case] code: u8) {
        assert_eq!(request(&said).unwrap_err().answer()[1], code);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_in_bounds(said in proptest::collection::vec(any::<u8>(), 0..300)) {
            for parsed in [said.clone(), [&[5, 1, 0, 3][..], &said].concat()] {
                keeps_its_promises(&parsed);
            }
        }
    }
}
