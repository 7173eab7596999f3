//! What a client wants from the session beside answers, and what it is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_mcp::{ServerStatus, Servers, Status};
use caliban_model::Reasoning;
use caliban_protocol::McpServerState;
use caliban_protocol::claude::{
    ControlError, Initialize, McpServer, Request, VERSION, error_response, success_response,
};
use caliban_settings::variables::Environment;
use serde_json::{Value, json};

use super::hooks::HostHooks;
use super::host::Host;
use super::invocation::budgeted;
use super::mode::Mode;
use super::models;
use super::servers::{Switch, Switches};

/// What is known of the session to those who ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) model: String,
    pub(crate) default_model: String,
    pub(crate) context_window: u64,
    /// Name and description.
    pub(crate) commands: Vec<(String, String)>,
    pub(crate) agents: BTreeMap<String, String>,
    pub(crate) servers: Option<Servers>,
    /// The names of those that live in the client.
    pub(crate) hosted: Vec<String>,
    pub(crate) switches: Arc<Switches>,
    pub(crate) output_style: String,
    pub(crate) settings: Value,
}

impl Known {
    /// How the servers are at this moment.
    pub(crate) fn server_states(&self) -> Vec<McpServer> {
        let states = crate::mcp::states(self.servers.as_ref());
        let of = |state: McpServerState| McpServer {
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
                "status": self.shown(&server.name, crate::mcp::status_name(&server.status)),
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
        if self.switches.is_off(server) {
            "disabled"
        } else {
            status
        }
    }

    /// Offers the tools of a server, or no longer.
    fn toggle(&self, name: &str, switch: Switch) -> Result<Value, (String, ControlError)> {
        let states = crate::mcp::states(self.servers.as_ref());
        if !states.iter().any(|state| state.name == name) {
            return Err(missing(name));
        }
        let all = states.iter().map(|state| state.name.as_str());
        self.switches.turn(name, all, switch);
        Ok(json!({}))
    }

    /// Tries a server again.
    fn reconnect(&self, name: &str) -> Result<Value, (String, ControlError)> {
        // The way to a server in the client is the one this request came by.
        if self.hosted.iter().any(|hosted| hosted == name) {
            return Ok(json!({}));
        }
        let servers = self.servers.as_ref();
        let done = servers.is_some_and(|servers| servers.reconnect(name).is_ok());
        done.then(|| json!({})).ok_or_else(|| missing(name))
    }
}

/// The answer to who wants other servers.
fn fixed(names: Vec<String>) -> Value {
    let refused: BTreeMap<_, _> = names
        .into_iter()
        .map(|name| (name, "the servers of a session are those it began with"))
        .collect();
    json!({"added": [], "removed": [], "errors": refused})
}

fn missing(server: &str) -> (String, ControlError) {
    (
        format!("Server not found: {server}"),
        ControlError::NotFound,
    )
}

/// What the client changed and the next turn begins with.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) model: Option<ModelChange>,
    pub(crate) reasoning: Option<Reasoning>,
}

/// Another model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelChange {
    Default,
    Named(String),
}

/// What is done once a request was answered.
type Aftermath = Box<dyn FnOnce(&Host)>;

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
pub(crate) struct Reception<'a> {
    pub(crate) host: Arc<Host>,
    pub(crate) hooks: Arc<HostHooks>,
    pub(crate) environment: Environment<'a>,
    pub(crate) known: Mutex<Known>,
    pub(crate) changes: Mutex<Changes>,
    /// What the client wants the session to be, until there is one.
    pub(crate) wishes: Mutex<Initialize>,
    pub(crate) introductions: Mutex<Introductions>,
}

impl Reception<'_> {
    /// Grants a request and answers it at once.
    pub(crate) fn grant(&self, id: &str, request: Request) -> Next {
        let mut next = Next::GoOn;
        let mut after: Option<Aftermath> = None;
        let answer = match request {
            Request::Initialize(wishes) => {
                self.hooks.register(&wishes);
                let agents = wishes.agents.clone().unwrap_or_default();
                let mut known = lock(&self.known);
                known.agents.extend(
                    agents
                        .into_iter()
                        .map(|(name, agent)| (name, agent.description)),
                );
                drop(known);
                *lock(&self.wishes) = *wishes;
                if let Introductions::Waiting(ids) = &mut *lock(&self.introductions) {
                    ids.push(id.to_owned());
                    return Next::Introduce;
                }
                Ok(self.introduction())
            }
            Request::Interrupt => {
                after = Some(Box::new(Host::interrupt));
                Ok(json!({"still_queued": []}))
            }
            Request::SetPermissionMode { mode } => match mode.parse::<Mode>() {
                Err(error) => Err((error, ControlError::InvalidMode)),
                Ok(mode) if !self.host.may_enter(mode) => Err((
                    "the session was not launched with --dangerously-skip-permissions".to_owned(),
                    ControlError::BypassNotLaunched,
                )),
                Ok(mode) => {
                    after = Some(Box::new(move |host: &Host| host.set_mode(mode)));
                    Ok(json!({"mode": mode.as_str()}))
                }
            },
            Request::SetModel { model } => {
                let model = model.and_then(|name| models::resolve(&name, &self.environment));
                let mut known = lock(&self.known);
                known.model = model.clone().unwrap_or_else(|| known.default_model.clone());
                let name = known.model.clone();
                drop(known);
                let change = model.map_or(ModelChange::Default, ModelChange::Named);
                lock(&self.changes).model = Some(change);
                let said = format!("Set model to {name}");
                after = Some(Box::new(move |host: &Host| host.say_locally(&said)));
                Ok(json!({"model": name}))
            }
            Request::SetMaxThinkingTokens { tokens } => {
                lock(&self.changes).reasoning = Some(tokens.map_or(Reasoning::Auto, budgeted));
                Ok(json!({}))
            }
            Request::McpStatus => Ok(json!({"mcpServers": lock(&self.known).server_report()})),
            Request::McpSetServers { names } => Ok(fixed(names)),
            Request::McpReconnect { name } => lock(&self.known).reconnect(&name),
            Request::McpToggle { name, enabled } => {
                let switch = if enabled { Switch::On } else { Switch::Off };
                lock(&self.known).toggle(&name, switch)
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
        if let Some(after) = after {
            after(&self.host);
        }
        next
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

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    pub(crate) fn take_changes(&self) -> Changes {
        std::mem::take(&mut *lock(&self.changes))
    }

    pub(crate) fn wishes(&self) -> Initialize {
        lock(&self.wishes).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
