//! A session: an agent with everything it shares over its life.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_agent::{
    Agent, AnswerSchema, Confinement, Consultant, Conversation, Event, HookChain, Hooks, Listener,
    Outcome, PathError, Registry, RunTotals, Settings, Tool, TypedTool, Unattended, Workspace,
};
use caliban_model::{CancellationToken, CostLedger, Message, Provider, Purpose, RateCard};
use caliban_permissions::Regime;
use caliban_settings::PermissionMode;
use caliban_tools::{
    AgentTool, Bash, BashOutput, EditTool, EnterPlanMode, ExitPlanMode, FileState, Glob, Grep,
    Guard, JobLimits, Jobs, KillShell, MultiEditTool, NotebookEditTool, PlanMode, ReadTool,
    SearchConfig, Shell, TodoList, TodoWrite, WebFetch, WebPolicy, WebSearch, WriteTool,
};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::gate::{Auto, Gate, GateParts, SetBy};
use crate::permissions::{Permissions, judge};
use crate::system_prompt::{default_prompt, sub_agent_prompt};

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

/// A conversation with an agent. Dropping it ends everything it started.
#[derive(Debug)]
pub struct Session {
    agent: Agent,
    conversation: Conversation,
    jobs: Option<Arc<Jobs>>,
    gate: Arc<Gate>,
    /// What all runs so far came to.
    totals: RunTotals,
}

/// An answer of the classifier is one short object.
const CLASSIFIER_TOKENS: u32 = 256;
const CLASSIFIER_DEADLINE: Duration = Duration::from_secs(30);

/// Adds what a session knows and a run does not: what earlier runs came to, and that the gate's
/// log cannot be written.
struct Accounting<'a> {
    listener: &'a dyn Listener,
    gate: &'a Gate,
    earlier: &'a RunTotals,
}

impl Listener for Accounting<'_> {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        let event = match event {
            Event::Finished { outcome, totals } => Event::Finished {
                outcome,
                totals: Box::new(totals.after(self.earlier)),
            },
            event => event,
        };
        async move {
            if let Some(message) = self.gate.complaint() {
                let notice = Event::Notice {
                    subtype: "audit_log",
                    message,
                };
                self.listener.hear(notice).await;
            }
            self.listener.hear(event).await;
        }
        .boxed()
    }
}

/// What the tools of a session share.
struct Shared {
    plan: Arc<PlanMode>,
    jobs: Option<Arc<Jobs>>,
    tools: Vec<Arc<dyn Tool>>,
    sub_agents: SubAgents,
}

impl Session {
    pub fn new(choices: Choices) -> Result<Self, SetupError> {
        let workspace = Workspace::new(
            &choices.workspace,
            &choices.additional_directories,
            choices.home.clone(),
            choices.confinement,
        )?;
        let shared = build_tools(choices.tools);
        let session_id: Arc<str> = Arc::from(choices.session_id);
        let ledger = Arc::new(Mutex::new(CostLedger::new(choices.rates)));
        let gate = Arc::new(gate(
            choices.permissions,
            &workspace,
            choices.home,
            &shared.plan,
            Consultant {
                provider: Arc::clone(&choices.provider),
                model: Arc::clone(choices.settings.classifier_model()),
                purpose: Purpose::FastClassifier,
                ledger: Arc::clone(&ledger),
                max_tokens: CLASSIFIER_TOKENS,
                deadline: CLASSIFIER_DEADLINE,
            },
            Arc::clone(&session_id),
        ));
        let hooks = HookChain {
            advisers: Vec::new(),
            gate: Arc::clone(&gate) as Arc<dyn Hooks>,
        };
        let mut agent = Agent {
            provider: choices.provider,
            tools: Registry::new(shared.tools.iter().cloned()),
            hooks: Arc::new(hooks),
            operator: Arc::new(Unattended),
            workspace: Arc::new(workspace),
            settings: choices.settings,
            ledger,
            session_id,
            input: None,
        };
        let root = agent.workspace.root().to_owned();
        if shared.sub_agents == SubAgents::Offered {
            let sub_agents = AgentTool::new(agent.clone(), Some(sub_agent_prompt(&root)));
            agent.tools = Registry::new(shared.tools.into_iter().chain([sub_agents.boxed()]));
        }
        let answer = agent.settings.answer.as_ref().map(answer_note);
        let system = match choices.system {
            SystemPrompt::Default => Some(default_prompt(&root, &agent.tools)),
            SystemPrompt::Text(text) => Some(text),
            SystemPrompt::None => None,
        };
        let system = system.map(|text| text + answer.as_deref().unwrap_or_default());
        let system = system
            .filter(|text| !text.trim().is_empty())
            .map(|text| Arc::new(Message::system(text)));
        Ok(Self {
            agent,
            conversation: Conversation::new(system.into_iter().collect()),
            jobs: shared.jobs,
            gate,
            totals: RunTotals::default(),
        })
    }

    /// How calls are judged at this moment.
    pub fn regime(&self) -> Regime {
        self.gate.regime()
    }

    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Works on one prompt to its end.
    pub async fn run(
        &mut self,
        prompt: Message,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let listener = Accounting {
            listener,
            gate: &self.gate,
            earlier: &self.totals,
        };
        let (outcome, totals) = self
            .agent
            .run(&mut self.conversation, prompt, &listener, cancel)
            .await;
        self.totals = totals.after(&self.totals);
        (outcome, self.totals.clone())
    }

    /// Ends background jobs and removes what they left.
    pub async fn shutdown(self) {
        if let Some(jobs) = self.jobs {
            jobs.shutdown().await;
        }
    }
}

/// What a model is told about the form of its answer, for providers that cannot enforce it.
fn answer_note(answer: &AnswerSchema) -> String {
    format!(
        "\n\nYour final answer must be nothing but one JSON value that validates against this JSON Schema:\n{}",
        answer.schema
    )
}

/// The gate of all agents of a session.
fn gate(
    permissions: Permissions,
    workspace: &Workspace,
    home: Option<PathBuf>,
    plan: &Arc<PlanMode>,
    classifier: Consultant,
    session_id: Arc<str>,
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
            session_id,
        },
    )
}

fn build_tools(tools: Tools) -> Shared {
    let plan = Arc::new(PlanMode::new());
    let Tools::BuiltIn(built_in) = tools else {
        return Shared {
            plan,
            jobs: None,
            tools: Vec::new(),
            sub_agents: SubAgents::Withheld,
        };
    };
    let files = Arc::new(FileState::new());
    let shell = Arc::new(Shell::new(built_in.guard, built_in.environment));
    let jobs = Arc::new(Jobs::new(
        Arc::clone(&shell),
        built_in.jobs_directory,
        JobLimits::default(),
    ));
    let todos = Arc::new(TodoList::new());
    let tools = vec![
        ReadTool::new(Arc::clone(&files)).boxed(),
        WriteTool::new(Arc::clone(&files)).boxed(),
        EditTool::new(Arc::clone(&files)).boxed(),
        MultiEditTool::new(Arc::clone(&files)).boxed(),
        NotebookEditTool::new(files).boxed(),
        Bash::new(shell, Arc::clone(&jobs)).boxed(),
        BashOutput::new(Arc::clone(&jobs)).boxed(),
        KillShell::new(Arc::clone(&jobs)).boxed(),
        Glob::new().boxed(),
        Grep::new().boxed(),
        WebFetch::new(built_in.web).boxed(),
        WebSearch::new(built_in.search).boxed(),
        TodoWrite::new(todos).boxed(),
        EnterPlanMode::new(Arc::clone(&plan)).boxed(),
        ExitPlanMode::new(Arc::clone(&plan)).boxed(),
    ];
    Shared {
        plan,
        jobs: Some(jobs),
        tools,
        sub_agents: built_in.sub_agents,
    }
}
