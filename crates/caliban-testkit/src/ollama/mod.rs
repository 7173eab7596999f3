//! Ollama's native API: errors, model descriptions, and loading without generating.

mod check;
mod stream;

use serde_json::{Value, json};

pub(crate) use check::check;
pub(crate) use stream::{document, events};

use crate::ask::Ask;
use crate::fault::{ErrorKind, Rejection};
use crate::json::list;
use crate::record::Api;
use crate::script::ModelEntry;
use crate::turn::Thoughts;

/// When every answer was "created".
const CREATED: &str = "2026-01-01T00:00:00Z";

/// Thinking is on unless switched off.
pub(crate) fn thoughts(ask: &Ask) -> Thoughts {
    if ask.body.get("think") == Some(&Value::Bool(false)) {
        Thoughts::Dropped
    } else {
        Thoughts::Shown
    }
}

/// The answer to a request without messages, which only loads or unloads the model.
pub(crate) fn loading(ask: &Ask) -> Option<Value> {
    if ask.api != Api::Ollama || !list(&ask.body, "messages").is_empty() {
        return None;
    }
    let unloads = ask
        .body
        .get("keep_alive")
        .is_some_and(|value| *value == 0 || *value == "0");
    Some(json!({
        "model": ask.model,
        "created_at": CREATED,
        "message": {"role": "assistant", "content": ""},
        "done": true,
        "done_reason": if unloads { "unload" } else { "load" },
    }))
}

pub(crate) fn error(rejection: &Rejection) -> Value {
    json!({"error": rejection.message})
}

pub(crate) fn message(kind: ErrorKind, model: &str) -> String {
    match kind {
        ErrorKind::InvalidRequest => "invalid request".into(),
        ErrorKind::Auth | ErrorKind::Permission => "unauthorized".into(),
        ErrorKind::Billing | ErrorKind::SpendLimit => "usage limit reached".into(),
        ErrorKind::ModelNotFound => format!("model '{model}' not found"),
        ErrorKind::TooLarge => "http: request body too large".into(),
        ErrorKind::ContextTooLong => "the input length exceeds the context length".into(),
        ErrorKind::RateLimit => "too many requests".into(),
        ErrorKind::Server => "model runner has unexpectedly stopped".into(),
        ErrorKind::Overloaded => {
            "server busy, please try again.  maximum pending requests exceeded".into()
        }
        ErrorKind::Timeout => "timed out waiting for the runner".into(),
    }
}

fn details(entry: &ModelEntry) -> Value {
    json!({
        "parent_model": "",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "8B",
        "quantization_level": "Q4_K_M",
        "context_length": entry.context_length,
    })
}

pub(crate) fn tag(entry: &ModelEntry) -> Value {
    json!({
        "name": entry.id,
        "model": entry.id,
        "modified_at": CREATED,
        "size": 4_900_000_000_u64,
        "digest": "0000000000000000",
        "details": details(entry),
    })
}

pub(crate) fn running(entry: &ModelEntry) -> Value {
    let mut model = tag(entry);
    model["context_length"] = entry.context_length.into();
    model["size_vram"] = 0.into();
    model["expires_at"] = CREATED.into();
    model
}

pub(crate) fn show(entry: &ModelEntry) -> Value {
    json!({
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": details(entry),
        "capabilities": entry.capabilities,
        "model_info": {"general.architecture": "llama", "llama.context_length": entry.context_length},
        "modified_at": CREATED,
    })
}
