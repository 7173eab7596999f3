//! `caliban mcp login` and `caliban mcp logout`.

use std::collections::BTreeMap;
use std::time::Duration;

use caliban_harness::{Configuration, logins};
use caliban_mcp::oauth::Oauth;
use caliban_model::CancellationToken;
use caliban_settings::variables::names;
use url::Url;

use super::browser::{Opened, Opening, open};
use crate::args::McpArgs;
use crate::console::{Console, note};
use crate::exit::Failure;

/// How long a person may take to consent.
const PATIENCE: Duration = Duration::from_mins(5);

/// Logs in to a server from within a session. The address to open is told while it waits.
pub(crate) async fn log_in(
    configuration: &Configuration,
    name: &str,
    told: impl FnOnce(&Url) + Send,
) -> Result<(), String> {
    let oauth = one(configuration, name).map_err(|failure| failure.to_string())?;
    let port = configuration.environment();
    let port = port.number(names::CALIBAN_MCP_OAUTH_PORT);
    let port = port.map_err(|error| error.to_string())?.unwrap_or(0);
    let login = oauth.begin_login(name, port).await;
    let login = login.map_err(|error| error.to_string())?;
    told(login.url());
    let _ = open(login.url(), Opening::Wanted, configuration);
    let done = login.finish(PATIENCE).await;
    done.map(|_| ()).map_err(|error| error.to_string())
}

pub(super) async fn login(
    configuration: &Configuration,
    name: &str,
    args: &McpArgs,
    opening: Opening,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let oauth = one(configuration, name)?;
    let environment = configuration.environment();
    let port = match args.mcp_oauth_port {
        Some(port) => port,
        None => environment
            .number(names::CALIBAN_MCP_OAUTH_PORT)?
            .unwrap_or(0),
    };
    let interrupted = || Failure::Runtime("the login was interrupted".to_owned());
    let login = tokio::select! {
        () = cancel.cancelled() => return Err(interrupted()),
        login = oauth.begin_login(name, port) => login?,
    };
    console.write(&format!(
        "Open this address to log in to `{name}`:\n\n{}\n\n",
        login.url()
    ))?;
    match open(login.url(), opening, configuration) {
        Opened::Asked => note("a browser should show it; waiting for the answer"),
        Opened::Nothing => note("waiting for the answer"),
    }
    let outcome = tokio::select! {
        () = cancel.cancelled() => return Err(interrupted()),
        outcome = login.finish(PATIENCE) => outcome?,
    };
    let scopes = match outcome.scopes.as_slice() {
        [] => String::new(),
        scopes => format!(" with the scopes {}", scopes.join(", ")),
    };
    console.write(&format!("logged in to `{name}`{scopes}\n"))
}

pub(super) async fn logout(
    configuration: &Configuration,
    name: &str,
    console: &mut Console,
) -> Result<(), Failure> {
    let message = if one(configuration, name)?.logout(name).await? {
        format!("logged out of `{name}`\n")
    } else {
        format!("nobody was logged in to `{name}`\n")
    };
    console.write(&message)
}

/// The login to a server that must have one.
fn one(configuration: &Configuration, name: &str) -> Result<Oauth, Failure> {
    let server = super::server(configuration, name)?;
    let Some(server) = super::oauth_server(configuration, name, server)? else {
        return Err(Failure::Config(format!(
            "the MCP server `{name}` is configured without OAuth; set `oauth = \"auto\"` in `[mcp_servers.{name}]`"
        )));
    };
    let servers = BTreeMap::from([(name.to_owned(), server)]);
    Ok(logins(configuration, servers))
}
