//! What an agent is asked to do, and by whom: what is written down, and what never is.

use std::path::PathBuf;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::AgentId;

/// A task for an agent in the background. No field of it is a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Where it works.
    pub cwd: PathBuf,
    /// The options of its run, as whoever begins the run understands them.
    pub options: Value,
    /// The agent that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The agent profile it works by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(default)]
    pub isolation: Isolation,
    /// What was given beside the options and is not written down: flags whose values may hold
    /// secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// What it did before it was an agent in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// The server whose session it is, where it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
}

/// A session of a server for applications. Its server says what is worked on, as commands, and how
/// much at the same time; no place of the fleet's is taken by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Which server may go on with it: one whose operator said the same.
    pub operator: String,
    /// What its application said of it when it began: another wish needs another process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Milliseconds that its questions wait.
    pub patience_ms: u64,
    /// Milliseconds that it stays with nothing to do and no server there; without them, as long as
    /// any agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}

/// The conversation of an agent that was at work in the foreground.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Handover {
    /// Messages as sessions keep them.
    pub messages: Vec<Value>,
    pub provider: String,
    pub model: String,
}

/// Where the files are that an agent changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In its working directory.
    #[default]
    None,
    /// In a worktree of its own.
    Worktree(TreeWish),
}

/// The worktree that an agent is to have. It stays, with everything in it, until the agent is
/// removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeWish {
    /// The commit that it begins from, as it was when the agent was asked for.
    pub base: String,
    #[serde(default)]
    pub files: TreeFiles,
    /// Only these directories and files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse_paths: Vec<String>,
    /// Directories of the checkout that are linked in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<String>,
    /// What it is called; after its agent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What is checked out in a worktree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeFiles {
    #[default]
    All,
    /// Next to none.
    Fresh,
}

/// What is written down of an agent when it is registered: `spec.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub id: AgentId,
    /// The repository whose daemon lists it.
    pub root: PathBuf,
    pub created: Timestamp,
    /// How many agents asked for each other before it.
    #[serde(default)]
    pub depth: u32,
    #[serde(flatten)]
    pub task: Task,
}

impl Spec {
    /// Whether it is the session of a server.
    pub fn is_served(&self) -> bool {
        self.task.served.is_some()
    }

    /// The name of the worktree that the agent has, where it has one of its own.
    pub fn worktree(&self) -> Option<String> {
        match &self.task.isolation {
            Isolation::None => None,
            Isolation::Worktree(wish) => {
                let ours = || format!("agent-{}", self.id);
                Some(wish.name.clone().unwrap_or_else(ours))
            }
        }
    }
}

/// The world of whoever asked, as far as the agent shall see it. It travels over sockets and is
/// never written down.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerWorld {
    /// Variables without secrets.
    pub environment: Vec<(String, String)>,
    /// Those that may hold one.
    pub secrets: Vec<(String, String)>,
    /// Values that were left out of the options, by what they are.
    pub withheld: Vec<(String, Value)>,
}

impl std::fmt::Debug for CallerWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallerWorld")
            .field("environment", &self.environment.len())
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}

/// How many agents there may be, as the settings of whoever asks say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Agents that run at the same time; the others wait.
    pub running: usize,
    /// Agents that are registered.
    pub registered: usize,
    /// Milliseconds between the request to end and the end.
    pub grace_ms: u64,
    /// What all agents of a repository may have cost before no other is begun.
    pub budget: Option<Decimal>,
    pub restart: Restart,
}

/// Whether an agent that crashed is begun again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    #[default]
    Never,
    /// Three times in ten minutes at most.
    OnCrash,
}

/// What a worker is told when it starts: over its socket, by its parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    pub spec: Spec,
    pub world: CallerWorld,
    /// Where `spec.json` and the session are.
    pub directory: PathBuf,
    pub socket: PathBuf,
    pub begin: Begin,
}

/// What a worker does first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// The task.
    Task,
    /// It goes on where it was cut off.
    GoOn,
    /// It goes on with this.
    Prompt(String),
    /// It waits for somebody to say something.
    Wait,
}
