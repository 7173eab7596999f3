//! The session that the flags and the client want.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use caliban_agent::{Tool, ToolSource};
use caliban_harness::options::RunOptions;
use caliban_harness::{
    Configuration, DialectParts, ModelNames, Prepared, SystemPrompt, context_places,
    further_directories, kind_named,
};
use caliban_protocol::claude::{ASK_USER_QUESTION, Initialize, SubAgent};
use caliban_session::{Bounds, Events, SessionHandle};
use caliban_settings::{RuleAction, RuleSpec};
use caliban_tools::AgentKind;

use super::super::agent_kinds;
use super::super::consents::QuestionRoute;
use super::super::hooks::TheirEvents;
use super::super::host::readable;
use super::super::inbox::Over;
use super::super::invocation::Invocation;
use super::super::models;
use super::super::questions::{AlwaysAsked, AskUserQuestion};
use super::super::requests::RequestHandler;
use super::super::servers::links;
use super::super::session_profile::SessionProfile;
use super::super::structured::{Fixed, Reminder, StructuredOutput};
use super::super::tool_names::ClaudeNames;
use super::Work;
use crate::console::note;
use crate::exit::Failure;
use crate::fleet::Sender;
use crate::renaming::Renaming;

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

impl Work {
    /// What is known before the session has begun.
    pub(super) fn known(&self, prepared: &Prepared) -> SessionProfile {
        let settings = self.configuration.settings();
        let chosen = &prepared.chosen;
        let able = chosen.provider.capabilities(&chosen.model);
        let mut agents = BTreeMap::new();
        agents.insert(
            "general-purpose".to_owned(),
            "Works on a task of its own".to_owned(),
        );
        SessionProfile {
            model: chosen.model.clone(),
            default_model: chosen.model.clone(),
            context_window: able.context_window.unwrap_or(200_000),
            commands: Vec::new(),
            hints: BTreeMap::new(),
            agents,
            servers: None,
            hosted: Vec::new(),
            disabled: BTreeSet::new(),
            output_style: settings
                .output_style
                .clone()
                .unwrap_or_else(|| "default".to_owned()),
            output_styles: Vec::new(),
            memory: Vec::new(),
            settings: serde_json::to_value(settings).unwrap_or_default(),
        }
    }

    /// The servers of tools that live in the client: those of the flags, and those it names.
    fn client_servers(&self, requests: &RequestHandler) -> Vec<String> {
        let mut servers = self.invocation.hosted.clone();
        servers.extend(requests.wishes().sdk_mcp_servers);
        servers.sort();
        servers.dedup();
        servers
    }

    /// Makes the session that the flags and the client want, with the servers of tools that are
    /// there by then.
    pub(super) async fn opening(
        &mut self,
        requests: &RequestHandler,
        mut prepared: Prepared,
    ) -> Result<(SessionHandle, Events), Over> {
        let hosted = self.client_servers(requests);
        self.adapt(&mut prepared, requests, &hosted)
            .map_err(Over::Failed)?;
        let launched = tokio::select! {
            launched = prepared.begin() => launched.map_err(|error| Over::Failed(error.into()))?,
            over = self.inbox.listen(requests) => return Err(over),
        };
        for warning in &launched.facts.warnings {
            if !self.told.contains(warning) {
                note(&format!("warning: {warning}"));
            }
        }
        requests.learn(&launched, hosted);
        let mode = launched.mode();
        let (handle, events) = launched.begin();
        requests.host.reach(handle.clone(), mode).await;
        Ok((handle, events))
    }

    /// Brings in what the flags of this dialect and the client want.
    fn adapt(
        &self,
        prepared: &mut Prepared,
        requests: &RequestHandler,
        hosted: &[String],
    ) -> Result<(), Failure> {
        let wishes = requests.wishes();
        let agents = self.agent_kinds(&wishes)?;
        let reading = self.reading(prepared)?;
        let options = &mut prepared.options;
        options.permissions.defaults = looking().chain(reading).collect();
        options.system = system(&self.invocation, &wishes);
        let configuration = &prepared.configuration;
        self.play(&agents, options, configuration, &mut prepared.chosen.model)?;
        prepared.dialect = self.parts(requests, &wishes, hosted, agents)?;
        Ok(())
    }

    /// What this dialect brings along.
    fn parts(
        &self,
        requests: &RequestHandler,
        wishes: &Initialize,
        hosted: &[String],
        agents: Vec<AgentKind>,
    ) -> Result<DialectParts, Failure> {
        let host = &requests.host;
        let mut parts = DialectParts {
            bounds: Bounds::PIPE,
            advisers: vec![Arc::clone(&requests.hooks) as _],
            prompt_stages: vec![Arc::clone(&requests.hooks) as _],
            stop_stages: vec![Arc::clone(&requests.hooks) as _],
            observers: vec![Arc::clone(&requests.hooks) as _],
            hosted: links(&host.channel, hosted),
            wrap_provider: Some(Box::new(|provider| {
                Arc::new(Renaming::new(provider, Arc::new(ClaudeNames)))
            })),
            hook_wording: Some(Arc::new(TheirEvents(Arc::clone(host)))),
            agent_kinds: agents,
            model_names: Some(self.model_names()),
            fleet: Some(Arc::new(Sender {
                options: self.invocation.options.clone(),
                process: self.configuration.process.clone(),
            })),
            ..DialectParts::default()
        };
        let mut own: Vec<Arc<dyn Tool>> = Vec::new();
        if self.asks_questions() {
            own.push(Arc::new(AskUserQuestion::new()));
            parts.advisers.push(Arc::new(AlwaysAsked));
        }
        let schema = self.invocation.json_schema.clone();
        if let Some(schema) = schema.or_else(|| wishes.json_schema.clone()) {
            let wrong = |reason| Failure::Usage(format!("Error: --json-schema: {reason}"));
            own.push(Arc::new(StructuredOutput::new(schema).map_err(wrong)?));
            let reminder = Arc::new(Reminder::default());
            parts.advisers.push(Arc::clone(&reminder) as _);
            parts.prompt_stages.push(Arc::clone(&reminder) as _);
            parts.stop_stages.push(reminder);
        }
        if !own.is_empty() {
            let fixed: Arc<dyn ToolSource> = Arc::new(Fixed(own));
            parts.tool_sources.push(fixed);
        }
        parts
            .tool_sources
            .push(Arc::clone(&requests.set_servers) as _);
        Ok(parts)
    }

    /// Makes the session the agent that the flags name; who gives the model a prompt of its own
    /// keeps it.
    fn play(
        &self,
        agents: &[AgentKind],
        options: &mut RunOptions,
        configuration: &Configuration,
        model: &mut String,
    ) -> Result<(), Failure> {
        let Some(name) = &self.invocation.agent else {
            return Ok(());
        };
        let given = agents.iter().find(|agent| agent.name == *name).cloned();
        let found = match given {
            Some(agent) => Some(agent),
            None => kind_named(name, options, configuration, Some(&self.model_names()))?,
        };
        let Some(agent) = found else {
            note(&format!(
                "warning: there is no agent `{name}`; it is defined by --agents or by a file in .claude/agents"
            ));
            return Ok(());
        };
        if matches!(options.system, SystemPrompt::Default | SystemPrompt::None) {
            options.system = SystemPrompt::Text(agent.prompt.clone());
        }
        if let (Some(own), None) = (&agent.model, &self.invocation.options.model.model) {
            model.clone_from(own);
        }
        let offered = &mut options.tools.selection.built_in;
        if let (Some(tools), None) = (&agent.tools, &offered) {
            *offered = Some(tools.clone());
        }
        let without = &mut options.tools.selection.without;
        without.extend(agent.without.iter().cloned());
        Ok(())
    }

    /// What the names of models stand for here.
    fn model_names(&self) -> ModelNames {
        let environment = self.configuration.environment().clone();
        ModelNames(Arc::new(move |name| models::resolve(name, &environment)))
    }

    /// The rules by which only what is at hand is read unasked: the workspace, the directories
    /// that were added, and what the session itself puts aside or is told to read.
    fn reading(
        &self,
        prepared: &Prepared,
    ) -> Result<impl Iterator<Item = RuleSpec> + use<>, Failure> {
        let configuration = &prepared.configuration;
        let mut at_hand = further_directories(&prepared.options.tools, configuration)?;
        let locations = &configuration.locations;
        at_hand.push(locations.spill(&prepared.session_id.to_string()));
        at_hand.push(context_places(configuration).notes);
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
        let selection = &self.invocation.options.tools.selection;
        let is_meant = |names: &[String]| names.iter().any(|name| name == ASK_USER_QUESTION);
        self.invocation.questions == QuestionRoute::Control
            && selection.built_in.as_deref().is_none_or(is_meant)
            && !is_meant(&selection.without)
    }

    /// The kinds of sub-agents that the flags and the client define.
    fn agent_kinds(&self, wishes: &Initialize) -> Result<Vec<AgentKind>, Failure> {
        let given: BTreeMap<String, SubAgent> = match &self.invocation.agents {
            None => BTreeMap::new(),
            Some(value) => serde_json::from_value(value.clone())
                .map_err(|error| Failure::Usage(format!("Error: --agents: {error}")))?,
        };
        let of_client = wishes.agents.clone().unwrap_or_default();
        let environment = self.configuration.environment();
        Ok(given
            .into_iter()
            .chain(of_client)
            .map(|(name, agent)| agent_kinds::kind(name, agent, environment))
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
        (None, None) => invocation.options.system.clone(),
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
