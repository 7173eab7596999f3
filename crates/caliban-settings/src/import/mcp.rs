//! MCP servers of Claude Code.

use serde_json::{Map, Value};

use super::gathered::Gathered;

/// Takes over an `mcpServers` object.
pub(super) fn gather(servers: &Value, gathered: &mut Gathered) {
    let Some(servers) = servers.as_object() else {
        gathered.note("`mcpServers` was not imported: it is not a table of servers");
        return;
    };
    let mut ours = Map::new();
    for (name, server) in servers {
        if let Some(server) = self::server(name, server, gathered) {
            ours.insert(name.clone(), server.into());
        }
    }
    if !ours.is_empty() {
        gathered.set("mcp_servers", ours);
    }
}

fn server(name: &str, theirs: &Value, gathered: &mut Gathered) -> Option<Map<String, Value>> {
    let mut ours = Map::new();
    let remote = theirs.get("url").is_some();
    match theirs.get("type").and_then(Value::as_str) {
        None if remote => _ = ours.insert("type".into(), "http".into()),
        None | Some("stdio") => {}
        Some("http" | "streamable-http" | "streamable_http") => {
            ours.insert("type".into(), "http".into());
        }
        Some("sse") => _ = ours.insert("type".into(), "sse".into()),
        Some(other) => {
            gathered.note(format!(
                "the MCP server `{name}` was not imported: there is no transport `{other}` here"
            ));
            return None;
        }
    }
    for (key, value) in theirs.as_object()? {
        match key.as_str() {
            "type" => {}
            "command" | "args" | "env" | "cwd" | "url" | "headers" | "disabled" => {
                ours.insert(key.clone(), value.clone());
            }
            other => gathered.note(format!(
                "`{other}` of the MCP server `{name}` was not imported: no counterpart here"
            )),
        }
    }
    Some(ours)
}
