//! Puts a session together from its choices.

mod opening;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_agent::{
    Agent, Company, Consultant, Conversation, Dial, Mailbox, PathError, Registry, RunTotals,
    Settings, Tool, ToolSource, Toolbox, TypedTool, Witness, Workspace,
};
use caliban_context::{
    Commands, OnDemand, OutputStyle, ReadMemoryTopic, Section, SkillTool, WriteMemoryTopic,
};
use caliban_hooks::{AgentRunner, ExternalHooks, HookParts, McpRunner, Runners};
use caliban_mcp::Servers;
use caliban_model::{CostLedger, Provider, Purpose};
use caliban_permissions::Regime;
use caliban_process::Confiner;
use caliban_sandbox::Sandbox;
use caliban_session::Facts;
use caliban_sessions::SessionState;
use caliban_settings::PermissionMode;
use caliban_tools::{
    AgentKind, AgentTool, Background, Bash, BashOutput, EditTool, EnterPlanMode, ExitPlanMode,
    FileState, Glob, Grep, Grounds, JobLimits, Jobs, KillShell, MultiEditTool, NotebookEditTool,
    PlanMode, ReadTool, Shell, TodoList, TodoWrite, WebFetch, WebSearch, WriteTool,
};
use tokio_util::task::TaskTracker;

use crate::background::{self as detached, Detacher};
use crate::checkpoints::Checkpoints;
use crate::choices::{Choices, Partners, Selection, SetupError, SubAgents, Tools};
use crate::edited::EditedFiles;
use crate::extras::{CommandExpander, Extras, Opening, Repository};
use crate::gate::{Auto, Forbidding, Gate, GateParts, SetBy};
use crate::grounds::{GroundParts, SessionGrounds, WorktreeGrounds};
use crate::hook_parts::{HookAgents, HookFacts, HookPrompts};
use crate::inline_shell::InlineShell;
use crate::intake::ImageIntake;
use crate::inventory::Inventory;
use crate::notice_sink::NoticeSink;
use crate::permissions::{Permissions, judge};
use crate::recorder::{Recorder, Watched};
use crate::reminders::NestedMemory;
use crate::sandbox::{Bounds, confiner};
use crate::servers::{Onlookers, ServerHooks, ServerPrompts};
use crate::session::{Session, Stage};
use crate::system_prompt::sub_agent_prompt;

use opening::{history, remind, restore, source_of, system_message};

/// An answer of the classifier is one short object.
const CLASSIFIER_TOKENS: u32 = 256;
const CLASSIFIER_DEADLINE: Duration = Duration::from_secs(30);

/// What the tools of a session share.
struct Shared {
    plan: Arc<PlanMode>,
    todos: Arc<TodoList>,
    files: Arc<FileState>,
    jobs: Option<Arc<Jobs>>,
    tools: Vec<Arc<dyn Tool>>,
    sub_agents: SubAgents,
    agent_kinds: Vec<AgentKind>,
    default_agent: Option<String>,
    grounds: Option<(GroundParts, PathBuf)>,
    selection: Selection,
}

impl Shared {
    /// Takes in the tools of extras, and leaves those that are offered.
    fn select(&mut self, added: &[Arc<dyn Tool>], selection: Selection) {
        if !self.tools.is_empty() {
            self.tools.extend(added.iter().cloned());
        }
        if !selection.keeps(AgentTool::NAME) {
            self.sub_agents = SubAgents::Withheld;
        }
        self.selection = selection;
    }

    /// One of the tools, where it is offered.
    fn offered(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tools = self.tools.iter().filter(|_| self.selection.keeps(name));
        let mut tools = tools.filter(|tool| tool.spec().name == name);
        tools.next().cloned()
    }

    /// What is offered of these tools, of some more, and of those that come and go.
    fn toolbox(
        &self,
        more: impl IntoIterator<Item = Arc<dyn Tool>>,
        source: Option<Arc<dyn ToolSource>>,
    ) -> Toolbox {
        let tools = Registry::new(self.tools.iter().cloned().chain(more));
        let tools = Toolbox::new(tools, source);
        if self.selection == Selection::default() {
            return tools;
        }
        let selection = self.selection.clone();
        tools.filtered(move |name| selection.keeps(name))
    }
}

/// What extras become in a session.
struct Added {
    external: Option<Arc<ExternalHooks>>,
    hook_agents: Arc<HookAgents>,
    commands: Commands,
    repository: Repository,
    on_demand: Option<OnDemand>,
    tools: Vec<Arc<dyn Tool>>,
    memory: Vec<Section>,
    style: Option<OutputStyle>,
    inventory: Inventory,
}

impl Default for Added {
    fn default() -> Self {
        Self {
            external: None,
            hook_agents: Arc::default(),
            commands: Commands::default(),
            repository: Repository::Untrusted,
            on_demand: None,
            tools: Vec::new(),
            memory: Vec::new(),
            style: None,
            inventory: Inventory::default(),
        }
    }
}

/// What a session begins with, or goes on from.
struct Beginning<'a> {
    earlier: Option<&'a SessionState>,
    memory: Option<&'a Arc<NestedMemory>>,
    opening: &'a Arc<Opening>,
    todos: &'a Arc<TodoList>,
    shell: InlineShell,
}

impl<'a> Beginning<'a> {
    fn new(
        earlier: Option<&'a SessionState>,
        memory: Option<&'a Arc<NestedMemory>>,
        opening: &'a Arc<Opening>,
        shared: &'a Shared,
        shell: InlineShell,
    ) -> Self {
        let todos = &shared.todos;
        Self {
            earlier,
            memory,
            opening,
            todos,
            shell,
        }
    }
}

/// Everybody around the agents of a session, in the order in which they are heard.
fn company(
    added: &Added,
    partners: &Partners,
    recorder: Option<&Recorder>,
    gate: &Arc<Gate>,
    workspace: &Workspace,
    beginning: &Beginning<'_>,
) -> Company {
    let mut company = Company::new(Arc::clone(gate) as _);
    if let Some(watch) = &partners.watch {
        company.advisers.push(Arc::clone(watch) as _);
    }
    company
        .advisers
        .push(Arc::new(Forbidding(Arc::clone(gate))));
    if let Some(hooks) = &added.external {
        company.advisers.push(Arc::clone(hooks) as _);
        company.prompt_stages.push(Arc::clone(hooks) as _);
        company.stop_stages.push(Arc::clone(hooks) as _);
        company.observers.push(Arc::clone(hooks) as _);
    }
    company.advisers.extend_from_slice(&partners.advisers);
    let stages = &mut company.prompt_stages;
    stages.extend_from_slice(&partners.prompt_stages);
    company.stop_stages.extend_from_slice(&partners.stop_stages);
    company.observers.extend_from_slice(&partners.observers);
    if let Some(hooks) = &added.external {
        let edited = EditedFiles::new(Arc::clone(hooks), workspace.clone());
        let edited = Arc::new(edited);
        stages.push(Arc::clone(&edited) as _);
        company.observers.push(edited);
    }
    stages.push(Arc::new(CommandExpander {
        commands: added.commands.clone(),
        repository: added.repository,
        gate: Arc::clone(gate),
        shell: beginning.shell.clone(),
        company: Company {
            advisers: company.advisers.clone(),
            ..Company::new(Arc::clone(gate) as _)
        },
    }));
    if let Some(servers) = &partners.servers {
        stages.push(Arc::new(ServerPrompts(servers.clone())));
    }
    stages.push(Arc::clone(beginning.opening) as _);
    if let Some(memory) = beginning.memory {
        company.observers.push(Arc::clone(memory) as _);
    }
    if let Some(recorder) = recorder {
        company.witnesses.push(Arc::new(recorder.clone()));
    }
    remind(&mut company, added.external.as_ref(), workspace, beginning);
    company
}

impl Session {
    #[expect(clippy::too_many_lines, reason = "every part is put in its place once")]
    pub(crate) fn new(choices: Choices) -> Result<Self, SetupError> {
        let workspace = workspace(&choices)?;
        let mut shared = build_tools(choices.tools, choices.sandbox.as_ref());
        let notice_sink = choices.partners.notice_sink.clone();
        let session_id: Arc<str> = Arc::from(choices.session_id);
        let ledger = Arc::new(Mutex::new(CostLedger::new(choices.rates)));
        let consultant = consultant(&choices.provider, &choices.settings, &ledger);
        let gate = Arc::new(gate(
            choices.permissions,
            &workspace,
            choices.home,
            &shared.plan,
            consultant.clone(),
            Arc::clone(&session_id),
            notice_sink.clone(),
            choices.sandbox.clone(),
        ));
        let added = match choices.extras {
            None => Added::default(),
            Some(extras) => {
                let facts = HookFacts {
                    session_id: Arc::clone(&session_id),
                    cwd: workspace.root().to_owned(),
                    gate: Arc::clone(&gate),
                    transcript: choices.history.transcript.clone(),
                    wording: extras.hook_wording.clone(),
                };
                let runners = runners(consultant, choices.partners.servers.as_ref());
                let confiner = confiner(choices.sandbox.as_ref(), &notice_sink);
                let root = workspace.root();
                add(*extras, facts, root, runners, &notice_sink, confiner)
            }
        };
        shared.select(&added.tools, choices.selection);
        let earlier = choices.history.earlier.as_deref();
        restore(earlier, &shared);
        let writer = choices.history.writer;
        let dial = dial(&choices.settings);
        let watched = Watched {
            gate: Arc::clone(&gate),
            plan: Arc::clone(&shared.plan),
            todos: Arc::clone(&shared.todos),
            dial: dial.clone(),
            effort: choices.history.effort,
        };
        let recorder =
            |writer| Recorder::new(writer, notice_sink.clone(), watched, Arc::clone(&ledger));
        let recorder = writer.map(recorder);
        let jobs = shared.jobs.clone();
        let keep = |place| Checkpoints::new(place, &workspace, &notice_sink, jobs);
        let checkpoints = choices.history.checkpoints.map(keep);
        let opening = Arc::new(Opening::new(earlier, workspace.root()));
        let memory = nested_memory(&added, earlier, &workspace, &notice_sink);
        let shell = InlineShell {
            tool: shared.offered(Bash::NAME),
            operator: Arc::clone(&choices.partners.operator),
            workspace: Arc::new(workspace.clone()),
            session_id: Arc::clone(&session_id),
        };
        let mut company = company(
            &added,
            &choices.partners,
            recorder.as_ref(),
            &gate,
            &workspace,
            &Beginning::new(earlier, memory.as_ref(), &opening, &shared, shell),
        );
        let in_process = if choices.partners.advisers.is_empty() {
            detached::Company::Elsewhere
        } else {
            detached::Company::InThisProcess
        };
        company.witnesses.extend(witness(checkpoints.as_ref()));
        choices.partners.onlookers.set(&company.observers);
        let onlookers = choices.partners.onlookers.clone();
        company.intake = Some(Arc::new(ImageIntake(choices.images)));
        company.tracer = choices.partners.traces.clone().map(|traces| traces as _);
        let servers = choices.partners.servers;
        let mut agent = Agent {
            dial: Some(dial),
            provider: choices.provider,
            tools: shared.toolbox([], choices.partners.tool_source.clone()),
            company,
            operator: choices.partners.operator,
            workspace: Arc::new(workspace),
            settings: choices.settings,
            ledger,
            session_id,
            works_for: None,
            mailbox: Some(Mailbox::default()),
        };
        added.hook_agents.set(agent.clone());
        let grounds = grounds(&mut shared, &agent, &gate, onlookers, &notice_sink);
        if shared.sub_agents == SubAgents::Offered {
            let background = choices.partners.fleet.clone().map(|fleet| {
                Arc::new(Detacher {
                    fleet,
                    gate: Arc::clone(&gate),
                    switches: Arc::clone(&choices.partners.switches),
                    company: in_process,
                }) as Arc<dyn Background>
            });
            let source = choices.partners.tool_source;
            let models = Arc::new(choices.partners.models.clone());
            let tool = sub_agents(&agent, &shared, grounds.as_ref(), background);
            let tool = tool.with_models(models);
            agent.tools = shared.toolbox([tool.boxed()], source);
        }
        let system = system_message(&choices.system, &agent, &added, servers.as_ref());
        let source = source_of(earlier);
        let before = earlier.map_or_else(Default::default, |state| (state.turns, state.cost));
        let messages = history(choices.history.earlier, system, &choices.system);
        let messages = agent.settings.capping.apply(messages);
        Ok(Self {
            agent,
            conversation: Conversation::new(messages),
            recorder,
            checkpoints,
            jobs: shared.jobs,
            todos: shared.todos,
            files: shared.files,
            memory,
            grounds,
            sandbox: choices.sandbox,
            gate,
            commands: added.commands,
            server_prompts: Vec::new(),
            servers,
            hooks: added.external,
            opening,
            notice_sink,
            switches: choices.partners.switches,
            traces: choices.partners.traces,
            inventory: Arc::new(added.inventory),
            examiner: None,
            models: choices.partners.models,
            attachments: None,
            watch: choices.partners.watch,
            excludes: added.on_demand.as_ref().map(OnDemand::excludes),
            following: None,
            fleet: choices.partners.fleet,
            facts: Facts::default(),
            source,
            stage: Stage::New,
            prompt_id: None,
            last_prompt: None,
            totals: RunTotals::default(),
            earlier: before,
        })
    }
}

fn witness(checkpoints: Option<&Checkpoints>) -> Option<Arc<dyn Witness>> {
    checkpoints.map(|it| Arc::new(it.clone()) as _)
}

/// What directories say that are worked in; the conversation may hold some of it already.
fn nested_memory(
    added: &Added,
    earlier: Option<&SessionState>,
    workspace: &Workspace,
    notice_sink: &NoticeSink,
) -> Option<Arc<NestedMemory>> {
    let on_demand = added.on_demand.clone()?;
    let earlier = earlier.map_or(&[][..], |state| &state.messages);
    let memory = NestedMemory::new(on_demand, earlier, workspace.clone(), notice_sink.clone());
    Some(Arc::new(memory))
}

/// What the operator may turn while the agent works.
fn dial(settings: &Settings) -> Dial {
    Dial::new(Arc::clone(&settings.model), settings.reasoning)
}

/// Where the tools work. Results that were too long for the model lie beside it, to be read.
fn workspace(choices: &Choices) -> Result<Workspace, PathError> {
    let workspace = Workspace::new(
        &choices.workspace,
        &choices.additional_directories,
        choices.home.clone(),
        choices.confinement,
    )?;
    let boundary = choices.sandbox.clone().map(|it| Arc::new(Bounds(it)) as _);
    let boundary = match &choices.partners.seat {
        Some(seat) => Some(seat.boundary(boundary)),
        None => boundary,
    };
    let readable = choices.settings.capping.spill_directories.clone();
    Ok(workspace.with_readable(readable).with_boundary(boundary))
}

/// Who answers small questions: the classifier of auto mode, hooks that are prompts.
fn consultant(
    provider: &Arc<dyn Provider>,
    settings: &Settings,
    ledger: &Arc<Mutex<CostLedger>>,
) -> Consultant {
    Consultant {
        provider: Arc::clone(provider),
        model: Arc::clone(settings.classifier_model()),
        purpose: Purpose::FastClassifier,
        ledger: Arc::clone(ledger),
        max_tokens: CLASSIFIER_TOKENS,
        deadline: CLASSIFIER_DEADLINE,
    }
}

/// Where sub-agents can have worktrees of their own.
fn grounds(
    shared: &mut Shared,
    agent: &Agent,
    gate: &Arc<Gate>,
    onlookers: Onlookers,
    notice_sink: &NoticeSink,
) -> Option<Arc<WorktreeGrounds>> {
    let (parts, jobs_directory) = shared.grounds.take()?;
    let shell = Arc::clone(shared.jobs.as_ref()?.shell());
    Some(Arc::new(WorktreeGrounds {
        parts,
        session_id: Arc::clone(&agent.session_id),
        gate: Arc::clone(gate),
        workspace: Workspace::clone(&agent.workspace),
        shell,
        jobs_directory,
        onlookers,
        notice_sink: notice_sink.clone(),
        leaving: TaskTracker::new(),
        swept: tokio::sync::Mutex::default(),
    }))
}

/// The tool that runs agents modelled on this one.
fn sub_agents(
    agent: &Agent,
    shared: &Shared,
    grounds: Option<&Arc<WorktreeGrounds>>,
    background: Option<Arc<dyn Background>>,
) -> AgentTool {
    let prompt = sub_agent_prompt(agent.workspace.root());
    let grounds = grounds.map(|it| Arc::new(SessionGrounds(Arc::clone(it))) as Arc<dyn Grounds>);
    AgentTool::new(agent.clone(), Some(prompt))
        .with_kinds(shared.agent_kinds.clone())
        .with_default(shared.default_agent.clone())
        .with_grounds(grounds)
        .with_background(background)
        .with_jobs(shared.jobs.clone())
}

/// Who hooks may call on besides programs and addresses.
fn runners(consultant: Consultant, servers: Option<&Servers>) -> Runners {
    Runners {
        prompt: Some(Arc::new(HookPrompts(consultant))),
        agent: None,
        mcp: servers.map(|servers| Arc::new(ServerHooks(servers.clone())) as Arc<dyn McpRunner>),
    }
}

/// Makes extras part of a session.
fn add(
    extras: Extras,
    facts: HookFacts,
    project_dir: &Path,
    runners: Runners,
    notice_sink: &NoticeSink,
    confiner: Option<Arc<dyn Confiner>>,
) -> Added {
    let mut added = Added::default();
    let context = extras.context;
    let style = extras.style.as_deref();
    added.inventory = Inventory::of(&context, style, extras.notes.as_ref());
    added.inventory.plugins = extras.plugins.listed();
    // Also without handlers: those who watch events are told of all of them.
    added.external = Some(Arc::new(ExternalHooks::new(HookParts {
        config: extras.hooks,
        facts: Arc::new(facts),
        project_dir: project_dir.to_owned(),
        environment: extras.hook_environment,
        guard: extras.guard,
        confiner,
        runners: Runners {
            agent: Some(Arc::clone(&added.hook_agents) as Arc<dyn AgentRunner>),
            ..runners
        },
        sink: Arc::new(notice_sink.clone()),
    })));
    let style = context.styles.select(extras.style.as_deref());
    added.style = Some(style.style.clone());
    added.memory = context.memory.sections;
    added.on_demand = Some(context.memory.on_demand);
    added.commands = context.commands;
    added.repository = extras.repository;
    if !context.skills.is_empty() {
        added
            .tools
            .push(Arc::new(SkillTool::new(Arc::new(context.skills))));
    }
    if let Some(notes) = extras.notes {
        added
            .tools
            .push(ReadMemoryTopic::new(notes.clone()).boxed());
        added.tools.push(WriteMemoryTopic::new(notes).boxed());
    }
    added
}

/// The gate of all agents of a session.
#[expect(
    clippy::too_many_arguments,
    reason = "each is another part that it asks"
)]
fn gate(
    permissions: Permissions,
    workspace: &Workspace,
    home: Option<PathBuf>,
    plan: &Arc<PlanMode>,
    classifier: Consultant,
    session_id: Arc<str>,
    notice_sink: NoticeSink,
    sandbox: Option<Arc<Sandbox>>,
) -> Gate {
    // Plan mode has its own switch, which the model may turn; behind it the default rules.
    let (regime, plan_set_by) = match permissions.regime {
        Regime::Rules(PermissionMode::Plan) => {
            plan.enter();
            (Regime::Rules(PermissionMode::Default), SetBy::Operator)
        }
        regime => (regime, SetBy::Model),
    };
    let judge = judge(
        permissions.book,
        permissions.protected,
        workspace.clone(),
        home,
    );
    let auto = permissions.auto.map(|rules| Auto {
        rules,
        classifier,
        cache: Mutex::default(),
    });
    Gate::new(
        judge,
        GateParts {
            regime,
            auto_allow: permissions.auto_allow,
            plan: Arc::clone(plan),
            plan_set_by,
            auto,
            audit: permissions.audit,
            opened_hosts: permissions.opened_hosts,
            session_id,
            notice_sink,
            sandbox,
        },
    )
}

fn build_tools(tools: Tools, sandbox: Option<&Arc<Sandbox>>) -> Shared {
    let plan = Arc::new(PlanMode::new());
    let Tools::BuiltIn(built_in) = tools else {
        return Shared {
            plan,
            todos: Arc::new(TodoList::new()),
            files: Arc::default(),
            jobs: None,
            tools: Vec::new(),
            sub_agents: SubAgents::Withheld,
            agent_kinds: Vec::new(),
            default_agent: None,
            grounds: None,
            selection: Selection::default(),
        };
    };
    let files = Arc::new(FileState::new());
    let shell = Shell::new(built_in.guard, built_in.environment).with_sandbox(sandbox.cloned());
    let shell = Arc::new(shell);
    let jobs = Arc::new(Jobs::new(
        Arc::clone(&shell),
        built_in.jobs_directory.clone(),
        JobLimits::default(),
    ));
    let todos = Arc::new(TodoList::new());
    let tools = vec![
        ReadTool::new(Arc::clone(&files)).boxed(),
        WriteTool::new(Arc::clone(&files)).boxed(),
        EditTool::new(Arc::clone(&files)).boxed(),
        MultiEditTool::new(Arc::clone(&files)).boxed(),
        NotebookEditTool::new(Arc::clone(&files)).boxed(),
        Bash::new(shell, Arc::clone(&jobs)).boxed(),
        BashOutput::new(Arc::clone(&jobs)).boxed(),
        KillShell::new(Arc::clone(&jobs)).boxed(),
        Glob::new().boxed(),
        Grep::new().boxed(),
        WebFetch::new(built_in.web).boxed(),
        WebSearch::new(built_in.search).boxed(),
        TodoWrite::new(Arc::clone(&todos)).boxed(),
        EnterPlanMode::new(Arc::clone(&plan)).boxed(),
        ExitPlanMode::new(Arc::clone(&plan)).boxed(),
    ];
    Shared {
        plan,
        todos,
        files,
        jobs: Some(jobs),
        tools,
        sub_agents: built_in.sub_agents,
        agent_kinds: built_in.agent_kinds,
        default_agent: built_in.default_agent,
        grounds: built_in.grounds.zip(Some(built_in.jobs_directory)),
        selection: Selection::default(),
    }
}

#[cfg(test)]
mod tests;
