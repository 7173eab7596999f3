//! A line of what is told.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

/// Something that happened in a tab. It stands for the events `first` to `seq`, of which there is
/// usually one: numbers have no holes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Told {
    pub tab: Arc<str>,
    /// The first event that this line stands for, where it is more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    pub seq: u64,
    /// The request that was worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<str>>,
    /// A frame of the session, or one of the tab's own.
    #[schemars(with = "serde_json::Value")]
    pub event: Arc<RawValue>,
}

impl Told {
    /// One line, with its newline. The Unicode line separators, which some readers break lines at,
    /// are escaped already.
    pub fn line(&self) -> String {
        // Only a map with keys that are no texts could fail, and there is none.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}
