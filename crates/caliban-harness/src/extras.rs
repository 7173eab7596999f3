//! What operators and projects add to a session: memory, skills, styles, commands and hooks.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_agent::{
    Event, HookEvent, Inheritance, Observer, PromptStage, PromptVerdict, Workspace,
};
use caliban_context::{Commands, Context, Expansion, NoteStore, OnDemand};
use caliban_hooks::{EventWording, HookConfig};
use caliban_model::{Block, BuiltInTool, Message, file_path};
use caliban_process::Guard;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::gate::Gate;
use crate::notice_sink::NoticeSink;

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

impl PromptStage for CommandExpander {
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

impl PromptStage for Opening {
    fn before_prompt<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        let text = lock(&self.0).take();
        async move { text.map_or(PromptVerdict::Accept, PromptVerdict::AcceptWith) }.boxed()
    }
}

/// Brings up instruction files of the directories that one agent's tools work in.
#[derive(Debug)]
pub(crate) struct NestedMemory {
    /// As it was before anything was worked on.
    untouched: OnDemand,
    on_demand: Mutex<OnDemand>,
    workspace: Workspace,
    found: Mutex<Vec<String>>,
    notice_sink: NoticeSink,
}

impl Observer for NestedMemory {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        if let HookEvent::PostToolUse { call, .. } = event
            && BuiltInTool::named(&call.name).is_some_and(BuiltInTool::opens)
            && let Some(path) = file_path(&call.input)
            && let Ok(resolved) = self.workspace.resolve_freely(path)
        {
            self.touch(&resolved.real);
        }
        async {}.boxed()
    }

    fn remarks(&self, _: &[Arc<str>]) -> Option<String> {
        let found = std::mem::take(&mut *lock(&self.found));
        (!found.is_empty()).then(|| found.join("\n\n"))
    }

    /// A sub-agent has seen nothing of what others were told, so it starts from the beginning.
    fn for_sub_agent(self: Arc<Self>, _: Inheritance) -> Option<Arc<dyn Observer>> {
        let (untouched, workspace) = (self.untouched.clone(), self.workspace.clone());
        Some(Arc::new(Self::new(
            untouched,
            workspace,
            self.notice_sink.clone(),
        )))
    }
}

impl NestedMemory {
    pub(crate) fn new(on_demand: OnDemand, workspace: Workspace, notice_sink: NoticeSink) -> Self {
        Self {
            untouched: on_demand.clone(),
            on_demand: Mutex::new(on_demand),
            workspace,
            found: Mutex::default(),
            notice_sink,
        }
    }

    fn touch(&self, path: &Path) {
        let addition = lock(&self.on_demand).touch(path);
        for notice in &addition.notices {
            self.notice_sink.say(Event::Notice {
                subtype: "memory".into(),
                message: notice.to_string(),
            });
        }
        lock(&self.found).extend(addition.text());
    }
}
