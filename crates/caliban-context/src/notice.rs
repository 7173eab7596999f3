//! What the operator should know about the context: things left out, cut or replaced.

use std::path::PathBuf;

use crate::origin::Origin;
use crate::source::FileProblem;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    #[error("`{}` is not used: {problem}", path.display())]
    Unusable { path: PathBuf, problem: FileProblem },
    #[error("`{}` is not used: {reason}", path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error("`{}:{line}` is not used: {reason}", path.display())]
    WrongLine {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("`{}:{line}`: {reason}", path.display())]
    IdleLine {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("{count} invisible characters were removed from `{}`", path.display())]
    Invisible { path: PathBuf, count: usize },
    #[error("`{}` was cut by {bytes} bytes to fit the memory budget", path.display())]
    Truncated { path: PathBuf, bytes: usize },
    #[error("only the first {limit} {what} are used")]
    TooMany { what: &'static str, limit: usize },
    #[error("`{}` imports `{target}`, which does not exist", by.display())]
    ImportMissing { by: PathBuf, target: String },
    #[error("`{}` imports `{target}`: only local files can be imported", by.display())]
    ImportRemote { by: PathBuf, target: String },
    #[error("`{}` imports `{target}` more than {limit} levels deep", by.display())]
    ImportDepth {
        by: PathBuf,
        target: String,
        limit: usize,
    },
    #[error(
        "`{}`, wanted by `{}`, is outside the workspace and was not read; `caliban memory \
         approve` or CALIBAN_APPROVE_IMPORTS=1 lets it be read",
        path.display(), by.display()
    )]
    ImportUnapproved { path: PathBuf, by: PathBuf },
    #[error(
        "`{}`, wanted by `{}`, has changed since it was approved and was not read; \
         `caliban memory approve` or CALIBAN_APPROVE_IMPORTS=1 lets it be read",
        path.display(), by.display()
    )]
    ImportChanged { path: PathBuf, by: PathBuf },
    #[error("the list of approved imports `{}` is not used: {reason}", path.display())]
    Allowlist { path: PathBuf, reason: String },
    #[error("the pattern `{pattern}` in claude_md_excludes is not used: {reason}")]
    Pattern { pattern: String, reason: String },
    #[error("the {kind} `{name}` ({by}) replaces the one of that name ({hidden})")]
    Replaced {
        kind: Kind,
        name: String,
        by: Origin,
        hidden: Origin,
    },
    #[error(
        "the descriptions of all skills together are too long: the model sees {limit} characters \
         of each{}; shorten them, or hide some with `disable-model-invocation: true`",
        match missing {
            0 => String::new(),
            missing => format!(", and {missing} skills not at all"),
        }
    )]
    MenuCut { limit: usize, missing: usize },
    #[error("`{}` is not used: `/{name}` is a built-in command", path.display())]
    Reserved { path: PathBuf, name: String },
    #[error(
        "typing `/{name}` does not use the skill of this name: it is {taken}; rename one of them"
    )]
    SkillHidden { name: String, taken: Taken },
    #[error("there is no output style `{name}`; the default is used. There are: {known}")]
    UnknownStyle { name: String, known: String },
    #[error("the plugin `{by}` sets the output style, so `{requested}` is not used")]
    StyleLocked { requested: String, by: String },
}

/// Whose a name is already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Taken {
    #[error("a built-in command")]
    BuiltIn,
    #[error("a command of your own ({0})")]
    Command(Origin),
}

/// Things that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Skill,
    Style,
    Command,
    Agent,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Skill => "skill",
            Self::Style => "output style",
            Self::Command => "command",
            Self::Agent => "agent",
        })
    }
}
