//! What Ollama answers. Everything is optional, because servers of all ages are met.

use caliban_model::ModelInfo;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// One line of a streamed answer, or all of an answer at once.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) model: Option<String>,
    pub(super) message: Option<Message>,
    pub(super) done: Option<bool>,
    pub(super) done_reason: Option<String>,
    pub(super) prompt_eval_count: Option<u64>,
    pub(super) eval_count: Option<u64>,
    #[serde(flatten)]
    pub(super) failure: Failure,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) content: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    pub(super) id: Option<String>,
    pub(super) function: Function,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) arguments: Option<Value>,
}

/// The error form of refusals and of lines inside a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    error: Option<Value>,
    status: Option<Value>,
    /// Where a cloud model's user can sign in.
    pub(super) signin_url: Option<String>,
}

impl Failure {
    /// The server's words, if this is a failure at all.
    pub(super) fn message(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        let text = error
            .as_str()
            .or_else(|| error.get("message").and_then(Value::as_str));
        Some(text.map_or_else(|| error.to_string(), str::to_owned))
    }

    pub(super) fn status(&self) -> Option<u16> {
        u16::try_from(self.status.as_ref()?.as_u64()?).ok()
    }
}

/// What `api/show` tells about a model.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Show {
    /// Absent on older servers.
    pub(super) capabilities: Option<Vec<String>>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) model_info: Map<String, Value>,
}

/// The models of `api/tags`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tags {
    pub(super) models: Option<Vec<Tag>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tag {
    name: String,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    context_length: Option<u64>,
}

impl From<Tag> for ModelInfo {
    fn from(tag: Tag) -> Self {
        Self {
            id: tag.name,
            context_window: tag.details.and_then(|details| details.context_length),
            max_output: None,
        }
    }
}

fn or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Map<String, Value>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
