//! The tool that hands a task to another agent with a conversation of its own.

mod ground;
mod kind;
mod moving;

use std::sync::Arc;

use caliban_agent::{
    Agent, Conversation, Details, Effect, Event, HookEvent, Inheritance, Listener, Outcome,
    ToolContext, ToolOutput, ToolStatus, TypedTool, input_schema,
};
use caliban_model::{Message, Purpose, ToolContent};
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub use ground::{Ground, GroundWish, Grounds, Occupant};
pub use kind::{AgentKind, Attendance, Isolation, Recollection};

use moving::Task;

use crate::background_agent::{Background, BackgroundHooks, BackgroundTask};
use crate::shell::Jobs;

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
    /// The kind that is meant where a call names none.
    default_kind: Option<String>,
    grounds: Option<Arc<dyn Grounds>>,
    background: Option<Arc<dyn Background>>,
    models: Option<Arc<dyn ModelPolicy>>,
    /// Who says that the operator wants one in the background.
    jobs: Option<Arc<Jobs>>,
}

/// Which models a sub-agent may have beside its parent's.
pub trait ModelPolicy: std::fmt::Debug + Send + Sync {
    /// Why this one may not be had, if so.
    fn check(&self, model: &str) -> Result<(), String>;

    /// The model that a name stands for.
    fn meant(&self, name: String) -> String;
}

/// The most that the model reads about all kinds, and about one, in characters.
const MAX_MENU: usize = 6_000;
const MAX_DESCRIPTION: usize = 300;

/// The kind that is always there.
pub const GENERAL: &str = "general-purpose";

/// What a sub-agent is asked to do.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
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
    // These are in the schema where they can be had, in fewer words.
    #[serde(default)]
    #[schemars(skip)]
    isolation: Option<Isolation>,
    #[serde(default)]
    #[schemars(skip)]
    worktree: Option<GroundWish>,
    /// Let it go on by itself, after this session too; returns its id at once and no answer.
    #[serde(default, alias = "run_in_background")]
    background: Option<bool>,
    #[serde(default)]
    #[schemars(skip)]
    subagent_type: Option<String>,
}

impl AgentInput {
    fn isolation(&self, kind: Option<&AgentKind>) -> Isolation {
        let wished = self.worktree.as_ref().map(|_| Isolation::Worktree);
        let of_kind = kind.map(|kind| kind.isolation);
        self.isolation.or(wished).or(of_kind).unwrap_or_default()
    }

    fn attendance(&self, kind: Option<&AgentKind>) -> Attendance {
        match self.background {
            Some(true) => Attendance::Background,
            Some(false) => Attendance::Foreground,
            None => kind.map(|kind| kind.attendance).unwrap_or_default(),
        }
    }

    fn inheritance(&self, kind: Option<&AgentKind>) -> Inheritance {
        match self.inherit_hooks {
            Some(false) => Inheritance::Managed,
            Some(true) => Inheritance::All,
            None => kind.map_or(Inheritance::All, |kind| kind.hooks),
        }
    }

    fn purpose(&self) -> &str {
        self.description.as_ref().unwrap_or(&self.prompt)
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
            default_kind: None,
            grounds: None,
            background: None,
            models: None,
            jobs: None,
        }
    }

    /// The same where sub-agents at work can be moved to the background, as commands are.
    #[must_use]
    pub fn with_jobs(mut self, jobs: Option<Arc<Jobs>>) -> Self {
        self.jobs = jobs;
        self
    }

    /// The same where not every model may be chosen.
    #[must_use]
    pub fn with_models(mut self, models: Arc<dyn ModelPolicy>) -> Self {
        self.models = Some(models);
        self
    }

    /// The same where agents can go on by themselves.
    #[must_use]
    pub fn with_background(mut self, background: Option<Arc<dyn Background>>) -> Self {
        self.background = background;
        self
    }

    /// The same with kinds that a call may name.
    #[must_use]
    pub fn with_kinds(mut self, kinds: Vec<AgentKind>) -> Self {
        self.kinds = kinds;
        self
    }

    /// The same with the kind that is meant where a call names none.
    #[must_use]
    pub fn with_default(mut self, name: Option<String>) -> Self {
        self.default_kind = name;
        self
    }

    /// The same with directories of their own for those that want one.
    #[must_use]
    pub fn with_grounds(mut self, grounds: Option<Arc<dyn Grounds>>) -> Self {
        self.grounds = grounds;
        self
    }

    /// The kind that a call names; the error says which there are.
    fn kind(&self, input: &AgentInput) -> Result<Option<&AgentKind>, String> {
        let named = input.subagent_type.as_deref();
        let Some(name) = named
            .or(self.default_kind.as_deref())
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

    /// Hands the task to an agent that outlives this session.
    async fn detach(&self, input: AgentInput, kind: Option<&AgentKind>) -> ToolOutput {
        let Some(background) = &self.background else {
            return ToolOutput::new(ToolStatus::CouldNotRun, NO_BACKGROUND);
        };
        match background.start(self.task(input, kind)).await {
            Ok(told) => ToolOutput::ok(told),
            Err(reason) => ToolOutput::new(ToolStatus::Failed, reason),
        }
    }

    /// What an agent in the background is to do.
    fn task(&self, input: AgentInput, kind: Option<&AgentKind>) -> BackgroundTask {
        let worktree = match input.isolation(kind) {
            Isolation::None => None,
            Isolation::Worktree => Some(input.worktree.clone().unwrap_or_default()),
        };
        let hooks = match input.inheritance(kind) {
            Inheritance::All => BackgroundHooks::Inherited,
            Inheritance::Managed => BackgroundHooks::Managed,
        };
        // Where the operator chose another model since, it is that one.
        let dialled = self.parent.dial.as_ref().map(|dial| dial.read().model);
        let dialled = dialled.filter(|model| *model != self.parent.settings.model);
        BackgroundTask {
            tools: narrowed(
                input.tool_allowlist,
                kind.and_then(|kind| kind.tools.clone()),
            ),
            without: kind.map(|kind| kind.without.clone()).unwrap_or_default(),
            model: input
                .model
                .or_else(|| kind.and_then(|kind| kind.model.clone()))
                .or_else(|| dialled.map(|model| model.to_string())),
            kind: kind.map(|kind| (kind.name.clone(), kind.prompt.clone())),
            prompt: input.prompt,
            description: input.description,
            hooks,
            worktree,
            handover: None,
        }
    }

    fn sub_agent(&self, input: &AgentInput, kind: Option<&AgentKind>, call_id: Arc<str>) -> Agent {
        let mut agent = Agent::clone(&self.parent);
        if let Some(dial) = &agent.dial {
            let reading = dial.read();
            agent.settings.model = reading.model;
            agent.settings.reasoning = reading.reasoning;
        }
        // A call may narrow what a kind has, and never widen it.
        let of_kind = kind.and_then(|kind| kind.tools.clone());
        let without = kind.map(|kind| kind.without.clone()).unwrap_or_default();
        let of_call = input.tool_allowlist.clone();
        agent.tools = agent.tools.filtered(move |name| {
            let is_listed = |list: &Vec<String>| list.iter().any(|wanted| wanted == name);
            name != NAME
                && of_kind.as_ref().is_none_or(is_listed)
                && of_call.as_ref().is_none_or(is_listed)
                && !is_listed(&without)
        });
        if let Some(memory) = kind.and_then(|kind| kind.memory.as_ref()) {
            agent.tools = agent.tools.with(&memory.tools());
        }
        if let Some(reasoning) = kind.and_then(|kind| kind.reasoning) {
            agent.settings.reasoning = reasoning;
        }
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
        agent.company = self.parent.company.for_sub_agent(input.inheritance(kind));
        agent.works_for = Some(call_id);
        agent
    }
}

/// The tools that a call names and its kind has: a call may narrow, and never widen.
fn narrowed(of_call: Option<Vec<String>>, of_kind: Option<Vec<String>>) -> Option<Vec<String>> {
    match (of_call, of_kind) {
        (Some(mut of_call), Some(of_kind)) => {
            of_call.retain(|name| of_kind.contains(name));
            Some(of_call)
        }
        (of_call, of_kind) => of_call.or(of_kind),
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
        Some(input.purpose().to_owned())
    }

    /// What there is to choose from is part of it.
    fn description(&self) -> String {
        let mut text = Self::DESCRIPTION.trim().to_owned();
        if self.kinds.is_empty() {
            return text;
        }
        text.push_str("\n\nKinds of agents for `subagent_type`:");
        let mut left = MAX_MENU;
        for kind in &self.kinds {
            let about: String = kind.description.chars().take(MAX_DESCRIPTION).collect();
            let line = format!("\n- {}: {}", kind.name, about.replace('\n', " "));
            let length = line.chars().count();
            // Names are always there: who is not described can still be asked for.
            let line = if length > left {
                format!("\n- {}", kind.name)
            } else {
                line
            };
            left = left.saturating_sub(length);
            text.push_str(&line);
        }
        text
    }

    fn schema(&self) -> Value {
        let mut schema = input_schema::<AgentInput>();
        let Some(fields) = schema["properties"].as_object_mut() else {
            return schema;
        };
        if self.grounds.is_some() {
            let isolation = json!({
                "enum": ["none", "worktree"],
                "description": "worktree: in a git worktree of its own, to change files beside you",
            });
            let worktree = json!({
                "type": "object",
                "description": "base_ref, sparse_paths, symlink_directories",
            });
            fields.insert("isolation".to_owned(), isolation);
            fields.insert("worktree".to_owned(), worktree);
        }
        if !self.kinds.is_empty() {
            let names = self.kinds.iter().map(|kind| kind.name.as_str());
            let names: Vec<&str> = std::iter::once(GENERAL).chain(names).collect();
            fields.insert(
                "subagent_type".to_owned(),
                json!({"type": "string", "enum": names}),
            );
        }
        schema
    }

    async fn run(&self, mut input: AgentInput, context: ToolContext) -> ToolOutput {
        if let Some(models) = &self.models {
            input.model = input.model.take().map(|name| models.meant(name));
        }
        if input.prompt.trim().is_empty() {
            return ToolOutput::invalid("The prompt is empty; describe the whole task.");
        }
        let kind = match self.kind(&input) {
            Ok(kind) => kind,
            Err(problem) => return ToolOutput::invalid(problem),
        };
        let of_kind = kind.and_then(|kind| kind.model.as_deref());
        if let (Some(models), Some(model)) = (&self.models, input.model.as_deref().or(of_kind))
            && let Err(reason) = models.check(model)
        {
            return ToolOutput::new(ToolStatus::CouldNotRun, reason);
        }
        match input.attendance(kind) {
            Attendance::Background if self.background.is_some() || input.background.is_some() => {
                return self.detach(input, kind).await;
            }
            // What its file says is a wish, and somebody has to do the task.
            Attendance::Background | Attendance::Foreground => {}
        }
        let mut agent = self.sub_agent(&input, kind, Arc::clone(&context.call_id));
        let ground = match self.ground(&input, kind, &context).await {
            Ok(ground) => ground,
            Err(reason) => return ToolOutput::new(ToolStatus::CouldNotRun, reason),
        };
        if let Some(ground) = &ground {
            ground.furnish(&mut agent);
        }
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
        let place = ground.as_ref().map(|ground| ground.briefing());
        let memory = kind.and_then(|kind| kind.memory.as_ref()?.text());
        let texts = [
            place.or_else(|| self.system.clone()),
            kind.map(|kind| kind.prompt.clone()),
            memory,
        ];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        let system = (!texts.is_empty()).then(|| Message::system(texts.join("\n\n")));
        let mut conversation = Conversation::new(system.map(Arc::new).into_iter().collect());
        let task = Task {
            input: &input,
            kind,
            agent: &agent,
            ground: ground.as_deref(),
            context: &context,
        };
        let done = self.see_through(&task, &mut conversation).await;
        self.parent
            .company
            .notify(&HookEvent::SubagentStop {
                call_id: Arc::clone(&context.call_id),
                outcome: done.outcome.clone(),
            })
            .await;
        self.parent
            .company
            .notify(&HookEvent::TaskCompleted {
                id: context.call_id.to_string(),
            })
            .await;
        let mut output = match done.moved {
            Some(told) => ToolOutput::ok(format!("The user moved it to the background. {told}")),
            None => report(&done.outcome, done.last_text.as_deref()),
        };
        if let Some(ground) = ground {
            let text = ground.leave().await;
            output.content.push(ToolContent::Text { text });
        }
        output.with_details(Details::Delegated {
            denials: done.denials,
        })
    }
}

const NO_BACKGROUND: &str = "Sub-agents cannot work in the background here. Leave out \
`background`: start several in one turn to have them work in parallel.";

const NO_GROUND: &str = "Sub-agents cannot work in a worktree of their own here, and this one was \
to: leave out `isolation` to have it work in your directory.";

impl AgentTool {
    /// The directory of its own that a sub-agent is to have.
    async fn ground(
        &self,
        input: &AgentInput,
        kind: Option<&AgentKind>,
        context: &ToolContext,
    ) -> Result<Option<Box<dyn Ground>>, String> {
        match input.isolation(kind) {
            Isolation::None => return Ok(None),
            Isolation::Worktree => {}
        }
        let grounds = self.grounds.as_ref().ok_or(NO_GROUND)?;
        let occupant = Occupant {
            call_id: Arc::clone(&context.call_id),
            purpose: input.purpose().to_owned(),
        };
        let wish = input.worktree.clone().unwrap_or_default();
        grounds.prepare(occupant, wish).await.map(Some)
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
