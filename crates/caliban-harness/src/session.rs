//! A session: an agent with everything it shares over its life.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{
    Agent, Conversation, Event, HookEvent, Listener, Outcome, RunTotals, SessionSource,
};
use caliban_context::Commands;
use caliban_hooks::ExternalHooks;
use caliban_mcp::Servers;
use caliban_model::{CancellationToken, Message, Reasoning};
use caliban_permissions::{Regime, RuleBook, RuleError};
use caliban_settings::{PermissionMode, RuleAction};
use caliban_tools::{Jobs, Shell};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::asides::Asides;
use crate::extras::{Opening, typed};
use crate::gate::Gate;
use crate::recorder::Recorder;

/// How long servers may take to end by themselves.
const SERVER_PATIENCE: Duration = Duration::from_millis(500);
/// How long hooks that nobody waits for may take at the end.
const HOOK_PATIENCE: Duration = Duration::from_secs(1);

/// A conversation with an agent. Dropping it ends everything it started.
#[derive(Debug)]
pub struct Session {
    pub(crate) agent: Agent,
    pub(crate) conversation: Conversation,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) jobs: Option<Arc<Jobs>>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) commands: Commands,
    pub(crate) servers: Option<Servers>,
    pub(crate) hooks: Option<Arc<ExternalHooks>>,
    pub(crate) opening: Arc<Opening>,
    pub(crate) asides: Asides,
    pub(crate) source: SessionSource,
    pub(crate) stage: Stage,
    /// What all runs so far came to.
    pub(crate) totals: RunTotals,
}

/// The rules by which a session judges calls.
#[derive(Debug, Clone)]
pub struct LiveRules(Arc<Gate>);

impl LiveRules {
    /// Judges by other rules from the next call on. What the operator decided in the session
    /// stays.
    pub fn replace(&self, book: RuleBook) {
        self.0.replace_rules(book);
    }

    /// How calls are judged at this moment.
    pub fn regime(&self) -> Regime {
        self.0.regime()
    }

    /// Judges by another mode from the next call on.
    pub fn set_mode(&self, mode: PermissionMode) {
        self.0.set_mode(mode);
    }

    /// Decides like this for the rest of the session; a pattern that is none is an error.
    pub fn add(&self, pattern: &str, action: RuleAction) -> Result<(), RuleError> {
        self.0.remember(pattern, action)
    }

    /// Takes back everything of this kind that [`add`](Self::add) said.
    pub fn clear(&self, action: RuleAction) {
        self.0.forget(None, action);
    }

    /// Takes back what [`add`](Self::add) said.
    pub fn remove(&self, pattern: &str, action: RuleAction) {
        self.0.forget(Some(pattern), action);
    }
}

/// What the commands of a session see of the environment.
#[derive(Debug, Clone)]
pub struct LiveEnvironment(Option<Arc<Shell>>);

impl LiveEnvironment {
    /// Commands see this from the next one on.
    pub fn replace(&self, environment: Vec<(OsString, OsString)>) {
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

/// Adds what a session knows and a run does not: what earlier runs came to, and what its parts
/// had to say meanwhile.
struct Accounting<'a> {
    listener: &'a dyn Listener,
    recorder: Option<&'a Recorder>,
    asides: &'a Asides,
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
            if let Some(recorder) = self.recorder {
                recorder.record(&event).await;
            }
            for aside in self.asides.take() {
                self.listener.hear(aside).await;
            }
            self.listener.hear(event).await;
        }
        .boxed()
    }
}

impl Session {
    /// How calls are judged at this moment.
    pub fn regime(&self) -> Regime {
        self.gate.regime()
    }

    /// The rules of the session, to be replaced when the settings change.
    pub fn rules(&self) -> LiveRules {
        LiveRules(Arc::clone(&self.gate))
    }

    /// The environment of its commands, to be replaced when the settings change.
    pub fn environment(&self) -> LiveEnvironment {
        LiveEnvironment(self.jobs.as_ref().map(|jobs| Arc::clone(jobs.shell())))
    }

    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The MCP servers that take part.
    pub fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }

    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Uses another model from the next prompt on; agents that work for this one stay with theirs.
    pub fn set_model(&mut self, model: impl Into<Arc<str>>) {
        self.agent.settings.model = model.into();
    }

    /// Thinks as hard as this from the next prompt on.
    pub fn set_reasoning(&mut self, reasoning: Reasoning) {
        self.agent.settings.reasoning = reasoning;
    }

    /// Makes a message part of the conversation that no run produced: what was said of an answer
    /// before it was cut off, and that it was.
    pub fn amend(&mut self, message: Message) {
        let message = Arc::new(message);
        self.conversation.push(Arc::clone(&message));
        if let Some(recorder) = &self.recorder {
            recorder.message(&message);
        }
    }

    /// Works on one prompt to its end.
    pub async fn run(
        &mut self,
        prompt: Message,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        if self.stage == Stage::New {
            self.stage = Stage::Begun;
            if let Some(recorder) = &self.recorder {
                recorder.begin(self.conversation.messages());
            }
            let starting = self.agent.hooks.at_start(self.source);
            let said = cancel.run_until_cancelled(starting).await;
            self.opening.set(said.flatten());
        }
        let listener = Accounting {
            listener,
            recorder: self.recorder.as_ref(),
            asides: &self.asides,
            earlier: &self.totals,
        };
        let agent = agent_for(&self.agent, &self.commands, &prompt);
        let (outcome, totals) = agent
            .run(&mut self.conversation, prompt, &listener, cancel)
            .await;
        self.totals = totals.after(&self.totals);
        (outcome, self.totals.clone())
    }

    /// Makes what was saved final, tells hooks of the end, ends background jobs and removes what
    /// they left. The error says why the session could not be saved.
    pub async fn shutdown(self) -> Result<(), String> {
        let closed = match &self.recorder {
            Some(recorder) => recorder.close().await,
            None => Ok(()),
        };
        if let Some(hooks) = &self.hooks
            && self.stage == Stage::Begun
        {
            let event = HookEvent::SessionEnd {
                reason: "exit".to_owned(),
            };
            self.agent.hooks.notify(&event).await;
            hooks.drain(HOOK_PATIENCE).await;
        }
        let servers = async {
            if let Some(servers) = &self.servers {
                servers.shutdown(SERVER_PATIENCE).await;
            }
        };
        let jobs = async {
            if let Some(jobs) = self.jobs {
                jobs.shutdown().await;
            }
        };
        tokio::join!(servers, jobs);
        closed
    }
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
