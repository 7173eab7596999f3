//! Whether a request carries a key where its API looks for one.

use crate::fault::{ErrorKind, Rejection, Verdict};
use crate::http::Request;
use crate::record::Api;
use crate::script::Checks;

pub(crate) fn check(
    api: Api,
    request: &Request,
    checks: Checks,
    required: Option<&str>,
) -> Verdict {
    let bearer = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    let own = match api {
        Api::AnthropicMessages | Api::Converse => request.header("x-api-key"),
        Api::Gemini => request.header("x-goog-api-key"),
        // Azure's name for it.
        Api::OpenAiChat | Api::OpenAiResponses => request.header("api-key"),
        Api::Ollama => None,
    };
    if api == Api::AnthropicMessages && own.is_some() && bearer.is_some() && checks != Checks::Off {
        return Err(Rejection::new(
            401,
            ErrorKind::Auth,
            "send either x-api-key or authorization, not both",
        ));
    }
    let key = own.or(bearer).filter(|key| !key.is_empty());
    match (key, required) {
        (Some(key), Some(required)) if key != required => Err(wrong(api, key)),
        (None, Some(_)) => Err(missing(api)),
        (None, None) if checks == Checks::On && api != Api::Ollama => Err(missing(api)),
        (Some(_), _) | (None, None) => Ok(()),
    }
}

fn missing(api: Api) -> Rejection {
    let message = match api {
        Api::AnthropicMessages => "x-api-key header is required",
        Api::OpenAiChat | Api::OpenAiResponses => {
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
        }
        Api::Gemini => {
            "Request is missing required authentication credential. Expected an API key in x-goog-api-key."
        }
        Api::Ollama | Api::Converse => "unauthorized",
    };
    Rejection::new(401, ErrorKind::Auth, message)
}

fn wrong(api: Api, key: &str) -> Rejection {
    match api {
        Api::AnthropicMessages => Rejection::new(401, ErrorKind::Auth, "invalid x-api-key"),
        Api::OpenAiChat | Api::OpenAiResponses => {
            let shown: String = key.chars().take(4).collect();
            let message = format!("Incorrect API key provided: {shown}***.");
            Rejection::new(401, ErrorKind::Auth, message).code("invalid_api_key")
        }
        // Google reports a bad key as a bad argument.
        Api::Gemini => Rejection::new(
            400,
            ErrorKind::Auth,
            "API key not valid. Please pass a valid API key.",
        ),
        Api::Ollama | Api::Converse => Rejection::new(401, ErrorKind::Auth, "unauthorized"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::http::Persistence;

    fn status(
        api: Api,
        headers: &[(&str, &str)],
        checks: Checks,
        required: Option<&str>,
    ) -> Option<u16> {
        let request = Request {
            method: "POST".into(),
            path: "/".into(),
            headers: headers
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            body: Bytes::new(),
            persistence: Persistence::Keep,
        };
        check(api, &request, checks, required)
            .err()
            .map(|rejection| rejection.status)
    }

    #[test]
    fn each_api_looks_in_its_own_place() {
        let (on, bearer) = (Checks::On, ("authorization", "Bearer k"));
        for api in [
            Api::AnthropicMessages,
            Api::OpenAiChat,
            Api::OpenAiResponses,
            Api::Gemini,
        ] {
            assert_eq!(status(api, &[], on, None), Some(401), "{api:?}");
            assert_eq!(status(api, &[bearer], on, None), None, "{api:?}");
            assert_eq!(status(api, &[], Checks::Keyless, None), None, "{api:?}");
        }
        assert_eq!(status(Api::Ollama, &[], on, None), None);
        assert_eq!(
            status(Api::AnthropicMessages, &[("x-api-key", "k")], on, Some("k")),
            None
        );
        assert_eq!(
            status(Api::Gemini, &[("x-goog-api-key", "k")], on, Some("k")),
            None
        );
        assert_eq!(
            status(Api::OpenAiChat, &[("x-api-key", "k")], on, None),
            Some(401)
        );
    }

    #[test]
    fn a_required_key_must_match_even_without_checks() {
        let off = Checks::Off;
        assert_eq!(
            status(
                Api::OpenAiChat,
                &[("authorization", "Bearer x")],
                off,
                Some("k")
            ),
            Some(401)
        );
        assert_eq!(
            status(Api::Gemini, &[("x-goog-api-key", "x")], off, Some("k")),
            Some(400)
        );
        assert_eq!(status(Api::Ollama, &[], off, Some("k")), Some(401));
    }

    #[test]
    fn anthropic_refuses_two_keys() {
        let both = [("x-api-key", "k"), ("authorization", "Bearer k")];
        assert_eq!(
            status(Api::AnthropicMessages, &both, Checks::On, None),
            Some(401)
        );
    }
}
