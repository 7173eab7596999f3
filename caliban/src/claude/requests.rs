//! What a client wants from the session beside answers, and what it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_harness::{Launched, ServerState, server_states, status_name};
use caliban_mcp::{ServerStatus, Servers, Status};
use caliban_model::Reasoning;
use caliban_protocol::claude::{
    ControlError, Initialize, McpServer, Request, VERSION, error_response, success_response,
};
use caliban_session::{Command, ModelChange, ServerCommand};
use caliban_settings::variables::Environment;
use serde_json::{Value, json};

use super::hooks::HostHooks;
use super::host::Host;
use super::invocation::budgeted;
use super::mode::Mode;
use super::models;

/// What is known of the session to those who ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionProfile {
    pub(crate) model: String,
    pub(crate) default_model: String,
    pub(crate) context_window: u64,
    /// Name and description.
    pub(crate) commands: Vec<(String, String)>,
    pub(crate) agents: BTreeMap<String, String>,
    pub(crate) servers: Option<Servers>,
    /// The names of those that live in the client.
    pub(crate) hosted: Vec<String>,
    /// Those that were switched off.
    pub(crate) disabled: BTreeSet<String>,
    pub(crate) output_style: String,
    pub(crate) settings: Value,
}

impl SessionProfile {
    /// How the servers are at this moment.
    pub(crate) fn server_states(&self) -> Vec<McpServer> {
        let states = server_states(self.servers.as_ref());
        let of = |state: ServerState| McpServer {
            status: self.shown(&state.name, state.status),
            name: state.name,
        };
        states.into_iter().map(of).collect()
    }

    /// What a client that asks is told about them.
    fn server_report(&self) -> Value {
        let statuses = self.servers.as_ref().map(Servers::status);
        let report = |server: ServerStatus| {
            let mut object = json!({
                "name": &*server.name,
                "status": self.shown(&server.name, status_name(&server.status)),
            });
            match server.status {
                Status::Connected { info, .. } => {
                    object["serverInfo"] = json!({"name": info.name, "version": info.version});
                }
                Status::Failed { reason } | Status::NeedsAuth { reason, .. } => {
                    object["error"] = json!(reason);
                }
                Status::Connecting | Status::Disabled => {}
            }
            object
        };
        statuses.into_iter().flatten().map(report).collect()
    }

    fn shown(&self, server: &str, status: &'static str) -> &'static str {
        if self.disabled.contains(server) {
            "disabled"
        } else {
            status
        }
    }

    /// Offers the tools of a server, or no longer.
    fn toggle(&mut self, name: &str, switch: Switch) -> Result<ServerCommand, Unfit> {
        let states = server_states(self.servers.as_ref());
        if !states.iter().any(|state| state.name == name) {
            return Err(missing(name));
        }
        let server = name.to_owned();
        Ok(match switch {
            Switch::On => {
                self.disabled.remove(name);
                ServerCommand::Enable { server }
            }
            Switch::Off => {
                self.disabled.insert(server.clone());
                ServerCommand::Disable { server }
            }
        })
    }

    /// Tries a server again.
    fn reconnect(&self, name: &str) -> Result<Option<ServerCommand>, Unfit> {
        // The way to a server in the client is the one this request came by.
        if self.hosted.iter().any(|hosted| hosted == name) {
            return Ok(None);
        }
        let states = server_states(self.servers.as_ref());
        if !states.iter().any(|state| state.name == name) {
            return Err(missing(name));
        }
        let server = name.to_owned();
        Ok(Some(ServerCommand::Reconnect { server }))
    }
}

/// Why a request is not granted.
type Unfit = (String, ControlError);

/// Whether a server's tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

/// The answer to who wants other servers.
fn fixed(names: Vec<String>) -> Value {
    let refused: BTreeMap<_, _> = names
        .into_iter()
        .map(|name| (name, "the servers of a session are those it began with"))
        .collect();
    json!({"added": [], "removed": [], "errors": refused})
}

fn missing(server: &str) -> Unfit {
    (
        format!("Server not found: {server}"),
        ControlError::NotFound,
    )
}

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
    pub(crate) environment: Environment,
    pub(crate) known: Mutex<SessionProfile>,
    /// What the client wants the session to be, until there is one.
    pub(crate) wishes: Mutex<Initialize>,
    pub(crate) introductions: Mutex<Introductions>,
}

impl RequestHandler {
    /// Grants a request and answers it at once. `queued` are the ids of prompts that wait.
    pub(crate) async fn grant(&self, id: &str, request: Request, queued: &[String]) -> Next {
        let mut next = Next::GoOn;
        let mut after = Aftermath::Nothing;
        let answer = match request {
            Request::Initialize(wishes) => {
                if self.introduced(id, *wishes) == Next::Introduce {
                    return Next::Introduce;
                }
                Ok(self.introduction())
            }
            Request::Interrupt => {
                after = Aftermath::Wants(Command::Interrupt);
                Ok(json!({"still_queued": queued}))
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
            Request::McpStatus => Ok(json!({"mcpServers": lock(&self.known).server_report()})),
            Request::McpSetServers { names } => Ok(fixed(names)),
            Request::McpReconnect { name } => lock(&self.known).reconnect(&name).map(|command| {
                after = command.map_or(Aftermath::Nothing, of_server);
                json!({})
            }),
            Request::McpToggle { name, enabled } => {
                let switch = if enabled { Switch::On } else { Switch::Off };
                lock(&self.known).toggle(&name, switch).map(|command| {
                    after = of_server(command);
                    json!({})
                })
            }
            Request::RewindFiles => Err((
                "File rewinding is not enabled.".to_owned(),
                ControlError::Disabled,
            )),
            Request::GetContextUsage => Ok(self.context_usage()),
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
            Request::CancelAsyncMessage { .. } => Ok(json!({"cancelled": false})),
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
                let frame = success_response(&id, &self.introduction());
                self.host.wire.frame(frame);
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
                json!({"name": name, "description": description, "argumentHint": ""})
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
            "available_output_styles": [known.output_style],
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

    fn context_usage(&self) -> Value {
        let known = lock(&self.known);
        let (used, most) = (self.host.tokens(), known.context_window.max(1));
        let percentage = used.saturating_mul(100) / most;
        json!({
            "categories": [
                {"name": "Messages", "tokens": used, "color": "blue", "kind": "used"},
                {"name": "Free space", "tokens": most.saturating_sub(used), "color": "gray", "kind": "free"},
            ],
            "totalTokens": used,
            "maxTokens": most,
            "rawMaxTokens": most,
            "percentage": percentage,
            "gridRows": [],
            "model": known.model,
            "memoryFiles": [],
            "mcpTools": [],
            "agents": [],
            "isAutoCompactEnabled": true,
            "apiUsage": null,
        })
    }

    /// What there is to know of a session that can begin.
    pub(crate) fn learn(&self, launched: &Launched, hosted: Vec<String>) {
        let mut known = lock(&self.known);
        known.servers = launched.servers().cloned();
        known.hosted = hosted;
        known.commands.clone_from(&launched.facts.commands);
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
