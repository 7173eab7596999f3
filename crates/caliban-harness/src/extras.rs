//! What operators and projects add to a session: memory, skills, styles, commands and hooks.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_agent::{Company, PromptStage, PromptVerdict};
use caliban_context::{Commands, Context, Expansion, NoteStore, Origin};
use caliban_hooks::{EventWording, HookConfig};
use caliban_model::{Block, Message};
use caliban_process::Guard;
use caliban_sessions::SessionState;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::gate::Gate;
use crate::inline_shell::InlineShell;
use crate::plugins::PluginSet;

/// Everything that is added.
#[derive(Debug)]
pub struct Extras {
    pub plugins: Arc<PluginSet>,
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
    pub(crate) shell: InlineShell,
    /// Who judges what a command runs.
    pub(crate) company: Company,
}

impl CommandExpander {
    /// The prompt that a command stands for. What it runs needs no consent where the command names
    /// it; nothing of a repository runs that nobody trusts.
    async fn prompt(&self, expansion: &Expansion) -> Result<String, String> {
        let Some(script) = expansion.scripts().next() else {
            return Ok(expansion.prompt());
        };
        if expansion.origin.is_repository() && self.repository == Repository::Untrusted {
            return Err(format!(
                "`/{}` runs `{script}` in its text, and the workspace is not trusted; look at it and run `caliban trust`",
                expansion.command
            ));
        }
        self.gate.lend(&expansion.allowed_tools);
        let filled = self.shell.filled(expansion, &self.company).await;
        self.gate.lend(&[]);
        filled
    }

    fn lend(&self, expansion: &Expansion) {
        let counts = match (&expansion.origin, self.repository) {
            // A plugin asks for nothing that its user would not be asked about.
            (Origin::Plugin(_), _) => false,
            (_, Repository::Trusted) => true,
            (origin, Repository::Untrusted) => !origin.is_repository(),
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
                Ok(None) => match caliban_slash::prompt_of(typed(prompt)) {
                    Some(prompt) => PromptVerdict::Replace {
                        prompt,
                        addition: None,
                    },
                    None => PromptVerdict::Accept,
                },
                Ok(Some(expansion)) => match self.prompt(&expansion).await {
                    Ok(prompt) => {
                        self.lend(&expansion);
                        PromptVerdict::Replace {
                            prompt,
                            addition: None,
                        }
                    }
                    Err(reason) => PromptVerdict::Deny { reason },
                },
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

/// What the model is told beside the first prompt: where it works now, if that is another place
/// than before, and what hooks said when the session started. It is no part of the prompt that
/// others judge and commands are found in.
#[derive(Debug, Default)]
pub(crate) struct Opening(Mutex<Vec<String>>);

impl Opening {
    /// Of a session that goes on, or begins, in a workspace.
    pub(crate) fn new(earlier: Option<&SessionState>, workspace: &Path) -> Self {
        let opening = Self::default();
        if let Some(state) = earlier
            && !state.cwd.as_os_str().is_empty()
            && state.cwd != workspace
        {
            opening.add(Some(format!(
                "The working directory is now {}; until here it was {}. Relative paths and \
                 commands are about the new one, whatever was said before.",
                workspace.display(),
                state.cwd.display()
            )));
        }
        opening
    }

    pub(crate) fn add(&self, text: Option<String>) {
        lock(&self.0).extend(text);
    }
}

impl PromptStage for Opening {
    fn before_prompt<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        let texts = std::mem::take(&mut *lock(&self.0));
        async move {
            if texts.is_empty() {
                PromptVerdict::Accept
            } else {
                PromptVerdict::AcceptWith(texts.join("\n\n"))
            }
        }
        .boxed()
    }
}
