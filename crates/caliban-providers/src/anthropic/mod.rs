//! The Anthropic Messages API.

mod cache;
mod decode;
mod encode;
mod messages;
mod schema;
mod thinking;
mod wire;

use caliban_model::{Error, ErrorKind, ModelInfo, Origin, Request};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use reqwest::Method;
use reqwest::header::HeaderName;
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::adapter::{Decoder, Encoded, Family, Link, Revision};
use crate::failure::{ErrorBody, Refusal, fail};
use crate::memory::Memory;
use crate::transport::{Call, Framing};
pub(crate) use encode::encode;
use messages::ToolLoop;

const ID: &str = "anthropic";
/// The header that names the beta features a call uses.
const BETA: &str = "anthropic-beta";
/// The most pages of the model list that are read, a thousand models each.
const MAX_PAGES: usize = 10;

/// Speaks the Messages API. The version header, the address and the key belong to the transport.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {
    memory: Memory<ToolLoop>,
    /// Beta features that every call asks for, besides those that it needs.
    betas: Vec<String>,
}

impl Anthropic {
    pub(crate) fn new(betas: &[String]) -> Self {
        Self {
            betas: betas.to_vec(),
            ..Self::default()
        }
    }

    /// The same, served by a platform.
    pub(crate) fn on(platform: &'static str, betas: &[String]) -> Self {
        Self {
            memory: Memory::on(platform),
            betas: betas.to_vec(),
        }
    }
}

impl Family for Anthropic {
    fn id(&self) -> &'static str {
        ID
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn encode<'a>(
        &'a self,
        request: &'a Request,
        _link: &'a Link,
    ) -> BoxFuture<'a, Result<Encoded, Error>> {
        let mut encoded = encode::encode(request, &self.memory);
        let needed = encoded.call.headers.iter();
        let needed = needed
            .filter(|(name, _)| name == BETA)
            .flat_map(|(_, value)| value.split(','));
        let mut betas: Vec<&str> = needed.collect();
        let more = self.betas.iter().map(String::as_str);
        more.for_each(|beta| {
            if !betas.contains(&beta) {
                betas.push(beta);
            }
        });
        let betas = betas.join(",");
        set_betas(&mut encoded.call.headers, &betas);
        ready(Ok(encoded)).boxed()
    }

    fn decoder(&self, _request: &Request) -> Box<dyn Decoder> {
        Box::new(decode::Messages::default())
    }

    fn refusal(&self, refusal: Refusal<'_>) -> Error {
        let body = refusal
            .json()
            .and_then(|body| error_body(&body))
            .unwrap_or_else(|| ErrorBody {
                message: refusal.text(),
                ..ErrorBody::default()
            });
        refusal.into_error(body)
    }

    fn remedy(&self, kind: &ErrorKind, _model: &str) -> Option<String> {
        match kind {
            ErrorKind::Auth => Some("set `ANTHROPIC_API_KEY` to a valid key".to_owned()),
            ErrorKind::Unavailable => Some("check the model name with `--model`".to_owned()),
            _ => None,
        }
    }

    /// Thinking that the server no longer recognises, because the conversation before it was
    /// edited or the account changed, is given up rather than the whole call.
    fn revise(&self, call: &mut Call, error: &Error) -> Revision {
        let message = &error.message;
        let unrecognised = error.kind == ErrorKind::Invalid
            && message.contains("thinking")
            && (message.contains("signature") || message.contains("cannot be modified"));
        let Some(body) = call.body.as_mut().filter(|_| unrecognised) else {
            return Revision::GiveUp;
        };
        body.change(|fields| match strip_thinking(fields) {
            Stripped::Nothing => Revision::GiveUp,
            Stripped::Something => {
                let thinking = fields.get("thinking");
                if thinking.is_some_and(|thinking| thinking["type"] == "enabled") {
                    // A manual budget requires the very blocks that were just removed.
                    fields.shift_remove("thinking");
                    set_betas(&mut call.headers, &self.betas.join(","));
                }
                Revision::Resend
            }
        })
    }

    fn models<'a>(&'a self, link: &'a Link) -> BoxFuture<'a, Result<Vec<ModelInfo>, Error>> {
        async move {
            let mut models = Vec::new();
            let mut after = None;
            for _ in 0..MAX_PAGES {
                let call = page_call(after.as_deref());
                let origin = call.origin.clone();
                let page = link.json(self, call).await?;
                let page: wire::ModelPage = serde_json::from_value(page).map_err(|error| {
                    fail(
                        &origin,
                        ErrorKind::Malformed,
                        format!("the model list cannot be read: {error}"),
                    )
                })?;
                after = page.next().map(str::to_owned);
                models.extend(page.data.into_iter().map(ModelInfo::from));
                if after.is_none() {
                    break;
                }
            }
            Ok(models)
        }
        .boxed()
    }
}

/// Names the beta features of a call, if there are any.
fn set_betas(headers: &mut Vec<(HeaderName, String)>, betas: &str) {
    headers.retain(|(name, _)| name != BETA);
    if !betas.is_empty() {
        headers.push((HeaderName::from_static(BETA), betas.to_owned()));
    }
}

/// Asks for the page of the model list that follows the model `after`.
fn page_call(after: Option<&str>) -> Call {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("limit", "1000");
    if let Some(id) = after {
        query.append_pair("after_id", id);
    }
    Call {
        origin: Origin::new(ID, ""),
        method: Method::GET,
        path: format!("v1/models?{}", query.finish()),
        body: None,
        headers: Vec::new(),
    }
}

/// What an error document says; nothing if it is none.
fn error_body(document: &Value) -> Option<ErrorBody> {
    let error = document.get("error")?;
    let text = |pointer| error.pointer(pointer).and_then(Value::as_str);
    let message = text("/message").or_else(|| error.as_str())?;
    Some(ErrorBody {
        codes: ["/type", "/code", "/status", "/details/error_code"]
            .into_iter()
            .filter_map(text)
            .map(str::to_owned)
            .collect(),
        message: message.to_owned(),
        retry_after: None,
    })
}

fn is_thinking(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

#[derive(Debug, PartialEq, Eq)]
enum Stripped {
    Nothing,
    Something,
}

fn strip_thinking(body: &mut Map<String, Value>) -> Stripped {
    let mut stripped = Stripped::Nothing;
    let Some(Value::Array(turns)) = body.get_mut("messages") else {
        return stripped;
    };
    turns.retain_mut(|turn| {
        let Some(Value::Array(content)) = turn.get_mut("content") else {
            return true;
        };
        let before = content.len();
        content.retain(|block| !is_thinking(block));
        if content.len() < before {
            stripped = Stripped::Something;
        }
        !content.is_empty()
    });
    stripped
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::RetryAdvice;
    use reqwest::header::HeaderMap;
    use serde_json::json;
    use std::time::Duration;

    fn refused(status: u16, headers: &[(&'static str, &str)], body: &str) -> Error {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        Anthropic::default().refusal(Refusal {
            origin: &Origin::new(ID, "claude-sonnet-4-6"),
            status,
            headers: &map,
            body: body.as_bytes(),
        })
    }

    #[test]
    fn every_kind_of_refusal_is_recognised() {
        let body = |kind: &str, message: &str| {
            json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
        };
        let too_long = "prompt is too long: 210000 tokens > 200000 maximum";
        let both = "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000";
        let limit = ErrorKind::TooLong {
            limit: Some(200_000),
        };
        for (status, kind, message, expected) in [
            (
                400,
                "invalid_request_error",
                "max_tokens: too small",
                ErrorKind::Invalid,
            ),
            (400, "invalid_request_error", too_long, limit),
            (
                400,
                "invalid_request_error",
                both,
                ErrorKind::TooLong { limit: None },
            ),
            (
                400,
                "invalid_request_error",
                "Your credit balance is too low",
                ErrorKind::Billing,
            ),
            (
                401,
                "authentication_error",
                "invalid x-api-key",
                ErrorKind::Auth,
            ),
            (403, "permission_error", "not for this key", ErrorKind::Auth),
            (402, "billing_error", "pay", ErrorKind::Billing),
            (
                404,
                "not_found_error",
                "model: claude-x",
                ErrorKind::Unavailable,
            ),
            (409, "conflict_error", "again", ErrorKind::Network),
            (
                413,
                "request_too_large",
                "too big",
                ErrorKind::TooLong { limit: None },
            ),
            (422, "invalid_request_error", "odd", ErrorKind::Invalid),
            (429, "rate_limit_error", "slow", ErrorKind::RateLimited),
            (500, "api_error", "oops", ErrorKind::Server),
            (503, "api_error", "oops", ErrorKind::Overloaded),
            (504, "timeout_error", "late", ErrorKind::Timeout),
            (529, "overloaded_error", "Overloaded", ErrorKind::Overloaded),
        ] {
            let error = refused(status, &[], &body(kind, message));
            assert_eq!(error.kind, expected, "{status} {kind}: {message}");
            assert_eq!(error.message, message);
            assert_eq!(error.status, Some(status));
        }
    }

    #[test]
    fn a_reached_spend_limit_is_not_a_rate_limit() {
        let error = refused(
            429,
            &[],
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"Limit reached.","details":{"error_code":"enforced_spend_limit_reached"}},"request_id":"req_1"}"#,
        );
        assert_eq!(error.kind, ErrorKind::Billing);
        assert!(!error.is_retryable());
    }

    #[test]
    fn what_the_headers_say_is_kept() {
        let error = refused(
            429,
            &[
                ("retry-after", "7"),
                ("x-should-retry", "false"),
                ("request-id", "req_9"),
            ],
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
        );
        assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(error.advice, RetryAdvice::GiveUp);
        assert_eq!(error.request_id.as_deref(), Some("req_9"));
    }

    #[test]
    fn a_proxys_page_is_still_an_error() {
        let error = refused(413, &[], "<html><h1>Request Entity Too Large</h1></html>");
        assert_eq!(error.kind, ErrorKind::TooLong { limit: None });
        assert_eq!(error.message, "Request Entity Too Large");
        let null = refused(500, &[], r#"{"error":null}"#);
        assert_eq!(null.kind, ErrorKind::Server);
    }

    #[test]
    fn remedies_name_the_key_and_the_option() {
        let family = Anthropic::default();
        let remedy = |kind| family.remedy(&kind, "m");
        assert_eq!(
            remedy(ErrorKind::Auth).as_deref(),
            Some("set `ANTHROPIC_API_KEY` to a valid key")
        );
        assert_eq!(
            remedy(ErrorKind::Unavailable).as_deref(),
            Some("check the model name with `--model`")
        );
        assert_eq!(remedy(ErrorKind::Overloaded), None);
    }

    #[test]
    fn pages_of_models_are_followed_to_the_last() {
        assert_eq!(page_call(None).path, "v1/models?limit=1000");
        let page: wire::ModelPage = serde_json::from_value(json!({
            "data": [
                {"id": "claude-a", "max_input_tokens": 200_000, "max_tokens": 64_000},
                {"id": "claude-b", "type": "model"},
            ],
            "has_more": true,
            "last_id": "claude b",
        }))
        .unwrap();
        assert_eq!(
            page_call(page.next()).path,
            "v1/models?limit=1000&after_id=claude+b"
        );
        let models: Vec<ModelInfo> = page.data.into_iter().map(ModelInfo::from).collect();
        assert_eq!(
            models,
            [
                ModelInfo {
                    id: "claude-a".into(),
                    context_window: Some(200_000),
                    max_output: Some(64_000),
                },
                ModelInfo {
                    id: "claude-b".into(),
                    context_window: None,
                    max_output: None,
                },
            ]
        );
        let last: wire::ModelPage =
            serde_json::from_value(json!({"data": [], "has_more": false, "last_id": "x"})).unwrap();
        assert_eq!(last.next(), None);
    }

    fn call(thinking: &Value) -> Call {
        let body = json!({
            "thinking": thinking,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "q"}]},
                {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "d"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "", "signature": "s"},
                    {"type": "text", "text": "a"},
                ]},
            ],
        });
        let Value::Object(body) = body else {
            unreachable!()
        };
        Call {
            origin: Origin::new(ID, "m"),
            method: Method::POST,
            path: "v1/messages".into(),
            body: Some(body.into()),
            headers: vec![(HeaderName::from_static(BETA), "x".into())],
        }
    }

    const FOREIGN: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.5.content.0: Invalid 'signature' in 'thinking' block. The block is bound to a different conversation."}}"#;

    #[test]
    fn thinking_that_is_not_recognised_is_given_up_once() {
        let family = Anthropic::default();
        let error = refused(400, &[], FOREIGN);
        let mut call = call(&json!({"type": "adaptive"}));
        assert_eq!(family.revise(&mut call, &error), Revision::Resend);
        let body = Value::Object(call.body.clone().unwrap().values());
        assert_eq!(
            body["messages"],
            json!([
                {"role": "user", "content": [{"type": "text", "text": "q"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
            ])
        );
        assert_eq!(body["thinking"], json!({"type": "adaptive"}));
        assert_eq!(family.revise(&mut call, &error), Revision::GiveUp);
    }

    #[test]
    fn a_budget_goes_with_the_thinking_it_requires() {
        let error = refused(400, &[], FOREIGN);
        let mut call = call(&json!({"type": "enabled", "budget_tokens": 1024}));
        assert_eq!(
            Anthropic::default().revise(&mut call, &error),
            Revision::Resend
        );
        assert_eq!(call.body.unwrap().values().get("thinking"), None);
        assert_eq!(call.headers, []);
    }

    #[test]
    fn other_refusals_are_final() {
        let error = refused(
            400,
            &[],
            r#"{"error":{"type":"invalid_request_error","message":"bad tool"}}"#,
        );
        let mut call = call(&json!({"type": "adaptive"}));
        assert_eq!(
            Anthropic::default().revise(&mut call, &error),
            Revision::GiveUp
        );
    }
}
