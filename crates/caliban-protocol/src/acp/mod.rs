//! The Agent Client Protocol, version 1: an editor sends requests, one JSON-RPC message per line,
//! and reads answers, updates of its sessions and questions. Types are those of the protocol's own
//! crate; the loop is the server's.

mod elicitation;
mod message;
mod prompt;
mod question;
mod replay;
mod servers;
mod shown;
mod stop;
mod tools;
mod updates;

pub use agent_client_protocol_schema::{ProtocolVersion, v1};
pub use elicitation::{elicitation, reply};
pub use message::{Call, Incoming, Unusable, answered, asked, read, updated, withdrawn};
pub use prompt::{Content, content};
pub use question::{permission, verdict};
pub use replay::replay;
pub use servers::server_config;
pub use stop::{Ending, ending};
pub use updates::{Projection, Taken, Wishes};
