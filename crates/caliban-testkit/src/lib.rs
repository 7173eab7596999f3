//! A loopback model server that speaks every provider's wire format from one script.
//!
//! It answers, streams, fails and stalls as the script says, refuses requests the real API would
//! refuse, and records everything it receives. A script is built in Rust or read from a file:
//!
//! ```json
//! {"replies": [
//!    {"fault": {"status": {"code": 429, "retry_after": "1"}}},
//!    {"blocks": [{"thinking": {"text": "Look first."}},
//!                {"tool_call": {"name": "Bash", "input": {"command": "ls"}}}]},
//!    {"when": {"tool_result": "present"}, "blocks": [{"text": "Done."}], "chunk_delay_ms": 5}],
//!  "after": "repeat_last"}
//! ```
//!
//! Beside it, [`terminal`] runs a program in a terminal, types as a person does and sees its screen.

mod anthropic;
mod ask;
mod auth;
mod blocking;
mod cloud;
mod connection;
mod counting;
mod family;
mod fault;
mod frame;
mod gemini;
mod http;
mod json;
mod listing;
pub mod oauth;
mod ollama;
mod openai;
mod openai_chat;
mod openai_responses;
mod plan;
mod queue;
mod quirk;
mod record;
mod route;
mod script;
mod server;
#[cfg(target_os = "linux")]
pub mod terminal;
mod text;
mod turn;

pub use blocking::BlockingServer;
pub use counting::counting;
pub use fault::{ErrorKind, Fault};
pub use quirk::{Quirk, Quirks};
pub use record::{Api, Outcome, Recorded};
pub use script::{
    After, Block, Checks, Chunking, Document, Match, ModelEntry, Presence, Prose, Reply, Script,
    Stop, Usage,
};
pub use server::ModelServer;
