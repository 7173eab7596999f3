//! Dispatch to the five families, and what the server remembers having issued to each.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::anthropic::{self, Call};
use crate::ask::{Ask, Mode};
use crate::cloud;
use crate::fault::{ErrorKind, Rejection, Verdict};
use crate::frame::Event;
use crate::gemini;
use crate::http::Request;
use crate::ollama;
use crate::openai;
use crate::openai_chat;
use crate::openai_responses;
use crate::plan::Headers;
use crate::quirk::Quirks;
use crate::record::Api;
use crate::script::ModelEntry;
use crate::turn::{Thoughts, Turn};

/// Signatures and items handed out. Grows by one entry per issued block: a server lives as long
/// as its test.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    anthropic: anthropic::Issued,
    responses: openai_responses::Issued,
    gemini: gemini::Issued,
    trusted: HashSet<String>,
}

impl Memory {
    pub(crate) fn trusting(signatures: Vec<String>) -> Self {
        Self {
            trusted: signatures.into_iter().collect(),
            ..Self::default()
        }
    }

    pub(crate) fn trusts(&self, signature: &str) -> bool {
        self.trusted.contains(signature)
    }

    pub(crate) fn remember(&mut self, ask: &Ask, turn: &Turn) {
        match ask.api {
            Api::AnthropicMessages => self.anthropic.remember(ask, turn),
            Api::OpenAiResponses => self.responses.remember(turn),
            Api::Gemini => self.gemini.remember(turn),
            Api::OpenAiChat | Api::Ollama | Api::Converse => {}
        }
    }

    pub(crate) fn anthropic(&self) -> &anthropic::Issued {
        &self.anthropic
    }

    pub(crate) fn responses(&self) -> &openai_responses::Issued {
        &self.responses
    }

    pub(crate) fn gemini(&self) -> &gemini::Issued {
        &self.gemini
    }
}

pub(crate) fn check(
    ask: &Ask,
    request: &Request,
    memory: &Memory,
    models: &[ModelEntry],
    call: Call,
) -> Verdict {
    match (ask.api, call) {
        (Api::AnthropicMessages, _) => anthropic::check(ask, request, memory, call),
        (Api::OpenAiResponses, _) => openai_responses::check(ask, memory),
        (Api::OpenAiChat, _) => openai_chat::check(ask),
        (Api::Gemini, Call::Create) => gemini::check(ask, memory),
        // The counted request may be wrapped; the real one follows anyway.
        (Api::Gemini, Call::Count) => Ok(()),
        (Api::Ollama, _) => ollama::check(ask, models),
        (Api::Converse, _) => cloud::check(ask),
    }
}

pub(crate) fn thoughts(ask: &Ask, quirks: &Quirks) -> Thoughts {
    match ask.api {
        Api::AnthropicMessages => anthropic::thoughts(ask),
        Api::OpenAiResponses => openai_responses::thoughts(ask),
        Api::OpenAiChat => openai_chat::thoughts(quirks),
        Api::Gemini => gemini::thoughts(ask),
        Api::Ollama => ollama::thoughts(ask),
        Api::Converse => Thoughts::Dropped,
    }
}

/// The answer as the events of a stream.
pub(crate) fn events(ask: &Ask, turn: &Turn) -> Vec<Event> {
    match ask.api {
        Api::AnthropicMessages => anthropic::events(turn),
        Api::OpenAiResponses => openai_responses::events(ask, turn),
        Api::OpenAiChat => openai_chat::events(ask, turn),
        Api::Gemini => gemini::events(turn),
        Api::Ollama => ollama::events(turn),
        Api::Converse => cloud::events(turn),
    }
}

/// The answer as one JSON document.
pub(crate) fn document(ask: &Ask, turn: &Turn) -> Value {
    match ask.api {
        Api::AnthropicMessages => anthropic::document(turn),
        Api::OpenAiResponses => openai_responses::document(ask, turn),
        Api::OpenAiChat => openai_chat::document(turn),
        Api::Gemini => gemini::document(turn),
        Api::Ollama => ollama::document(turn),
        Api::Converse => cloud::document(turn),
    }
}

pub(crate) fn error_body(api: Api, mode: Mode, rejection: &Rejection, headers: &Headers) -> Value {
    if mode == Mode::EventStream {
        return json!({"message": rejection.message});
    }
    match api {
        Api::Converse => json!({"message": rejection.message}),
        Api::AnthropicMessages => anthropic::error(rejection, request_id(headers)),
        Api::OpenAiResponses | Api::OpenAiChat => openai::error(rejection),
        Api::Gemini if mode == Mode::Array => json!([gemini::error(rejection)]),
        Api::Gemini => gemini::error(rejection),
        Api::Ollama => ollama::error(rejection),
    }
}

/// An error inside a stream, after `position` other events.
pub(crate) fn error_event(
    api: Api,
    rejection: &Rejection,
    headers: &Headers,
    position: usize,
) -> Event {
    match api {
        Api::AnthropicMessages => {
            Event::named("error", &anthropic::error(rejection, request_id(headers)))
        }
        Api::OpenAiResponses => openai_responses::error_event(rejection, position),
        Api::OpenAiChat => Event::unnamed(&openai::error(rejection)),
        Api::Gemini => Event::unnamed(&gemini::error(rejection)),
        Api::Ollama => Event::unnamed(&ollama::error(rejection)),
        Api::Converse => exception_event(rejection),
    }
}

/// The same on Bedrock.
pub(crate) fn exception_event(rejection: &Rejection) -> Event {
    let body = json!({"message": rejection.message});
    Event::named(cloud::exception_name(rejection.kind), &body)
}

/// An event of the family whose data is no JSON.
pub(crate) fn malformed_event(api: Api) -> Event {
    let data = r#"{"type": "broken", "#;
    match api {
        Api::AnthropicMessages => Event::named("content_block_delta", &data),
        Api::OpenAiResponses => Event::named("response.output_text.delta", &data),
        Api::Converse => Event::named("contentBlockDelta", &data),
        Api::OpenAiChat | Api::Gemini | Api::Ollama => Event::unnamed(&data),
    }
}

/// What the family says about a failure of this kind.
pub(crate) fn message(api: Api, kind: ErrorKind, model: &str) -> String {
    match api {
        Api::AnthropicMessages | Api::Converse => anthropic::message(kind, model),
        Api::OpenAiResponses | Api::OpenAiChat => openai::message(kind, model),
        Api::Gemini => gemini::message(kind, model),
        Api::Ollama => ollama::message(kind, model),
    }
}

/// The status the family would have used for an error reported within a stream.
pub(crate) fn status(api: Api, kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::InvalidRequest | ErrorKind::ContextTooLong => 400,
        ErrorKind::Auth => 401,
        ErrorKind::Billing if api == Api::OpenAiChat || api == Api::OpenAiResponses => 429,
        ErrorKind::Billing => 402,
        ErrorKind::Permission => 403,
        ErrorKind::ModelNotFound => 404,
        ErrorKind::TooLarge => 413,
        ErrorKind::RateLimit | ErrorKind::SpendLimit => 429,
        ErrorKind::Server => 500,
        ErrorKind::Overloaded if api == Api::AnthropicMessages => 529,
        ErrorKind::Overloaded => 503,
        ErrorKind::Timeout => 504,
    }
}

pub(crate) fn headers(api: Api, request_id: &str) -> Headers {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    match api {
        Api::AnthropicMessages => {
            vec![
                header("request-id", request_id),
                header("anthropic-organization-id", "org_0001"),
            ]
        }
        Api::OpenAiResponses | Api::OpenAiChat => {
            vec![
                header("x-request-id", request_id),
                header("openai-processing-ms", "1"),
            ]
        }
        Api::Gemini | Api::Ollama => Vec::new(),
        Api::Converse => vec![header("x-amzn-requestid", request_id)],
    }
}

fn request_id(headers: &Headers) -> &str {
    headers.first().map_or("", |(_, value)| value)
}

pub(crate) fn content_type(ask: &Ask) -> &'static str {
    match (ask.api, ask.mode) {
        (_, Mode::Whole) | (Api::Gemini, Mode::Array) => "application/json",
        (_, Mode::EventStream) => "application/vnd.amazon.eventstream",
        (Api::Ollama, _) => "application/x-ndjson",
        (_, Mode::Stream | Mode::Array) => "text/event-stream",
    }
}

pub(crate) fn count_body(api: Api, tokens: usize) -> Value {
    match api {
        Api::Gemini => json!({"totalTokens": tokens}),
        Api::OpenAiResponses => json!({"object": "response.input_tokens", "input_tokens": tokens}),
        Api::AnthropicMessages | Api::OpenAiChat | Api::Ollama | Api::Converse => {
            json!({"input_tokens": tokens})
        }
    }
}
