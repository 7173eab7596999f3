//! What a session is made of, as the command line and the settings chose it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{
    Confinement, Hooks, PathError, Settings, SharedOperator, ToolSource, Unattended,
};
use caliban_mcp::Servers;
use caliban_model::{Provider, RateCard};
use caliban_permissions::KNOWN;
use caliban_process::Guard;
use caliban_tools::{AgentKind, SearchConfig, WebPolicy};

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
    pub selection: Selection,
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
    /// The default, and this after it.
    Extended(String),
    Text(String),
    None,
}

/// Which tools there are.
#[derive(Debug)]
pub enum Tools {
    None,
    BuiltIn(Box<BuiltIn>),
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
    /// Kinds of sub-agents beside the general one.
    pub agent_kinds: Vec<AgentKind>,
}

/// Which tools are offered of those there are, to the session's agents and to those they start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these of all tools.
    pub only: Option<Vec<String>>,
    /// Only these of the built-in tools.
    pub built_in: Option<Vec<String>>,
    /// Tools of any kind that are not offered.
    pub without: Vec<String>,
}

impl Selection {
    /// Whether a tool is offered.
    pub fn keeps(&self, name: &str) -> bool {
        let is_built_in = || KNOWN.iter().any(|tool| tool.name == name);
        let is_listed = |list: &Vec<String>| list.iter().any(|wanted| wanted == name);
        self.only.as_ref().is_none_or(is_listed)
            && (self.built_in.as_ref().is_none_or(is_listed) || !is_built_in())
            && !is_listed(&self.without)
    }
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
