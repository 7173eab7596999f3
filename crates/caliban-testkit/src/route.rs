//! Which endpoint a request is for.

use crate::ask::Mode;
use crate::cloud::{Wrapped, wrapped};
use crate::http::Request;
use crate::record::Api;

/// Whose model list a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Catalogue {
    Anthropic,
    OpenAi,
    Gemini,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Generate(Api),
    GenerateGemini {
        model: &'a str,
        mode: Mode,
    },
    Count(Api),
    CountGemini {
        model: &'a str,
    },
    Models(Catalogue),
    Model(Catalogue, &'a str),
    OllamaShow,
    OllamaTags,
    OllamaVersion,
    OllamaRunning,
    Health,
    /// A family behind the path of a platform.
    Wrapped(Wrapped),
    Profiles,
    Unknown,
}

pub(crate) fn route(request: &Request) -> Route<'_> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    match (request.method.as_str(), path) {
        ("POST", "/v1/messages" | "/anthropic/v1/messages") => {
            Route::Generate(Api::AnthropicMessages)
        }
        ("POST", "/openai/v1/responses") => Route::Generate(Api::OpenAiResponses),
        ("POST", "/openai/v1/chat/completions") => Route::Generate(Api::OpenAiChat),
        ("POST", path)
            if path.starts_with("/openai/deployments/")
                && path.ends_with("/chat/completions")
                && query.contains("api-version=") =>
        {
            Route::Generate(Api::OpenAiChat)
        }
        ("GET", "/inference-profiles") => Route::Profiles,
        ("POST", "/v1/messages/count_tokens") => Route::Count(Api::AnthropicMessages),
        ("POST", "/v1/responses" | "/responses") => Route::Generate(Api::OpenAiResponses),
        ("POST", "/v1/responses/input_tokens" | "/responses/input_tokens") => {
            Route::Count(Api::OpenAiResponses)
        }
        ("POST", "/v1/chat/completions" | "/chat/completions") => Route::Generate(Api::OpenAiChat),
        ("POST", "/api/chat") => Route::Generate(Api::Ollama),
        ("POST", "/api/show") => Route::OllamaShow,
        ("GET", "/api/tags") => Route::OllamaTags,
        ("GET", "/api/version") => Route::OllamaVersion,
        ("GET", "/api/ps") => Route::OllamaRunning,
        ("GET", "/healthz") => Route::Health,
        ("GET", "/models") => Route::Models(Catalogue::OpenAi),
        ("GET", "/v1/models" | "/v1beta/models") => Route::Models(catalogue(request, path)),
        ("GET", _) => {
            let id = ["/v1/models/", "/v1beta/models/", "/models/"]
                .iter()
                .find_map(|p| path.strip_prefix(p));
            id.map_or(Route::Unknown, |id| {
                Route::Model(catalogue(request, path), id)
            })
        }
        ("POST", _) => match wrapped(path) {
            Some(wrapped) => Route::Wrapped(wrapped),
            None => gemini(path, query),
        },
        _ => Route::Unknown,
    }
}

fn catalogue(request: &Request, path: &str) -> Catalogue {
    if request.header("anthropic-version").is_some() {
        Catalogue::Anthropic
    } else if path.starts_with("/v1beta/") || request.header("x-goog-api-key").is_some() {
        Catalogue::Gemini
    } else {
        Catalogue::OpenAi
    }
}

fn gemini<'a>(path: &'a str, query: &str) -> Route<'a> {
    let model_and_verb = ["/v1/models/", "/v1beta/models/"]
        .iter()
        .find_map(|p| path.strip_prefix(p));
    let on_vertex = path.split_once("/publishers/google/models/");
    let model_and_verb = model_and_verb.or_else(|| on_vertex.map(|(_, rest)| rest));
    let Some((model, verb)) = model_and_verb.and_then(|rest| rest.rsplit_once(':')) else {
        return Route::Unknown;
    };
    match verb {
        "generateContent" => Route::GenerateGemini {
            model,
            mode: Mode::Whole,
        },
        "streamGenerateContent" if query.split('&').any(|pair| pair == "alt=sse") => {
            Route::GenerateGemini {
                model,
                mode: Mode::Stream,
            }
        }
        "streamGenerateContent" => Route::GenerateGemini {
            model,
            mode: Mode::Array,
        },
        "countTokens" => Route::CountGemini { model },
        _ => Route::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::http::Persistence;

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request {
        Request {
            method: method.into(),
            path: path.into(),
            headers: headers
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            body: Bytes::new(),
            persistence: Persistence::Keep,
        }
    }

    #[test]
    fn gemini_addresses_carry_model_and_mode() {
        for (path, expected) in [
            (
                "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
                Mode::Stream,
            ),
            (
                "/v1/models/gemini-3.8-flash:streamGenerateContent",
                Mode::Array,
            ),
            ("/v1/models/gemini-3.8-flash:generateContent", Mode::Whole),
        ] {
            let request = request("POST", path, &[]);
            assert_eq!(
                route(&request),
                Route::GenerateGemini {
                    model: "gemini-3.8-flash",
                    mode: expected
                }
            );
        }
    }

    #[test]
    fn headers_and_prefix_choose_the_catalogue() {
        for (path, headers, expected) in [
            (
                "/v1/models?limit=5",
                &[("anthropic-version", "2023-06-01")][..],
                Catalogue::Anthropic,
            ),
            (
                "/v1/models",
                &[("x-goog-api-key", "k")][..],
                Catalogue::Gemini,
            ),
            ("/v1beta/models", &[][..], Catalogue::Gemini),
            ("/v1/models", &[][..], Catalogue::OpenAi),
            ("/models", &[][..], Catalogue::OpenAi),
        ] {
            assert_eq!(
                route(&request("GET", path, headers)),
                Route::Models(expected),
                "{path}"
            );
        }
        assert_eq!(
            route(&request("GET", "/v1/models/a", &[])),
            Route::Model(Catalogue::OpenAi, "a")
        );
    }

    #[test]
    fn everything_else_is_unknown() {
        for (method, path) in [("GET", "/v1/messages"), ("POST", "/v1/nope")] {
            assert_eq!(route(&request(method, path, &[])), Route::Unknown);
        }
    }
}
