//! Every environment variable that is read, declared once.

/// What a variable is about; the sections of the reference page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Providers,
    Connections,
    Run,
    Attachments,
    Permissions,
    Performance,
    Extensions,
    SubAgents,
    Memory,
    Checkpoints,
    Configuration,
    Output,
    Web,
    Telemetry,
    Debugging,
    Marketplaces,
}

impl Group {
    pub const ALL: [Self; 16] = [
        Self::Providers,
        Self::Connections,
        Self::Run,
        Self::Attachments,
        Self::Permissions,
        Self::Performance,
        Self::Extensions,
        Self::SubAgents,
        Self::Memory,
        Self::Checkpoints,
        Self::Configuration,
        Self::Output,
        Self::Web,
        Self::Telemetry,
        Self::Debugging,
        Self::Marketplaces,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Providers => "Providers",
            Self::Connections => "Connections",
            Self::Run => "The run",
            Self::Attachments => "Attachments",
            Self::Permissions => "Permissions and trust",
            Self::Performance => "Caching and speed",
            Self::Extensions => "Hooks, skills, MCP and plugins",
            Self::SubAgents => "Sub-agents",
            Self::Memory => "Memory",
            Self::Checkpoints => "Checkpoints",
            Self::Configuration => "Configuration and routing",
            Self::Output => "Output",
            Self::Web => "Web search",
            Self::Telemetry => "Telemetry and cost",
            Self::Debugging => "Debugging",
            Self::Marketplaces => "Marketplaces",
        }
    }
}

/// One environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    pub name: &'static str,
    pub group: Group,
    /// What it holds or does, as a sentence.
    pub meaning: &'static str,
    pub default: Option<&'static str>,
    /// Whether its value must not be shown, logged or handed to child processes.
    pub is_secret: bool,
    pub form: Form,
}

/// What a variable's value must look like. Switches take anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Any,
    /// A whole number between these.
    Whole(u64, u64),
    /// One of these.
    Word(&'static [&'static str]),
    /// A path from the root: another would mean another place in every directory.
    Place,
    /// A time such as `5m`, after which credentials are renewed.
    Refresh,
}

/// Declares the constants in `names` and the rows of [`VARIABLES`] from one list. A row is
/// `NAME [= default] [secret] (form): meaning;`.
macro_rules! variables {
    ($($group:ident { $($name:ident $(= $default:literal)? $([$secret:ident])? $(($($form:tt)+))? : $meaning:literal;)+ })+) => {
        /// The variables' names.
        pub mod names {
            $($(
                #[doc = $meaning]
                pub const $name: &str = stringify!($name);
            )+)+
        }

        /// Every variable that is read.
        pub const VARIABLES: &[Variable] = &[
            $($(Variable {
                name: names::$name,
                group: Group::$group,
                meaning: $meaning,
                default: variables!(@default $($default)?),
                is_secret: variables!(@secret $($secret)?),
                form: variables!(@form $($($form)+)?),
            },)+)+
        ];
    };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
    (@secret) => { false };
    (@secret secret) => { true };
    (@form) => { Form::Any };
    (@form whole) => { Form::Whole(0, u64::MAX) };
    (@form positive) => { Form::Whole(1, u64::MAX) };
    (@form place) => { Form::Place };
    (@form refresh) => { Form::Refresh };
    (@form port) => { Form::Whole(0, u16::MAX as u64) };
    (@form $($word:literal)|+) => { Form::Word(&[$($word),+]) };
}

variables! {
    Providers {
        ANTHROPIC_API_KEY [secret]: "The key for Anthropic.";
        ANTHROPIC_AUTH_TOKEN [secret]: "A token for a gateway that stands in for Anthropic, where there is no key.";
        ANTHROPIC_BASE_URL = "https://api.anthropic.com": "Where Anthropic's API is reached, for proxies and compatible servers.";
        ANTHROPIC_CUSTOM_HEADERS [secret]: "Headers of each call to Anthropic, for gateways: lines of `Name: value`.";
        ANTHROPIC_VERSION = "2023-06-01": "The version of Anthropic's API that is asked for.";
        OPENAI_API_KEY [secret]: "The key for OpenAI or a compatible server.";
        OPENAI_BASE_URL = "https://api.openai.com/v1": "Where OpenAI's API or a compatible server is reached.";
        OPENAI_ORG_ID: "The OpenAI organisation that requests are billed to.";
        OPENAI_PROJECT: "The OpenAI project that requests belong to.";
        CALIBAN_OPENAI_API ("responses" | "chat"): "Which of OpenAI's APIs is spoken, `responses` or `chat`; chosen by the base URL when unset.";
        AZURE_OPENAI_API_KEY [secret]: "The key for Azure OpenAI.";
        AZURE_OPENAI_RESOURCE: "The name of the Azure OpenAI resource.";
        AZURE_OPENAI_ENDPOINT: "The address of the Azure OpenAI resource, instead of its name.";
        AZURE_OPENAI_API_VERSION = "2024-10-21": "The version of Azure's API that is asked for. Set, it makes it the dated form; unset, the v1 form is used unless `api = \"chat\"` is configured.";
        ANTHROPIC_FOUNDRY_RESOURCE: "The name of the Microsoft Foundry resource that serves Claude.";
        ANTHROPIC_FOUNDRY_BASE_URL: "The address at which Foundry serves Claude, instead of the resource's name.";
        ANTHROPIC_FOUNDRY_API_KEY [secret]: "The key for Claude in Foundry; `AZURE_OPENAI_API_KEY` unless set.";
        ANTHROPIC_FOUNDRY_AUTH_TOKEN [secret]: "A bearer's token for Claude in Foundry, before every key.";
        AWS_BEARER_TOKEN_BEDROCK [secret]: "The key for Bedrock; without it requests are signed with AWS credentials.";
        AWS_REGION: "The region Bedrock is used in; `AWS_DEFAULT_REGION` and the profile are asked after it.";
        ANTHROPIC_BEDROCK_BASE_URL: "Where Bedrock is reached, for gateways.";
        ANTHROPIC_VERTEX_BASE_URL: "Where Vertex is reached, for gateways.";
        ANTHROPIC_VERTEX_PROJECT_ID: "The Google Cloud project whose models are used; `GOOGLE_CLOUD_PROJECT` is asked after it.";
        CLOUD_ML_REGION = "global": "Where in Vertex models are.";
        CALIBAN_AWS_AUTH_REFRESH = "5m" (refresh): "How long before their end AWS credentials are renewed; `0` renews them only when they are refused.";
        CALIBAN_GCP_AUTH_REFRESH = "5m" (refresh): "How long before their end Google's tokens are renewed; `0` renews them only when they are refused.";
        GEMINI_API_KEY [secret]: "The key for Google.";
        GOOGLE_GEMINI_API_KEY [secret]: "The key for Google when `GEMINI_API_KEY` is unset.";
        GEMINI_BASE_URL = "https://generativelanguage.googleapis.com": "Where Google's API is reached.";
        GEMINI_API_VERSION = "v1beta": "The version of Google's API that is asked for.";
        OLLAMA_BASE_URL = "http://localhost:11434": "Where the Ollama server is reached.";
        CALIBAN_OLLAMA_NUM_CTX (positive): "The context length that Ollama is asked for, in tokens; the model's own when unset.";
    }
    Connections {
        CALIBAN_CONNECT_TIMEOUT_MS = "10000" (whole): "How long connecting to a provider may take, in milliseconds.";
        CALIBAN_FIRST_BYTE_TIMEOUT_MS = "120000" (whole): "How long a provider may take to begin its answer, in milliseconds.";
        CALIBAN_IDLE_TIMEOUT_MS = "300000" (whole): "How long a provider may pause within an answer, in milliseconds.";
        CALIBAN_MAX_RETRIES = "5" (whole): "How often a failed call is repeated.";
        CALIBAN_RETRY_BASE_DELAY_MS (whole): "The first pause before a repeated call, in milliseconds.";
    }
    Run {
        CALIBAN_PROVIDER = "anthropic": "The provider, when no flag names one.";
        CALIBAN_DIALECT = "caliban": "The protocol of headless runs, `caliban` or `claude`.";
        HEDDLE_HEARTBEAT_INTERVAL = "5000" (whole): "With `serve heddle`, the pause between two signs of life, in milliseconds; `0` sends none.";
        HEDDLE_PERMISSION_TIMEOUT = "60000" (whole): "With `serve heddle`, how long a question waits for its answer, in milliseconds; then it is a refusal.";
        HEDDLE_SHUTDOWN_TIMEOUT = "30000" (whole): "With `serve heddle`, how long the work may go on after the end of the input, in milliseconds; then it is cancelled.";
    }
    Attachments {
        CALIBAN_MAX_ATTACH_BYTES = "262144" (whole): "The largest single `@` attachment, in bytes.";
        CALIBAN_ATTACH_BUDGET_BYTES = "1048576" (whole): "The most that all `@` attachments of a message may hold together, in bytes.";
    }
    Permissions {
        CALIBAN_DEFAULT_PERMISSION_MODE = "default": "The permission mode a session starts in.";
        CALIBAN_NO_PERMISSIONS: "Switch: every tool call is allowed.";
        CALIBAN_AUTO_ALLOW: "Switch: what would be asked about is allowed when nobody can be asked. Dangerous.";
        CALIBAN_DISABLE_AUTO_MODE: "Switch: the classifier of the `auto` mode is not used; everything is asked.";
        CALIBAN_TRUST_WORKSPACE: "Switch: the workspace's own settings may run programs and loosen the policy, for this run.";
    }
    Performance {
        CALIBAN_NO_PROMPT_CACHE: "Switch: providers are not asked to cache prompts.";
        CALIBAN_NO_PARALLEL_TOOLS: "Switch: tools run one after the other.";
        CALIBAN_PARALLEL_TOOL_LIMIT = "CPU cores − 1" (positive): "How many tools run at once; at least one.";
    }
    Extensions {
        CALIBAN_NO_HOOKS: "Switch: no external hook handler runs.";
        CALIBAN_NO_SKILLS: "Switch: skills are not looked for.";
        CALIBAN_NO_MCP: "Switch: no MCP server is started.";
        CALIBAN_MCP_OAUTH_PORT = "0" (port): "The local port that OAuth answers come back to; any free one when 0.";
        CALIBAN_MCP_TIMEOUT (whole): "How long an MCP server may take to start, in milliseconds; `MCP_TIMEOUT` when unset.";
        MCP_TIMEOUT (whole): "Read when `CALIBAN_MCP_TIMEOUT` is unset.";
        CALIBAN_MCP_TOOL_TIMEOUT (whole): "How long one MCP tool call may take, in milliseconds; `MCP_TOOL_TIMEOUT` when unset.";
        MCP_TOOL_TIMEOUT (whole): "Read when `CALIBAN_MCP_TOOL_TIMEOUT` is unset.";
        CALIBAN_MAX_MCP_OUTPUT_TOKENS (whole): "The longest result of an MCP tool, in tokens.";
        CALIBAN_NO_PLUGINS: "Switch: plugins are not looked for.";
        CALIBAN_ENABLED_PLUGINS: "The only plugins that are used, separated by commas.";
        CALIBAN_PLUGIN_ROOT (place): "Where the user's plugins are installed.";
    }
    SubAgents {
        CALIBAN_NO_SUB_AGENT: "Switch: the model cannot start sub-agents.";
        CALIBAN_KEEP_WORKTREES: "Switch: worktrees of sub-agents are not removed.";
        CALIBAN_DAEMON_RUNTIME_DIR (place): "Where the daemon and background agents keep their sockets.";
        CALIBAN_FLEET_SERVER: "The NATS server of the fleet, such as `tls://nats.example.org`.";
        CALIBAN_FLEET_KEY: "A file with the seed of an nkey, for that server.";
        CALIBAN_FLEET_CREDS: "A file with a JWT and its seed, for that server.";
        CALIBAN_FLEET_CA: "A file with certificates that vouch for that server.";
        CALIBAN_AGENT_ID: "Set for everything that a background agent starts: its id.";
    }
    Memory {
        CALIBAN_DISABLE_AUTO_MEMORY: "Switch: no notes are read or written.";
        CALIBAN_MEMORY_DIR: "Where the notes are kept.";
        CALIBAN_AUTO_MEMORY_DIRECTORY: "Where the notes are kept; wins over `CALIBAN_MEMORY_DIR`.";
        CALIBAN_MEMORY_BUDGET_TOKENS = "32000" (whole): "The most tokens that instructions and notes take together.";
        CALIBAN_MEMORY_CAP_TOKENS_AUTO (whole): "The most tokens that notes take.";
        CALIBAN_MEMORY_CAP_TOKENS_CLAUDE_MD (whole): "The most tokens that instruction files take.";
        CALIBAN_DISABLE_CLAUDE_MD_WALK: "Switch: instruction files above the workspace are not read.";
        CALIBAN_ADDITIONAL_DIRECTORIES_CLAUDE_MD: "Switch, or directories separated by colons: instruction files of further directories are read too.";
        CALIBAN_CLAUDE_MD_EXCLUDES: "Patterns of instruction files that are not read, separated by colons.";
        CALIBAN_APPROVE_IMPORTS: "Switch: imports from outside the workspace are approved.";
    }
    Checkpoints {
        CALIBAN_CHECKPOINT_ROOT = "~/.caliban/projects" (place): "Where checkpoints are kept.";
        CALIBAN_CHECKPOINT_DISABLED: "Switch: no checkpoints are made or pruned.";
        CALIBAN_CHECKPOINT_MAX_BYTES (whole): "The most that the checkpoints of a project keep, in bytes.";
        CALIBAN_CHECKPOINT_MAX_FILE_BYTES (whole): "The largest file that a checkpoint keeps, in bytes.";
        CALIBAN_CLEANUP_PERIOD_DAYS = "30" (whole): "After how many days unnamed sessions and their checkpoints are pruned; 0 means never.";
    }
    Configuration {
        CALIBAN_ROUTER_CONFIG: "The `caliban.toml` to read instead of the one that is found.";
        CALIBAN_STRICT_ROUTING: "Switch: a request without a fitting route fails; `false` sends it on without what does not fit.";
        CALIBAN_API_KEY_HELPER_TTL_MS = "300000" (whole): "How long a key from a helper is kept, in milliseconds.";
    }
    Output {
        CALIBAN_OUTPUT_STYLE = "default": "The output style.";
        CALIBAN_TUI = "fullscreen" ("fullscreen" | "inline" | "plain"): "What the terminal interface draws on: `fullscreen`, `inline` or `plain`.";
        CALIBAN_SCREEN_READER: "Switch: the terminal interface adds lines and draws nothing.";
        CALIBAN_GRAPHICS ("kitty" | "iterm" | "sixel" | "none"): "How images are drawn in the terminal: `kitty`, `iterm`, `sixel` or `none`.";
    }
    Web {
        CALIBAN_WEBSEARCH_PROVIDER ("brave" | "tavily" | "exa"): "The search service: `brave`, `tavily` or `exa`.";
        BRAVE_API_KEY [secret]: "The key for Brave Search.";
        TAVILY_API_KEY [secret]: "The key for Tavily.";
        EXA_API_KEY [secret]: "The key for Exa.";
    }
    Telemetry {
        CALIBAN_ENABLE_TELEMETRY: "Switch: telemetry is exported.";
        DISABLE_TELEMETRY: "Switch: telemetry is never exported, whatever else is set.";
        DO_NOT_TRACK: "Switch: telemetry is never exported, whatever else is set.";
        CALIBAN_OTEL_HEADERS_HELPER: "A program that prints further headers for the exporter.";
        OTEL_EXPORTER_OTLP_ENDPOINT: "Where telemetry is sent.";
        OTEL_EXPORTER_OTLP_PROTOCOL = "grpc": "How it is sent: `grpc`, `http/protobuf` or `http/json`.";
        OTEL_EXPORTER_OTLP_HEADERS [secret]: "Headers sent with telemetry.";
        OTEL_EXPORTER_OTLP_CERTIFICATE: "The certificate the collector is checked against.";
        OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: "The certificate shown to the collector.";
        OTEL_EXPORTER_OTLP_CLIENT_KEY: "The file with the key of that certificate.";
        OTEL_METRIC_EXPORT_INTERVAL = "60s": "How often metrics are sent.";
        OTEL_LOGS_EXPORT_INTERVAL = "5s": "How often logs and traces are sent.";
        OTEL_EXPORTER_OTLP_TIMEOUT = "10s": "How long a collector may take.";
        OTEL_EXPORTER_OTLP_COMPRESSION ("gzip" | "none"): "How telemetry is compressed: `gzip` or `none`.";
        OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE = "delta" ("delta" | "cumulative" | "lowmemory"): "Whether metrics count since the last export or since the beginning: `delta` or `cumulative`.";
        OTEL_METRICS_INCLUDE_SESSION_ID = "true": "Whether metrics say which session they are of.";
        OTEL_METRICS_INCLUDE_VERSION = "false": "Whether metrics say which version of caliban they are of.";
        OTEL_SERVICE_NAME = "caliban": "The name of the service in telemetry.";
        OTEL_RESOURCE_ATTRIBUTES: "Further attributes of the service, such as `team=a,env=b`.";
        OTEL_SDK_DISABLED: "Switch: telemetry is never exported, whatever else is set.";
        OTEL_LOGS_EXPORTER = "otlp": "Where logs go: `otlp`, `console`, both with a comma between, or `none`.";
        OTEL_METRICS_EXPORTER = "otlp": "Where metrics go: `otlp`, `console`, both with a comma between, or `none`.";
        OTEL_TRACES_EXPORTER = "otlp": "Where traces go: `otlp`, `console`, both with a comma between, or `none`.";
        OTEL_LOG_USER_PROMPTS = "0": "Whether prompts are part of telemetry.";
        OTEL_LOG_TOOL_DETAILS = "0": "Whether the names and arguments of tools are part of telemetry.";
        OTEL_LOG_TOOL_CONTENT = "0": "Whether the results of tools are part of telemetry.";
        OTEL_LOG_RAW_API_BODIES = "0": "Whether requests and answers are logged as sent: `0`, `1` or `file:` and a directory.";
        CALIBAN_RATES_YAML: "A file with prices that replace the built-in ones.";
    }
    Debugging {
        CALIBAN_DEBUG: "Switch: a debug log is written.";
    }
    Marketplaces {
        CALIBAN_BLOCKED_MARKETPLACES: "Marketplaces nothing is installed from, separated by commas.";
        CALIBAN_STRICT_KNOWN_MARKETPLACES: "Switch: nothing is installed from a marketplace that is not known.";
        CALIBAN_STRICT_PLUGIN_ONLY_CUSTOMIZATION: "Switch: only plugins customise; the user's own skills and hooks do not count.";
    }
}
