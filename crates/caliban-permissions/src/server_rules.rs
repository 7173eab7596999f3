//! The rules that are written with an MCP server.

use caliban_settings::{LoadedSettings, RuleAction, RuleSpec, mcp_names};

use crate::origin::Origin;
use crate::rule::{Rule, RuleError};

/// The rules of MCP servers about their own tools: what is denied, then asked about, then allowed.
pub(crate) fn server_rules(settings: &LoadedSettings) -> Result<Vec<Rule>, RuleError> {
    let servers = &settings.settings.mcp_servers;
    let parts = mcp_names::server_parts(servers.keys().map(String::as_str));
    let mut rules = Vec::new();
    for (name, server) in servers {
        let Some(prefix) = parts.get(name).map(|part| mcp_names::prefix(part)) else {
            continue;
        };
        let permissions = &server.permissions;
        let lists = [
            (&permissions.deny, RuleAction::Deny),
            (&permissions.ask, RuleAction::Ask),
            (&permissions.allow, RuleAction::Allow),
        ];
        for (patterns, action) in lists {
            let key = format!("mcp_servers.{name}.permissions.{action}");
            for pattern in patterns {
                let spec = RuleSpec::new(format!("{prefix}{pattern}"), action);
                let rule = Rule::new(spec, Origin::Server)?;
                rules.push(Rule {
                    written: Some(match settings.file_of(&key) {
                        Some(file) => format!("`{key}` in `{}`", file.display()),
                        None => format!("`{key}`"),
                    }),
                    ..rule
                });
            }
        }
    }
    Ok(rules)
}
