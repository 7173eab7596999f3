//! Those who look into a run or steer it, by what they do there: permissions, external hooks, the
//! journal. No role has a method that does nothing by default, so whoever takes one on has to say
//! what it means.
//!
//! Whoever decides is awaited before the run goes on, for every agent and in every mode; who
//! cannot decide must say no.

use std::fmt::Debug;
use std::sync::Arc;

use caliban_model::Message;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::call::ToolCall;
use crate::event::Denial;
use crate::hook_event::HookEvent;
use crate::operator::{Answer, Question};
use crate::reading::ReadGuard;
use crate::tool::ToolOutput;

/// Decides about every call of every agent of a session.
pub trait Gate: Send + Sync + Debug {
    /// Called one call at a time, in the order of the calls, when all advisers were heard.
    fn judge<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict>;

    /// An adviser refused this call, so that it is not judged.
    fn refused(&self, call: &ToolCall, denial: &Denial);

    /// The operator answered what [`Verdict::Ask`] asked about this call.
    fn answered(&self, call: &ToolCall, answer: &Answer);

    /// What a call may read that was permitted and is about to run.
    fn reading(&self, call: &ToolCall) -> Arc<dyn ReadGuard>;
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Allow,
    /// The operator must say.
    Ask(Box<Question>),
    Deny(Denial),
}

/// Has a word about a call before the gate decides: `PreToolUse`.
pub trait Adviser: Send + Sync + Debug {
    /// Called one call at a time, in the order of the calls.
    fn advise<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Advice>;
}

#[derive(Debug, Clone, PartialEq)]
pub enum Advice {
    /// No objection.
    Allow,
    /// No objection, with another input, which is validated like the model's own.
    AllowWith(Value),
    /// Permitted on the operator's behalf: what would be asked need not be asked any more.
    Approve {
        reason: Option<String>,
        input: Option<Value>,
    },
    /// The operator must say.
    Ask {
        reason: String,
        /// What the operator can do so that it is not asked.
        remedy: Option<String>,
        input: Option<Value>,
    },
    Deny(Denial),
}

/// Stands before a prompt that becomes part of the conversation: `UserPromptSubmit`.
pub trait PromptStage: Send + Sync + Debug {
    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict>;
}

#[derive(Debug, Clone, PartialEq)]
pub enum PromptVerdict {
    Accept,
    /// Accept, and add this for the model to read.
    AcceptWith(String),
    /// Take this text in the place of the prompt's, and add this for the model to read.
    Replace {
        prompt: String,
        addition: Option<String>,
    },
    Deny {
        reason: String,
    },
}

/// Stands at the end of a run, when the model has finished: `Stop`.
pub trait StopStage: Send + Sync + Debug {
    fn before_stop<'a>(&'a self, text: &'a str) -> BoxFuture<'a, StopVerdict>;
}

#[derive(Debug, Clone, PartialEq)]
pub enum StopVerdict {
    Stop,
    /// Go on with this message; a run may be sent on a few times only.
    Continue {
        message: String,
    },
}

/// Looks at what comes beside text before a provider sees it: images are what they claim to be, and
/// small enough.
pub trait Intake: Send + Sync + Debug {
    /// A prompt as it becomes part of the conversation; the error says why it cannot.
    fn prompt(&self, prompt: Message) -> BoxFuture<'_, Result<Message, String>>;

    /// What a tool returned; what cannot be shown of it is described.
    fn result(&self, output: ToolOutput) -> BoxFuture<'_, ToolOutput>;
}

/// Notes what calls do, for all agents of a session.
pub trait Witness: Send + Sync + Debug {
    /// A permitted call is about to run. Who must note that durably and cannot, refuses.
    fn before_run<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<(), String>>;

    /// A call has ended, perhaps without having been permitted. Nobody has heard of it yet.
    fn after_end<'a>(&'a self, call: &'a ToolCall, output: &'a ToolOutput) -> BoxFuture<'a, ()>;

    /// Those who look on have been told of the end of a call: whatever they did of their own because
    /// of it, such as tidying up what it wrote, is done.
    fn over<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ()>;

    /// The same for those who hear that the model has finished: about to be asked, and heard.
    fn at_stop(&self, hearing: Hearing) -> BoxFuture<'_, ()>;

    /// Who notes the calls of an agent that works in a directory of its own; nothing where what
    /// happens there is nobody's affair here.
    fn for_elsewhere(self: Arc<Self>) -> Option<Arc<dyn Witness>>;
}

/// Where the hearing of those stands who may send the model on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    Begins,
    Over,
}

/// Looks on: told, not asked.
pub trait Observer: Send + Sync + Debug {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()>;

    /// What the model should read beside the results of these calls, which have all ended.
    fn remarks(&self, calls: &[Arc<str>]) -> Option<String>;

    /// What the model was told and must not forget: it reads this again beside the summary that
    /// its conversation is condensed to. `kept` is what stays of the conversation as it is.
    fn retell(&self, kept: &[Arc<Message>]) -> Option<String>;

    /// Who looks on where an agent works for the one that this looks on; nothing where nobody
    /// does.
    fn for_sub_agent(self: Arc<Self>, inheritance: Inheritance) -> Option<Arc<dyn Observer>>;
}

/// What a sub-agent has of those who look on at its parent. A model may choose, so it is never
/// about those who decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inheritance {
    All,
    /// No more than there must be: those of the managed scope.
    Managed,
}

/// Knows the place of calls in a trace.
pub trait Tracer: Send + Sync + Debug {
    /// The `traceparent` of what a call runs.
    fn of_call(&self, call: &str) -> Option<Arc<str>>;
}
