//! A session: an agent with everything it shares over its life.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_agent::{
    Agent, Conversation, Dial, Event, HookEvent, Listener, Outcome, Part, RunTotals, SessionSource,
};
use caliban_checkpoints::{Kind, Mark};
use caliban_context::{Commands, Excludes};
use caliban_hooks::ExternalHooks;
use caliban_mcp::Servers;
use caliban_model::{CancellationToken, Message};
use caliban_permissions::{Latch, Regime, RuleBook};
use caliban_sandbox::Sandbox;
use caliban_session::{Facts, PromptId};
use caliban_settings::PermissionMode;
use caliban_telemetry::Traces;
use caliban_tools::{FileState, Jobs, Shell, TodoList};
use futures::future::BoxFuture;
use rust_decimal::Decimal;
use tokio_util::task::AbortOnDropHandle;

use crate::attachments::Attachments;
use crate::checkpoints::Checkpoints;
use crate::config_watch::ConfigWatch;
use crate::controls::SessionControls;
use crate::extras::{Opening, typed};
use crate::gate::Gate;
use crate::grounds::WorktreeGrounds;
use crate::inventory::Inventory;
use crate::model_list::ModelList;
use crate::naming::move_checkpoints;
use crate::notice_sink::NoticeSink;
use crate::recorder::Recorder;
use crate::reminders::NestedMemory;
use crate::rewinding::mark;
use crate::surroundings::Examiner;
use crate::switches::Switches;
use crate::typeable::Typeable;

/// How long servers may take to end by themselves.
const SERVER_PATIENCE: Duration = Duration::from_millis(500);
/// How long worktrees of sub-agents that were cut off may take; the next session ends those that
/// took longer.
const WORKTREE_PATIENCE: Duration = Duration::from_millis(700);
/// How long hooks that nobody waits for may take at the end.
const HOOK_PATIENCE: Duration = Duration::from_secs(1);

/// A conversation with an agent. Dropping it ends everything it started.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) agent: Agent,
    pub(crate) conversation: Conversation,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) checkpoints: Option<Checkpoints>,
    pub(crate) jobs: Option<Arc<Jobs>>,
    pub(crate) todos: Arc<TodoList>,
    /// Which files were read, and how they were then.
    pub(crate) files: Arc<FileState>,
    /// What directories say that are worked in, where anything is looked for.
    pub(crate) memory: Option<Arc<NestedMemory>>,
    /// Worktrees of sub-agents, where there can be any.
    pub(crate) grounds: Option<Arc<WorktreeGrounds>>,
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) commands: Commands,
    /// The prompts of servers, as they were listed last.
    pub(crate) server_prompts: Vec<Typeable>,
    pub(crate) servers: Option<Servers>,
    pub(crate) hooks: Option<Arc<ExternalHooks>>,
    pub(crate) opening: Arc<Opening>,
    pub(crate) notice_sink: NoticeSink,
    pub(crate) switches: Arc<Switches>,
    /// The traces of its prompts, where somebody follows them.
    pub(crate) traces: Option<Arc<Traces>>,
    pub(crate) inventory: Arc<Inventory>,
    /// Who looks the installation over, where somebody does.
    pub(crate) examiner: Option<Arc<dyn Examiner>>,
    /// The models that may be chosen.
    pub(crate) models: ModelList,
    /// What its prompts may attach; nothing where they bring everything along.
    pub(crate) attachments: Option<Attachments>,
    /// What follows the settings while it lives.
    pub(crate) watch: Option<Arc<ConfigWatch>>,
    /// Which instruction files are left out.
    pub(crate) excludes: Option<Excludes>,
    pub(crate) following: Option<AbortOnDropHandle<()>>,
    /// Where agents are that go on by themselves.
    pub(crate) fleet: Option<Arc<dyn crate::background::Fleet>>,
    /// What is told of it, but for what changes.
    pub(crate) facts: Facts,
    pub(crate) source: SessionSource,
    pub(crate) stage: Stage,
    /// What names the prompt that comes next.
    pub(crate) prompt_id: Option<PromptId>,
    /// The prompt that was worked on last in this process.
    pub(crate) last_prompt: Option<Message>,
    /// What all runs so far came to.
    pub(crate) totals: RunTotals,
    /// Turns and cost of the session before this process.
    pub(crate) earlier: (u64, Decimal),
}

/// The rules by which a session judges calls.
#[derive(Debug, Clone)]
pub(crate) struct LiveRules(Arc<Gate>);

impl LiveRules {
    /// Judges by other rules from the next call on. What the operator decided in the session
    /// stays.
    pub(crate) fn replace(&self, book: RuleBook) {
        self.0.replace_rules(book);
    }
}

/// How calls are judged in a session, at every moment.
#[derive(Debug, Clone)]
pub struct LiveMode(pub(crate) Arc<Gate>);

impl LiveMode {
    pub fn regime(&self) -> Regime {
        self.0.regime()
    }
}

/// What the commands of a session see of the environment.
#[derive(Debug, Clone)]
pub(crate) struct LiveEnvironment(Option<Arc<Shell>>);

impl LiveEnvironment {
    /// Commands see this from the next one on.
    pub(crate) fn replace(&self, environment: Vec<(OsString, OsString)>) {
        if let Some(shell) = &self.0 {
            shell.replace_environment(environment);
        }
    }
}

/// Whether anything was asked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    New,
    Begun,
}

/// Adds what a session knows and a run does not: what earlier runs came to.
struct Accounting<'a> {
    listener: &'a dyn Listener,
    earlier: &'a RunTotals,
    checkpoints: Option<&'a Checkpoints>,
}

fn accounting<'a>(listener: &'a dyn Listener, earlier: &'a RunTotals) -> Accounting<'a> {
    Accounting {
        listener,
        earlier,
        checkpoints: None,
    }
}

impl Listener for Accounting<'_> {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        if let (Some(checkpoints), Event::ToolReady { name, input, .. }) =
            (self.checkpoints, &event)
        {
            checkpoints.announced(name, input);
        }
        self.listener.hear(match event {
            Event::Finished { outcome, totals } => Event::Finished {
                outcome,
                totals: Box::new(totals.after(self.earlier)),
            },
            event => event,
        })
    }
}

impl Session {
    /// How calls are judged at this moment.
    pub(crate) fn regime(&self) -> Regime {
        self.gate.regime()
    }

    /// The rules of the session, to be replaced when the settings change.
    pub(crate) fn rules(&self) -> LiveRules {
        LiveRules(Arc::clone(&self.gate))
    }

    /// The environment of its commands, to be replaced when the settings change.
    pub(crate) fn environment(&self) -> LiveEnvironment {
        LiveEnvironment(self.jobs.as_ref().map(|jobs| Arc::clone(jobs.shell())))
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The MCP servers that take part.
    pub(crate) fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }

    /// What can be changed while it works.
    pub(crate) fn controls(&self, latch: Latch) -> SessionControls {
        let settings = &self.agent.settings;
        let dial = self.agent.dial.clone();
        SessionControls {
            gate: Arc::clone(&self.gate),
            latch: Mutex::new(latch),
            dial: dial.unwrap_or_else(|| Dial::new(settings.model.clone(), settings.reasoning)),
            default_model: Arc::clone(&settings.model),
            models: self.models.clone(),
            servers: self.servers.clone(),
            switches: Arc::clone(&self.switches),
            jobs: self.jobs.clone(),
        }
    }

    /// Works on one prompt to its end.
    pub(crate) async fn run(
        &mut self,
        prompt: Message,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        #[cfg(debug_assertions)]
        break_on_request(&prompt);
        self.last_prompt = Some(prompt.clone());
        if self.stage == Stage::New {
            self.stage = Stage::Begun;
            if let Some(recorder) = &self.recorder {
                recorder.begin(&self.agent, self.conversation.messages());
            }
            if let Some(hooks) = &self.hooks {
                let starting = hooks.welcome(self.source);
                let said = cancel.run_until_cancelled(starting).await;
                self.opening.add(said.flatten());
            }
        }
        self.finish_rewind(listener).await;
        let listener = Accounting {
            checkpoints: self.checkpoints.as_ref(),
            ..accounting(listener, &self.totals)
        };
        if let Some(dial) = &self.agent.dial {
            let reading = dial.read();
            self.agent.settings.model = reading.model;
            self.agent.settings.reasoning = reading.reasoning;
        }
        let agent = agent_for(&self.agent, &self.commands, &prompt);
        if let Some(checkpoints) = &self.checkpoints {
            let kind = match self.gate.regime() {
                Regime::Rules(PermissionMode::Plan) => Kind::Plan,
                Regime::Rules(_) | Regime::Disabled => Kind::Files,
            };
            // Files and the like that go along are texts of their own, and no title.
            let text = typed(&prompt).to_owned();
            checkpoints.begin(kind, text, self.mark(), self.prompt_id.take());
        }
        let (outcome, totals) = agent
            .run(&mut self.conversation, prompt, &listener, cancel)
            .await;
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.end(self.mark()).await;
        }
        self.account(outcome, &totals)
    }

    /// Where the conversation stands, as its journal counts.
    fn mark(&self) -> Option<Mark> {
        let recorder = self.recorder.as_ref()?;
        recorder.with_writer(|writer| mark(writer.state().position()))
    }

    /// Shortens the conversation because the operator wants it.
    pub(crate) async fn condense(
        &mut self,
        hint: Option<&str>,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let listener = accounting(listener, &self.totals);
        let (outcome, totals) = self
            .agent
            .compact(&mut self.conversation, hint, &listener, cancel)
            .await;
        self.account(outcome, &totals)
    }

    /// Puts a summary in the place of a part of the conversation.
    pub(crate) async fn condense_part(
        &mut self,
        part: Part,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let listener = accounting(listener, &self.totals);
        let (outcome, totals) = self
            .agent
            .compact_part(&mut self.conversation, part, &listener, cancel)
            .await;
        self.account(outcome, &totals)
    }

    /// Summarizes the conversation and leaves it as it is.
    pub(crate) async fn recap(
        &mut self,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let listener = accounting(listener, &self.totals);
        let (outcome, totals) = self
            .agent
            .recap(&mut self.conversation, &listener, cancel)
            .await;
        self.account(outcome, &totals)
    }

    /// Adds what a run came to.
    fn account(&mut self, outcome: Outcome, totals: &RunTotals) -> (Outcome, RunTotals) {
        self.totals = totals.clone().after(&self.totals);
        (outcome, self.totals.clone())
    }

    /// Makes what was saved final, tells hooks of the end, ends background jobs and removes what
    /// they left. The error says why the session could not be saved.
    pub(crate) async fn shutdown(self) -> Result<(), String> {
        let name = self.recorder.as_ref().and_then(Recorder::name);
        let closed = match &self.recorder {
            Some(recorder) => recorder.close().await,
            None => Ok(()),
        };
        let mut checkpoints = self.checkpoints.clone();
        if let Some(kept) = &checkpoints {
            kept.settle().await;
            // What a session leaves is called what it is called at the end.
            if let (Some(name), Ok(configuration)) = (name, self.configuration())
                && name != kept.name()
            {
                kept.close().await;
                move_checkpoints(&configuration, kept.name(), &name);
                checkpoints = None;
            }
        }
        if let Some(grounds) = &self.grounds {
            grounds.settle(WORKTREE_PATIENCE).await;
        }
        if let Some(hooks) = &self.hooks
            && self.stage == Stage::Begun
        {
            let event = HookEvent::SessionEnd {
                reason: "exit".to_owned(),
            };
            self.agent.company.notify(&event).await;
            hooks.drain(HOOK_PATIENCE).await;
        }
        let servers = async {
            if let Some(servers) = &self.servers {
                servers.shutdown(SERVER_PATIENCE).await;
            }
        };
        let jobs = async {
            if let Some(jobs) = &self.jobs {
                jobs.shutdown().await;
            }
        };
        tokio::join!(servers, jobs);
        // What they changed to the last belongs to the session.
        if let Some(checkpoints) = checkpoints {
            checkpoints.close().await;
        }
        if let Some(sandbox) = self.sandbox {
            // There may be much in it.
            let _ = tokio::task::spawn_blocking(move || sandbox.close()).await;
        }
        closed
    }
}

/// Makes tests see what a fault of our own looks like: where `CALIBAN_TEST_PANIC` is set, a prompt
/// that holds its text panics. Release builds do not have it.
#[cfg(debug_assertions)]
fn break_on_request(prompt: &Message) {
    let marked = std::env::var("CALIBAN_TEST_PANIC").ok();
    let is_meant = |mark: String| !mark.is_empty() && prompt.text().contains(&mark);
    assert!(!marked.is_some_and(is_meant), "as CALIBAN_TEST_PANIC asked");
}

/// The agent that works on a prompt: a command may ask for a model of its own.
fn agent_for<'a>(agent: &'a Agent, commands: &Commands, prompt: &Message) -> Cow<'a, Agent> {
    match commands.model(typed(prompt)) {
        None => Cow::Borrowed(agent),
        Some(model) => {
            let mut agent = agent.clone();
            agent.settings.model = Arc::from(model);
            Cow::Owned(agent)
        }
    }
}
