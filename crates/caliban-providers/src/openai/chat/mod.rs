//! Chat Completions: OpenAI's older API, and the common tongue of compatible servers.

mod calls;
mod decode;
mod details;
mod encode;
mod inline;
mod printed;
mod wire;

use std::sync::OnceLock;
use std::time::Duration;

use caliban_model::{
    Capabilities, ChatTools, Error, ErrorKind, ModelInfo, ModelTraits, Request, Sampling, traits,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::profile::{Profile, TextCalls};
use super::revision;
use super::tool_id::IdRule;
use super::{ID, error, models};
use crate::adapter::{Decoder, Encoded, Family, Link, Refusals, Revision};
use crate::failure::Refusal;
use crate::memory::Memory;
use crate::transport::{Call, Framing};
use printed::PrintedCalls;

const RESPONSES_REMEDY: &str = "use the Responses API: `[provider.openai] api = \"responses\"`";

/// Who answers, where the dialects differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// OpenAI's own API, here or on a cloud platform.
    OpenAi,
    /// A server that imitates it.
    Compatible,
    /// An imitation that refuses unknown fields and has its own form of tool ids.
    Mistral,
}

const NEW_LIMIT: &str = "max_completion_tokens";
const OLD_LIMIT: &str = "max_tokens";

impl Server {
    /// The field that limits the answer. OpenAI's reasoning models know only the new one, on
    /// whatever server.
    fn limit(self, traits: &ModelTraits) -> &'static str {
        match (self, traits.sampling) {
            (Self::OpenAi, _) | (_, Sampling::Rejected | Sampling::WhenIdle) => NEW_LIMIT,
            (Self::Compatible | Self::Mistral, Sampling::Accepted) => OLD_LIMIT,
        }
    }

    fn ids(self) -> IdRule {
        match self {
            Self::OpenAi | Self::Compatible => IdRule::UpTo(40),
            Self::Mistral => IdRule::Nine,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Chat {
    server: Server,
    /// What kind of server it is: named, or found out before the first call with tools.
    profile: OnceLock<&'static Profile>,
    /// What its list of models said.
    windows: OnceLock<Vec<ModelInfo>>,
    memory: Memory<()>,
}

/// How long a server is asked what it is.
const PROBE: Duration = Duration::from_secs(2);

impl Chat {
    /// Without a profile the server is asked.
    pub(crate) fn new(server: Server, profile: Option<&'static Profile>) -> Self {
        Self {
            server,
            profile: profile.map_or_else(OnceLock::new, OnceLock::from),
            windows: OnceLock::new(),
            memory: Memory::default(),
        }
    }

    /// Asks a server that nobody knows which it is, once; its list of models tells, and how much
    /// they hold.
    async fn find_out(&self, link: &Link) {
        if self.profile.get().is_some() {
            return;
        }
        let listed = timeout(PROBE, models::fetch(link)).await;
        let Ok(Some((headers, body))) = listed else {
            let _ = self.profile.set(Profile::unknown());
            return;
        };
        let found = Profile::of_list(&headers, &body);
        let _ = self.profile.set(found.unwrap_or_else(Profile::unknown));
        let _ = self.windows.set(models::read(&body));
    }

    fn text_calls(&self) -> TextCalls {
        let profile = self.profile.get();
        profile.map_or(TextCalls::Ignored, |profile| profile.text_calls)
    }

    /// OpenAI's own models, served by a platform.
    pub(crate) fn on(platform: &'static str) -> Self {
        Self {
            server: Server::OpenAi,
            profile: OnceLock::from(Profile::unknown()),
            windows: OnceLock::new(),
            memory: Memory::on(platform),
        }
    }
}

impl Family for Chat {
    fn id(&self) -> &'static str {
        ID
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn encode<'a>(
        &'a self,
        request: &'a Request,
        link: &'a Link,
    ) -> BoxFuture<'a, Result<Encoded, Error>> {
        async move {
            if !request.tools.is_empty() {
                self.find_out(link).await;
            }
            encode::encode(request, self.server, &self.memory)
        }
        .boxed()
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decoder> {
        let printed = PrintedCalls::new(request, self.text_calls());
        Box::new(decode::ChatDecoder::new(self.server).with_printed(printed))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let known = caliban_model::capabilities(ID, model);
        let listed = self.windows.get().into_iter().flatten();
        let window = listed
            .filter(|listed| listed.id == model)
            .find_map(|listed| listed.context_window);
        Capabilities {
            context_window: known.context_window.or(window),
            ..known
        }
    }

    fn refusal(&self, refusal: Refusal<'_>) -> Error {
        let error = error::refused(refusal);
        if revision::mentions(&error, "/v1/responses") {
            error.with_remedy(RESPONSES_REMEDY)
        } else {
            error
        }
    }

    fn remedy(&self, kind: &ErrorKind, _model: &str) -> Option<String> {
        error::remedy(kind)
    }

    fn refusals(&self) -> Refusals {
        Refusals::Lasting
    }

    fn revise(&self, call: &mut Call, error: &Error) -> Revision {
        match &mut call.body {
            Some(body) => body.change(|fields| revise(fields, error)),
            None => Revision::GiveUp,
        }
    }

    fn models<'a>(&'a self, link: &'a Link) -> BoxFuture<'a, Result<Vec<ModelInfo>, Error>> {
        models::list(self, link).boxed()
    }
}

/// A server that takes tools only from a model that does not reason is OpenAI's own behind
/// another address.
fn without_reasoning(body: &mut Map<String, Value>) -> Revision {
    let model = body
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let can_be_silenced = match traits(ID, model).chat_tools {
        ChatTools::WhenIdle | ChatTools::ExplicitNone => true,
        ChatTools::Accepted | ChatTools::Rejected => false,
    };
    let none = Value::from("none");
    if !can_be_silenced || body.get("reasoning_effort") == Some(&none) {
        return Revision::GiveUp;
    }
    body.insert("reasoning_effort".to_owned(), none);
    Revision::Resend
}

/// Afterwards the field that was refused is gone, renamed or weaker.
fn revise(body: &mut Map<String, Value>, error: &Error) -> Revision {
    if revision::mentions(error, "/v1/responses") {
        return without_reasoning(body);
    }
    if body.contains_key("stream_options") && revision::mentions(error, "stream_options") {
        body.shift_remove("stream_options");
        return Revision::Resend;
    }
    for (limit, other) in [(NEW_LIMIT, OLD_LIMIT), (OLD_LIMIT, NEW_LIMIT)] {
        if body.contains_key(limit) && revision::refuses_field(error, limit) {
            rename(body, limit, other);
            return Revision::Resend;
        }
    }
    revision::weaken(body, "reasoning_effort", error)
}

/// Renames a field in its place, so that the body stays a stable prefix of later ones.
fn rename(body: &mut Map<String, Value>, from: &str, to: &str) {
    *body = std::mem::take(body)
        .into_iter()
        .map(|(name, value)| {
            if name == from {
                (to.to_owned(), value)
            } else {
                (name, value)
            }
        })
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::Origin;
    use reqwest::header::HeaderMap;
    use serde_json::json;

    fn body(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn refusal(status: u16, message: &str) -> Error {
        Error::new(ErrorKind::Invalid, ID, "m", message).with_status(status)
    }

    #[test]
    fn stream_options_are_dropped_once() {
        let error = refusal(422, "body.stream_options: Extra inputs are not permitted");
        let mut sent = body(&json!({"stream": true, "stream_options": {"include_usage": true}}));
        assert_eq!(revise(&mut sent, &error), Revision::Resend);
        assert_eq!(sent, body(&json!({"stream": true})));
        assert_eq!(revise(&mut sent, &error), Revision::GiveUp);
    }

    #[test]
    fn the_limit_is_renamed_in_place_to_the_one_the_server_knows() {
        let error = refusal(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        );
        let mut sent = body(&json!({"max_tokens": 9, "messages": []}));
        assert_eq!(revise(&mut sent, &error), Revision::Resend);
        assert_eq!(
            serde_json::to_string(&sent).unwrap(),
            r#"{"max_completion_tokens":9,"messages":[]}"#
        );
        let back = refusal(400, "unknown field max_completion_tokens");
        assert_eq!(revise(&mut sent, &back), Revision::Resend);
        assert_eq!(sent["max_tokens"], 9);
    }

    #[test]
    fn an_effort_is_lowered_or_dropped() {
        let error = refusal(
            400,
            "Unsupported value: 'xhigh' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.",
        );
        let mut sent = body(&json!({"reasoning_effort": "xhigh"}));
        assert_eq!(revise(&mut sent, &error), Revision::Resend);
        assert_eq!(sent, body(&json!({"reasoning_effort": "high"})));
        assert_eq!(revise(&mut sent, &error), Revision::GiveUp);
        let unknown = refusal(400, "Unrecognized request argument: reasoning_effort");
        assert_eq!(revise(&mut sent, &unknown), Revision::Resend);
        assert_eq!(sent, Map::new());
    }

    #[test]
    fn tools_that_need_the_other_api_say_so() {
        let body_of = body;
        let body = r#"{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.5 in /v1/chat/completions. Please use /v1/responses instead.","type":"invalid_request_error","param":null,"code":null}}"#;
        let error = Chat::new(Server::OpenAi, None).refusal(Refusal {
            origin: &Origin::new(ID, "gpt-5.5"),
            status: 400,
            headers: &HeaderMap::new(),
            body: body.as_bytes(),
        });
        assert_eq!(error.remedy(), Some(RESPONSES_REMEDY));
        let mut sent = body_of(&json!({"model": "gpt-5.5", "reasoning_effort": "high"}));
        assert_eq!(revise(&mut sent, &error), Revision::Resend);
        assert_eq!(sent["reasoning_effort"], "none");
        assert_eq!(revise(&mut sent, &error), Revision::GiveUp);
        let mut only_there = body_of(&json!({"model": "gpt-6-astra"}));
        assert_eq!(revise(&mut only_there, &error), Revision::GiveUp);
    }
}
