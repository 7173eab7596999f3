//! Responses: OpenAI's current API, where reasoning survives the turns of a tool loop.

mod decode;
mod encode;
mod wire;

use caliban_model::{Error, ErrorKind, ModelInfo, Request};
use futures::FutureExt;
use futures::future::{self, BoxFuture};
use serde_json::{Map, Value};

use super::revision;
use super::{ID, error, models};
use crate::adapter::{Decoder, Encoded, Family, Link, Refusals, Revision};
use crate::failure::Refusal;
use crate::memory::Memory;
use crate::transport::{Call, Framing};
pub(crate) use encode::encode;

#[derive(Debug, Default)]
pub(crate) struct Responses {
    memory: Memory<()>,
}

impl Responses {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The same, served by a platform.
    pub(crate) fn on(platform: &'static str) -> Self {
        Self {
            memory: Memory::on(platform),
        }
    }
}

impl Family for Responses {
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
        future::ready(Ok(encode::encode(request, &self.memory))).boxed()
    }

    fn decoder(&self, _request: &Request) -> Box<dyn Decoder> {
        Box::new(decode::ResponsesDecoder::default())
    }

    fn refusal(&self, refusal: Refusal<'_>) -> Error {
        error::refused(refusal)
    }

    fn remedy(&self, kind: &ErrorKind, _model: &str) -> Option<String> {
        error::remedy(kind)
    }

    fn refusals(&self) -> Refusals {
        Refusals::Lasting
    }

    fn revise(&self, call: &mut Call, error: &Error) -> Revision {
        let Some(body) = &mut call.body else {
            return Revision::GiveUp;
        };
        body.change(|fields| match fields.get_mut("reasoning") {
            Some(Value::Object(reasoning)) => revise(reasoning, error),
            Some(_) | None => Revision::GiveUp,
        })
    }

    fn models<'a>(&'a self, link: &'a Link) -> BoxFuture<'a, Result<Vec<ModelInfo>, Error>> {
        models::list(self, link).boxed()
    }
}

/// Each change can be made once only: afterwards the field it needs is gone or weaker. Summaries
/// are refused to organisations that OpenAI has not verified.
fn revise(reasoning: &mut Map<String, Value>, error: &Error) -> Revision {
    let about_summaries = revision::mentions(error, "reasoning.summary")
        || revision::mentions(error, "reasoning summar");
    if about_summaries && reasoning.contains_key("summary") {
        reasoning.shift_remove("summary");
        return Revision::Resend;
    }
    revision::weaken(reasoning, "effort", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::Origin;
    use serde_json::json;

    fn call(reasoning: Value) -> Call {
        Call {
            origin: Origin::new(ID, "m"),
            method: reqwest::Method::POST,
            path: "responses".into(),
            body: Some(Map::from_iter([("reasoning".to_owned(), reasoning)]).into()),
            headers: Vec::new(),
        }
    }

    #[test]
    fn summaries_and_efforts_are_given_up_one_by_one() {
        let family = Responses::new();
        let mut sent = call(json!({"effort": "max", "summary": "auto"}));
        let refusal =
            |message: &str| Error::new(ErrorKind::Invalid, ID, "m", message).with_status(400);
        let unverified = refusal(
            "Your organization must be verified to generate reasoning summaries. (parameter `reasoning.summary`)",
        );
        assert_eq!(family.revise(&mut sent, &unverified), Revision::Resend);
        assert_eq!(family.revise(&mut sent, &unverified), Revision::GiveUp);
        let too_much = refusal(
            "Unsupported value: 'max' is not supported with the 'gpt-5.4' model. Supported values are: 'none', 'low', and 'high'. (parameter `reasoning.effort`)",
        );
        assert_eq!(family.revise(&mut sent, &too_much), Revision::Resend);
        assert_eq!(
            sent.body.unwrap().values()["reasoning"],
            json!({"effort": "high"})
        );
    }

    #[test]
    fn other_refusals_stand() {
        let mut sent = call(json!({"effort": "low", "summary": "auto"}));
        let error = Error::new(ErrorKind::Invalid, ID, "m", "Invalid 'tools'").with_status(400);
        assert_eq!(Responses::new().revise(&mut sent, &error), Revision::GiveUp);
    }
}
