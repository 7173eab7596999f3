//! The JSON Schema of settings files, made from the types that read them, and its keys in words.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::types::Settings;

/// How deep tables are described.
const MAX_DEPTH: usize = 4;

/// The schema of a settings file.
pub fn settings_schema() -> Value {
    SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<Settings>()
        .to_value()
}

/// A key that a settings file may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedKey {
    /// Dotted; `<name>` stands for names that whoever writes the file chooses.
    pub key: String,
    /// What it may be, in words.
    pub kind: String,
    /// What it is for; empty where the schema does not say.
    pub about: String,
    /// What stands in it.
    pub shape: KeyShape,
}

/// What stands in a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// One value, or a list of them.
    Value,
    /// One value or a table instead of it.
    Either,
    /// Further keys.
    Table,
}

/// Every key of a settings file, tables before what is in them.
pub fn described_keys() -> Vec<DescribedKey> {
    let schema = settings_schema();
    let root = schema.as_object().cloned().unwrap_or_default();
    let mut keys = Vec::new();
    describe(&root, &schema, "", 0, &mut keys);
    keys
}

fn describe(
    root: &Map<String, Value>,
    node: &Value,
    prefix: &str,
    depth: usize,
    keys: &mut Vec<DescribedKey>,
) {
    let node = resolve(root, node);
    let Some(fields) = node["properties"].as_object() else {
        return;
    };
    for (name, field) in fields {
        let key = format!("{prefix}{name}");
        let described = field["description"].as_str();
        let target = resolve(root, field);
        let described = described.or(target["description"].as_str());
        let kind = kind(root, target);
        keys.push(DescribedKey {
            key: key.clone(),
            shape: match kind.as_str() {
                "table" => KeyShape::Table,
                SEVERAL => KeyShape::Either,
                _ => KeyShape::Value,
            },
            kind,
            about: described.unwrap_or_default().replace('\n', " "),
        });
        if depth < MAX_DEPTH {
            describe(root, target, &format!("{key}."), depth + 1, keys);
            let entries = &target["additionalProperties"];
            if entries.is_object() {
                describe(root, entries, &format!("{key}.<name>."), depth + 1, keys);
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

/// What a key is that may be several things.
const SEVERAL: &str = "one of several";

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
        [] => SEVERAL.to_owned(),
        names => names.join(" or "),
    }
}
