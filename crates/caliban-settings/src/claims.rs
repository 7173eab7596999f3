//! What settings claim that somebody sends who has no say over this machine, such as a client of a
//! server: judged by the table that says what an untrusted workspace may not.

use serde_json::{Map, Value};

use crate::document::{
    Content, Format, Node, Origin, Table, canonicalise, check_names, parse, typed,
};
use crate::error::SettingsError;
use crate::policy::Trust;
use crate::scope::Scope;
use crate::trust::apply_gate;
use crate::types::{PermissionMode, Settings};

/// What is beyond whoever sends settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// Keys that run, send or loosen something.
    pub keys: Vec<String>,
    /// Further directories, which whoever receives them judges by his own.
    pub directories: Vec<String>,
}

/// Reads settings of a stranger. Handlers of hooks that only call a URL claim nothing: they are
/// told and asked, and what they may call is judged by the lists of this machine. `mode` is the
/// loosest permission mode that is his to choose.
pub fn claims(
    settings: &Map<String, Value>,
    mode: PermissionMode,
) -> Result<Claims, SettingsError> {
    let text = Value::Object(settings.clone()).to_string();
    let mut root = parse(Scope::Cli, Origin::Overlay, text, Format::Json)?;
    canonicalise(&mut root)?;
    check_names(&root)?;
    let _: Settings = typed(&root)?;
    let mut claims = Claims::default();
    if let Some(table) = root.as_table_mut() {
        claims.keys = take_hooks(table);
        claims.directories = take_directories(table);
    }
    let left_out = apply_gate(&mut root, Scope::Project, Trust::Untrusted, Some(mode));
    let keys = left_out.into_iter().map(|ignored| ignored.key);
    claims.keys.extend(keys);
    Ok(claims)
}

/// Takes the hooks out and names the events whose handlers do more than call a URL.
fn take_hooks(table: &mut Table) -> Vec<String> {
    // What is no table is not understood, and left to the gate.
    let Some(Value::Object(hooks)) = table.get("hooks").map(Node::to_value) else {
        return Vec::new();
    };
    table.remove("hooks");
    hooks
        .iter()
        .filter(|(_, entries)| !only_call_urls(entries))
        .map(|(event, _)| format!("hooks.{event}"))
        .collect()
}

/// Whether every handler of an event is one that calls a URL.
fn only_call_urls(entries: &Value) -> bool {
    let is_call = |handler: &Value| handler["type"] == "http";
    let all = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(is_call));
    entries.as_array().is_some_and(|entries| {
        entries.iter().all(|entry| {
            let lists: Vec<&Value> = ["handlers", "hooks"]
                .iter()
                .filter_map(|key| entry.get(key))
                .collect();
            match lists.as_slice() {
                [] => is_call(entry),
                lists => lists.iter().all(|list| all(list)),
            }
        })
    })
}

/// Takes the further directories out, where they are texts.
fn take_directories(table: &mut Table) -> Vec<String> {
    let Some(Content::List(nodes)) = table
        .get("additional_directories")
        .map(|node| &node.content)
    else {
        return Vec::new();
    };
    let text = |node: &Node| match &node.content {
        Content::String(text) => Some(text.clone()),
        _ => None,
    };
    let Some(directories) = nodes.iter().map(text).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    table.remove("additional_directories");
    directories
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn claimed(settings: &Value) -> Vec<String> {
        let settings = settings.as_object().unwrap();
        claims(settings, PermissionMode::DontAsk).unwrap().keys
    }

    #[rstest]
    #[case::command(json!({"hooks": {"Stop": [{"type": "command", "command": "x"}]}}), "hooks.Stop")]
    #[case::one_of_two(
        json!({"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://127.0.0.1:1"}, {"type": "agent", "prompt": "x"}]}]}}),
        "hooks.Stop"
    )]
    #[case::both_lists(
        json!({"hooks": {"Stop": [{"handlers": [], "hooks": [{"type": "command", "command": "x"}]}]}}),
        "hooks.Stop"
    )]
    #[case::server(json!({"mcpServers": {"s": {"command": "x"}}}), "mcp_servers.s.command")]
    #[case::helper(json!({"apiKeyHelper": "x"}), "api_key_helper")]
    #[case::helper_by_its_own_name(json!({"api_key_helper": "x"}), "api_key_helper")]
    #[case::variables(json!({"env": {"ANTHROPIC_BASE_URL": "http://x"}}), "env")]
    #[case::status(json!({"status_line": {"command": "x"}}), "statusLine")]
    #[case::routes(json!({"router": {"providers": {}}}), "router")]
    #[case::rule(json!({"permissions": {"allow": ["Bash"]}}), "permissions.allow")]
    #[case::bypass(
        json!({"permissions": {"defaultMode": "bypassPermissions"}}),
        "permissions.default_mode"
    )]
    #[case::sandbox(json!({"sandbox": {"enabled": false}}), "sandbox.enabled")]
    fn what_runs_or_loosens_is_claimed(#[case] settings: Value, #[case] key: &str) {
        assert_eq!(claimed(&settings), [key]);
    }

    #[test]
    fn what_tightens_and_what_only_calls_is_not() {
        let free = json!({
            "model": "m",
            "hooks": {"PreToolUse": [
                {"type": "http", "url": "http://127.0.0.1:1"},
                {"matcher": "Bash", "hooks": [{"type": "http", "url": "http://127.0.0.1:1"}]},
            ]},
            "permissions": {"deny": ["Bash"], "defaultMode": "acceptEdits"},
            "sandbox": {"enabled": true},
        });
        assert_eq!(claimed(&free), [""; 0]);
        let more = json!({"additionalDirectories": ["a", "/b"]});
        let found = claims(more.as_object().unwrap(), PermissionMode::Default).unwrap();
        assert_eq!(
            (found.keys, found.directories),
            (vec![], vec!["a".to_owned(), "/b".to_owned()])
        );
    }
}
