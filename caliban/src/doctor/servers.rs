//! Checks of the MCP servers: one row each. They are connected to only where that is asked for,
//! and where the workspace has no part in them.

use std::time::Duration;

use caliban_harness::options::ToolOptions;
use caliban_harness::{
    Configuration, HostQuestions, NoticeSink, confiner, server_parts, start_sandbox,
};
use caliban_mcp::{ServerConfig, ServerStatus, Servers, Status};
use caliban_settings::McpServer;

use super::providers::Depth;
use super::report::Row;

/// How long a server may take to be ready.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long it may take to end again.
const GRACE: Duration = Duration::from_secs(1);

/// One row for each server that is configured; all are connected to at the same time.
pub(super) async fn rows(configuration: &Configuration, depth: Depth) -> Vec<Row> {
    let servers = &configuration.settings().mcp_servers;
    if servers.is_empty() {
        return vec![Row::pass("mcp", "no servers are configured")];
    }
    let mut rows = Vec::new();
    let mut wanted = Vec::new();
    for (name, server) in servers {
        match reason_to_skip(configuration, name, server, depth) {
            Some(reason) => rows.push((name.clone(), Row::skip(title(name), reason))),
            None => wanted.push((name.clone(), server.clone())),
        }
    }
    let connected = connect(wanted, configuration).await;
    rows.extend(
        connected
            .iter()
            .map(|status| (status.name.to_string(), row(status))),
    );
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Why a server is not connected to.
fn reason_to_skip(
    configuration: &Configuration,
    name: &str,
    server: &McpServer,
    depth: Depth,
) -> Option<&'static str> {
    let mut layers = configuration.loaded.layers().iter();
    let is_workspaces = layers
        .any(|layer| layer.scope.is_workspace() && layer.settings.mcp_servers.contains_key(name));
    if server.disabled == Some(true) {
        Some("disabled in the settings")
    } else if depth == Depth::Shallow {
        Some("configured (not connected; use --deep)")
    } else if is_workspaces {
        Some("not connected: it is the workspace's own; `caliban mcp status` connects to it")
    } else {
        None
    }
}

async fn connect(
    wanted: Vec<(String, McpServer)>,
    configuration: &Configuration,
) -> Vec<ServerStatus> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut parts = server_parts(&wanted, configuration, &NoticeSink::default(), None);
    // Where there is none, a server that asks for it fails and says why.
    let hosts = HostQuestions::unattended();
    let sandbox = start_sandbox(&ToolOptions::default(), configuration, &hosts).await;
    parts.confiner = confiner(sandbox.ok().flatten().as_ref(), &NoticeSink::default());
    let configs = wanted.into_iter();
    let servers = Servers::start(
        configs.map(|(name, server)| (name, ServerConfig::from(server))),
        parts,
    );
    servers.settle(DEADLINE).await;
    let statuses = servers.status();
    servers.shutdown(GRACE).await;
    statuses
}

fn row(server: &ServerStatus) -> Row {
    let name = title(&server.name);
    let message = server.status.to_string();
    match &server.status {
        Status::Connected { .. } => {
            let withheld = server.withheld.iter().map(|tool| {
                let name = &server.name;
                format!("`{tool}` has changed and is withheld; run `caliban mcp approve {name}`")
            });
            Row::pass(name, message).warned(withheld)
        }
        Status::NeedsAuth { .. } | Status::Connecting => Row::warn(name, message),
        Status::Failed { .. } => Row::fail(name, message),
        Status::Disabled => Row::skip(name, message),
    }
}

fn title(name: &str) -> String {
    format!("mcp:{name}")
}
