//! The settings as types: every key of a settings file, its values, and what an absent key means.

mod bounded;
mod fleet;
mod mcp;
mod model;
mod permissions;
mod plugins;
mod refresh;
mod sandbox;
mod tui;
mod worktree;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use fleet::{Fleet, OnQuestion, Restart};
pub use mcp::{McpOauth, McpPermissions, McpServer, McpTransport, OauthMode};
pub use model::{ApiKeyHelper, ApiKeyHelpers, AutoCompaction, ModelChoice, QualifiedModel};
pub use permissions::{PermissionMode, Permissions, RuleAction, RuleSpec};
pub use plugins::{PluginChoice, PluginMarketplaces, Plugins};
pub use refresh::RefreshInterval;
pub use sandbox::{Sandbox, SandboxFilesystem, SandboxNetwork};
pub use tui::{
    Tui, TuiDiff, TuiFiles, TuiGlyphs, TuiMotion, TuiMouse, TuiNotify, TuiOnExit, TuiScreen,
};
pub use worktree::Worktree;

/// What a settings file may say. Every key is optional; an unknown one is kept and warned about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "caliban settings")]
pub struct Settings {
    /// The agent profile that sub-agents are dispatched with unless one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that answers: its name, or its provider and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// The model that takes over when the first one fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<ModelChoice>,
    /// Models for single purposes: `main_loop`, `summarization`, `fast_classifier`, `sub_agent` or
    /// `embedding`; hyphens are as good.
    #[serde(
        deserialize_with = "bounded::by_purpose",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub model_overrides: BTreeMap<String, String>,
    /// The models that a person can choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available_models: Vec<String>,
    /// How much the model is asked to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<EffortLevel>,
    /// How often a failed model call is repeated; 5 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Most calls to the model in one run; 50 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<NonZeroU32>,
    /// Most tokens of one answer; 8192 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// What may run without asking, what must be asked, and what never runs.
    #[serde(skip_serializing_if = "Permissions::is_empty")]
    pub permissions: Permissions,
    /// How shell commands are confined.
    #[serde(skip_serializing_if = "Sandbox::is_empty")]
    pub sandbox: Sandbox,
    /// What worktrees of sub-agents are made of.
    #[serde(skip_serializing_if = "Worktree::is_empty")]
    pub worktree: Worktree,
    /// Agents in the background.
    #[serde(skip_serializing_if = "Fleet::is_empty")]
    pub fleet: Fleet,
    /// Handlers for each hook event, in the order they run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, Vec<Value>>,
    /// In the mode `auto`, ask instead of consulting the classifier. Once a scope has set it, no
    /// other takes it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_auto_mode: Option<bool>,
    /// Run no external hook handler at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_all_hooks: Option<bool>,
    /// Run only the hooks of the managed scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_managed_hooks_only: Option<bool>,
    /// Patterns of the URLs that HTTP hooks may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_http_hook_urls: Option<Vec<String>>,
    /// Environment variables that HTTP hooks may put into their headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_hook_allowed_env_vars: Option<Vec<String>>,
    /// MCP servers by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// The router's configuration, as in `caliban.toml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<Map<String, Value>>,
    /// What is remembered between sessions and how much of it is read.
    #[serde(skip_serializing_if = "Memory::is_empty")]
    pub memory: Memory,
    /// Which plugins and marketplaces are used.
    #[serde(skip_serializing_if = "Plugins::is_empty")]
    pub plugins: Plugins,
    /// Take skills, commands, output styles, agents and hooks from plugins only. Once the managed
    /// scope has set it, no other takes it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_plugin_only_customization: Option<bool>,
    /// How tools are offered to the model.
    #[serde(skip_serializing_if = "Tools::is_empty")]
    pub tools: Tools,
    /// The output style in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_style: Option<String>,
    /// The keys of the input line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_mode: Option<EditorMode>,
    /// How much the terminal interface shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view_mode: Option<ViewMode>,
    /// A program that writes part of the status line. `status_line` is the same key.
    #[serde(
        rename = "statusLine",
        alias = "status_line",
        skip_serializing_if = "Option::is_none"
    )]
    pub status_line: Option<StatusLine>,
    /// Theme and layout of the terminal interface.
    #[serde(skip_serializing_if = "Tui::is_empty")]
    pub tui: Tui,
    /// Programs that print API keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_helper: Option<ApiKeyHelpers>,
    /// How long before their end AWS credentials are renewed, e.g. `10m`; 5 minutes unless set, `0`
    /// renews them only when they are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_auth_refresh: Option<RefreshInterval>,
    /// A command that logs in to AWS again when credentials are over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_auth_refresh_command: Option<String>,
    /// A command that prints AWS credentials as JSON, instead of all other ways to find them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_credential_export: Option<String>,
    /// How long before their end Google's tokens are renewed, as `aws_auth_refresh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp_auth_refresh: Option<RefreshInterval>,
    /// A command that logs in to Google Cloud again when credentials are over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp_auth_refresh_command: Option<String>,
    /// Export telemetry; off unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_telemetry: Option<bool>,
    /// How telemetry is exported.
    #[serde(skip_serializing_if = "Telemetry::is_empty")]
    pub telemetry: Telemetry,
    /// Where `/feedback` is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback_url: Option<String>,
    /// The share of the context window that triggers compaction; 0.75 unless set. `null` (in TOML
    /// `false`) turns it off.
    #[serde(skip_serializing_if = "AutoCompaction::is_unset")]
    pub auto_compact_threshold: AutoCompaction,
    /// Replace superseded tool results between turns; on unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_compact_enabled: Option<bool>,
    /// The longest tool result handed to the model, in characters; 50000 unless set, 0 for no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_result_cap_chars: Option<u64>,
    /// The fewest tokens, by estimate, that make a user turn worth a cache mark; 1024 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_cache_block_tokens: Option<u64>,
    /// In the managed scope, `block` puts that scope above all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_settings_behavior: Option<ParentSettingsBehavior>,
    /// Further directories that file and shell tools may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<String>,
    /// Patterns of instruction files that are not read.
    #[serde(alias = "claudeMdExcludes", skip_serializing_if = "Vec::is_empty")]
    pub claude_md_excludes: Vec<String>,
    /// Load skills from `.claude/skills` of the workspace and the home, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claude_skills: Option<bool>,
    /// Environment variables for every process caliban starts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Directories whose workspaces are trusted, with all below them. Counts in the user and
    /// managed scopes only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_directories: Vec<String>,
    /// The schema an editor checks the file against.
    #[serde(rename = "$schema", skip_serializing)]
    pub schema: Option<String>,
    /// Keys this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Settings {
    /// The share of the context window that triggers compaction; `None` where it is off.
    pub fn compaction_threshold(&self) -> Option<f64> {
        match self.auto_compact_threshold {
            AutoCompaction::Unset => Some(0.75),
            AutoCompaction::Off => None,
            AutoCompaction::At(share) => Some(share),
        }
    }

    pub fn micro_compaction(&self) -> bool {
        self.micro_compact_enabled.unwrap_or(true)
    }

    /// The longest tool result in characters; `None` where there is no limit.
    pub fn tool_result_cap(&self) -> Option<u64> {
        Some(self.tool_result_cap_chars.unwrap_or(50_000)).filter(|cap| *cap > 0)
    }

    /// The fewest tokens of a user turn that gets a cache mark.
    pub fn cache_block_tokens(&self) -> u64 {
        self.min_cache_block_tokens.unwrap_or(1024)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffortLevel {
    Low,
    Medium,
    High,
    Max,
    /// What the model's provider thinks best.
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EditorMode {
    Vim,
    Emacs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ViewMode {
    Compact,
    Expanded,
}

/// What the managed scope does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParentSettingsBehavior {
    /// It overrides every other scope.
    Block,
    /// It is the lowest scope.
    Augment,
}

/// A program whose output becomes part of the status line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusLine {
    #[serde(deserialize_with = "bounded::non_empty")]
    pub command: String,
    /// How long the program may take, in milliseconds.
    #[serde(
        default,
        deserialize_with = "bounded::whole::<_, 50, 5000>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 50, max = 5000))]
    pub timeout_ms: Option<u64>,
    /// Cells left free on each side.
    #[serde(
        default,
        deserialize_with = "bounded::whole::<_, 0, 8>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = 8))]
    pub padding: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Memory {
    /// Let the agent keep notes on this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_memory_enabled: Option<bool>,
    /// Where those notes are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_memory_directory: Option<String>,
    /// The most tokens read from the notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_tokens_auto: Option<u64>,
    /// The most tokens read from instruction files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_tokens_claude_md: Option<u64>,
    /// The most tokens read from both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_tokens_combined: Option<u64>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Memory {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tools {
    /// Offer MCP tools by search instead of all at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lazy_mcp: Option<bool>,
    /// The most MCP tools that a search keeps offered; 24 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_active_schemas: Option<u32>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Tools {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Telemetry {
    /// A program that prints further headers for the exporter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otel_headers_helper: Option<String>,
    /// How often that program is asked, such as `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otel_headers_refresh: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Telemetry {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Settings, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn absent_null_and_number_are_three_thresholds() {
        assert_eq!(read(json!({})).unwrap().compaction_threshold(), Some(0.75));
        for off in [json!(null), json!(false)] {
            let settings = read(json!({ "auto_compact_threshold": off })).unwrap();
            assert_eq!(settings.compaction_threshold(), None);
            assert_eq!(
                serde_json::to_value(&settings).unwrap(),
                json!({"auto_compact_threshold": null})
            );
        }
        let settings = read(json!({"auto_compact_threshold": 1})).unwrap();
        assert_eq!(settings.compaction_threshold(), Some(1.0));
        for wrong in [json!(1.5), json!(-0.1), json!(true), json!("0.5")] {
            assert!(read(json!({ "auto_compact_threshold": wrong })).is_err());
        }
    }

    #[test]
    fn the_documented_defaults_hold() {
        let settings = Settings::default();
        assert!(settings.micro_compaction());
        assert_eq!(settings.tool_result_cap(), Some(50_000));
        assert_eq!(settings.cache_block_tokens(), 1024);
        assert!(settings.permissions.audits());
        let uncapped = read(json!({"tool_result_cap_chars": 0})).unwrap();
        assert_eq!(uncapped.tool_result_cap(), None);
        assert_eq!(serde_json::to_value(&settings).unwrap(), json!({}));
    }

    #[test]
    fn both_spellings_are_read() {
        let settings = read(json!({"status_line": {"command": "s"}, "claudeMdExcludes": ["v"]}));
        let settings = settings.unwrap();
        assert_eq!(settings.status_line.unwrap().command, "s");
        assert_eq!(settings.claude_md_excludes, ["v"]);
    }

    #[test]
    fn unknown_keys_are_kept() {
        let settings = read(json!({"nonsuch": {"a": 1}})).unwrap();
        assert_eq!(settings.extra["nonsuch"], json!({"a": 1}));
    }
}
