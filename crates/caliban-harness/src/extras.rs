//! What operators and projects add to a session: memory, skills, styles, commands and hooks.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_agent::{
    Answer, Event, HookEvent, Hooks, Inheritance, PromptVerdict, ToolCall, Verdict, Workspace,
};
use caliban_context::{Commands, Context, Expansion, NoteStore, OnDemand};
use caliban_hooks::{EventWording, HookConfig};
use caliban_model::{Block, Message};
use caliban_permissions::file_path;
use caliban_process::Guard;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::asides::Asides;
use crate::gate::Gate;

/// Everything that is added.
#[derive(Debug)]
pub struct Extras {
    pub context: Context,
    /// The name of the output style.
    pub style: Option<String>,
    /// The agent's notes, where it may keep any.
    pub notes: Option<NoteStore>,
    pub hooks: HookConfig,
    /// All that the programs of hooks see of the environment.
    pub hook_environment: Vec<(OsString, OsString)>,
    /// Who makes sure that nothing outlives them.
    pub guard: Guard,
    /// Where hooks know other names than ours.
    pub hook_wording: Option<Arc<dyn EventWording>>,
    pub repository: Repository,
}

/// Whether the commands of the repository may use tools without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repository {
    Trusted,
    Untrusted,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Expands `/name args` into the command's prompt, after everybody has seen what was typed. Until
/// the next prompt the tools that the command names need no consent.
#[derive(Debug)]
pub(crate) struct CommandExpander {
    pub(crate) commands: Commands,
    pub(crate) repository: Repository,
    pub(crate) gate: Arc<Gate>,
}

impl CommandExpander {
    fn lend(&self, expansion: &Expansion) {
        let counts = match self.repository {
            Repository::Trusted => true,
            Repository::Untrusted => !expansion.origin.is_repository(),
        };
        if counts {
            self.gate.lend(&expansion.allowed_tools);
        }
    }
}

impl Hooks for CommandExpander {
    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        async move {
            self.gate.lend(&[]);
            match self.commands.expand(typed(prompt)) {
                Ok(None) => PromptVerdict::Accept,
                Ok(Some(expansion)) => {
                    self.lend(&expansion);
                    PromptVerdict::Replace {
                        prompt: expansion.prompt,
                        addition: None,
                    }
                }
                Err(error) => PromptVerdict::Deny {
                    reason: error.to_string(),
                },
            }
        }
        .boxed()
    }
}

/// What was typed; what goes along with it are other blocks.
pub(crate) fn typed(prompt: &Message) -> &str {
    match prompt.content.first() {
        Some(Block::Text { text, .. }) => text,
        Some(_) | None => "",
    }
}

/// What hooks said when the session started, until the first prompt is accepted. It is no part of
/// the prompt that others judge and commands are found in.
#[derive(Debug, Default)]
pub(crate) struct Opening(Mutex<Option<String>>);

impl Opening {
    pub(crate) fn set(&self, text: Option<String>) {
        *lock(&self.0) = text;
    }
}

impl Hooks for Opening {
    fn before_prompt<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        let text = lock(&self.0).take();
        async move { text.map_or(PromptVerdict::Accept, PromptVerdict::AcceptWith) }.boxed()
    }
}

/// Brings up instruction files of the directories that one agent's tools work in.
#[derive(Debug)]
pub(crate) struct NestedMemory {
    on_demand: Mutex<OnDemand>,
    workspace: Workspace,
    found: Mutex<Vec<String>>,
    asides: Asides,
}

/// The tools whose paths count as being worked on.
const TOUCHING: [&str; 5] = ["Edit", "MultiEdit", "NotebookEdit", "Read", "Write"];

impl Hooks for NestedMemory {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        if let HookEvent::PostToolUse { call, .. } = event
            && TOUCHING.contains(&&*call.name)
            && let Some(path) = file_path(&call.input)
            && let Ok(resolved) = self.workspace.resolve_freely(path)
        {
            self.touch(&resolved.real);
        }
        async {}.boxed()
    }

    fn additions(&self, _: &[Arc<str>]) -> Option<String> {
        let found = std::mem::take(&mut *lock(&self.found));
        (!found.is_empty()).then(|| found.join("\n\n"))
    }
}

impl NestedMemory {
    pub(crate) fn new(on_demand: OnDemand, workspace: Workspace, asides: Asides) -> Self {
        Self {
            on_demand: Mutex::new(on_demand),
            workspace,
            found: Mutex::default(),
            asides,
        }
    }

    fn touch(&self, path: &Path) {
        let addition = lock(&self.on_demand).touch(path);
        for notice in &addition.notices {
            self.asides.say(Event::Notice {
                subtype: "memory",
                message: notice.to_string(),
            });
        }
        lock(&self.found).extend(addition.text());
    }
}

/// The hooks of agents that work for another one: every call is judged and told of as usual, but
/// their prompts are not the user's, and their end is not the session's. Each has a memory of its
/// own, because it has seen nothing of what the others were told.
#[derive(Debug)]
pub(crate) struct SubAgentHooks {
    /// Common to all agents.
    pub(crate) shared: Arc<dyn Hooks>,
    /// The same with no more onlookers than there must be.
    pub(crate) deciding: Arc<dyn Hooks>,
    pub(crate) memory: Option<Arc<NestedMemory>>,
}

impl Hooks for SubAgentHooks {
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        self.shared.before_tool(call)
    }

    fn answered(&self, call: &ToolCall, answer: &Answer) {
        self.shared.answered(call, answer);
    }

    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        match event {
            HookEvent::Stopped { .. } | HookEvent::StopFailure { .. } => async {}.boxed(),
            event => async move {
                self.shared.notify(event).await;
                if let Some(memory) = &self.memory {
                    memory.notify(event).await;
                }
            }
            .boxed(),
        }
    }

    fn additions(&self, calls: &[Arc<str>]) -> Option<String> {
        let memory = self.memory.as_ref();
        let parts = [
            self.shared.additions(calls),
            memory.and_then(|memory| memory.additions(calls)),
        ];
        let texts: Vec<String> = parts.into_iter().flatten().collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    fn for_sub_agent(&self, inheritance: Inheritance) -> Option<Arc<dyn Hooks>> {
        let shared = match inheritance {
            Inheritance::All => &self.shared,
            Inheritance::Deciding => &self.deciding,
        };
        Some(Arc::new(Self {
            shared: Arc::clone(shared),
            deciding: Arc::clone(&self.deciding),
            memory: self.memory.as_ref().map(|memory| {
                Arc::new(NestedMemory::new(
                    lock(&memory.on_demand).clone(),
                    memory.workspace.clone(),
                    memory.asides.clone(),
                ))
            }),
        }))
    }
}
