//! The directories and files that context is read from, resolved by the caller.

use std::path::{Path, PathBuf};

/// Where everything is. All paths are absolute; none needs to exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The directory the session works in.
    pub workspace: PathBuf,
    /// The directory whose `.caliban` counts: the workspace, or one above it.
    pub project: PathBuf,
    /// What `~/` means.
    pub home: PathBuf,
    /// The user's configuration: `CLAUDE.md`, `skills`, `output-styles`, `commands`.
    pub config: PathBuf,
    /// The user's directory of another program of our kind: `agents`, `commands`, `skills`.
    pub foreign: PathBuf,
    /// Its instructions, where they count as the user's.
    pub foreign_instructions: Option<PathBuf>,
    /// The program's data; holds `skills` too.
    pub data: PathBuf,
    /// The agent's notes on this workspace. No two workspaces may share it.
    pub notes: PathBuf,
    /// Which imports from outside have been approved.
    pub imports_allowlist: PathBuf,
    /// The plugins that are enabled.
    pub plugins: Vec<PluginPlace>,
}

/// An enabled plugin, and what of it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginPlace {
    pub name: String,
    /// Nothing outside of it is read.
    pub path: PathBuf,
    /// Where it keeps what it writes.
    pub data: PathBuf,
    /// Directories of skills, or of one.
    pub skills: Vec<PathBuf>,
    /// Files, and directories of files.
    pub styles: Vec<PathBuf>,
    pub commands: Vec<CommandPlace>,
    /// Files, and directories of files.
    pub agents: Vec<PathBuf>,
}

/// A file or a directory of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPlace {
    pub path: PathBuf,
    /// What the command of a file is called, if not as the file.
    pub name: Option<String>,
    pub says: CommandSays,
}

impl CommandPlace {
    /// A place where the files themselves say everything.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            name: None,
            says: CommandSays::default(),
        }
    }
}

/// What is said of a command elsewhere than in its file, which counts before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandSays {
    /// Its text, where it has no file.
    pub content: Option<String>,
    pub description: Option<String>,
    pub argument_hint: Option<String>,
    pub model: Option<String>,
    pub allowed_tools: Option<Vec<String>>,
}

impl PluginPlace {
    /// A plugin that has everything where it usually is.
    pub fn usual(name: impl Into<String>, path: PathBuf) -> Self {
        Self {
            name: name.into(),
            skills: vec![path.join(Surface::Skills.directory())],
            styles: vec![path.join(Surface::Styles.directory())],
            commands: vec![CommandPlace::at(path.join(Surface::Commands.directory()))],
            agents: vec![path.join(Surface::Agents.directory())],
            data: path.join("data"),
            path,
        }
    }
}

/// What directories are looked through for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    Skills,
    Styles,
    Commands,
    Agents,
}

impl Surface {
    /// The directory that it usually is in.
    pub(crate) fn directory(self) -> &'static str {
        match self {
            Self::Skills => "skills",
            Self::Styles => "output-styles",
            Self::Commands => "commands",
            Self::Agents => "agents",
        }
    }
}

/// A directory of a project's own configuration.
pub(crate) fn project_part(directory: &Path, part: &str) -> PathBuf {
    directory.join(".caliban").join(part)
}

/// The same of a project that was set up for another program of our kind.
pub(crate) fn foreign_part(directory: &Path, part: &str) -> PathBuf {
    directory.join(".claude").join(part)
}
