//! A provider that cannot be reached for want of a key: clients learn that from the first answer,
//! not from a program that does not start.

use caliban_model::{
    CancellationToken, Capabilities, Error, ErrorKind, EventStream, ModelInfo, Provider, Request,
    capabilities,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

#[derive(Debug)]
pub(crate) struct Unavailable {
    pub(crate) reason: String,
}

/// Whose models would have answered.
const PROVIDER: &str = "anthropic";

impl Unavailable {
    fn error(&self, model: &str) -> Error {
        Error::new(ErrorKind::Auth, PROVIDER, model, self.reason.clone())
    }
}

impl Provider for Unavailable {
    fn id(&self) -> &str {
        PROVIDER
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        capabilities(PROVIDER, model)
    }

    fn stream(&self, request: Request, _: CancellationToken) -> EventStream {
        let error = self.error(&request.model);
        futures::stream::once(async move { Err(error) }).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        let error = self.error("");
        async move { Err(error) }.boxed()
    }
}
