//! What a provider yields while it answers.

use std::time::Duration;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::{Block, Dollars, Origin, Purpose, RetryCategory, Usage};

/// One step of an answer.
///
/// Order: any number of [`Routed`](Self::Routed), [`Rerouted`](Self::Rerouted),
/// [`Retrying`](Self::Retrying), [`Wasted`](Self::Wasted) and [`Warning`](Self::Warning), then
/// [`Started`](Self::Started), then deltas and finished blocks, [`Usage`](Self::Usage) at any
/// time, and [`Stopped`](Self::Stopped) exactly once at the end. Blocks carry their position in
/// the message. [`BlockEnded`](Self::BlockEnded) is authoritative: the message is the sequence of
/// ended blocks, deltas are only for showing progress. A stream that fails yields one error and
/// ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum StreamEvent {
    Started {
        /// The model that answers, as the provider names it.
        model: String,
    },
    TextDelta {
        index: usize,
        text: String,
    },
    ThinkingDelta {
        index: usize,
        text: String,
    },
    ToolStarted {
        index: usize,
        id: String,
        name: String,
    },
    ToolInputDelta {
        index: usize,
        json: String,
    },
    BlockEnded {
        index: usize,
        block: Block,
    },
    /// Totals of this call so far; the last one counts.
    Usage {
        usage: Usage,
    },
    Stopped {
        reason: StopReason,
        /// The provider's own explanation, for refusals and unusual ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// The call failed and is made again after a pause.
    Retrying(Retry),
    /// Another model answers than the one that was asked for, as it is configured.
    Routed {
        origin: Origin,
    },
    /// Another route answers than the one before it. What came before is void.
    Rerouted(Hop),
    /// Paid for and of no use: an answer that lost a race, or broke off before it could say what
    /// it cost.
    Wasted {
        origin: Origin,
        usage: Usage,
    },
    Warning(Warning),
}

/// A change of the route that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The route that answers now.
    pub route_id: String,
    pub purpose: Purpose,
    pub kind: HopKind,
    pub from: Origin,
    pub to: Origin,
    pub reason: String,
    /// Marks for a prompt cache that the route before would have set, and that this one has no
    /// use for.
    pub markers_cleared: u32,
}

/// What a change of route comes of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HopKind {
    /// The call failed for good.
    Fallback,
    /// The route before was slower.
    Hedge,
    /// The route before was not asked at all, after earlier failures or for what it lacks.
    Skipped,
    /// So much is spent that a cheaper one goes on.
    Budget,
    /// Another route stood in, and the conversation goes back.
    Return,
}

impl HopKind {
    /// As frames and telemetry name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fallback => "fallback",
            Self::Hedge => "hedge",
            Self::Skipped => "skipped",
            Self::Budget => "budget",
            Self::Return => "return",
        }
    }
}

/// A route that was asked at the same time as another and is not needed: it is paid all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HedgeLoss {
    /// The route that lost.
    pub route_id: String,
    pub purpose: Purpose,
    pub from: Origin,
    /// Who answers; who lost, where nobody does.
    pub to: Origin,
    pub usage: Usage,
    /// In dollars, where the price is known.
    pub cost: Option<Decimal>,
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence,
    Refusal,
    ContentFilter,
    /// Prompt and answer together filled the model's window.
    ContextExceeded,
    /// The provider paused a long turn; sending the answer back continues it.
    Pause,
    Other(String),
}

/// A failed attempt that is about to be repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Number of the attempt that follows; the first retry is attempt 1.
    pub attempt: u32,
    pub max_retries: u32,
    #[serde(rename = "retry_delay_ms", with = "millis")]
    pub delay: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    pub category: RetryCategory,
    pub message: String,
    pub shown: Shown,
}

/// Whether the failed attempt had already produced content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    Nothing,
    /// Everything since the start of this call is void; the answer begins anew.
    Superseded,
}

/// Something the user should know that does not end the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    #[serde(flatten)]
    pub kind: WarningKind,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WarningKind {
    /// Another model answered than the one asked for.
    ModelMismatch { requested: String, actual: String },
    /// The model would reject this parameter, so it was not sent.
    ParameterDropped { parameter: String },
    /// The provider reported no usage; the numbers are estimated.
    UsageEstimated,
    /// Another route answers; what was said of this turn is void.
    Rerouted { hop: Box<Hop> },
    /// A route lost a race, and is paid for what it has read.
    HedgeLoss { loss: Box<HedgeLoss> },
}

impl WarningKind {
    /// The name this warning carries in protocol frames.
    pub fn subtype(&self) -> &'static str {
        match self {
            Self::ModelMismatch { .. } => "model_mismatch",
            Self::ParameterDropped { .. } => "parameter_dropped",
            Self::UsageEstimated => "usage_estimated",
            Self::Rerouted { .. } => "fallback_model",
            Self::HedgeLoss { .. } => "hedge_loss",
        }
    }
}

impl Warning {
    pub fn dropped(parameter: &str, model: &str, why: &str) -> Self {
        Self {
            kind: WarningKind::ParameterDropped {
                parameter: parameter.to_owned(),
            },
            message: format!("`{parameter}` was not sent to {model}: {why}"),
        }
    }

    pub fn rerouted(hop: Hop) -> Self {
        Self {
            message: format!("{} answers instead: {}", hop.to.model, hop.reason),
            kind: WarningKind::Rerouted { hop: Box::new(hop) },
        }
    }

    pub fn hedge_loss(loss: HedgeLoss) -> Self {
        let read = loss.usage.total_input();
        let cost = loss.cost.map_or_else(
            || "at an unknown price".to_owned(),
            |cost| format!("for {}", Dollars(cost)),
        );
        Self {
            message: format!(
                "`{}` ({}) lost a race to {}: it read {read} tokens and wrote {}, {cost}",
                loss.route_id, loss.from, loss.to, loss.usage.output
            ),
            kind: WarningKind::HedgeLoss {
                loss: Box::new(loss),
            },
        }
    }

    pub fn model_mismatch(requested: &str, actual: &str) -> Self {
        Self {
            kind: WarningKind::ModelMismatch {
                requested: requested.to_owned(),
                actual: actual.to_owned(),
            },
            message: format!(
                "model mismatch: requested \"{requested}\" but provider responded with \"{actual}\""
            ),
        }
    }
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
