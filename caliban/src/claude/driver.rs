//! A session in this dialect from its first line to its exit code.

mod beginning;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use caliban_harness::RunOptions;
use caliban_harness::options::Saving;
use caliban_harness::{
    Attachments, Configuration, DialectParts, History, LaunchError, Prepared, Process, configure,
};
use caliban_model::CancellationToken;
use caliban_protocol::claude::{Encoder, Failed, FrameKinds, Initialize, Options, States, failure};
use caliban_protocol::{HookEvents, Partial, Replay};
use caliban_settings::ForeignFiles;
use caliban_settings::variables::Environment;
use uuid::Uuid;

use super::consents::Consents;
use super::file_rewinding::FileRewinding;
use super::grants::Places;
use super::hooks::HostHooks;
use super::host::{Facts, Host};
use super::inbox::{Arrival, Echo, Inbox, Over};
use super::invocation::{InputKind, Invocation, Shows};
use super::mode::Mode;
use super::models;
use super::prompt;
use super::requests::RequestHandler;
use super::sent_prompts::SentPrompts;
use super::sessions::{Resolved, Unresolved};
use super::set_servers::SetServers;
use super::talk::Talk;
use super::transcript::Transcript;
use super::unavailable::Unavailable;
use super::wire::Wire;
use crate::console::note;
use crate::doctor::Doctor;
use crate::exit::Failure;
use crate::print::Attends;
use crate::process;
use crate::signals;

/// The exit code where there is no such session.
const UNKNOWN_SESSION: u8 = 1;
/// The exit code where another process works on the session.
const IN_USE: u8 = 75;

/// Works on everything the client wants; returns the exit code.
pub(crate) async fn run(
    mut invocation: Invocation,
    environment: Environment,
) -> Result<u8, Failure> {
    let cancel = signals::interruption();
    let wire = Wire::new(invocation.format, cancel.clone());
    let (configuration, config) = configured(&mut invocation.options, environment)?;
    let told = configuration.warnings();
    for warning in &told {
        note(&format!("warning: {warning}"));
    }
    refuse_bypass(&invocation, &configuration)?;
    let resolved = Resolved::new(
        &invocation.options.session,
        invocation.resume_at.as_deref(),
        &config,
        &configuration,
    );
    let resolved = match resolved {
        Ok(resolved) => resolved,
        Err(Unresolved::Other(failure)) => return Err(failure),
        Err(Unresolved::NoConversation(message)) => {
            note(&message);
            return in_vain(&message, &invocation, &wire, UNKNOWN_SESSION);
        }
    };
    let mut options = invocation.options.clone();
    options.session = resolved.options.clone();
    let doctor = Doctor {
        options: options.clone(),
        process: configuration.process.clone(),
    };
    let prepared = Prepared::new(options, answering(doctor), configuration.clone());
    let mut prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error @ LaunchError::Busy(_)) => {
            let message = error.to_string();
            note(&format!("Error: {message}"));
            return in_vain(&message, &invocation, &wire, IN_USE);
        }
        Err(error) => return Err(error.into()),
    };
    let hearers = configuration.process.hearers.clone();
    let transcript = resolved.file(prepared.session_id);
    resolved.put_in_place(&mut prepared);
    let work = Work {
        cancel,
        wire,
        inbox: inbox(&invocation, &prepared.attachments)?,
        prepared: Some(prepared),
        invocation,
        configuration,
        config,
        told,
    };
    let ended = Box::pin(work.run(&transcript)).await;
    hearers.wait().await;
    ended
}

/// Tells a client why the session that it names cannot go on; returns the exit code.
fn in_vain(message: &str, invocation: &Invocation, wire: &Wire, code: u8) -> Result<u8, Failure> {
    let id = Uuid::new_v4().to_string();
    let named = invocation.resumed().unwrap_or(&id);
    wire.frame(failure(message, named, &id));
    wire.finish()?;
    Ok(code)
}

/// Without a key somebody answers who says so: clients learn it from an answer, not from a program
/// that does not start.
fn answering(doctor: Doctor) -> DialectParts {
    DialectParts {
        examiner: Some(Arc::new(doctor)),
        stand_in: Some(Arc::new(|reason| Arc::new(Unavailable { reason }))),
        ..DialectParts::default()
    }
}

/// The configuration of a run in this dialect, and the user's directory of it.
pub(crate) fn configured(
    options: &mut RunOptions,
    environment: Environment,
) -> Result<(Configuration, PathBuf), Failure> {
    let process = process::current(environment);
    let config = config_directory(&process);
    options.settings.foreign = Some(ForeignFiles {
        config: config.clone(),
        models: aliases(&process.environment),
    });
    Ok((configure(options, process)?, config))
}

fn config_directory(process: &Process) -> PathBuf {
    let named = process.environment.text("CLAUDE_CONFIG_DIR");
    named.map_or_else(|| process.home.join(".claude"), PathBuf::from)
}

fn aliases(environment: &Environment) -> BTreeMap<String, String> {
    ["opus", "sonnet", "haiku"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), models::resolve(name, environment)?)))
        .collect()
}

/// Where the operator enforces rules, nobody skips them.
fn refuse_bypass(invocation: &Invocation, configuration: &Configuration) -> Result<(), Failure> {
    let is_enforced = configuration.settings().permissions.enforce == Some(true);
    if is_enforced && invocation.mode == Some(Mode::BypassPermissions) {
        return Err(Failure::Config(
            "the settings enforce permissions, so they cannot be bypassed".to_owned(),
        ));
    }
    Ok(())
}

fn inbox(invocation: &Invocation, attachments: &Attachments) -> Result<Inbox, Failure> {
    match invocation.input {
        InputKind::Frames => {
            let echo = if invocation.shows.replay {
                Echo::On
            } else {
                Echo::Off
            };
            Ok(Inbox::reading(std::io::stdin(), echo))
        }
        InputKind::Text => prompt::message(invocation.prompt.clone(), attachments).map(Inbox::one),
    }
}

/// Everything a session is worked on with.
struct Work {
    cancel: CancellationToken,
    wire: Wire,
    inbox: Inbox,
    invocation: Invocation,
    configuration: Configuration,
    /// The session until it begins.
    prepared: Option<Prepared>,
    /// The user's directory of this dialect.
    config: PathBuf,
    /// The warnings that the user has seen.
    told: Vec<String>,
}

impl Work {
    /// `transcript` is where clients look for the conversation.
    async fn run(mut self, transcript: &Path) -> Result<u8, Failure> {
        let Some(prepared) = &self.prepared else {
            return Ok(0);
        };
        let session_id = prepared.session_id.to_string();
        let earlier = prepared.history.earlier.as_ref();
        let earlier_cost = earlier.map(|state| state.cost).unwrap_or_default();
        let written = self.transcript(transcript, &session_id, &prepared.history);
        let encoder = Encoder::new(
            options(self.invocation.shows, self.configuration.environment()),
            &session_id,
            earlier_cost,
            Box::new(|| Uuid::new_v4().to_string()),
        );
        let facts = Facts {
            session_id,
            cwd: self.configuration.workspace.clone(),
            transcript_path: written.is_some().then(|| transcript.to_owned()),
            bypass: self.invocation.bypass,
            places: Places {
                workspace: self.configuration.workspace.clone(),
                config: self.config.clone(),
                writer: self.configuration.writer(),
            },
        };
        let host = Host::new(
            self.wire.clone(),
            facts,
            encoder,
            written,
            self.invocation.mode,
        );
        let set_servers = SetServers::new(self.configuration.clone(), host.channel.clone());
        let requests = RequestHandler {
            set_servers: Arc::new(set_servers),
            hooks: Arc::new(HostHooks::new(Arc::clone(&host))),
            host,
            environment: self.configuration.environment().clone(),
            known: self.known(prepared).into(),
            wishes: Initialize::default().into(),
            introductions: Mutex::default(),
            awaited: Mutex::default(),
            files: FileRewinding::default(),
        };
        let ended = Box::pin(self.converse(&requests)).await;
        requests.host.channel.close();
        let written = self.wire.finish();
        let failed = ended?;
        written?;
        Ok(match failed {
            Failed::No => 0,
            Failed::Yes => 1,
        })
    }

    /// Makes the session once there is a reason to, and works on what the client wants; tells
    /// whether the last turn failed.
    async fn converse(&mut self, requests: &RequestHandler) -> Result<Failed, Failure> {
        let first = tokio::select! {
            first = self.inbox.first(requests) => first,
            () = self.cancel.cancelled() => return Ok(Failed::No),
        };
        let opened = match (first, self.prepared.take()) {
            (Ok(Arrival::Begin), Some(prepared)) => {
                Box::pin(self.opening(requests, prepared)).await
            }
            (Ok(Arrival::Begin | Arrival::End), _) => return Ok(Failed::No),
            (Err(over), _) => Err(over),
        };
        let (handle, events) = match opened {
            Ok(opened) => opened,
            Err(Over::Ended) => return Ok(Failed::No),
            Err(Over::Failed(failure)) => return Err(failure),
        };
        requests.introduce();
        let consents = Consents::new(Arc::clone(&requests.host), self.invocation.questions);
        Box::pin(
            Talk {
                requests,
                handle,
                events,
                consents,
                inbox: &mut self.inbox,
                attends: match self.invocation.options.servers.prompt_tool {
                    None => Attends::Yes,
                    Some(_) => Attends::No,
                },
                api_key_source: api_key_source(self.configuration.environment()),
                cancel: &self.cancel,
                prompts: SentPrompts::default(),
                is_working: false,
                later: Vec::new(),
                last: Failed::No,
                failure: None,
            }
            .run(),
        )
        .await
    }

    fn transcript(&self, file: &Path, session_id: &str, history: &History) -> Option<Transcript> {
        if self.invocation.options.session.saving == Saving::Off {
            return None;
        }
        let earlier = history
            .earlier
            .as_ref()
            .map_or(&[][..], |state| &state.messages);
        let cwd = &self.configuration.workspace;
        let mirror = self.invocation.shows.mirror.then(|| self.wire.clone());
        // What goes on at an earlier message does not follow what was said after that.
        let resumed_at = self.invocation.resume_at.as_deref();
        let resumed_at = resumed_at.filter(|_| file.exists());
        match Transcript::open(file, session_id, cwd, earlier, mirror) {
            Ok(transcript) => Some(transcript.following(resumed_at)),
            Err(error) => {
                note(&format!("warning: there is no transcript: {error}"));
                None
            }
        }
    }
}

/// The variable that holds the key.
fn api_key_source(environment: &Environment) -> &'static str {
    match environment.text("ANTHROPIC_API_KEY") {
        Some(_) => "ANTHROPIC_API_KEY",
        None => "none",
    }
}

fn options(shows: Shows, environment: &Environment) -> Options {
    let is_on = |name: &str| environment.text(name).is_some_and(|value| value != "0");
    Options {
        partial: if shows.partial {
            Partial::Included
        } else {
            Partial::Left
        },
        hooks: if shows.hooks {
            HookEvents::Included
        } else {
            HookEvents::Left
        },
        replay: if shows.replay {
            Replay::Prompts
        } else {
            Replay::Nothing
        },
        states: if is_on("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
            States::Told
        } else if is_on("CLAUDE_CODE_SDK_READS_SESSION_STATE") {
            States::ForLibrary
        } else {
            States::Untold
        },
        sub_agent_text: shows.sub_agent_text,
        kinds: if is_early_library(environment) {
            FrameKinds::Oldest
        } else {
            FrameKinds::All
        },
    }
}

/// Whether the client is a library for Python of the time when kinds of frames that it does not know
/// ended it: all before 0.1.50, of which the first did not say their version.
fn is_early_library(environment: &Environment) -> bool {
    let entrance = environment.text("CLAUDE_CODE_ENTRYPOINT");
    if !entrance.is_some_and(|name| name.starts_with("sdk-py")) {
        return false;
    }
    let version = environment.text("CLAUDE_AGENT_SDK_VERSION");
    let number = |part: &str| part.parse().unwrap_or(u32::MAX);
    let version: Vec<u32> = version
        .iter()
        .flat_map(|it| it.split('.'))
        .map(number)
        .collect();
    version.as_slice() < &[0, 1, 50][..]
}
