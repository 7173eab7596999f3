//! What is read of a chunk or a whole completion.

use serde::Deserialize;
use serde_json::Value;

use crate::openai::lenient::{entries, lenient};

#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(default, deserialize_with = "entries")]
    pub(super) choices: Vec<Choice>,
    #[serde(default)]
    pub(super) usage: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) delta: Delta,
    /// Stands for `delta` when the answer is not streamed.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Delta,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    /// Text, or a list of parts.
    #[serde(default)]
    pub(super) content: Value,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) refusal: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reasoning_content: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reasoning: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reasoning_details: Vec<Value>,
    #[serde(default, deserialize_with = "entries")]
    pub(super) tool_calls: Vec<Fragment>,
}

/// A piece of a tool call, or a whole one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Fragment {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) function: Function,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    /// Text, or an object where the server thinks it helps.
    #[serde(default)]
    pub(super) arguments: Value,
}
