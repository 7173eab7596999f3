//! Small readers for JSON bodies of unknown quality.

use std::hash::{Hash, Hasher};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The elements of an array field; empty when it is none.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A field that is present and not null.
pub(crate) fn given<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|found| !found.is_null())
}

pub(crate) fn is_true(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// `[a-zA-Z0-9_-]{1,max}`, the shape of names and ids in most APIs.
pub(crate) fn is_name(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

pub(crate) fn is_base64(data: &str) -> bool {
    !data.is_empty() && STANDARD.decode(data).is_ok()
}

pub(crate) fn to_base64(data: &str) -> String {
    STANDARD.encode(data)
}

/// Whether any string below the value contains the needle.
pub(crate) fn any_string_contains(value: &Value, needle: &str) -> bool {
    match value {
        Value::String(text) => text.contains(needle),
        Value::Array(items) => items.iter().any(|item| any_string_contains(item, needle)),
        Value::Object(fields) => fields
            .values()
            .any(|field| any_string_contains(field, needle)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Hashes a value so that key order and cache markers make no difference.
pub(crate) fn hash_ignoring_cache(value: &Value, state: &mut impl Hasher) {
    match value {
        Value::Array(items) => {
            items.len().hash(state);
            for item in items {
                hash_ignoring_cache(item, state);
            }
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .iter()
                .filter(|(key, _)| *key != "cache_control")
                .collect();
            fields.sort_by_key(|(key, _)| *key);
            for (key, field) in fields {
                key.hash(state);
                hash_ignoring_cache(field, state);
            }
        }
        scalar => scalar.to_string().hash(state),
    }
}

/// Why a schema is not acceptable in strict mode, if it is not.
pub(crate) fn strict_violation(schema: &Value) -> Option<String> {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Some(
                "'additionalProperties' is required to be supplied and to be false.".into(),
            );
        }
        let required = list(schema, "required");
        if let Some(missing) = properties
            .keys()
            .find(|key| !required.iter().any(|r| r == key.as_str()))
        {
            return Some(format!(
                "'required' is required to be supplied and to be an array including every key in properties. Missing '{missing}'."
            ));
        }
        if let Some(found) = properties.values().find_map(strict_violation) {
            return Some(found);
        }
    }
    schema.get("items").and_then(strict_violation)
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use serde_json::json;

    use super::*;

    fn hash(value: &Value) -> u64 {
        let mut state = DefaultHasher::new();
        hash_ignoring_cache(value, &mut state);
        state.finish()
    }

    #[test]
    fn the_hash_sees_content_only() {
        let plain = json!({"a": 1, "b": [{"t": "x"}]});
        let marked = json!({"b": [{"t": "x", "cache_control": {"type": "ephemeral"}}], "a": 1});
        assert_eq!(hash(&plain), hash(&marked));
        assert_ne!(hash(&plain), hash(&json!({"a": 1, "b": [{"t": "y"}]})));
    }

    #[test]
    fn strict_schemas_list_every_property() {
        let good = json!({"type": "object", "properties": {"a": {"type": "string"}},
                          "required": ["a"], "additionalProperties": false});
        assert_eq!(strict_violation(&good), None);
        let open = json!({"type": "object", "properties": {"a": {}}, "required": ["a"]});
        assert!(
            strict_violation(&open)
                .unwrap()
                .contains("additionalProperties")
        );
        let nested = json!({"type": "array", "items":
            {"type": "object", "properties": {"a": {}}, "additionalProperties": false}});
        assert!(strict_violation(&nested).unwrap().contains("Missing 'a'"));
    }
}
