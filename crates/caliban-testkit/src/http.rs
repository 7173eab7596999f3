//! HTTP/1.1 by hand: reading requests and writing the heads and chunks of responses.

use std::fmt::Write as _;
use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The largest request head accepted.
pub(crate) const MAX_HEAD: usize = 64 << 10;
/// The largest request body accepted.
pub(crate) const MAX_BODY: usize = 64 << 20;
const MAX_HEADERS: usize = 128;

/// What the client expects of the connection after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    Keep,
    Close,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) persistence: Persistence,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{reason}")]
    Bad { status: u16, reason: String },
}

fn bad(status: u16, reason: impl Into<String>) -> ReadError {
    ReadError::Bad {
        status,
        reason: reason.into(),
    }
}

/// Reads the next request of a connection; `None` when the client closed between requests.
pub(crate) async fn read<S>(
    stream: &mut S,
    buffer: &mut BytesMut,
) -> Result<Option<Request>, ReadError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let head = loop {
        if let Some(head) = parse_head(buffer)? {
            break head;
        }
        if buffer.len() > MAX_HEAD {
            return Err(bad(431, "request head exceeds 64 KiB"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return if buffer.is_empty() {
                Ok(None)
            } else {
                Err(cut_off())
            };
        }
    };
    buffer.advance(head.length);
    let length = body_length(&head.headers)?;
    let expects =
        header(&head.headers, "expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue"));
    if expects && buffer.is_empty() {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let body = match length {
        BodyLength::Known(length) => read_known(stream, buffer, length).await?,
        BodyLength::Chunked => read_chunked(stream, buffer).await?,
    };
    let wish = header(&head.headers, "connection").map(str::to_ascii_lowercase);
    let persistence = match (head.minor, wish.as_deref()) {
        (_, Some(wish)) if wish.contains("close") => Persistence::Close,
        (0, Some(wish)) if wish.contains("keep-alive") => Persistence::Keep,
        (0, _) => Persistence::Close,
        _ => Persistence::Keep,
    };
    Ok(Some(Request {
        method: head.method,
        path: head.path,
        headers: head.headers,
        body,
        persistence,
    }))
}

fn cut_off() -> ReadError {
    ReadError::Io(io::ErrorKind::UnexpectedEof.into())
}

struct Head {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    minor: u8,
    length: usize,
}

fn parse_head(buffer: &[u8]) -> Result<Option<Head>, ReadError> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut slots);
    let status = request
        .parse(buffer)
        .map_err(|error| bad(400, format!("malformed request: {error}")))?;
    let httparse::Status::Complete(length) = status else {
        return Ok(None);
    };
    if length > MAX_HEAD {
        return Err(bad(431, "request head exceeds 64 KiB"));
    }
    let headers = request
        .headers
        .iter()
        .map(|h| {
            (
                h.name.to_ascii_lowercase(),
                String::from_utf8_lossy(h.value).trim().to_owned(),
            )
        })
        .collect();
    Ok(Some(Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        headers,
        minor: request.version.unwrap_or(1),
        length,
    }))
}

enum BodyLength {
    Known(usize),
    Chunked,
}

fn body_length(headers: &[(String, String)]) -> Result<BodyLength, ReadError> {
    if let Some(coding) = header(headers, "transfer-encoding") {
        return if coding.eq_ignore_ascii_case("chunked") {
            Ok(BodyLength::Chunked)
        } else {
            Err(bad(
                501,
                format!("transfer coding `{coding}` is not supported"),
            ))
        };
    }
    let length = match header(headers, "content-length") {
        None => 0,
        Some(text) => text
            .parse()
            .map_err(|_| bad(400, "malformed content-length"))?,
    };
    if length > MAX_BODY {
        return Err(bad(413, "request body exceeds 64 MiB"));
    }
    Ok(BodyLength::Known(length))
}

async fn read_known<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
    length: usize,
) -> Result<Bytes, ReadError> {
    buffer.reserve(length.saturating_sub(buffer.len()));
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(cut_off());
        }
    }
    Ok(buffer.split_to(length).freeze())
}

async fn read_chunked<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
) -> Result<Bytes, ReadError> {
    let mut body = BytesMut::new();
    loop {
        let (line, size) = loop {
            match httparse::parse_chunk_size(buffer) {
                Ok(httparse::Status::Complete(found)) => break found,
                Ok(httparse::Status::Partial) if buffer.len() <= MAX_HEAD => {}
                Ok(httparse::Status::Partial) | Err(_) => {
                    return Err(bad(400, "malformed chunk size"));
                }
            }
            if stream.read_buf(buffer).await? == 0 {
                return Err(cut_off());
            }
        };
        buffer.advance(line);
        if size == 0 {
            skip_trailers(stream, buffer).await?;
            return Ok(body.freeze());
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MAX_BODY - body.len() {
            return Err(bad(413, "request body exceeds 64 MiB"));
        }
        let chunk = read_known(stream, buffer, size + 2).await?;
        if !chunk.ends_with(b"\r\n") {
            return Err(bad(400, "chunk without line end"));
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

async fn skip_trailers<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
) -> Result<(), ReadError> {
    loop {
        if let Some(end) = buffer.windows(2).position(|pair| pair == b"\r\n") {
            buffer.advance(end + 2);
            if end == 0 {
                return Ok(());
            }
            continue;
        }
        if buffer.len() > MAX_HEAD {
            return Err(bad(431, "trailers exceed 64 KiB"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(cut_off());
        }
    }
}

/// How a response's body is delimited.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

pub(crate) fn head(
    status: u16,
    content_type: &str,
    headers: &[(String, String)],
    framing: Framing,
) -> String {
    let mut out = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\n",
        reason(status)
    );
    for (name, value) in headers {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{name}: {value}\r\n");
    }
    let _ = match framing {
        Framing::Length(length) => write!(out, "content-length: {length}\r\n\r\n"),
        Framing::Chunked => {
            out.write_str("cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n")
        }
    };
    out
}

/// One chunk of a chunked body, ready to send.
pub(crate) fn chunk(data: &[u8]) -> Bytes {
    let mut out = format!("{:x}\r\n", data.len()).into_bytes();
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
    out.into()
}

/// Ends a chunked body.
pub(crate) const LAST_CHUNK: Bytes = Bytes::from_static(b"0\r\n\r\n");

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Payload Too Large",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn parse(input: &[u8]) -> Result<Option<Request>, ReadError> {
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        far.write_all(input).await.unwrap();
        far.shutdown().await.unwrap();
        read(&mut near, &mut BytesMut::new()).await
    }

    #[tokio::test]
    async fn bodies_of_both_kinds_are_read() {
        let fixed =
            parse(b"POST /a?b=1 HTTP/1.1\r\nX-Key: V\r\nContent-Length: 3\r\n\r\nabc").await;
        let fixed = fixed.unwrap().unwrap();
        assert_eq!(
            (fixed.path.as_str(), &fixed.body[..]),
            ("/a?b=1", &b"abc"[..])
        );
        assert_eq!(fixed.header("x-key"), Some("V"));
        let chunked = parse(
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nt: 1\r\n\r\n",
        )
        .await;
        assert_eq!(&chunked.unwrap().unwrap().body[..], b"abc");
    }

    #[tokio::test]
    async fn limits_and_malformed_input_have_their_status() {
        let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(MAX_HEAD));
        for (input, expected) in [
            (long.as_bytes(), 431),
            (
                b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n".as_slice(),
                413,
            ),
            (
                b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffff\r\n".as_slice(),
                413,
            ),
            (
                b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".as_slice(),
                400,
            ),
            (b"\x00\x01\r\n\r\n".as_slice(), 400),
        ] {
            match parse(input).await {
                Err(ReadError::Bad { status, .. }) => assert_eq!(status, expected),
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn the_end_between_and_within_requests_differ() {
        assert!(parse(b"").await.unwrap().is_none());
        assert!(matches!(parse(b"GET / HT").await, Err(ReadError::Io(_))));
    }

    #[tokio::test]
    async fn connection_wishes_are_understood() {
        for (input, expected) in [
            ("GET / HTTP/1.1\r\n\r\n", Persistence::Keep),
            (
                "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
                Persistence::Close,
            ),
            ("GET / HTTP/1.0\r\n\r\n", Persistence::Close),
            (
                "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                Persistence::Keep,
            ),
        ] {
            let request = parse(input.as_bytes()).await.unwrap().unwrap();
            assert_eq!(request.persistence, expected, "{input}");
        }
    }
}
