//! What is read of an event, an output item and a whole response.

use serde::Deserialize;
use serde_json::Value;

use crate::openai::lenient::{entries, lenient};

#[derive(Debug, Default, Deserialize)]
pub(super) struct Event {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output_index: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) content_index: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) summary_index: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) delta: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) arguments: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) refusal: String,
    /// Kept as it is, for items that go back unchanged.
    #[serde(default)]
    pub(super) item: Value,
    #[serde(default)]
    pub(super) response: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Item {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) call_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) arguments: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) phase: Option<String>,
    #[serde(default, deserialize_with = "entries")]
    pub(super) summary: Vec<Part>,
    #[serde(default, deserialize_with = "entries")]
    pub(super) content: Vec<Part>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Part {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) refusal: String,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Response {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) model: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output: Vec<Value>,
    #[serde(default)]
    pub(super) usage: Value,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) incomplete_details: Incomplete,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Incomplete {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reason: String,
}
