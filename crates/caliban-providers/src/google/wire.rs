//! What Gemini answers. Everything is optional, because the API adds and omits fields freely.

use caliban_model::{ModelInfo, Usage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One `GenerateContentResponse`; a streamed answer is a sequence of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk {
    pub(super) candidates: Option<Vec<Candidate>>,
    pub(super) prompt_feedback: Option<PromptFeedback>,
    pub(super) usage_metadata: Option<UsageMetadata>,
    pub(super) model_version: Option<String>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate {
    pub(super) content: Option<Content>,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    /// Unread, because a part of an unknown kind must be returned as it came.
    pub(super) parts: Option<Vec<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Part {
    pub(super) text: Option<String>,
    pub(super) thought: Option<bool>,
    pub(super) thought_signature: Option<String>,
    pub(super) function_call: Option<FunctionCall>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) args: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
    pub(super) block_reason_message: Option<String>,
}

/// Counts that cannot be read are zero: no answer fails for its statistics.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "these are the names on the wire")]
pub(super) struct UsageMetadata {
    #[serde(deserialize_with = "or_default")]
    prompt_token_count: u64,
    #[serde(deserialize_with = "or_default")]
    cached_content_token_count: u64,
    #[serde(deserialize_with = "or_default")]
    tool_use_prompt_token_count: u64,
    #[serde(deserialize_with = "or_default")]
    candidates_token_count: u64,
    #[serde(deserialize_with = "or_default")]
    thoughts_token_count: u64,
}

impl UsageMetadata {
    /// The prompt's count includes what the cache gave; the candidates' excludes thoughts.
    pub(super) fn usage(&self) -> Usage {
        Usage {
            input: self
                .prompt_token_count
                .saturating_add(self.tool_use_prompt_token_count)
                .saturating_sub(self.cached_content_token_count),
            cache_read: self.cached_content_token_count,
            output: self
                .candidates_token_count
                .saturating_add(self.thoughts_token_count),
            reasoning: self.thoughts_token_count,
            ..Usage::default()
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelPage {
    pub(super) models: Vec<Model>,
    pub(super) next_page_token: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Model {
    name: String,
    #[serde(deserialize_with = "or_default")]
    input_token_limit: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    output_token_limit: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    supported_generation_methods: Vec<String>,
}

impl Model {
    /// The entry of a model that can hold a conversation.
    pub(super) fn chat_model(self) -> Option<ModelInfo> {
        self.supported_generation_methods
            .iter()
            .any(|method| method == "generateContent")
            .then(|| ModelInfo {
                id: self
                    .name
                    .strip_prefix("models/")
                    .unwrap_or(&self.name)
                    .to_owned(),
                context_window: self.input_token_limit,
                max_output: self.output_token_limit,
            })
    }
}

/// Whatever does not have the expected type counts as absent.
fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(from)?).unwrap_or_default())
}
