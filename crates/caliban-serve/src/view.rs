//! How a tab is doing.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tab at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TabView {
    pub tab: String,
    /// The id of its session.
    pub session: String,
    pub state: TabState,
    /// How the newest prompt ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// What is worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// What waits, in order.
    pub queue: Vec<String>,
    /// What waits for an answer.
    pub questions: Vec<QuestionView>,
    pub cwd: String,
    pub model: String,
    pub mode: String,
    /// Prompts that were taken since it was opened.
    pub prompts: u64,
    /// What the session cost in this process.
    pub total_cost_usd: f64,
    pub context: Context,
    /// The number of the last event.
    pub seq: u64,
    /// Which stream the numbers belong to: a server that begins anew has another one.
    pub epoch: String,
    /// Its session is written away until it is needed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// Why it is `dead` or `ended`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How full the model's window is, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// What the conversation takes; not known before the first answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// What fits, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TabState {
    /// Its session begins.
    Connecting,
    Idle,
    Running,
    /// A question waits for an answer.
    Waiting,
    /// It is over.
    Ended,
    /// Its session could not begin.
    Dead,
}

/// How a prompt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Last {
    Completed,
    Failed,
    Cancelled,
}

/// A question that waits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionView {
    pub question: String,
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Timestamp,
    /// When it becomes a refusal.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub deadline: Timestamp,
    /// The frame that asks.
    pub event: Value,
}
