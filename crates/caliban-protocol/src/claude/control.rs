//! The control protocol: what a client may want, what we may want from it, and how either is
//! answered.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Files are to go back to how they were when a message came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindFiles {
    pub message: String,
    /// Only what would change is asked for.
    pub is_dry_run: bool,
}

/// What a client wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Initialize(Box<Initialize>),
    Interrupt {
        /// Prompts that wait are not wanted any more, either.
        cancel_queued: bool,
    },
    SetPermissionMode {
        mode: String,
    },
    /// Nothing means the default.
    SetModel {
        model: Option<String>,
    },
    SetMaxThinkingTokens {
        tokens: Option<u32>,
    },
    McpStatus,
    /// The servers that the client wants beside those that the session began with.
    McpSetServers {
        servers: BTreeMap<String, Value>,
    },
    McpReconnect {
        name: String,
    },
    McpToggle {
        name: String,
        enabled: bool,
    },
    /// Settings that have no effect here.
    ApplyNothing,
    RewindFiles(RewindFiles),
    GetContextUsage,
    StopTask,
    GetSettings,
    GetBinaryVersion,
    ListModels,
    GenerateSessionTitle,
    /// A prompt that waits is not wanted any more.
    CancelAsyncMessage {
        uuid: String,
    },
    EndSession,
    Unknown {
        subtype: String,
    },
    /// A known kind with fields that make no sense.
    Wrong {
        reason: String,
    },
}

/// How a client wants the session to be.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Initialize {
    /// By event; the client is asked where a matcher fits.
    pub hooks: Option<BTreeMap<String, Vec<HookMatchers>>>,
    pub sdk_mcp_servers: Vec<String>,
    pub json_schema: Option<Value>,
    pub system_prompt: Option<Texts>,
    pub append_system_prompt: Option<String>,
    pub agents: Option<BTreeMap<String, SubAgent>>,
    pub forward_subagent_text: Option<bool>,
}

/// A text, or its paragraphs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub fn joined(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Many(texts) => texts.join("\n\n"),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookMatchers {
    pub matcher: Option<String>,
    pub hook_callback_ids: Vec<String>,
    /// Seconds.
    pub timeout: Option<f64>,
}

/// A kind of sub-agent that a client defines.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubAgent {
    pub description: String,
    pub prompt: String,
    pub tools: Option<ToolNames>,
    pub disallowed_tools: Option<ToolNames>,
    pub model: Option<String>,
    /// A level, or a number of tokens.
    pub effort: Option<Value>,
    pub permission_mode: Option<String>,
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Names of tools, or one text with commas between them as files have it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ToolNames {
    One(String),
    Many(Vec<String>),
}

impl ToolNames {
    pub fn list(&self) -> Vec<&str> {
        let names: Vec<&str> = match self {
            Self::One(text) => text.split(',').map(str::trim).collect(),
            Self::Many(names) => names.iter().map(String::as_str).collect(),
        };
        names.into_iter().filter(|name| !name.is_empty()).collect()
    }
}

/// Why a request was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlError {
    UnsupportedRequest,
    InvalidRequest,
    InvalidMode,
    BypassNotLaunched,
    NotFound,
    Disabled,
}

impl ControlError {
    fn code(self) -> &'static str {
        match self {
            Self::UnsupportedRequest => "unsupported_request",
            Self::InvalidRequest => "invalid_request",
            Self::InvalidMode => "invalid_mode",
            Self::BypassNotLaunched => "bypass_not_launched",
            Self::NotFound => "not_found",
            Self::Disabled => "disabled",
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum Known {
    Initialize(Box<Initialize>),
    Interrupt {
        #[serde(default)]
        cancel_queued: Option<bool>,
    },
    SetPermissionMode {
        mode: String,
    },
    SetModel {
        #[serde(default)]
        model: Option<String>,
    },
    SetMaxThinkingTokens {
        #[serde(default)]
        max_thinking_tokens: Option<u32>,
    },
    McpStatus,
    McpSetServers {
        #[serde(default)]
        servers: BTreeMap<String, Value>,
    },
    #[serde(rename_all = "camelCase")]
    McpReconnect {
        server_name: String,
    },
    #[serde(rename_all = "camelCase")]
    McpToggle {
        server_name: String,
        enabled: bool,
    },
    ApplyFlagSettings {
        settings: Value,
    },
    RewindFiles {
        user_message_id: String,
        #[serde(default)]
        dry_run: Option<bool>,
    },
    GetContextUsage,
    StopTask,
    GetSettings,
    GetBinaryVersion,
    ListModels,
    GenerateSessionTitle,
    CancelAsyncMessage {
        #[serde(default)]
        message_uuid: String,
    },
    EndSession,
}

const KNOWN: [&str; 20] = [
    "initialize",
    "interrupt",
    "set_permission_mode",
    "set_model",
    "set_max_thinking_tokens",
    "mcp_status",
    "mcp_set_servers",
    "mcp_reconnect",
    "mcp_toggle",
    "apply_flag_settings",
    "rewind_files",
    "get_context_usage",
    "stop_task",
    "get_settings",
    "get_binary_version",
    "list_models",
    "generate_session_title",
    "cancel_async_message",
    "end_session",
    "",
];

impl Request {
    pub(super) fn read(request: Value) -> Self {
        let subtype = request
            .get("subtype")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        match serde_json::from_value::<Known>(request) {
            Ok(known) => known.into(),
            Err(error) if KNOWN.contains(&subtype.as_str()) => Self::Wrong {
                reason: error.to_string(),
            },
            Err(_) => Self::Unknown { subtype },
        }
    }
}

impl From<Known> for Request {
    fn from(known: Known) -> Self {
        match known {
            Known::Initialize(wishes) => Self::Initialize(wishes),
            Known::Interrupt { cancel_queued } => Self::Interrupt {
                cancel_queued: cancel_queued == Some(true),
            },
            Known::SetPermissionMode { mode } => Self::SetPermissionMode { mode },
            Known::SetModel { model } => Self::SetModel { model },
            Known::SetMaxThinkingTokens {
                max_thinking_tokens: tokens,
            } => Self::SetMaxThinkingTokens { tokens },
            Known::McpStatus => Self::McpStatus,
            Known::McpSetServers { servers } => Self::McpSetServers { servers },
            Known::McpReconnect { server_name: name } => Self::McpReconnect { name },
            Known::McpToggle {
                server_name: name,
                enabled,
            } => Self::McpToggle { name, enabled },
            // Of all settings only the model changes while a session goes on.
            Known::ApplyFlagSettings { settings } => match settings.get("model") {
                Some(model) => Self::SetModel {
                    model: model.as_str().map(str::to_owned),
                },
                None => Self::ApplyNothing,
            },
            Known::RewindFiles {
                user_message_id: message,
                dry_run,
            } => Self::RewindFiles(RewindFiles {
                message,
                is_dry_run: dry_run == Some(true),
            }),
            Known::GetContextUsage => Self::GetContextUsage,
            Known::StopTask => Self::StopTask,
            Known::GetSettings => Self::GetSettings,
            Known::GetBinaryVersion => Self::GetBinaryVersion,
            Known::ListModels => Self::ListModels,
            Known::GenerateSessionTitle => Self::GenerateSessionTitle,
            Known::CancelAsyncMessage { message_uuid: uuid } => Self::CancelAsyncMessage { uuid },
            Known::EndSession => Self::EndSession,
        }
    }
}

/// A request of ours.
pub fn request(id: &str, request: &Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

/// We do not wait for the answer to a request of ours any more.
pub fn cancel_request(id: &str) -> Value {
    json!({"type": "control_cancel_request", "request_id": id})
}

pub fn success_response(id: &str, response: &Value) -> Value {
    json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": id, "response": response},
    })
}

pub fn error_response(id: &str, error: &str, code: ControlError) -> Value {
    json!({
        "type": "control_response",
        "response": {
            "subtype": "error",
            "request_id": id,
            "error": error,
            "error_code": code.code(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_read_and_unknown_fields_ignored() {
        let read = |value| Request::read(value);
        let wishes = read(json!({
            "subtype": "initialize",
            "hooks": {"PreToolUse": [{"matcher": null, "hookCallbackIds": ["h0"], "onFailure": "x"}]},
            "systemPrompt": [""],
            "agents": {"a": {"description": "d", "prompt": "p", "tools": ["Read"]}},
            "promptSuggestions": true,
        }));
        let Request::Initialize(wishes) = wishes else {
            panic!("{wishes:?}");
        };
        assert_eq!(wishes.system_prompt.unwrap().joined(), "");
        assert_eq!(
            wishes.hooks.unwrap()["PreToolUse"][0].hook_callback_ids,
            ["h0"]
        );
        assert_eq!(
            wishes.agents.unwrap()["a"].tools,
            Some(ToolNames::Many(vec!["Read".to_owned()]))
        );
        let empty = read(json!({"subtype": "initialize", "hooks": null}));
        assert_eq!(empty, Request::Initialize(Box::default()));
        assert_eq!(
            read(json!({"subtype": "interrupt", "cancel_queued": true})),
            Request::Interrupt {
                cancel_queued: true
            }
        );
        assert_eq!(
            read(json!({"subtype": "interrupt", "cancel_queued": null})),
            Request::Interrupt {
                cancel_queued: false
            }
        );
        assert_eq!(
            read(json!({"subtype": "set_model"})),
            Request::SetModel { model: None }
        );
        assert_eq!(
            read(json!({"subtype": "banana"})),
            Request::Unknown {
                subtype: "banana".to_owned()
            }
        );
        assert!(matches!(
            read(json!({"subtype": "set_permission_mode"})),
            Request::Wrong { .. }
        ));
        assert!(matches!(read(json!(3)), Request::Wrong { .. }));
    }

    #[test]
    fn every_known_subtype_is_listed() {
        for subtype in KNOWN {
            let read = Request::read(json!({"subtype": subtype}));
            assert!(!matches!(read, Request::Unknown { .. }), "{subtype}");
        }
    }

    proptest! {
        #[test]
        fn no_request_is_too_strange(subtype in ".{0,20}", key in "[a-z]{0,8}", value in ".{0,9}") {
            Request::read(json!({"subtype": subtype, key: value}));
        }
    }
}
