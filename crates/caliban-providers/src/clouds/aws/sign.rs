//! Signature Version 4: a request proves who sent it without carrying the key.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use ring::{digest, hmac};
use secrecy::{ExposeSecret, SecretString};
use std::fmt::Write;
use url::Url;

use crate::transport::HttpRequest;

/// What a request is signed with.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: SecretString,
    /// Of keys that do not last.
    pub(crate) token: Option<SecretString>,
}

/// For which service, where and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) service: &'a str,
    pub(crate) region: &'a str,
    pub(crate) at: Timestamp,
}

/// The headers that are signed where they are there. As few as possible: proxies change others.
const SIGNED: [&str; 4] = ["content-type", "host", "x-amz-date", "x-amz-security-token"];

/// Adds the date, the token and the signature. An error where a value fits no header.
pub(crate) fn sign(
    request: &mut HttpRequest,
    keys: &Keys,
    scope: &Scope<'_>,
) -> Result<(), String> {
    let time = scope.at.to_zoned(TimeZone::UTC);
    let moment = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = time.strftime("%Y%m%d").to_string();
    if request.body.is_empty() {
        request.headers.remove("content-type");
    }
    insert(&mut request.headers, "x-amz-date", &moment)?;
    if let Some(token) = &keys.token {
        insert(
            &mut request.headers,
            "x-amz-security-token",
            token.expose_secret(),
        )?;
    }
    let (names, canonical) = canonical(request);
    let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let wanted = format!(
        "AWS4-HMAC-SHA256\n{moment}\n{place}\n{}",
        sha256(canonical.as_bytes())
    );
    let secret = format!("AWS4{}", keys.secret.expose_secret());
    let key = [scope.region, scope.service, "aws4_request", &wanted]
        .iter()
        .fold(mac(secret.as_bytes(), day.as_bytes()), |key, part| {
            mac(key.as_ref(), part.as_bytes())
        });
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{place}, SignedHeaders={names}, Signature={}",
        keys.id,
        hex(key.as_ref())
    );
    insert(&mut request.headers, "authorization", &authorization)
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), String> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("AWS credentials hold characters that `{name}` may not carry"))?;
    value.set_sensitive(true);
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

/// The names of the signed headers, and the request in the form that is signed.
fn canonical(request: &HttpRequest) -> (String, String) {
    let host = host(&request.url);
    let mut names = Vec::new();
    let mut headers = String::new();
    for name in SIGNED {
        let value = match name {
            "host" => Some(host.as_str()),
            _ => request
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok()),
        };
        if let Some(value) = value {
            names.push(name);
            // Writing to a string cannot fail.
            let _ = writeln!(headers, "{name}:{}", value.trim());
        }
    }
    let names = names.join(";");
    let form = format!(
        "{}\n{}\n{}\n{headers}\n{names}\n{}",
        request.method,
        path(&request.url),
        query(&request.url),
        sha256(&request.body)
    );
    (names, form)
}

/// As it stands in the `host` header: with the port, where it is not the scheme's own.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Every segment as it is sent, encoded once more.
fn path(url: &Url) -> String {
    let segments: Vec<String> = url.path().split('/').map(encoded).collect();
    segments.join("/")
}

fn query(url: &Url) -> String {
    let mut pairs: Vec<String> = url
        .query_pairs()
        .map(|(name, value)| format!("{}={}", encoded(&name), encoded(&value)))
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}

/// Percent-encoded but for what needs no encoding anywhere.
pub(crate) fn encoded(text: &str) -> String {
    crate::google::escaped(text)
}

fn mac(key: &[u8], message: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::Method;
    use rstest::rstest;

    const BODY: &str = r#"{"anthropic_version":"bedrock-2023-05-31","max_tokens":16,"messages":[{"role":"user","content":"hi"}]}"#;
    const RUNTIME: &str = "https://bedrock-runtime.us-east-1.amazonaws.com";

    fn signature(method: Method, url: &str, body: &str, token: Option<&str>) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let mut request = HttpRequest {
            method,
            url: Url::parse(url).unwrap(),
            headers,
            body: body.as_bytes().to_vec(),
        };
        let keys = Keys {
            id: "AKIDEXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            token: token.map(SecretString::from),
        };
        let scope = Scope {
            service: "bedrock",
            region: "us-east-1",
            at: "2026-11-16T12:00:00Z".parse().unwrap(),
        };
        sign(&mut request, &keys, &scope).unwrap();
        let header = request.headers["authorization"].to_str().unwrap();
        header.rsplit('=').next().unwrap().to_owned()
    }

    /// As AWS's own client signs them.
    #[rstest]
    #[case(
        "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream",
        None,
        "ce5abdfd5f37d79ccc9716aaf608da803e848242b5e6b592a05d46b44e0f0317"
    )]
    #[case(
        "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream",
        Some("SESSTOKEN"),
        "b8e2dbd05874058e9a4b9cf906dda24c557b57c05d8ac68b6d9a7a82691d1d8c"
    )]
    #[case(
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fabc123/invoke-with-response-stream",
        None,
        "23b618e6cf8946e8dab6bfeceb4d2009fdeb721f8d8bf39bb4fac221e04bff0c"
    )]
    #[case(
        "/model/us.anthropic.claude-haiku-4-5-20251001-v1:0/invoke-with-response-stream",
        None,
        "c8f1ad96f4409924318bb0146a57a281f3d102226e60b4c1fa253b57f0e90007"
    )]
    fn calls_are_signed_as_the_vendor_does(
        #[case] path: &str,
        #[case] token: Option<&str>,
        #[case] expected: &str,
    ) {
        let url = format!("{RUNTIME}{path}");
        assert_eq!(signature(Method::POST, &url, BODY, token), expected);
    }

    #[test]
    fn lists_are_signed_as_the_vendor_does() {
        let url = "https://bedrock.us-east-1.amazonaws.com/inference-profiles?type=SYSTEM_DEFINED&maxResults=1000";
        assert_eq!(
            signature(Method::GET, url, "", None),
            "ddce04c845336ca2ad272368be2c555d541f36d98f951339d25446fbb879f916"
        );
    }
}
