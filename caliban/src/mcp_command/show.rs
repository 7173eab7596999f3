//! `caliban mcp list` and `caliban mcp get`.

use std::fmt::Write as _;

use caliban_harness::Configuration;
use caliban_settings::{McpServer, McpTransport, Scope};
use serde_json::{Value, json};

use crate::console::Console;
use crate::exit::Failure;
use crate::masking::{masked, masked_url};

/// Stands where others have a scope.
const PLUGIN: &str = "plugin";

pub(super) fn list(
    configuration: &Configuration,
    json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let servers = &configuration.settings().mcp_servers;
    if json {
        let rows: Vec<Value> = servers
            .iter()
            .map(|(name, server)| row(configuration, name, server))
            .collect();
        return console.write(&pretty(&json!(rows))?);
    }
    if servers.is_empty() {
        return console.write("no MCP servers; `caliban mcp add` adds one\n");
    }
    let width = servers.keys().map(String::len).max().unwrap_or_default();
    let mut text = String::new();
    for (name, server) in servers {
        let scope = super::scope(configuration, name).map_or(PLUGIN, Scope::as_str);
        let disabled = if server.is_disabled() {
            "  (disabled)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{name:width$}  {scope:7}  {:5}  {}{disabled}",
            transport(server),
            target(server)
        );
    }
    console.write(&text)
}

pub(super) fn get(
    configuration: &Configuration,
    name: &str,
    console: &mut Console,
) -> Result<(), Failure> {
    let server = super::server(configuration, name)?;
    console.write(&pretty(&row(configuration, name, server))?)
}

fn row(configuration: &Configuration, name: &str, server: &McpServer) -> Value {
    let mut row = json!({
        "name": name,
        "scope": super::scope(configuration, name).map_or(PLUGIN, Scope::as_str),
        "type": transport(server),
    });
    if let (Some(row), Some(fields)) = (row.as_object_mut(), masked(server).as_object()) {
        for (key, value) in fields {
            row.insert(key.clone(), value.clone());
        }
    }
    row
}

pub(super) fn transport(server: &McpServer) -> &'static str {
    match server.transport() {
        McpTransport::Stdio => "stdio",
        McpTransport::Http => "http",
        McpTransport::Sse => "sse",
    }
}

/// The program with its arguments, or the address.
fn target(server: &McpServer) -> String {
    let program = || {
        let words = std::iter::once(&server.command).chain(&server.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    server.url.as_deref().map_or_else(program, masked_url)
}

pub(super) fn pretty(value: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Failure::Runtime(error.to_string()))
}
