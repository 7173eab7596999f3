//! How an agent is doing: what its worker writes down, and what is made of it.

use std::path::PathBuf;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;

/// Where an agent is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Registered, not yet at work.
    Spawning,
    Running,
    /// Waiting for input or for an answer.
    Idle,
    /// It was told to end.
    Killed,
    Done,
    Failed,
    /// Its process is gone and left no word.
    Crashed,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawning => "spawning",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Killed => "killed",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
        }
    }

    /// Whether there is a process, or will be.
    pub fn is_alive(self) -> bool {
        match self {
            Self::Spawning | Self::Running | Self::Idle => true,
            Self::Killed | Self::Done | Self::Failed | Self::Crashed => false,
        }
    }
}

/// What an agent waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    pub kind: NeedsKind,
    /// The question, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub since: Timestamp,
    pub summary: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NeedsKind {
    Permission,
    Elicitation,
    Input,
}

/// The whole state of a worker, as it reports it and writes it down: `state.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Grows with every report, so that an older one is known as such.
    pub counter: u64,
    pub state: Phase,
    pub since: Timestamp,
    #[serde(default)]
    pub pid: Option<u32>,
    /// Of the system as it was started then.
    #[serde(default)]
    pub boot: Option<String>,
    #[serde(default)]
    pub socket: Option<PathBuf>,
    #[serde(default)]
    pub session_id: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub needs: Option<Needs>,
    #[serde(default)]
    pub cost_usd: Decimal,
    #[serde(default)]
    pub turns: u32,
    /// Those who watch or steer.
    #[serde(default)]
    pub attached: usize,
    /// The version of the program that runs it.
    #[serde(default)]
    pub build: String,
}

impl Report {
    /// Of an agent that nothing runs yet.
    pub(crate) fn registered(at: Timestamp) -> Self {
        Self {
            counter: 0,
            state: Phase::Spawning,
            since: at,
            pid: None,
            boot: boot_id(),
            socket: None,
            session_id: None,
            model: None,
            needs: None,
            cost_usd: Decimal::ZERO,
            turns: 0,
            attached: 0,
            build: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// How an agent ended: `end.json`, written by its worker before it exits, or by the daemon for an
/// agent that it never started or had to kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub state: Phase,
    /// The subtype of the last result.
    #[serde(default)]
    pub outcome: Option<String>,
    pub exit_code: u8,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub cost_usd: Decimal,
    #[serde(default)]
    pub turns: u32,
    pub at: Timestamp,
}

/// An agent as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentView {
    pub id: AgentId,
    pub state: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Needs>,
    pub cwd: PathBuf,
    /// The worktree that it works in, where that is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    pub created: Timestamp,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub cost_usd: Decimal,
    pub turns: u32,
    #[serde(default)]
    pub attached: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
}

/// Names this start of the system; nothing where it has no name.
pub(crate) fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}
