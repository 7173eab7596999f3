//! `caliban mcp approve`: the operator's word for what a server offers now.

use std::time::Duration;

use caliban_harness::{Configuration, NoticeSink, server_parts};
use caliban_mcp::{ServerConfig, Servers, Status};

use crate::console::Console;
use crate::exit::Failure;

/// How long a server may take to end again.
const GRACE: Duration = Duration::from_secs(1);

/// Asks a server what it offers, and approves what it has changed since it was seen first.
pub(super) async fn approve(
    configuration: &Configuration,
    name: &str,
    console: &mut Console,
) -> Result<(), Failure> {
    let server = super::server(configuration, name)?;
    let configured = [(name.to_owned(), server.clone())];
    let parts = server_parts(&configured, configuration, &NoticeSink::default(), None);
    let patience = parts.timeouts.connect;
    let [(name, server)] = configured;
    let servers = Servers::start([(name.clone(), ServerConfig::from(server))], parts);
    servers.settle(patience).await;
    let result = approve_all(&servers, &name, console).await;
    servers.shutdown(GRACE).await;
    result
}

async fn approve_all(servers: &Servers, name: &str, console: &mut Console) -> Result<(), Failure> {
    for server in servers.status() {
        if !matches!(server.status, Status::Connected { .. }) {
            return Err(Failure::Runtime(format!(
                "the MCP server {name} {}",
                server.status
            )));
        }
    }
    let approved = servers
        .approve(name)
        .await
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    if approved.is_empty() {
        return console.write(&format!("nothing of `{name}` waits for approval\n"));
    }
    for tool in approved {
        console.write(&format!("approved `{tool}` of `{name}` as it is now\n"))?;
    }
    Ok(())
}
