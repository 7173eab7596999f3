//! The hooks of a plugin, from its files to entries as the settings have them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::places::{OwnPlaces, USERS};

/// Handlers by event, as the settings write them.
pub type HookTable = BTreeMap<String, Vec<Value>>;

/// Keys of a handler that mean something here.
const HANDLER: &[&str] = &[
    "type",
    "command",
    "args",
    "timeout",
    "async",
    "if",
    "url",
    "headers",
    "server",
    "mcp",
    "tool",
    "prompt",
    "model",
    "schema",
    "agent",
    "on_error",
    "sandbox",
    "statusMessage",
];
/// Keys of a group of handlers.
const GROUP: &[&str] = &["matcher", "if", "hooks", "handlers"];
/// What others call the tool that starts agents, and what it is called here.
const DELEGATES: ([&str; 2], &str) = (["Task", "Agent"], "AgentTool");
/// The most handlers of one plugin.
const MOST: usize = 256;

/// Reads what stands in a file of hooks, or in its place. Keys that nobody knows are left out and
/// told, so that plugins for other programs can be used.
pub(crate) fn read(document: &Map<String, Value>, remarks: &mut Vec<String>) -> HookTable {
    let events = match document.get("hooks") {
        Some(Value::Object(events)) => events,
        Some(_) | None => document,
    };
    let mut table = HookTable::new();
    let mut count = 0;
    for (event, entries) in events {
        let Value::Array(entries) = entries else {
            if event != "description" && event != "$schema" {
                remarks.push(format!(
                    "the hooks of `{}` are no list",
                    event.escape_debug()
                ));
            }
            continue;
        };
        for entry in entries {
            count += 1;
            if count > MOST {
                remarks.push(format!("only the first {MOST} hooks are used"));
                return table;
            }
            if let Some(entry) = group(event, entry, remarks) {
                let entry = without_values_in_shells(event, entry, remarks);
                if entry.as_object().is_some_and(|entry| !entry.is_empty()) {
                    table.entry(event.clone()).or_default().push(entry);
                }
            }
        }
    }
    table
}

/// An entry with the keys that are known.
fn group(event: &str, entry: &Value, remarks: &mut Vec<String>) -> Option<Value> {
    let Value::Object(entry) = entry else {
        remarks.push(format!("a hook of `{}` is no table", event.escape_debug()));
        return None;
    };
    if entry.contains_key("type") {
        let known: Vec<&str> = GROUP.iter().chain(HANDLER).copied().collect();
        return Some(kept(event, entry, &known, remarks).into());
    }
    let mut group = kept(event, entry, GROUP, remarks);
    if let Some(Value::String(matcher)) = group.get_mut("matcher") {
        *matcher = with_own_names(matcher);
    }
    for list in ["hooks", "handlers"] {
        if let Some(Value::Array(handlers)) = group.get_mut(list) {
            for handler in handlers {
                if let Value::Object(fields) = handler {
                    *handler = kept(event, fields, HANDLER, remarks).into();
                }
            }
        }
    }
    Some(group.into())
}

fn kept(
    event: &str,
    fields: &Map<String, Value>,
    known: &[&str],
    remarks: &mut Vec<String>,
) -> Map<String, Value> {
    let mut kept = fields.clone();
    kept.retain(|key, _| {
        let is_known = known.contains(&key.as_str());
        if !is_known {
            let key = key.escape_debug();
            let event = event.escape_debug();
            remarks.push(format!("`{key}` of a hook of `{event}` is not used"));
        }
        is_known
    });
    kept
}

/// A group without the handlers whose shell would read a value of the user's: it could mean
/// anything to it.
fn without_values_in_shells(event: &str, mut entry: Value, remarks: &mut Vec<String>) -> Value {
    let mut is_safe = |handler: &Value| {
        let command = handler.get("command").and_then(Value::as_str);
        let is_read = command.is_some_and(|command| command.contains(USERS));
        if is_read && handler.get("args").is_none() {
            let event = event.escape_debug();
            remarks.push(format!(
                "a hook of `{event}` is not used: `{USERS}…}}` stands in what a shell reads; name it in `args`, or read the variable `CLAUDE_PLUGIN_OPTION_…`"
            ));
            return false;
        }
        true
    };
    if entry.get("type").is_some() && !is_safe(&entry) {
        return Value::Object(Map::new());
    }
    for list in ["hooks", "handlers"] {
        if let Some(Value::Array(handlers)) = entry.get_mut(list) {
            handlers.retain(&mut is_safe);
        }
    }
    if has_handlers(&entry) {
        entry
    } else {
        Value::Object(Map::new())
    }
}

/// Whether a group or a handler by itself does anything.
fn has_handlers(entry: &Value) -> bool {
    let is_full = |list: &str| {
        let handlers = entry.get(list).and_then(Value::as_array);
        handlers.is_some_and(|handlers| !handlers.is_empty())
    };
    entry.get("type").is_some() || is_full("hooks") || is_full("handlers")
}

/// A list of names in which the tool that starts agents has our name too.
fn with_own_names(matcher: &str) -> String {
    let (theirs, ours) = DELEGATES;
    let names: Vec<&str> = matcher.split('|').map(str::trim).collect();
    let has = |name: &str| names.contains(&name);
    if theirs.into_iter().any(has) && !has(ours) {
        return format!("{matcher}|{ours}");
    }
    matcher.to_owned()
}

/// Every handler of a table, with its event and its matcher.
pub(crate) fn handlers(table: &HookTable) -> impl Iterator<Item = (&str, &str, &Value)> {
    table.iter().flat_map(|(event, entries)| {
        entries.iter().flat_map(move |entry| {
            let matcher = entry.get("matcher").and_then(Value::as_str).unwrap_or("*");
            let lists = ["hooks", "handlers"]
                .into_iter()
                .filter_map(|list| entry.get(list));
            let listed = lists.filter_map(Value::as_array).flatten();
            let own = entry.get("type").map(|_| entry);
            let matcher = if matcher.is_empty() { "*" } else { matcher };
            own.into_iter()
                .chain(listed)
                .map(move |handler| (event.as_str(), matcher, handler))
        })
    })
}

/// The same with the plugin's own places filled in.
pub(crate) fn expanded(table: &HookTable, places: &OwnPlaces) -> HookTable {
    let mut table = table.clone();
    for entry in table.values_mut().flatten() {
        let Value::Object(fields) = entry else {
            continue;
        };
        if fields.contains_key("type") {
            expand(fields, places);
        }
        for list in ["hooks", "handlers"] {
            let Some(Value::Array(handlers)) = fields.get_mut(list) else {
                continue;
            };
            for handler in handlers.iter_mut().filter_map(Value::as_object_mut) {
                expand(handler, places);
            }
            // What its user has not said is asked for in vain.
            handlers.retain(|handler| !handler["args"].to_string().contains(USERS));
        }
    }
    for entries in table.values_mut() {
        entries.retain(has_handlers);
    }
    table
}

fn expand(handler: &mut Map<String, Value>, places: &OwnPlaces) {
    let Some(Value::String(command)) = handler.get("command").cloned() else {
        return;
    };
    if let Some(Value::Array(args)) = handler.get_mut("args") {
        for arg in args {
            if let Value::String(arg) = arg {
                *arg = places.in_text(arg);
            }
        }
        handler.insert("command".to_owned(), places.in_text(&command).into());
        return;
    }
    match places.as_program(&command) {
        // No shell is needed to run a file of the plugin, so none splits its path.
        Some(program) => {
            handler.insert("command".to_owned(), program.into());
            handler.insert("args".to_owned(), Value::Array(Vec::new()));
        }
        None => {
            handler.insert("command".to_owned(), places.in_shell(&command).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table(value: &Value) -> (HookTable, Vec<String>) {
        let mut remarks = Vec::new();
        let table = read(value.as_object().unwrap(), &mut remarks);
        (table, remarks)
    }

    #[test]
    fn both_shapes_are_read_and_unknown_keys_left_out() {
        let event = json!([{"matcher": "Task|Edit", "hooks": [
            {"type": "command", "command": "x", "timeout": 5, "asyncRewake": true}
        ]}]);
        let (wrapped, remarks) =
            table(&json!({"description": "d", "hooks": {"PostToolUse": event}}));
        let (flat, _) = table(&json!({"PostToolUse": event}));
        assert_eq!(wrapped, flat);
        assert_eq!(
            remarks,
            ["`asyncRewake` of a hook of `PostToolUse` is not used"]
        );
        let entry = &wrapped["PostToolUse"][0];
        assert_eq!(entry["matcher"], "Task|Edit|AgentTool");
        assert_eq!(
            entry["hooks"][0],
            json!({"type": "command", "command": "x", "timeout": 5})
        );
    }

    #[test]
    fn nonsense_is_told() {
        let (read, remarks) = table(&json!({"Stop": {}, "PreToolUse": [1]}));
        assert!(read.is_empty());
        assert_eq!(remarks.len(), 2, "{remarks:?}");
    }

    #[test]
    fn places_are_filled_in() {
        let places = OwnPlaces::new("/p/x".into(), "/d".into());
        let command = |text: &str| {
            let value = json!({"Stop": [{"hooks": [{"type": "command", "command": text}]}]});
            expanded(&table(&value).0, &places)["Stop"][0]["hooks"][0].clone()
        };
        let plain = command("${CLAUDE_PLUGIN_ROOT}/run.sh");
        assert_eq!(
            (&plain["command"], &plain["args"]),
            (&json!("/p/x/run.sh"), &json!([]))
        );
        let shell = command("python3 '${CALIBAN_PLUGIN_ROOT}/a.py' $HOME");
        assert_eq!(shell["command"], "python3 '/p/x/a.py' $HOME");
    }
}
