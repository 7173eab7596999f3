//! How a model is told the form of its answer where its server cannot be made to enforce it.

use caliban_model::{OutputFormat, Request};
use serde_json::Value;

/// The schema that a request asks for.
pub(crate) fn wanted(request: &Request) -> Option<&Value> {
    match &request.output {
        OutputFormat::Text => None,
        OutputFormat::JsonSchema { schema, .. } => Some(schema),
    }
}

/// A paragraph for the system prompt.
pub(crate) fn instruction(schema: &Value) -> String {
    format!(
        "Your final answer must be nothing but one JSON value that validates against this JSON Schema: {schema}"
    )
}
