//! All servers of a session: the one handle for everything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_agent::{Progress, ToolOutput, ToolStatus};
use caliban_model::{CancellationToken, ToolContent, ToolSpec};
use caliban_settings::McpServer;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::active::Active;
use crate::endpoint::identity;
use crate::names::{digest, server_parts};
use crate::parts::Parts;
use crate::pins::{PinError, Pins};
use crate::resources::{Listings, McpError, Prompt, Resource, ResourceUri};
use crate::server::{Common, Server, State};
use crate::session::{self, Source};
use crate::status::{ServerStatus, Status};
use crate::transport::link::Link;

/// Up to so many servers are waited for before the first request.
const HANDFUL: usize = 4;
/// What a session is ahead of a fleet, so that its first request need not share the processor
/// with the start of many programs.
const HEAD_START: Duration = Duration::from_millis(50);
/// How long they are waited for.
const STARTUP_PATIENCE: Duration = Duration::from_secs(1);
/// How long a program may take to end when it is dropped or started anew.
const GRACE: Duration = Duration::from_secs(3);

/// A server to run.
#[derive(Debug)]
pub enum ServerConfig {
    Settings(Box<McpServer>),
    /// It lives in the program that embeds this one.
    InProcess(Link),
}

impl From<McpServer> for ServerConfig {
    fn from(server: McpServer) -> Self {
        Self::Settings(Box::new(server))
    }
}

impl From<Link> for ServerConfig {
    fn from(link: Link) -> Self {
        Self::InProcess(link)
    }
}

/// The servers of a session. Clones are handles to the same servers; dropping the last ends
/// them all.
#[derive(Debug, Clone)]
pub struct Servers {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// In the order of their names.
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) common: Arc<Common>,
    stop: CancellationToken,
    grace: Arc<Mutex<Duration>>,
    /// Dropping it ends the tasks, and with them the connections.
    tasks: Mutex<JoinSet<()>>,
}

/// A changed definition that waits for approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Withheld {
    /// The tool as it would be offered; third-party text, cleaned and bounded.
    pub spec: ToolSpec,
}

impl Servers {
    /// Starts all servers that are not disabled, each in a task of its own, and returns at once.
    /// Of two servers of one name the first is taken.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(configs: impl IntoIterator<Item = (String, ServerConfig)>, parts: Parts) -> Self {
        let mut wanted = BTreeMap::new();
        for (name, config) in configs {
            wanted.entry(name).or_insert(config);
        }
        let name_parts = server_parts(wanted.keys().map(String::as_str));
        let common = Arc::new(Common {
            pins: Pins::new(parts.pins.clone()),
            active: Mutex::new(Active::new(parts.laziness.max_active)),
            generation: watch::Sender::new(0),
            parts,
        });
        let stop = CancellationToken::new();
        let grace = Arc::new(Mutex::new(GRACE));
        let head_start = match wanted.len() {
            0..=HANDFUL => Duration::ZERO,
            _ => HEAD_START,
        };
        let mut tasks = JoinSet::new();
        let mut servers = Vec::with_capacity(wanted.len());
        for (name, config) in wanted {
            let part = name_parts.get(&name).cloned();
            let (server, source) = server(&name, part, config, &common);
            if let Some(source) = source {
                let life = session::run(
                    Arc::clone(&server),
                    source,
                    stop.clone(),
                    Arc::clone(&grace),
                );
                tasks.spawn(async move {
                    tokio::time::sleep(head_start).await;
                    life.await;
                });
            }
            servers.push(server);
        }
        Self {
            inner: Arc::new(Inner {
                servers,
                common,
                stop,
                grace,
                tasks: Mutex::new(tasks),
            }),
        }
    }

    /// Where every server stands, in the order of their names.
    pub fn status(&self) -> Vec<ServerStatus> {
        let of = |server: &Arc<Server>| {
            let state = server.state.borrow();
            ServerStatus {
                name: Arc::clone(&server.name),
                status: state.status.clone(),
                tools: state
                    .tools
                    .iter()
                    .map(|tool| crate::text::line(tool.own_name(), 100))
                    .collect(),
                instructions: state.instructions.clone(),
                withheld: state
                    .withheld
                    .iter()
                    .map(|definition| crate::text::line(&definition.name, 100))
                    .collect(),
            }
        };
        self.inner.servers.iter().map(of).collect()
    }

    /// Changes whenever anything in [`status`](Self::status) or the tools does.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.common.generation.subscribe()
    }

    /// Waits until it is known where all servers stand, but no longer than `patience`.
    pub async fn settle(&self, patience: Duration) {
        // Whoever has no more patience goes on without those that are missing.
        let _ = tokio::time::timeout(patience, self.inner.all_settled()).await;
    }

    /// How long to wait for servers before the first request: a moment for a handful, so that
    /// their tools are there from the start, and none for a fleet, whose tools are searched for.
    pub fn startup_patience(&self) -> Duration {
        let enabled = self
            .inner
            .servers
            .iter()
            .filter(|server| server.status() != Status::Disabled)
            .count();
        match enabled {
            1..=HANDFUL => STARTUP_PATIENCE,
            _ => Duration::ZERO,
        }
    }

    /// Ends all servers. Programs get `grace` to end by themselves and are killed then.
    pub async fn shutdown(&self, grace: Duration) {
        *self
            .inner
            .grace
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = grace;
        self.inner.stop.cancel();
        let mut tasks = std::mem::take(
            &mut *self
                .inner
                .tasks
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        while tasks.join_next().await.is_some() {}
    }

    /// Tries a server again: one that failed, after a login, or one that seems stuck.
    pub fn reconnect(&self, server: &str) -> Result<(), McpError> {
        let server = self.inner.server(server)?;
        match server.status() {
            status @ Status::Disabled => Err(McpError::Unavailable {
                server: Arc::clone(&server.name),
                status,
            }),
            Status::Connecting
            | Status::Connected { .. }
            | Status::Failed { .. }
            | Status::NeedsAuth { .. } => {
                server.retry.notify_one();
                Ok(())
            }
        }
    }

    /// The last of what a server wrote on its standard error, and of what was told about it; the
    /// server's own words, cleaned and bounded.
    pub fn log(&self, server: &str) -> Vec<String> {
        let server = self.inner.server(server);
        server.map_or_else(|_| Vec::new(), |server| server.recent.all())
    }

    /// The changed definitions of a server that wait for approval.
    pub fn withheld(&self, server: &str) -> Result<Vec<Withheld>, McpError> {
        let server = self.inner.server(server)?;
        let state = server.state.borrow();
        Ok(state
            .withheld
            .iter()
            .map(|definition| Withheld {
                spec: ToolSpec {
                    name: crate::text::line(&definition.name, 100),
                    description: definition.description.clone(),
                    input_schema: definition.schema.clone(),
                },
            })
            .collect())
    }

    /// Approves the definitions that a server has changed, and offers its tools again. Returns
    /// the server's own names of the tools.
    pub async fn approve(&self, server: &str) -> Result<Vec<String>, ApproveError> {
        Ok(self.inner.server(server)?.approve().await?)
    }

    /// Calls a tool of a server by its own name, for those who were told which one to use:
    /// hooks and the permission prompt. Waits for a server that is still connecting.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        input: Value,
        cancel: &CancellationToken,
    ) -> ToolOutput {
        let could_not_run = |problem: String| ToolOutput::new(ToolStatus::CouldNotRun, problem);
        let server = match self.inner.server(server) {
            Ok(server) => server,
            Err(error) => return could_not_run(format!("{error}.")),
        };
        let connection = tokio::select! {
            connection = server.connection() => connection,
            () = cancel.cancelled() => return crate::server::cancelled(),
        };
        if let Err(status) = connection {
            return could_not_run(format!("The MCP server {} {status}.", server.name));
        }
        let tools = Arc::clone(&server.state.borrow().tools);
        let found = tools.iter().find(|known| known.own_name() == tool);
        if found.is_none() {
            return could_not_run(format!(
                "The MCP server {} has no tool `{}` that can be used.",
                server.name,
                crate::text::line(tool, 100)
            ));
        }
        let progress = Progress::silent();
        server.call(tool, input, cancel, progress, None).await
    }

    /// The same by the full name of a tool, `mcp__SERVER__TOOL`.
    pub async fn call_named(
        &self,
        name: &str,
        input: Value,
        cancel: &CancellationToken,
    ) -> ToolOutput {
        match self.inner.await_tool(name).await {
            Some((server, tool)) => {
                self.call(&server.name, tool.own_name(), input, cancel)
                    .await
            }
            None => ToolOutput::new(
                ToolStatus::CouldNotRun,
                format!(
                    "No MCP server has a tool `{}`.",
                    crate::text::line(name, 100)
                ),
            ),
        }
    }

    /// What a server lets others read. Listed when first asked for and kept until it changes.
    pub async fn resources(&self, server: &str) -> Result<Vec<Resource>, McpError> {
        let resources = self.inner.server(server)?.resources().await?;
        Ok(resources.to_vec())
    }

    /// The address of a resource by its name, its address or its template, whose places `args`
    /// fill in their order.
    pub async fn resource_address(
        &self,
        server: &str,
        resource: &str,
        args: &[String],
    ) -> Result<ResourceUri, McpError> {
        let server = self.inner.server(server)?;
        server.resource_address(resource, args).await
    }

    pub async fn read_resource(
        &self,
        server: &str,
        address: &ResourceUri,
    ) -> Result<Vec<ToolContent>, McpError> {
        self.inner.server(server)?.read_resource(address).await
    }

    /// The prompts of all servers that are connected.
    pub async fn prompts(&self) -> Vec<Prompt> {
        let connected = self
            .inner
            .servers
            .iter()
            .filter(|server| matches!(server.status(), Status::Connected { .. }));
        let lists = futures::future::join_all(connected.map(|server| server.prompts())).await;
        lists
            .into_iter()
            .filter_map(Result::ok)
            .flat_map(|prompts| prompts.to_vec())
            .collect()
    }

    /// The prompts of one server, which is waited for.
    pub async fn prompts_of(&self, server: &str) -> Result<Vec<Prompt>, McpError> {
        Ok(self.inner.server(server)?.prompts().await?.to_vec())
    }

    /// The text of a prompt.
    pub async fn get_prompt(
        &self,
        server: &str,
        name: &str,
        args: &BTreeMap<String, String>,
    ) -> Result<String, McpError> {
        self.inner.server(server)?.get_prompt(name, args).await
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    #[error(transparent)]
    Server(#[from] McpError),
    #[error("approved for this session only: {0}")]
    Pins(#[from] PinError),
}

impl Inner {
    pub(crate) fn server(&self, name: &str) -> Result<&Arc<Server>, McpError> {
        self.servers
            .iter()
            .find(|server| &*server.name == name)
            .ok_or_else(|| McpError::UnknownServer(crate::text::line(name, 100)))
    }

    pub(crate) async fn all_settled(&self) {
        for server in &self.servers {
            server.settled().await;
        }
    }
}

/// A server and where its connections come from, if it is to be run.
fn server(
    name: &str,
    part: Option<String>,
    config: ServerConfig,
    common: &Arc<Common>,
) -> (Arc<Server>, Option<Source>) {
    let (identity, lazy, source) = match config {
        ServerConfig::Settings(settings) => {
            let is_disabled = settings.is_disabled();
            let lazy = settings.lazy;
            let source = (!is_disabled).then(|| identity(&settings));
            match source {
                Some(identity) => (identity, lazy, Some(Source::Settings(settings))),
                None => (String::new(), lazy, None),
            }
        }
        ServerConfig::InProcess(link) => {
            let identity = digest(format!("in process: {name}").as_bytes());
            (identity, None, Some(Source::Link(Some(link))))
        }
    };
    let (status, source, part) = match (part, source) {
        (_, None) => (Status::Disabled, None, String::new()),
        (Some(part), source) => (Status::Connecting, source, part),
        (None, Some(_)) => {
            let reason = "its name cannot be told from another server's; rename it".to_owned();
            (Status::Failed { reason }, None, String::new())
        }
    };
    let server = Server {
        name: Arc::from(name),
        part,
        identity,
        lazy,
        common: Arc::clone(common),
        state: watch::Sender::new(State::new(status)),
        retry: tokio::sync::Notify::new(),
        listings: Listings::default(),
        recent: Arc::default(),
    };
    (Arc::new(server), source)
}
