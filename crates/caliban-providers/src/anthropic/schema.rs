//! Narrows a JSON schema to what constrained decoding accepts. The caller still checks answers
//! against the schema as it was.

use serde_json::{Map, Value};

/// Keywords the API refuses.
const UNSUPPORTED: [&str; 25] = [
    "$schema",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "if",
    "then",
    "else",
    "not",
];

const FORMATS: [&str; 10] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// The schema as the API accepts it: unsupported keywords are gone and every object is closed.
pub(super) fn adapted(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    let mut adapted: Map<String, Value> = keywords
        .iter()
        .filter(|(name, value)| is_supported(name, value))
        .map(|(name, value)| keyword(name, value))
        .collect();
    if describes_object(&adapted) {
        adapted.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(adapted)
}

/// Whether closing its objects leaves a schema its meaning: one that says nothing about its
/// properties, or requires some it does not describe, would then fit nothing but an empty object.
pub(super) fn can_close(schema: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return true;
    };
    let properties = keywords.get("properties").and_then(Value::as_object);
    let is_described = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        properties.is_some_and(|properties| properties.contains_key(name))
    };
    let required = keywords.get("required").and_then(Value::as_array);
    let is_closed = keywords.get("additionalProperties") == Some(&Value::Bool(false));
    let is_whole = !describes_object(keywords)
        || required.is_none_or(|names| names.iter().all(is_described))
            && (is_closed || properties.is_some_and(|properties| !properties.is_empty()));
    is_whole && inner(keywords).all(can_close)
}

/// The schemas within a schema.
fn inner(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    keywords.iter().flat_map(|(name, value)| {
        let (named, listed, one) = match (name.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(all)) => (Some(all), None, None),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(all)) => {
                (None, Some(all), None)
            }
            ("items", schema) => (None, None, Some(schema)),
            _ => (None, None, None),
        };
        let named = named.into_iter().flat_map(Map::values);
        named.chain(listed.into_iter().flatten()).chain(one)
    })
}

fn is_supported(name: &str, value: &Value) -> bool {
    match name {
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        "format" => value.as_str().is_some_and(|name| FORMATS.contains(&name)),
        _ => !UNSUPPORTED.contains(&name),
    }
}

/// Goes on only where a value is a schema: names of properties and the data of `enum`, `const`
/// and `default` are not keywords.
fn keyword(name: &str, value: &Value) -> (String, Value) {
    let value = match (name, value) {
        ("properties" | "$defs" | "definitions", Value::Object(schemas)) => Value::Object(
            schemas
                .iter()
                .map(|(name, schema)| (name.clone(), adapted(schema)))
                .collect(),
        ),
        ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
            Value::Array(schemas.iter().map(adapted).collect())
        }
        ("items", schema) => adapted(schema),
        _ => value.clone(),
    };
    // Exactly one of several cannot be enforced while decoding; one of them can.
    let name = if name == "oneOf" { "anyOf" } else { name };
    (name.to_owned(), value)
}

fn describes_object(keywords: &Map<String, Value>) -> bool {
    keywords.contains_key("properties")
        || match keywords.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_closed_and_refused_keywords_gone_at_every_depth() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "age": {"type": "integer", "minimum": 0, "maximum": 150, "description": "years"},
                "tags": {
                    "type": "array", "minItems": 1, "maxItems": 9, "uniqueItems": true,
                    "items": {"type": "string", "minLength": 1, "pattern": "^a"},
                },
                "pair": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/leaf"}},
                "when": {"type": "string", "format": "date-time"},
                "odd": {"type": "string", "format": "iri"},
                "either": {"oneOf": [
                    {"type": ["object", "null"], "additionalProperties": true},
                    {"type": "number", "multipleOf": 2},
                ]},
            },
            "required": ["age"],
            "$defs": {"leaf": {"properties": {"x": {"exclusiveMinimum": 0}}}},
        });
        assert_eq!(
            adapted(&schema),
            json!({
                "type": "object",
                "properties": {
                    "age": {"type": "integer", "description": "years"},
                    "tags": {
                        "type": "array", "minItems": 1,
                        "items": {"type": "string", "pattern": "^a"},
                    },
                    "pair": {"type": "array", "items": {"$ref": "#/$defs/leaf"}},
                    "when": {"type": "string", "format": "date-time"},
                    "odd": {"type": "string"},
                    "either": {"anyOf": [
                        {"type": ["object", "null"], "additionalProperties": false},
                        {"type": "number"},
                    ]},
                },
                "required": ["age"],
                "$defs": {"leaf": {"properties": {"x": {}}, "additionalProperties": false}},
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn an_object_that_closing_would_empty_is_told() {
        let open = [
            json!({"type": "object"}),
            json!({"type": "object", "required": ["verdict"]}),
            json!({"properties": {"a": {}}, "required": ["a", "b"]}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"properties": {"a": {"anyOf": [{"type": "null"}, {"type": "object"}]}}}),
        ];
        for schema in open {
            assert!(!can_close(&schema), "{schema}");
        }
        let closed = [
            json!(true),
            json!({"type": "string"}),
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}),
            json!({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "string"}}}),
        ];
        for schema in closed {
            assert!(can_close(&schema), "{schema}");
        }
    }

    #[test]
    fn names_and_data_are_not_keywords() {
        let schema = json!({
            "type": "object",
            "properties": {"minimum": {"const": {"maximum": 1}}, "not": {"enum": [{"if": 1}]}},
            "required": ["minimum", "not"],
            "additionalProperties": false,
        });
        assert_eq!(adapted(&schema), schema);
    }
}
