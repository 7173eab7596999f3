//! The contract between the loop and whatever answers: an adapter, a retry layer, a cassette.

use std::fmt::Debug;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use rust_decimal::Decimal;
use serde::Serialize;

use crate::{CancellationToken, Capabilities, Error, Purpose, Request, StreamEvent, Usage};

/// The answer to a request; see [`StreamEvent`] for the order of events. After an error the
/// stream ends.
pub type EventStream = BoxStream<'static, Result<StreamEvent, Error>>;

/// Something that answers requests.
pub trait Provider: Send + Sync + Debug {
    /// Short name as users write it: `anthropic`, `openai`, `google`, `ollama`, `bedrock`…
    fn id(&self) -> &str;

    fn capabilities(&self, model: &str) -> Capabilities;

    /// Starts a call. Nothing is sent before the stream is polled; dropping the stream or
    /// cancelling the token closes the connection at once.
    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream;

    /// The models this account may use, where the provider can tell.
    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>>;

    /// What each route has done and cost, where there are such.
    fn accounts(&self) -> Vec<RouteAccount> {
        Vec::new()
    }
}

/// What one route came to, for one purpose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouteAccount {
    pub route: String,
    pub purpose: Purpose,
    pub answers: u64,
    pub failures: u64,
    /// Of answers.
    pub usage: Usage,
    /// Of attempts that came to nothing.
    pub wasted: Usage,
    pub cost: Decimal,
    pub wasted_cost: Decimal,
}

/// One entry of a provider's model list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelInfo {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}
