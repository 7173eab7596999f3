//! Deviations that real, mostly compatible servers show on the wire.

use serde::{Deserialize, Serialize};

/// One deviation. Those about tool calls concern chat completions unless they say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quirk {
    /// No token counts anywhere, in every family.
    NoUsage,
    NoToolIndex,
    AllIndexesZero,
    NoToolIds,
    /// The id is sent again with every fragment.
    RepeatedIds,
    /// Arguments come in one fragment together with the name.
    WholeArguments,
    /// Arguments are a JSON object instead of a string.
    ObjectArguments,
    /// Arguments are the empty string (calls without parameters).
    EmptyArguments,
    /// The name follows after the first fragment.
    NameLate,
    NoDoneMarker,
    /// The stop reason is never sent, in every family that has one.
    NoFinishReason,
    /// Cumulative usage on every chunk instead of a final one.
    UsageEveryChunk,
    ContentAsParts,
    /// Thinking text is sent as `reasoning_content`.
    ReasoningContent,
    /// Thinking text is sent as `reasoning`.
    Reasoning,
    /// The finish reason is `stop` although there are tool calls.
    StopDespiteTools,
    /// Server-sent events end their lines with `\r\n`.
    Crlf,
    NoSpaceAfterData,
    /// A keep-alive comment before every event; Anthropic streams also get pings.
    Comments,
    /// Gemini and Ollama tool calls carry no id.
    NoIds,
}

/// The deviations of one reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Quirks(Vec<Quirk>);

impl Quirks {
    pub fn has(&self, quirk: Quirk) -> bool {
        self.0.contains(&quirk)
    }

    pub fn add(&mut self, quirk: Quirk) {
        if !self.has(quirk) {
            self.0.push(quirk);
        }
    }
}

impl FromIterator<Quirk> for Quirks {
    fn from_iter<I: IntoIterator<Item = Quirk>>(quirks: I) -> Self {
        let mut set = Self::default();
        quirks.into_iter().for_each(|quirk| set.add(quirk));
        set
    }
}
