//! Holds lines to the schema of frames.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

static SCHEMA: LazyLock<Value> = LazyLock::new(caliban_protocol::frames_schema);
static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&SCHEMA).unwrap());

/// Reads a line that must be a frame.
pub(crate) fn frame(line: &str) -> Value {
    let value: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    check(&value);
    value
}

/// Checks those lines of an output that look like frames: where it is not known what was asked
/// for, the rest may be anything.
pub(super) fn check_recognised(output: &str) {
    for line in output.lines() {
        if let Ok(value) = serde_json::from_str::<Value>(line)
            && is_known(&value["type"])
        {
            check(&value);
        }
    }
}

fn is_known(kind: &Value) -> bool {
    let kinds = SCHEMA["oneOf"].as_array().unwrap();
    kinds
        .iter()
        .any(|frame| frame["properties"]["type"]["const"] == *kind)
}

fn check(frame: &Value) {
    let complaints: Vec<String> = VALIDATOR
        .iter_errors(frame)
        .map(|error| error.to_string())
        .collect();
    assert!(complaints.is_empty(), "{frame}\n{}", complaints.join("\n"));
}
