//! Reading an answer's body within bounds, and what kind of thing it is.

use encoding_rs::{Encoding, UTF_8};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

/// A body, or as much of it as was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// There was more than the limit.
    Cut,
}

/// Reads at most `limit` bytes, counted after decompression.
pub(super) async fn read(response: &mut Response, limit: usize) -> reqwest::Result<Body> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok(Body {
                bytes,
                extent: Extent::Cut,
            });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Body {
        bytes,
        extent: Extent::Whole,
    })
}

/// What a body holds, as far as that decides how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    Text,
    Binary,
    /// Nothing says so; the content decides.
    Unknown,
}

/// The content type of an answer, empty when it names none.
pub(super) fn content_type(response: &Response) -> String {
    response
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default()
}

pub(super) fn kind(content_type: &str) -> Kind {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "" => Kind::Unknown,
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/json"
        | "application/x-ndjson"
        | "application/xml"
        | "application/javascript"
        | "application/ecmascript"
        | "application/x-javascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-sh"
        | "application/sql"
        | "application/graphql" => Kind::Text,
        other if other.starts_with("text/") => Kind::Text,
        other if other.ends_with("+json") || other.ends_with("+xml") => Kind::Text,
        other if other.ends_with("+yaml") => Kind::Text,
        _ => Kind::Binary,
    }
}

/// Decodes text by its byte order mark, the charset of its content type, or as UTF-8, in this
/// order. What cannot be decoded becomes U+FFFD.
pub(super) fn decode(bytes: &[u8], content_type: &str) -> String {
    let named = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"'))
    });
    let encoding = named
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .unwrap_or(UTF_8);
    encoding.decode(bytes).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("text/html; charset=utf-8", Kind::Html)]
    #[case("TEXT/HTML", Kind::Html)]
    #[case("text/markdown", Kind::Text)]
    #[case("application/ld+json", Kind::Text)]
    #[case("image/svg+xml", Kind::Text)]
    #[case("image/png", Kind::Binary)]
    #[case("application/octet-stream", Kind::Binary)]
    #[case("", Kind::Unknown)]
    fn kinds(#[case] content_type: &str, #[case] expected: Kind) {
        assert_eq!(kind(content_type), expected);
    }

    #[rstest]
    #[case(b"caf\xe9", "text/plain; charset=ISO-8859-1", "café")]
    #[case(b"caf\xc3\xa9", "text/plain", "café")]
    #[case(b"caf\xe9", "text/plain; charset=\"windows-1252\"", "café")]
    #[case(b"\xff\xfea\0", "text/plain", "a")]
    #[case(b"caf\xe9", "text/plain; charset=nonsense", "caf\u{fffd}")]
    fn charsets(#[case] bytes: &[u8], #[case] content_type: &str, #[case] expected: &str) {
        assert_eq!(decode(bytes, content_type), expected);
    }
}
