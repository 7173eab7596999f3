//! What is read and how much of it, as settings, variables and flags have decided.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{OpenReading, ReadGuard};

/// The most tokens of memory, unless configured.
pub const DEFAULT_COMBINED_TOKENS: u64 = 32_000;

/// Everything that can be configured about context.
#[derive(Debug, Clone)]
pub struct Options {
    pub instructions: InstructionFiles,
    pub notes: Notes,
    pub skills: SkillSources,
    pub customization: Customization,
    /// Gitignore patterns of instruction files that are not read, relative to the workspace.
    pub excludes: Vec<String>,
    /// Further directories whose instruction files count; see [`opted_in_directories`].
    pub directories: Vec<PathBuf>,
    /// Further directories whose skills count.
    pub skill_directories: Vec<PathBuf>,
    pub imports: ImportApproval,
    /// Which files may be imported, wherever they lie.
    pub reading: Arc<dyn ReadGuard>,
    pub caps: MemoryCaps,
}

/// Which instruction files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionFiles {
    /// None at all.
    Off,
    /// The user's, and the workspace's own `CLAUDE.md` without imports, rules or nested files.
    WorkspaceOnly,
    /// The user's, all of the workspace and above it, imports, rules, and nested ones on demand.
    Walk,
}

/// Whether the agent's notes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notes {
    Off,
    On,
}

/// Where skills come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillSources {
    Off,
    Own,
    /// Also the `.claude/skills` of the workspace and of the home.
    OwnAndForeign,
}

/// Who may add skills, styles and commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Customization {
    /// Nobody; only what is built in.
    BuiltIn,
    Plugins,
    All,
}

/// What happens to imports from outside the workspace that are not on the allowlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportApproval {
    /// They are left out and reported, so that somebody can be asked.
    Listed,
    /// They are read: the operator approved all of them beforehand.
    All,
}

/// The most tokens of memory, at four bytes a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryCaps {
    /// Of the agent's notes.
    pub notes: Option<u64>,
    /// Of all instruction files.
    pub instructions: Option<u64>,
    /// Of both.
    pub combined: u64,
}

impl Default for MemoryCaps {
    fn default() -> Self {
        Self {
            notes: None,
            instructions: None,
            combined: DEFAULT_COMBINED_TOKENS,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            instructions: InstructionFiles::Walk,
            notes: Notes::On,
            skills: SkillSources::Own,
            customization: Customization::All,
            excludes: Vec::new(),
            directories: Vec::new(),
            skill_directories: Vec::new(),
            imports: ImportApproval::Listed,
            reading: OpenReading::shared(),
            caps: MemoryCaps::default(),
        }
    }
}

impl Options {
    /// Nothing from disk: the prompt depends only on what is passed in.
    pub fn bare() -> Self {
        Self {
            instructions: InstructionFiles::Off,
            notes: Notes::Off,
            skills: SkillSources::Off,
            customization: Customization::BuiltIn,
            ..Self::default()
        }
    }
}

/// The further directories whose instruction files count. The variable is a switch for all of
/// the session's additional directories, or a list of absolute paths separated by colons.
pub fn opted_in_directories(variable: Option<&str>, additional: &[PathBuf]) -> Vec<PathBuf> {
    let Some(value) = variable.filter(|value| !value.is_empty()) else {
        return Vec::new();
    };
    let listed: Vec<PathBuf> = value
        .split(':')
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .collect();
    if listed.is_empty() {
        additional.to_vec()
    } else {
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_switch_or_a_list() {
        let additional = [PathBuf::from("/a"), PathBuf::from("/b")];
        assert_eq!(
            opted_in_directories(None, &additional),
            [""; 0].map(PathBuf::from)
        );
        assert!(opted_in_directories(Some(""), &additional).is_empty());
        assert_eq!(opted_in_directories(Some("1"), &additional), additional);
        assert_eq!(
            opted_in_directories(Some("/c:/d"), &additional),
            ["/c", "/d"].map(PathBuf::from)
        );
    }
}
