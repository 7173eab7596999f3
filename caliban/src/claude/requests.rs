//! What a client wants from the session beside answers, and what it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_harness::Launched;
use caliban_mcp::ServerStatus;
use caliban_model::Reasoning;
use caliban_protocol::claude::{
    ControlError, Initialize, McpServer, Request, RewindFiles, VERSION, error_response,
    success_response,
};
use caliban_session::{Command, ModelChange, PromptId, ServerCommand};
use caliban_settings::variables::Environment;
use serde_json::{Value, json};

use super::file_rewinding::{FileRewinding, Granted};
use super::hooks::HostHooks;
use super::host::Host;
use super::invocation::budgeted;
use super::mode::Mode;
use super::models;
use super::session_profile::{MemoryFile, SessionProfile, Switch, Unfit, our_server};
use super::set_servers::SetServers;

/// Whether the client may take files back.
const CHECKPOINTING: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// What follows once a request was answered.
enum Aftermath {
    Nothing,
    Wants(Command),
    Mode(Mode),
    /// The model is another one from the next turn on, and the client's user sees that.
    Model {
        wanted: ModelChange,
        said: String,
    },
}

/// Whether the session goes on after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    /// The session has to begin before the request can be answered.
    Introduce,
    End,
}

/// Who waits to hear what there is.
#[derive(Debug)]
pub(crate) enum Introductions {
    /// The ids of requests that came before the session began.
    Waiting(Vec<String>),
    /// Everything is known, so that requests are answered at once.
    Possible,
}

impl Default for Introductions {
    fn default() -> Self {
        Self::Waiting(Vec::new())
    }
}

/// Grants requests.
pub(crate) struct RequestHandler {
    pub(crate) host: Arc<Host>,
    pub(crate) hooks: Arc<HostHooks>,
    pub(crate) set_servers: Arc<SetServers>,
    pub(crate) environment: Environment,
    pub(crate) known: Mutex<SessionProfile>,
    /// What the client wants the session to be, until there is one.
    pub(crate) wishes: Mutex<Initialize>,
    pub(crate) introductions: Mutex<Introductions>,
    pub(crate) awaited: Mutex<Awaited>,
    pub(crate) files: FileRewinding,
}

/// Requests whose answer the session gives; as many as commands may wait for it.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// Those to interrupt, in order.
    interrupts: VecDeque<String>,
    /// Those to take a prompt back.
    taken_back: Vec<(PromptId, String)>,
}

/// Whether a prompt was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenBack {
    Yes,
    No,
}

/// The answer to who interrupts.
pub(crate) fn still_queued(waiting: &[PromptId]) -> Value {
    json!({"still_queued": waiting})
}

/// The answer to who takes a prompt back.
pub(crate) fn cancelled(taken: TakenBack) -> Value {
    json!({"cancelled": taken == TakenBack::Yes})
}

impl RequestHandler {
    /// Grants a request and answers it, at once or when the session has told what came of it.
    /// `queued` are the prompts that have not begun as far as the client was told.
    pub(crate) async fn grant(&self, id: &str, request: Request, queued: &[PromptId]) -> Next {
        let mut next = Next::GoOn;
        let mut after = Aftermath::Nothing;
        let answer = match request {
            Request::Initialize(wishes) => {
                if self.introduced(id, *wishes) == Next::Introduce {
                    return Next::Introduce;
                }
                Ok(self.introduction())
            }
            Request::Interrupt { cancel_queued } => {
                let unwanted = if cancel_queued { queued } else { &[] };
                self.interrupt(id, unwanted).await;
                return Next::GoOn;
            }
            Request::CancelAsyncMessage { uuid } => {
                self.take_back(id, PromptId::from(uuid)).await;
                return Next::GoOn;
            }
            Request::SetPermissionMode { mode } => match mode.parse::<Mode>() {
                Err(error) => Err((error, ControlError::InvalidMode)),
                Ok(mode) if !self.host.may_enter(mode) => Err((
                    "the session was not launched with --dangerously-skip-permissions".to_owned(),
                    ControlError::BypassNotLaunched,
                )),
                Ok(mode) => {
                    after = Aftermath::Mode(mode);
                    Ok(json!({"mode": mode.as_str()}))
                }
            },
            Request::SetModel { model } => {
                let model = model.and_then(|name| models::resolve(&name, &self.environment));
                let mut known = lock(&self.known);
                known.model = model.clone().unwrap_or_else(|| known.default_model.clone());
                let name = known.model.clone();
                after = Aftermath::Model {
                    wanted: model.map_or(ModelChange::Default, |name| {
                        ModelChange::Named(Arc::from(name))
                    }),
                    said: format!("Set model to {name}"),
                };
                Ok(json!({"model": name}))
            }
            Request::SetMaxThinkingTokens { tokens } => {
                let reasoning = tokens.map_or(Reasoning::Auto, budgeted);
                after = Aftermath::Wants(Command::SetReasoning { reasoning });
                Ok(json!({}))
            }
            Request::McpStatus => Ok(json!({"mcpServers": self.server_report()})),
            Request::McpSetServers { servers } => {
                let others = lock(&self.known).own_servers();
                Ok(self.set_servers.replace(servers, &others))
            }
            Request::McpReconnect { name } => self.reconnect(our_server(&name)).map(|command| {
                after = command.map_or(Aftermath::Nothing, of_server);
                json!({})
            }),
            Request::McpToggle { name, enabled } => {
                let switch = if enabled { Switch::On } else { Switch::Off };
                self.toggle(our_server(&name), switch).map(|command| {
                    after = command.map_or(Aftermath::Nothing, of_server);
                    json!({})
                })
            }
            Request::RewindFiles(wanted) => {
                self.rewind_files(id, wanted).await;
                return Next::GoOn;
            }
            Request::GetContextUsage => Ok(lock(&self.known).context_usage(self.host.tokens())),
            Request::StopTask | Request::ApplyNothing => Ok(json!({})),
            Request::GetSettings => {
                let known = lock(&self.known);
                Ok(json!({
                    "effective": known.settings,
                    "sources": [],
                    "applied": {"model": known.model, "effort": null},
                }))
            }
            Request::GetBinaryVersion => Ok(json!({"version": VERSION})),
            Request::ListModels => Ok(json!({"models": self.models()})),
            Request::GenerateSessionTitle => Ok(json!({"title": null})),
            Request::EndSession => {
                next = Next::End;
                Ok(json!({}))
            }
            Request::Unknown { subtype } => Err((
                format!("Unsupported control request subtype: {subtype}"),
                ControlError::UnsupportedRequest,
            )),
            Request::Wrong { reason } => Err((reason, ControlError::InvalidRequest)),
        };
        let frame = match answer {
            Ok(response) => success_response(id, &response),
            Err((error, code)) => error_response(id, &error, code),
        };
        self.host.wire.frame(frame);
        self.follow_up(after).await;
        next
    }

    /// Takes files back; the answer follows when the session has done it.
    async fn rewind_files(&self, id: &str, wanted: RewindFiles) {
        match self.files.grant(id, wanted).await {
            Ok(Granted::Wants(command)) => self.host.send(command).await,
            Ok(Granted::Answer(answer)) => self.answer(id, &answer),
            Err((error, code)) => self.host.wire.frame(error_response(id, &error, code)),
        }
    }

    /// Stops what is worked on, and before that takes back what is not wanted any more.
    async fn interrupt(&self, id: &str, unwanted: &[PromptId]) {
        for prompt in unwanted.iter().cloned() {
            self.host.send(Command::TakeBack { prompt }).await;
        }
        lock(&self.awaited).interrupts.push_back(id.to_owned());
        self.host.send(Command::Interrupt).await;
    }

    async fn take_back(&self, id: &str, prompt: PromptId) {
        let request = (prompt.clone(), id.to_owned());
        lock(&self.awaited).taken_back.push(request);
        self.host.send(Command::TakeBack { prompt }).await;
    }

    /// The session has heard an interrupt.
    pub(crate) fn interrupted(&self, waiting: &[PromptId]) {
        let id = lock(&self.awaited).interrupts.pop_front();
        if let Some(id) = id {
            self.answer(&id, &still_queued(waiting));
        }
    }

    /// The session has taken a prompt back, or could not.
    pub(crate) fn taken_back(&self, prompt: &PromptId, taken: TakenBack) {
        let about = |(asked, _): &mut (PromptId, String)| asked == prompt;
        let ids: Vec<_> = lock(&self.awaited)
            .taken_back
            .extract_if(.., about)
            .collect();
        for (_, id) in ids {
            self.answer(&id, &cancelled(taken));
        }
    }

    /// The session is over and tells nothing any more.
    pub(crate) fn close(&self) {
        let awaited = std::mem::take(&mut *lock(&self.awaited));
        for id in awaited.interrupts {
            self.answer(&id, &still_queued(&[]));
        }
        for (_, id) in awaited.taken_back {
            self.answer(&id, &cancelled(TakenBack::No));
        }
        for frame in self.files.close() {
            self.host.wire.frame(frame);
        }
    }

    pub(crate) fn answer(&self, id: &str, response: &Value) {
        self.host.wire.frame(success_response(id, response));
    }

    async fn follow_up(&self, after: Aftermath) {
        match after {
            Aftermath::Nothing => {}
            Aftermath::Wants(command) => self.host.send(command).await,
            Aftermath::Mode(mode) => self.host.set_mode(mode).await,
            Aftermath::Model { wanted, said } => {
                self.host.send(Command::SetModel { model: wanted }).await;
                self.host.say_locally(&said);
            }
        }
    }

    /// The client has said what it wants the session to be.
    fn introduced(&self, id: &str, wishes: Initialize) -> Next {
        self.hooks.register(&wishes);
        let agents = wishes.agents.clone().unwrap_or_default();
        let described = agents.into_iter();
        let described = described.map(|(name, agent)| (name, agent.description));
        lock(&self.known).agents.extend(described);
        *lock(&self.wishes) = wishes;
        match &mut *lock(&self.introductions) {
            Introductions::Waiting(ids) => {
                ids.push(id.to_owned());
                Next::Introduce
            }
            Introductions::Possible => Next::GoOn,
        }
    }

    /// The session has begun: who introduced itself is told what there is.
    pub(crate) fn introduce(&self) {
        let waiting = std::mem::replace(&mut *lock(&self.introductions), Introductions::Possible);
        if let Introductions::Waiting(ids) = waiting {
            for id in ids {
                self.answer(&id, &self.introduction());
            }
        }
    }

    /// What a client learns when it introduces itself.
    fn introduction(&self) -> Value {
        let models = self.models();
        let known = lock(&self.known);
        let commands: Vec<Value> = known
            .commands
            .iter()
            .map(|(name, description)| {
                let hint = known.hints.get(name).map(String::as_str);
                json!({
                    "name": name,
                    "description": description,
                    "argumentHint": hint.unwrap_or_default(),
                })
            })
            .collect();
        let agents: Vec<Value> = known
            .agents
            .iter()
            .map(|(name, description)| json!({"name": name, "description": description}))
            .collect();
        json!({
            "commands": commands,
            "agents": agents,
            "output_style": known.output_style,
            "available_output_styles": known.output_styles,
            "models": models,
            "account": {},
            "claude_code_version": VERSION,
            "current_permission_mode": self.host.mode().as_str(),
            "hooks_applied": true,
            "hook_on_failure_supported": true,
            "pid": std::process::id(),
        })
    }

    fn models(&self) -> Vec<Value> {
        let default = lock(&self.known).default_model.clone();
        models::list(&default, &self.environment)
    }

    /// Tries a server again. One that the client has set is told at once, any other by the session.
    fn reconnect(&self, name: &str) -> Result<Option<ServerCommand>, Unfit> {
        match self.set_servers.reconnect(name) {
            Some(Ok(())) => Ok(None),
            Some(Err(error)) => Err((error.to_string(), ControlError::InvalidRequest)),
            None => lock(&self.known).reconnect(name),
        }
    }

    /// Offers the tools of a server, or no longer.
    fn toggle(&self, name: &str, switch: Switch) -> Result<Option<ServerCommand>, Unfit> {
        match self.set_servers.toggle(name, switch) {
            Some(()) => Ok(None),
            None => lock(&self.known).toggle(name, switch).map(Some),
        }
    }

    /// All servers: those that the session began with, then those that the client has set.
    fn statuses(&self) -> Vec<ServerStatus> {
        let own = lock(&self.known).statuses();
        own.into_iter().chain(self.set_servers.status()).collect()
    }

    fn server_report(&self) -> Value {
        let statuses = self.statuses();
        lock(&self.known).report(statuses)
    }

    /// How the servers are at this moment.
    pub(crate) fn server_states(&self) -> Vec<McpServer> {
        let statuses = self.statuses();
        lock(&self.known).shown_briefly(statuses)
    }

    /// What there is to know of a session that can begin.
    pub(crate) fn learn(&self, launched: &Launched, hosted: Vec<String>) {
        let mut known = lock(&self.known);
        known.servers = launched.servers().cloned();
        known.hosted = hosted;
        known.commands.clone_from(&launched.facts.commands);
        known.hints.clone_from(&launched.facts.hints);
        let desk = launched.desk();
        for profile in desk.profiles() {
            known.agents.entry(profile.name).or_insert(profile.about);
        }
        known.output_styles = desk.styles().1.into_iter().map(|(name, ..)| name).collect();
        let files = desk.instructions().into_iter();
        known.memory = files
            .map(|(kind, path, tokens)| MemoryFile { kind, path, tokens })
            .collect();
        if self.environment.is_on(CHECKPOINTING) {
            self.files.enable(desk.rewinder().cloned());
        }
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, SessionProfile> {
        lock(&self.known)
    }

    pub(crate) fn wishes(&self) -> Initialize {
        lock(&self.wishes).clone()
    }
}

fn of_server(command: ServerCommand) -> Aftermath {
    Aftermath::Wants(Command::Servers(command))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
