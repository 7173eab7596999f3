//! Schemas in the dialect that OpenAI enforces strictly: closed objects that require every
//! property, where an optional one may be null instead of missing.

use serde_json::{Map, Value, json};

/// How a schema is sent.
#[derive(Debug, PartialEq)]
pub(super) struct Format {
    pub(super) schema: Value,
    pub(super) strict: bool,
}

/// The strict form where the schema has one; otherwise the schema as it is, as guidance.
pub(super) fn format(schema: &Value) -> Format {
    let root_is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    match strict(schema).filter(|_| root_is_object) {
        Some(schema) => Format {
            schema,
            strict: true,
        },
        None => Format {
            schema: schema.clone(),
            strict: false,
        },
    }
}

/// Keywords that the strict dialect lacks but that only annotate or narrow a value; the answer
/// is checked against the full schema afterwards anyway.
const IGNORED: [&str; 15] = [
    "$schema",
    "$id",
    "$comment",
    "default",
    "examples",
    "readOnly",
    "writeOnly",
    "deprecated",
    "minLength",
    "maxLength",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contentEncoding",
    "contentMediaType",
];

const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Nothing where the meaning cannot be kept: open maps, untyped values, combinators.
fn strict(schema: &Value) -> Option<Value> {
    let source = schema.as_object()?;
    if let Some(reference) = source.get("$ref").filter(|_| !source.contains_key("$defs")) {
        // A reference may have no neighbours.
        return Some(json!({ "$ref": reference }));
    }
    let mut target = Map::new();
    for (keyword, value) in source {
        let value = match keyword.as_str() {
            ignored if IGNORED.contains(&ignored) => continue,
            "format" if !value.as_str().is_some_and(|name| FORMATS.contains(&name)) => continue,
            "type" | "title" | "description" | "enum" | "const" | "$ref" | "format" | "pattern"
            | "multipleOf" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
            | "minItems" | "maxItems" => value.clone(),
            "$defs" | "definitions" => each(value)?,
            "items" => strict(value)?,
            "anyOf" => all(value)?,
            // Written below, for every object.
            "properties" | "required" | "additionalProperties" => continue,
            _ => return None,
        };
        target.insert(keyword.clone(), value);
    }
    if has_type(source, "object") {
        close(source, &mut target)?;
    }
    let typed = ["type", "enum", "const", "anyOf", "$ref"]
        .iter()
        .any(|keyword| target.contains_key(*keyword));
    let whole = !has_type(source, "array") || target.contains_key("items");
    (typed && whole).then_some(Value::Object(target))
}

fn close(source: &Map<String, Value>, target: &mut Map<String, Value>) -> Option<()> {
    let closed = source.get("additionalProperties") == Some(&Value::Bool(false));
    let properties = match source.get("properties") {
        Some(properties) => properties.as_object()?,
        None if closed => &Map::new(),
        None => return None,
    };
    if !closed && source.contains_key("additionalProperties") {
        return None;
    }
    let required: Vec<&str> = source
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut written = Map::new();
    for (name, property) in properties {
        let property = strict(property)?;
        let property = if required.contains(&name.as_str()) {
            property
        } else {
            nullable(property)
        };
        written.insert(name.clone(), property);
    }
    let names: Vec<&String> = written.keys().collect();
    let names = json!(names);
    target.insert("properties".into(), Value::Object(written));
    target.insert("required".into(), names);
    target.insert("additionalProperties".into(), Value::Bool(false));
    Some(())
}

fn nullable(mut schema: Value) -> Value {
    let nothing = json!({"type": "null"});
    let Some(fields) = schema.as_object_mut() else {
        return schema;
    };
    if fields.contains_key("const") || fields.contains_key("$ref") {
        return json!({"anyOf": [schema, nothing]});
    }
    if let Some(Value::Array(options)) = fields.get_mut("anyOf") {
        if !options.contains(&nothing) {
            options.push(nothing);
        }
        return schema;
    }
    match fields.get_mut("type") {
        Some(Value::Array(types)) => {
            if !types.contains(&json!("null")) {
                types.push(json!("null"));
            }
        }
        Some(Value::String(name)) if name != "null" => {
            let types = json!([name, "null"]);
            fields.insert("type".into(), types);
        }
        Some(_) | None => {}
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    schema
}

fn has_type(schema: &Map<String, Value>, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        Some(_) => false,
        None => wanted == "object" && schema.contains_key("properties"),
    }
}

fn each(schemas: &Value) -> Option<Value> {
    schemas
        .as_object()?
        .iter()
        .map(|(name, schema)| Some((name.clone(), strict(schema)?)))
        .collect::<Option<Map<_, _>>>()
        .map(Value::Object)
}

fn all(schemas: &Value) -> Option<Value> {
    schemas.as_array()?.iter().map(strict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn objects_are_closed_and_optional_properties_nullable() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "who"},
                "size": {"enum": ["s", "l"], "type": "string", "default": "s"},
                "tags": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": ["integer", "null"]}}}},
                "next": {"$ref": "#/$defs/node", "description": "dropped"},
                "either": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "number"}]},
                "one": {"const": 1},
            },
            "required": ["name"],
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}},
        });
        assert_eq!(
            format(&schema),
            Format {
                schema: json!({
                    "type": "object",
                    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"], "additionalProperties": false}},
                    "properties": {
                        "name": {"type": "string", "description": "who"},
                        "size": {"enum": ["s", "l", null], "type": ["string", "null"]},
                        "tags": {"type": ["array", "null"], "items": {"type": "object", "properties": {"k": {"type": ["integer", "null"]}}, "required": ["k"], "additionalProperties": false}},
                        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                        "either": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
                        "one": {"anyOf": [{"const": 1}, {"type": "null"}]},
                    },
                    "required": ["name", "size", "tags", "next", "either", "one"],
                    "additionalProperties": false,
                }),
                strict: true,
            }
        );
    }

    #[rstest]
    #[case(json!({"type": "object", "additionalProperties": {"type": "string"}}))]
    #[case(json!({"type": "object"}))]
    #[case(json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}))]
    #[case(json!({"type": "object", "properties": {"any": {}}}))]
    #[case(json!({"type": "object", "properties": {"any": true}}))]
    #[case(json!({"type": "object", "properties": {"list": {"type": "array"}}}))]
    #[case(json!({"type": "object", "properties": {"a": {"allOf": [{"type": "string"}]}}}))]
    #[case(json!({"type": "object", "patternProperties": {"^x": {"type": "string"}}, "properties": {}}))]
    #[case(json!({"type": "array", "items": {"type": "string"}}))]
    #[case(json!({"anyOf": [{"type": "object", "properties": {}}]}))]
    fn what_cannot_be_closed_is_sent_as_it_is(#[case] schema: Value) {
        assert_eq!(
            format(&schema),
            Format {
                schema: schema.clone(),
                strict: false
            }
        );
    }
}
