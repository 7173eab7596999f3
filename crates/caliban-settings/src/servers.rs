//! MCP servers once all scopes are merged: each needs what its transport needs.

use crate::document::{Content, Entry, Node, Origin, Step, Table, dotted, typed};
use crate::error::{Fault, SettingsError};
use crate::policy::Trust;
use crate::scope::Scope;
use crate::trust::{Ignored, IgnoredBecause};
use crate::types::{McpServer, McpTransport};

/// What decides which program runs or which server is reached.
const REACHES: [&str; 5] = ["command", "args", "cwd", "url", "type"];
/// What may hold secrets of whoever wrote it.
const CONFIDES: [&str; 3] = ["env", "headers", "oauth"];

/// Takes from what is below `over` the servers that it describes anew in a `mcp.toml`: there a
/// server stands as a whole. Only what counts can replace something.
pub(crate) fn replace_whole(merged: &mut Node, over: &Node, trust: Trust) {
    let Some(described) = over.at(&["mcp_servers"]).and_then(Node::as_table) else {
        return;
    };
    let Some(servers) = servers_of(merged) else {
        return;
    };
    for entry in described.iter() {
        let place = &entry.node.place;
        let is_whole = match &place.text.origin {
            Origin::File(path) => path.file_name().is_some_and(|name| name == "mcp.toml"),
            Origin::Overlay => false,
        };
        if is_whole && place.scope().is_workspace() && trust == Trust::Trusted {
            servers.remove(&entry.key);
        }
    }
}

/// Keeps what the user or the operator confides to a server from one that the workspace has put
/// in its place: whoever wrote the program or the address would get it.
pub(crate) fn keep_confidences(merged: &mut Node) -> Vec<String> {
    let mut warnings = Vec::new();
    for entry in servers_of(merged).into_iter().flat_map(Table::iter_mut) {
        let Some(server) = entry.node.as_table_mut() else {
            continue;
        };
        let is_own = |scope: Scope| matches!(scope, Scope::User | Scope::Managed);
        let author = REACHES
            .iter()
            .filter_map(|key| server.get(key))
            .map(|node| node.place.scope())
            .find(|scope| scope.is_workspace());
        let Some(author) = author else {
            continue;
        };
        let mut kept_back = Vec::new();
        for key in CONFIDES {
            let Some(node) = server.get_mut(key) else {
                continue;
            };
            let is_kept_back = match &mut node.content {
                Content::Table(values) => {
                    let before = values.iter().count();
                    *values = std::mem::take(values)
                        .into_iter()
                        .filter(|value| !is_own(value.node.place.scope()))
                        .collect();
                    values.iter().count() < before
                }
                Content::Null
                | Content::Bool(_)
                | Content::Number(_)
                | Content::String(_)
                | Content::List(_) => is_own(node.place.scope()) && server.remove(key).is_some(),
            };
            if is_kept_back {
                kept_back.push(format!("`{key}`"));
            }
        }
        if !kept_back.is_empty() {
            let path = [
                Step::Key("mcp_servers".to_owned()),
                Step::Key(entry.key.clone()),
            ];
            warnings.push(format!(
                "`{}`: {} of your own settings is not passed on, because the {author} scope says what is started or reached",
                dotted(&path),
                kept_back.join(" and "),
            ));
        }
    }
    warnings
}

fn servers_of(merged: &mut Node) -> Option<&mut Table> {
    merged
        .as_table_mut()
        .and_then(|table| table.get_mut("mcp_servers"))
        .and_then(Node::as_table_mut)
}

/// Checks every server. One of which trust or a lock has left only a part is taken out, and so is
/// what a workspace adds to a server that is not there; the answer says so.
pub(crate) fn check_servers(
    merged: &mut Node,
    ignored: &[Ignored],
) -> Result<Vec<String>, SettingsError> {
    let Some(servers) = servers_of(merged) else {
        return Ok(Vec::new());
    };
    let mut warnings = Vec::new();
    let mut kept = Vec::new();
    for entry in std::mem::take(servers) {
        let path = [
            Step::Key("mcp_servers".to_owned()),
            Step::Key(entry.key.clone()),
        ];
        let key = dotted(&path);
        let is_partial = ignored.iter().any(|ignored| {
            let is_member = ignored
                .key
                .strip_prefix(&key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            is_member && ignored.because != IgnoredBecause::Scope
        });
        match problem(&entry)? {
            None => kept.push(entry),
            Some(_) if is_partial => {}
            Some(_) if is_addition(&entry) => warnings.push(format!(
                "`{key}` of the {} scope adds to a server that no other scope has; it is left out",
                entry.key_place.scope()
            )),
            Some(problem) => {
                let fault = Fault::at(&entry.key_place, problem).about(&path);
                return Err(SettingsError::Value(Box::new(fault)));
            }
        }
    }
    *servers = kept.into_iter().collect();
    Ok(warnings)
}

/// Whether a workspace says something about a server, but not what it is.
fn is_addition(entry: &Entry) -> bool {
    let says = |key: &&str| entry.node.at(&[key]).is_some();
    entry.key_place.scope().is_workspace() && !REACHES.iter().any(says)
}

fn problem(entry: &Entry) -> Result<Option<String>, SettingsError> {
    let server: McpServer = typed(&entry.node)?;
    if server.is_disabled() {
        return Ok(None);
    }
    Ok(match (server.transport(), server.url.as_deref()) {
        (McpTransport::Stdio, None) if server.command.is_empty() => {
            Some("needs a `command`".to_owned())
        }
        (McpTransport::Stdio, None) => None,
        (McpTransport::Stdio, Some(_)) => {
            Some("has a `url`; add `type = \"http\"` or `type = \"sse\"`".to_owned())
        }
        (McpTransport::Http | McpTransport::Sse, None) => Some("needs a `url`".to_owned()),
        (McpTransport::Http | McpTransport::Sse, Some(url)) => {
            // A variable may stand for any part of it; whoever expands it looks again.
            let is_web = ["http://", "https://", "${"]
                .iter()
                .any(|start| url.starts_with(start));
            (!is_web).then(|| format!("has a `url` that is neither http nor https: `{url}`"))
        }
    })
}
