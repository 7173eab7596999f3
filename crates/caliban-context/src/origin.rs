//! Who wrote something that shapes the prompt.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// Part of the program.
    BuiltIn,
    /// The user's own configuration.
    User,
    /// A plugin, by its name.
    Plugin(String),
    /// The workspace, or the repository around it.
    Project,
    /// A further directory of the session.
    Additional,
    /// The agent itself, in an earlier session.
    Agent,
}

impl Origin {
    /// Whether it arrived with files that others may have written.
    pub fn is_repository(&self) -> bool {
        match self {
            Self::Project | Self::Additional => true,
            Self::BuiltIn | Self::User | Self::Plugin(_) | Self::Agent => false,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::User => f.write_str("user"),
            Self::Plugin(name) => write!(f, "plugin {name}"),
            Self::Project => f.write_str("project"),
            Self::Additional => f.write_str("additional directory"),
            Self::Agent => f.write_str("agent"),
        }
    }
}
