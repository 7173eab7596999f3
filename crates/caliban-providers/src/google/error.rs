//! Google's error objects, the same in refusals and inside streams.

use std::time::Duration;

use caliban_model::{Error, ErrorKind, Origin, RetryAdvice};
use serde_json::Value;

use crate::failure::{ErrorBody, Refusal, fail, kind_of, parse_seconds};

/// What an error object says.
#[derive(Debug)]
struct Report {
    /// The HTTP status it names, or that its status name stands for.
    code: Option<u16>,
    body: ErrorBody,
    quota: Quota,
}

/// Whether waiting within a session can help a call that exceeded a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quota {
    Refills,
    Exhausted,
}

pub(super) fn refusal(refusal: Refusal<'_>) -> Error {
    let (body, quota) = refusal.json().as_ref().and_then(report_in).map_or_else(
        || {
            let body = ErrorBody {
                message: refusal.text(),
                ..ErrorBody::default()
            };
            (body, Quota::Refills)
        },
        |report| (report.body, report.quota),
    );
    advised(refusal.into_error(body), quota)
}

/// An error object inside an answer that began well.
pub(super) fn in_stream(origin: &Origin, error: &Value) -> Error {
    let report = report_of(error);
    let kind = kind_of(report.code, &report.body.codes, &report.body.message);
    let mut error = fail(origin, kind, report.body.message);
    error.retry_after = report.body.retry_after;
    advised(error, report.quota)
}

/// What helps where nobody knows where the key came from.
pub(super) fn remedy(kind: &ErrorKind) -> Option<String> {
    match kind {
        ErrorKind::Auth => Some("set `GEMINI_API_KEY` to a valid key".to_owned()),
        _ => None,
    }
}

fn advised(mut error: Error, quota: Quota) -> Error {
    match (&error.kind, quota) {
        (ErrorKind::RateLimited, Quota::Exhausted) => {
            error.advice = RetryAdvice::GiveUp;
            error.with_remedy("wait until the quota is renewed, or use another model or plan")
        }
        _ => error,
    }
}

/// The error of a body, which streaming endpoints wrap into an array.
fn report_in(body: &Value) -> Option<Report> {
    let body = match body {
        Value::Array(items) => items.first()?,
        other => other,
    };
    body.get("error").map(report_of)
}

fn report_of(error: &Value) -> Report {
    let status = error.get("status").and_then(Value::as_str);
    let details = error
        .get("details")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let reasons = details
        .iter()
        .filter_map(|detail| detail.get("reason").and_then(Value::as_str));
    let message = match error {
        Value::String(text) => text.clone(),
        other => match other.get("message").and_then(Value::as_str) {
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            Some(_) | None => status.map_or_else(|| other.to_string(), str::to_owned),
        },
    };
    let code = error
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    Report {
        code: code.or_else(|| http_status(status?)),
        quota: quota_in(details, &message),
        body: ErrorBody {
            codes: status
                .into_iter()
                .chain(reasons)
                .map(str::to_owned)
                .collect(),
            retry_after: retry_delay(details),
            message,
        },
    }
}

/// The HTTP status behind the name of a remote-procedure status.
fn http_status(name: &str) -> Option<u16> {
    Some(match name {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => 400,
        "UNAUTHENTICATED" => 401,
        "PERMISSION_DENIED" => 403,
        "NOT_FOUND" => 404,
        "ABORTED" | "ALREADY_EXISTS" => 409,
        "RESOURCE_EXHAUSTED" => 429,
        "CANCELLED" => 499,
        "INTERNAL" | "UNKNOWN" | "DATA_LOSS" => 500,
        "UNIMPLEMENTED" => 501,
        "UNAVAILABLE" => 503,
        "DEADLINE_EXCEEDED" => 504,
        _ => return None,
    })
}

fn retry_delay(details: &[Value]) -> Option<Duration> {
    details
        .iter()
        .filter_map(|detail| detail.get("retryDelay")?.as_str())
        .find_map(parse_seconds)
}

/// A quota per day, or one of nothing at all, does not refill while somebody waits.
fn quota_in(details: &[Value], message: &str) -> Quota {
    let per_day = details
        .iter()
        .filter_map(|detail| detail.get("violations")?.as_array())
        .flatten()
        .filter_map(|violation| violation.get("quotaId")?.as_str())
        .any(|quota| quota.contains("PerDay"));
    let none_at_all = message.match_indices("limit: 0").any(|(at, phrase)| {
        let mut rest = message[at + phrase.len()..].chars();
        match rest.next() {
            Some('.') => !rest.next().is_some_and(|digit| digit.is_ascii_digit()),
            next => !next.is_some_and(|digit| digit.is_ascii_digit()),
        }
    });
    if per_day || none_at_all {
        Quota::Exhausted
    } else {
        Quota::Refills
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderMap;
    use rstest::rstest;
    use serde_json::json;

    fn refused(status: u16, body: &str) -> Error {
        refusal(Refusal {
            origin: &Origin::new("google", "gemini-3.8-flash"),
            status,
            headers: &HeaderMap::new(),
            body: body.as_bytes(),
        })
    }

    #[rstest]
    #[case(
        400,
        "INVALID_ARGUMENT",
        "API key not valid. Please pass a valid API key.",
        ErrorKind::Auth
    )]
    #[case(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (5).", ErrorKind::TooLong { limit: Some(5) })]
    #[case(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.", ErrorKind::TooLong { limit: None })]
    #[case(400, "INVALID_ARGUMENT", "Unknown name \"oneOf\"", ErrorKind::Invalid)]
    #[case(
        400,
        "FAILED_PRECONDITION",
        "User location is not supported for the API use.",
        ErrorKind::Invalid
    )]
    #[case(
        401,
        "UNAUTHENTICATED",
        "Request had invalid credentials.",
        ErrorKind::Auth
    )]
    #[case(403, "PERMISSION_DENIED", "Denied.", ErrorKind::Auth)]
    #[case(
        404,
        "NOT_FOUND",
        "models/x is not found for API version v1beta",
        ErrorKind::Unavailable
    )]
    #[case(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", ErrorKind::RateLimited)]
    #[case(499, "CANCELLED", "Cancelled.", ErrorKind::Cancelled)]
    #[case(500, "INTERNAL", "Internal error.", ErrorKind::Server)]
    #[case(503, "UNAVAILABLE", "The model is overloaded.", ErrorKind::Overloaded)]
    #[case(504, "DEADLINE_EXCEEDED", "Too late.", ErrorKind::Timeout)]
    fn errors_are_classified_alike_in_refusals_and_streams(
        #[case] status: u16,
        #[case] name: &str,
        #[case] message: &str,
        #[case] kind: ErrorKind,
    ) {
        let object = json!({"code": status, "message": message, "status": name});
        let error = refused(status, &json!({"error": object}).to_string());
        assert_eq!((&error.kind, error.status), (&kind, Some(status)));
        assert_eq!(error.message, message);

        let origin = Origin::new("google", "m");
        assert_eq!(in_stream(&origin, &object).kind, kind);
        let nameless = json!({"message": message, "status": name});
        assert_eq!(in_stream(&origin, &nameless).kind, kind);
    }

    #[test]
    fn a_wait_is_read_from_an_array_wrapped_error() {
        let error = refused(
            429,
            r#"[{"error":{"code":429,"message":"Quota exceeded, limit: 15","status":"RESOURCE_EXHAUSTED","details":[
                {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"},
                {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"RequestsPerMinute"}]}]}}]"#,
        );
        assert_eq!(error.retry_after, Some(Duration::from_millis(34_500)));
        assert!(error.is_retryable());
    }

    #[rstest]
    #[case(
        "Quota exceeded",
        "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        false
    )]
    #[case("limit: 0, model: gemini-3.1-pro", "x", false)]
    #[case("limit: 0.", "x", false)]
    #[case("limit: 0", "x", false)]
    #[case("limit: 0.5", "x", true)]
    #[case("limit: 05", "x", true)]
    fn a_quota_that_does_not_refill_is_not_retried(
        #[case] message: &str,
        #[case] quota: &str,
        #[case] retryable: bool,
    ) {
        let body = json!({"error": {"message": message, "status": "RESOURCE_EXHAUSTED",
            "details": [{"violations": [{"quotaId": quota}]}]}});
        let error = refused(429, &body.to_string());
        assert_eq!(error.kind, ErrorKind::RateLimited);
        assert_eq!(error.is_retryable(), retryable);
    }

    #[test]
    fn a_wrong_key_names_the_variable() {
        let by_reason = refused(
            400,
            r#"{"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
        );
        let key_remedy = Some("set `GEMINI_API_KEY` to a valid key".to_owned());
        assert_eq!(remedy(&by_reason.kind), key_remedy);
        let page = refused(401, "<html><h1>Unauthorized</h1></html>");
        assert_eq!(page.message, "Unauthorized");
        assert_eq!(remedy(&page.kind), key_remedy);
    }
}
