//! What a session is made of, as the command line and the settings chose it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{
    Adviser, Confinement, Observer, PathError, PromptStage, Settings, SharedOperator, StopStage,
    ToolSource, Unattended,
};
use caliban_mcp::Servers;
use caliban_model::{BuiltInTool, Provider, RateCard, Reasoning};
use caliban_process::Guard;
use caliban_sandbox::Sandbox;
use caliban_telemetry::Traces;
use caliban_tools::{AgentKind, SearchConfig, WebPolicy};

use caliban_sessions::{SessionState, Writer};
use caliban_settings::PermissionMode;
use serde::{Deserialize, Serialize};

use crate::background::Fleet;
use crate::checkpoints::CheckpointPlace;
use crate::config_watch::ConfigWatch;
use crate::extras::Extras;
use crate::grounds::GroundParts;
use crate::model_list::ModelList;
use crate::notice_sink::NoticeSink;
use crate::options::{EarlierMode, RunOptions};
use crate::permissions::Permissions;
use crate::seat::Seat;
use crate::servers::Onlookers;
use crate::switches::Switches;

/// Everything a session is made of. Nothing is read from the environment or the disk except what
/// is named here.
#[derive(Debug)]
pub struct Choices {
    pub provider: Arc<dyn Provider>,
    pub settings: Settings,
    pub rates: Arc<RateCard>,
    pub session_id: String,
    /// How large images are sent.
    pub images: caliban_images::Limits,
    pub workspace: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub confinement: Confinement,
    pub home: Option<PathBuf>,
    pub system: SystemPrompt,
    pub permissions: Permissions,
    pub tools: Tools,
    /// What confines commands, hooks and servers; nothing where they are not.
    pub sandbox: Option<Arc<Sandbox>>,
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
    /// Which of them are switched off for the time being.
    pub switches: Arc<Switches>,
    /// What keeps rules and hooks as the settings say, before anybody is asked.
    pub watch: Option<Arc<ConfigWatch>>,
    /// Where they leave what they have to say.
    pub notice_sink: NoticeSink,
    /// Who is asked for consent.
    pub operator: SharedOperator,
    /// Who is heard before the gate decides, after the configured hooks.
    pub advisers: Vec<Arc<dyn Adviser>>,
    /// Who is asked about prompts after the configured hooks, before commands are expanded.
    pub prompt_stages: Vec<Arc<dyn PromptStage>>,
    /// Who is asked before the model stops, after the configured hooks.
    pub stop_stages: Vec<Arc<dyn StopStage>>,
    /// Who looks on beside the configured hooks.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Where servers find everybody who looks on.
    pub onlookers: Onlookers,
    /// Who knows the trace that a prompt is, where somebody follows it.
    pub traces: Option<Arc<Traces>>,
    /// The models that may be chosen.
    pub models: ModelList,
    /// Where agents are sent that go on by themselves.
    pub fleet: Option<Arc<dyn Fleet>>,
    /// The worktree that the session has for itself.
    pub seat: Option<Seat>,
}

impl Default for Partners {
    /// Nobody: what would be asked is refused.
    fn default() -> Self {
        Self {
            tool_source: None,
            servers: None,
            switches: Arc::default(),
            watch: None,
            notice_sink: NoticeSink::default(),
            operator: Arc::new(Unattended),
            advisers: Vec::new(),
            prompt_stages: Vec::new(),
            stop_stages: Vec::new(),
            observers: Vec::new(),
            onlookers: Onlookers::default(),
            traces: None,
            models: ModelList::default(),
            fleet: None,
            seat: None,
        }
    }
}

/// What a session continues, and where it is written down.
#[derive(Debug, Default)]
pub struct History {
    /// What there is to continue.
    pub earlier: Option<Box<SessionState>>,
    /// How hard the model was told to think, by this run or by an earlier one; the settings aside.
    pub effort: Option<Reasoning>,
    /// Who writes; nobody where nothing shall be saved.
    pub writer: Option<Writer>,
    /// Where the conversation can be read.
    pub transcript: Option<PathBuf>,
    /// Where the changes of its prompts are kept; nowhere if they are not.
    pub checkpoints: Option<CheckpointPlace>,
}

impl History {
    /// The session goes on planning, unless this run was told another mode.
    pub(crate) fn plan_unless(&mut self, mode: Option<PermissionMode>) {
        let leaves = mode.is_some_and(|mode| mode != PermissionMode::Plan);
        if let (true, Some(earlier)) = (leaves, &mut self.earlier) {
            earlier.plan_mode = false;
        }
    }

    /// The session goes on thinking as hard as it was told, unless this run was told otherwise.
    pub(crate) fn think_unless(&mut self, options: &mut RunOptions) {
        let earlier = match options.session.earlier_mode {
            EarlierMode::Kept => self.effort,
            EarlierMode::Left => None,
        };
        options.model.reasoning = options.model.reasoning.or(earlier);
        self.effort = options.model.reasoning;
    }
}

/// What stands at the beginning of the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemPrompt {
    #[default]
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
    /// The kind that is meant where a call names none.
    pub default_agent: Option<String>,
    /// What worktrees of sub-agents are made with; without it there are none.
    pub grounds: Option<GroundParts>,
}

/// Which tools are offered of those there are, to the session's agents and to those they start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
        let is_built_in = || BuiltInTool::named(name).is_some();
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
