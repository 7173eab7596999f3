//! The scopes settings come from, in order of priority, and the filter of `--setting-sources`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::SettingsError;

/// Where a value was set. The order of declaration is the order of priority, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The directory of the machine's operator.
    Managed,
    /// The user's configuration directory.
    User,
    /// `.caliban/settings.*` of the workspace, shared with everyone who works on it.
    Project,
    /// `.caliban/settings.local.*` of the workspace, for this machine only.
    Local,
    /// The `--settings` overlay.
    Cli,
}

impl Scope {
    pub const ALL: [Self; 5] = [
        Self::Managed,
        Self::User,
        Self::Project,
        Self::Local,
        Self::Cli,
    ];

    /// The scopes that have files.
    pub const ON_DISK: [Self; 4] = [Self::Managed, Self::User, Self::Project, Self::Local];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Cli => "cli",
        }
    }

    /// Whether the scope's files arrive with the workspace, so that whoever wrote the workspace
    /// wrote them.
    pub fn is_workspace(self) -> bool {
        match self {
            Self::Project | Self::Local => true,
            Self::Managed | Self::User | Self::Cli => false,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The scopes on disk that are read. The operator's always is, because nobody may leave that
/// policy behind, and so is the overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources(Vec<Scope>);

impl Sources {
    pub fn all() -> Self {
        Self(Scope::ON_DISK.to_vec())
    }

    /// What nobody can leave out.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    pub fn only(scope: Scope) -> Self {
        Self(vec![scope])
    }

    pub fn contains(&self, scope: Scope) -> bool {
        match scope {
            Scope::Managed | Scope::Cli => true,
            Scope::User | Scope::Project | Scope::Local => self.0.contains(&scope),
        }
    }
}

impl Default for Sources {
    fn default() -> Self {
        Self::all()
    }
}

impl FromStr for Sources {
    type Err = SettingsError;

    /// Reads `user,project`. A name that is no scope on disk is an error, never skipped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split(',')
            .map(|name| {
                let name = name.trim();
                Scope::ON_DISK
                    .into_iter()
                    .find(|scope| scope.as_str() == name)
                    .ok_or_else(|| SettingsError::UnknownSource {
                        name: name.to_owned(),
                    })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_a_list_of_the_scopes_on_disk() {
        let sources: Sources = "user, project".parse().unwrap();
        assert!(sources.contains(Scope::User) && sources.contains(Scope::Project));
        assert!(!sources.contains(Scope::Local));
        for always in [Scope::Managed, Scope::Cli] {
            assert!(sources.contains(always), "{always}");
        }
    }

    #[test]
    fn an_unknown_source_is_an_error() {
        for text in ["usr", "cli", "", "user,,project", "User"] {
            assert!(text.parse::<Sources>().is_err(), "{text}");
        }
        assert_eq!(
            "user,globl".parse::<Sources>().unwrap_err().to_string(),
            "`--setting-sources` knows no scope `globl`; use managed, user, project or local"
        );
    }
}
