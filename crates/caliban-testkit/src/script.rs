//! The provider-neutral script: what the model says, when, and how it is delivered.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;
use crate::quirk::{Quirk, Quirks};

/// Everything one server does: its replies and the rules it holds requests to.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    pub replies: Vec<Reply>,
    /// What happens once no unused reply matches a request.
    pub after: After,
    pub checks: Checks,
    /// The only key accepted; without it any key is.
    pub require_key: Option<String>,
    /// Models offered by the listing endpoints. When non-empty, Ollama requests for others are a 404.
    pub models: Vec<ModelEntry>,
    /// Thinking signatures, encrypted reasoning and thought signatures accepted although this
    /// server never issued them (histories recorded elsewhere).
    pub known_signatures: Vec<String>,
    /// What stands at other addresses: tokens, roles, what a machine says of itself.
    pub documents: Vec<Document>,
}

/// An answer at one address, the same every time.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub status: u16,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    pub body: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// The last reply of the script that matches the request is given again.
    RepeatLast,
    /// HTTP 500 that names the exhausted script.
    #[default]
    Fail,
    /// The script starts over.
    Cycle,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Checks {
    #[default]
    On,
    /// Bodies are checked but no key needs to be present, as on a local server.
    Keyless,
    Off,
}

/// One model of the listing endpoints.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    pub id: String,
    #[serde(default = "default_context")]
    pub context_length: u64,
    #[serde(default = "default_output")]
    pub max_output: u64,
    /// Ollama's capability names (`completion`, `tools`, `vision`, `thinking`).
    #[serde(default = "default_capabilities")]
    pub capabilities: Vec<String>,
}

fn default_context() -> u64 {
    131_072
}

fn default_output() -> u64 {
    32_768
}

fn default_capabilities() -> Vec<String> {
    ["completion", "tools"].map(String::from).to_vec()
}

/// One answer, or one failure in place of an answer.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// Requests that do not match leave this reply for later ones.
    pub when: Option<Match>,
    /// How often the reply is used; once when absent.
    pub times: Option<u32>,
    pub blocks: Vec<Block>,
    /// Derived from the blocks when absent.
    pub stop: Option<Stop>,
    pub usage: Option<Usage>,
    /// Wait before the first byte.
    pub delay_ms: u64,
    /// Wait between two chunks.
    pub chunk_delay_ms: u64,
    pub chunking: Chunking,
    pub fault: Option<Fault>,
    /// Delivery pauses after so many events, before the last one at the latest, until the owner of
    /// the server releases it; at 0, and on a request that does not stream, before the first byte.
    pub hold_after: Option<usize>,
    pub quirks: Quirks,
    /// The model name reported back; the requested one when absent.
    pub model: Option<String>,
}

/// Conditions on a request; all given ones must hold.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// The latest user-written text (not a tool result) contains this.
    pub last_user: Option<String>,
    /// Any text of the conversation or system prompt contains this.
    pub any_text: Option<String>,
    /// Whether the conversation holds a tool result.
    pub tool_result: Option<Presence>,
    /// The requested model is exactly this.
    pub model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    Present,
    Absent,
}

/// One piece of model output.
///
/// Thinking is delivered the way the request asked for it: emptied on Anthropic when the display
/// is `omitted` (the default of newer models), without a summary on Responses unless one was
/// requested, left out on Gemini without `includeThoughts`, on Ollama with `think:false`, and on
/// chat completions unless a quirk names the field that carries it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Block {
    Text(Prose),
    Thinking {
        text: String,
        /// Generated and remembered when absent.
        #[serde(default)]
        signature: Option<String>,
    },
    /// Only Anthropic can express this; the other families leave it out.
    RedactedThinking {
        data: String,
    },
    ToolCall {
        name: String,
        input: Value,
        /// Generated in the family's style when absent.
        #[serde(default)]
        id: Option<String>,
    },
}

/// Text, cut into deltas by the server or by the script.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Prose {
    Whole(String),
    Pieces(Vec<String>),
}

/// Why the model stopped; each family gets its nearest own value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence(String),
    Refusal,
    ContentFilter,
    ContextExceeded,
    Pause,
    /// Sent as it is where the family has a stop string.
    Raw(String),
}

/// Token counts in neutral terms: `input` is uncached only, `output` includes `reasoning`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write_5m: u64,
    pub cache_write_1h: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Usage {
    /// What a reply without a usage of its own reports.
    pub const SMALL: Usage = Usage {
        input: 12,
        cache_read: 0,
        cache_write_5m: 0,
        cache_write_1h: 0,
        output: 7,
        reasoning: 0,
    };

    pub(crate) fn cache_write(&self) -> u64 {
        self.cache_write_5m + self.cache_write_1h
    }

    pub(crate) fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write()
    }
}

/// How a streamed body is cut into HTTP chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    #[default]
    PerEvent,
    Whole,
    /// Every n bytes, whatever they split (lines, code points).
    Bytes(NonZeroUsize),
}

impl Script {
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: replies.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Reads a script file's content.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    #[must_use]
    pub fn after(mut self, after: After) -> Self {
        self.after = after;
        self
    }

    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    #[must_use]
    pub fn require_key(mut self, key: impl Into<String>) -> Self {
        self.require_key = Some(key.into());
        self
    }

    #[must_use]
    pub fn model(mut self, entry: ModelEntry) -> Self {
        self.models.push(entry);
        self
    }

    #[must_use]
    pub fn document(mut self, method: &str, path: &str, body: impl std::fmt::Display) -> Self {
        self.documents.push(Document {
            method: method.to_owned(),
            path: path.to_owned(),
            status: 200,
            headers: Vec::new(),
            body: body.to_string(),
        });
        self
    }

    #[must_use]
    pub fn known_signature(mut self, signature: impl Into<String>) -> Self {
        self.known_signatures.push(signature.into());
        self
    }
}

impl ModelEntry {
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            context_length: default_context(),
            max_output: default_output(),
            capabilities: default_capabilities(),
        }
    }

    #[must_use]
    pub fn context_length(mut self, tokens: u64) -> Self {
        self.context_length = tokens;
        self
    }

    #[must_use]
    pub fn capabilities<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.capabilities = names.map(String::from).to_vec();
        self
    }
}

impl Match {
    pub fn last_user(text: impl Into<String>) -> Self {
        Self {
            last_user: Some(text.into()),
            ..Self::default()
        }
    }

    pub fn any_text(text: impl Into<String>) -> Self {
        Self {
            any_text: Some(text.into()),
            ..Self::default()
        }
    }

    pub fn tool_result(presence: Presence) -> Self {
        Self {
            tool_result: Some(presence),
            ..Self::default()
        }
    }

    pub fn model(id: impl Into<String>) -> Self {
        Self {
            model: Some(id.into()),
            ..Self::default()
        }
    }
}

impl Reply {
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and_text(text)
    }

    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::default().and_tool(name, input)
    }

    /// Several calls in one turn.
    pub fn tools<N: Into<String>>(calls: impl IntoIterator<Item = (N, Value)>) -> Self {
        calls
            .into_iter()
            .fold(Self::default(), |reply, (name, input)| {
                reply.and_tool(name, input)
            })
    }

    pub fn fault(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.block(Block::Text(Prose::Whole(text.into())))
    }

    #[must_use]
    pub fn and_tool(self, name: impl Into<String>, input: Value) -> Self {
        self.block(Block::ToolCall {
            name: name.into(),
            input,
            id: None,
        })
    }

    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Puts a thinking block before everything else.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.blocks.insert(
            0,
            Block::Thinking {
                text: text.into(),
                signature: None,
            },
        );
        self
    }

    /// Fails this answer while it is delivered (the mid-stream faults), or instead of it.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Holds this answer back after so many events until it is released; see
    /// [`crate::ModelServer::release`].
    #[must_use]
    pub fn hold_after(mut self, events: usize) -> Self {
        self.hold_after = Some(events);
        self
    }

    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    #[must_use]
    pub fn when(mut self, condition: Match) -> Self {
        self.when = Some(condition);
        self
    }

    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    #[must_use]
    pub fn delay_ms(mut self, millis: u64) -> Self {
        self.delay_ms = millis;
        self
    }

    #[must_use]
    pub fn chunk_delay_ms(mut self, millis: u64) -> Self {
        self.chunk_delay_ms = millis;
        self
    }

    #[must_use]
    pub fn chunking(mut self, chunking: Chunking) -> Self {
        self.chunking = chunking;
        self
    }

    #[must_use]
    pub fn quirk(mut self, quirk: Quirk) -> Self {
        self.quirks.add(quirk);
        self
    }

    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_script_file_reads_in_short_form() {
        let script = Script::from_json(
            r#"{"replies":[
                 {"blocks":[{"thinking":{"text":"hm"}},{"text":"Hi"},{"text":["a","b"]},
                            {"tool_call":{"name":"Bash","input":{"command":"ls"}}}],
                  "stop":{"stop_sequence":"END"},"usage":{"input":3},"chunking":{"bytes":5},
                  "quirks":["no_usage","crlf"],"when":{"tool_result":"absent"}},
                 {"fault":{"status":{"code":429,"retry_after":"1"}}},
                 {"fault":"reset_before_headers"}],
                "after":"cycle","checks":"off","models":[{"id":"llama3.1"}]}"#,
        )
        .unwrap();
        assert_eq!(script.replies.len(), 3);
        assert_eq!(script.after, After::Cycle);
        assert_eq!(script.models[0].context_length, 131_072);
        assert!(script.replies[0].quirks.has(Quirk::Crlf));
        assert_eq!(
            script.replies[0].stop,
            Some(Stop::StopSequence("END".into()))
        );
        assert!(matches!(
            script.replies[2].fault,
            Some(Fault::ResetBeforeHeaders)
        ));
    }

    #[test]
    fn unknown_fields_are_rejected_at_every_level() {
        for text in [
            r#"{"reply":[]}"#,
            r#"{"replies":[{"block":[]}]}"#,
            r#"{"replies":[{"blocks":[{"thinking":{"text":"a","sig":"b"}}]}]}"#,
            r#"{"replies":[{"usage":{"tokens":1}}]}"#,
            r#"{"replies":[{"quirks":["sparkly"]}]}"#,
            r#"{"replies":[{"fault":{"status":{"status":429}}}]}"#,
        ] {
            assert!(Script::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_script_survives_writing_and_reading() {
        let script = Script::new([Reply::tool("Bash", json!({"a": 1})).thinking("t").times(2)]);
        let text = serde_json::to_string(&script).unwrap();
        let again = Script::from_json(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}
