//! The first words in a tunnel for TLS: the name in them must be the one that the tunnel goes to.
//!
//! Behind one address there may be the sites of many, and the name in the hello chooses among them.
//! Two readers look at it: that of the TLS library, and one that accepts a single name and nothing
//! hidden. Both must find the same.

use rustls::server::Acceptor;

use crate::host::Host;

/// The fatal alert `access_denied`, in a record of its own. Clients show it by name.
pub(crate) const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
/// Extensions that carry a second hello, with another name, for those who hold the key.
const ENCRYPTED: [u16; 2] = [0xfe0d, 0xffce];

/// Why a tunnel is closed after its first words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelloFault {
    #[error("on port 443 a TLS hello is expected, and what came cannot be read as one")]
    Unreadable,
    #[error("the TLS hello names no server (SNI)")]
    NoName,
    #[error("the TLS hello names another server, `{0}`")]
    OtherName(Host),
    #[error(
        "the TLS hello is encrypted (ECH), so that its server cannot be compared; turn that off in the client"
    )]
    Encrypted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    /// The hello is complete and for the right server.
    Agrees,
}

/// Reads a hello as it comes.
pub(crate) struct Hello {
    acceptor: Acceptor,
    fed: usize,
}

impl Hello {
    pub(crate) fn new() -> Self {
        Self {
            acceptor: Acceptor::default(),
            fed: 0,
        }
    }

    /// Looks at all that was said so far.
    pub(crate) fn advance(&mut self, said: &[u8], host: &Host) -> Result<Progress, HelloFault> {
        let mut fresh = said.get(self.fed..).unwrap_or_default();
        while !fresh.is_empty() {
            let read = match self.acceptor.read_tls(&mut fresh) {
                Ok(0) | Err(_) => return Err(HelloFault::Unreadable),
                Ok(read) => read,
            };
            self.fed += read;
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let hello = accepted.client_hello();
                    compare(said, hello.server_name(), host)?;
                    return Ok(Progress::Agrees);
                }
                Err(_) => return Err(HelloFault::Unreadable),
            }
        }
        Ok(Progress::More)
    }
}

/// Compares the names that two readers found with the host.
fn compare(said: &[u8], name: Option<&str>, host: &Host) -> Result<(), HelloFault> {
    let found = survey(said).ok_or(HelloFault::Unreadable)?;
    if found.is_encrypted {
        return Err(HelloFault::Encrypted);
    }
    let parse = |name: &[u8]| Host::parse(name).map_err(|_| HelloFault::Unreadable);
    let strict = found.name.as_deref().map(parse).transpose()?;
    let lenient = name.map(str::as_bytes).map(parse).transpose()?;
    let is_literal = |found: &Option<Host>| match found {
        None | Some(Host::Address(_)) => true,
        Some(Host::Name(_)) => false,
    };
    match host {
        // Addresses have no place in a hello; clients leave them out, and some put them in.
        Host::Address(_) if lenient.is_none() && is_literal(&strict) => match strict {
            Some(other) if other != *host => Err(HelloFault::OtherName(other)),
            Some(_) | None => Ok(()),
        },
        Host::Address(_) | Host::Name(_) => match strict {
            None => Err(HelloFault::NoName),
            Some(other) if other != *host => Err(HelloFault::OtherName(other)),
            Some(_) if lenient.as_ref() == Some(host) => Ok(()),
            Some(_) => Err(HelloFault::Unreadable),
        },
    }
}

/// What matters in a hello.
#[derive(Debug, PartialEq, Eq)]
struct Survey {
    name: Option<Vec<u8>>,
    is_encrypted: bool,
}

/// Finds the one name and what hides others. Nothing where the hello is not exactly as it should be.
fn survey(said: &[u8]) -> Option<Survey> {
    let message = message(said)?;
    let mut hello = Cursor(&message);
    // Version and random.
    hello.take(2 + 32)?;
    let _session = hello.short()?;
    let _ciphers = hello.long()?;
    let _compressions = hello.short()?;
    let mut found = Survey {
        name: None,
        is_encrypted: false,
    };
    if hello.0.is_empty() {
        return Some(found);
    }
    let mut extensions = Cursor(hello.long()?);
    if !hello.0.is_empty() {
        return None;
    }
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.long()?;
        if ENCRYPTED.contains(&kind) {
            found.is_encrypted = true;
        }
        if kind == SERVER_NAME {
            if found.name.is_some() {
                return None;
            }
            found.name = Some(only_name(content)?.to_vec());
        }
    }
    Some(found)
}

/// The host name of a list of names that has only this one.
fn only_name(content: &[u8]) -> Option<&[u8]> {
    let mut content = Cursor(content);
    let mut list = Cursor(content.long()?);
    let is_host_name = list.take(1)? == [0];
    let name = list.long()?;
    (is_host_name && list.0.is_empty() && content.0.is_empty()).then_some(name)
}

/// The hello without the records it comes in, and without its own head.
fn message(said: &[u8]) -> Option<Vec<u8>> {
    let mut records = Cursor(said);
    let mut message = Vec::new();
    loop {
        if let [CLIENT_HELLO, a, b, c, rest @ ..] = message.as_slice() {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            match rest.len() {
                have if have == length => return Some(rest.to_vec()),
                have if have > length => return None,
                _ => {}
            }
        } else if message.len() >= 4 {
            return None;
        }
        if records.take(1)? != [HANDSHAKE] {
            return None;
        }
        records.take(2)?;
        message.extend_from_slice(records.long()?);
    }
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let (bytes, rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*bytes))
    }

    /// What follows its length in one byte.
    fn short(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first()?;
        self.0 = rest;
        self.take(usize::from(*length))
    }

    /// What follows its length in two bytes.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

/// However a hello is cut, it is judged alike, and it agrees only where its one name is the host. The
/// first byte says in which pieces it comes.
#[cfg(any(test, feature = "fuzzed"))]
pub(crate) fn keeps_its_promises(said: &[u8]) {
    let (Some((cut, said)), Ok(host)) = (said.split_first(), Host::parse(b"example.com")) else {
        return;
    };
    let whole = Hello::new().advance(said, &host);
    let mut hello = Hello::new();
    let mut last = Ok(Progress::More);
    let piece = usize::from(*cut).max(1);
    for end in (0..said.len()).step_by(piece).chain([said.len()]) {
        last = hello.advance(&said[..end], &host);
        if last != Ok(Progress::More) {
            break;
        }
    }
    assert_eq!(last, whole);
    let found = survey(said);
    if whole == Ok(Progress::Agrees) {
        let name = found.filter(|it| !it.is_encrypted).and_then(|it| it.name);
        assert_eq!(
            name.map(|name| name.to_ascii_lowercase()),
            Some(b"example.com".to_vec())
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rstest::rstest;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text.as_bytes()).unwrap()
    }

    /// The first words of a real client.
    fn real(name: &'static str, names_server: bool) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        config.enable_sni = names_server;
        let name = ServerName::try_from(name).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    fn prefixed(content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&length[..], content].concat()
    }

    fn names(entries: &[(u8, &[u8])]) -> Vec<u8> {
        let list: Vec<u8> = entries
            .iter()
            .flat_map(|(kind, name)| [&[*kind][..], &prefixed(name)].concat())
            .collect();
        prefixed(&list)
    }

    /// A hello with these extensions beside the one that every client must send.
    fn crafted(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let signatures = (13, prefixed(&[4, 3]));
        let extensions: Vec<u8> = [signatures]
            .iter()
            .chain(extensions)
            .flat_map(|(kind, content)| [&kind.to_be_bytes()[..], &prefixed(content)].concat())
            .collect();
        let mut hello = vec![3, 3];
        hello.extend([7; 32]);
        hello.extend([0, 0, 2, 0x13, 1, 1, 0]);
        hello.extend(prefixed(&extensions));
        let length = u32::try_from(hello.len()).unwrap().to_be_bytes();
        let message = [&[CLIENT_HELLO], &length[1..], &hello].concat();
        record(&message)
    }

    /// A second hello as it is hidden in the first.
    fn hidden() -> (u16, Vec<u8>) {
        let content = [
            &[0, 0, 1, 0, 1, 7][..],
            &prefixed(&[9; 32]),
            &prefixed(&[8; 64]),
        ];
        (0xfe0d, content.concat())
    }

    fn record(content: &[u8]) -> Vec<u8> {
        [&[HANDSHAKE, 3, 1][..], &prefixed(content)].concat()
    }

    fn judged(said: &[u8], name: &str) -> Result<Progress, HelloFault> {
        Hello::new().advance(said, &host(name))
    }

    #[test]
    fn the_right_name_agrees() {
        assert_eq!(
            judged(&real("example.com", true), "example.com"),
            Ok(Progress::Agrees)
        );
        let crafted = crafted(&[(0, names(&[(0, b"EXAMPLE.com")]))]);
        assert_eq!(judged(&crafted, "example.com"), Ok(Progress::Agrees));
    }

    #[test]
    fn an_address_needs_no_name_and_takes_no_other() {
        assert_eq!(
            judged(&real("1.2.3.4", true), "1.2.3.4"),
            Ok(Progress::Agrees)
        );
        assert_eq!(
            judged(&real("example.com", true), "1.2.3.4"),
            Err(HelloFault::OtherName(host("example.com")))
        );
        let literal = |address: &[u8]| crafted(&[(0, names(&[(0, address)]))]);
        assert_eq!(
            judged(&literal(b"1.2.3.4"), "1.2.3.4"),
            Ok(Progress::Agrees)
        );
        assert_eq!(
            judged(&literal(b"4.3.2.1"), "1.2.3.4"),
            Err(HelloFault::OtherName(host("4.3.2.1")))
        );
        assert_eq!(
            judged(&literal(b"1.2.3.4"), "example.com"),
            Err(HelloFault::OtherName(host("1.2.3.4")))
        );
    }

    #[rstest]
    #[case::missing(real("example.com", false), HelloFault::NoName)]
    #[case::missing_and_crafted(crafted(&[]), HelloFault::NoName)]
    #[case::other(real("evil.org", true), HelloFault::OtherName(host("evil.org")))]
    #[case::beneath(
        real("a.example.com", true),
        HelloFault::OtherName(host("a.example.com"))
    )]
    #[case::encrypted(
        crafted(&[(0, names(&[(0, b"example.com")])), hidden()]),
        HelloFault::Encrypted
    )]
    #[case::encrypted_only(crafted(&[hidden()]), HelloFault::Encrypted)]
    #[case::encrypted_the_old_way(
        crafted(&[(0xffce, vec![0; 40]), (0, names(&[(0, b"example.com")]))]),
        HelloFault::Encrypted
    )]
    #[case::two_names(
        crafted(&[(0, names(&[(0, b"example.com"), (0, b"evil.org")]))]),
        HelloFault::Unreadable
    )]
    #[case::a_name_behind_an_unknown_one(
        crafted(&[(0, names(&[(9, b"x"), (0, b"example.com")]))]),
        HelloFault::Unreadable
    )]
    #[case::an_unknown_one_behind_a_name(
        crafted(&[(0, names(&[(0, b"example.com"), (9, b"evil.org")]))]),
        HelloFault::Unreadable
    )]
    #[case::twice(
        crafted(&[(0, names(&[(0, b"example.com")])), (0, names(&[(0, b"evil.org")]))]),
        HelloFault::Unreadable
    )]
    #[case::nul(crafted(&[(0, names(&[(0, b"example.com\0.evil.org")]))]), HelloFault::Unreadable)]
    #[case::empty_list(crafted(&[(0, vec![0, 0])]), HelloFault::Unreadable)]
    #[case::bytes_behind(
        crafted(&[(0, [names(&[(0, b"example.com")]), vec![0]].concat())]),
        HelloFault::Unreadable
    )]
    #[case::plain_http(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n".to_vec(), HelloFault::Unreadable)]
    #[case::ssh(b"SSH-2.0-OpenSSH_9.7\r\n".to_vec(), HelloFault::Unreadable)]
    #[case::old_ssl(vec![0x80, 46, 1, 3, 1, 0, 21, 0, 0, 0, 16], HelloFault::Unreadable)]
    fn other_first_words_close_the_tunnel(#[case] said: Vec<u8>, #[case] fault: HelloFault) {
        assert_eq!(judged(&said, "example.com"), Err(fault));
    }

    #[test]
    fn a_hello_in_several_records_is_read_as_one() {
        let whole = real("example.com", true);
        let content = &whole[5..];
        for cut in [1, 3, 4, 5, 50, content.len() - 1] {
            let split = [record(&content[..cut]), record(&content[cut..])].concat();
            assert_eq!(judged(&split, "example.com"), Ok(Progress::Agrees), "{cut}");
            assert_eq!(
                judged(&split, "evil.org"),
                Err(HelloFault::OtherName(host("example.com"))),
                "{cut}"
            );
        }
    }

    #[test]
    fn what_comes_early_behind_a_hello_does_not_matter() {
        let said = [real("example.com", true), vec![23, 3, 3, 0, 1, 9]].concat();
        assert_eq!(judged(&said, "example.com"), Ok(Progress::Agrees));
    }

    proptest! {
        /// However a hello is cut and damaged, it agrees only where its one name is the host, and the
        /// cut makes no difference.
        #[test]
        fn damage_never_agrees_by_accident(
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            piece in any::<u8>(),
            hides in any::<bool>(),
        ) {
            let named = (0, names(&[(0, b"example.com")]));
            let mut said = if hides { crafted(&[named, hidden()]) } else { crafted(&[named]) };
            for (at, byte) in damage {
                let at = at.index(said.len());
                said[at] = byte;
            }
            said.insert(0, piece);
            keeps_its_promises(&said);
        }

        #[test]
        fn any_bytes_are_read_in_bounds(said in proptest::collection::vec(any::<u8>(), 0..400)) {
            keeps_its_promises(&said);
            keeps_its_promises(&[&[7], record(&said).as_slice()].concat());
        }
    }
}
