//! Notices when a file that an agent has edited was changed by somebody else, and tells hooks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use caliban_agent::{
    HookEvent, Inheritance, Observer, PromptStage, PromptVerdict, ToolCall, Workspace,
};
use caliban_hooks::ExternalHooks;
use caliban_model::{BuiltInTool, Message, file_path};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Files that are watched; a session that edits more is not told of the rest.
const MAX_FILES: usize = 1024;

/// The files that the agents of a session edited, as they left them. They are looked at after
/// every other call and before every prompt.
#[derive(Debug)]
pub(crate) struct EditedFiles {
    told: Arc<ExternalHooks>,
    workspace: Workspace,
    files: Mutex<HashMap<PathBuf, Option<Stamp>>>,
}

/// What a file looks like from outside; nothing for one that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    length: u64,
}

impl EditedFiles {
    pub(crate) fn new(told: Arc<ExternalHooks>, workspace: Workspace) -> Self {
        Self {
            told,
            workspace,
            files: Mutex::default(),
        }
    }

    fn edited(&self, call: &ToolCall) -> Option<PathBuf> {
        if !BuiltInTool::named(&call.name).is_some_and(BuiltInTool::edits) {
            return None;
        }
        let resolved = self.workspace.resolve_freely(file_path(&call.input)?);
        resolved.ok().map(|resolved| resolved.real)
    }

    fn remember(&self, path: PathBuf) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() < MAX_FILES || files.contains_key(&path) {
            let stamp = Stamp::of(&path);
            files.insert(path, stamp);
        }
    }

    /// The files that are no longer as they were, each once for each change.
    fn changed(&self) -> Vec<PathBuf> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Vec::new();
        for (path, seen) in files.iter_mut() {
            let now = Stamp::of(path);
            if now != *seen {
                *seen = now;
                changed.push(path.clone());
            }
        }
        changed.sort();
        changed
    }

    async fn look(&self) {
        for path in self.changed() {
            self.told.notify(&HookEvent::FileChanged { path }).await;
        }
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        Some(Self {
            changed: metadata.modified().ok(),
            length: metadata.len(),
        })
    }
}

impl PromptStage for EditedFiles {
    fn before_prompt<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        async {
            self.look().await;
            PromptVerdict::Accept
        }
        .boxed()
    }
}

impl Observer for EditedFiles {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        async move {
            if let HookEvent::PostToolUse { call, .. }
            | HookEvent::PostToolUseFailure { call, .. } = event
            {
                match self.edited(call) {
                    Some(path) => self.remember(path),
                    None => self.look().await,
                }
            }
        }
        .boxed()
    }

    fn remarks(&self, _: &[Arc<str>]) -> Option<String> {
        None
    }

    fn retell(&self, _: &[Arc<Message>]) -> Option<String> {
        None
    }

    fn for_sub_agent(self: Arc<Self>, inheritance: Inheritance) -> Option<Arc<dyn Observer>> {
        match inheritance {
            Inheritance::All => Some(self),
            Inheritance::Managed => None,
        }
    }
}
