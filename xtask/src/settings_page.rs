//! The reference page of settings, from their schema.

use std::fmt::Write;

use serde_json::{Map, Value};

/// How deep tables are described.
const MAX_DEPTH: usize = 4;

pub(crate) fn page() -> String {
    let schema = caliban_settings::settings_schema();
    let schema = schema.as_object().cloned().unwrap_or_default();
    let mut text = "# Settings\n\nEvery key of `settings.toml`, from the schema that editors can \
                    check files with (`crates/caliban-settings/schema/settings.schema.json`). This \
                    page is written by `cargo xtask docs`; the chapter on \
                    [settings](../settings.md) explains scopes and trust.\n\n| key | type | |\n| \
                    --- | --- | --- |\n"
        .to_owned();
    rows(&schema, &Value::Object(schema.clone()), "", 0, &mut text);
    text
}

fn rows(root: &Map<String, Value>, node: &Value, prefix: &str, depth: usize, text: &mut String) {
    let node = resolve(root, node);
    let Some(fields) = node["properties"].as_object() else {
        return;
    };
    for (name, field) in fields {
        let key = format!("{prefix}{name}");
        let described = field["description"].as_str();
        let target = resolve(root, field);
        let described = described.or(target["description"].as_str());
        let line = described
            .unwrap_or_default()
            .replace('\n', " ")
            .replace('|', "\\|");
        // Writing to a string does not fail.
        let _ = writeln!(text, "| `{key}` | {} | {line} |", kind(root, target));
        if depth < MAX_DEPTH {
            rows(root, target, &format!("{key}."), depth + 1, text);
            let entries = &target["additionalProperties"];
            if entries.is_object() {
                rows(root, entries, &format!("{key}.<name>."), depth + 1, text);
            }
        }
    }
}

fn resolve<'a>(root: &'a Map<String, Value>, node: &'a Value) -> &'a Value {
    let reference = node["$ref"].as_str().or_else(|| {
        let choices = node["anyOf"].as_array()?;
        choices.iter().find_map(|choice| choice["$ref"].as_str())
    });
    let target = reference
        .and_then(|path| path.strip_prefix("#/$defs/"))
        .and_then(|name| root.get("$defs")?.get(name));
    target.unwrap_or(node)
}

fn kind(root: &Map<String, Value>, node: &Value) -> String {
    if let Some(values) = node["enum"].as_array() {
        let values = values.iter().filter(|value| !value.is_null());
        let shown: Vec<String> = values.map(|value| format!("`{value}`")).collect();
        return shown.join(", ");
    }
    let name = |value: &Value| {
        value
            .as_str()
            .filter(|name| *name != "null")
            .map(str::to_owned)
    };
    let names: Vec<String> = match &node["type"] {
        Value::Array(names) => names.iter().filter_map(name).collect(),
        one => name(one).into_iter().collect(),
    };
    match names.as_slice() {
        [list] if list == "array" => {
            let items = kind(root, resolve(root, &node["items"]));
            format!("list of {items}")
        }
        [table] if table == "object" => "table".to_owned(),
        [] => "one of several".to_owned(),
        names => names.join(" or "),
    }
}
