//! Speaks the wire formats of the model providers. Each family encodes requests and decodes
//! answers; a transport decides where they go; cassettes are providers around providers.
#![cfg_attr(
    not(all(feature = "bedrock", feature = "vertex", feature = "azure")),
    allow(
        dead_code,
        reason = "some parts are there for the clouds that are left out"
    )
)]

mod adapter;
mod answer_form;
mod anthropic;
mod assembly;
mod body;
pub mod cassette;
mod clouds;
mod config;
mod effort;
mod failure;
mod framing;
mod google;
mod history;
mod http;
mod memory;
mod ollama;
mod openai;
mod sight;
#[cfg(test)]
mod testing;
mod transport;
mod wiretap;

pub use adapter::Adapter;
pub use body::Body;
pub use clouds::{Programs, Refresh};
pub use config::{ConfigError, Connection, connect};
pub use effort::effort_sent;
pub use http::Timeouts;
pub use transport::{AuthHeader, Call, Direct, Framing, HttpRequest};
pub use wiretap::Wiretap;
