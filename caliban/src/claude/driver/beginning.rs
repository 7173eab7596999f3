//! The session that the flags and the client want.

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_agent::{Tool, ToolSource};
use caliban_harness::{Choices, History, Session, SystemPrompt, Tools};
use caliban_protocol::claude::{ASK_USER_QUESTION, Initialize, SubAgent, ours};
use caliban_settings::{RuleAction, RuleSpec};
use caliban_tools::AgentKind;

use super::super::hooks::TheirEvents;
use super::super::host::readable;
use super::super::invocation::Invocation;
use super::super::models;
use super::super::operator::{HostOperator, Prompts};
use super::super::questions::{AlwaysAsked, AskUserQuestion};
use super::super::renaming::Renaming;
use super::super::requests::{Known, Reception};
use super::super::servers::{Sources, Switched, links};
use super::super::structured::{Fixed, Reminder, StructuredOutput};
use super::{Begun, Work};
use crate::console::note;
use crate::exit::Failure;
use crate::extras;
use crate::history;
use crate::mcp::Servers;
use crate::session::{self, Continued};

/// Commands that only look, and run without a rule.
const LOOKING: [&str; 24] = [
    "cat",
    "cut",
    "date",
    "df",
    "du",
    "echo",
    "false",
    "file",
    "git branch",
    "git diff",
    "git log",
    "git show",
    "git status",
    "grep",
    "head",
    "ls",
    "pwd",
    "stat",
    "tail",
    "true",
    "uname",
    "wc",
    "which",
    "whoami",
];

impl Work<'_> {
    /// What is known before the session has begun.
    pub(super) fn known(&self) -> Known {
        let settings = self.configuration.settings();
        let able = self.chosen.provider.capabilities(&self.chosen.model);
        let mut agents = BTreeMap::new();
        agents.insert(
            "general-purpose".to_owned(),
            "Works on a task of its own".to_owned(),
        );
        Known {
            model: self.chosen.model.clone(),
            default_model: self.chosen.model.clone(),
            context_window: able.context_window.unwrap_or(200_000),
            commands: Vec::new(),
            agents,
            servers: None,
            hosted: Vec::new(),
            switches: Arc::default(),
            output_style: settings
                .output_style
                .clone()
                .unwrap_or_else(|| "default".to_owned()),
            settings: serde_json::to_value(settings).unwrap_or_default(),
        }
    }

    /// The servers of tools that live in the client: those of the flags, and those it names.
    pub(super) fn client_servers(&self, reception: &Reception<'_>) -> Vec<String> {
        let mut servers = self.invocation.hosted.clone();
        servers.extend(reception.wishes().sdk_mcp_servers);
        servers.sort();
        servers.dedup();
        servers
    }

    /// Starts the servers of tools; what they ask is put to the client.
    pub(super) fn start_servers(
        &self,
        reception: &Reception<'_>,
        hosted: &[String],
    ) -> Result<Servers, Failure> {
        let operator = Arc::new(HostOperator {
            host: Arc::clone(&reception.host),
            prompts: self.invocation.prompts,
        });
        Servers::start(
            &self.invocation.cli,
            self.configuration,
            links(&reception.host.channel, hosted),
            operator,
            self.debug_log()?,
        )
    }

    /// Makes the session that the flags and the client want.
    pub(super) fn begin(
        &self,
        reception: &Reception<'_>,
        history: History,
        servers: Servers,
    ) -> Result<Begun, Failure> {
        let wishes = reception.wishes();
        let invocation = &self.invocation;
        let host = &reception.host;
        let schema = invocation
            .json_schema
            .clone()
            .or_else(|| wishes.json_schema.clone());
        let mut partners = servers.partners();
        partners.advisers.push(Arc::clone(&reception.hooks) as _);
        let switches = Arc::clone(&reception.known().switches);
        partners.tool_source = partners
            .tool_source
            .map(|source| Arc::new(Switched { source, switches }) as Arc<dyn ToolSource>);
        let mut own: Vec<Arc<dyn Tool>> = Vec::new();
        if self.asks_questions() {
            own.push(Arc::new(AskUserQuestion::new()));
            partners.advisers.push(Arc::new(AlwaysAsked));
        }
        if let Some(schema) = schema {
            let wrong = |reason| Failure::Usage(format!("Error: --json-schema: {reason}"));
            own.push(Arc::new(StructuredOutput::new(schema).map_err(wrong)?));
            partners.advisers.push(Arc::new(Reminder::default()));
        }
        if !own.is_empty() {
            let fixed: Arc<dyn ToolSource> = Arc::new(Fixed(own));
            let sources = partners.tool_source.into_iter().chain([fixed]);
            partners.tool_source = Some(Arc::new(Sources(sources.collect())));
        }
        let continued = Continued {
            mode: None,
            history,
        };
        let (mut choices, notices) = session::choices(
            &invocation.cli,
            &self.chosen,
            host.facts.session_id.clone(),
            continued,
            partners,
            self.configuration,
        )?;
        for notice in notices {
            note(&format!("warning: {notice}"));
        }
        let agents = self.agent_kinds(&wishes)?;
        choices.provider = Arc::new(Renaming::new(Arc::clone(&choices.provider), agents.clone()));
        choices.system = system(invocation, &wishes);
        if let Some(reasoning) = invocation.reasoning {
            choices.settings.reasoning = reasoning;
        }
        let reading = self.reading(&host.facts.session_id)?;
        let defaults = looking().chain(reading);
        choices.permissions.book = choices.permissions.book.with_defaults(defaults);
        choices.selection = invocation.selection.clone();
        self.play(&agents, &mut choices);
        if let Tools::BuiltIn(built_in) = &mut choices.tools {
            built_in.agent_kinds = agents;
        }
        let mut skills = Vec::new();
        if let Some(extras) = &mut choices.extras {
            extras.hook_wording = Some(Arc::new(TheirEvents(Arc::clone(host))));
            let context = &extras.context;
            skills.extend(context.skills.iter().map(|skill| skill.name().to_owned()));
            let commands = context.commands.iter();
            reception.known().commands = commands
                .map(|command| (command.name().to_owned(), command.description().to_owned()))
                .collect();
        }
        let session = Session::new(choices)?;
        host.govern(session.rules());
        if !invocation.cli.session.no_save {
            let store = history::store(&invocation.cli.session, self.configuration);
            history::prune_sometimes(&store, self.configuration);
        }
        Ok(Begun { session, skills })
    }

    /// Makes the session the agent that the flags name; who gives the model a prompt of its own
    /// keeps it.
    fn play(&self, agents: &[AgentKind], choices: &mut Choices) {
        let Some(name) = &self.invocation.agent else {
            return;
        };
        let Some(agent) = agents.iter().find(|agent| agent.name == *name) else {
            note(&format!(
                "warning: there is no agent `{name}`; it is defined by --agents"
            ));
            return;
        };
        if matches!(choices.system, SystemPrompt::Default | SystemPrompt::None) {
            choices.system = SystemPrompt::Text(agent.prompt.clone());
        }
        if let (Some(model), None) = (&agent.model, &self.invocation.cli.run.model.model) {
            choices.settings.model = Arc::from(model.as_str());
        }
        if let (Some(tools), None) = (&agent.tools, &choices.selection.built_in) {
            choices.selection.built_in = Some(tools.clone());
        }
    }

    /// The rules by which only what is at hand is read unasked: the workspace, the directories
    /// that were added, and what the session itself puts aside or is told to read.
    fn reading(&self, session_id: &str) -> Result<impl Iterator<Item = RuleSpec>, Failure> {
        let configuration = self.configuration;
        let tools = &self.invocation.cli.run.tools;
        let mut at_hand = session::additional_directories(tools, configuration)?;
        let locations = &configuration.locations;
        at_hand.push(locations.spill(session_id));
        at_hand.push(extras::places(configuration).notes);
        at_hand.extend(locations.skills(&configuration.workspace));
        at_hand.push(self.config.join("skills"));
        let allowed: Vec<String> = at_hand.iter().map(|path| readable(path)).collect();
        Ok(std::iter::once("Read(./**)".to_owned())
            .chain(allowed)
            .map(|pattern| RuleSpec::new(pattern, RuleAction::Allow))
            .chain([RuleSpec::new("Read", RuleAction::Ask)]))
    }

    /// Whether the model may ask the user, which takes a client that answers.
    fn asks_questions(&self) -> bool {
        let selection = &self.invocation.selection;
        let is_meant = |names: &[String]| names.iter().any(|name| name == ASK_USER_QUESTION);
        self.invocation.prompts == Prompts::Client
            && selection.built_in.as_deref().is_none_or(is_meant)
            && !is_meant(&selection.without)
    }

    /// The kinds of sub-agents that the flags and the client define.
    pub(super) fn agent_kinds(&self, wishes: &Initialize) -> Result<Vec<AgentKind>, Failure> {
        let given: BTreeMap<String, SubAgent> = match &self.invocation.agents {
            None => BTreeMap::new(),
            Some(value) => serde_json::from_value(value.clone())
                .map_err(|error| Failure::Usage(format!("Error: --agents: {error}")))?,
        };
        let of_client = wishes.agents.clone().unwrap_or_default();
        let environment = &self.configuration.environment;
        Ok(given
            .into_iter()
            .chain(of_client)
            .map(|(name, agent)| AgentKind {
                name,
                description: agent.description,
                prompt: agent.prompt,
                tools: agent
                    .tools
                    .map(|tools| tools.iter().map(|tool| ours(tool).to_owned()).collect()),
                model: agent
                    .model
                    .filter(|model| model != "inherit")
                    .and_then(|model| models::resolve(&model, environment)),
            })
            .collect())
    }
}

/// The client's word counts before the flags'.
fn system(invocation: &Invocation, wishes: &Initialize) -> SystemPrompt {
    let of_client = wishes
        .system_prompt
        .as_ref()
        .map(caliban_protocol::claude::Texts::joined);
    let instead = of_client.or_else(|| invocation.system.instead.clone());
    let appended = wishes.append_system_prompt.clone();
    let appended = appended.or_else(|| invocation.system.appended.clone());
    match (instead, appended.filter(|text| !text.is_empty())) {
        (None, None) => SystemPrompt::Default,
        (None, Some(more)) => SystemPrompt::Extended(more),
        (Some(text), None) if text.is_empty() => SystemPrompt::None,
        (Some(text), None) => SystemPrompt::Text(text),
        (Some(text), Some(more)) if text.is_empty() => SystemPrompt::Text(more),
        (Some(text), Some(more)) => SystemPrompt::Text(format!("{text}\n\n{more}")),
    }
}

/// The rules by which commands that only look run unasked.
fn looking() -> impl Iterator<Item = RuleSpec> {
    LOOKING.iter().flat_map(|command| {
        [format!("Bash({command})"), format!("Bash({command} *)")]
            .map(|pattern| RuleSpec::new(pattern, RuleAction::Allow))
    })
}
