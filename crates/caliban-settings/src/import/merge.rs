//! Puts settings over a document: values replace, tables merge, lists grow by what they lack.

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, TableLike};

use crate::types::RuleAction;
use crate::write::values::{Layout, from_json, put, table_to_json, to_json};
use crate::write::{Appended, RuleSpec, ShapeError, push, rules};

/// Where new rules go among those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleOrder {
    /// Where they mean what they meant: objections before whatever allows, the rest at the end. Of
    /// two rules with one pattern the new one replaces the old one.
    Kept,
    /// Before all others, which they override.
    Before,
}

/// Lists whose entries stand for themselves, so that two lists can be one.
const LISTS: [&str; 5] = [
    "additional_directories",
    "allowed_http_hook_urls",
    "claude_md_excludes",
    "http_hook_allowed_env_vars",
    "trusted_directories",
];
/// Tables that are one value: half of the old one and half of the new one would be neither.
const WHOLE: [&str; 3] = ["api_key_helper", "fallback_model", "model"];
/// A provider and a name fit in a line.
const MODELS: [&str; 2] = ["fallback_model", "model"];

/// Merges and says what changed, a line per key; no line means nothing did.
pub(crate) fn merge(
    document: &mut DocumentMut,
    settings: &Map<String, Value>,
    added: &[RuleSpec],
    order: RuleOrder,
) -> Result<Vec<String>, ShapeError> {
    let mut changes = Vec::new();
    for (key, value) in settings {
        merge_key(
            document.as_table_mut(),
            Layout::Section,
            "",
            key,
            value,
            &mut changes,
        );
    }
    if !added.is_empty() {
        let before = document.to_string();
        match order {
            RuleOrder::Kept => place(document, added, &mut changes)?,
            RuleOrder::Before => {
                rules::prepend(document, added)?;
                if document.to_string() != before {
                    changes.push("`permissions.rules`: put first what was not".into());
                }
            }
        }
    }
    Ok(changes)
}

fn place(
    document: &mut DocumentMut,
    added: &[RuleSpec],
    changes: &mut Vec<String>,
) -> Result<(), ShapeError> {
    let (mut objections, mut appended) = (0, 0);
    for rule in added {
        let placed = match rule.action {
            RuleAction::Deny | RuleAction::Ask => rules::object(document, rule)?,
            RuleAction::Allow => rules::append(document, rule)?,
        };
        match (placed, rule.action) {
            (Appended::Added, RuleAction::Allow) => appended += 1,
            (Appended::Added, RuleAction::Deny | RuleAction::Ask) => objections += 1,
            (Appended::Changed, _) => changes.push(format!(
                "`permissions.rules`: `{}` is now `{}`",
                rule.pattern, rule.action
            )),
            (Appended::AlreadyThere, _) => {}
        }
    }
    if objections > 0 {
        changes.push(format!(
            "`permissions.rules`: {objections} put before what allows"
        ));
    }
    if appended > 0 {
        changes.push(format!("`permissions.rules`: {appended} appended"));
    }
    Ok(())
}

fn merge_key(
    table: &mut dyn TableLike,
    layout: Layout,
    parent: &str,
    key: &str,
    value: &Value,
    changes: &mut Vec<String>,
) {
    let path = if parent.is_empty() {
        key.to_owned()
    } else {
        format!("{parent}.{key}")
    };
    let layout = if MODELS.contains(&path.as_str()) {
        Layout::Inline
    } else {
        layout
    };
    let Some(item) = from_json(value, layout) else {
        return;
    };
    let Some(there) = table.get_mut(key) else {
        table.insert(key, item);
        changes.push(format!("`{path}` added"));
        return;
    };
    if is_list(&path) && grow(there, value) == Grown::Yes {
        changes.push(format!("`{path}` extended"));
        return;
    }
    let was = to_json(there);
    if was == *value || is_list(&path) && is_listed(&was, value) {
        return;
    }
    let inner = if there.is_inline_table() {
        Layout::Inline
    } else {
        Layout::Section
    };
    match (there.as_table_like_mut(), value) {
        (Some(there), Value::Object(map))
            if !WHOLE.contains(&path.as_str()) && !changes_transport(parent, &was, value) =>
        {
            for (key, value) in map {
                merge_key(there, inner, &path, key, value, changes);
            }
        }
        _ => {
            put(table, key, item);
            changes.push(format!("`{path}` replaced"));
        }
    }
}

fn is_list(path: &str) -> bool {
    let is_event = |event: &str| !event.contains('.');
    LISTS.contains(&path) || path.strip_prefix("hooks.").is_some_and(is_event)
}

fn is_listed(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Array(there), Value::Array(wanted)) => {
            wanted.iter().all(|entry| there.contains(entry))
        }
        _ => false,
    }
}

#[derive(PartialEq, Eq)]
enum Grown {
    Yes,
    No,
}

fn grow(list: &mut Item, wanted: &Value) -> Grown {
    let mut grown = Grown::No;
    for entry in wanted.as_array().into_iter().flatten() {
        match list {
            Item::ArrayOfTables(tables) => {
                let there = tables.iter().any(|table| table_to_json(table) == *entry);
                if !there && let Some(Item::Table(table)) = from_json(entry, Layout::Section) {
                    tables.push(table);
                    grown = Grown::Yes;
                }
            }
            Item::Value(toml_edit::Value::Array(array)) => {
                let there = array
                    .iter()
                    .any(|value| to_json(&Item::Value(value.clone())) == *entry);
                if !there && let Some(Item::Value(value)) = from_json(entry, Layout::Inline) {
                    push(array, value);
                    grown = Grown::Yes;
                }
            }
            Item::None | Item::Table(_) | Item::Value(_) => {}
        }
    }
    grown
}

/// A server that is reached in another way shares nothing with the one of that name.
fn changes_transport(parent: &str, was: &Value, now: &Value) -> bool {
    let transport = |server: &Value| match server.get("type").or_else(|| server.get("transport")) {
        Some(name) => name.clone(),
        None => "stdio".into(),
    };
    parent == "mcp_servers" && transport(was) != transport(now)
}
