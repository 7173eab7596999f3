//! Heads of HTTP requests: read in one way or not at all, and written anew for the origin.

use crate::body::Framing;
use crate::entry::PLAIN;
use crate::host::{Target, TargetError};

/// How many fields a head may have.
const FIELDS: usize = 128;
/// What ends at this proxy. `Transfer-Encoding` goes on, since the body does as it is.
const HOP_BY_HOP: [&str; 10] = [
    // No field at all, but what we say of the connection: the next reader would drop it.
    "close",
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];
/// What a request may not declare to be ours alone: dropping it would change where the request ends.
const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A tunnel.
    Connect(Target),
    /// A request to be passed on: `GET http://host/path`.
    Absolute(Target, Request),
    /// A request as an origin gets it: `GET /path`. Only within a tunnel.
    Origin(Request),
}

/// A request without its target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    method: String,
    /// Begins with `/`.
    path: String,
    minor: u8,
    /// Those that go on to the origin, in their order.
    fields: Vec<(String, Vec<u8>)>,
    host: Option<Vec<u8>>,
    pub(crate) framing: Framing,
}

/// How the target stands in the first line of what is sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The path alone, for the origin itself.
    Origin,
    /// The whole address, for another proxy.
    Absolute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadFault {
    #[error("the head of the request is not HTTP/1")]
    Syntax,
    #[error("a line of the request does not end as lines of HTTP do")]
    LineEnd,
    #[error("the request has more than {FIELDS} header fields")]
    TooManyFields,
    #[error("the address in the request is not plain http; for https open a tunnel with CONNECT")]
    Scheme,
    #[error("the address in the request has characters that no address has")]
    Address,
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("the request has several Host fields")]
    Hosts,
    #[error("the length of the request is given twice, or not as a number")]
    Length,
    #[error("the request is encoded in a way that is not passed on; only `chunked` is")]
    Encoding,
    #[error("the request declares its own length to be ours alone")]
    Nominated,
}

/// Reads a head at the start of what was said. Nothing where it is not complete; else how long it is.
pub(crate) fn parse(said: &[u8]) -> Result<Option<(Head, usize)>, HeadFault> {
    let Some(end) = memchr::memmem::find(said, b"\r\n\r\n") else {
        return Ok(None);
    };
    let length = end + 4;
    let text = said.get(..length).ok_or(HeadFault::Syntax)?;
    check_lines(text)?;
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(text) {
        Ok(httparse::Status::Complete(used)) if used == length => {}
        Err(httparse::Error::TooManyHeaders) => return Err(HeadFault::TooManyFields),
        Ok(_) | Err(_) => return Err(HeadFault::Syntax),
    }
    let (Some(method), Some(address), Some(minor)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(HeadFault::Syntax);
    };
    if !address.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(HeadFault::Address);
    }
    let head = if method == "CONNECT" {
        Head::Connect(Target::parse(address.as_bytes())?)
    } else if address.starts_with('/') {
        Head::Origin(Request::new(method, address, minor, parsed.headers)?)
    } else {
        let (target, path) = split(address)?;
        Head::Absolute(target, Request::new(method, &path, minor, parsed.headers)?)
    };
    Ok(Some((head, length)))
}

/// Refuses what ends a line for some readers and not for others, and what comes before the request.
fn check_lines(text: &[u8]) -> Result<(), HeadFault> {
    let mut before = None;
    for &byte in text {
        if (before == Some(b'\r')) != (byte == b'\n') {
            return Err(HeadFault::LineEnd);
        }
        before = Some(byte);
    }
    match text.first() {
        Some(b'\r') => Err(HeadFault::LineEnd),
        Some(_) | None => Ok(()),
    }
}

/// Splits `http://host:port/path` into what is connected to and what is asked for there.
fn split(address: &str) -> Result<(Target, String), HeadFault> {
    let rest = match address.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => rest,
        Some(_) | None => return Err(HeadFault::Scheme),
    };
    if rest.contains('#') {
        return Err(HeadFault::Address);
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target = Target::parse_or(authority.as_bytes(), PLAIN)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok((target, format!("{slash}{path}")))
}

impl Request {
    fn new(
        method: &str,
        path: &str,
        minor: u8,
        fields: &[httparse::Header<'_>],
    ) -> Result<Self, HeadFault> {
        let mut nominated: Vec<String> = Vec::new();
        let mut hosts = Vec::new();
        let mut lengths = Vec::new();
        let mut encodings = Vec::new();
        for field in fields {
            let value = field.value.trim_ascii();
            match field.name.to_ascii_lowercase().as_str() {
                "connection" | "proxy-connection" => nominated.extend(
                    String::from_utf8_lossy(value)
                        .split(',')
                        .map(|name| name.trim().to_ascii_lowercase()),
                ),
                "host" => hosts.push(value.to_vec()),
                "content-length" => lengths.push(value),
                "transfer-encoding" => encodings.push(value),
                _ => {}
            }
        }
        if nominated.iter().any(|name| FRAMING.contains(&&**name)) {
            return Err(HeadFault::Nominated);
        }
        let framing = framing(&lengths, &encodings, minor)?;
        let host = match hosts.len() {
            0 | 1 => hosts.pop(),
            _ => return Err(HeadFault::Hosts),
        };
        let is_dropped = |name: &str| {
            HOP_BY_HOP.contains(&name) || nominated.iter().any(|nominated| nominated == name)
        };
        Ok(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            minor,
            fields: fields
                .iter()
                .filter(|field| !is_dropped(&field.name.to_ascii_lowercase()))
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect(),
            host,
            framing,
        })
    }

    /// Whether the host that the request names, if it names one, is the one that the tunnel goes to.
    pub(crate) fn is_for(&self, target: &Target) -> bool {
        self.host
            .as_deref()
            .is_none_or(|host| Target::parse_or(host, PLAIN).as_ref() == Ok(target))
    }

    /// The head that is sent on: with the host that was judged, and as the last of its connection.
    pub(crate) fn forwarded(&self, target: &Target, form: Form) -> Vec<u8> {
        let authority = match target.port {
            PLAIN => target.host.to_string(),
            _ => target.to_string(),
        };
        let Self { method, path, .. } = self;
        let address = match form {
            Form::Origin => path.clone(),
            Form::Absolute => format!("http://{authority}{path}"),
        };
        let mut head = format!(
            "{method} {address} HTTP/1.{}\r\nHost: {authority}\r\n",
            self.minor
        )
        .into_bytes();
        for (name, value) in &self.fields {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        head
    }
}

/// Where the body ends, if everybody will think so.
fn framing(lengths: &[&[u8]], encodings: &[&[u8]], minor: u8) -> Result<Framing, HeadFault> {
    match (lengths, encodings) {
        ([], []) => Ok(Framing::None),
        ([length], []) if !length.is_empty() && length.iter().all(u8::is_ascii_digit) => {
            std::str::from_utf8(length)
                .ok()
                .and_then(|length| length.parse().ok())
                .map(Framing::Length)
                .ok_or(HeadFault::Length)
        }
        ([], [encoding]) if minor == 1 && encoding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        ([], _) => Err(HeadFault::Encoding),
        (_, _) => Err(HeadFault::Length),
    }
}

/// What is sent on is itself one complete request for the host that was judged: no other reader finds
/// two requests, another host or another length in it.
#[cfg(any(test, feature = "fuzzed"))]
pub(crate) fn keeps_its_promises(said: &[u8]) {
    let Ok(Some((head, length))) = parse(said) else {
        return;
    };
    assert!(length <= said.len());
    let Head::Absolute(target, request) = head else {
        return;
    };
    let sent = request.forwarded(&target, Form::Origin);
    let Ok(Some((Head::Origin(again), length))) = parse(&sent) else {
        unreachable!("{sent:?} is not a request");
    };
    assert_eq!(length, sent.len());
    assert!(again.host.is_some() && again.is_for(&target));
    assert_eq!(again.framing, request.framing);
    assert_eq!(again.fields, request.fields);
    let sent = request.forwarded(&target, Form::Absolute);
    let Ok(Some((Head::Absolute(same, again), length))) = parse(&sent) else {
        unreachable!("{sent:?} is not a request");
    };
    assert_eq!((same, length), (target, sent.len()));
    assert_eq!(again.fields, request.fields);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::host::HostError;

    fn absolute(head: &str) -> (Target, Request) {
        match parse(head.as_bytes()) {
            Ok(Some((Head::Absolute(target, request), length))) if length == head.len() => {
                (target, request)
            }
            other => panic!("{other:?}"),
        }
    }

    #[rstest]
    #[case(
        "GET http://A.com/x?y=1 HTTP/1.1",
        "a.com:80",
        "GET /x?y=1 HTTP/1.1\r\nHost: a.com"
    )]
    #[case(
        "GET http://a.com HTTP/1.0",
        "a.com:80",
        "GET / HTTP/1.0\r\nHost: a.com"
    )]
    #[case(
        "PUT HTTP://a.com:8080?q HTTP/1.1",
        "a.com:8080",
        "PUT /?q HTTP/1.1\r\nHost: a.com:8080"
    )]
    #[case(
        "GET http://[::1]:9/ HTTP/1.1",
        "[::1]:9",
        "GET / HTTP/1.1\r\nHost: [::1]:9"
    )]
    #[case(
        "GET http://a.com/http://evil.org/ HTTP/1.1",
        "a.com:80",
        "GET /http://evil.org/ HTTP/1.1\r\nHost: a.com"
    )]
    #[case(
        "GET http://a.com/@evil.org HTTP/1.1",
        "a.com:80",
        "GET /@evil.org HTTP/1.1\r\nHost: a.com"
    )]
    fn requests_are_written_anew(#[case] line: &str, #[case] target: &str, #[case] start: &str) {
        let (found, request) =
            absolute(&format!("{line}\r\nHost: evil.org\r\nAccept: */*\r\n\r\n"));
        assert_eq!(found.to_string(), target);
        assert_eq!(
            String::from_utf8(request.forwarded(&found, Form::Origin)).unwrap(),
            format!("{start}\r\nAccept: */*\r\nConnection: close\r\n\r\n")
        );
    }

    #[test]
    fn what_is_meant_for_the_proxy_stays_there() {
        let (target, request) = absolute(
            "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nProxy-Authorization: Basic eA==\r\nConnection: x-one, Keep-Alive\r\n\
             X-One: 1\r\nX-Two: 2\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: websocket\r\nProxy-Connection: X-Three\r\nX-Three: 3\r\n\
             Content-Length: 3\r\n\r\n",
        );
        assert_eq!(request.framing, Framing::Length(3));
        assert_eq!(
            String::from_utf8(request.forwarded(&target, Form::Absolute)).unwrap(),
            "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nX-Two: 2\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
        );
    }

    #[rstest]
    #[case::https("GET https://a.com/ HTTP/1.1", HeadFault::Scheme)]
    #[case::ftp("GET ftp://a.com/ HTTP/1.1", HeadFault::Scheme)]
    #[case::no_scheme("GET a.com HTTP/1.1", HeadFault::Scheme)]
    #[case::star("OPTIONS * HTTP/1.1", HeadFault::Scheme)]
    #[case::fragment("GET http://a.com#@evil.org/ HTTP/1.1", HeadFault::Address)]
    #[case::user(
        "GET http://a.com@evil.org/ HTTP/1.1",
        HeadFault::Target(TargetError::Host(HostError::Character))
    )]
    #[case::user_and_password(
        "GET http://a.com:80@evil.org/ HTTP/1.1",
        HeadFault::Target(TargetError::Port)
    )]
    #[case::backslash(
        "GET http://a.com\\@evil.org/ HTTP/1.1",
        HeadFault::Target(TargetError::Host(HostError::Character))
    )]
    #[case::percent(
        "GET http://a%2ecom/ HTTP/1.1",
        HeadFault::Target(TargetError::Host(HostError::Character))
    )]
    #[case::number(
        "GET http://2130706433/ HTTP/1.1",
        HeadFault::Target(TargetError::Host(HostError::Numeric))
    )]
    #[case::empty(
        "GET http:///path HTTP/1.1",
        HeadFault::Target(TargetError::Host(HostError::Empty))
    )]
    #[case::three_slashes(
        "GET http:////a.com/ HTTP/1.1",
        HeadFault::Target(TargetError::Host(HostError::Empty))
    )]
    #[case::connect_without_port("CONNECT a.com HTTP/1.1", HeadFault::Target(TargetError::NoPort))]
    #[case::connect_with_user(
        "CONNECT a@a.com:443 HTTP/1.1",
        HeadFault::Target(TargetError::Host(HostError::Character))
    )]
    #[case::connect_with_path("CONNECT a.com:443/x HTTP/1.1", HeadFault::Target(TargetError::Port))]
    #[case::connect_with_scheme(
        "CONNECT http://a.com:443 HTTP/1.1",
        HeadFault::Target(TargetError::Port)
    )]
    #[case::http2("PRI * HTTP/2.0", HeadFault::Syntax)]
    #[case::nine("GET http://a.com/", HeadFault::Syntax)]
    #[case::two_spaces("GET  http://a.com/ HTTP/1.1", HeadFault::Syntax)]
    #[case::empty_line_before("\r\nGET http://a.com/ HTTP/1.1", HeadFault::LineEnd)]
    #[case::cr_in_the_line("GET http://a.com/\rX HTTP/1.1", HeadFault::LineEnd)]
    #[case::bare_newline("GET http://a.com/ HTTP/1.1\nX: 1", HeadFault::LineEnd)]
    #[case::nul("GET http://a.com/\0 HTTP/1.1", HeadFault::Syntax)]
    #[case::fold("GET http://a.com/ HTTP/1.1\r\nX: 1\r\n 2", HeadFault::Syntax)]
    #[case::space_before_colon(
        "GET http://a.com/ HTTP/1.1\r\nContent-Length : 5",
        HeadFault::Syntax
    )]
    #[case::hosts(
        "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nHost: b.com",
        HeadFault::Hosts
    )]
    #[case::length_and_encoding(
        "POST http://a.com/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        HeadFault::Length
    )]
    #[case::two_lengths(
        "POST http://a.com/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5",
        HeadFault::Length
    )]
    #[case::list_of_lengths(
        "POST http://a.com/ HTTP/1.1\r\nContent-Length: 5, 5",
        HeadFault::Length
    )]
    #[case::signed_length("POST http://a.com/ HTTP/1.1\r\nContent-Length: +5", HeadFault::Length)]
    #[case::huge_length(
        "POST http://a.com/ HTTP/1.1\r\nContent-Length: 99999999999999999999",
        HeadFault::Length
    )]
    #[case::empty_length("POST http://a.com/ HTTP/1.1\r\nContent-Length: ", HeadFault::Length)]
    #[case::two_encodings(
        "POST http://a.com/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        HeadFault::Encoding
    )]
    #[case::gzip(
        "POST http://a.com/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked",
        HeadFault::Encoding
    )]
    #[case::identity(
        "POST http://a.com/ HTTP/1.1\r\nTransfer-Encoding: identity",
        HeadFault::Encoding
    )]
    #[case::tab(
        "POST http://a.com/ HTTP/1.1\r\nTransfer-Encoding: \x0bchunked",
        HeadFault::Syntax
    )]
    #[case::chunked_in_one_zero(
        "POST http://a.com/ HTTP/1.0\r\nTransfer-Encoding: chunked",
        HeadFault::Encoding
    )]
    #[case::nominated_length(
        "POST http://a.com/ HTTP/1.1\r\nConnection: close, Content-Length\r\nContent-Length: 5",
        HeadFault::Nominated
    )]
    #[case::nominated_encoding(
        "POST http://a.com/ HTTP/1.1\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked",
        HeadFault::Nominated
    )]
    fn what_could_be_read_in_two_ways_is_refused(#[case] head: &str, #[case] fault: HeadFault) {
        assert_eq!(parse(format!("{head}\r\n\r\n").as_bytes()), Err(fault));
    }

    #[rstest]
    #[case("Host: a.com\r\n", true)]
    #[case("Host: A.com:80\r\n", true)]
    #[case("", true)]
    #[case("Host: b.com\r\n", false)]
    #[case("Host: a.com:8080\r\n", false)]
    #[case("Host: a.com b.com\r\n", false)]
    #[case("Host: \r\n", false)]
    fn within_a_tunnel_the_host_must_agree(#[case] field: &str, #[case] expected: bool) {
        let head = format!("GET /x HTTP/1.1\r\n{field}\r\n");
        let Ok(Some((Head::Origin(request), _))) = parse(head.as_bytes()) else {
            panic!("{head}");
        };
        assert_eq!(
            request.is_for(&Target::parse(b"a.com:80").unwrap()),
            expected
        );
    }

    #[test]
    fn the_number_of_fields_is_limited() {
        let head = format!(
            "GET http://a.com/ HTTP/1.1\r\n{}\r\n",
            "A: b\r\n".repeat(FIELDS + 1)
        );
        assert_eq!(parse(head.as_bytes()), Err(HeadFault::TooManyFields));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_in_bounds(said in proptest::collection::vec(any::<u8>(), 0..300)) {
            keeps_its_promises(&said);
        }

        #[test]
        fn what_is_sent_on_is_one_request(
            method in "[A-Z]{1,7}",
            host in "[a-z]{1,3}\\.[a-z]{2,3}",
            path in "/[!-\"$-~]{0,12}",
            fields in proptest::collection::vec((
                prop_oneof!["[A-Za-z-]{1,12}", Just("Host".to_owned()), Just("Content-Length".to_owned()),
                    Just("Transfer-Encoding".to_owned()), Just("Connection".to_owned())],
                prop_oneof!["[ -~]{0,16}", "[0-9]{1,3}", Just("chunked".to_owned()), Just("host, x".to_owned())],
            ), 0..6),
        ) {
            let mut lines = vec![format!("{method} http://{host}{path} HTTP/1.1")];
            lines.extend(fields.iter().map(|(name, value)| format!("{name}: {value}")));
            let head = format!("{}\r\n\r\n", lines.join("\r\n"));
            keeps_its_promises(head.as_bytes());
        }
    }
}
