//! Who wrote a rule.

use std::fmt;

use caliban_settings::Scope;

/// Who wrote a rule. The order of declaration is the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Added while the session runs.
    Runtime,
    /// Of one MCP server, about its own tools.
    Server,
    /// `--allow`, `--deny`, `--ask`.
    Flag,
    /// `--settings`.
    Overlay,
    Local,
    Project,
    User,
    Managed,
    /// Approved by the program that drives the session; answers only where nobody else does.
    Client,
    BuiltIn,
}

impl Origin {
    pub fn of(scope: Scope) -> Self {
        match scope {
            Scope::Managed => Self::Managed,
            Scope::User => Self::User,
            Scope::Project => Self::Project,
            Scope::Local => Self::Local,
            Scope::Cli => Self::Overlay,
        }
    }

    /// Where a rule comes from, in words.
    pub fn described(self) -> &'static str {
        match self {
            Self::Runtime => "of this session",
            Self::Server => "of the MCP server",
            Self::Flag => "from the command line",
            Self::Overlay => "from --settings",
            Self::Local => "in the local scope",
            Self::Project => "in the project scope",
            Self::User => "in the user scope",
            Self::Managed => "in the managed scope",
            Self::Client => "of the program that drives the session",
            Self::BuiltIn => "built in",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "session",
            Self::Server => "server",
            Self::Flag => "cli",
            Self::Overlay => "settings",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Managed => "managed",
            Self::Client => "client",
            Self::BuiltIn => "built-in",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
