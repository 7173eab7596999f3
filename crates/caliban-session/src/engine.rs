//! What the actor works with.

use std::fmt::Debug;
use std::sync::Arc;

use caliban_agent::{Event, Listener, Outcome, RunTotals};
use caliban_model::{CancellationToken, Reasoning};
use caliban_settings::PermissionMode;
use futures::future::BoxFuture;

use crate::command::{ModelChange, Prompt, PromptId, Rewind, RuleChange, ServerCommand};
use crate::event::Facts;

/// How a piece of work ended. Totals are sums over the session.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeEnd {
    pub outcome: Outcome,
    pub totals: RunTotals,
}

/// Works on prompts, one at a time. The actor owns it; nobody else is handed it.
pub trait Engine: Send + Debug {
    /// What the session is at this moment.
    fn facts(&self) -> Facts;

    /// Works on a prompt to its end and tells everything that happens. The engine is fit for the
    /// next prompt on every path but a panic.
    fn work<'a>(
        &'a mut self,
        prompt: Prompt,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd>;

    /// Shortens the conversation.
    fn compact<'a>(
        &'a mut self,
        instructions: Option<String>,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd>;

    /// Runs a line in the shell, as far as the rules permit it.
    fn shell<'a>(
        &'a mut self,
        id: PromptId,
        command: String,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd>;

    /// Takes prompts back.
    fn rewind<'a>(
        &'a mut self,
        rewind: Rewind,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd>;

    /// Ends everything it started and makes what was said final. The error says why it could not
    /// be kept.
    fn close(self: Box<Self>) -> BoxFuture<'static, Result<(), String>>;
}

/// What can be changed while the engine works. A change counts from the next turn or call on; the
/// error says why there is none.
pub trait Controls: Send + Sync + Debug {
    fn set_mode(&self, mode: PermissionMode) -> Result<(), String>;

    /// Returns the model that is used from now on.
    fn set_model(&self, model: &ModelChange) -> Result<Arc<str>, String>;

    /// From here on not everything may be allowed without asking. Returns the mode that counts.
    fn drop_latch(&self) -> PermissionMode;

    fn set_reasoning(&self, reasoning: Reasoning);

    fn change_rule(&self, change: &RuleChange) -> Result<(), String>;

    fn command_server(&self, command: &ServerCommand) -> Result<(), String>;

    /// Commands that are waited for go on as background jobs.
    fn send_to_background(&self);

    fn end_job(&self, job: &str) -> Result<(), String>;
}

/// Keeps what happens before anybody hears of it.
pub trait Journal: Send + Sync + Debug {
    /// Nothing comes back for what is kept at once, as nearly everything is: an answer comes in
    /// thousands of pieces.
    fn record(&self, event: &Event) -> Option<BoxFuture<'_, ()>>;

    /// Keeps something that a part of the session says beside the work.
    fn record_aside(&self, event: &Event);
}
