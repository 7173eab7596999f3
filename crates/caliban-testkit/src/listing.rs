//! The endpoints that describe models rather than run them.

use serde_json::{Value, json};

use crate::anthropic;
use crate::fault::{ErrorKind, Rejection};
use crate::gemini;
use crate::http::Request;
use crate::json;
use crate::ollama;
use crate::openai;
use crate::plan::{Headers, Plan};
use crate::record::{Api, Outcome};
use crate::route::{Catalogue, Route};
use crate::script::ModelEntry;
use crate::server::not_found;

pub(crate) fn answer(
    route: &Route<'_>,
    models: &[ModelEntry],
    request: &Request,
) -> (Plan, Outcome) {
    match route {
        Route::Models(catalogue) => ok(&list(*catalogue, models)),
        Route::Model(catalogue, id) => match find(models, id) {
            Some(entry) => ok(&describe(*catalogue, &entry)),
            None => missing(*catalogue, id),
        },
        Route::OllamaShow => show(models, request),
        Route::OllamaTags => {
            ok(&json!({"models": offered(models).iter().map(ollama::tag).collect::<Vec<_>>()}))
        }
        Route::OllamaVersion => ok(&json!({"version": "0.13.0"})),
        Route::OllamaRunning => {
            ok(&json!({"models": offered(models).iter().map(ollama::running).collect::<Vec<_>>()}))
        }
        Route::Health => ok(&json!({"status": "ok"})),
        Route::Profiles => {
            let profile = |entry: &ModelEntry| {
                json!({"inferenceProfileId": entry.id, "inferenceProfileName": entry.id,
                       "status": "ACTIVE", "type": "SYSTEM_DEFINED", "models": []})
            };
            let profiles: Vec<Value> = offered(models).iter().map(profile).collect();
            ok(&json!({"inferenceProfileSummaries": profiles}))
        }
        Route::Unknown
        | Route::Wrapped(_)
        | Route::Generate(_)
        | Route::GenerateGemini { .. }
        | Route::Count(_)
        | Route::CountGemini { .. } => not_found(request),
    }
}

/// Whose key an endpoint asks for; `None` where it asks for none.
pub(crate) fn api(route: &Route<'_>) -> Option<Api> {
    match route {
        Route::Models(catalogue) | Route::Model(catalogue, _) => Some(match catalogue {
            Catalogue::Anthropic => Api::AnthropicMessages,
            Catalogue::OpenAi => Api::OpenAiChat,
            Catalogue::Gemini => Api::Gemini,
        }),
        Route::OllamaShow | Route::OllamaTags | Route::OllamaVersion | Route::OllamaRunning => {
            Some(Api::Ollama)
        }
        Route::Generate(api) | Route::Count(api) => Some(*api),
        Route::GenerateGemini { .. } | Route::CountGemini { .. } => Some(Api::Gemini),
        Route::Health | Route::Profiles | Route::Wrapped(_) | Route::Unknown => None,
    }
}

/// The entry of a model. Without any entries every model exists, with the default properties.
pub(crate) fn find(models: &[ModelEntry], id: &str) -> Option<ModelEntry> {
    if models.is_empty() {
        return Some(ModelEntry::new(id));
    }
    let bare = id.strip_suffix(":latest").unwrap_or(id);
    models
        .iter()
        .find(|entry| entry.id == id || entry.id == bare)
        .cloned()
}

fn offered(models: &[ModelEntry]) -> Vec<ModelEntry> {
    if models.is_empty() {
        vec![ModelEntry::new("scripted-model")]
    } else {
        models.to_vec()
    }
}

fn ok(body: &Value) -> (Plan, Outcome) {
    (Plan::json(200, &Headers::new(), body), Outcome::Answered)
}

fn rejected(rejection: Rejection, body: &Value) -> (Plan, Outcome) {
    let Rejection {
        status,
        message: reason,
        ..
    } = rejection;
    (
        Plan::json(status, &Headers::new(), body),
        Outcome::Rejected { status, reason },
    )
}

fn list(catalogue: Catalogue, models: &[ModelEntry]) -> Value {
    let entries = offered(models);
    let described: Vec<_> = entries
        .iter()
        .map(|entry| describe(catalogue, entry))
        .collect();
    match catalogue {
        Catalogue::Anthropic => json!({
            "data": described,
            "has_more": false,
            "first_id": entries.first().map(|entry| &entry.id),
            "last_id": entries.last().map(|entry| &entry.id),
        }),
        Catalogue::OpenAi => json!({"object": "list", "data": described}),
        Catalogue::Gemini => json!({"models": described}),
    }
}

fn describe(catalogue: Catalogue, entry: &ModelEntry) -> Value {
    match catalogue {
        Catalogue::Anthropic => anthropic::describe(entry),
        Catalogue::OpenAi => openai::describe(entry),
        Catalogue::Gemini => gemini::describe(entry),
    }
}

fn missing(catalogue: Catalogue, id: &str) -> (Plan, Outcome) {
    let kind = ErrorKind::ModelNotFound;
    let (message, error): (String, fn(&Rejection) -> Value) = match catalogue {
        Catalogue::Anthropic => (anthropic::message(kind, id), |r| anthropic::error(r, "")),
        Catalogue::OpenAi => (openai::message(kind, id), openai::error),
        Catalogue::Gemini => (gemini::message(kind, id), gemini::error),
    };
    let rejection = Rejection::new(404, kind, message);
    let body = error(&rejection);
    rejected(rejection, &body)
}

fn show(models: &[ModelEntry], request: &Request) -> (Plan, Outcome) {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let id = json::text(&body, "model")
        .or(json::text(&body, "name"))
        .unwrap_or_default();
    if id.is_empty() {
        let rejection = Rejection::invalid("model is required");
        let body = ollama::error(&rejection);
        return rejected(rejection, &body);
    }
    let Some(entry) = find(models, id) else {
        let kind = ErrorKind::ModelNotFound;
        let rejection = Rejection::new(404, kind, ollama::message(kind, id));
        let body = ollama::error(&rejection);
        return rejected(rejection, &body);
    };
    ok(&ollama::show(&entry))
}
