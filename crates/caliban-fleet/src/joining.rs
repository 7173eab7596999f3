//! What a server and the worker of one of its sessions say to each other: commands up, events down,
//! each a line.

use std::sync::Arc;

use caliban_session::{SessionEvent, Standing};
use serde::{Deserialize, Serialize};

use crate::wire::PROTOCOL;

/// Bytes of a command: a prompt with all its pictures.
pub(crate) const MAX_COMMAND: usize = 64 * 1024 * 1024;

/// What a server wants that comes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Join {
    pub(crate) protocol: u32,
    /// The version of commands and events.
    pub(crate) events: u32,
    pub(crate) from: From,
}

/// From where a server hears a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// From its first event: it has just begun.
    Beginning,
    /// From where it stands now.
    Now,
}

impl Join {
    pub(crate) fn new(from: From) -> Self {
        Self {
            protocol: PROTOCOL,
            events: caliban_session::PROTOCOL,
            from,
        }
    }
}

/// What the worker says to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Welcome {
    Joined(Box<Joined>),
    Refused { why: Why, message: String },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Joined {
    /// Names this process of the agent: another one knows nothing of what this one was told.
    pub(crate) life: Arc<str>,
    pub(crate) standing: Standing,
    /// Whether the first event comes next, or only what comes behind `standing`.
    pub(crate) from: From,
}

/// Why a server is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Why {
    /// Another server has it.
    Busy,
    Forbidden,
}

/// A line that comes down.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    Event(Arc<SessionEvent>),
    /// In place of events that were let go before they were heard.
    Standing(Box<Standing>),
}
