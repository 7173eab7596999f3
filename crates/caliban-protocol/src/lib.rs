//! Translates events into the frames that programs read. Pure functions: no files, no sockets, no
//! loop.

pub mod acp;
pub mod claude;
mod frame;
pub mod heddle;
mod input;
mod line;
mod native;
mod schema;

pub use frame::{McpServerState, PluginState, SandboxState};
pub use input::{Command, Decision, InputError, command};
pub use line::line;
pub use native::{
    Encoder, HookEvents, Init, Partial, Replay, failure, failure_after, question, result,
};
pub use schema::frames_schema;
