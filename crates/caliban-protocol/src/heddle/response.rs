//! Lines that the server writes, each field in the order it is written.

use serde::Serialize;
use serde_json::Value;

use super::envelope::Envelope;
use super::version::Version;

/// An answer, an event or a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Response {
    InitOk {
        id: String,
        /// Empty where the session could not begin.
        session_id: String,
        protocol_version: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Envelope>,
    },
    StatusOk {
        id: String,
        /// As the client named it.
        model: String,
        messages_count: usize,
        session_id: String,
        /// Whether a message is worked on.
        active: bool,
    },
    ShutdownOk {
        id: String,
    },
    /// A request that could not be served.
    Error {
        /// Null where the line had none.
        id: Option<String>,
        error: Envelope,
    },
    Event {
        event: Payload,
        event_seq: u64,
        send_id: String,
        #[serde(flatten)]
        correlation: Correlation,
    },
    Result(Box<SendResult>),
}

/// What a client gave to find its work again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Correlation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Payload {
    ContentDelta {
        text: String,
    },
    ToolStart {
        name: String,
        args: Value,
        /// The call, so that calls that run side by side can be told apart.
        id: String,
    },
    ToolEnd {
        name: String,
        result_preview: String,
        id: String,
    },
    Usage {
        #[serde(flatten)]
        tokens: Tokens,
        #[serde(skip_serializing_if = "Option::is_none")]
        routed_model: Option<String>,
    },
    Error {
        code: super::Code,
        message: String,
        retryable: bool,
        /// Only where a provider failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        details: Value,
    },
    PermissionRequest {
        name: String,
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    PermissionDenied {
        name: String,
        reason: String,
    },
    PlanComplete {
        plan: String,
    },
    ContextPrune {
        messages_pruned: usize,
        tokens_before: u64,
        tokens_after: u64,
    },
    ContextCompact,
    Heartbeat {
        duration_ms: u64,
    },
    /// Only from 0.5 on.
    TurnState {
        state: TurnState,
        iteration: u32,
    },
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    Model,
    Tools,
    Permission,
    Compaction,
}

/// Tokens of one call or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    #[serde(rename = "prompt_tokens")]
    pub prompt: u64,
    #[serde(rename = "completion_tokens")]
    pub completion: u64,
    #[serde(rename = "total_tokens")]
    pub total: u64,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MadeCall {
    pub name: String,
    pub args: Value,
}

/// The end of a `send`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SendResult {
    pub id: String,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    pub tool_calls_made: Vec<MadeCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    pub iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Envelope>,
    #[serde(flatten)]
    pub correlation: Correlation,
    #[serde(flatten)]
    pub latencies: Option<Latencies>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routed_model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    Error,
}

/// Where the time went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Latencies {
    #[serde(rename = "model_latency_ms")]
    pub model: u64,
    #[serde(rename = "tool_latency_ms")]
    pub tool: u64,
    #[serde(rename = "total_latency_ms")]
    pub total: u64,
}

impl Tokens {
    pub(super) fn new(prompt: u64, completion: u64) -> Self {
        Self {
            prompt,
            completion,
            total: prompt.saturating_add(completion),
        }
    }
}

impl Response {
    pub fn error(id: Option<String>, error: Envelope) -> Self {
        Self::Error { id, error }
    }

    /// The answer to a client whose version is another.
    pub fn mismatch(id: String, mismatch: &super::Mismatch) -> Self {
        Self::InitOk {
            id,
            session_id: String::new(),
            protocol_version: Version::V0_2.as_str(),
            error: Some(Envelope::new(
                super::Code::ProtocolVersionMismatch,
                mismatch.to_string(),
            )),
        }
    }

    /// As it is written: one line.
    pub fn line(&self) -> String {
        // Only a map with keys that are no texts could fail, and there is none.
        crate::line(&serde_json::to_value(self).unwrap_or_default())
    }
}
