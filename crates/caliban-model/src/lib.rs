//! What a conversation with a language model is: messages, requests, stream events, usage,
//! prices, the names of the tools it is offered, and the contract that every provider fulfils.
//! Knows neither HTTP nor files.

mod capability;
mod cost;
mod credentials;
mod error;
mod event;
mod knob;
mod message;
mod messages;
mod model_id;
mod provider;
mod provider_kind;
mod rates;
mod request;
mod spelling;
mod tools;
mod usage;

pub use capability::{
    CacheSupport, Capabilities, ChatTools, EffortSet, ForcedTools, ModelTraits, Sampling,
    ThinkingDefault, ThinkingForm, ToolSupport, capabilities, family, traits,
};
pub use cost::{CostLedger, Dollars, LedgerEntry, Price};
pub use credentials::{Credentials, Freshness, NoKey, StaticKey};
pub use error::{Error, ErrorKind, RetryAdvice, RetryCategory};
pub use event::{
    HedgeLoss, Hop, HopKind, Retry, Shown, StopReason, StreamEvent, Warning, WarningKind,
};
pub use knob::{Knob, UnknownKnob};
pub use message::{
    Block, Image, ImageMime, ImageSource, Message, Origin, Role, ToolContent, UnsupportedImage,
};
pub use messages::Messages;
pub use model_id::base_model;
pub use provider::{EventStream, ModelInfo, Provider, RouteAccount};
pub use provider_kind::{OpenAiApi, ProviderKind, UnknownProvider};
pub use rates::{Rate, RateCard, RateCardError, Tier};
pub use request::{
    AnswerLimit, CachePolicy, CacheTtl, Effort, InvalidRequest, MarkedTurn, Metadata, OutputFormat,
    ParallelCalls, Purpose, Reasoning, Request, ToolChoice, ToolSpec, UnknownEffort,
};
pub use spelling::{nearest, slips};
pub use tools::{Argument, BUILT_IN, BuiltInTool, Effect, file_path};
pub use usage::Usage;

pub use secrecy::SecretString;
pub use tokio_util::sync::CancellationToken;
