//! Kinds of sub-agents that somebody defined.

use std::fmt::Debug;
use std::sync::Arc;

use caliban_agent::{Inheritance, Tool};
use caliban_model::Reasoning;
use serde::Deserialize;

/// A kind of sub-agent that somebody defined.
#[derive(Debug, Clone)]
pub struct AgentKind {
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// What it is told before its task.
    pub prompt: String,
    /// The tools it may use; all of its parent's if left out.
    pub tools: Option<Vec<String>>,
    /// Tools that it may not use, whatever else is said.
    pub without: Vec<String>,
    pub model: Option<String>,
    /// How hard it thinks; as its parent does if left out.
    pub reasoning: Option<Reasoning>,
    /// Where it works unless a call says otherwise.
    pub isolation: Isolation,
    /// Whether it is waited for unless a call says otherwise.
    pub attendance: Attendance,
    /// Who looks on, unless a call says otherwise.
    pub hooks: Inheritance,
    /// What it remembers from one task to the next.
    pub memory: Option<Arc<dyn Recollection>>,
}

impl AgentKind {
    /// A kind that has everything from its parent but its prompt.
    pub fn new(name: String, description: String, prompt: String) -> Self {
        Self {
            name,
            description,
            prompt,
            tools: None,
            without: Vec::new(),
            model: None,
            reasoning: None,
            isolation: Isolation::None,
            attendance: Attendance::Foreground,
            hooks: Inheritance::All,
            memory: None,
        }
    }
}

/// Where a sub-agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the directory of its parent.
    #[default]
    None,
    /// In a git worktree of its own.
    Worktree,
}

/// Whether somebody waits for a sub-agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attendance {
    #[default]
    Foreground,
    Background,
}

/// What a kind of sub-agent remembers.
pub trait Recollection: Send + Sync + Debug {
    /// What it is told of it beforehand, read anew.
    fn text(&self) -> Option<String>;

    /// The tools that it reads and writes it with.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}
