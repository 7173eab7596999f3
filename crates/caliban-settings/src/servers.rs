//! MCP servers once all scopes are merged: each needs what its transport needs.

use crate::document::{Entry, Node, Step, dotted, typed};
use crate::error::{Fault, SettingsError};
use crate::trust::{Ignored, IgnoredBecause};
use crate::types::{McpServer, McpTransport};

/// Checks every server. One of which trust or a lock has left only a part is taken out.
pub(crate) fn check_servers(merged: &mut Node, ignored: &[Ignored]) -> Result<(), SettingsError> {
    let servers = merged
        .as_table_mut()
        .and_then(|table| table.get_mut("mcp_servers"))
        .and_then(Node::as_table_mut);
    let Some(servers) = servers else {
        return Ok(());
    };
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
            Some(problem) => {
                let fault = Fault::at(&entry.key_place, problem).about(&path);
                return Err(SettingsError::Value(Box::new(fault)));
            }
        }
    }
    *servers = kept.into_iter().collect();
    Ok(())
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
