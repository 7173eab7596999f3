//! Anthropic Messages: errors, model descriptions, and what was issued.

mod cache;
mod check;
mod conversation;
mod models;
mod stream;
mod thinking;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use check::{Call, check};
pub(crate) use stream::{document, events};

use crate::ask::Ask;
use crate::fault::{ErrorKind, Rejection};
use crate::json;
use crate::script::ModelEntry;
use crate::turn::{Part, Thoughts, Turn};

/// A thinking block as it left this server.
#[derive(Debug)]
struct Thought {
    text: String,
    /// Hash of everything the block was written after, on models that bind it to that.
    prefix: Option<u64>,
}

/// The thinking of one issued turn, in order: signatures and redacted data.
#[derive(Debug)]
struct Issue {
    model: String,
    marks: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Issued {
    thoughts: HashMap<String, Thought>,
    redacted: HashSet<String>,
    /// By the id of each tool call of the turn.
    turns: HashMap<String, Arc<Issue>>,
}

impl Issued {
    pub(crate) fn remember(&mut self, ask: &Ask, turn: &Turn) {
        let prefix = thinking::bound_prefix(ask);
        let mut marks = Vec::new();
        for part in &turn.parts {
            match part {
                Part::Thinking { text, signature } => {
                    self.thoughts.insert(
                        signature.clone(),
                        Thought {
                            text: text.clone(),
                            prefix,
                        },
                    );
                    marks.push(signature.clone());
                }
                Part::Redacted { data } => {
                    self.redacted.insert(data.clone());
                    marks.push(data.clone());
                }
                Part::Text { .. } | Part::Call { .. } => {}
            }
        }
        let issue = Arc::new(Issue {
            model: ask.model.clone(),
            marks,
        });
        for part in &turn.parts {
            if let Part::Call { id, .. } = part {
                self.turns.insert(id.clone(), issue.clone());
            }
        }
    }
}

/// Newer models hide their thinking unless asked to summarise it.
pub(crate) fn thoughts(ask: &Ask) -> Thoughts {
    let asked = ask
        .body
        .get("thinking")
        .and_then(|config| json::text(config, "display"));
    let display = asked
        .unwrap_or_else(|| models::rules(&ask.model).map_or("summarized", |rules| rules.display));
    if display == "omitted" {
        Thoughts::Emptied
    } else {
        Thoughts::Shown
    }
}

pub(crate) fn error(rejection: &Rejection, request_id: &str) -> Value {
    let kind = match rejection.kind {
        ErrorKind::InvalidRequest | ErrorKind::ContextTooLong => "invalid_request_error",
        ErrorKind::Auth => "authentication_error",
        ErrorKind::Permission => "permission_error",
        ErrorKind::Billing => "billing_error",
        ErrorKind::ModelNotFound => "not_found_error",
        ErrorKind::TooLarge => "request_too_large",
        ErrorKind::RateLimit | ErrorKind::SpendLimit => "rate_limit_error",
        ErrorKind::Server => "api_error",
        ErrorKind::Overloaded => "overloaded_error",
        ErrorKind::Timeout => "timeout_error",
    };
    let mut error = json!({"type": kind, "message": rejection.message});
    if rejection.kind == ErrorKind::SpendLimit {
        error["details"] = json!({"error_code": "enforced_spend_limit_reached"});
    }
    json!({"type": "error", "error": error, "request_id": request_id})
}

pub(crate) fn message(kind: ErrorKind, model: &str) -> String {
    match kind {
        ErrorKind::InvalidRequest => "Invalid request".into(),
        ErrorKind::Auth => "invalid x-api-key".into(),
        ErrorKind::Permission => {
            "Your API key does not have permission to use the specified resource.".into()
        }
        ErrorKind::Billing => "Your credit balance is too low to access the Anthropic API.".into(),
        ErrorKind::ModelNotFound => format!("model: {model}"),
        ErrorKind::TooLarge => "Request exceeds the maximum size".into(),
        ErrorKind::ContextTooLong => "prompt is too long: 210000 tokens > 200000 maximum".into(),
        ErrorKind::RateLimit => "This request would exceed your organization's rate limit.".into(),
        ErrorKind::SpendLimit => "You have reached your specified API usage limits.".into(),
        ErrorKind::Server => "Internal server error".into(),
        ErrorKind::Overloaded => "Overloaded".into(),
        ErrorKind::Timeout => "Request timed out".into(),
    }
}

pub(crate) fn describe(entry: &ModelEntry) -> Value {
    let rules = models::rules(&entry.id);
    let (thinking, efforts) =
        rules.map_or((&[][..], &[][..]), |rules| (rules.thinking, rules.efforts));
    let support = |holds: bool| json!({"supported": holds});
    let types: serde_json::Map<_, _> = ["adaptive", "between_tools", "disabled", "enabled"]
        .map(|kind| (kind.to_owned(), support(thinking.contains(&kind))))
        .into_iter()
        .collect();
    let mut effort: serde_json::Map<_, _> = models::EFFORTS
        .map(|level| (level.to_owned(), support(efforts.contains(&level))))
        .into_iter()
        .collect();
    effort.insert("supported".into(), (!efforts.is_empty()).into());
    json!({
        "type": "model",
        "id": entry.id,
        "display_name": entry.id,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": entry.context_length,
        "max_tokens": entry.max_output,
        "capabilities": {
            "batch": support(false),
            "citations": support(true),
            "code_execution": support(false),
            "context_management": support(false),
            "effort": effort,
            "image_input": support(true),
            "pdf_input": support(true),
            "server_tools": {"supported": false, "code_execution": support(false), "web_search": support(false)},
            "structured_outputs": support(true),
            "thinking": {"supported": !thinking.is_empty(), "types": types},
        },
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::family::Memory;
    use crate::http::{Persistence, Request};
    use crate::record::Api;
    use crate::script::{Block, Reply};
    use crate::turn::Ids;

    pub(super) fn ask(body: &Value) -> Ask {
        Ask::from_body(Api::AnthropicMessages, body.to_string().as_bytes()).unwrap()
    }

    /// The verdict on a body sent with ordinary headers.
    pub(super) fn verdict(body: &Value, memory: &Memory) -> Result<(), String> {
        with_headers(body, memory, &[("anthropic-version", "2023-06-01")])
    }

    pub(super) fn with_headers(
        body: &Value,
        memory: &Memory,
        headers: &[(&str, &str)],
    ) -> Result<(), String> {
        let request = Request {
            method: "POST".into(),
            path: "/v1/messages".into(),
            headers: headers
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            body: Bytes::new(),
            persistence: Persistence::Keep,
        };
        check(&ask(body), &request, memory, Call::Create).map_err(|rejection| rejection.message)
    }

    /// A server's memory of one thinking turn with two calls, and the request that continues it.
    pub(super) fn exchange(model: &str) -> (Memory, Value) {
        let mut body = json!({"model": model, "max_tokens": 8192, "system": "be kind",
            "thinking": {"type": "adaptive", "display": "summarized"},
            "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]}]});
        let reply = Reply::tools([("Bash", json!({"a": 1})), ("Bash", json!({"a": 2}))])
            .thinking("Plan")
            .block(Block::RedactedThinking {
                data: "hidden".into(),
            });
        let request = ask(&body);
        let turn = Turn::resolve(&reply, &request, &Ids::default());
        let mut memory = Memory::default();
        memory.remember(&request, &turn);
        let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": document(&turn)["content"]}));
        messages.push(
            json!({"role": "user", "content": [result("toolu_0001"), result("toolu_0002"),
                             {"type": "text", "text": "go on"}]}),
        );
        (memory, body)
    }

    #[test]
    fn headers_are_checked() {
        let body = json!({"model": "claude-sonnet-4-5", "max_tokens": 9, "temperature": 0.5,
                          "messages": [{"role": "user", "content": "hi"}]});
        let memory = Memory::default();
        let verdict = |headers: &[(&str, &str)]| with_headers(&body, &memory, headers);
        assert!(verdict(&[]).unwrap_err().contains("anthropic-version"));
        assert!(
            verdict(&[("anthropic-version", "2020-01-01")])
                .unwrap_err()
                .contains("not a valid version")
        );
        assert!(
            verdict(&[("anthropic-version", "2026-10-21")])
                .unwrap_err()
                .contains("temperature: Extra inputs")
        );
        let version = ("anthropic-version", "2023-06-01");
        verdict(&[
            version,
            (
                "anthropic-beta",
                "prompt-caching-2024-07-31, context-1m-2025-08-07",
            ),
        ])
        .unwrap();
        assert!(
            verdict(&[version, ("anthropic-beta", "sparkle-2030")])
                .unwrap_err()
                .contains("sparkle-2030")
        );
    }

    #[test]
    fn a_count_takes_no_output_parameters() {
        let body =
            json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]});
        let request = Request {
            method: "POST".into(),
            path: "/v1/messages/count_tokens".into(),
            headers: vec![("anthropic-version".into(), "2023-06-01".into())],
            body: Bytes::new(),
            persistence: Persistence::Keep,
        };
        let rejection = check(&ask(&body), &request, &Memory::default(), Call::Count).unwrap_err();
        assert_eq!(
            rejection.message,
            "max_tokens: Extra inputs are not permitted"
        );
    }

    #[test]
    fn errors_have_the_documented_shape() {
        let rejection = Rejection::new(429, ErrorKind::SpendLimit, "limit");
        assert_eq!(
            error(&rejection, "req_0001"),
            json!({"type": "error", "request_id": "req_0001", "error": {"type": "rate_limit_error",
                   "message": "limit", "details": {"error_code": "enforced_spend_limit_reached"}}})
        );
    }
}
