//! What the Messages API answers with, read leniently: unknown fields, events and deltas are
//! passed over.

use caliban_model::ModelInfo;
use serde::Deserialize;
use serde_json::Value;

/// One event of a stream.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        #[serde(default)]
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        #[serde(default)]
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        #[serde(default)]
        index: u64,
    },
    MessageDelta {
        #[serde(default)]
        delta: Ending,
        #[serde(default)]
        usage: Option<Usage>,
    },
    MessageStop,
    /// The whole document.
    Error(Value),
    #[serde(other)]
    Unknown,
}

/// A whole answer, or the head of a streamed one.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) content: Vec<Value>,
    #[serde(default)]
    pub(super) usage: Option<Usage>,
    #[serde(flatten)]
    pub(super) ending: Ending,
}

/// More of a block.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    /// Replaces the signature so far.
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(rename = "citations_delta")]
    Citation { citation: Value },
    #[serde(other)]
    Unknown,
}

/// How an answer ended.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Ending {
    #[serde(default)]
    pub(super) stop_reason: Option<String>,
    #[serde(default)]
    pub(super) stop_details: Option<StopDetails>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StopDetails {
    #[serde(default)]
    pub(super) category: Option<String>,
    #[serde(default)]
    pub(super) explanation: Option<String>,
}

/// Token counts. A stream sends them several times; absent ones keep their last value.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation: Option<CacheCreation>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct CacheCreation {
    #[serde(default)]
    ephemeral_5m_input_tokens: u64,
    #[serde(default)]
    ephemeral_1h_input_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Option<u64>,
}

impl Usage {
    /// Takes over what a later report says.
    pub(super) fn update(&mut self, later: Self) {
        fn replace<T>(kept: &mut Option<T>, later: Option<T>) {
            if later.is_some() {
                *kept = later;
            }
        }
        replace(&mut self.input_tokens, later.input_tokens);
        replace(
            &mut self.cache_read_input_tokens,
            later.cache_read_input_tokens,
        );
        replace(
            &mut self.cache_creation_input_tokens,
            later.cache_creation_input_tokens,
        );
        replace(&mut self.cache_creation, later.cache_creation);
        replace(&mut self.output_tokens, later.output_tokens);
        replace(&mut self.output_tokens_details, later.output_tokens_details);
    }

    /// The counts in disjoint buckets; nothing if the server reported none.
    pub(super) fn counts(&self) -> Option<caliban_model::Usage> {
        if *self == Self::default() {
            return None;
        }
        let (short, long) = self.cache_creation.map_or((0, 0), |split| {
            (
                split.ephemeral_5m_input_tokens,
                split.ephemeral_1h_input_tokens,
            )
        });
        // Later reports repeat only the total: what the split does not claim for an hour is
        // short-lived.
        let written = self
            .cache_creation_input_tokens
            .unwrap_or_else(|| short.saturating_add(long));
        let long = long.min(written);
        Some(caliban_model::Usage {
            input: self.input_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write_5m: written - long,
            cache_write_1h: long,
            output: self.output_tokens.unwrap_or(0),
            reasoning: self
                .output_tokens_details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(0),
            estimated: false,
        })
    }
}

/// One page of the model list.
#[derive(Debug, Deserialize)]
pub(super) struct ModelPage {
    #[serde(default)]
    pub(super) data: Vec<Model>,
    #[serde(default)]
    has_more: bool,
    #[serde(default)]
    last_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Model {
    id: String,
    #[serde(default)]
    max_input_tokens: Option<u64>,
    #[serde(default)]
    max_tokens: Option<u64>,
}

impl ModelPage {
    /// The id after which the next page starts, if there is one.
    pub(super) fn next(&self) -> Option<&str> {
        if self.has_more {
            self.last_id.as_deref()
        } else {
            None
        }
    }
}

impl From<Model> for ModelInfo {
    fn from(model: Model) -> Self {
        Self {
            id: model.id,
            context_window: model.max_input_tokens,
            max_output: model.max_tokens,
        }
    }
}
