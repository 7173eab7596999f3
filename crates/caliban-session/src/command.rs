//! What a session can be told to do.

use std::sync::Arc;

use caliban_agent::{Answer, Reply};
use caliban_model::{Message, Reasoning};
use caliban_settings::{PermissionMode, RuleAction};
use serde::{Deserialize, Serialize};

/// Names one prompt of a session. The same id is the same piece of work.
pub type PromptId = Arc<str>;

/// One wish. Everything that comes of it is told as events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    Prompt {
        prompt: Prompt,
        delivery: Delivery,
    },
    /// A prompt that waits is not wanted any more.
    TakeBack {
        prompt: PromptId,
    },
    /// Stops what is being worked on; what waits goes on.
    Interrupt,
    /// Answers a question about a call.
    Answer {
        question: Arc<str>,
        answer: Answer,
    },
    /// Answers what a server wants to know.
    AnswerElicitation {
        question: Arc<str>,
        reply: Reply,
    },
    SetMode {
        mode: PermissionMode,
    },
    SetModel {
        model: ModelChange,
    },
    SetReasoning {
        reasoning: Reasoning,
    },
    Rule(RuleChange),
    /// Shortens the conversation, with a hint at what matters.
    Compact {
        id: PromptId,
        instructions: Option<String>,
    },
    /// Takes prompts back.
    Rewind {
        id: PromptId,
        rewind: Rewind,
    },
    /// Runs a line in the shell: judged like a call of the model's, which hears nothing of it.
    Shell {
        id: PromptId,
        line: String,
    },
    /// From here on not everything may be allowed without asking, and never again.
    DropLatch,
    Servers(ServerCommand),
    /// Ends a background job.
    EndJob {
        job: String,
    },
    /// Commands that are waited for go on as background jobs.
    Background,
    Shutdown {
        when: Shutdown,
    },
}

/// Something to work on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    pub id: PromptId,
    pub message: Message,
    pub attach: Attach,
}

impl Prompt {
    /// A text that names files with `@path` and brings them along.
    pub fn typed(id: impl Into<PromptId>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            message: Message::user(text.into()),
            attach: Attach::Named,
        }
    }
}

/// Whether what a prompt names with `@` goes along with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attach {
    /// The first block is what was typed; it may name files and resources.
    Named,
    /// Everything is there already.
    Nothing,
}

/// When a prompt is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// After those before it.
    Queue,
    /// Between two turns of what is being worked on; at once where nothing is.
    Steer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelChange {
    /// The one that the session began with.
    Default,
    Named(Arc<str>),
}

/// Which prompts are taken back, and in what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewind {
    /// The prompt at whose end the work goes on; 0 is before the first.
    pub to: u32,
    pub what: Restore,
    pub others: Others,
}

/// What is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restore {
    Both,
    /// The files; what was said stays.
    Code,
    /// What was said; the files stay.
    Conversation,
    /// A summary takes the place of what was said since.
    SummarizeFrom,
    /// A summary takes the place of what was said until then.
    SummarizeUpTo,
}

/// What becomes of files that somebody else has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Others {
    /// They stay as they are.
    Spared,
    /// They are overwritten, and kept.
    Overwritten,
}

/// A change of the session's own rules, which are above all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum RuleChange {
    Add {
        pattern: String,
        action: RuleAction,
    },
    Remove {
        pattern: String,
        action: RuleAction,
    },
    /// Takes back all that were added with this action.
    Clear {
        action: RuleAction,
    },
}

/// What can be done about an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ServerCommand {
    Reconnect { server: String },
    Enable { server: String },
    Disable { server: String },
}

impl ServerCommand {
    pub fn server(&self) -> &str {
        match self {
            Self::Reconnect { server } | Self::Enable { server } | Self::Disable { server } => {
                server
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shutdown {
    /// When everything that waits has been worked on.
    WhenIdle,
    /// What is being worked on is cancelled, and what waits is not begun.
    Now,
}
