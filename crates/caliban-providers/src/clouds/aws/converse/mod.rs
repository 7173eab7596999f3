//! Bedrock's own form for the models of everybody.

mod decode;
mod encode;

use caliban_model::{Error, ModelInfo, Request};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use super::{ID, errors};
use crate::adapter::{Decoder, Encoded, Family, Link, Revision};
use crate::failure::{ErrorBody, Refusal};
use crate::memory::Memory;
use crate::transport::{Call, Framing};
pub(crate) use encode::encode;

/// Speaks Converse.
#[derive(Debug)]
pub(super) struct Converse {
    memory: Memory<()>,
}

impl Converse {
    pub(super) fn new() -> Self {
        Self {
            memory: Memory::on(ID),
        }
    }
}

impl Family for Converse {
    fn id(&self) -> &'static str {
        ID
    }

    fn framing(&self) -> Framing {
        Framing::EventStream
    }

    fn encode<'a>(
        &'a self,
        request: &'a Request,
        _link: &'a Link,
    ) -> BoxFuture<'a, Result<Encoded, Error>> {
        ready(Ok(encode::encode(request, &self.memory))).boxed()
    }

    fn decoder(&self, _request: &Request) -> Box<dyn Decoder> {
        Box::new(decode::ConverseDecoder::default())
    }

    fn refusal(&self, refusal: Refusal<'_>) -> Error {
        errors::refusal(&refusal).unwrap_or_else(|| {
            let message = refusal.text();
            refusal.into_error(ErrorBody {
                message,
                ..ErrorBody::default()
            })
        })
    }

    /// Not every model takes tools in a stream, or a choice among them; the choice can be left out.
    fn revise(&self, call: &mut Call, error: &Error) -> Revision {
        let about_choice = error.status == Some(400) && error.message.contains("toolChoice");
        let Some(body) = call.body.as_mut().filter(|_| about_choice) else {
            return Revision::GiveUp;
        };
        body.change(|fields| {
            let tools = fields
                .get_mut("toolConfig")
                .and_then(|it| it.as_object_mut());
            match tools.and_then(|tools| tools.shift_remove("toolChoice")) {
                Some(_) => Revision::Resend,
                None => Revision::GiveUp,
            }
        })
    }

    fn models<'a>(&'a self, _link: &'a Link) -> BoxFuture<'a, Result<Vec<ModelInfo>, Error>> {
        ready(Ok(Vec::new())).boxed()
    }
}
