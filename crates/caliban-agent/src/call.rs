//! A call on its way to being run, and what is thought of it.

use std::sync::Arc;

use caliban_model::Effect;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call that wants to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: Arc<str>,
    /// The agent that makes it, named by the call it works for; nothing for the session's own.
    pub agent: Option<Arc<str>>,
    pub name: Arc<str>,
    pub input: Value,
    pub effect: Effect,
    /// The argument that identifies it to a person.
    pub first_arg: Option<String>,
    /// The turn that made it, counted from 1.
    pub turn: u32,
    /// What those asked before thought of it.
    pub opinion: Opinion,
}

/// What advisers think of a call before the gate decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "opinion", rename_all = "snake_case")]
pub enum Opinion {
    #[default]
    None,
    /// It may run without asking, where a rule would ask.
    Approved { reason: Option<String> },
    /// It is to be asked about, where a rule would allow it.
    Ask {
        reason: String,
        #[serde(default)]
        remedy: Option<String>,
    },
}

impl Opinion {
    /// The stricter of two opinions.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (ask @ Self::Ask { .. }, _) | (_, ask @ Self::Ask { .. }) => ask,
            (Self::None, opinion) | (opinion, Self::None) => opinion,
            (first @ Self::Approved { .. }, Self::Approved { .. }) => first,
        }
    }
}
