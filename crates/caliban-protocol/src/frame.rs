//! The frames of the native dialect, each field in the order it is written. The schema is made
//! from these types, so it cannot say anything else.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A plugin that takes part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginState {
    pub name: String,
    pub path: String,
    /// `managed`, `given`, `project`, `user`, or its name and marketplace.
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub version: Option<String>,
}

/// A frame on standard output.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Frame<'a> {
    /// The first frame of a run: what it is, before anything happens in it.
    #[serde(rename = "system")]
    Init {
        subtype: InitSubtype,
        session_id: &'a str,
        /// The provider and its model, such as `anthropic/claude-sonnet-4-6`.
        model: String,
        /// The names of the tools that are offered.
        tools: &'a [String],
        plugins: &'a [PluginState],
        /// The scopes that settings were read from.
        #[serde(rename = "settingSources")]
        setting_sources: &'a [String],
        mcp_servers: &'a [McpServerState],
        /// Commands that can be typed as a prompt.
        slash_commands: &'a [String],
        bare_mode: bool,
        cwd: &'a str,
        #[schemars(extend("enum" = ["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", "disabled"]))]
        permission_mode: &'a str,
        /// The version of the program.
        version: &'a str,
        protocol: Protocol,
        /// The date of the built-in prices.
        pricing_as_of: &'a str,
        /// Whether the workspace's own settings may run programs and loosen rules.
        trusted: bool,
        sandbox: &'a SandboxState,
        warnings: &'a [String],
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "&str")]
        fallback_model: Option<&'a str>,
    },
    /// A call to the provider failed and is made again.
    #[serde(rename = "system")]
    ApiRetry {
        subtype: ApiRetrySubtype,
        /// The number of the attempt that follows; the first retry is 1.
        attempt: u32,
        max_retries: u32,
        retry_delay_ms: u64,
        /// The HTTP status, if there was an answer.
        error_status: Option<u16>,
        #[schemars(extend("enum" = ["overloaded", "rate_limit", "timeout", "network", "server_error", "other"]))]
        error_category: &'a str,
    },
    /// The conversation was condensed.
    #[serde(rename = "system")]
    Compaction {
        subtype: CompactionSubtype,
        before_tokens: u64,
        after_tokens: u64,
    },
    /// A prompt, with `--replay-user-messages`.
    User { content: Vec<Block<'a>> },
    /// A piece of the answer, with `--include-partial-messages`.
    Text { delta: &'a str },
    /// A piece of reasoning, with `--include-partial-messages`.
    Thinking { delta: &'a str },
    /// The model has made a call.
    ToolUse {
        id: &'a str,
        name: &'a str,
        #[schemars(schema_with = "tool_input")]
        input: &'a Value,
        /// The call that runs the sub-agent which made this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "&str")]
        parent_tool_use_id: Option<&'a str>,
    },
    /// A call has ended; each `tool_use` gets exactly one.
    ToolResult {
        tool_use_id: &'a str,
        is_error: bool,
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "&str")]
        parent_tool_use_id: Option<&'a str>,
    },
    /// Something that only the operator can say, with `--permission-prompt-tool events`. An
    /// `answer` on standard input answers it.
    #[serde(rename = "question")]
    PermissionQuestion {
        question: &'a str,
        kind: PermissionKind,
        tool: &'a str,
        #[schemars(schema_with = "tool_input")]
        input: &'a Value,
        tool_use_id: &'a str,
        /// The call that runs the sub-agent which asks.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "&str")]
        agent: Option<&'a str>,
        reason: &'a str,
        /// The rule that asks.
        rule: Option<&'a str>,
        /// The scope in which that rule stands.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "&str")]
        rule_scope: Option<&'a str>,
        /// The file in which it is written.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "&str")]
        rule_written: Option<&'a str>,
        /// What its author noted there.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "&str")]
        rule_comment: Option<&'a str>,
        /// Rules that would permit this call and as little else as possible.
        suggestions: &'a [String],
    },
    /// Something that an MCP server wants to know, in its own words.
    #[serde(rename = "question")]
    Elicitation {
        question: &'a str,
        kind: ElicitationKind,
        server: &'a str,
        message: &'a str,
        /// Describes the object to answer with.
        schema: &'a Value,
    },
    /// The model's whole message at the end of its turn, unless pieces are included.
    Message {
        role: AssistantRole,
        content: Vec<Block<'a>>,
    },
    /// A hook has fired, with `--include-hook-events`.
    HookEvent {
        #[serde(rename = "hookEventName")]
        name: &'a str,
        #[serde(rename = "hookSpecificOutput")]
        #[schemars(extend("type" = "object"))]
        output: &'a Value,
    },
    /// Another model answered than the one asked for.
    #[serde(rename = "warning")]
    ModelMismatch {
        subtype: ModelMismatchSubtype,
        message: &'a str,
        details: ModelMismatchDetails<'a>,
    },
    /// The model would reject a parameter, so it was not sent.
    #[serde(rename = "warning")]
    ParameterDropped {
        subtype: ParameterDroppedSubtype,
        message: &'a str,
        details: ParameterDroppedDetails<'a>,
    },
    /// Another route answers; what was sent of this turn is void.
    #[serde(rename = "warning")]
    FallbackModel {
        subtype: FallbackModelSubtype,
        message: &'a str,
        details: FallbackModelDetails<'a>,
    },
    /// A route that was asked at the same time as another was not needed: it is paid all the same.
    #[serde(rename = "warning")]
    HedgeLoss {
        subtype: HedgeLossSubtype,
        message: &'a str,
        details: HedgeLossDetails<'a>,
    },
    /// Anything else worth knowing that does not end the run.
    Warning {
        /// What it is about, such as `superseded`: what was sent of this turn is void. Others may
        /// be added.
        #[schemars(extend("not" = {"enum": ["model_mismatch", "parameter_dropped", "fallback_model", "hedge_loss"]}))]
        subtype: &'a str,
        message: &'a str,
    },
    /// The last frame of an exchange that went well.
    #[serde(rename = "result")]
    Success {
        subtype: SuccessSubtype,
        /// The model's answer.
        result: &'a str,
        #[serde(flatten)]
        totals: Totals<'a>,
        /// The answer as a value, with `--json-schema`.
        #[serde(skip_serializing_if = "Option::is_none")]
        structured_output: Option<&'a Value>,
        /// What a slash command reports, as a value: `command` is its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        report: Option<&'a Value>,
    },
    /// The last frame of an exchange that failed.
    #[serde(rename = "result")]
    Failed {
        subtype: ErrorSubtype,
        error: String,
        #[serde(flatten)]
        progress: Progress<'a>,
        #[serde(flatten)]
        totals: Totals<'a>,
    },
    /// The last frame of an exchange that was stopped.
    #[serde(rename = "result")]
    Stopped {
        subtype: StoppedSubtype,
        #[serde(flatten)]
        progress: Progress<'a>,
        #[serde(flatten)]
        totals: Totals<'a>,
    },
}

/// How far an exchange came that did not succeed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Progress<'a> {
    /// The last text of the model, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "&str")]
    pub(crate) last_assistant_text: Option<&'a str>,
    pub(crate) tool_calls_seen: u32,
}

/// What the run came to so far, earlier exchanges included.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Totals<'a> {
    pub(crate) session_id: &'a str,
    #[schemars(range(min = 0))]
    pub(crate) total_cost_usd: f64,
    pub(crate) turns: u32,
    /// Every input token, cached or not.
    pub(crate) total_input_tokens: u64,
    pub(crate) total_output_tokens: u64,
    pub(crate) is_error: bool,
    pub(crate) duration_ms: u64,
    pub(crate) usage: Tokens,
    /// The calls that were not permitted.
    pub(crate) denials: Vec<DeniedCall<'a>>,
}

/// Tokens in buckets that do not overlap, except that reasoning is a part of the output.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokens {
    #[serde(rename = "input_tokens")]
    pub(crate) input: u64,
    #[serde(rename = "cache_read_input_tokens")]
    pub(crate) cache_read: u64,
    #[serde(rename = "cache_write_input_tokens")]
    pub(crate) cache_write: u64,
    #[serde(rename = "output_tokens")]
    pub(crate) output: u64,
    #[serde(rename = "reasoning_tokens")]
    pub(crate) reasoning: u64,
}

/// A call that was not permitted, and what would permit it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeniedCall<'a> {
    pub(crate) tool: &'a str,
    pub(crate) id: &'a str,
    pub(crate) source: DeniedBy,
    /// The rule that decided, as it is written.
    pub(crate) rule: Option<&'a str>,
    pub(crate) reason: &'a str,
    pub(crate) remedy: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum DeniedBy {
    Rule,
    Hook,
    Classifier,
    Person,
    Unattended,
}

/// A piece of a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Block<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        #[schemars(schema_with = "tool_input")]
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        is_error: bool,
        content: Vec<Part<'a>>,
    },
    Image {
        source: Source<'a>,
    },
}

/// A piece of what a tool answered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Part<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
}

/// Where a picture is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

/// Which dialect this is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Protocol {
    #[schemars(extend("const" = "caliban"))]
    pub(crate) dialect: &'static str,
    pub(crate) version: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelMismatchDetails<'a> {
    pub(crate) requested: &'a str,
    pub(crate) actual: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FallbackModelDetails<'a> {
    /// The route that answers now.
    pub(crate) route_id: &'a str,
    /// What the call is for.
    pub(crate) purpose: &'a str,
    /// `fallback`: the call failed. `hedge`: the other was slower. `skipped`: the other was not
    /// asked. `budget`: a cheaper model goes on. `return`: the first one answers again.
    pub(crate) kind: &'a str,
    /// `provider/model`.
    pub(crate) from: String,
    /// `provider/model`.
    pub(crate) to: String,
    pub(crate) reason: &'a str,
    /// Marks for a prompt cache that were left out for the new route.
    pub(crate) markers_cleared: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HedgeLossDetails<'a> {
    /// The route that lost.
    pub(crate) route_id: &'a str,
    /// What the call is for.
    pub(crate) purpose: &'a str,
    /// `hedge_loss`.
    pub(crate) kind: &'a str,
    /// Who lost, as `provider/model`.
    pub(crate) from: String,
    /// Who answers, as `provider/model`.
    pub(crate) to: String,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// The provider reported nothing before its connection was closed.
    pub(crate) estimated: bool,
    /// In dollars, where the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0))]
    pub(crate) cost_usd: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParameterDroppedDetails<'a> {
    pub(crate) parameter: &'a str,
}

/// Names that are always the same.
macro_rules! constants {
    ($($name:ident: $($value:ident)|+;)+) => {$(
        #[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[schemars(inline)]
        pub(crate) enum $name {
            $($value),+
        }
    )+};
}

constants! {
    InitSubtype: Init;
    PermissionKind: Permission;
    ElicitationKind: Elicitation;
    ApiRetrySubtype: ApiRetry;
    CompactionSubtype: Compaction;
    ModelMismatchSubtype: ModelMismatch;
    ParameterDroppedSubtype: ParameterDropped;
    FallbackModelSubtype: FallbackModel;
    HedgeLossSubtype: HedgeLoss;
    SuccessSubtype: Success;
    ErrorSubtype: Error;
    StoppedSubtype: MaxTurns | BudgetExceeded | Cancelled | MaxTokens;
    AssistantRole: Assistant;
}

/// An object, or what the model wrote where that was none.
fn tool_input(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["object", "string"]})
}

impl Frame<'_> {
    pub(crate) fn value(&self) -> Value {
        // Only a map with keys that are no texts could fail, and there is none.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// What confines commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SandboxState {
    #[schemars(extend("enum" = ["bwrap", "bwrap-weaker", "landlock", "seatbelt", "none"]))]
    pub backend: String,
    /// Whether the settings ask for one.
    pub enabled: bool,
    /// What a full sandbox has and this one has not.
    pub reduced: Vec<String>,
    #[schemars(extend("enum" = ["closed", "proxy", "operator", "open"]))]
    pub egress: String,
    /// Why there is none although it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub reason: Option<String>,
}

/// Where an MCP server stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct McpServerState {
    pub name: String,
    /// `pending`, `connected`, `failed`, `needs-auth` or `disabled`.
    pub status: String,
}
