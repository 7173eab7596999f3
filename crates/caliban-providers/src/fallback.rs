//! A provider with a second one behind it, for when the first cannot answer.

use std::sync::Arc;

use async_stream::try_stream;
use caliban_model::{
    CancellationToken, Capabilities, Error, ErrorKind, EventStream, ModelInfo, Origin, Provider,
    Request, StreamEvent,
};
use futures::StreamExt;
use futures::future::BoxFuture;

/// Asks the first provider; if it is unavailable, overloaded or out of reach after its own
/// retries, or the prompt is too long for its model, the second answers with its own model. Errors
/// that another model would meet as well (a wrong key, a refused prompt) are passed on.
#[derive(Debug, Clone)]
pub struct Fallback {
    primary: Arc<dyn Provider>,
    secondary: Arc<dyn Provider>,
    model: Arc<str>,
}

impl Fallback {
    pub fn new(
        primary: Arc<dyn Provider>,
        secondary: Arc<dyn Provider>,
        model: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            primary,
            secondary,
            model: model.into(),
        }
    }
}

impl Provider for Fallback {
    fn id(&self) -> &str {
        self.primary.id()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.primary.capabilities(model)
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        let Self {
            primary,
            secondary,
            model,
        } = self.clone();
        Box::pin(try_stream! {
            let mut answer = primary.stream(request.clone(), cancel.clone());
            let failure = loop {
                match answer.next().await {
                    Some(Ok(event)) => yield event,
                    Some(Err(error)) => break error,
                    None => return,
                }
            };
            drop(answer);
            if !is_worth_another_model(&failure) {
                Err(failure.clone())?;
            }
            yield StreamEvent::Rerouted {
                origin: Origin::new(secondary.id(), Arc::clone(&model)),
                reason: failure.to_string(),
            };
            let mut request = request;
            request.model = model;
            let mut answer = secondary.stream(request, cancel);
            while let Some(event) = answer.next().await {
                yield event?;
            }
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        self.primary.models()
    }
}

fn is_worth_another_model(error: &Error) -> bool {
    match error.kind {
        ErrorKind::RateLimited
        | ErrorKind::Overloaded
        | ErrorKind::Server
        | ErrorKind::Network
        | ErrorKind::Timeout
        | ErrorKind::Malformed
        | ErrorKind::TooLong { .. }
        | ErrorKind::Unavailable => true,
        ErrorKind::Auth
        | ErrorKind::Billing
        | ErrorKind::Filtered
        | ErrorKind::Invalid
        | ErrorKind::Cancelled
        | ErrorKind::Mismatch => false,
    }
}
