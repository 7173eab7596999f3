//! Servers of tools that live in the client: their messages travel over the control protocol.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caliban_agent::{Tool, ToolSource};
use caliban_mcp::{Link, Status};
use caliban_settings::mcp_names;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::channel::Channel;
use crate::mcp::Servers;

/// Messages that wait on either side of a link.
const QUEUE: usize = 64;
/// How long a server may take to introduce itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// A link to a server of the client's.
fn link(channel: &Channel, server: &str) -> Link {
    let (outgoing, mut to_send) = mpsc::channel::<Value>(QUEUE);
    let (received, incoming) = mpsc::channel(QUEUE);
    let (channel, server) = (channel.clone(), server.to_owned());
    tokio::spawn(async move {
        while let Some(message) = to_send.recv().await {
            let (channel, server) = (channel.clone(), server.clone());
            let received = received.clone();
            // Each message is a question of its own, so that a slow one holds up no other.
            tokio::spawn(async move {
                let id = message.get("id").cloned();
                let question = json!({
                    "subtype": "mcp_message",
                    "server_name": server,
                    "message": message,
                });
                let answer = channel.ask(&question).await;
                let Some(id) = id else {
                    return;
                };
                let reply = match answer {
                    Ok(mut answer) => answer["mcp_response"].take(),
                    Err(unanswered) => json!({
                        "jsonrpc": "2.0",
                        "id": id,
                        "error": {"code": -32000, "message": unanswered.to_string()},
                    }),
                };
                // Nobody listens once the session is over.
                let _ = received.send(reply).await;
            });
        }
    });
    Link { outgoing, incoming }
}

/// Links to the servers that live in the client.
pub(crate) fn links(channel: &Channel, servers: &[String]) -> Vec<(String, Link)> {
    let of = |server: &String| (server.clone(), link(channel, server));
    servers.iter().map(of).collect()
}

/// Waits for the servers of the client, which are there already, and a moment for others.
pub(crate) async fn settle(servers: &Servers, hosted: &[String]) {
    servers.settle().await;
    let Some(handle) = servers.handle() else {
        return;
    };
    let mut changes = handle.changes();
    let is_waiting = || {
        handle.status().iter().any(|server| {
            server.status == Status::Connecting && hosted.iter().any(|name| **name == *server.name)
        })
    };
    let waiting = async {
        while is_waiting() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    // What is not there by then joins when it is.
    let _ = timeout(PATIENCE, waiting).await;
}

/// Which servers a client has switched off.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// What the names of their tools begin with, by server.
    off: Mutex<BTreeMap<String, String>>,
    changes: AtomicU64,
}

impl Switches {
    /// `all` are the servers of the session, this one among them.
    pub(crate) fn turn<'a>(
        &self,
        server: &str,
        all: impl IntoIterator<Item = &'a str>,
        switch: Switch,
    ) {
        let mut off = self.off();
        match (switch, mcp_names::server_parts(all).get(server)) {
            (Switch::Off, Some(part)) => {
                off.insert(server.to_owned(), mcp_names::prefix(part));
            }
            (Switch::On, _) | (Switch::Off, None) => {
                off.remove(server);
            }
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn is_off(&self, server: &str) -> bool {
        self.off().contains_key(server)
    }

    /// Whether a tool is one of a server that is switched off.
    fn hides(&self, tool: &str) -> bool {
        self.off().values().any(|prefix| tool.starts_with(prefix))
    }

    fn off(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
}

/// The tools of servers, without those that are switched off.
#[derive(Debug)]
pub(crate) struct Switched {
    pub(crate) source: Arc<dyn ToolSource>,
    pub(crate) switches: Arc<Switches>,
}

impl ToolSource for Switched {
    fn generation(&self) -> u64 {
        self.source.generation() + self.switches.changes.load(Ordering::Relaxed)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.source.tools();
        tools.retain(|tool| !self.switches.hides(&tool.spec().name));
        tools
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        if self.switches.hides(name) {
            return std::future::ready(None).boxed();
        }
        self.source.find(name)
    }
}

/// Tools from several places as one.
#[derive(Debug)]
pub(crate) struct Sources(pub(crate) Vec<Arc<dyn ToolSource>>);

impl ToolSource for Sources {
    fn generation(&self) -> u64 {
        self.0.iter().map(|source| source.generation()).sum()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.iter().flat_map(|source| source.tools()).collect()
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        async move {
            for source in &self.0 {
                if let Some(tool) = source.find(name).await {
                    return Some(tool);
                }
            }
            None
        }
        .boxed()
    }
}
