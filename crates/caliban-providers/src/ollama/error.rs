//! Ollama's errors, the same in refusals and inside streams.

use caliban_model::{Error, ErrorKind, Origin, RetryAdvice};
use serde::Deserialize;

use super::wire::Failure;
use crate::failure::{ErrorBody, Refusal, fail, kind_of};

pub(super) fn refusal(refusal: Refusal<'_>) -> Error {
    let failure = refusal
        .json()
        .and_then(|body| Failure::deserialize(&body).ok())
        .unwrap_or_default();
    let body = ErrorBody {
        message: failure.message().unwrap_or_else(|| refusal.text()),
        ..ErrorBody::default()
    };
    advised(refusal.into_error(body), failure.signin_url.as_deref())
}

/// A failure inside an answer that began well.
pub(super) fn in_stream(origin: &Origin, failure: &Failure, message: &str) -> Error {
    let kind = kind_of(failure.status(), &[], message);
    advised(fail(origin, kind, message), failure.signin_url.as_deref())
}

/// The model was asked for tools and has none.
pub(super) fn toolless(model: &str) -> Error {
    Error::new(
        ErrorKind::Invalid,
        super::ID,
        model,
        format!("the model `{model}` does not support tools"),
    )
    .with_remedy(tool_remedy(model))
}

/// Whether the server answered that it does not have the model. A server that lacks the whole
/// endpoint also says 404, but not about a model.
pub(super) fn lacks_model(error: &Error) -> bool {
    error.status == Some(404) && error.message.contains("model")
}

fn tool_remedy(model: &str) -> String {
    format!("choose a model that supports tools (`ollama show {model}`) or run with `--no-tools`")
}

/// What helps where nobody knows where the key came from.
pub(super) fn remedy(kind: &ErrorKind) -> Option<String> {
    match kind {
        ErrorKind::Auth => Some("sign in with `ollama signin` or set `OLLAMA_API_KEY`".to_owned()),
        _ => None,
    }
}

fn advised(mut error: Error, signin_url: Option<&str>) -> Error {
    let model = error.model.clone();
    if lacks_model(&error) && !model.is_empty() {
        return error.with_remedy(format!("pull it with `ollama pull {model}`"));
    }
    if error.message.contains("does not support tools") {
        return error.with_remedy(tool_remedy(&model));
    }
    if error.message.contains("requires more system memory") {
        error.advice = RetryAdvice::GiveUp;
        return error.with_remedy("choose a smaller model or a smaller context");
    }
    match (&error.kind, signin_url) {
        (ErrorKind::Auth, Some(url)) => error.with_remedy(format!("sign in at {url}")),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderMap;
    use rstest::rstest;

    fn refused(status: u16, body: &str) -> Error {
        refusal(Refusal {
            origin: &Origin::new("ollama", "llama3.1"),
            status,
            headers: &HeaderMap::new(),
            body: body.as_bytes(),
        })
    }

    #[rstest]
    #[case(400, "the input length exceeds the context length", ErrorKind::TooLong { limit: None })]
    #[case(400, "\\\"llama3.1\\\" does not support thinking", ErrorKind::Invalid)]
    #[case(404, "model 'llama3.1' not found", ErrorKind::Unavailable)]
    #[case(
        404,
        "model \\\"llama3.1\\\" not found, try pulling it first",
        ErrorKind::Unavailable
    )]
    #[case(499, "cancelled", ErrorKind::Cancelled)]
    #[case(500, "llama runner process has terminated", ErrorKind::Server)]
    #[case(502, "cloud unreachable", ErrorKind::Server)]
    #[case(
        503,
        "server busy, please try again.  maximum pending requests exceeded",
        ErrorKind::Overloaded
    )]
    fn errors_are_classified(#[case] status: u16, #[case] message: &str, #[case] kind: ErrorKind) {
        let error = refused(status, &format!("{{\"error\":\"{message}\"}}"));
        assert_eq!((error.kind, error.status), (kind, Some(status)));
        assert_eq!(error.message, message.replace('\\', ""));
    }

    #[rstest]
    #[case(
        404,
        r#"{"error":"model 'llama3.1' not found"}"#,
        "pull it with `ollama pull llama3.1`"
    )]
    #[case(
        400,
        r#"{"error":"llama3.1 does not support tools"}"#,
        "choose a model that supports tools (`ollama show llama3.1`) or run with `--no-tools`"
    )]
    #[case(
        401,
        r#"{"error":"unauthorized","signin_url":"https://ollama.com/connect"}"#,
        "sign in at https://ollama.com/connect"
    )]
    #[case(
        401,
        "unauthorized",
        "sign in with `ollama signin` or set `OLLAMA_API_KEY`"
    )]
    #[case(
        500,
        r#"{"error":"model requires more system memory (9 GiB) than is available"}"#,
        "choose a smaller model or a smaller context"
    )]
    fn remedies_say_what_to_do(#[case] status: u16, #[case] body: &str, #[case] remedy: &str) {
        let error = refused(status, body);
        let general = super::remedy(&error.kind);
        assert_eq!(error.remedy.or(general).as_deref(), Some(remedy));
    }

    #[test]
    fn lack_of_memory_is_not_retried_and_a_crash_is() {
        let memory = refused(500, r#"{"error":"model requires more system memory"}"#);
        assert!(!memory.is_retryable());
        assert!(refused(500, r#"{"error":{"message":"crash"}}"#).is_retryable());
    }
}
