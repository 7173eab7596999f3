//! What is known of the session: its model, its commands, its servers and how they are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use caliban_harness::status_name;
use caliban_mcp::{ServerStatus, Servers, Status};
use caliban_protocol::claude::{ControlError, McpServer};
use caliban_session::ServerCommand;
use serde_json::{Value, json};

/// What is known of the session to those who ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionProfile {
    pub(crate) model: String,
    pub(crate) default_model: String,
    pub(crate) context_window: u64,
    /// Name and description.
    pub(crate) commands: Vec<(String, String)>,
    /// What may be written after the names of those that take anything.
    pub(crate) hints: BTreeMap<String, String>,
    pub(crate) agents: BTreeMap<String, String>,
    pub(crate) servers: Option<Servers>,
    /// The names of those that live in the client.
    pub(crate) hosted: Vec<String>,
    /// Those that were switched off.
    pub(crate) disabled: BTreeSet<String>,
    pub(crate) output_style: String,
    /// The names of those there are.
    pub(crate) output_styles: Vec<String>,
    /// The files that the model is told beforehand.
    pub(crate) memory: Vec<MemoryFile>,
    pub(crate) settings: Value,
}

/// A file that the model is told beforehand.
#[derive(Debug, Clone)]
pub(crate) struct MemoryFile {
    pub(crate) kind: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) tokens: u64,
}

impl SessionProfile {
    /// What fills the model's window, of which `used` tokens are in use.
    pub(crate) fn context_usage(&self, used: u64) -> Value {
        let most = self.context_window.max(1);
        let memory: u64 = self.memory.iter().map(|file| file.tokens).sum();
        let memory = memory.min(used);
        let category = |id: &str, name: &str, tokens: u64, color: &str, kind: &str| json!({"id": id, "name": name, "tokens": tokens, "color": color, "kind": kind});
        let files: Vec<Value> = self
            .memory
            .iter()
            .map(|file| json!({"path": file.path, "type": file.kind, "tokens": file.tokens}))
            .collect();
        json!({
            "categories": [
                category("memory_files", "Memory files", memory, "cyan", "used"),
                category("messages", "Messages", used - memory, "blue", "used"),
                category("free_space", "Free space", most.saturating_sub(used), "gray", "free"),
            ],
            "totalTokens": used,
            "maxTokens": most,
            "rawMaxTokens": most,
            "percentage": used.saturating_mul(100) / most,
            "gridRows": [],
            "model": self.model,
            "memoryFiles": files,
            "mcpTools": [],
            "agents": [],
            "isAutoCompactEnabled": true,
            "apiUsage": null,
        })
    }

    /// Where the servers stand that the session began with.
    pub(crate) fn statuses(&self) -> Vec<ServerStatus> {
        let statuses = self.servers.as_ref().map(Servers::status);
        statuses.unwrap_or_default()
    }

    pub(crate) fn own_servers(&self) -> Vec<String> {
        let statuses = self.statuses().into_iter();
        statuses.map(|server| server.name.to_string()).collect()
    }

    /// How servers are shown in a turn.
    pub(crate) fn shown_briefly(&self, statuses: Vec<ServerStatus>) -> Vec<McpServer> {
        let of = |server: ServerStatus| McpServer {
            status: self.shown(&server.name, status_name(&server.status)),
            name: theirs(&server.name),
        };
        statuses.into_iter().map(of).collect()
    }

    /// What a client that asks is told about them.
    pub(crate) fn report(&self, statuses: Vec<ServerStatus>) -> Value {
        let report = |server: ServerStatus| {
            let mut object = json!({
                "name": theirs(&server.name),
                "status": self.shown(&server.name, status_name(&server.status)),
            });
            match server.status {
                Status::Connected { info, .. } => {
                    object["serverInfo"] = json!({"name": info.name, "version": info.version});
                    let tools = server.tools.iter();
                    object["tools"] = tools.map(|name| json!({"name": name})).collect();
                }
                Status::Failed { reason } | Status::NeedsAuth { reason, .. } => {
                    object["error"] = json!(reason);
                }
                Status::Connecting | Status::Disabled => {}
            }
            object
        };
        statuses.into_iter().map(report).collect()
    }

    fn shown(&self, server: &str, status: &'static str) -> &'static str {
        if self.disabled.contains(server) {
            "disabled"
        } else {
            status
        }
    }

    /// Offers the tools of a server, or no longer.
    pub(crate) fn toggle(&mut self, name: &str, switch: Switch) -> Result<ServerCommand, Unfit> {
        let server = self.own(name)?;
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
    pub(crate) fn reconnect(&self, name: &str) -> Result<Option<ServerCommand>, Unfit> {
        // The way to a server in the client is the one this request came by.
        if self.hosted.iter().any(|hosted| hosted == name) {
            return Ok(None);
        }
        let server = self.own(name)?;
        Ok(Some(ServerCommand::Reconnect { server }))
    }

    /// A server that the session began with.
    fn own(&self, name: &str) -> Result<String, Unfit> {
        let found = self.own_servers().into_iter().find(|own| own == name);
        found.ok_or_else(|| missing(name))
    }
}

/// Why a request is not granted.
pub(crate) type Unfit = (String, ControlError);

/// Whether a server's tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
}

fn missing(server: &str) -> Unfit {
    (
        format!("Server not found: {server}"),
        ControlError::NotFound,
    )
}

/// What servers of plugins have before their names in this dialect.
const PLUGINS: &str = "plugin:";

/// The name of a server in this dialect: those of plugins have a word before theirs.
fn theirs(name: &str) -> String {
    if name.contains(':') {
        format!("{PLUGINS}{name}")
    } else {
        name.to_owned()
    }
}

/// And the other way round.
pub(crate) fn our_server(name: &str) -> &str {
    let ours = name.strip_prefix(PLUGINS);
    ours.filter(|ours| ours.contains(':')).unwrap_or(name)
}
