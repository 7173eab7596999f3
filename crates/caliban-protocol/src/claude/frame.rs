//! The frames of this dialect, each field in the order it is written; `type` is always first.

use caliban_model::{StopReason, Usage};
use caliban_session::{Facts, PluginFacts};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A frame on standard output.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Frame {
    System(Box<System>),
    Assistant(Box<Assistant>),
    User(Box<User>),
    StreamEvent(Box<StreamEvent>),
    RateLimitEvent(RateLimit),
    Result(Box<Outcome>),
}

impl Frame {
    pub(super) fn value(&self) -> Value {
        // Only a map with keys that are no texts could fail, and there is none.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The provider wants fewer requests.
#[derive(Debug, Serialize)]
pub(super) struct RateLimit {
    #[serde(rename = "rate_limit_info")]
    pub(super) info: RateLimitInfo,
    pub(super) session_id: String,
    pub(super) uuid: String,
}

#[derive(Debug, Serialize)]
pub(super) struct RateLimitInfo {
    pub(super) status: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct System {
    #[serde(flatten)]
    pub(super) body: SystemBody,
    pub(super) session_id: String,
    pub(super) uuid: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum SystemBody {
    Init(Box<InitFacts>),
    Status {
        status: Option<&'static str>,
        #[serde(rename = "permissionMode", skip_serializing_if = "Option::is_none")]
        permission_mode: Option<String>,
    },
    CompactBoundary {
        compact_metadata: CompactMetadata,
    },
    SessionStateChanged {
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        sdk_host_only: Option<bool>,
    },
    PermissionDenied {
        tool_name: String,
        tool_use_id: String,
        message: String,
    },
    TaskStarted {
        task_id: String,
        tool_use_id: String,
        description: String,
        task_type: &'static str,
    },
    TaskNotification {
        task_id: String,
        tool_use_id: String,
        status: &'static str,
        output_file: &'static str,
        summary: String,
    },
    HookStarted {
        hook_id: String,
        hook_name: String,
        hook_event: String,
    },
    HookResponse {
        hook_id: String,
        hook_name: String,
        hook_event: String,
        output: String,
        stdout: String,
        stderr: &'static str,
        outcome: &'static str,
    },
    ApiRetry {
        attempt: u32,
        max_retries: u32,
        retry_delay_ms: u64,
        error_status: Option<u16>,
        error: &'static str,
    },
    Informational {
        content: String,
        level: &'static str,
    },
}

/// What a turn works with.
#[derive(Debug, Clone, Default, Serialize)]
pub struct InitFacts {
    pub cwd: String,
    pub tools: Vec<String>,
    pub mcp_servers: Vec<McpServer>,
    pub model: String,
    #[serde(rename = "permissionMode")]
    pub permission_mode: String,
    pub slash_commands: Vec<String>,
    #[serde(rename = "apiKeySource")]
    pub api_key_source: String,
    pub claude_code_version: &'static str,
    pub output_style: String,
    pub agents: Vec<String>,
    pub skills: Vec<String>,
    pub plugins: Vec<Value>,
    pub memory_paths: Map<String, Value>,
    pub fast_mode_state: &'static str,
}

/// The plugins that take part, as this dialect lists them.
pub fn plugin_rows(facts: &Facts) -> Vec<Value> {
    let row = |it: &PluginFacts| json!({"name": it.name, "path": it.path, "source": it.source});
    facts.plugins.iter().map(row).collect()
}

/// A server of tools and how it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct McpServer {
    pub name: String,
    pub status: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct CompactMetadata {
    pub(super) trigger: &'static str,
    pub(super) pre_tokens: u64,
    pub(super) post_tokens: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Assistant {
    pub(super) message: AssistantMessage,
    pub(super) parent_tool_use_id: Option<String>,
    pub(super) session_id: String,
    pub(super) uuid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) aborted: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct AssistantMessage {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) role: &'static str,
    pub(super) model: String,
    pub(super) content: Vec<Value>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_sequence: Option<String>,
    pub(super) usage: Tokens,
}

#[derive(Debug, Serialize)]
pub(super) struct User {
    pub(super) message: UserMessage,
    pub(super) parent_tool_use_id: Option<String>,
    pub(super) session_id: String,
    pub(super) uuid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_use_result: Option<Value>,
    #[serde(rename = "isReplay", skip_serializing_if = "Option::is_none")]
    pub(super) is_replay: Option<bool>,
    #[serde(rename = "isSynthetic", skip_serializing_if = "Option::is_none")]
    pub(super) is_synthetic: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct UserMessage {
    pub(super) role: &'static str,
    pub(super) content: Value,
}

#[derive(Debug, Serialize)]
pub(super) struct StreamEvent {
    pub(super) event: Value,
    pub(super) parent_tool_use_id: Option<String>,
    pub(super) session_id: String,
    pub(super) uuid: String,
}

/// The end of a turn.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) subtype: &'static str,
    pub(super) is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_error_status: Option<Value>,
    pub(super) duration_ms: u64,
    pub(super) duration_api_ms: u64,
    pub(super) num_turns: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) session_id: String,
    pub(super) total_cost_usd: f64,
    pub(super) usage: TurnTokens,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Map<String, Value>,
    pub(super) permission_denials: Vec<DeniedCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deferred_tool_use: Option<DeferredCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) structured_output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) terminal_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) errors: Option<Vec<String>>,
    pub(super) uuid: String,
}

/// A call that was not permitted.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DeniedCall {
    #[serde(rename = "tool_name")]
    pub(super) name: String,
    #[serde(rename = "tool_use_id")]
    pub(super) id: String,
    #[serde(rename = "tool_input")]
    pub(super) input: Value,
}

/// A call that is to be decided about later.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DeferredCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
}

/// What one call of the model consumed.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Tokens {
    #[serde(rename = "input_tokens")]
    input: u64,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_creation: u64,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: u64,
    #[serde(rename = "output_tokens")]
    output: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            cache_creation: usage.cache_write(),
            cache_read: usage.cache_read,
            output: usage.output,
        }
    }
}

/// What a turn consumed.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct TurnTokens {
    #[serde(flatten)]
    pub(super) tokens: Tokens,
    pub(super) server_tool_use: ServerTools,
    pub(super) service_tier: &'static str,
    pub(super) cache_creation: CacheCreation,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct ServerTools {
    pub(super) web_search_requests: u64,
    pub(super) web_fetch_requests: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct CacheCreation {
    pub(super) ephemeral_1h_input_tokens: u64,
    pub(super) ephemeral_5m_input_tokens: u64,
}

impl From<Usage> for TurnTokens {
    fn from(usage: Usage) -> Self {
        Self {
            tokens: usage.into(),
            server_tool_use: ServerTools::default(),
            service_tier: "standard",
            cache_creation: CacheCreation {
                ephemeral_1h_input_tokens: usage.cache_write_1h,
                ephemeral_5m_input_tokens: usage.cache_write_5m,
            },
        }
    }
}

/// Why the model stopped, as its API says it.
pub(super) fn stop_reason(reason: &StopReason) -> String {
    match reason {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal | StopReason::ContentFilter => "refusal",
        StopReason::ContextExceeded => "model_context_window_exceeded",
        StopReason::Pause => "pause_turn",
        StopReason::Other(other) => other,
    }
    .to_owned()
}
