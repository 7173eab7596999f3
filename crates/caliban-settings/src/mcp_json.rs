//! MCP servers as other programs write them: `.mcp.json` of a workspace, and the same shape on
//! the command line.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::document::{Content, Entry, Format, Node, Origin, Table, parse, typed};
use crate::error::SettingsError;
use crate::legacy::Use;
use crate::scope::Scope;
use crate::types::McpServer;

/// The table of servers in that shape.
const SERVERS: &str = "mcpServers";
const OURS: &str = "mcp_servers";
/// The transport of servers that live in the program that embeds us.
const HOSTED: &str = "sdk";

/// Servers given on the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpConfig {
    pub servers: BTreeMap<String, McpServer>,
    /// Names of servers that the embedding program hosts itself.
    pub hosted: Vec<String>,
}

impl McpConfig {
    /// Reads a JSON object, or a file with one. Later servers of a name replace earlier ones.
    pub fn read(&mut self, given: &str) -> Result<(), SettingsError> {
        let (origin, text) = if given.trim_start().starts_with('{') {
            (Origin::Overlay, given.to_owned())
        } else {
            let path = Path::new(given);
            let text =
                crate::source::read_file(path)?.ok_or_else(|| SettingsError::Unreadable {
                    path: path.to_owned(),
                    reason: "there is no such file".to_owned(),
                })?;
            (Origin::File(path.to_owned()), text)
        };
        for entry in servers(Scope::Cli, origin, text)? {
            let transport = entry.node.at(&["type"]).map(Node::to_value);
            if transport == Some(Value::from(HOSTED)) {
                self.hosted.push(entry.key);
            } else {
                let server = typed(&entry.node)?;
                self.servers.insert(entry.key, server);
            }
        }
        Ok(())
    }
}

/// Adds the servers of a workspace's `.mcp.json` to its settings, which have precedence.
pub(crate) fn add_workspace_servers(
    root: &mut Option<Node>,
    path: &Path,
    text: String,
) -> Result<Use, SettingsError> {
    let origin = Origin::File(path.to_owned());
    let mut used = Use::Ignored;
    for entry in servers(Scope::Project, origin, text)? {
        let place = entry.node.place.clone();
        let empty = || Node {
            content: Content::Table(Table::default()),
            place: place.clone(),
        };
        let Some(settings) = root.get_or_insert_with(empty).as_table_mut() else {
            continue;
        };
        if settings.get(OURS).is_none() {
            settings.set(Entry {
                key: OURS.to_owned(),
                key_place: place.clone(),
                node: empty(),
            });
        }
        let Some(known) = settings.get_mut(OURS).and_then(Node::as_table_mut) else {
            continue;
        };
        if known.get(&entry.key).is_none() {
            known.set(entry);
            used = Use::Loaded;
        }
    }
    Ok(used)
}

/// The servers of a document. Where an address says what the transport is, it need not be named.
fn servers(scope: Scope, origin: Origin, text: String) -> Result<Vec<Entry>, SettingsError> {
    let Content::Table(mut document) = parse(scope, origin, text, Format::Json)?.content else {
        return Ok(Vec::new());
    };
    let Some(Content::Table(servers)) = document.remove(SERVERS).map(|entry| entry.node.content)
    else {
        return Ok(Vec::new());
    };
    Ok(servers.into_iter().map(with_transport).collect())
}

fn with_transport(mut entry: Entry) -> Entry {
    let place = entry.node.place.clone();
    if let Some(server) = entry.node.as_table_mut()
        && server.get("url").is_some()
        && server.get("type").is_none()
        && server.get("transport").is_none()
    {
        server.set(Entry {
            key: "type".to_owned(),
            key_place: place.clone(),
            node: Node {
                content: Content::String("http".to_owned()),
                place,
            },
        });
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::McpTransport;

    #[test]
    fn servers_of_the_command_line_are_read() {
        let mut config = McpConfig::default();
        config
            .read(r#"{"mcpServers": {"a": {"command": "x"}, "calc": {"type": "sdk", "name": "calc"}}}"#)
            .unwrap();
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("mcp.json");
        std::fs::write(&path, r#"{"mcpServers": {"b": {"url": "http://h/mcp"}}}"#).unwrap();
        config.read(path.to_str().unwrap()).unwrap();
        assert_eq!(config.hosted, ["calc"]);
        assert_eq!(config.servers["a"].command, "x");
        assert_eq!(config.servers["b"].transport(), McpTransport::Http);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let mut config = McpConfig::default();
        let wrong = [
            r#"{"mcpServers": {"a": {"args": 1}}}"#,
            "{",
            "/nowhere/at/all.json",
        ];
        for given in wrong {
            assert!(config.read(given).is_err(), "{given}");
        }
        assert_eq!(config, McpConfig::default());
    }
}
