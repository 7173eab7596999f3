//! One server: what is known about it, and calls to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_agent::{Progress, ToolOutput, ToolStatus};
use caliban_model::CancellationToken;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use crate::active::Active;
use crate::connection::{Connection, RequestError};
use crate::definition::Definition;
use crate::log::{RecentLines, ServerLog};
use crate::names;
use crate::parts::Parts;
use crate::pins::{Judgement, PinError, Pins};
use crate::resources::Listings;
use crate::results;
use crate::status::Status;
use crate::text;
use crate::tool::McpTool;

/// What all servers of a session share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) parts: Parts,
    pub(crate) pins: Pins,
    pub(crate) active: Mutex<Active>,
    /// Grows with every change of what is known about any server.
    pub(crate) generation: watch::Sender<u64>,
}

impl Common {
    pub(crate) fn changed(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Notes that a tool is used, so that it stays offered.
    pub(crate) fn touch(&self, name: &str) {
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let change = active.activate(name.to_owned());
        drop(active);
        if change.is_new {
            self.changed();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    /// Its part of its tools' names.
    pub(crate) part: String,
    pub(crate) identity: String,
    /// Whether its tools are offered by search, where its settings say.
    pub(crate) lazy: Option<bool>,
    pub(crate) common: Arc<Common>,
    pub(crate) state: watch::Sender<State>,
    /// Somebody wants it tried again.
    pub(crate) retry: Notify,
    pub(crate) listings: Listings,
    /// What it said last.
    pub(crate) recent: Arc<RecentLines>,
}

#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) status: Status,
    pub(crate) connection: Option<Connection>,
    pub(crate) tools: Arc<[Arc<McpTool>]>,
    pub(crate) withheld: Arc<[Definition]>,
    pub(crate) instructions: Option<Arc<str>>,
    /// All its tools by their own names, with their full names.
    names: Arc<BTreeMap<String, String>>,
}

impl State {
    pub(crate) fn new(status: Status) -> Self {
        Self {
            status,
            connection: None,
            tools: Arc::from([]),
            withheld: Arc::from([]),
            instructions: None,
            names: Arc::default(),
        }
    }
}

impl Server {
    pub(crate) fn log(&self) -> ServerLog {
        ServerLog {
            log: Arc::clone(&self.common.parts.log),
            server: Arc::clone(&self.name),
            recent: Arc::clone(&self.recent),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(change);
        self.common.changed();
    }

    pub(crate) fn status(&self) -> Status {
        self.state.borrow().status.clone()
    }

    pub(crate) fn prefix(&self) -> String {
        names::prefix(&self.part)
    }

    /// Waits until it is known where the server stands.
    pub(crate) async fn settled(&self) -> Status {
        let mut state = self.state.subscribe();
        // The sender lives as long as this.
        match state.wait_for(|state| state.status.is_settled()).await {
            Ok(state) => state.status.clone(),
            Err(_) => self.status(),
        }
    }

    /// Takes over a list of tools: those whose definitions have changed are withheld.
    pub(crate) async fn adopt(self: &Arc<Self>, definitions: Vec<Definition>) {
        let names = names::tool_names(
            &self.part,
            definitions
                .iter()
                .map(|definition| definition.name.as_str()),
        );
        let server = Arc::clone(self);
        let judging = tokio::task::spawn_blocking(move || {
            server
                .common
                .pins
                .judge(&server.identity, &server.name, definitions)
        });
        // It panics never and is cancelled only with the whole session.
        let Judgement {
            accepted,
            changed,
            problem,
        } = judging.await.unwrap_or_default();
        if let Some(problem) = problem {
            self.log().warning(&problem.to_string());
        }
        self.warn_of_changes(&changed);
        self.publish(&accepted, changed, names);
    }

    fn publish(
        self: &Arc<Self>,
        accepted: &[Definition],
        withheld: Vec<Definition>,
        names: BTreeMap<String, String>,
    ) {
        let tools: Arc<[Arc<McpTool>]> = accepted
            .iter()
            .filter_map(|definition| {
                let name = names.get(&definition.name)?.clone();
                let server = Arc::downgrade(self);
                Some(Arc::new(McpTool::new(name, definition, server)))
            })
            .collect();
        self.change(|state| {
            if let Status::Connected { tools: count, .. } = &mut state.status {
                *count = tools.len();
            }
            state.tools = tools;
            state.withheld = withheld.into();
            state.names = Arc::new(names);
        });
    }

    fn warn_of_changes(&self, changed: &[Definition]) {
        let before = Arc::clone(&self.state.borrow().withheld);
        let new: Vec<String> = changed
            .iter()
            .filter(|definition| !before.contains(definition))
            .map(|definition| text::line(&definition.name, 80))
            .collect();
        if !new.is_empty() {
            self.log().warning(&format!(
                "the definitions of tools have changed since they were first seen, so they are \
                 withheld: {}; look at them and run `caliban mcp approve {}`",
                new.join(", "),
                self.name
            ));
        }
    }

    /// Approves the definitions that are withheld now, and offers their tools.
    pub(crate) async fn approve(self: &Arc<Self>) -> Result<Vec<String>, PinError> {
        let state = self.state.borrow().clone();
        let withheld = state.withheld;
        let approved: Vec<String> = withheld.iter().map(|tool| tool.name.clone()).collect();
        if approved.is_empty() {
            return Ok(approved);
        }
        let server = Arc::clone(self);
        let pinned = Arc::clone(&withheld);
        let pinning = tokio::task::spawn_blocking(move || {
            server
                .common
                .pins
                .approve(&server.identity, &server.name, &pinned)
        });
        // It panics never and is cancelled only with the whole session.
        pinning.await.unwrap_or(Ok(()))?;
        let new = withheld.iter().filter_map(|definition| {
            let name = state.names.get(&definition.name)?.clone();
            let tool = McpTool::new(name, definition, Arc::downgrade(self));
            Some(Arc::new(tool))
        });
        let tools: Arc<[Arc<McpTool>]> = state.tools.iter().cloned().chain(new).collect();
        self.change(|state| {
            // A list that came meanwhile has been judged by the new pins already.
            if Arc::ptr_eq(&state.withheld, &withheld) {
                if let Status::Connected { tools: count, .. } = &mut state.status {
                    *count = tools.len();
                }
                state.tools = tools;
                state.withheld = Arc::from([]);
            }
        });
        Ok(approved)
    }

    /// The connection, waiting for one that is being made within the connection's own deadline.
    pub(crate) async fn connection(&self) -> Result<Connection, Status> {
        let patience = self.common.parts.timeouts.connect;
        let Ok(status) = tokio::time::timeout(patience, self.settled()).await else {
            return Err(Status::Connecting);
        };
        let connection = self.state.borrow().connection.clone();
        connection.ok_or(status)
    }

    /// Calls a tool by the server's own name for it, whatever the tool's state.
    pub(crate) async fn call(
        &self,
        tool: &str,
        input: Value,
        cancel: &CancellationToken,
        progress: Progress,
        trace: Option<&str>,
    ) -> ToolOutput {
        let arguments = match input {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            _ => return ToolOutput::invalid("The input must be a JSON object."),
        };
        let connection = tokio::select! {
            connection = self.connection() => connection,
            () = cancel.cancelled() => return cancelled(),
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(status) => return self.unavailable(&status),
        };
        let limit = self.common.parts.timeouts.call;
        let answer = connection
            .call_tool(tool, arguments, limit, cancel, progress, trace)
            .await;
        match answer {
            Ok(result) => results::output(&result, self.common.parts.max_output_tokens),
            Err(RequestError::Refused(said)) => ToolOutput::failed(format!(
                "The MCP server {} refused the call: {said}",
                self.name
            )),
            Err(RequestError::NotSent(reason)) => ToolOutput::new(
                ToolStatus::CouldNotRun,
                format!(
                    "The MCP server {} did not take the call: {reason}",
                    self.name
                ),
            ),
            Err(RequestError::Lost) => {
                self.lost(&connection);
                ToolOutput::new(
                    ToolStatus::CouldNotRun,
                    format!(
                        "The connection to the MCP server {} was lost during the call; whether \
                         it took effect is not known. The server {}.",
                        self.name,
                        self.status()
                    ),
                )
            }
            Err(RequestError::TimedOut(limit)) => ToolOutput::new(
                ToolStatus::TimedOut,
                format!(
                    "The MCP server {} did not answer within {} and was told to stop \
                     (CALIBAN_MCP_TOOL_TIMEOUT).",
                    self.name,
                    seconds(limit)
                ),
            ),
            Err(RequestError::Cancelled) => cancelled(),
        }
    }

    /// Notes at once that a connection is gone, so that the next call waits for another.
    fn lost(&self, connection: &Connection) {
        self.change(|state| {
            let is_current = state
                .connection
                .as_ref()
                .is_some_and(|current| Arc::ptr_eq(&current.signals, &connection.signals));
            if is_current {
                state.status = Status::Connecting;
                state.connection = None;
            }
        });
    }

    fn unavailable(&self, status: &Status) -> ToolOutput {
        ToolOutput::new(
            ToolStatus::CouldNotRun,
            format!("The MCP server {} {status}.", self.name),
        )
    }
}

pub(crate) fn gone() -> ToolOutput {
    ToolOutput::new(
        ToolStatus::CouldNotRun,
        "The MCP servers of this session have been ended.",
    )
}

pub(crate) fn cancelled() -> ToolOutput {
    ToolOutput::new(ToolStatus::Cancelled, "The call was cancelled.")
}

pub(crate) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}
