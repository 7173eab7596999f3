//! The points where others look into a run or steer it: permissions, external hooks, audit.

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_model::{Block, Message, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::event::{CompactionReason, Denial};
use crate::operator::{Answer, Question};
use crate::outcome::Outcome;
use crate::tool::{Effect, ToolOutput};

/// Looks on and decides. Every method does nothing by default.
///
/// The deciding methods are awaited before the run goes on, for every agent and in every mode; a
/// hook that cannot decide must say no.
pub trait Hooks: Send + Sync + Debug {
    /// `SessionStart`: before the first prompt; what is returned is read by the model.
    fn at_start(&self, _source: SessionSource) -> BoxFuture<'_, Option<String>> {
        async { None }.boxed()
    }

    /// `PreToolUse`: before a call runs. Called one call at a time, in the order of the calls.
    fn before_tool<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async { Verdict::Allow }.boxed()
    }

    /// A permitted call is about to run. Who must note that durably and cannot, refuses.
    fn before_run<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, Result<(), String>> {
        async { Ok(()) }.boxed()
    }

    /// The operator answered what [`Verdict::Ask`] asked about this call.
    fn answered(&self, _call: &ToolCall, _answer: &Answer) {}

    /// What the model should read beside the results of these calls, which have all ended.
    fn additions(&self, _calls: &[Arc<str>]) -> Option<String> {
        None
    }

    /// The hooks of an agent that works for this one; nothing where they are the same.
    fn for_sub_agent(&self, _inheritance: Inheritance) -> Option<Arc<dyn Hooks>> {
        None
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

/// What a sub-agent has of its parent's hooks. A model may choose, so whatever decides stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inheritance {
    All,
    /// Those that decide, and those of the managed scope.
    Deciding,
}

/// A call that wants to run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: Arc<str>,
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

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
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
    Ask(Box<Question>),
    Deny(Denial),
}

/// What advisers think of a call before the gate decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Opinion {
    #[default]
    None,
    /// It may run without asking, where a rule would ask.
    Approved { reason: Option<String> },
    /// It is to be asked about, where a rule would allow it.
    Ask { reason: String },
}

/// How a session came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSource {
    Startup,
    Resume,
}

impl SessionSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Resume => "resume",
        }
    }
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

/// Puts another text in the place of what was typed; what goes along with it are other blocks.
pub(crate) fn retype(prompt: &mut Message, text: &str) {
    match prompt.content.first_mut() {
        Some(first) => *first = Block::text(text),
        None => prompt.content.push(Block::text(text)),
    }
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

impl Opinion {
    /// The stricter of two opinions.
    #[must_use]
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (ask @ Self::Ask { .. }, _) | (_, ask @ Self::Ask { .. }) => ask,
            (Self::None, opinion) | (opinion, Self::None) => opinion,
            (first @ Self::Approved { .. }, Self::Approved { .. }) => first,
        }
    }
}

/// No hooks.
#[derive(Debug)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// Advisers and a gate as one. Advisers are asked in order: the first refusal ends it, a changed
/// input is what the next one sees, anything else is an opinion. The gate decides.
#[derive(Debug)]
pub struct HookChain {
    pub advisers: Vec<Arc<dyn Hooks>>,
    pub gate: Arc<dyn Hooks>,
}

impl HookChain {
    fn all(&self) -> impl Iterator<Item = &Arc<dyn Hooks>> {
        self.advisers.iter().chain([&self.gate])
    }
}

impl Hooks for HookChain {
    fn at_start(&self, source: SessionSource) -> BoxFuture<'_, Option<String>> {
        async move {
            let mut additions = Vec::new();
            for hooks in self.all() {
                additions.extend(hooks.at_start(source).await);
            }
            (!additions.is_empty()).then(|| additions.join("\n\n"))
        }
        .boxed()
    }

    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async move {
            let mut call = call.clone();
            let mut changed = None;
            for adviser in &self.advisers {
                let (input, opinion) = match adviser.before_tool(&call).await {
                    Verdict::Allow => continue,
                    Verdict::AllowWith(input) => (Some(input), Opinion::None),
                    Verdict::Approve { reason, input } => (input, Opinion::Approved { reason }),
                    Verdict::Ask(question) => {
                        let Question { reason, input, .. } = *question;
                        (input, Opinion::Ask { reason })
                    }
                    Verdict::Deny(denial) => return Verdict::Deny(denial),
                };
                if let Some(input) = input {
                    call.input = input.clone();
                    // It was an argument of the other input.
                    call.first_arg = None;
                    changed = Some(input);
                }
                call.opinion = call.opinion.and(opinion);
            }
            match (self.gate.before_tool(&call).await, changed) {
                (Verdict::Allow, Some(input)) => Verdict::AllowWith(input),
                (Verdict::Ask(mut question), Some(input)) => {
                    question.input.get_or_insert(input);
                    Verdict::Ask(question)
                }
                (verdict, _) => verdict,
            }
        }
        .boxed()
    }

    fn before_run<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<(), String>> {
        async move {
            for hooks in self.all() {
                hooks.before_run(call).await?;
            }
            Ok(())
        }
        .boxed()
    }

    fn answered(&self, call: &ToolCall, answer: &Answer) {
        for hooks in self.all() {
            hooks.answered(call, answer);
        }
    }

    fn additions(&self, calls: &[Arc<str>]) -> Option<String> {
        let additions = self.all().filter_map(|hooks| hooks.additions(calls));
        let additions: Vec<String> = additions.collect();
        (!additions.is_empty()).then(|| additions.join("\n\n"))
    }

    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        async move {
            let mut additions = Vec::new();
            // What one puts in its place is the prompt that the next one is asked about.
            let mut prompt = Cow::Borrowed(prompt);
            let mut replaced = None;
            for hooks in self.all() {
                match hooks.before_prompt(&prompt).await {
                    PromptVerdict::Accept => {}
                    PromptVerdict::AcceptWith(text) => additions.push(text),
                    PromptVerdict::Replace {
                        prompt: text,
                        addition,
                    } => {
                        retype(prompt.to_mut(), &text);
                        additions.extend(addition);
                        replaced = Some(text);
                    }
                    PromptVerdict::Deny { reason } => return PromptVerdict::Deny { reason },
                }
            }
            let addition = (!additions.is_empty()).then(|| additions.join("\n\n"));
            match (replaced, addition) {
                (Some(prompt), addition) => PromptVerdict::Replace { prompt, addition },
                (None, Some(addition)) => PromptVerdict::AcceptWith(addition),
                (None, None) => PromptVerdict::Accept,
            }
        }
        .boxed()
    }

    fn before_stop<'a>(&'a self, text: &'a str) -> BoxFuture<'a, StopVerdict> {
        async move {
            for hooks in self.all() {
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
            for hooks in self.all() {
                hooks.notify(event).await;
            }
        }
        .boxed()
    }
}
