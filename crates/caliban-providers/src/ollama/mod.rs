//! Ollama's own API.
//!
//! Every request names the size of the context, because the server's default is small and it
//! would silently forget the beginning of a longer conversation. The size is the model's own
//! context length, at most [`DEFAULT_CONTEXT`] unless the user chose another: memory grows with
//! it, and a size that changes between requests makes the server load the model anew.

mod decode;
mod encode;
mod error;
mod facts;
mod messages;
mod wire;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use caliban_model::{Capabilities, Error, ErrorKind, ModelInfo, Origin, Request};
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::adapter::{Decoder, Encoded, Family, Link};
use crate::body::Body;
use crate::failure::{Refusal, fail};
use crate::memory::Memory;
use crate::sight::{self, Blind};
use crate::transport::{Call, Framing};
use facts::{Facts, Support};
use messages::Omissions;

/// The provider's short name.
const ID: &str = "ollama";
/// The context asked for at most where the user names none.
const DEFAULT_CONTEXT: u64 = 65_536;
/// The context asked for where nobody knows the model's.
const UNKNOWN_CONTEXT: u64 = 32_768;
/// How many models are remembered; beyond that the memory starts afresh.
const MAX_MODELS: usize = 64;

/// The wire format of `api/chat`. Remembers what the server says about each model it is asked
/// for.
#[derive(Debug, Default)]
pub(crate) struct Ollama {
    num_ctx: Option<u64>,
    blind: Blind,
    known: Mutex<HashMap<String, Facts>>,
    memory: Memory<Omissions>,
}

impl Ollama {
    /// Asks for the context `num_ctx` instead of [`DEFAULT_CONTEXT`]; never for more than the
    /// model has.
    pub(crate) fn new(num_ctx: Option<u64>, blind: Blind) -> Self {
        Self {
            num_ctx,
            blind,
            ..Self::default()
        }
    }

    fn check_sight(&self, request: &Request, origin: &Origin, facts: Facts) -> Result<(), Error> {
        match facts.vision {
            Support::No => sight::check(request, origin, self.blind),
            Support::Yes | Support::Unknown => Ok(()),
        }
    }

    fn context(&self, model_length: Option<u64>) -> u64 {
        match (model_length, self.num_ctx) {
            (Some(length), chosen) => length.min(chosen.unwrap_or(DEFAULT_CONTEXT)),
            (None, Some(chosen)) => chosen,
            (None, None) => UNKNOWN_CONTEXT,
        }
    }

    /// What is known of a model without asking.
    fn recall(&self, model: &str) -> Option<Facts> {
        self.known().get(model).copied()
    }

    fn remember(&self, model: &str, facts: Facts) {
        let mut known = self.known();
        if known.len() >= MAX_MODELS {
            known.clear();
        }
        known.insert(model.to_owned(), facts);
    }

    /// A panic elsewhere leaves the map whole: entries are inserted at once.
    fn known(&self) -> MutexGuard<'_, HashMap<String, Facts>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the server about a model, once. A server that cannot tell is trusted with anything
    /// that works without knowing; one that cannot be reached, or lacks the model, is not worth
    /// the real request.
    async fn facts(&self, origin: &Origin, link: &Link) -> Result<Facts, Error> {
        if let Some(facts) = self.recall(&origin.model) {
            return Ok(facts);
        }
        let call = Call {
            origin: origin.clone(),
            method: Method::POST,
            path: "api/show".to_owned(),
            body: Some(Body::from(Map::from_iter([(
                "model".to_owned(),
                Value::from(&*origin.model),
            )]))),
            headers: Vec::new(),
        };
        let facts = match link.json(self, call).await {
            Ok(shown) => wire::Show::deserialize(&shown).map_or(Facts::UNKNOWN, Facts::from),
            Err(error) if error.kind == ErrorKind::Network => {
                return Err(error.with_remedy("is Ollama running? start it with `ollama serve`"));
            }
            Err(error) if error.kind == ErrorKind::Timeout || error::lacks_model(&error) => {
                return Err(error);
            }
            Err(_) => Facts::UNKNOWN,
        };
        self.remember(&origin.model, facts);
        Ok(facts)
    }

    async fn list(&self, link: &Link) -> Result<Vec<ModelInfo>, Error> {
        let origin = Origin::new(ID, "");
        let call = Call {
            origin: origin.clone(),
            method: Method::GET,
            path: "api/tags".to_owned(),
            body: None,
            headers: Vec::new(),
        };
        let answer = link.json(self, call).await?;
        let tags = wire::Tags::deserialize(&answer).map_err(|error| {
            fail(
                &origin,
                ErrorKind::Malformed,
                format!("the model list cannot be read: {error}"),
            )
        })?;
        Ok(tags
            .models
            .into_iter()
            .flatten()
            .map(ModelInfo::from)
            .collect())
    }
}

impl Family for Ollama {
    fn id(&self) -> &'static str {
        ID
    }

    fn framing(&self) -> Framing {
        Framing::JsonLines
    }

    fn encode<'a>(
        &'a self,
        request: &'a Request,
        link: &'a Link,
    ) -> BoxFuture<'a, Result<Encoded, Error>> {
        async move {
            let origin = Origin::new(ID, request.model.clone());
            let facts = self.facts(&origin, link).await?;
            self.check_sight(request, &origin, facts)?;
            let (body, warnings) =
                encode::body(request, facts, self.context(facts.context), &self.memory)?;
            Ok(Encoded {
                call: Call {
                    origin,
                    method: Method::POST,
                    path: "api/chat".to_owned(),
                    body: Some(body),
                    headers: Vec::new(),
                },
                warnings,
            })
        }
        .boxed()
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decoder> {
        let length = self.recall(&request.model).and_then(|facts| facts.context);
        Box::new(decode::OllamaDecoder::new(self.context(length)))
    }

    fn remedy(&self, kind: &ErrorKind, _model: &str) -> Option<String> {
        error::remedy(kind)
    }

    fn refusal(&self, refusal: Refusal<'_>) -> Error {
        let context = self.context(
            self.recall(&refusal.origin.model)
                .and_then(|facts| facts.context),
        );
        let mut error = error::refusal(refusal);
        if error.kind == (ErrorKind::TooLong { limit: None }) {
            error.kind = ErrorKind::TooLong {
                limit: Some(context),
            };
        }
        error
    }

    /// The server is asked before anything is said about images.
    fn is_blind(&self, _model: &str) -> bool {
        false
    }

    /// What the server said about the model; until it was asked, what the tables say. The window
    /// is the one that requests name, which is what a conversation has to fit into.
    fn capabilities(&self, model: &str) -> Capabilities {
        let table = caliban_model::capabilities(ID, model);
        let facts = self.recall(model).unwrap_or(Facts {
            context: table.context_window,
            ..Facts::UNKNOWN
        });
        Capabilities {
            context_window: Some(self.context(facts.context)),
            ..facts.correct(table)
        }
    }

    fn models<'a>(&'a self, link: &'a Link) -> BoxFuture<'a, Result<Vec<ModelInfo>, Error>> {
        self.list(link).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Adapter;
    use crate::http::Timeouts;
    use crate::testing::{Reply, Server, blocks, serve};
    use crate::transport::{AuthHeader, Direct};
    use caliban_model::{
        Block, CancellationToken, Image, ImageMime, ImageSource, Message, NoKey, Provider, Role,
        StreamEvent, ToolSpec, ToolSupport,
    };
    use futures::TryStreamExt;
    use rstest::rstest;
    use serde_json::json;
    use std::sync::Arc;
    use url::Url;

    const SHOWN: &str = r#"{"capabilities":["completion","tools","vision"],
        "model_info":{"general.architecture":"llama","llama.context_length":131072}}"#;
    const ANSWER: &str = r#"{"model":"llama3.1","message":{"content":"hi"},"done":true,"done_reason":"stop","eval_count":1}"#;

    fn adapter(family: Ollama, base: Url) -> Adapter {
        let direct = Direct::new(base, AuthHeader::Bearer, Arc::new(NoKey), Vec::new());
        Adapter::new(family, direct, Timeouts::default())
    }

    fn wide(num_ctx: u64) -> Ollama {
        Ollama::new(Some(num_ctx), Blind::Refused)
    }

    fn request() -> Request {
        let mut request =
            Request::new("llama3.1", vec![Arc::new(Message::user("hello"))].into()).unwrap();
        request.tools = Arc::from([ToolSpec {
            name: "Bash".into(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
        }]);
        request
    }

    async fn ask(adapter: &Adapter) -> Result<Vec<StreamEvent>, Error> {
        adapter
            .stream(request(), CancellationToken::new())
            .try_collect()
            .await
    }

    fn lines(server: &Server) -> Vec<String> {
        server.requests().into_iter().map(|r| r.line).collect()
    }

    #[tokio::test]
    async fn a_model_is_asked_about_once_and_its_facts_are_used() {
        let server = serve(vec![
            Reply::json(200, SHOWN),
            Reply::lines(ANSWER),
            Reply::lines(ANSWER),
        ])
        .await;
        let adapter = adapter(Ollama::default(), server.url());
        assert_eq!(
            adapter.capabilities("llama3.1").context_window,
            Some(DEFAULT_CONTEXT)
        );
        for _ in 0..2 {
            let events = ask(&adapter).await.unwrap();
            assert_eq!(blocks(&events), vec![Block::text("hi")]);
        }
        assert_eq!(
            lines(&server),
            ["POST /api/show", "POST /api/chat", "POST /api/chat"]
        );
        let requests = server.requests();
        assert_eq!(requests[0].body, r#"{"model":"llama3.1"}"#);
        let chat: Value = serde_json::from_str(&requests[1].body).unwrap();
        assert_eq!(chat["options"]["num_ctx"], 65_536);
        assert_eq!(requests[1].body, requests[2].body);
        let capabilities = adapter.capabilities("llama3.1");
        assert_eq!(capabilities.tools, ToolSupport::Basic);
        assert!(capabilities.vision && !capabilities.thinking);
        assert_eq!(capabilities.context_window, Some(65_536));
    }

    #[rstest]
    #[case(Reply::json(500, r#"{"error":"broken"}"#))]
    #[case(Reply::json(404, "404 page not found"))]
    #[case(Reply::json(200, "[]"))]
    #[case(Reply::json(200, "not json"))]
    #[tokio::test]
    async fn a_server_that_cannot_tell_is_asked_all_the_same(#[case] shown: Reply) {
        let server = serve(vec![shown, Reply::lines(ANSWER)]).await;
        ask(&adapter(Ollama::default(), server.url()))
            .await
            .unwrap();
        let chat: Value = serde_json::from_str(&server.requests()[1].body).unwrap();
        assert_eq!(chat["options"]["num_ctx"], 32_768);
        assert!(chat["tools"].is_array());
    }

    #[tokio::test]
    async fn a_missing_model_is_found_out_before_the_chat() {
        let server = serve(vec![Reply::json(
            404,
            r#"{"error":"model 'llama3.1' not found"}"#,
        )])
        .await;
        let error = ask(&adapter(Ollama::default(), server.url()))
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert_eq!(error.remedy(), Some("pull it with `ollama pull llama3.1`"));
        assert_eq!(lines(&server), ["POST /api/show"]);
    }

    #[tokio::test]
    async fn nobody_listening_is_a_reason_to_start_the_server() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let adapter = adapter(Ollama::default(), Url::parse(&address).unwrap());
        let error = ask(&adapter).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Network);
        assert_eq!(
            error.remedy(),
            Some("is Ollama running? start it with `ollama serve`")
        );
    }

    #[tokio::test]
    async fn an_overfull_prompt_tells_the_window() {
        let server = serve(vec![
            Reply::json(200, SHOWN),
            Reply::json(
                400,
                r#"{"error":"the input length exceeds the context length"}"#,
            ),
        ])
        .await;
        let error = ask(&adapter(wide(16_384), server.url())).await.unwrap_err();
        assert_eq!(
            error.kind,
            ErrorKind::TooLong {
                limit: Some(16_384)
            }
        );
    }

    #[test]
    fn the_context_is_the_models_within_what_was_chosen() {
        assert_eq!(Ollama::default().context(Some(131_072)), 65_536);
        assert_eq!(Ollama::default().context(Some(8_192)), 8_192);
        assert_eq!(Ollama::default().context(None), 32_768);
        assert_eq!(wide(100_000).context(Some(131_072)), 100_000);
        assert_eq!(wide(100_000).context(Some(8_192)), 8_192);
        assert_eq!(wide(100_000).context(None), 100_000);
    }

    #[test]
    fn the_memory_of_models_is_bounded() {
        let ollama = Ollama::default();
        for n in 0..1_000 {
            ollama.remember(&n.to_string(), Facts::UNKNOWN);
        }
        assert!(ollama.known().len() <= MAX_MODELS);
        assert!(ollama.recall("999").is_some());
    }

    #[tokio::test]
    async fn installed_models_are_listed() {
        let server = serve(vec![Reply::json(
            200,
            r#"{"models":[{"name":"llama3.1:latest","model":"llama3.1:latest","size":1,
                "details":{"family":"llama","context_length":131072}},{"name":"x","details":null}]}"#,
        )])
        .await;
        let models = adapter(Ollama::default(), server.url())
            .models()
            .await
            .unwrap();
        let model = |id: &str, context_window| ModelInfo {
            id: id.into(),
            context_window,
            max_output: None,
        };
        assert_eq!(
            models,
            vec![model("llama3.1:latest", Some(131_072)), model("x", None)]
        );
        assert_eq!(lines(&server), ["GET /api/tags"]);
    }

    #[test]
    fn a_prompt_with_an_image_is_not_sent_to_a_model_that_cannot_see() {
        let image = Block::Image(Image {
            mime: ImageMime::Png,
            source: ImageSource::Url { url: String::new() },
            dims: None,
        });
        let seen = Arc::new(Message::new(Role::User, vec![image]));
        let answer = Arc::new(Message::new(Role::Assistant, vec![Block::text("nice")]));
        let more = Arc::new(Message::user("and now?"));
        let origin = Origin::new(ID, "llama3.1");
        let check = |blind, vision, messages: &[&Arc<Message>]| {
            let messages: Vec<_> = messages.iter().map(|message| Arc::clone(message)).collect();
            let request = Request::new("llama3.1", messages.into()).unwrap();
            let facts = Facts {
                vision,
                ..Facts::UNKNOWN
            };
            Ollama::new(None, blind).check_sight(&request, &origin, facts)
        };
        let error = check(Blind::Refused, Support::No, &[&seen]).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("no candidate") && error.contains("CALIBAN_STRICT_ROUTING"),
            "{error}"
        );
        assert!(check(Blind::Described, Support::No, &[&seen]).is_ok());
        assert!(check(Blind::Refused, Support::Unknown, &[&seen]).is_ok());
        assert!(check(Blind::Refused, Support::No, &[&seen, &answer, &more]).is_ok());
    }
}
