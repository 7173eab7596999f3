//! The events handlers can be attached to, and what a handler's answer is worth for each.

use std::fmt;

/// An event that fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventName {
    SessionStart,
    SessionEnd,
    UserPromptSubmit,
    PreCompact,
    PostCompact,
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    ConfigChange,
    CwdChanged,
    FileChanged,
    SubagentStart,
    SubagentStop,
    WorktreeCreate,
    WorktreeRemove,
    TaskCreated,
    TaskCompleted,
    PermissionRequest,
    PermissionDenied,
    Notification,
    Stop,
    StopFailure,
}

/// What a handler may do about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    /// It may refuse; when it cannot decide, it refuses.
    Gates,
    /// It may add text for the model or send it on; when it fails, nothing comes of it.
    Adds,
    /// It is told.
    Observes,
}

/// What a matcher is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Tool,
    /// How the session came to be.
    Source,
    /// Why history is shortened.
    Trigger,
    /// What a notification is about.
    Notification,
    Nothing,
}

/// Names that are accepted and never fire.
pub(crate) const RESERVED: [&str; 7] = [
    "Setup",
    "UserPromptExpansion",
    "PostToolBatch",
    "InstructionsLoaded",
    "Elicitation",
    "ElicitationResult",
    "TeammateIdle",
];

impl EventName {
    pub const ALL: [Self; 22] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::UserPromptSubmit,
        Self::PreCompact,
        Self::PostCompact,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::ConfigChange,
        Self::CwdChanged,
        Self::FileChanged,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::WorktreeCreate,
        Self::WorktreeRemove,
        Self::TaskCreated,
        Self::TaskCompleted,
        Self::PermissionRequest,
        Self::PermissionDenied,
        Self::Notification,
        Self::Stop,
        Self::StopFailure,
    ];

    /// The name under which it is configured.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::ConfigChange => "ConfigChange",
            Self::CwdChanged => "CwdChanged",
            Self::FileChanged => "FileChanged",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::WorktreeCreate => "WorktreeCreate",
            Self::WorktreeRemove => "WorktreeRemove",
            Self::TaskCreated => "TaskCreated",
            Self::TaskCompleted => "TaskCompleted",
            Self::PermissionRequest => "PermissionRequest",
            Self::PermissionDenied => "PermissionDenied",
            Self::Notification => "Notification",
            Self::Stop => "Stop",
            Self::StopFailure => "StopFailure",
        }
    }

    /// Whether an event of this name ever fires.
    pub fn exists(name: &str) -> bool {
        Self::parse(name).is_some()
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    pub(crate) fn power(self) -> Power {
        match self {
            Self::PreToolUse | Self::UserPromptSubmit => Power::Gates,
            Self::SessionStart | Self::Stop => Power::Adds,
            Self::SessionEnd
            | Self::PreCompact
            | Self::PostCompact
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::ConfigChange
            | Self::CwdChanged
            | Self::FileChanged
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::WorktreeCreate
            | Self::WorktreeRemove
            | Self::TaskCreated
            | Self::TaskCompleted
            | Self::PermissionRequest
            | Self::PermissionDenied
            | Self::Notification
            | Self::StopFailure => Power::Observes,
        }
    }

    pub(crate) fn subject(self) -> Subject {
        match self {
            Self::PreToolUse
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::PermissionRequest
            | Self::PermissionDenied => Subject::Tool,
            Self::SessionStart => Subject::Source,
            Self::PreCompact | Self::PostCompact => Subject::Trigger,
            Self::SessionEnd
            | Self::UserPromptSubmit
            | Self::ConfigChange
            | Self::CwdChanged
            | Self::FileChanged
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::WorktreeCreate
            | Self::WorktreeRemove
            | Self::TaskCreated
            | Self::TaskCompleted
            | Self::Stop
            | Self::StopFailure => Subject::Nothing,
            Self::Notification => Subject::Notification,
        }
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for event in EventName::ALL {
            assert_eq!(EventName::parse(event.as_str()), Some(event));
        }
        for name in RESERVED {
            assert_eq!(EventName::parse(name), None);
        }
    }
}
