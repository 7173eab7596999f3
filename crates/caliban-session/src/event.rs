//! What a session tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_agent::{Answer, Elicitation, Event, Inquiry, Outcome, Reply, RunTotals};
use caliban_model::Reasoning;
use caliban_settings::PermissionMode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::command::{PromptId, RuleChange};

/// The version of commands and events. What a reader does not know it may pass over.
pub const PROTOCOL: u32 = 1;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// Counted from 1 without gaps.
    pub seq: u64,
    pub at: Timestamp,
    /// The prompt that was being worked on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exchange: Option<PromptId>,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The first event: what the session is.
    Opened(Arc<Facts>),
    /// A prompt waits behind so many others.
    Queued {
        prompt: PromptId,
        position: usize,
    },
    /// A prompt is worked on from here, and this is what the session is by now.
    Began {
        prompt: PromptId,
        facts: Arc<Facts>,
    },
    /// A step of the work, or something that a part of the session has to say.
    Run(Event),
    /// A prompt will not be worked on, because whoever sent it said so.
    TakenBack {
        prompt: PromptId,
    },
    /// An interrupt was heard; these prompts wait behind what it stops.
    Interrupted {
        waiting: Vec<PromptId>,
    },
    /// The end of a prompt.
    Ended {
        prompt: PromptId,
        outcome: Outcome,
        totals: Box<RunTotals>,
    },
    /// A prompt was sent again: this is how it ended.
    Repeated {
        prompt: PromptId,
        outcome: Outcome,
        totals: Box<RunTotals>,
    },
    /// A command that has no effect, and why.
    Refused(Refused),
    Asked(Box<Asked>),
    Answered(Answered),
    ModeChanged {
        mode: PermissionMode,
    },
    ModelChanged {
        model: Arc<str>,
    },
    ReasoningChanged {
        reasoning: Reasoning,
    },
    RuleChanged(RuleChange),
    /// Nothing is being worked on and nothing waits.
    Idle,
    /// Nothing will be worked on any more; what the session started is being ended.
    Closing,
    /// The last event.
    Closed {
        why: ClosedWhy,
        /// Why what was said could not be kept.
        trouble: Option<String>,
    },
}

/// What a session is at a moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The version of what is told: [`PROTOCOL`] where this program tells it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub protocol: Option<u32>,
    pub session_id: String,
    pub provider: String,
    pub model: String,
    pub fallback_model: Option<String>,
    pub tools: Vec<String>,
    pub cwd: String,
    pub permission_mode: String,
    pub trusted: bool,
    pub bare: bool,
    pub setting_sources: Vec<String>,
    pub servers: Vec<McpServer>,
    pub skills: Vec<String>,
    #[serde(default)]
    pub plugins: Vec<PluginFacts>,
    /// Commands that can be typed, with what they do.
    pub commands: Vec<(String, String)>,
    /// What may be written after the names of those that take anything.
    #[serde(default)]
    pub hints: BTreeMap<String, String>,
    /// Messages of the conversation.
    pub messages: usize,
    pub context_window: u64,
    pub program_version: String,
    pub pricing_as_of: String,
    /// What whoever began the session should know; said once, when it opens.
    pub warnings: Vec<String>,
    /// What confines commands.
    #[serde(default)]
    pub sandbox: SandboxFacts,
}

/// A plugin that takes part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginFacts {
    pub name: String,
    pub path: String,
    /// `managed`, `given`, `project`, `user`, or its name and marketplace.
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
}

/// What confines the commands of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxFacts {
    /// `bwrap`, `bwrap-weaker`, `landlock`, `seatbelt` or `none`.
    pub backend: String,
    /// Whether the settings ask for one.
    pub enabled: bool,
    /// What a full sandbox has and this one has not.
    pub reduced: Vec<String>,
    /// `closed`, `proxy`, `operator` or `open`.
    pub egress: String,
    /// Why there is none although it was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

impl Default for SandboxFacts {
    fn default() -> Self {
        Self {
            backend: "none".to_owned(),
            enabled: false,
            reduced: Vec::new(),
            egress: "open".to_owned(),
            reason: None,
        }
    }
}

/// Where an MCP server stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    pub name: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// A command without effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub what: Place,
    pub reason: String,
}

/// What a refused command was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// This prompt is not worked on.
    Prompt(PromptId),
    TakeBack(PromptId),
    /// There is no such question, or not any more.
    Question(Arc<str>),
    Mode,
    Model,
    Rule,
    Server(String),
    Job(String),
}

/// A question that somebody who attends may answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub question: Arc<str>,
    /// The call that runs the agent which asks, where it is not the session's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<Arc<str>>,
    pub kind: QuestionKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    Permission(Box<Inquiry>),
    Elicitation(Elicitation),
}

/// The end of a question. Each has exactly one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    pub question: Arc<str>,
    pub by: By,
}

/// Who ended a question, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Whoever attends, or what stands in where nobody does.
    Operator(Answer),
    Replied(Reply),
    /// What asked does not want to know any more.
    Withdrawn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedWhy {
    /// It was told to.
    Shutdown,
    /// The budget is spent.
    Budget,
    /// Our own code broke.
    Crashed,
    /// Nobody holds it any more.
    Abandoned,
}
