//! `caliban mcp`: the MCP servers that are configured, and the logins to them.

mod approval;
pub(crate) mod browser;
mod change;
mod login;
mod show;
mod status;

use caliban_harness::plugins::PluginSet;
use caliban_harness::{Configuration, RunOptions, server_variables};
use caliban_mcp::oauth::{OauthServer, ServerError};
use caliban_model::CancellationToken;
use caliban_settings::{McpServer, Scope};

use crate::args::{McpArgs, McpCommand};
use crate::console::{Console, note};
use crate::exit::Failure;

pub(crate) use login::log_in;

pub(crate) async fn run(
    command: &McpCommand,
    args: &McpArgs,
    options: &RunOptions,
    configuration: &Configuration,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    for warning in configuration.warnings() {
        note(&format!("warning: {warning}"));
    }
    let with_plugins;
    let configuration = match command {
        // What is written down concerns the settings alone.
        McpCommand::Add(_) | McpCommand::AddJson { .. } | McpCommand::Remove { .. } => {
            configuration
        }
        McpCommand::List { .. }
        | McpCommand::Get { .. }
        | McpCommand::Login { .. }
        | McpCommand::Logout { .. }
        | McpCommand::Status { .. }
        | McpCommand::Approve { .. } => {
            with_plugins = beside_plugins(options, configuration);
            &with_plugins
        }
    };
    match command {
        McpCommand::List { json } => show::list(configuration, *json, console),
        McpCommand::Get { name } => show::get(configuration, name, console),
        McpCommand::Add(args) => change::add(configuration, args, console),
        McpCommand::AddJson { name, json, target } => {
            change::add_json(configuration, name, json, target, console)
        }
        McpCommand::Remove { name, scope } => {
            change::remove(configuration, name, *scope, console).await
        }
        McpCommand::Login { name, no_browser } => {
            let opening = if *no_browser {
                browser::Opening::Left
            } else {
                browser::Opening::Wanted
            };
            login::login(configuration, name, args, opening, cancel, console).await
        }
        McpCommand::Logout { name } => login::logout(configuration, name, console).await,
        McpCommand::Status { json } => status::print(configuration, *json, console).await,
        McpCommand::Approve { name } => approval::approve(configuration, name, console).await,
    }
}

/// The same with the servers of plugins, under the names that sessions have them by.
fn beside_plugins(options: &RunOptions, configuration: &Configuration) -> Configuration {
    let mut configuration = configuration.clone();
    let (servers, left) = PluginSet::of_run(options, &configuration).servers(&configuration);
    for reason in left {
        note(&format!("warning: {reason}"));
    }
    let known = &mut configuration.loaded.settings.mcp_servers;
    for (name, server) in servers {
        known.entry(name).or_insert(server);
    }
    configuration
}

/// A server that is configured.
fn server<'a>(configuration: &'a Configuration, name: &str) -> Result<&'a McpServer, Failure> {
    let servers = &configuration.settings().mcp_servers;
    servers.get(name).ok_or_else(|| {
        Failure::Config(format!(
            "there is no MCP server `{name}`; `caliban mcp list` shows those there are"
        ))
    })
}

/// The highest scope that says something about a server; nothing for one of a plugin.
fn scope(configuration: &Configuration, name: &str) -> Option<Scope> {
    let mut layers = configuration.loaded.layers().iter().rev();
    layers
        .find(|layer| layer.settings.mcp_servers.contains_key(name))
        .map(|layer| layer.scope)
}

/// What a server needs for OAuth; nothing where it does without.
fn oauth_server(
    configuration: &Configuration,
    name: &str,
    server: &McpServer,
) -> Result<Option<OauthServer>, ServerError> {
    OauthServer::from_settings(name, server, &server_variables(configuration))
}
