//! What Bedrock's refusals and exceptions mean.

use caliban_model::{Error, ErrorKind, Origin};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::failure::{ErrorBody, Refusal, fail, kind_of};
use crate::framing::Exception;

/// How far the clocks may be apart for a signature to count.
const MOST_SKEW_SECONDS: i64 = 300;

const LOGIN: &str =
    "run `aws sso login`, or renew the keys that `AWS_ACCESS_KEY_ID` and the profile hold";

/// A refusal in Bedrock's shape; nothing where it is the model's own.
pub(super) fn refusal(refusal: &Refusal<'_>) -> Option<Error> {
    let body = refusal.json();
    let class = refusal
        .headers
        .get("x-amzn-errortype")
        .and_then(|value| value.to_str().ok());
    let class = class.or_else(|| body.as_ref()?.get("__type")?.as_str())?;
    let class = class
        .split([':', '#'])
        .find(|part| part.ends_with("Exception"));
    let class = class.unwrap_or("Exception").to_owned();
    let message = body
        .as_ref()
        .and_then(said)
        .unwrap_or_else(|| refusal.text());
    let kind = kind(&class, Some(refusal.status), &message);
    let mut error = Refusal { ..*refusal }.into_error(ErrorBody {
        message: message.clone(),
        ..ErrorBody::default()
    });
    error.kind = kind;
    error.request_id = header(refusal.headers, "x-amzn-requestid").map(str::to_owned);
    error.remedy = remedy(&class, &error.kind, &message, refusal.headers);
    Some(error)
}

/// What ends a stream.
pub(super) fn exception(origin: &Origin, exception: &Exception) -> Error {
    let body: Value = serde_json::from_str(&exception.body).unwrap_or_default();
    let message = said(&body).unwrap_or_else(|| exception.class.clone());
    let status = body
        .get("originalStatusCode")
        .and_then(Value::as_u64)
        .and_then(|status| u16::try_from(status).ok());
    fail(origin, kind(&exception.class, status, &message), message)
}

fn said(body: &Value) -> Option<String> {
    let names = ["message", "Message", "originalMessage"];
    let text = names.iter().find_map(|name| body.get(name)?.as_str());
    text.map(str::to_owned)
}

fn kind(class: &str, status: Option<u16>, message: &str) -> ErrorKind {
    let text = message.to_ascii_lowercase();
    match class.to_ascii_lowercase().as_str() {
        // It is this model that the account may not use, not the account that is unknown.
        "accessdeniedexception" if text.contains("access to the model") => ErrorKind::Unavailable,
        "accessdeniedexception"
        | "expiredtokenexception"
        | "unrecognizedclientexception"
        | "invalidsignatureexception"
        | "missingauthenticationtokenexception" => ErrorKind::Auth,
        "resourcenotfoundexception" => ErrorKind::Unavailable,
        "throttlingexception" | "toomanyrequestsexception" => ErrorKind::RateLimited,
        "modelnotreadyexception" | "serviceunavailableexception" => ErrorKind::Overloaded,
        "modeltimeoutexception" => ErrorKind::Timeout,
        "internalserverexception" => ErrorKind::Server,
        "servicequotaexceededexception" => ErrorKind::Billing,
        "modelerrorexception" | "modelstreamerrorexception" => match status {
            Some(424) | None => kind_of(None, &[], message),
            Some(_) => kind_of(status, &[], message),
        },
        "validationexception" => match kind_of(Some(400), &[], message) {
            ErrorKind::Invalid
                if text.contains("model identifier is invalid")
                    || text.contains("on-demand throughput") =>
            {
                ErrorKind::Unavailable
            }
            kind => kind,
        },
        _ => kind_of(status, &[], message),
    }
}

fn remedy(class: &str, kind: &ErrorKind, message: &str, headers: &HeaderMap) -> Option<String> {
    if message.contains("on-demand throughput") {
        return Some("name the model by an inference profile: `[provider.bedrock] prefix = \"us\"`, or its ARN in `models`".to_owned());
    }
    match kind {
        ErrorKind::Unavailable => Some("check that the account has access to the model in this region; `caliban models --provider bedrock` lists those it has".to_owned()),
        ErrorKind::Auth if class == "AccessDeniedException" => Some("allow the identity `bedrock:InvokeModelWithResponseStream` for this model".to_owned()),
        ErrorKind::Auth => match skew(headers) {
            Some(seconds) => Some(format!("set the clock: it differs from AWS's by {seconds} s, and signatures count for {MOST_SKEW_SECONDS} s")),
            None => Some(LOGIN.to_owned()),
        },
        _ => None,
    }
}

/// How far our clock is off, where it is too far.
fn skew(headers: &HeaderMap) -> Option<i64> {
    let date = jiff::fmt::rfc2822::parse(header(headers, "date")?).ok()?;
    let seconds = date
        .timestamp()
        .duration_since(Timestamp::now())
        .as_secs()
        .abs();
    (seconds > MOST_SKEW_SECONDS).then_some(seconds)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn refused(status: u16, class: &str, message: &str) -> Error {
        let mut headers = HeaderMap::new();
        let class = format!("{class}:http://internal.amazon.com/coral/");
        headers.insert("x-amzn-errortype", class.parse().unwrap());
        headers.insert("x-amzn-requestid", "r-1".parse().unwrap());
        let body = serde_json::json!({"message": message}).to_string();
        refusal(&Refusal {
            origin: &Origin::new("bedrock", "m"),
            status,
            headers: &headers,
            body: body.as_bytes(),
        })
        .unwrap()
    }

    #[rstest]
    #[case(
        403,
        "AccessDeniedException",
        "You don't have access to the model with the specified model ID.",
        ErrorKind::Unavailable
    )]
    #[case(
        403,
        "AccessDeniedException",
        "User is not authorized to perform: bedrock:InvokeModel",
        ErrorKind::Auth
    )]
    #[case(
        403,
        "ExpiredTokenException",
        "The security token included in the request is expired",
        ErrorKind::Auth
    )]
    #[case(
        403,
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
        ErrorKind::Auth
    )]
    #[case(
        404,
        "ResourceNotFoundException",
        "Could not resolve the foundation model",
        ErrorKind::Unavailable
    )]
    #[case(
        429,
        "ThrottlingException",
        "Too many requests",
        ErrorKind::RateLimited
    )]
    #[case(429, "ModelNotReadyException", "wait", ErrorKind::Overloaded)]
    #[case(408, "ModelTimeoutException", "late", ErrorKind::Timeout)]
    #[case(424, "ModelErrorException", "broke", ErrorKind::Server)]
    #[case(500, "InternalServerException", "broke", ErrorKind::Server)]
    #[case(503, "ServiceUnavailableException", "busy", ErrorKind::Overloaded)]
    #[case(400, "ServiceQuotaExceededException", "quota", ErrorKind::Billing)]
    #[case(400, "ValidationException", "Input is too long for requested model.", ErrorKind::TooLong { limit: None })]
    #[case(
        400,
        "ValidationException",
        "The provided model identifier is invalid.",
        ErrorKind::Unavailable
    )]
    #[case(400, "ValidationException", "messages: wrong", ErrorKind::Invalid)]
    fn every_class_is_understood(
        #[case] status: u16,
        #[case] class: &str,
        #[case] message: &str,
        #[case] kind: ErrorKind,
    ) {
        let error = refused(status, class, message);
        assert_eq!(error.kind, kind);
        assert_eq!(error.request_id.as_deref(), Some("r-1"));
    }

    #[test]
    fn exceptions_in_a_stream_are_of_the_same_kinds() {
        let origin = Origin::new("bedrock", "m");
        let found = |class: &str, body: &str| {
            exception(
                &origin,
                &Exception {
                    class: class.into(),
                    body: body.into(),
                },
            )
            .kind
        };
        assert_eq!(
            found("throttlingException", r#"{"message":"x"}"#),
            ErrorKind::RateLimited
        );
        assert_eq!(
            found(
                "modelStreamErrorException",
                r#"{"message":"x","originalStatusCode":529}"#
            ),
            ErrorKind::Overloaded
        );
    }
}
