//! Our own settings in JSON, or in the layout of the older files, under their canonical names.

use std::path::Path;

use serde_json::{Map, Value};

use super::claude::take_buckets;
use super::gathered::Gathered;
use super::hooks;
use super::rule::{Translation, translate};
use crate::write::{RuleSpec, ShapeError};

pub(super) fn gather(
    source: Map<String, Value>,
    home: Option<&Path>,
) -> Result<Gathered, ShapeError> {
    let mut gathered = Gathered::default();
    for (key, value) in source {
        match key.as_str() {
            "$schema" => {}
            "permissions" => permissions(value, home, &mut gathered)?,
            "mcp_servers" => servers(value, &mut gathered),
            "hooks" => hooks::gather(&value, &mut gathered),
            "status_line" => gathered.set("statusLine", value),
            _ => {
                note_nothing(&key, &value, &mut gathered);
                // The name may contain a dot.
                gathered.settings.insert(key, value);
            }
        }
    }
    Ok(gathered)
}

/// TOML cannot say `null`.
fn note_nothing(path: &str, value: &Value, gathered: &mut Gathered) {
    match value {
        Value::Null => gathered.note(format!("`{path}` was not imported: TOML cannot say `null`")),
        Value::Object(map) => {
            for (key, value) in map {
                note_nothing(&format!("{path}.{key}"), value, gathered);
            }
        }
        _ => {}
    }
}

/// The ordered list where there is one, otherwise the three older lists. Every rule is taken or
/// none: the one that cannot be read may be the one that forbids.
pub(crate) fn permissions(
    value: Value,
    home: Option<&Path>,
    gathered: &mut Gathered,
) -> Result<(), ShapeError> {
    let Value::Object(mut permissions) = value else {
        return Err(ShapeError::NotATable("permissions".into()));
    };
    let ordered = match permissions.shift_remove("rules") {
        Some(Value::Array(rules)) => rules,
        Some(_) => return Err(ShapeError::NotRules("permissions.rules".into())),
        None => Vec::new(),
    };
    if ordered.is_empty() {
        for (action, pattern) in take_buckets(&mut permissions)? {
            // Both spellings are ours; what has no short one keeps the long one.
            let pattern = match translate(&pattern, action, home) {
                Translation::Patterns(patterns) if patterns.len() == 1 => patterns.concat(),
                Translation::Patterns(_) | Translation::Verbatim(_) | Translation::Unusable(_) => {
                    pattern
                }
            };
            gathered.rule(RuleSpec::new(pattern, action));
        }
    } else {
        for action in ["allow", "ask", "deny"] {
            if permissions.shift_remove(action).is_some() {
                gathered.note(format!("`permissions.{action}` was not imported: beside `permissions.rules` it has no effect"));
            }
        }
    }
    for (index, rule) in ordered.into_iter().enumerate() {
        let rule = rule_spec(rule).map_err(|error| ShapeError::BadRule {
            index,
            why: error.to_string(),
        })?;
        gathered.rule(rule);
    }
    for (key, value) in permissions {
        gathered.set(&format!("permissions.{key}"), value);
    }
    Ok(())
}

/// The first rules called their pattern `tool`.
fn rule_spec(mut rule: Value) -> Result<RuleSpec, serde_json::Error> {
    if let Some(fields) = rule.as_object_mut()
        && !fields.contains_key("pattern")
        && let Some(tool) = fields.shift_remove("tool")
    {
        fields.insert("pattern".into(), tool);
    }
    serde_json::from_value(rule)
}

/// `transport` is the older name of `type`.
pub(crate) fn servers(value: Value, gathered: &mut Gathered) {
    let Value::Object(mut servers) = value else {
        gathered.note("`mcp_servers` was not imported: it is not a table of servers");
        return;
    };
    for server in servers.values_mut().filter_map(Value::as_object_mut) {
        if let Some(transport) = server.shift_remove("transport") {
            let mut renamed = Map::from_iter([("type".to_owned(), transport)]);
            renamed.append(server);
            *server = renamed;
        }
    }
    gathered.set("mcp_servers", servers);
}
