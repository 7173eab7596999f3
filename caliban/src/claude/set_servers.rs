//! Servers of tools that the client sets while the session goes on, beside those it began with.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caliban_agent::{Tool, ToolSource};
use caliban_harness::{Configuration, NoticeSink, server_parts};
use caliban_mcp::{McpError, ServerConfig, ServerStatus, Servers, Status};
use caliban_settings::McpConfig;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::channel::Channel;
use super::servers::links;
use super::session_profile::Switch;

/// The most servers that a client may have set at a time.
const MOST: usize = 64;
/// How long a server that is not wanted any more may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// The servers that the client has set.
#[derive(Debug)]
pub(crate) struct SetServers {
    configuration: Configuration,
    channel: Channel,
    set: Mutex<BTreeMap<String, SetServer>>,
    /// Grows with every change of the set, beyond what those that left had counted.
    changes: AtomicU64,
}

#[derive(Debug)]
struct SetServer {
    /// As the client wrote it.
    config: Value,
    server: Servers,
    place: Place,
    /// Whether its tools are offered.
    switch: Switch,
}

/// Where a server lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Beside,
    InTheClient,
}

impl SetServers {
    pub(crate) fn new(configuration: Configuration, channel: Channel) -> Self {
        Self {
            configuration,
            channel,
            set: Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// Makes `wanted` the servers that are set: those that are new or changed are started, and
    /// those that are not among them end. `others` have names of their own. Returns what was done.
    pub(crate) fn replace(&self, wanted: BTreeMap<String, Value>, others: &[String]) -> Value {
        let (mut added, mut removed, mut errors) = (Vec::new(), Vec::new(), Map::new());
        let mut set = self.set();
        let is_kept = |name: &String, known: &SetServer| wanted.get(name) == Some(&known.config);
        let leaving: Vec<String> = set
            .iter()
            .filter(|(name, known)| !is_kept(name, known))
            .map(|(name, _)| name.clone())
            .collect();
        for name in leaving {
            if let Some(SetServer { server, .. }) = set.remove(&name) {
                self.changes
                    .fetch_add(server.generation() + 1, Ordering::Relaxed);
                tokio::spawn(async move { server.shutdown(PATIENCE).await });
            }
            if !wanted.contains_key(&name) {
                removed.push(name);
            }
        }
        for (name, config) in wanted {
            if set.contains_key(&name) {
                continue;
            }
            let started = if others.contains(&name) {
                Err("the session began with a server of this name".to_owned())
            } else if set.len() >= MOST {
                Err(format!("there are {MOST} servers already"))
            } else {
                self.start(&name, &config)
            };
            match started {
                Ok((server, place)) => {
                    let known = SetServer {
                        config,
                        server,
                        place,
                        switch: Switch::On,
                    };
                    set.insert(name.clone(), known);
                    self.changes.fetch_add(1, Ordering::Relaxed);
                    added.push(name);
                }
                Err(reason) => {
                    errors.insert(name, reason.into());
                }
            }
        }
        json!({"added": added, "removed": removed, "errors": errors})
    }

    /// Starts a server; it is there when it is.
    fn start(&self, name: &str, config: &Value) -> Result<(Servers, Place), String> {
        let mut read = McpConfig::default();
        let text = json!({"mcpServers": {name: config}}).to_string();
        read.read(&text).map_err(|error| error.to_string())?;
        let configured: Vec<_> = read.servers.into_iter().collect();
        let parts = server_parts(
            &configured,
            &self.configuration,
            &NoticeSink::default(),
            None,
        );
        let configured = configured
            .into_iter()
            .map(|(name, server)| (name, ServerConfig::from(server)));
        let hosted = links(&self.channel, &read.hosted)
            .into_iter()
            .map(|(name, link)| (name, ServerConfig::from(link)));
        let place = if read.hosted.is_empty() {
            Place::Beside
        } else {
            Place::InTheClient
        };
        Ok((Servers::start(hosted.chain(configured), parts), place))
    }

    /// Offers the tools of a server, or no longer; nothing where it is none of these.
    pub(crate) fn toggle(&self, name: &str, switch: Switch) -> Option<()> {
        self.set().get_mut(name)?.switch = switch;
        self.changes.fetch_add(1, Ordering::Relaxed);
        Some(())
    }

    /// Tries a server again; nothing where it is none of these.
    pub(crate) fn reconnect(&self, name: &str) -> Option<Result<(), McpError>> {
        let set = self.set();
        let known = set.get(name)?;
        Some(match known.place {
            Place::Beside => known.server.reconnect(name),
            // The way to it is the one that the wish came by.
            Place::InTheClient => Ok(()),
        })
    }

    /// Where they stand.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let set = self.set();
        set.values().flat_map(SetServer::status).collect()
    }

    /// The session is over.
    pub(crate) async fn shutdown(&self) {
        let set = std::mem::take(&mut *self.set());
        let ending = set.values().map(|it| it.server.shutdown(PATIENCE));
        futures::future::join_all(ending).await;
    }

    /// Those whose tools are offered.
    fn sources(&self) -> Vec<Servers> {
        let set = self.set();
        let offered = set.values().filter(|it| it.switch == Switch::On);
        offered.map(|it| it.server.clone()).collect()
    }

    fn set(&self) -> MutexGuard<'_, BTreeMap<String, SetServer>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SetServer {
    fn status(&self) -> Vec<ServerStatus> {
        let mut statuses = self.server.status();
        match self.switch {
            Switch::On => {}
            Switch::Off => statuses
                .iter_mut()
                .for_each(|server| server.status = Status::Disabled),
        }
        statuses
    }
}

impl ToolSource for SetServers {
    fn generation(&self) -> u64 {
        let set = self.set();
        let own: u64 = set.values().map(|it| it.server.generation()).sum();
        own + self.changes.load(Ordering::Relaxed)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.sources().iter().flat_map(ToolSource::tools).collect()
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        async move {
            for source in self.sources() {
                if let Some(tool) = source.find(name).await {
                    return Some(tool);
                }
            }
            None
        }
        .boxed()
    }
}
