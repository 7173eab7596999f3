//! A session in this dialect from its first line to its exit code.

mod beginning;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_agent::{Event, Listener, Outcome};
use caliban_harness::{History, Session};
use caliban_model::{Block, CancellationToken, Message, Role};
use caliban_protocol::claude::{
    Encoder, Failed, InitFacts, Initialize, Options, States, Turn, UserInput, VERSION, Wording,
    failure, theirs,
};
use caliban_protocol::{HookEvents, Partial, Replay};
use caliban_settings::ForeignFiles;
use caliban_settings::variables::Environment;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::timeout;
use uuid::Uuid;

use super::grants::Places;
use super::hooks::HostHooks;
use super::host::{Facts, Host};
use super::inbox::{Arrival, Echo, Inbox, Over};
use super::invocation::{DebugTo, InputKind, Invocation, Shows};
use super::mode::Mode;
use super::models;
use super::prompt;
use super::requests::{ModelChange, Reception};
use super::servers::settle;
use super::sessions::{Resolved, Unresolved};
use super::transcript::Transcript;
use super::unavailable::Unavailable;
use super::wire::Wire;
use crate::attachments::attach;
use crate::configuration::{self, Configuration};
use crate::console::note;
use crate::debug_log::DebugLog;
use crate::exit::Failure;
use crate::provider::{self, Chosen};
use crate::session::{self};
use crate::signals;

/// How long background jobs may keep the program after its last result.
const SHUTDOWN: Duration = Duration::from_millis(1500);

/// Works on everything the client wants; returns the exit code.
pub(crate) async fn run(
    mut invocation: Invocation,
    environment: Environment<'_>,
) -> Result<u8, Failure> {
    let cancel = signals::interruption();
    let wire = Wire::new(invocation.format, cancel.clone());
    let config = config_directory(&environment);
    let settings = &mut invocation.cli.settings;
    settings.foreign = Some(ForeignFiles {
        config: config.clone(),
        models: aliases(&environment),
    });
    let workspace = configuration::workspace(None)?;
    let loaded = Configuration::load(settings, workspace, environment)?;
    // What the settings say about the environment holds for the program itself.
    let variables = loaded.settings().env.clone();
    let outer = environment.reader();
    let read = |name: &str| variables.get(name).cloned().or_else(|| outer(name));
    let environment = Environment::new(&read);
    let configuration = Configuration {
        environment,
        ..loaded
    };
    for warning in configuration.warnings() {
        note(&format!("warning: {warning}"));
    }
    refuse_bypass(&invocation, &configuration)?;
    invocation.cli.run.permissions.permission_mode = invocation.mode.map(Mode::ours);
    let resolved = match Resolved::new(&invocation, &config, &configuration) {
        Ok(resolved) => resolved,
        Err(Unresolved::Other(failure)) => return Err(failure),
        Err(Unresolved::NoConversation(message)) => {
            note(&message);
            let id = Uuid::new_v4().to_string();
            let named = invocation.cli.session.resume.clone();
            wire.frame(failure(&message, &named.unwrap_or_else(|| id.clone()), &id));
            wire.finish()?;
            return Ok(1);
        }
    };
    let inbox = inbox(&invocation, &configuration)?;
    let chosen = choose(&invocation, &resolved, &configuration)?;
    Work {
        cancel,
        wire,
        inbox,
        chosen,
        invocation,
        configuration: &configuration,
        config,
    }
    .run(resolved)
    .await
}

fn config_directory(environment: &Environment<'_>) -> PathBuf {
    let named = environment.text("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| configuration::locations(environment).home().join(".claude"))
}

fn aliases(environment: &Environment<'_>) -> BTreeMap<String, String> {
    ["opus", "sonnet", "haiku"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), models::resolve(name, environment)?)))
        .collect()
}

/// Where the operator enforces rules, nobody skips them.
fn refuse_bypass(
    invocation: &Invocation,
    configuration: &Configuration<'_>,
) -> Result<(), Failure> {
    let is_enforced = configuration.settings().permissions.enforce == Some(true);
    if is_enforced && invocation.mode == Some(Mode::BypassPermissions) {
        return Err(Failure::Config(
            "the settings enforce permissions, so they cannot be bypassed".to_owned(),
        ));
    }
    Ok(())
}

fn inbox(invocation: &Invocation, configuration: &Configuration<'_>) -> Result<Inbox, Failure> {
    match invocation.input {
        InputKind::Frames => {
            let echo = if invocation.shows.replay {
                Echo::On
            } else {
                Echo::Off
            };
            Ok(Inbox::reading(std::io::stdin(), echo))
        }
        InputKind::Text => {
            let (roots, limits) = session::attachments(&invocation.cli.run, configuration)?;
            prompt::message(invocation.prompt.clone(), &roots, limits).map(Inbox::one)
        }
    }
}

/// Who answers. Without a key it is somebody who says so.
fn choose(
    invocation: &Invocation,
    resolved: &Resolved,
    configuration: &Configuration<'_>,
) -> Result<Chosen, Failure> {
    let args = &invocation.cli.run;
    let (who, model) = provider::continued(&args.provider, &args.model, resolved.found.earlier());
    match provider::choose(&who, &model, &args.cassette, configuration) {
        Err(Failure::Config(reason)) => {
            let kind = provider::kind(&who, configuration)?;
            Ok(Chosen {
                provider: Arc::new(Unavailable { reason }),
                model: provider::model(model.model.as_deref(), kind, configuration),
                fallback_model: None,
            })
        }
        chosen => chosen,
    }
}

/// Everything a session is worked on with.
struct Work<'a> {
    cancel: CancellationToken,
    wire: Wire,
    inbox: Inbox,
    chosen: Chosen,
    invocation: Invocation,
    configuration: &'a Configuration<'a>,
    /// The user's directory of this dialect.
    config: PathBuf,
}

/// A session and what its turns begin with.
struct Begun {
    session: Session,
    skills: Vec<String>,
}

impl Work<'_> {
    async fn run(mut self, resolved: Resolved) -> Result<u8, Failure> {
        let configuration = self.configuration;
        let session_id = resolved.found.session_id.to_string();
        let earlier_cost = resolved
            .found
            .earlier()
            .map(|state| state.cost)
            .unwrap_or_default();
        let file = resolved.file();
        let (history, notices) =
            resolved.history(self.chosen.provider.id(), &self.chosen.model, configuration)?;
        for notice in notices {
            note(&format!("warning: {notice}"));
        }
        let transcript = self.transcript(&file, &session_id, &history);
        let encoder = Encoder::new(
            options(self.invocation.shows, &configuration.environment),
            &session_id,
            earlier_cost,
            Box::new(|| Uuid::new_v4().to_string()),
        );
        let facts = Facts {
            session_id,
            cwd: configuration.workspace.clone(),
            transcript_path: transcript.is_some().then_some(file),
            bypass: self.invocation.bypass,
            places: Places {
                workspace: configuration.workspace.clone(),
                config: self.config.clone(),
            },
        };
        let host = Host::new(
            self.wire.clone(),
            facts,
            encoder,
            transcript,
            self.invocation.mode,
        );
        let reception = Reception {
            hooks: Arc::new(HostHooks::new(Arc::clone(&host))),
            host,
            environment: configuration.environment,
            known: self.known().into(),
            changes: Mutex::default(),
            wishes: Initialize::default().into(),
            introductions: Mutex::default(),
        };
        let mut begun = None;
        let mut history = Some(history);
        let ended = self.turns(&reception, &mut begun, &mut history).await;
        reception.host.channel.close();
        if let Some(Begun { session, .. }) = begun
            && let Ok(Err(trouble)) = timeout(SHUTDOWN, session.shutdown()).await
        {
            note(&format!("warning: the session was not saved: {trouble}"));
        }
        let written = self.wire.finish();
        let failed = ended?;
        written?;
        Ok(match failed {
            Failed::No => 0,
            Failed::Yes => 1,
        })
    }

    /// Works on one prompt after the other; tells whether the last one failed.
    async fn turns(
        &mut self,
        reception: &Reception<'_>,
        begun: &mut Option<Begun>,
        history: &mut Option<History>,
    ) -> Result<Failed, Failure> {
        let mut last = Failed::No;
        let mut debug = self.debug_log()?;
        loop {
            let next = tokio::select! {
                next = self.inbox.next(reception) => next,
                () = self.cancel.cancelled() => return Ok(last),
            };
            let prompt = match next {
                Ok(Arrival::Introduction) => None,
                Ok(Arrival::Prompt(prompt)) => Some(prompt),
                Ok(Arrival::End) | Err(Over::Ended) => return Ok(last),
                Err(Over::Failed(failure)) => return Err(failure),
            };
            if begun.is_none() {
                let history = history.take().unwrap_or_default();
                match self.opening(reception, history).await {
                    Ok(opened) => *begun = Some(opened),
                    Err(Over::Ended) => return Ok(last),
                    Err(Over::Failed(failure)) => return Err(failure),
                }
            }
            reception.introduce();
            let (Some(current), Some(prompt)) = (begun.as_mut(), prompt) else {
                continue;
            };
            self.apply_changes(reception, current);
            let turn = Turn {
                init: self.init(current, reception),
                prompt: prompt.clone(),
            };
            let prompt = self.with_files(prompt);
            let stop = self.cancel.child_token();
            reception.host.begin(turn, stop.clone());
            let working = exchange(&mut current.session, prompt, reception, &stop, &mut debug);
            let outcome = tokio::select! {
                outcome = working => outcome,
                over = self.inbox.listen(reception) => match over {
                    Over::Ended => return Ok(last),
                    Over::Failed(failure) => return Err(failure),
                },
            };
            reception.host.ended();
            if outcome == Outcome::Cancelled {
                keep_cut(&mut current.session, &reception.host);
            }
            if self.cancel.is_cancelled() {
                // The user stopped the program; what it did until then is what was wanted.
                return Ok(Failed::No);
            }
            last = Failed::of(&outcome);
        }
    }

    /// Begins the session, with the servers of tools that are there by then.
    async fn opening(
        &mut self,
        reception: &Reception<'_>,
        history: History,
    ) -> Result<Begun, Over> {
        let hosted = self.client_servers(reception);
        let servers = self
            .start_servers(reception, &hosted)
            .map_err(Over::Failed)?;
        tokio::select! {
            () = settle(&servers, &hosted) => {}
            over = self.inbox.listen(reception) => return Err(over),
        }
        let mut known = reception.known();
        known.servers = servers.handle().cloned();
        known.hosted = hosted;
        drop(known);
        self.begin(reception, history, servers)
            .map_err(Over::Failed)
    }

    /// The prompt with the files that it names.
    fn with_files(&self, mut prompt: UserInput) -> UserInput {
        if prompt.wording == Wording::Composed {
            return prompt;
        }
        let attached = session::attachments(&self.invocation.cli.run, self.configuration)
            .and_then(|(roots, limits)| attach(&prompt.message.text(), &roots, limits));
        match attached {
            Ok(attached) => {
                for notice in attached.notices {
                    note(&format!("warning: {notice}"));
                }
                let files = attached.message.content.into_iter().skip(1);
                prompt.message.content.extend(files);
            }
            Err(failure) => note(&format!("warning: {failure}")),
        }
        prompt
    }

    fn debug_log(&self) -> Result<Option<DebugLog>, Failure> {
        match &self.invocation.debug {
            DebugTo::Log => DebugLog::wanted(&self.invocation.cli.run, self.configuration),
            DebugTo::File(path) => DebugLog::at(path).map(Some),
            DebugTo::Stderr => Ok(Some(DebugLog::Stderr)),
        }
    }

    fn transcript(
        &self,
        file: &std::path::Path,
        session_id: &str,
        history: &History,
    ) -> Option<Transcript> {
        if self.invocation.cli.session.no_save {
            return None;
        }
        let earlier = history
            .earlier
            .as_ref()
            .map_or(&[][..], |state| &state.messages);
        let cwd = &self.configuration.workspace;
        let mirror = self.invocation.shows.mirror.then(|| self.wire.clone());
        match Transcript::open(file, session_id, cwd, earlier, mirror) {
            Ok(transcript) => Some(transcript),
            Err(error) => {
                note(&format!("warning: there is no transcript: {error}"));
                None
            }
        }
    }

    fn apply_changes(&self, reception: &Reception<'_>, begun: &mut Begun) {
        let changes = reception.take_changes();
        if let Some(model) = changes.model {
            begun.session.set_model(match model {
                ModelChange::Default => self.chosen.model.clone(),
                ModelChange::Named(name) => name,
            });
        }
        if let Some(reasoning) = changes.reasoning {
            begun.session.set_reasoning(reasoning);
        }
    }

    fn init(&self, begun: &Begun, reception: &Reception<'_>) -> InitFacts {
        let agent = begun.session.agent();
        let known = reception.known().clone();
        let environment = &self.configuration.environment;
        let key = environment
            .text("ANTHROPIC_API_KEY")
            .map(|_| "ANTHROPIC_API_KEY");
        InitFacts {
            cwd: self.configuration.workspace.display().to_string(),
            tools: agent
                .tools
                .current()
                .names()
                .map(|name| theirs(name).to_owned())
                .collect(),
            mcp_servers: known.server_states(),
            model: agent.settings.model.to_string(),
            permission_mode: reception.host.mode().as_str().to_owned(),
            slash_commands: known.commands.into_iter().map(|(name, _)| name).collect(),
            api_key_source: key.unwrap_or("none").to_owned(),
            claude_code_version: VERSION,
            output_style: known.output_style,
            agents: known.agents.into_keys().collect(),
            skills: begun.skills.clone(),
            plugins: [],
            memory_paths: serde_json::Map::new(),
            fast_mode_state: "off",
        }
    }
}

/// Works on one prompt to its end.
async fn exchange(
    session: &mut Session,
    prompt: UserInput,
    reception: &Reception<'_>,
    stop: &CancellationToken,
    debug: &mut Option<DebugLog>,
) -> Outcome {
    let showing = Showing {
        host: &reception.host,
        debug: Mutex::new(debug),
    };
    let (outcome, _) = session.run(prompt.message, &showing, stop).await;
    outcome
}

/// Shows what happens while it happens, so that no question about a call comes before the call.
struct Showing<'a> {
    host: &'a Host,
    debug: Mutex<&'a mut Option<DebugLog>>,
}

impl Listener for Showing<'_> {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        if let Some(debug) = &mut **self.debug.lock().unwrap_or_else(PoisonError::into_inner) {
            debug.note(&event);
        }
        self.host.show(&event);
        std::future::ready(()).boxed()
    }
}

/// What was said of an answer before it was cut off stays part of the conversation.
fn keep_cut(session: &mut Session, host: &Host) {
    let cut = host.cut();
    if !cut.text.trim().is_empty() {
        let agent = session.agent();
        let mut said = Message::new(Role::Assistant, vec![Block::text(cut.text)]);
        said.origin = Some(caliban_model::Origin::new(
            agent.provider.id(),
            Arc::clone(&agent.settings.model),
        ));
        session.amend(said);
    }
    session.amend(Message::user(cut.marker));
}

fn options(shows: Shows, environment: &Environment<'_>) -> Options {
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
    }
}
