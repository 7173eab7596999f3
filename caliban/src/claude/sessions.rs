//! Which session goes on or begins, in the terms of this dialect.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_harness::options::{Continuation, SessionChoice, SessionOptions};
use caliban_harness::{Configuration, Prepared, session_store};
use caliban_model::{Message, Role, Usage};
use caliban_sessions::{Accounts, Past, SessionName, SessionState, Store};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::Value;
use uuid::Uuid;

use super::transcript::{self, Project};
use crate::exit::Failure;

/// What was found before anything is known about the model.
pub(crate) struct Resolved {
    /// Which session it is, in the terms of the store.
    pub(crate) options: SessionOptions,
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
    /// `resume_at` is the message after which the history of a resumed session is cut.
    pub(crate) fn new(
        asked: &SessionOptions,
        resume_at: Option<&str>,
        config: &Path,
        configuration: &Configuration,
    ) -> Result<Self, Unresolved> {
        let store = session_store(asked, configuration);
        let project = Project::new(config, &configuration.workspace);
        if let Some(id) = asked.id {
            let is_used = store.find(&id.to_string()).is_ok() || project.file(id).exists();
            let is_copied = asked.continuation == Continuation::Fork;
            if is_used && (is_copied || !continues(&asked.choice)) {
                let message = format!("Error: session id {id} is already in use");
                return Err(Failure::Usage(message).into());
            }
        }
        let wanted = wanted(&asked.choice, &store, &project, configuration)?;
        let mut options = asked.clone();
        let mut said = None;
        match &wanted {
            Wanted::AsAsked => {}
            Wanted::New => options.choice = SessionChoice::New,
            Wanted::Stored(name) => {
                options.choice = SessionChoice::Resume(name.as_str().to_owned());
            }
            Wanted::Foreign(id) => {
                said = Some(transcript::read(&project.file(*id), None).unwrap_or_default());
                options.choice = SessionChoice::New;
                if asked.continuation == Continuation::InPlace {
                    options.id = Some(*id);
                }
            }
        }
        if let Some(uuid) = resume_at {
            let none = || Unresolved::NoConversation(format!("No message found with uuid: {uuid}"));
            let source = wanted.source(&store)?.ok_or_else(none)?;
            let cut = transcript::read(&project.file(source), Some(uuid));
            said = Some(cut.ok_or_else(none)?);
        }
        Ok(Self {
            options,
            said,
            project,
        })
    }

    /// Where clients look for the conversation.
    pub(crate) fn file(&self, session_id: Uuid) -> PathBuf {
        self.project.file(session_id)
    }

    /// Puts what was said before in the place of what the store says.
    pub(crate) fn put_in_place(self, prepared: &mut Prepared) {
        let Some(messages) = self.said else {
            return;
        };
        if let Some(state) = &mut prepared.history.earlier {
            let is_system = |message: &&Arc<Message>| message.role == Role::System;
            let system = state.messages.first().filter(is_system).cloned();
            state.messages = system.into_iter().chain(messages).collect();
        } else {
            let state = imported(prepared, messages);
            prepared.history.earlier = Some(Box::new(state));
        }
    }
}

/// Whether it is an earlier session that is asked for.
fn continues(choice: &SessionChoice) -> bool {
    match choice {
        SessionChoice::New | SessionChoice::Named(_) => false,
        SessionChoice::Latest | SessionChoice::Resume(_) => true,
    }
}

/// What was asked for.
enum Wanted {
    /// In terms that the store knows.
    AsAsked,
    New,
    Stored(SessionName),
    /// Only its transcript is there.
    Foreign(Uuid),
}

impl Wanted {
    /// The session whose transcript holds what was said.
    fn source(&self, store: &Store) -> Result<Option<Uuid>, Failure> {
        match self {
            Self::AsAsked | Self::New => Ok(None),
            Self::Stored(name) => Ok(Some(store.load(name)?.0.session_id)),
            Self::Foreign(id) => Ok(Some(*id)),
        }
    }
}

fn wanted(
    choice: &SessionChoice,
    store: &Store,
    project: &Project,
    configuration: &Configuration,
) -> Result<Wanted, Unresolved> {
    let none = |text: &str| {
        Unresolved::NoConversation(format!("No conversation found with session ID: {text}"))
    };
    match choice {
        SessionChoice::New | SessionChoice::Named(_) => Ok(Wanted::AsAsked),
        SessionChoice::Resume(text) => {
            if let Some(name) = stored(store, text) {
                return Ok(Wanted::Stored(name));
            }
            let id = text.parse().ok().or_else(|| project.titled(text));
            let id = id.ok_or_else(|| none(text))?;
            if let Some(name) = stored(store, &id.to_string()) {
                return Ok(Wanted::Stored(name));
            }
            if transcript::read(&project.file(id), None).is_some() {
                Ok(Wanted::Foreign(id))
            } else {
                Err(none(text))
            }
        }
        SessionChoice::Latest => {
            let latest = store.latest(|cwd| cwd == configuration.workspace).ok();
            let latest = latest.and_then(|(summary, _)| summary);
            Ok(match latest {
                Some(summary) => Wanted::Stored(summary.name),
                None => project.latest().map_or(Wanted::New, Wanted::Foreign),
            })
        }
    }
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

fn imported(prepared: &Prepared, messages: Vec<Arc<Message>>) -> SessionState {
    let now = Timestamp::now();
    SessionState {
        name: SessionName::from_id(prepared.session_id),
        session_id: prepared.session_id,
        parent: None,
        title: None,
        provider: prepared.chosen.provider.id().to_owned(),
        model: prepared.chosen.model.clone(),
        effort: None,
        mode: None,
        plan_mode: false,
        todos: Value::Array(Vec::new()),
        cwd: prepared.configuration.workspace.clone(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: now,
        updated_at: now,
        turns: 0,
        usage: Usage::default(),
        cost: Decimal::ZERO,
        accounts: Accounts::default(),
        messages,
        notices: Vec::new(),
        past: Past::default(),
    }
}
