//! Tools as servers define them, made fit to be shown to a model.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::names::digest;
use crate::text;

const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 2000;
const MAX_SCHEMA: usize = 64 * 1024;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// The server's own name for it.
    pub(crate) name: String,
    /// For the model: cleaned, bounded and labelled with the server.
    pub(crate) description: String,
    /// Always describes an object.
    pub(crate) schema: Value,
    /// Over what the server said, before anything was cleaned.
    pub(crate) digest: String,
}

/// The tools in a server's list, and what is wrong with others.
pub(crate) fn definitions(server: &str, entries: &[Value]) -> (Vec<Definition>, Vec<String>) {
    let mut tools = Vec::new();
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for entry in entries {
        let Some(name) = entry["name"].as_str().filter(|name| is_usable(name)) else {
            problems.push("a tool without a usable name is left out".to_owned());
            continue;
        };
        if !names.insert(name) {
            let shown = text::line(name, 80);
            problems.push(format!(
                "it has two tools named `{shown}`; the second is left out"
            ));
            continue;
        }
        tools.push(definition(server, name, entry));
    }
    (tools, problems)
}

fn is_usable(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME
}

fn definition(server: &str, name: &str, entry: &Value) -> Definition {
    let said = entry["description"]
        .as_str()
        .or_else(|| entry["title"].as_str())
        .unwrap_or_default();
    let mut description = format!(
        "[MCP server {}] {}",
        text::line(server, 80),
        text::paragraph(said, MAX_DESCRIPTION)
    );
    let schema = match schema(&entry["inputSchema"]) {
        Ok(schema) => schema,
        Err(problem) => {
            description = format!(
                "{description}\n(The server's input schema cannot be used: {problem}. Any object \
                 is accepted.)"
            );
            json!({"type": "object"})
        }
    };
    let said = json!([name, entry.get("description"), entry.get("inputSchema")]);
    Definition {
        name: name.to_owned(),
        description: description.trim_end().to_owned(),
        schema,
        digest: digest(canonical(&said).to_string().as_bytes()),
    }
}

/// A schema that providers and our own check of inputs take.
fn schema(said: &Value) -> Result<Value, String> {
    let Value::Object(fields) = said else {
        return Err("it is not an object".to_owned());
    };
    match fields.get("type") {
        None => {}
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("it does not describe an object".to_owned()),
    }
    if said.to_string().len() > MAX_SCHEMA {
        return Err(format!("it is larger than {} KiB", MAX_SCHEMA / 1024));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    if let Value::Object(cleaned) = text::clean_json(said) {
        schema.extend(cleaned);
    }
    let schema = Value::Object(schema);
    jsonschema::validator_for(&schema).map_err(|error| text::line(&error.to_string(), 200))?;
    Ok(schema)
}

/// The same JSON whatever order a server writes it in.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            fields
                .into_iter()
                .map(|(name, value)| (name.clone(), canonical(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn one(entry: Value) -> Definition {
        let (mut tools, problems) = definitions("srv", &[entry]);
        assert_eq!(problems, Vec::<String>::new());
        tools.remove(0)
    }

    #[test]
    fn text_of_the_server_is_labelled_and_clean() {
        let tool = one(json!({
            "name": "a",
            "description": "Does\u{1b}[31m things\u{200b}.\u{e0041}",
            "inputSchema": {"properties": {"p": {"type": "string", "description": "x\u{202e}y"}}},
        }));
        assert_eq!(tool.description, "[MCP server srv] Does things.");
        assert_eq!(
            tool.schema,
            json!({"type": "object", "properties": {"p": {"type": "string", "description": "xy"}}})
        );
        let long = one(json!({"name": "a", "description": "x".repeat(10_000), "inputSchema": {}}));
        assert!(long.description.chars().count() < MAX_DESCRIPTION + 50);
    }

    #[rstest]
    #[case(json!(true))]
    #[case(json!(null))]
    #[case(json!({"type": "array"}))]
    #[case(json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}))]
    #[case(json!({"type": "object", "$ref": "https://evil.example/schema.json"}))]
    #[case(json!({"type": "object", "description": "x".repeat(70_000)}))]
    fn a_schema_that_cannot_be_used_is_replaced(#[case] schema: Value) {
        let tool = one(json!({"name": "a", "inputSchema": schema}));
        assert_eq!(tool.schema, json!({"type": "object"}));
        assert!(
            tool.description.contains("cannot be used"),
            "{}",
            tool.description
        );
    }

    #[test]
    fn a_digest_is_of_what_was_said_in_any_order() {
        let tool = |description: &str, schema: &str| {
            let schema: Value = serde_json::from_str(schema).unwrap();
            one(json!({"name": "a", "description": description, "inputSchema": schema})).digest
        };
        let one = tool("d", r#"{"type":"object","properties":{}}"#);
        assert_eq!(one, tool("d", r#"{"properties":{},"type":"object"}"#));
        assert_ne!(
            one,
            tool("d\u{200b}", r#"{"properties":{},"type":"object"}"#)
        );
        assert_ne!(one, tool("d", r#"{"properties":{"x":{}},"type":"object"}"#));
    }

    #[test]
    fn the_second_of_two_names_and_nameless_tools_are_left_out() {
        let entries = [
            json!({"name": "a", "description": "first", "inputSchema": {}}),
            json!({"name": "a", "description": "second", "inputSchema": {}}),
            json!({"name": "", "inputSchema": {}}),
            json!({"name": 7}),
            json!("nonsense"),
        ];
        let (tools, problems) = definitions("srv", &entries);
        assert_eq!(tools.len(), 1);
        assert!(tools[0].description.ends_with("first"));
        assert_eq!(problems.len(), 4);
    }
}
