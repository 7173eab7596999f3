//! What the Messages API answers with, read leniently: unknown fields, events and deltas are
//! passed over.

use std::borrow::Cow;

use caliban_model::ModelInfo;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One event of a stream.
#[derive(Debug)]
pub(super) enum Event<'a> {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta<'a>,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: Ending,
        usage: Option<Usage>,
    },
    MessageStop,
    /// The whole document.
    Error(Value),
    Unknown,
}

/// The fields of all kinds of events. They stay text until the kind is known: thousands of events
/// make an answer, and serde would copy each to look for its kind first.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    index: Option<&'a RawValue>,
    #[serde(default, borrow)]
    message: Option<&'a RawValue>,
    #[serde(default, borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    delta: Option<&'a RawValue>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
}

impl<'a> Event<'a> {
    pub(super) fn read(data: &'a str) -> serde_json::Result<Self> {
        let fields: Fields<'_> = serde_json::from_str(data)?;
        let index = || fields.index.map_or(Ok(0), |index| read(Some(index)));
        Ok(match &*fields.kind {
            "message_start" => Self::MessageStart {
                message: read(fields.message)?,
            },
            "content_block_start" => Self::ContentBlockStart {
                index: index()?,
                content_block: read(fields.content_block)?,
            },
            "content_block_delta" => Self::ContentBlockDelta {
                index: index()?,
                delta: Delta::read(fields.delta)?,
            },
            "content_block_stop" => Self::ContentBlockStop { index: index()? },
            "message_delta" => Self::MessageDelta {
                delta: fields
                    .delta
                    .map_or_else(|| Ok(Ending::default()), |delta| read(Some(delta)))?,
                usage: read(fields.usage)?,
            },
            "message_stop" => Self::MessageStop,
            "error" => Self::Error(serde_json::from_str(data)?),
            _ => Self::Unknown,
        })
    }
}

/// A field that is missing is read as null, which most types refuse.
fn read<'a, T: Deserialize<'a>>(field: Option<&'a RawValue>) -> serde_json::Result<T> {
    serde_json::from_str(field.map_or("null", RawValue::get))
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
#[derive(Debug)]
pub(super) enum Delta<'a> {
    Text(Cow<'a, str>),
    Thinking(Cow<'a, str>),
    /// Replaces the signature so far.
    Signature(Cow<'a, str>),
    Input(Cow<'a, str>),
    Citation(Value),
    Unknown,
}

impl<'a> Delta<'a> {
    fn read(delta: Option<&'a RawValue>) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Fields<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            #[serde(default, borrow)]
            text: Option<&'a RawValue>,
            #[serde(default, borrow)]
            thinking: Option<&'a RawValue>,
            #[serde(default, borrow)]
            signature: Option<&'a RawValue>,
            #[serde(default, borrow)]
            partial_json: Option<&'a RawValue>,
            #[serde(default, borrow)]
            citation: Option<&'a RawValue>,
        }
        /// A text that is borrowed where nothing in it is escaped.
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

        let fields: Fields<'a> = read(delta)?;
        let text = |field| read(field).map(|Text(text)| text);
        Ok(match &*fields.kind {
            "text_delta" => Self::Text(text(fields.text)?),
            "thinking_delta" => Self::Thinking(text(fields.thinking)?),
            "signature_delta" => Self::Signature(text(fields.signature)?),
            "input_json_delta" => Self::Input(text(fields.partial_json)?),
            "citations_delta" => Self::Citation(read(fields.citation)?),
            _ => Self::Unknown,
        })
    }
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
            charged: None,
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
