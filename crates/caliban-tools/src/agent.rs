//! The tool that hands a task to another agent with a conversation of its own.

use std::sync::Arc;

use caliban_agent::{
    Agent, Conversation, Details, Effect, Event, HookEvent, Inheritance, Listener, Outcome,
    ToolContext, ToolOutput, ToolStatus, TypedTool,
};
use caliban_model::{Message, Purpose};
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

/// The most turns a sub-agent takes.
const MAX_TURNS: u32 = 20;
/// The most characters of its answer that its parent reads.
const MAX_ANSWER: usize = 5_000;
/// The name that is never offered to a sub-agent.
const NAME: &str = "AgentTool";

/// Runs sub-agents modelled on one agent: same provider, same rules and hooks, same ledger, a
/// conversation of their own. A sub-agent cannot start another.
#[derive(Debug)]
pub struct AgentTool {
    parent: Arc<Agent>,
    system: Option<String>,
    kinds: Vec<AgentKind>,
}

/// A kind of sub-agent that somebody defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKind {
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// What it is told before its task.
    pub prompt: String,
    /// The tools it may use; all of its parent's if left out.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
}

/// The kind that is always there.
const GENERAL: &str = "general-purpose";

/// What a sub-agent is asked to do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentInput {
    /// The whole task: the sub-agent sees nothing else of this conversation.
    prompt: String,
    /// The names of the tools it may use, such as Read, Grep and Glob. All of yours if left out.
    #[serde(default)]
    tool_allowlist: Option<Vec<String>>,
    /// Another model than yours.
    #[serde(default)]
    model: Option<String>,
    /// Three to five words on what it is for.
    #[serde(default)]
    description: Option<String>,
    // Without a doc comment: the name says it, and every request would carry it.
    #[serde(default)]
    inherit_hooks: Option<bool>,
    #[serde(default)]
    #[schemars(skip)]
    isolation: Isolation,
    #[serde(default, alias = "run_in_background")]
    #[schemars(skip)]
    background: bool,
    #[serde(default)]
    #[schemars(skip)]
    subagent_type: Option<String>,
}

/// Where a sub-agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Isolation {
    /// In the directory of its parent.
    #[default]
    None,
    Worktree,
}

impl AgentInput {
    /// What was asked for and cannot be had: better refused than silently done otherwise.
    fn unavailable(&self) -> Option<&'static str> {
        match (self.isolation, self.background) {
            (Isolation::Worktree, _) => Some(
                "Sub-agents cannot work in a worktree of their own here. Leave out `isolation`: \
                 the sub-agent then works in your directory.",
            ),
            (Isolation::None, true) => Some(
                "Sub-agents cannot work in the background here. Leave out `background`: start \
                 several in one turn to have them work in parallel.",
            ),
            (Isolation::None, false) => None,
        }
    }

    fn inheritance(&self) -> Inheritance {
        match self.inherit_hooks {
            Some(false) => Inheritance::Managed,
            Some(true) | None => Inheritance::All,
        }
    }
}

impl AgentTool {
    /// `parent` is the agent whose tools, rules and limits a sub-agent shares; its registry does
    /// not hold this tool. `system` is what a sub-agent is told about where it is.
    pub fn new(parent: Agent, system: Option<String>) -> Self {
        Self {
            parent: Arc::new(parent),
            system,
            kinds: Vec::new(),
        }
    }

    /// The same with kinds that a call may name.
    #[must_use]
    pub fn with_kinds(mut self, kinds: Vec<AgentKind>) -> Self {
        self.kinds = kinds;
        self
    }

    /// The kind that a call names; the error says which there are.
    fn kind(&self, input: &AgentInput) -> Result<Option<&AgentKind>, String> {
        let Some(name) = input
            .subagent_type
            .as_deref()
            .filter(|name| *name != GENERAL)
        else {
            return Ok(None);
        };
        let found = self.kinds.iter().find(|kind| kind.name == name);
        found.map(Some).ok_or_else(|| {
            let known = self.kinds.iter().map(|kind| kind.name.as_str());
            let known: Vec<&str> = std::iter::once(GENERAL).chain(known).collect();
            format!(
                "There is no agent `{name}`. The agents are: {}.",
                known.join(", ")
            )
        })
    }

    fn sub_agent(&self, input: &AgentInput, kind: Option<&AgentKind>, call_id: Arc<str>) -> Agent {
        let mut agent = Agent::clone(&self.parent);
        if let Some(dial) = &agent.dial {
            let reading = dial.read();
            agent.settings.model = reading.model;
            agent.settings.reasoning = reading.reasoning;
        }
        let of_kind = kind.and_then(|kind| kind.tools.clone());
        let allowed = input.tool_allowlist.clone().or(of_kind);
        agent.tools = agent.tools.filtered(move |name| {
            let is_allowed = |allowed: &Vec<String>| allowed.iter().any(|wanted| wanted == name);
            name != NAME && allowed.as_ref().is_none_or(is_allowed)
        });
        let of_kind = kind.and_then(|kind| kind.model.as_deref());
        let named = input.model.as_deref().or(of_kind).map(Arc::from);
        if let Some(model) = named.or_else(|| agent.settings.overrides.sub_agent.clone()) {
            agent.settings.model = model;
        }
        agent.settings.limits.max_turns = MAX_TURNS;
        agent.settings.purpose = Purpose::SubAgent;
        agent.settings.answer = None;
        agent.mailbox = None;
        agent.dial = None;
        agent.company = self.parent.company.for_sub_agent(input.inheritance());
        agent.works_for = Some(call_id);
        agent
    }
}

/// Passes a sub-agent's events on under its call.
struct Relay<'a>(&'a ToolContext);

impl Listener for Relay<'_> {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        self.0.progress.nested(event).boxed()
    }
}

impl TypedTool for AgentTool {
    type Input = AgentInput;

    const NAME: &'static str = NAME;
    const DESCRIPTION: &'static str = "\
Hands a self-contained task to a sub-agent with its own context and returns its final answer (at \
most 5,000 characters). Use it for searches and investigations whose intermediate output you do \
not need, and start several in one turn to work in parallel. It knows nothing but your prompt: \
say what to find out, where to look and what to answer with. It takes at most 20 turns.";
    const EFFECT: Effect = Effect::Delegates;

    fn first_arg(&self, input: &AgentInput) -> Option<String> {
        Some(
            input
                .description
                .as_ref()
                .unwrap_or(&input.prompt)
                .to_owned(),
        )
    }

    async fn run(&self, input: AgentInput, context: ToolContext) -> ToolOutput {
        if input.prompt.trim().is_empty() {
            return ToolOutput::invalid("The prompt is empty; describe the whole task.");
        }
        if let Some(reason) = input.unavailable() {
            return ToolOutput::new(ToolStatus::CouldNotRun, reason);
        }
        let kind = match self.kind(&input) {
            Ok(kind) => kind,
            Err(problem) => return ToolOutput::invalid(problem),
        };
        let agent = self.sub_agent(&input, kind, Arc::clone(&context.call_id));
        // Whether there is a sub-agent is its parent's business, whatever it inherits.
        self.parent
            .company
            .notify(&HookEvent::TaskCreated {
                id: context.call_id.to_string(),
                task: input.prompt.clone(),
            })
            .await;
        self.parent
            .company
            .notify(&HookEvent::SubagentStart {
                call_id: Arc::clone(&context.call_id),
                prompt: input.prompt.clone(),
            })
            .await;
        let texts = [self.system.clone(), kind.map(|kind| kind.prompt.clone())];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        let system = (!texts.is_empty()).then(|| Message::system(texts.join("\n\n")));
        let mut conversation = Conversation::new(system.map(Arc::new).into_iter().collect());
        // A sub-agent's future is as large as its parent's; on the heap it does not add up.
        let relay = Relay(&context);
        let prompt = Message::user(input.prompt);
        let running = Box::pin(agent.run(&mut conversation, prompt, &relay, &context.cancel));
        let (outcome, totals) = running.await;
        self.parent
            .company
            .notify(&HookEvent::SubagentStop {
                call_id: Arc::clone(&context.call_id),
                outcome: outcome.clone(),
            })
            .await;
        self.parent
            .company
            .notify(&HookEvent::TaskCompleted {
                id: context.call_id.to_string(),
            })
            .await;
        report(&outcome, totals.last_text.as_deref()).with_details(Details::Delegated {
            denials: totals.denials,
        })
    }
}

/// The answer, or how far it came and why it did not end: never a success that was none.
fn report(outcome: &Outcome, last_text: Option<&str>) -> ToolOutput {
    let status = match outcome {
        Outcome::Success { text } if text.trim().is_empty() => {
            return ToolOutput::ok("(the sub-agent finished without an answer)");
        }
        Outcome::Success { text } | Outcome::Obeyed { text, .. } => {
            return ToolOutput::ok(cut(text));
        }
        Outcome::Cancelled => ToolStatus::Cancelled,
        Outcome::MaxTurns { .. }
        | Outcome::BudgetExceeded { .. }
        | Outcome::MaxTokens
        | Outcome::Provider(_)
        | Outcome::HookDenied { .. }
        | Outcome::Refusal { .. }
        | Outcome::ContentFilter { .. }
        | Outcome::ContextFull { .. }
        | Outcome::Looping { .. }
        | Outcome::SchemaMismatch { .. }
        | Outcome::Unusable { .. }
        | Outcome::Misused { .. }
        | Outcome::Internal { .. } => ToolStatus::Failed,
    };
    let reason = match outcome {
        // No flag raises this limit.
        Outcome::MaxTurns { limit } => format!("it took {limit} turns, the most it may"),
        outcome => outcome.message().unwrap_or_default(),
    };
    let text = match last_text {
        Some(text) => format!(
            "The sub-agent did not finish ({reason}). Its last words were:\n\n{}",
            cut(text)
        ),
        None => format!("The sub-agent did not finish: {reason}."),
    };
    ToolOutput::new(status, text)
}

fn cut(text: &str) -> String {
    let total = text.chars().count();
    if total <= MAX_ANSWER {
        return text.to_owned();
    }
    let head: String = text.chars().take(MAX_ANSWER).collect();
    format!(
        "{head}\n[… {} more characters were cut]",
        total - MAX_ANSWER
    )
}
