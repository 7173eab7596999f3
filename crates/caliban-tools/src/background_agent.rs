//! Handing a task to an agent that goes on by itself.

use std::fmt::Debug;
use std::sync::Arc;

use caliban_model::Message;
use futures::future::BoxFuture;

use crate::agent::GroundWish;

/// Who starts agents in the background.
pub trait Background: Debug + Send + Sync {
    /// Starts one and returns what its parent is told; the error says why there is none.
    fn start(&self, task: BackgroundTask) -> BoxFuture<'_, Result<String, String>>;
}

/// What an agent in the background is to do, and with what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BackgroundTask {
    pub prompt: String,
    /// A few words on what it is for.
    pub description: Option<String>,
    /// The only tools it may use; all of its parent's without any.
    pub tools: Option<Vec<String>>,
    /// Tools that it may not use, whatever else is said.
    pub without: Vec<String>,
    /// Another model than its parent's.
    pub model: Option<String>,
    /// The kind of agent it is, and what that is told before its task.
    pub kind: Option<(String, String)>,
    pub hooks: BackgroundHooks,
    /// The worktree that it is to have for itself; it works in its parent's directory without one.
    pub worktree: Option<GroundWish>,
    /// What it did in the foreground before, if it goes on from there.
    pub handover: Option<Handover>,
}

/// An agent that was at work in the foreground, as far as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Handover {
    /// Its conversation, in which every call has a result.
    pub messages: Vec<Arc<Message>>,
    pub provider: String,
    pub model: String,
}

/// Which hooks an agent in the background has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackgroundHooks {
    /// Those that are configured.
    #[default]
    Inherited,
    /// Those of the operator alone.
    Managed,
}
