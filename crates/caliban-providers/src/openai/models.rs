//! The list of models.

use caliban_model::{Error, Freshness, ModelInfo, Origin};
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::ID;
use super::lenient::filled;
use crate::adapter::{Family, Link};
use crate::framing::MAX_FRAME;
use crate::transport::Call;

pub(super) async fn list(family: &dyn Family, link: &Link) -> Result<Vec<ModelInfo>, Error> {
    link.json(family, call()).await.map(|body| read(&body))
}

/// The list as it came, where it can be had.
pub(super) async fn fetch(link: &Link) -> Option<(HeaderMap, Value)> {
    let response = link.send(call(), Freshness::Cached).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let headers = response.headers().clone();
    let body = link.body(&Origin::new(ID, ""), response, MAX_FRAME).await;
    Some((headers, serde_json::from_slice(&body.ok()?).ok()?))
}

fn call() -> Call {
    Call {
        origin: Origin::new(ID, ""),
        method: Method::GET,
        path: "models".to_owned(),
        body: None,
        headers: Vec::new(),
    }
}

/// OpenAI names ids only; compatible servers add the window under one of several names.
pub(super) fn read(body: &Value) -> Vec<ModelInfo> {
    const WINDOWS: [&str; 5] = [
        "/max_input_tokens",
        "/context_length",
        "/max_model_len",
        "/max_context_length",
        "/meta/n_ctx_train",
    ];
    let entries = body.get("data").unwrap_or(body);
    let entries = entries.as_array().map_or(&[][..], Vec::as_slice);
    entries
        .iter()
        .filter_map(|entry| {
            Some(ModelInfo {
                id: filled(entry.get("id")?.as_str())?.to_owned(),
                context_window: WINDOWS
                    .iter()
                    .find_map(|path| entry.pointer(path)?.as_u64()),
                max_output: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn windows_are_found_under_every_name() {
        let body = json!({"object": "list", "data": [
            {"id": "gpt-5.5", "object": "model", "owned_by": "openai", "shutdown_date": null},
            {"id": "openrouter/x", "context_length": 1000},
            {"id": "vllm", "max_model_len": 2000},
            {"id": "lmstudio", "max_context_length": 3000},
            {"id": "llamacpp", "meta": {"n_ctx_train": 4000}},
            {"id": ""}, {"object": "model"}, "nonsense",
        ]});
        let found: Vec<(String, Option<u64>)> = read(&body)
            .into_iter()
            .map(|model| (model.id, model.context_window))
            .collect();
        assert_eq!(
            found,
            [
                ("gpt-5.5".to_owned(), None),
                ("openrouter/x".to_owned(), Some(1000)),
                ("vllm".to_owned(), Some(2000)),
                ("lmstudio".to_owned(), Some(3000)),
                ("llamacpp".to_owned(), Some(4000)),
            ]
        );
        assert_eq!(read(&json!([{"id": "bare"}])).len(), 1);
        assert!(read(&json!({"data": null})).is_empty());
    }
}
