//! Error bodies, in the shapes OpenAI and the servers that imitate it send them.

use std::sync::LazyLock;
use std::time::Duration;

use caliban_model::{Error, ErrorKind, Origin};
use regex::Regex;
use serde_json::{Map, Value};

use super::lenient::filled;
use crate::failure::{ErrorBody, Refusal, fail, kind_of};

const NO_REASON: &str = "the server gave no reason";

/// An answer with an error status.
pub(super) fn refused(refusal: Refusal<'_>) -> Error {
    let body = refusal
        .json()
        .and_then(|body| read(&body))
        .unwrap_or_else(|| ErrorBody {
            message: refusal.text(),
            ..ErrorBody::default()
        });
    refusal.into_error(body)
}

/// An error inside a stream that began well. A numeric code there is the status that the server
/// could no longer send.
pub(super) fn in_stream(origin: &Origin, body: &Value) -> Error {
    let body = read(body).unwrap_or_else(|| ErrorBody {
        message: NO_REASON.to_owned(),
        ..ErrorBody::default()
    });
    let status = body
        .codes
        .iter()
        .filter_map(|code| code.parse().ok())
        .find(|status| (400..600).contains(status));
    let kind = match kind_of(status, &body.codes, &body.message) {
        // The codes about images are many; none of them goes away by trying again.
        ErrorKind::Server if body.codes.iter().any(|code| code.contains("image")) => {
            ErrorKind::Invalid
        }
        kind => kind,
    };
    let mut error = fail(origin, kind, body.message);
    error.retry_after = body.retry_after;
    error
}

/// What helps where nobody knows where the key came from.
pub(super) fn remedy(kind: &ErrorKind) -> Option<String> {
    match kind {
        ErrorKind::Auth => Some("set `OPENAI_API_KEY` to a valid key".to_owned()),
        _ => None,
    }
}

/// Finds the error in a body: `error` as an object or a text, a `detail`, or a bare
/// `message`. Nothing if the body holds no error.
pub(super) fn read(body: &Value) -> Option<ErrorBody> {
    let body = match body {
        Value::Array(items) => items.first()?,
        other => other,
    };
    let outer = body.as_object()?;
    let inner = match outer.get("error") {
        Some(Value::Object(inner)) => inner,
        Some(_) | None => outer,
    };
    let message = ["error", "message", "detail"]
        .iter()
        .find_map(|name| inner.get(*name).and_then(plain))
        .or_else(|| outer.get("message").and_then(plain));
    if message.is_none() && !outer.contains_key("error") {
        return None;
    }
    let mut message = message.unwrap_or_else(|| NO_REASON.to_owned());
    if let Some(param) = inner.get("param").and_then(plain)
        && !message.contains(&param)
    {
        message = format!("{message} (parameter `{param}`)");
    }
    // OpenRouter wraps what the provider behind it said.
    if let Some(raw) = body.pointer("/error/metadata/raw").and_then(plain) {
        message = format!("{message}: {raw}");
    }
    Some(ErrorBody {
        codes: codes(inner),
        retry_after: wait_in(&message),
        message,
    })
}

fn codes(error: &Map<String, Value>) -> Vec<String> {
    let nested = error.get("innererror").and_then(|inner| inner.get("code"));
    ["type", "code"]
        .iter()
        .filter_map(|name| error.get(*name))
        .chain(nested)
        .filter_map(|code| match code {
            Value::String(code) => filled(Some(code)).map(str::to_owned),
            Value::Number(code) => Some(code.to_string()),
            _ => None,
        })
        .collect()
}

/// A readable text from whatever a server puts where a message belongs.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => filled(Some(text)).map(str::to_owned),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(plain).collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        Value::Object(fields) => {
            let text = ["message", "msg", "detail"]
                .iter()
                .find_map(|name| fields.get(*name).and_then(plain))?;
            // FastAPI names the offending field by its path.
            let place: Vec<&str> = fields
                .get("loc")
                .and_then(Value::as_array)
                .map(|path| path.iter().filter_map(Value::as_str).collect())
                .unwrap_or_default();
            if place.is_empty() {
                Some(text)
            } else {
                Some(format!("{}: {text}", place.join(".")))
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The wait that a rate limit's text names where no header can: `Please try again in 1.5s`.
fn wait_in(message: &str) -> Option<Duration> {
    static WAIT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?i)try again in (\d+(?:\.\d+)?)\s*(ms|s)\b").ok());
    let found = WAIT.as_ref()?.captures(message)?;
    let amount: f64 = found.get(1)?.as_str().parse().ok()?;
    let per_second = match found.get(2)?.as_str() {
        "ms" | "MS" => 1_000.0,
        _ => 1.0,
    };
    Duration::try_from_secs_f64(amount / per_second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderMap;
    use rstest::rstest;
    use serde_json::json;

    fn refusal(status: u16, body: &str) -> Error {
        refused(Refusal {
            origin: &Origin::new("openai", "m"),
            status,
            headers: &HeaderMap::new(),
            body: body.as_bytes(),
        })
    }

    #[rstest]
    #[case(400, r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#, ErrorKind::TooLong { limit: Some(128_000) })]
    #[case(400, r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#, ErrorKind::Invalid)]
    #[case(
        400,
        r#"{"error":{"message":"Blocked","code":"content_policy_violation"}}"#,
        ErrorKind::Filtered
    )]
    #[case(400, r#"{"error":{"code":"content_filter","message":"filtered","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#, ErrorKind::Filtered)]
    #[case(
        401,
        r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#,
        ErrorKind::Auth
    )]
    #[case(
        403,
        r#"{"error":{"message":"Your organization must be verified"}}"#,
        ErrorKind::Auth
    )]
    #[case(
        404,
        r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#,
        ErrorKind::Unavailable
    )]
    #[case(429, r#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#, ErrorKind::RateLimited)]
    #[case(
        429,
        r#"{"error":{"message":"slow down","code":"slow_down"}}"#,
        ErrorKind::RateLimited
    )]
    #[case(
        429,
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
        ErrorKind::Billing
    )]
    #[case(
        429,
        r#"{"error":{"message":"x","code":"credit_balance_exhausted"}}"#,
        ErrorKind::Billing
    )]
    #[case(
        500,
        r#"{"error":{"message":"x","type":"server_error"}}"#,
        ErrorKind::Server
    )]
    #[case(
        503,
        r#"{"error":{"message":"x","code":"server_is_overloaded"}}"#,
        ErrorKind::Overloaded
    )]
    #[case(
        503,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
        ErrorKind::Overloaded
    )]
    #[case(400, r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it","n_ctx":8192}}"#, ErrorKind::TooLong { limit: Some(8192) })]
    #[case(
        402,
        r#"{"error":{"code":402,"message":"Insufficient credits"}}"#,
        ErrorKind::Billing
    )]
    #[case(502, "<html><h1>Bad Gateway</h1></html>", ErrorKind::Server)]
    fn bodies_have_a_kind(#[case] status: u16, #[case] body: &str, #[case] kind: ErrorKind) {
        let error = refusal(status, body);
        assert_eq!(error.kind, kind, "{error}");
        assert_eq!(error.status, Some(status));
    }

    #[rstest]
    #[case(r#"{"error":{"message":"a"}}"#, "a")]
    #[case(r#"{"error":"b"}"#, "b")]
    #[case(r#"{"detail":"c"}"#, "c")]
    #[case(
        r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
        "body.stream_options: Extra inputs are not permitted"
    )]
    #[case(r#"{"object":"error","message":"d","type":"x"}"#, "d")]
    #[case(r#"{"object":"error","message":{"detail":[{"msg":"e"}]}}"#, "e")]
    #[case(r#"{"message":"f"}"#, "f")]
    #[case(r#"{"error":{},"message":"g"}"#, "g")]
    #[case(r#"[{"error":{"code":400,"message":"h"}}]"#, "h")]
    #[case(
        r#"{"error":{"message":"bad value","param":"tools[0]"}}"#,
        "bad value (parameter `tools[0]`)"
    )]
    #[case(
        r#"{"error":{"message":"Provider returned error","metadata":{"raw":"too hot"}}}"#,
        "Provider returned error: too hot"
    )]
    #[case(r#"{"error":{}}"#, NO_REASON)]
    #[case("plain text", "plain text")]
    #[case("", "the server sent no explanation")]
    fn every_shape_has_its_message(#[case] body: &str, #[case] message: &str) {
        assert_eq!(refusal(400, body).message, message);
    }

    #[test]
    fn a_bad_key_names_its_variable() {
        let error = refusal(401, r#"{"error":{"message":"no"}}"#);
        assert_eq!(error.remedy, None);
        let remedy = remedy(&error.kind).unwrap();
        assert_eq!(remedy, "set `OPENAI_API_KEY` to a valid key");
    }

    #[test]
    fn the_wait_is_read_from_a_header_or_the_text() {
        let text = r#"{"error":{"message":"Please try again in 1.5s. Visit","code":"rate_limit_exceeded"}}"#;
        assert_eq!(
            refusal(429, text).retry_after,
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            wait_in("try again in 20ms"),
            Some(Duration::from_millis(20))
        );
        let mut headers = HeaderMap::new();
        headers.insert("retry-after-ms", "40".parse().unwrap());
        let error = refused(Refusal {
            origin: &Origin::new("openai", "m"),
            status: 429,
            headers: &headers,
            body: text.as_bytes(),
        });
        assert_eq!(error.retry_after, Some(Duration::from_millis(40)));
    }

    #[test]
    fn a_numeric_code_in_a_stream_classifies_but_is_no_status() {
        let origin = Origin::new("openai", "m");
        let error = in_stream(&origin, &json!({"error": {"code": 502, "message": "x"}}));
        assert_eq!((error.kind, error.status), (ErrorKind::Server, None));
        let error = in_stream(&origin, &json!({"error": {"code": "429", "message": "x"}}));
        assert_eq!(error.kind, ErrorKind::RateLimited);
        assert_eq!(in_stream(&origin, &json!({"error": {}})).message, NO_REASON);
    }

    #[test]
    fn an_ordinary_chunk_is_no_error() {
        assert_eq!(read(&json!({"choices": [], "usage": null})), None);
        assert_eq!(read(&json!(7)), None);
    }
}
