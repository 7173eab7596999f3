//! A session as an actor. Commands go in, one ordered stream of events comes out; every face, and
//! several at once, sends [`Command`]s and hears [`SessionEvent`]s and nothing else.
//!
//! The actor owns an [`Engine`] and lends it to one piece of work at a time. It decides no policy:
//! modes and rules belong to the gate, compaction to the agent, both behind [`Controls`].

mod actor;
mod begin;
mod changes;
mod command;
mod crash;
mod engine;
mod event;
mod fanout;
mod handle;
mod handlers;
mod inbox;
mod questions;
mod standing;

pub use begin::{Bounds, Parts, begin};
pub use command::{
    Attach, Command, Delivery, ModelChange, Others, Prompt, PromptId, Restore, Rewind, RuleChange,
    ServerCommand, Shutdown,
};
pub use engine::{Controls, Engine, ExchangeEnd, Journal};
pub use event::{
    Answered, Asked, By, ClosedWhy, Facts, McpServer, PROTOCOL, Place, PluginFacts, QuestionKind,
    Refused, SandboxFacts, SessionEvent, What,
};
pub use fanout::{Fanout, Retention};
pub use handle::{Closed, EventBatch, Events, SessionHandle, Stage, State};
pub use questions::{Attendance, NotOpen, Questions};
pub use standing::{OpenQuestion, Settled, Standing, messages_after};
