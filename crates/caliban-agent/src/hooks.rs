//! The points where others look into a run or steer it: permissions, external hooks, audit.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_model::{Message, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::event::{CompactionReason, Denial};
use crate::outcome::Outcome;
use crate::tool::{Effect, ToolOutput};

/// Looks on and decides. Every method does nothing by default.
///
/// The three deciding methods are awaited before the run goes on, for every agent and in every
/// mode; a hook that cannot decide must say no.
pub trait Hooks: Send + Sync + Debug {
    /// `PreToolUse`: before a call runs. Called one call at a time, in the order of the calls.
    fn before_tool<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async { Verdict::Allow }.boxed()
    }

    /// `UserPromptSubmit`: before a prompt becomes part of the conversation.
    fn before_prompt<'a>(&'a self, _prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        async { PromptVerdict::Accept }.boxed()
    }

    /// `Stop`: the model has finished; a hook may send it on.
    fn before_stop<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, StopVerdict> {
        async { StopVerdict::Stop }.boxed()
    }

    /// Everything else: told, not asked.
    fn notify<'a>(&'a self, _event: &'a HookEvent) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }
}

/// A call that wants to run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub input: Value,
    pub effect: Effect,
    /// The argument that rules are written about.
    pub first_arg: Option<String>,
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Allow,
    /// With another input, which is validated like the model's own.
    AllowWith(Value),
    Deny(Denial),
}

#[derive(Debug, Clone, PartialEq)]
pub enum PromptVerdict {
    Accept,
    /// Accept, and add this for the model to read.
    AcceptWith(String),
    Deny {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum StopVerdict {
    Stop,
    /// Go on with this message; a run may be sent on a few times only.
    Continue {
        message: String,
    },
}

/// What hooks are told of.
#[derive(Debug, Clone, PartialEq)]
pub enum HookEvent {
    SessionStart {
        source: String,
    },
    SessionEnd {
        reason: String,
    },
    PreCompact {
        reason: CompactionReason,
    },
    PostCompact {
        before_tokens: u64,
        after_tokens: u64,
    },
    PostToolUse {
        call: ToolCall,
        output: ToolOutput,
    },
    PostToolUseFailure {
        call: ToolCall,
        output: ToolOutput,
    },
    ConfigChange {
        keys: Vec<String>,
    },
    CwdChanged {
        from: PathBuf,
        to: PathBuf,
    },
    FileChanged {
        path: PathBuf,
    },
    SubagentStart {
        call_id: Arc<str>,
        prompt: String,
    },
    SubagentStop {
        call_id: Arc<str>,
        outcome: Outcome,
    },
    TaskCreated {
        id: String,
        task: String,
    },
    TaskCompleted {
        id: String,
    },
    PermissionRequest {
        call: ToolCall,
    },
    PermissionDenied {
        call: ToolCall,
        denial: Denial,
    },
    Notification {
        message: String,
    },
    Stopped {
        usage: Usage,
    },
    StopFailure {
        outcome: Outcome,
    },
}

impl HookEvent {
    /// The name under which users configure it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionStart { .. } => "SessionStart",
            Self::SessionEnd { .. } => "SessionEnd",
            Self::PreCompact { .. } => "PreCompact",
            Self::PostCompact { .. } => "PostCompact",
            Self::PostToolUse { .. } => "PostToolUse",
            Self::PostToolUseFailure { .. } => "PostToolUseFailure",
            Self::ConfigChange { .. } => "ConfigChange",
            Self::CwdChanged { .. } => "CwdChanged",
            Self::FileChanged { .. } => "FileChanged",
            Self::SubagentStart { .. } => "SubagentStart",
            Self::SubagentStop { .. } => "SubagentStop",
            Self::TaskCreated { .. } => "TaskCreated",
            Self::TaskCompleted { .. } => "TaskCompleted",
            Self::PermissionRequest { .. } => "PermissionRequest",
            Self::PermissionDenied { .. } => "PermissionDenied",
            Self::Notification { .. } => "Notification",
            Self::Stopped { .. } => "Stop",
            Self::StopFailure { .. } => "StopFailure",
        }
    }
}

/// No hooks.
#[derive(Debug)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// Several hooks as one: asked in order, the first refusal decides, a changed input is what the
/// next one sees.
#[derive(Debug, Default)]
pub struct HookChain(pub Vec<Arc<dyn Hooks>>);

impl Hooks for HookChain {
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async move {
            let mut call = call.clone();
            let mut changed = false;
            for hooks in &self.0 {
                match hooks.before_tool(&call).await {
                    Verdict::Allow => {}
                    Verdict::AllowWith(input) => {
                        call.input = input;
                        changed = true;
                    }
                    Verdict::Deny(denial) => return Verdict::Deny(denial),
                }
            }
            if changed {
                Verdict::AllowWith(call.input)
            } else {
                Verdict::Allow
            }
        }
        .boxed()
    }

    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        async move {
            let mut additions = Vec::new();
            for hooks in &self.0 {
                match hooks.before_prompt(prompt).await {
                    PromptVerdict::Accept => {}
                    PromptVerdict::AcceptWith(text) => additions.push(text),
                    PromptVerdict::Deny { reason } => return PromptVerdict::Deny { reason },
                }
            }
            if additions.is_empty() {
                PromptVerdict::Accept
            } else {
                PromptVerdict::AcceptWith(additions.join("\n\n"))
            }
        }
        .boxed()
    }

    fn before_stop<'a>(&'a self, text: &'a str) -> BoxFuture<'a, StopVerdict> {
        async move {
            for hooks in &self.0 {
                if let StopVerdict::Continue { message } = hooks.before_stop(text).await {
                    return StopVerdict::Continue { message };
                }
            }
            StopVerdict::Stop
        }
        .boxed()
    }

    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        async move {
            for hooks in &self.0 {
                hooks.notify(event).await;
            }
        }
        .boxed()
    }
}
