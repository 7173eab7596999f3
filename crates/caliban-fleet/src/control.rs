//! What is said to the daemon, and what it answers.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::spec::{CallerWorld, Limits, Task};
use crate::state::AgentView;

/// The first line of both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    #[serde(rename = "type")]
    pub(crate) kind: HelloKind,
    pub(crate) protocol: u32,
    /// The version of the program.
    #[serde(default)]
    pub(crate) build: String,
    /// Agents that have a process; said by the daemon.
    #[serde(default)]
    pub(crate) alive: usize,
    #[serde(default)]
    pub(crate) pid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HelloKind {
    Hello,
}

impl Hello {
    pub(crate) fn ours(alive: usize) -> Self {
        Self {
            kind: HelloKind::Hello,
            protocol: crate::wire::PROTOCOL,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            alive,
            pid: std::process::id(),
        }
    }
}

/// One wish; each has one answer, but for `watch`, which has one whenever something changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Request {
    Spawn {
        task: Box<Task>,
        world: CallerWorld,
        limits: Limits,
    },
    /// The same task once more, under another id; the old agent is gone.
    Respawn {
        id: String,
        world: CallerWorld,
        limits: Limits,
    },
    /// An agent that ended goes on.
    Resume {
        id: String,
        wish: Resumption,
        world: CallerWorld,
        limits: Limits,
    },
    List,
    Watch,
    Kill {
        id: String,
        how: KillHow,
        grace_ms: u64,
    },
    Rm {
        id: String,
        which: RmWhich,
    },
    Status,
    Stop,
}

/// What an agent does that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumption {
    /// It goes on with its task where it crashed, and waits where it had come to an end.
    AsItWas,
    /// It works on this.
    Prompt(String),
    /// It waits to be spoken to.
    Wait,
}

/// How an agent is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillHow {
    /// It may put its things in order.
    Politely,
    /// At once.
    Now,
}

/// Which agents may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RmWhich {
    Ended,
    /// A living one is killed first.
    Any,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Reply {
    Agent { agent: Box<AgentView> },
    Agents { agents: Vec<AgentView> },
    Status(DaemonStatus),
    Gone { alive: usize },
    Refused(Refusal),
}

/// Why the daemon does not do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub why: RefusedBecause,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedBecause {
    /// There is no such agent.
    Unknown,
    /// Several fit.
    Ambiguous,
    /// It is alive.
    Running,
    /// It is not.
    Ended,
    /// There are too many, or they have cost too much.
    Limit,
    /// The other side speaks another version.
    Version,
    /// It makes no sense.
    Invalid,
    /// Something went wrong.
    Failed,
}

impl Refusal {
    pub(crate) fn new(why: RefusedBecause, message: impl Into<String>) -> Self {
        Self {
            why,
            message: message.into(),
        }
    }

    pub(crate) fn failed(error: &std::io::Error) -> Self {
        Self::new(RefusedBecause::Failed, error.to_string())
    }
}

impl From<crate::id::Unresolved> for Refusal {
    fn from(error: crate::id::Unresolved) -> Self {
        let why = match &error {
            crate::id::Unresolved::Unknown(_) => RefusedBecause::Unknown,
            crate::id::Unresolved::Ambiguous { .. } => RefusedBecause::Ambiguous,
        };
        Self::new(why, error.to_string())
    }
}

/// How the daemon is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub pid: u32,
    pub build: String,
    pub protocol: u32,
    pub started: Timestamp,
    pub root: PathBuf,
    pub socket: PathBuf,
    /// Agents that have a process.
    pub alive: usize,
    /// Agents that wait for a place.
    pub waiting: usize,
    /// All that are registered.
    pub agents: usize,
}
