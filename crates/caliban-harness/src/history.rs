//! Which session a run continues or begins, and where it is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_model::{Message, Role};
use caliban_sessions::{
    Error, NewSession, Opened, SessionName, SessionState, Store, Warning, Writer,
};
use caliban_settings::Locations;
use caliban_settings::variables::names;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::checkpoints::{CheckpointPlace, checkpoint_store, forget_checkpoints};
use crate::choices::{History, SystemPrompt};
use crate::configuration::{Configuration, locations, workspace};
use crate::error::{LaunchError, Problem};
use crate::options::{
    Continuation, EarlierSystem, RunOptions, Saving, SessionChoice, SessionFile, SessionOptions,
};
use crate::rewinding::Rewinder;
use crate::surroundings::Process;
use crate::taking_back::finished;

/// How often old sessions are looked for.
const PRUNE_EVERY: SignedDuration = SignedDuration::from_hours(24);

/// What was found before anything is known about the model.
pub(crate) struct Found {
    store: Store,
    kind: Kind,
    pub(crate) session_id: Uuid,
    /// What checkpoints are kept under instead of the session's name.
    checkpoints: Option<String>,
    file: SessionFile,
    warnings: Vec<String>,
}

enum Kind {
    /// A session that does not exist yet.
    New { name: SessionName, keeping: Keeping },
    /// One that goes on.
    Resumed {
        state: Box<SessionState>,
        writer: Option<Box<Writer>>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeping {
    /// Nothing is written down.
    Off,
    /// Every run is a session; one that cannot be saved runs all the same.
    Usual,
    /// A session was asked for by name.
    AskedFor,
}

/// The store that flags and locations name.
pub fn session_store(options: &SessionOptions, configuration: &Configuration) -> Store {
    store_at(options, &configuration.locations)
}

fn store_at(options: &SessionOptions, locations: &Locations) -> Store {
    let directory = options.directory.clone();
    Store::new(directory.unwrap_or_else(|| locations.sessions()))
}

/// The end of the conversation that options ask to go on with, for a first screen: neither the
/// settings nor the whole of it are read. Nothing where there is none; whoever begins the session
/// tells why.
pub fn glimpse(options: &RunOptions, process: &Process) -> Vec<Arc<Message>> {
    let store = store_at(&options.session, &locations(process));
    let found = workspace(options.workspace.as_deref(), process)
        .and_then(|workspace| wanted(&options.session, &store, &workspace, &mut Vec::new()));
    let mut messages = match found {
        Ok(Wanted::Existing(name)) => store.tail(&name),
        Ok(Wanted::New(_)) | Err(_) => Vec::new(),
    };
    messages.retain(|message| message.role != Role::System);
    messages
}

impl Found {
    /// Finds the session that is asked for. One that goes on is locked from here on.
    pub(crate) fn new(
        options: &SessionOptions,
        configuration: &Configuration,
    ) -> Result<Self, LaunchError> {
        let store = session_store(options, configuration);
        let mut warnings = Vec::new();
        let wanted = wanted(options, &store, &configuration.workspace, &mut warnings)?;
        let id = options.id.unwrap_or_else(Uuid::new_v4);
        let mut session_id = id;
        let kind = match wanted {
            Wanted::New(name) => Kind::New {
                keeping: match (&name, options.saving) {
                    (_, Saving::Off) => Keeping::Off,
                    (Some(_), Saving::On) => Keeping::AskedFor,
                    (None, Saving::On) => Keeping::Usual,
                },
                name: name.unwrap_or_else(|| SessionName::from_id(id)),
            },
            Wanted::Existing(source) => {
                let (state, writer, found) = open(options, &store, &source, id)?;
                warnings.extend(found.iter().map(ToString::to_string));
                if writer.is_some() && options.continuation == Continuation::Fork {
                    let checkpoints = checkpoint_store(configuration)?;
                    let forked =
                        checkpoints.map(|it| it.fork(source.as_str(), state.name.as_str()));
                    if let Some(Err(error)) = forked {
                        warnings.push(format!("the copy has no checkpoints: {error}"));
                    }
                }
                if options.continuation == Continuation::InPlace {
                    session_id = state.session_id;
                }
                Kind::Resumed {
                    state: Box::new(state),
                    writer: writer.map(Box::new),
                }
            }
        };
        Ok(Self {
            store,
            kind,
            session_id,
            checkpoints: options.checkpoints.clone(),
            file: options.file,
            warnings,
        })
    }

    /// Refuses another system prompt for a session that has one and keeps it.
    pub(crate) fn check_system(
        &self,
        system: &SystemPrompt,
        options: &SessionOptions,
    ) -> Result<(), LaunchError> {
        let is_replaced = self.earlier().is_some()
            && *system != SystemPrompt::Default
            && options.earlier_system == EarlierSystem::Kept
            && options.continuation == Continuation::InPlace;
        if is_replaced {
            return Err(LaunchError::usage(
                "the session keeps the system prompt that it began with; leave `--system`, \
                 `--system-file` and `--no-system` out, or add `--fork-session` to go on in a copy \
                 with another one",
            ));
        }
        Ok(())
    }

    /// The system prompt of a run that asks for this one: a session that began without any goes on
    /// without.
    pub(crate) fn system(&self, asked: SystemPrompt) -> SystemPrompt {
        let goes_without = |state: &SessionState| {
            let has_begun = state.title.is_some() || !state.messages.is_empty();
            let is_system = |message: &Arc<Message>| message.role == Role::System;
            has_begun && !state.messages.iter().any(is_system)
        };
        match asked {
            SystemPrompt::Default if self.earlier().is_some_and(goes_without) => SystemPrompt::None,
            asked => asked,
        }
    }

    /// What the session was, if it goes on.
    pub(crate) fn earlier(&self) -> Option<&SessionState> {
        match &self.kind {
            Kind::New { .. } => None,
            Kind::Resumed { state, .. } => Some(state),
        }
    }

    /// The history for a run with this model, and what to warn of.
    pub(crate) fn history(
        self,
        provider: &str,
        model: &str,
        configuration: &Configuration,
    ) -> Result<(History, Vec<String>), LaunchError> {
        let mut warnings = self.warnings;
        let kept_under = |name: &SessionName| {
            let own = self.checkpoints.clone();
            own.unwrap_or_else(|| name.as_str().to_owned())
        };
        let transcript = |name: &SessionName| -> PathBuf {
            self.store
                .directory()
                .join(format!("{}.json", name.as_str()))
        };
        let mut history = match self.kind {
            Kind::New {
                keeping: Keeping::Off,
                ..
            } => History::default(),
            Kind::New { name, keeping } => {
                let new = NewSession {
                    session_id: self.session_id,
                    provider: provider.to_owned(),
                    model: model.to_owned(),
                    mode: None,
                    cwd: configuration.workspace.clone(),
                    program_version: env!("CARGO_PKG_VERSION").to_owned(),
                };
                match self.store.create(&name, new) {
                    Ok(writer) => History {
                        checkpoints: CheckpointPlace::wanted(&kept_under(&name), configuration)?,
                        earlier: None,
                        effort: None,
                        writer: Some(writer),
                        transcript: Some(transcript(&name)),
                    },
                    Err(error) if keeping == Keeping::Usual => {
                        warnings.push(format!("this run is not saved: {error}"));
                        History::default()
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Kind::Resumed {
                mut state,
                mut writer,
            } => {
                let mut checkpoints = None;
                if let Some(writer) = &mut writer {
                    checkpoints = CheckpointPlace::wanted(&kept_under(&state.name), configuration)?;
                    let rewinder = checkpoints
                        .as_ref()
                        .map(|place| place.rewinder(configuration.workspace.clone()));
                    if let Some(Err(error)) = rewinder.as_ref().map(Rewinder::recover) {
                        warnings.push(format!(
                            "what the last call did when the session was cut off is not known: {error}"
                        ));
                    }
                    match rewinder.map(|rewinder| rewinder.finish(writer)) {
                        Some(Ok(Some(restored))) => {
                            warnings.push(finished(&restored));
                            *state = writer.state().clone();
                        }
                        Some(Err(error)) => {
                            warnings.push(format!("a rewind could not be finished: {error}"));
                        }
                        Some(Ok(None)) | None => {}
                    }
                }
                History {
                    checkpoints,
                    transcript: Some(transcript(&state.name)),
                    effort: state.effort,
                    earlier: Some(state),
                    writer: writer.map(|writer| *writer),
                }
            }
        };
        if let (Some(writer), SessionFile::AfterEachPrompt) = (&mut history.writer, self.file) {
            writer.keep_file_current();
        }
        Ok((history, warnings))
    }
}

/// What was asked for, as the store knows it.
enum Wanted {
    New(Option<SessionName>),
    Existing(SessionName),
}

fn wanted(
    options: &SessionOptions,
    store: &Store,
    workspace: &Path,
    warnings: &mut Vec<String>,
) -> Result<Wanted, LaunchError> {
    match &options.choice {
        SessionChoice::New => Ok(Wanted::New(None)),
        SessionChoice::Resume(text) => {
            let wanted = SessionName::new(text).map_err(Error::from)?;
            Ok(Wanted::Existing(store.find(wanted.as_str())?))
        }
        SessionChoice::Latest => {
            let project = project(workspace);
            let (latest, found) = store.latest(|cwd| self::project(cwd) == project)?;
            warnings.extend(found.iter().map(ToString::to_string));
            match latest {
                Some(summary) => Ok(Wanted::Existing(summary.name)),
                None => Err(LaunchError::no_input(format!(
                    "there is no session of `{}` to continue; `caliban sessions list` shows those \
                     of other places, and `-r NAME` continues one of them",
                    project.display()
                ))),
            }
        }
        SessionChoice::Named(name) => {
            let name = SessionName::new(name).map_err(Problem::from_error);
            let name = name.map_err(LaunchError::Usage)?;
            Ok(match store.named(name.as_str())? {
                Some(found) => Wanted::Existing(found),
                None => Wanted::New(Some(name)),
            })
        }
    }
}

fn open(
    options: &SessionOptions,
    store: &Store,
    source: &SessionName,
    id: Uuid,
) -> Result<(SessionState, Option<Writer>, Vec<Warning>), LaunchError> {
    let opened = match (options.saving, options.continuation) {
        (Saving::Off, _) => {
            let (state, warnings) = store.load(source)?;
            return Ok((state, None, warnings));
        }
        (Saving::On, Continuation::Fork) => store.fork(source, &SessionName::from_id(id), id)?,
        (Saving::On, Continuation::InPlace) => store.open(source)?,
    };
    let Opened {
        state,
        writer,
        warnings,
    } = opened;
    Ok((state, Some(writer), warnings))
}

/// The repository that a directory is in, or else the directory itself: what happened anywhere in
/// a repository happened in the same workspace.
fn project(directory: &Path) -> &Path {
    let mut above = directory.ancestors();
    let root = above.find(|directory| directory.join(".git").exists());
    root.unwrap_or(directory)
}

/// Removes old sessions that nobody named, at most once a day. Nothing is said: whoever wants to
/// know runs `caliban sessions prune`.
pub(crate) fn prune_sometimes(
    store: &Store,
    configuration: &Configuration,
) -> Result<(), LaunchError> {
    let Some(age) = session_age(configuration)? else {
        return Ok(());
    };
    let marker = store.directory().join(".pruned");
    let now = Timestamp::now();
    let recently = std::fs::metadata(&marker)
        .and_then(|meta| meta.modified())
        .ok()
        .and_then(|time| Timestamp::try_from(time).ok())
        .is_some_and(|time| now.duration_since(time) < PRUNE_EVERY);
    if !recently
        && std::fs::write(&marker, "").is_ok()
        && let Ok(pruned) = store.prune(age, now)
    {
        let _ = forget_checkpoints(configuration, &pruned.removed);
    }
    Ok(())
}

/// How old an unnamed session may become; nothing where it may stay for ever.
pub fn session_age(configuration: &Configuration) -> Result<Option<SignedDuration>, LaunchError> {
    let days: u32 = configuration
        .environment()
        .number(names::CALIBAN_CLEANUP_PERIOD_DAYS)?
        .unwrap_or(30);
    Ok((days > 0).then(|| SignedDuration::from_hours(i64::from(days) * 24)))
}
