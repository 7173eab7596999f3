//! The process of an agent: a session made of what the daemon says, without a face of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use caliban_fleet::worker::{
    Attends, Beginning, Conduct, NotStarted, OnFailure, OnQuestion, Snapshot, Started,
};
use caliban_fleet::{AGENT_VARIABLE, Begin, Handover, Launch, Served};
use caliban_harness::options::{Continuation, SessionChoice, SessionFile};
use caliban_harness::{
    Configuration, DialectParts, Process, RunOptions, Surroundings, SystemPrompt, configure,
    launch, locations,
};
use caliban_model::Message;
use caliban_session::Retention;
use caliban_sessions::{Durability, NewSession, Record, SessionName, Store};
use caliban_settings::variables::Environment;
use serde_json::Value;
use uuid::Uuid;

use super::seat::seat;
use super::sender::Sender;
use super::world::together;
use crate::console::note;
use crate::doctor::Doctor;
use crate::exit::Failure;
use crate::signals::Interrupts;
use crate::{process, runtime};

/// What the session of an agent is called in its directory.
const SESSION: &str = "session";

/// By how much a question of a server's session waits longer for those who are attached than it
/// does in the session.
const LATE: Duration = Duration::from_secs(5);

/// Runs one agent to its end; its exit code is that of its last result.
pub(crate) fn worker_main() -> ExitCode {
    runtime::exit_code(work())
}

async fn work() -> ExitCode {
    let interrupts = Interrupts::listen();
    let running = caliban_fleet::worker::run(begin, interrupts.cancel.clone());
    match Box::pin(running).await {
        Ok(end) => ExitCode::from(end.exit_code),
        Err(error) => {
            note(&format!("caliban: the agent cannot go on: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Makes a session of what the daemon says.
async fn begin(work: Launch) -> Result<Started, NotStarted> {
    start(work).await.map_err(|failure| NotStarted {
        reason: failure.to_string(),
        exit_code: failure.number(),
    })
}

async fn start(work: Launch) -> Result<Started, Failure> {
    let variables: BTreeMap<String, String> = work
        .world
        .environment
        .iter()
        .chain(&work.world.secrets)
        .cloned()
        .chain([(AGENT_VARIABLE.to_owned(), work.spec.id.to_string())])
        .collect();
    let known = variables.clone();
    let environment = Environment::new(move |name| known.get(name).cloned());
    let mut process = process::of(environment, work.spec.task.cwd.clone());
    process.variables = variables
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let mut options: RunOptions = serde_json::from_value(work.spec.task.options.clone())
        .map_err(|error| Failure::Config(format!("the options of the agent: {error}")))?;
    together(&mut options, &work.world);
    if let Some(served) = &work.spec.task.served {
        return start_served(options, process, served, &work.begin).await;
    }
    let directory = work.directory.clone();
    options.session.choice = SessionChoice::Named(SESSION.to_owned());
    options.session.checkpoints = Some(format!("agent-{}", work.spec.id));
    options.session.file = SessionFile::AfterEachPrompt;
    options.session.directory = Some(directory.clone());
    let has_begun = store(&directory).load(&name()?).is_ok();
    if let (Some(handover), false) = (&work.spec.task.handover, has_begun) {
        go_on(handover, &directory, &work.spec.task.cwd)?;
    }
    if has_begun || work.spec.task.handover.is_some() {
        // It keeps what it began with.
        options.system = SystemPrompt::Default;
    }
    let configuration = configure(&options, process.clone())?;
    let conduct = conduct(&configuration);
    let seat = seat(&work, &configuration).await?;
    let sender = Sender {
        options: options.clone(),
        process: process.clone(),
    };
    let doctor = Doctor {
        options: options.clone(),
        process: process.clone(),
    };
    let mut surroundings = Surroundings::new(process);
    surroundings.dialect.examiner = Some(Arc::new(doctor));
    surroundings.dialect.fleet = Some(Arc::new(sender));
    surroundings.dialect.seat = seat;
    let launched = Box::pin(launch(options, surroundings)).await?;
    let (handle, events) = launched.begin();
    Ok(Started {
        handle,
        events,
        conduct,
        beginning: if has_begun {
            Beginning::Elsewhere
        } else {
            Beginning::Here
        },
        snapshot: Arc::new(Kept {
            store: store(&directory),
            session: SESSION.to_owned(),
        }),
    })
}

/// Makes a session of a server's: it is kept where sessions are, and what waits in it waits for an
/// application.
async fn start_served(
    mut options: RunOptions,
    process: Process,
    served: &Served,
    begin: &Begin,
) -> Result<Started, Failure> {
    let sessions = Store::new(
        options
            .session
            .directory
            .clone()
            .unwrap_or_else(|| locations(&process).sessions()),
    );
    let chosen = &mut options.session;
    if let (Some(id), true) = (chosen.id, *begin != Begin::Task)
        && sessions.find(&id.to_string()).is_ok()
    {
        // An earlier process of this agent began it.
        chosen.choice = SessionChoice::Resume(id.to_string());
        (chosen.id, chosen.continuation) = (None, Continuation::InPlace);
    }
    let configuration = configure(&options, process.clone())?;
    let patience = Duration::from_millis(served.patience_ms);
    let idle = served.idle_ms.map(Duration::from_millis);
    let conduct = Conduct {
        idle_timeout: idle.unwrap_or_else(|| configuration.settings().fleet.idle_timeout()),
        on_question: OnQuestion::Park,
        // The session itself says first that nobody answered.
        question_patience: patience + LATE,
        on_failure: OnFailure::Stay,
        attendance: match options.servers.prompt_tool {
            Some(_) => Attends::No,
            None => Attends::Yes,
        },
    };
    let doctor = Doctor {
        options: options.clone(),
        process: process.clone(),
    };
    let surroundings = Surroundings {
        process,
        dialect: DialectParts {
            examiner: Some(Arc::new(doctor)),
            patience: Some(patience),
            retention: Retention::USUAL,
            ..DialectParts::default()
        },
    };
    let launched = Box::pin(launch(options, surroundings)).await?;
    let (beginning, session) = (
        match launched.facts.messages {
            0 => Beginning::Here,
            _ => Beginning::Elsewhere,
        },
        launched.facts.session_id.clone(),
    );
    let (handle, events) = launched.begin();
    Ok(Started {
        handle,
        events,
        conduct,
        beginning,
        snapshot: Arc::new(Kept {
            store: sessions,
            session,
        }),
    })
}

/// Begins the session of an agent with what it did in the foreground.
fn go_on(handover: &Handover, directory: &Path, cwd: &Path) -> Result<(), Failure> {
    let begun = NewSession {
        session_id: Uuid::new_v4(),
        provider: handover.provider.clone(),
        model: handover.model.clone(),
        mode: None,
        cwd: cwd.to_owned(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut writer = store(directory).create(&name()?, begun)?;
    for message in &handover.messages {
        let message: Message = serde_json::from_value(message.clone())
            .map_err(|error| Failure::Config(format!("what the agent did before: {error}")))?;
        writer.append(Record::Message(Arc::new(message)), Durability::Written)?;
    }
    writer.close()?;
    Ok(())
}

fn conduct(configuration: &Configuration) -> Conduct {
    let fleet = &configuration.settings().fleet;
    Conduct {
        idle_timeout: fleet.idle_timeout(),
        question_patience: fleet.question_patience(),
        on_question: match fleet.on_question {
            Some(caliban_settings::OnQuestion::Deny) => OnQuestion::Deny,
            Some(caliban_settings::OnQuestion::Fail) => OnQuestion::Fail,
            Some(caliban_settings::OnQuestion::Park) | None => OnQuestion::Park,
        },
        on_failure: OnFailure::End,
        attendance: Attends::Yes,
    }
}

/// Where the conversation of an agent is kept.
pub(super) fn store(directory: &Path) -> Store {
    Store::new(directory)
}

pub(super) fn name() -> Result<SessionName, Failure> {
    SessionName::new(SESSION).map_err(|error| Failure::Runtime(error.to_string()))
}

/// The conversation as it is on disk.
#[derive(Debug)]
struct Kept {
    store: Store,
    /// Its name or id.
    session: String,
}

impl Snapshot for Kept {
    fn messages(&self) -> Vec<Value> {
        let named = self.store.find(&self.session);
        let Ok((state, _)) = named.and_then(|name| self.store.load(&name)) else {
            return Vec::new();
        };
        let messages = state.messages.iter();
        messages
            .filter_map(|message| serde_json::to_value(message).ok())
            .collect()
    }
}
