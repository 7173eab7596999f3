//! Google Gemini: errors, model descriptions, generations, and what was issued.

mod check;
mod stream;

use std::collections::HashMap;

use serde_json::{Value, json};

pub(crate) use check::check;
pub(crate) use stream::{document, events};

use crate::ask::Ask;
use crate::fault::{ErrorKind, Rejection};
use crate::json::is_true;
use crate::script::ModelEntry;
use crate::turn::{Part, Thoughts, Turn};

/// Signatures handed out, each with the call that carried it, if one did.
#[derive(Debug, Default)]
pub(crate) struct Issued {
    signatures: HashMap<String, Option<Value>>,
}

impl Issued {
    pub(crate) fn remember(&mut self, turn: &Turn) {
        let first = turn.parts.iter().find_map(|part| match part {
            Part::Call { name, input, .. } => Some(json!({"name": name, "args": input})),
            Part::Text { .. } | Part::Thinking { .. } | Part::Redacted { .. } => None,
        });
        self.signatures.insert(turn.signature.clone(), first);
    }
}

/// The field in either spelling the API parses.
fn field<'a>(value: &'a Value, camel: &str) -> Option<&'a Value> {
    let found = value.get(camel).or_else(|| value.get(snake(camel)));
    found.filter(|found| !found.is_null())
}

fn snake(camel: &str) -> String {
    let mut out = String::with_capacity(camel.len() + 2);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Major and minor number of a `gemini-*` id.
fn generation(model: &str) -> Option<(u32, u32)> {
    let name = model
        .strip_prefix("models/")
        .unwrap_or(model)
        .strip_prefix("gemini-")?;
    let number = name.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn needs_signatures(model: &str) -> bool {
    generation(model).is_some_and(|generation| generation >= (3, 0))
}

/// Summaries of thoughts come only on request.
pub(crate) fn thoughts(ask: &Ask) -> Thoughts {
    let config =
        field(&ask.body, "generationConfig").and_then(|config| field(config, "thinkingConfig"));
    let asked = config.is_some_and(|config| {
        is_true(config, "includeThoughts") || is_true(config, "include_thoughts")
    });
    if asked {
        Thoughts::Shown
    } else {
        Thoughts::Dropped
    }
}

pub(crate) fn error(rejection: &Rejection) -> Value {
    let status = match rejection.kind {
        ErrorKind::InvalidRequest | ErrorKind::ContextTooLong | ErrorKind::TooLarge => {
            "INVALID_ARGUMENT"
        }
        ErrorKind::Auth if rejection.status == 400 => "INVALID_ARGUMENT",
        ErrorKind::Auth => "UNAUTHENTICATED",
        ErrorKind::Permission => "PERMISSION_DENIED",
        ErrorKind::Billing => "FAILED_PRECONDITION",
        ErrorKind::ModelNotFound => "NOT_FOUND",
        ErrorKind::RateLimit | ErrorKind::SpendLimit => "RESOURCE_EXHAUSTED",
        ErrorKind::Server => "INTERNAL",
        ErrorKind::Overloaded => "UNAVAILABLE",
        ErrorKind::Timeout => "DEADLINE_EXCEEDED",
    };
    let mut error =
        json!({"code": rejection.status, "message": rejection.message, "status": status});
    let mut details = Vec::new();
    if let Some(seconds) = rejection
        .retry_after
        .as_ref()
        .filter(|value| value.parse::<f64>().is_ok())
    {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")}));
    }
    if rejection.kind == ErrorKind::SpendLimit {
        details.push(
            json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}),
        );
    }
    if rejection.kind == ErrorKind::Auth && rejection.status == 400 {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID", "domain": "googleapis.com"}));
    }
    if !details.is_empty() {
        error["details"] = details.into();
    }
    json!({"error": error})
}

pub(crate) fn message(kind: ErrorKind, model: &str) -> String {
    match kind {
        ErrorKind::InvalidRequest => "Request contains an invalid argument.".into(),
        ErrorKind::Auth => "API key not valid. Please pass a valid API key.".into(),
        ErrorKind::Permission => "The caller does not have permission".into(),
        ErrorKind::Billing => "User location or billing state does not permit this call.".into(),
        ErrorKind::ModelNotFound => {
            format!("models/{model} is not found for API version v1beta, or is not supported for generateContent.")
        }
        ErrorKind::TooLarge => "Request payload size exceeds the limit: 20971520 bytes.".into(),
        ErrorKind::ContextTooLong => {
            "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).".into()
        }
        ErrorKind::RateLimit => "Resource has been exhausted (e.g. check quota).".into(),
        ErrorKind::SpendLimit => "You exceeded your current quota, please check your plan and billing details.".into(),
        ErrorKind::Server => "An internal error has occurred.".into(),
        ErrorKind::Overloaded => "The model is overloaded. Please try again later.".into(),
        ErrorKind::Timeout => "The request timed out.".into(),
    }
}

pub(crate) fn describe(entry: &ModelEntry) -> Value {
    json!({
        "name": format!("models/{}", entry.id),
        "displayName": entry.id,
        "version": "001",
        "inputTokenLimit": entry.context_length,
        "outputTokenLimit": entry.max_output,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        "thinking": generation(&entry.id).is_some_and(|generation| generation >= (2, 5)),
    })
}
