//! What is known about a server at a moment.

use std::fmt;
use std::sync::Arc;

/// Where a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is being started or reached, for the first time or again.
    Connecting,
    Connected {
        /// How many of its tools can be used.
        tools: usize,
        info: ServerInfo,
    },
    /// It is not tried any more, until somebody asks for it.
    Failed {
        reason: String,
    },
    /// Somebody has to log in.
    NeedsAuth {
        reason: String,
        remedy: String,
    },
    Disabled,
}

/// What a server says it is. The server's own words, cleaned and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
    pub protocol: String,
}

/// A server and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// As it is called in the settings.
    pub name: Arc<str>,
    pub status: Status,
    /// The tools that can be used, by the server's own names; third-party text, cleaned and bounded.
    pub tools: Vec<String>,
    /// What the server wants its users to know; third-party text, cleaned and bounded.
    pub instructions: Option<Arc<str>>,
    /// Tools whose definitions have changed and that wait for approval.
    pub withheld: Vec<String>,
}

impl Status {
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Connecting => false,
            Self::Connected { .. }
            | Self::Failed { .. }
            | Self::NeedsAuth { .. }
            | Self::Disabled => true,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => formatter.write_str("is still connecting"),
            Self::Connected { tools, .. } => write!(formatter, "is connected, with {tools} tools"),
            Self::Failed { reason } => write!(formatter, "has failed: {reason}"),
            Self::NeedsAuth { reason, remedy } => {
                write!(formatter, "needs a login: {reason}; run `{remedy}`")
            }
            Self::Disabled => formatter.write_str("is disabled in the settings"),
        }
    }
}
