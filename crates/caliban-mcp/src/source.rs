//! Servers as a source of tools: which of them the model is offered, and which it has to search
//! for first.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use caliban_agent::{Tool, ToolSource, TypedTool};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::results::BYTES_PER_TOKEN;
use crate::search::ToolSearch;
use crate::server::Server;
use crate::servers::{Inner, Servers};
use crate::status::Status;
use crate::tool::McpTool;

/// Names of connecting servers that are told to the model.
const MAX_NAMED: usize = 20;

/// All tools of a moment.
pub(crate) struct Offer {
    /// The model sees these.
    pub(crate) offered: Vec<Arc<McpTool>>,
    /// These it has to search for.
    pub(crate) deferred: Vec<Arc<McpTool>>,
    pub(crate) connecting: Vec<Arc<str>>,
}

impl Inner {
    pub(crate) fn offer(&self) -> Offer {
        let mut all: Vec<(&Arc<Server>, Arc<McpTool>)> = Vec::new();
        let mut connecting = Vec::new();
        for server in &self.servers {
            let state = server.state.borrow();
            if state.status == Status::Connecting {
                connecting.push(Arc::clone(&server.name));
            }
            let is_there = matches!(state.status, Status::Connecting | Status::Connected { .. });
            if is_there {
                all.extend(state.tools.iter().map(|tool| (server, Arc::clone(tool))));
            }
        }
        let laziness = self.common.parts.laziness;
        let bytes: usize = all.iter().map(|(_, tool)| tool.bytes()).sum();
        let is_lazy = laziness
            .lazy
            .unwrap_or(bytes / BYTES_PER_TOKEN > laziness.budget_tokens);
        let active = self
            .common
            .active
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (offered, deferred): (Vec<_>, Vec<_>) = all.into_iter().partition(|(server, tool)| {
            !server.lazy.unwrap_or(is_lazy) || active.contains(&tool.spec().name)
        });
        let tools = |tools: Vec<(&Arc<Server>, Arc<McpTool>)>| {
            tools.into_iter().map(|(_, tool)| tool).collect()
        };
        Offer {
            offered: tools(offered),
            deferred: tools(deferred),
            connecting,
        }
    }

    fn known(&self, name: &str) -> Option<(&Arc<Server>, Arc<McpTool>)> {
        self.servers.iter().find_map(|server| {
            let state = server.state.borrow();
            let found = state.tools.iter().find(|tool| tool.spec().name == name)?;
            Some((server, Arc::clone(found)))
        })
    }

    /// A tool by its full name; a server that is still connecting is waited for.
    pub(crate) async fn await_tool(&self, name: &str) -> Option<(&Arc<Server>, Arc<McpTool>)> {
        if self.known(name).is_none() {
            // Two servers never share a beginning of names.
            let is_named =
                |server: &Server| !server.part.is_empty() && name.starts_with(&server.prefix());
            let server = self.servers.iter().find(|server| is_named(server))?;
            // What is not ready by then will not be in time for this call.
            let patience = self.common.parts.timeouts.connect;
            tokio::time::timeout(patience, server.settled())
                .await
                .ok()?;
        }
        self.known(name)
    }
}

impl Servers {
    /// What to tell the model about tools it does not see: how many there are and how to get
    /// them. Nothing where it sees all.
    pub fn notice(&self) -> Option<String> {
        let Offer {
            deferred,
            connecting,
            ..
        } = self.inner.offer();
        let mut parts = Vec::new();
        if !deferred.is_empty() {
            parts.push(format!(
                "{} more tools of MCP servers are not listed. Before you conclude that \
                 something cannot be done, look for a tool with `{}`; what it finds can be \
                 called at once.",
                deferred.len(),
                ToolSearch::NAME
            ));
        }
        if !connecting.is_empty() {
            let more = connecting.len().saturating_sub(MAX_NAMED);
            let mut names: Vec<String> = connecting
                .iter()
                .take(MAX_NAMED)
                .map(|name| crate::text::line(name, 40))
                .collect();
            if more > 0 {
                names.push(format!("{more} more"));
            }
            parts.push(format!(
                "These MCP servers are still connecting: {}. `{}` waits for them.",
                names.join(", "),
                ToolSearch::NAME
            ));
        }
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// The tools that were searched for or used and stay offered, the latest used last, and how
    /// many there may be.
    pub fn active(&self) -> (Vec<String>, usize) {
        let active = self
            .inner
            .common
            .active
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (active.names().map(str::to_owned).collect(), active.most())
    }
}

impl ToolSource for Servers {
    fn generation(&self) -> u64 {
        *self.inner.common.generation.borrow()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let Offer {
            offered,
            deferred,
            connecting,
        } = self.inner.offer();
        let mut tools: Vec<Arc<dyn Tool>> = offered
            .into_iter()
            .map(|tool| tool as Arc<dyn Tool>)
            .collect();
        if !deferred.is_empty() || !connecting.is_empty() {
            tools.push(ToolSearch::new(&self.inner).boxed());
        }
        let mut names = HashSet::new();
        tools.retain(|tool| names.insert(tool.spec().name.clone()));
        tools
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        async move {
            if name == ToolSearch::NAME {
                return Some(ToolSearch::new(&self.inner).boxed());
            }
            let (_, tool) = self.inner.await_tool(name).await?;
            Some(tool as Arc<dyn Tool>)
        }
        .boxed()
    }
}
