//! Which session goes on or begins, in the terms of this dialect.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_harness::History;
use caliban_model::{Message, Role, Usage};
use caliban_sessions::{SessionName, SessionState, Store};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::Value;
use uuid::Uuid;

use super::invocation::Invocation;
use super::transcript::{self, Project};
use crate::args::SessionArgs;
use crate::configuration::Configuration;
use crate::exit::Failure;
use crate::history::{self, Found};

/// What was found before anything is known about the model.
pub(crate) struct Resolved {
    pub(crate) found: Found,
    /// What was said before, where it is not what the store says.
    said: Option<Vec<Arc<Message>>>,
    project: Project,
}

/// Why there is no session to work on.
#[derive(Debug)]
pub(crate) enum Unresolved {
    /// The one asked for does not exist; clients get a result that says so.
    NoConversation(String),
    Other(Failure),
}

impl From<Failure> for Unresolved {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl Resolved {
    pub(crate) fn new(
        invocation: &Invocation,
        config: &std::path::Path,
        configuration: &Configuration<'_>,
    ) -> Result<Self, Unresolved> {
        let args = &invocation.cli.session;
        let store = history::store(args, configuration);
        let project = Project::new(config, &configuration.workspace);
        let fresh = invocation.session_id.unwrap_or_else(Uuid::new_v4);
        if let Some(id) = invocation.session_id {
            let is_used = store.find(&id.to_string()).is_ok() || project.file(id).exists();
            let continues = args.resume.is_some() || args.continue_;
            if is_used && (args.fork_session || !continues) {
                let message = format!("Error: session id {id} is already in use");
                return Err(Failure::Usage(message).into());
            }
        }
        let wanted = wanted(args, &store, &project, configuration)?;
        let mut native = native(args);
        let (said, id) = match wanted {
            Wanted::New => (None, fresh),
            Wanted::Stored(name) => {
                native.resume = Some(name.as_str().to_owned());
                (None, fresh)
            }
            Wanted::Foreign(id) => {
                let said = transcript::read(&project.file(id), None);
                let id = if args.fork_session { fresh } else { id };
                (Some(said.unwrap_or_default()), id)
            }
        };
        let found = Found::new(&native, id, configuration)?;
        let said = match &invocation.resume_at {
            None => said,
            Some(uuid) => {
                let source = found.earlier().map_or(found.session_id, |state| {
                    state
                        .parent
                        .filter(|_| args.fork_session)
                        .unwrap_or(state.session_id)
                });
                let cut = transcript::read(&project.file(source), Some(uuid));
                Some(cut.ok_or_else(|| {
                    Unresolved::NoConversation(format!("No message found with uuid: {uuid}"))
                })?)
            }
        };
        Ok(Self {
            found,
            said,
            project,
        })
    }

    /// Where clients look for the conversation.
    pub(crate) fn file(&self) -> PathBuf {
        self.project.file(self.found.session_id)
    }

    /// The history for a run with this model, and what to warn of.
    pub(crate) fn history(
        self,
        provider: &str,
        model: &str,
        configuration: &Configuration<'_>,
    ) -> Result<(History, Vec<String>), Failure> {
        let id = self.found.session_id;
        let (mut history, warnings) = self.found.history(provider, model, configuration)?;
        if let Some(messages) = self.said {
            if let Some(state) = &mut history.earlier {
                let is_system = |message: &&Arc<Message>| message.role == Role::System;
                let system = state.messages.first().filter(is_system).cloned();
                state.messages = system.into_iter().chain(messages).collect();
            } else {
                let state = imported(id, provider, model, messages, configuration);
                history.earlier = Some(Box::new(state));
            }
        }
        Ok((history, warnings))
    }
}

/// What was asked for.
enum Wanted {
    New,
    Stored(SessionName),
    /// Only its transcript is there.
    Foreign(Uuid),
}

fn wanted(
    args: &SessionArgs,
    store: &Store,
    project: &Project,
    configuration: &Configuration<'_>,
) -> Result<Wanted, Unresolved> {
    let none = |text: &str| {
        Unresolved::NoConversation(format!("No conversation found with session ID: {text}"))
    };
    if let Some(text) = &args.resume {
        if let Some(name) = stored(store, text) {
            return Ok(Wanted::Stored(name));
        }
        let id = text.parse().ok().or_else(|| project.titled(text));
        let id = id.ok_or_else(|| none(text))?;
        if let Some(name) = stored(store, &id.to_string()) {
            return Ok(Wanted::Stored(name));
        }
        return if transcript::read(&project.file(id), None).is_some() {
            Ok(Wanted::Foreign(id))
        } else {
            Err(none(text))
        };
    }
    if args.continue_ {
        let latest = store.latest(Some(&configuration.workspace)).ok();
        if let Some(summary) = latest.and_then(|(summary, _)| summary) {
            return Ok(Wanted::Stored(summary.name));
        }
        if let Some(id) = project.latest() {
            return Ok(Wanted::Foreign(id));
        }
    }
    Ok(Wanted::New)
}

/// A session by its id, its name or its title.
fn stored(store: &Store, text: &str) -> Option<SessionName> {
    if let Ok(name) = store.find(text) {
        return Some(name);
    }
    let listing = store.list().ok()?;
    let mut titled = listing
        .summaries
        .into_iter()
        .filter(|summary| summary.title.as_deref() == Some(text));
    titled.next().map(|summary| summary.name)
}

/// The options of a session in native terms, before it is known which one it is.
fn native(args: &SessionArgs) -> SessionArgs {
    SessionArgs {
        session: None,
        continue_: false,
        resume: None,
        fork_session: args.fork_session,
        no_save: args.no_save,
        sessions_dir: args.sessions_dir.clone(),
    }
}

fn imported(
    id: Uuid,
    provider: &str,
    model: &str,
    messages: Vec<Arc<Message>>,
    configuration: &Configuration<'_>,
) -> SessionState {
    let now = Timestamp::now();
    SessionState {
        name: SessionName::from_id(id),
        session_id: id,
        parent: None,
        title: None,
        provider: provider.to_owned(),
        model: model.to_owned(),
        mode: None,
        plan_mode: false,
        todos: Value::Array(Vec::new()),
        cwd: configuration.workspace.clone(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: now,
        updated_at: now,
        turns: 0,
        usage: Usage::default(),
        cost: Decimal::ZERO,
        messages,
        notices: Vec::new(),
    }
}
