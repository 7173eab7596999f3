//! What happens in a session, as those are told who look on.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_model::Usage;

use crate::call::ToolCall;
use crate::event::{CompactionReason, Denial};
use crate::outcome::Outcome;
use crate::tool::ToolOutput;

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

/// What somebody who is not looking may want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationKind {
    /// A call waits for consent.
    Question,
    /// An MCP server asks something.
    Elicitation,
    /// The work on a prompt is over.
    Ended,
}

impl NotificationKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Question => "permission_prompt",
            Self::Elicitation => "elicitation_dialog",
            Self::Ended => "run_ended",
        }
    }
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
    /// A sub-agent is about to work in a worktree of its own.
    WorktreeCreate {
        name: String,
        path: PathBuf,
        branch: String,
        base: String,
    },
    /// It works there no more; the verdict says what became of what it did.
    WorktreeRemove {
        name: String,
        path: PathBuf,
        branch: Option<String>,
        verdict: String,
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
        kind: NotificationKind,
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
            Self::WorktreeCreate { .. } => "WorktreeCreate",
            Self::WorktreeRemove { .. } => "WorktreeRemove",
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
