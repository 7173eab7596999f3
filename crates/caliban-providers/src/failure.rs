//! Turns what a provider or the network says into an error that tells what can be done.

use std::sync::LazyLock;
use std::time::Duration;

use caliban_model::{Error, ErrorKind, Origin, RetryAdvice};
use regex::Regex;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// An error of the call to `origin`.
pub(crate) fn fail(origin: &Origin, kind: ErrorKind, message: impl Into<String>) -> Error {
    Error::new(kind, &*origin.provider, &*origin.model, message)
}

/// A refusal with everything the server said about it.
#[derive(Debug)]
pub(crate) struct Refusal<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) status: u16,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

/// What families read out of an error body.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// The machine-readable names: type, code, status, reason.
    pub(crate) codes: Vec<String>,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
}

impl Refusal<'_> {
    /// The error every family starts from; `body` is what the family read out of the answer.
    pub(crate) fn into_error(self, body: ErrorBody) -> Error {
        let kind = kind_of(Some(self.status), &body.codes, &body.message);
        let mut error = fail(self.origin, kind, body.message).with_status(self.status);
        error.retry_after = retry_after(self.headers).or(body.retry_after);
        error.advice = match header(self.headers, "x-should-retry") {
            Some("true") => RetryAdvice::Retry,
            Some("false") => RetryAdvice::GiveUp,
            Some(_) | None => RetryAdvice::ByKind,
        };
        error.request_id = ["request-id", "x-request-id"]
            .iter()
            .find_map(|name| header(self.headers, name))
            .map(str::to_owned);
        error
    }

    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.body).ok()
    }

    /// Something readable from a body that is not the family's JSON: plain text as it is, HTML
    /// without its tags, at most a line's worth.
    pub(crate) fn text(&self) -> String {
        const LONGEST: usize = 300;
        static TAGS: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"(?is)<(script|style)\b.*?</(script|style)>|<[^>]*>").ok()
        });
        let text = String::from_utf8_lossy(self.body);
        let plain = match &*TAGS {
            Some(tags) if text.trim_start().starts_with('<') => tags.replace_all(&text, " "),
            Some(_) | None => text,
        };
        let words: Vec<&str> = plain.split_whitespace().collect();
        let line: String = words.join(" ").chars().take(LONGEST).collect();
        if line.is_empty() {
            "the server sent no explanation".to_owned()
        } else {
            line
        }
    }
}

/// The class of an error from status, codes and text. The codes and texts of all providers are
/// told apart here, because compatible servers mix them.
pub(crate) fn kind_of(status: Option<u16>, codes: &[String], message: &str) -> ErrorKind {
    let has = |wanted: &[&str]| {
        codes
            .iter()
            .any(|code| wanted.iter().any(|name| code.eq_ignore_ascii_case(name)))
    };
    let text = message.to_ascii_lowercase();
    if is_too_long(codes, &text) {
        return ErrorKind::TooLong {
            limit: window_in(message),
        };
    }
    if has(&[
        "insufficient_quota",
        "credit_balance_exhausted",
        "billing_error",
        "enforced_spend_limit_reached",
        "billing_hard_limit_reached",
    ]) || text.contains("credit balance is too low")
        || text.contains("spend limit")
    {
        return ErrorKind::Billing;
    }
    if has(&[
        "content_policy_violation",
        "content_filter",
        "invalid_prompt",
        "bio_policy",
        "misalignment_policy_violation",
        "responsibleaipolicyviolation",
    ]) {
        return ErrorKind::Filtered;
    }
    if has(&[
        "authentication_error",
        "permission_error",
        "invalid_api_key",
        "api_key_invalid",
        "unauthenticated",
        "permission_denied",
        // LiteLLM's, of a key that is not its own where it keeps no list of keys.
        "no_db_connection",
    ]) || text.contains("api key not valid")
    {
        return ErrorKind::Auth;
    }
    if has(&["model_not_found", "deploymentnotfound"])
        || (text.contains("model") && text.contains("not found"))
        // LiteLLM's, with status 400.
        || text.contains("invalid model name passed")
    {
        return ErrorKind::Unavailable;
    }
    if has(&["overloaded_error", "server_is_overloaded", "unavailable"]) {
        return ErrorKind::Overloaded;
    }
    if has(&[
        "rate_limit_error",
        "rate_limit_exceeded",
        "slow_down",
        "resource_exhausted",
        "ratelimitreached",
    ]) {
        return ErrorKind::RateLimited;
    }
    if has(&["cancelled"]) || status == Some(499) {
        return ErrorKind::Cancelled;
    }
    match status {
        Some(401 | 403) => ErrorKind::Auth,
        Some(402) => ErrorKind::Billing,
        Some(404) => ErrorKind::Unavailable,
        Some(408 | 504) => ErrorKind::Timeout,
        Some(409) => ErrorKind::Network,
        Some(413) => ErrorKind::TooLong { limit: None },
        Some(429) => ErrorKind::RateLimited,
        Some(503 | 529) => ErrorKind::Overloaded,
        Some(500..=599) => ErrorKind::Server,
        Some(_) => ErrorKind::Invalid,
        // Inside a stream only the codes tell; a fault without any is the server's.
        None if has(&["invalid_request_error", "invalid_argument"]) => ErrorKind::Invalid,
        None => ErrorKind::Server,
    }
}

fn is_too_long(codes: &[String], text: &str) -> bool {
    const PHRASES: [&str; 15] = [
        "prompt is too long",
        "input is too long",
        "exceed context limit",
        "maximum context length",
        "context_length_exceeded",
        "exceeds the context window",
        "exceeds the maximum number of tokens allowed",
        "exceed_context_size_error",
        "exceeds the available context size",
        "input length exceeds the context length",
        "longer than the model's context length",
        "model's maximum context limit",
        "input tokens exceed the configured limit",
        "maximum input length is",
        "request payload size exceeds the limit",
    ];
    if codes.iter().any(|code| code == "string_above_max_length") {
        return false;
    }
    codes.iter().any(|code| {
        matches!(
            code.as_str(),
            "context_length_exceeded" | "exceed_context_size_error" | "request_too_large"
        )
    }) || PHRASES.iter().any(|phrase| text.contains(phrase))
        || (text.contains("input length and") && text.contains("exceed"))
}

/// The window a message names, e.g. `prompt is too long: 9 tokens > 5 maximum`.
fn window_in(message: &str) -> Option<u64> {
    static WINDOW: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?i)> (\d+) maximum",
            r"|maximum context length is (\d+)",
            r"|context size \((\d+)",
            r"|tokens allowed \((\d+)\)",
            r"|context limit of (\d+)",
        ))
        .ok()
    });
    WINDOW
        .as_ref()?
        .captures(message)?
        .iter()
        .skip(1)
        .flatten()
        .next()?
        .as_str()
        .parse()
        .ok()
}

/// `retry-after-ms`, else `retry-after` in seconds (fractions allowed) or as an HTTP date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    if let Some(millis) = header(headers, "retry-after-ms").and_then(|text| text.parse().ok()) {
        return duration(millis, 1_000.0);
    }
    let text = header(headers, "retry-after")?;
    if let Ok(seconds) = text.parse() {
        return duration(seconds, 1.0);
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Duration::try_from(date.duration_since(jiff::Timestamp::now())).ok()
}

/// Seconds written like `34s` or `1.5s`, as Google does.
pub(crate) fn parse_seconds(text: &str) -> Option<Duration> {
    duration(text.strip_suffix('s')?.parse().ok()?, 1.0)
}

fn duration(amount: f64, per_second: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(amount / per_second).ok()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// What the HTTP client's own errors mean.
pub(crate) fn network_error(origin: &Origin, error: &reqwest::Error) -> Error {
    let kind = if error.is_timeout() {
        ErrorKind::Timeout
    } else {
        ErrorKind::Network
    };
    // The innermost cause is what a person can act on: "Connection refused", "unknown host".
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let message = match error.url() {
        Some(url) if error.is_connect() => {
            let place = url.host_str().map_or_else(String::new, |host| {
                url.port_or_known_default()
                    .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
            });
            format!("cannot connect to {place}: {cause}")
        }
        Some(_) | None => format!("the connection failed: {cause}"),
    };
    let mut failure = fail(origin, kind, message);
    if cause.to_string().contains(BAD_CERTIFICATE) {
        // However often it is asked, this server will not do.
        failure.advice = RetryAdvice::GiveUp;
        failure.remedy = Some(
            "check the base URL, the machine's clock and the certificates it trusts".to_owned(),
        );
    }
    failure
}

/// How a certificate that is not accepted is told apart from a connection that broke.
const BAD_CERTIFICATE: &str = "invalid peer certificate";

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, code: &str, message: &str) -> ErrorKind {
        kind_of(Some(status), &[code.to_owned()], message)
    }

    #[test]
    fn statuses_codes_and_texts_are_classified() {
        assert_eq!(
            kind(
                400,
                "invalid_request_error",
                "prompt is too long: 9 tokens > 5 maximum"
            ),
            ErrorKind::TooLong { limit: Some(5) }
        );
        assert_eq!(
            kind(
                400,
                "exceed_context_size_error",
                "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it"
            ),
            ErrorKind::TooLong { limit: Some(8192) }
        );
        assert_eq!(kind(429, "insufficient_quota", ""), ErrorKind::Billing);
        assert_eq!(kind(429, "rate_limit_error", ""), ErrorKind::RateLimited);
        assert_eq!(
            kind(400, "INVALID_ARGUMENT", "API key not valid. Please pass"),
            ErrorKind::Auth
        );
        assert_eq!(kind(404, "", "model 'x' not found"), ErrorKind::Unavailable);
        assert_eq!(kind(529, "overloaded_error", ""), ErrorKind::Overloaded);
        assert_eq!(kind(500, "api_error", ""), ErrorKind::Server);
        assert_eq!(
            kind(400, "string_above_max_length", "maximum context length"),
            ErrorKind::Invalid
        );
        assert_eq!(
            kind_of(None, &["overloaded_error".into()], ""),
            ErrorKind::Overloaded
        );
        assert_eq!(kind(413, "", ""), ErrorKind::TooLong { limit: None });
    }

    #[test]
    fn waits_are_read_in_every_form() {
        let wait = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(wait("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(
            wait("retry-after-ms", "40"),
            Some(Duration::from_millis(40))
        );
        assert_eq!(wait("retry-after", "-3"), None);
        assert_eq!(wait("retry-after", "soon"), None);
        assert!(wait("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT").is_some());
        assert_eq!(parse_seconds("34s"), Some(Duration::from_secs(34)));
    }

    #[test]
    fn a_page_of_html_becomes_a_line_of_text() {
        let origin = Origin::new("p", "m");
        let refusal = Refusal {
            origin: &origin,
            status: 502,
            headers: &HeaderMap::new(),
            body: b"<html><style>x{}</style><h1>Bad\n Gateway</h1></html>",
        };
        assert_eq!(refusal.text(), "Bad Gateway");
    }
}
