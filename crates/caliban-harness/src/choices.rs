//! What a session is made of, as the command line and the settings chose it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{
    Confinement, Hooks, PathError, Settings, SharedOperator, ToolSource, Unattended,
};
use caliban_mcp::Servers;
use caliban_model::{Provider, RateCard};
use caliban_tools::{Guard, SearchConfig, WebPolicy};

use caliban_sessions::{SessionState, Writer};

use crate::asides::Asides;
use crate::extras::Extras;
use crate::permissions::Permissions;

/// Everything a session is made of. Nothing is read from the environment or the disk except what
/// is named here.
#[derive(Debug)]
pub struct Choices {
    pub provider: Arc<dyn Provider>,
    pub settings: Settings,
    pub rates: Arc<RateCard>,
    pub session_id: String,
    pub workspace: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub confinement: Confinement,
    pub home: Option<PathBuf>,
    pub system: SystemPrompt,
    pub permissions: Permissions,
    pub tools: Tools,
    pub offered: Offered,
    pub partners: Partners,
    /// What operators and projects add; nothing where the session must depend on nothing else.
    pub extras: Option<Box<Extras>>,
    pub history: History,
}

/// Those outside the session that take part in it.
#[derive(Debug)]
pub struct Partners {
    /// Tools that come and go while the session lives.
    pub tool_source: Option<Arc<dyn ToolSource>>,
    /// The servers among their sources, for hooks and prompts; the session ends them.
    pub servers: Option<Servers>,
    /// Where they leave what they have to say.
    pub asides: Asides,
    /// Who is asked for consent.
    pub operator: SharedOperator,
    /// Who is heard before the gate decides, beside the configured hooks.
    pub advisers: Vec<Arc<dyn Hooks>>,
}

impl Default for Partners {
    /// Nobody: what would be asked is refused.
    fn default() -> Self {
        Self {
            tool_source: None,
            servers: None,
            asides: Asides::default(),
            operator: Arc::new(Unattended),
            advisers: Vec::new(),
        }
    }
}

/// What a session continues, and where it is written down.
#[derive(Debug, Default)]
pub struct History {
    /// What there is to continue.
    pub earlier: Option<Box<SessionState>>,
    /// Who writes; nobody where nothing shall be saved.
    pub writer: Option<Writer>,
    /// Where the conversation can be read.
    pub transcript: Option<PathBuf>,
}

/// What stands at the beginning of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemPrompt {
    Default,
    Text(String),
    None,
}

/// Which tools there are.
#[derive(Debug)]
pub enum Tools {
    None,
    BuiltIn(Box<BuiltIn>),
}

/// Which of the tools there are may be used, by the session's agents and by those they start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Offered {
    #[default]
    All,
    Only(Vec<String>),
}

impl Offered {
    pub(crate) fn allows(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|offered| offered == name),
        }
    }
}

/// What the built-in tools work with.
#[derive(Debug)]
pub struct BuiltIn {
    /// The environment of commands, without keys.
    pub environment: Vec<(OsString, OsString)>,
    /// The executable that guards commands.
    pub guard: Guard,
    /// Where background jobs keep their output.
    pub jobs_directory: PathBuf,
    pub search: SearchConfig,
    pub web: WebPolicy,
    pub sub_agents: SubAgents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubAgents {
    Offered,
    Withheld,
}

/// Why a session cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("workspace: {0}")]
    Workspace(#[from] PathError),
}
