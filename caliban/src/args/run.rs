//! The arguments of a run.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use caliban_model::ProviderKind;
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, ValueEnum};
use rust_decimal::Decimal;

use crate::exit::Failure;

use super::{IsolationArgs, PermissionArgs};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("system_prompt").multiple(false))]
pub(crate) struct RunArgs {
    /// The prompt. `-` reads it from standard input.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Another way to give the prompt.
    #[arg(long = "prompt", value_name = "TEXT", help_heading = "Prompt")]
    pub(crate) prompt_flag: Option<String>,

    /// Answer on standard output and exit. Takes the prompt itself, or finds it in `--prompt`,
    /// the argument or standard input (at most 10 MiB).
    #[arg(
        short = 'p',
        long = "print",
        value_name = "PROMPT",
        num_args = 0..=1,
        default_missing_value = "",
        help_heading = "Prompt"
    )]
    pub(crate) print: Option<String>,

    /// Start an agent on this task in the background, print its id and return at once; `-` reads
    /// the task from standard input.
    #[arg(
        long = "bg",
        value_name = "TASK",
        conflicts_with_all = ["print", "prompt", "prompt_flag"],
        help_heading = "Background agents"
    )]
    pub(crate) background: Option<String>,

    #[command(flatten)]
    pub(crate) isolation: IsolationArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Use this text as the system prompt.
    #[arg(
        long,
        value_name = "STRING",
        group = "system_prompt",
        help_heading = "System prompt"
    )]
    pub(crate) system: Option<String>,

    /// Use this file's content as the system prompt.
    #[arg(
        long,
        value_name = "PATH",
        group = "system_prompt",
        help_heading = "System prompt"
    )]
    pub(crate) system_file: Option<PathBuf>,

    /// Send no system prompt.
    #[arg(long, group = "system_prompt", help_heading = "System prompt")]
    pub(crate) no_system: bool,

    /// Be the agent of this profile: its prompt, model, effort and tools, where no flag says
    /// otherwise (`caliban agents profiles` lists them).
    #[arg(long, value_name = "NAME", help_heading = "System prompt")]
    pub(crate) agent: Option<String>,

    #[command(flatten)]
    pub(crate) provider: ProviderArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) tools: ToolArgs,

    #[command(flatten)]
    pub(crate) servers: ServerArgs,

    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,

    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
}

/// What standard input carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// A prompt, where it is asked for.
    Text,
    /// One JSON frame per line: prompts and interrupts.
    StreamJson,
}

/// What standard output carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer.
    Text,
    /// One JSON object: the result, with cost and token counts.
    Json,
    /// One JSON frame per line while the run goes on, the result last.
    StreamJson,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Input and output")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch exactly as it was typed"
)]
pub(crate) struct OutputArgs {
    /// What to write to standard output [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) output_format: Option<OutputFormat>,

    /// What standard input carries.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(crate) input_format: InputFormat,

    /// A JSON Schema that the final answer must fit: a .json file, or the schema itself.
    #[arg(long, value_name = "FILE_OR_JSON")]
    pub(crate) json_schema: Option<String>,

    /// In stream-json, send text and thinking as they come instead of whole messages.
    #[arg(long)]
    pub(crate) include_partial_messages: bool,

    /// In stream-json, send a frame for each hook that fires.
    #[arg(long)]
    pub(crate) include_hook_events: bool,

    /// In stream-json, echo each prompt.
    #[arg(long)]
    pub(crate) replay_user_messages: bool,

    /// Append what happens to the debug log (`CALIBAN_DEBUG`)
    #[arg(long)]
    pub(crate) debug: bool,

    /// Exit with 1 when a tool call was not permitted.
    #[arg(long)]
    pub(crate) fail_on_denial: bool,

    /// Do not answer and exit only because standard input or output is not a terminal.
    #[arg(long)]
    pub(crate) no_auto_print: bool,

    /// Talk in lines that are only ever added, without drawing (`CALIBAN_SCREEN_READER`)
    #[arg(long)]
    pub(crate) screen_reader: bool,
}

/// Refuses flags that say what a program reads where a person reads.
pub(crate) fn check_attended(run: &RunArgs) -> Result<(), Failure> {
    let output = &run.output;
    let flags = [
        ("--json-schema", output.json_schema.is_some()),
        (
            "--include-partial-messages",
            output.include_partial_messages,
        ),
        ("--include-hook-events", output.include_hook_events),
        ("--replay-user-messages", output.replay_user_messages),
        ("--fail-on-denial", output.fail_on_denial),
        (
            "--permission-prompt-tool",
            run.servers.permission_prompt_tool.is_some(),
        ),
    ];
    match flags.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::Usage(format!(
            "`{flag}` is for a run that a program reads; add `-p`"
        ))),
    }
}

impl OutputArgs {
    pub(crate) fn format(&self) -> OutputFormat {
        self.output_format.unwrap_or(OutputFormat::Text)
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// How many bytes a file may have that `@path` in the prompt attaches
    /// (`CALIBAN_MAX_ATTACH_BYTES`) [default: 262144]
    #[arg(long, value_name = "N")]
    pub(crate) max_attach_bytes: Option<u64>,

    /// How many bytes all `@path` of a prompt may attach together (`CALIBAN_ATTACH_BUDGET_BYTES`)
    /// [default: 1048576]
    #[arg(long, value_name = "N")]
    pub(crate) attach_budget_bytes: Option<u64>,

    /// Stop, with exit code 75, after this many calls to the model [default: 50]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Stop, with exit code 137, when the run has cost more than this.
    #[arg(long, allow_negative_numbers = true, value_name = "USD", value_parser = budget)]
    pub(crate) max_budget_usd: Option<Decimal>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Workspace and tools")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch exactly as it was typed"
)]
pub(crate) struct ToolArgs {
    /// Directory that tools work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,

    /// A further directory that tools may work in. Can be repeated.
    #[arg(long, value_name = "DIR", visible_alias = "add-dir")]
    pub(crate) additional_directories: Vec<PathBuf>,

    /// Offer no tools.
    #[arg(long)]
    pub(crate) no_tools: bool,

    /// Refuse paths outside the workspace.
    #[arg(long)]
    pub(crate) restrict_paths: bool,

    /// Do not announce tool calls on standard error.
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Run no hooks but those of the managed scope (`CALIBAN_NO_HOOKS`)
    #[arg(long)]
    pub(crate) no_hooks: bool,

    /// Look for no skills (`CALIBAN_NO_SKILLS`)
    #[arg(long)]
    pub(crate) no_skills: bool,

    /// Load no plugins (`CALIBAN_NO_PLUGINS`)
    #[arg(long)]
    pub(crate) no_plugins: bool,

    /// Load the plugin of this directory or archive for this run; may be given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// Offer no sub-agents (`CALIBAN_NO_SUB_AGENT`)
    #[arg(long)]
    pub(crate) no_sub_agent: bool,

    /// Run the calls of a turn one after the other (`CALIBAN_NO_PARALLEL_TOOLS`)
    #[arg(long)]
    pub(crate) no_parallel_tools: bool,

    /// How many calls may run at the same time (`CALIBAN_PARALLEL_TOOL_LIMIT`) [default: one less
    /// than there are cores]
    #[arg(long, value_name = "N")]
    pub(crate) parallel_tool_limit: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "MCP servers")]
pub(crate) struct ServerArgs {
    /// Connect to no MCP servers (`CALIBAN_NO_MCP`)
    #[arg(long)]
    pub(crate) no_mcp: bool,

    /// Further MCP servers: a JSON object with `mcpServers`, or a file with one. Can be repeated.
    #[arg(long, value_name = "FILE_OR_JSON")]
    pub(crate) mcp_config: Vec<String>,

    /// Connect to no other servers than those of `--mcp-config`.
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,

    /// Ask this tool of a server, `mcp__SERVER__TOOL`, about calls that need consent; `events`
    /// asks the program that reads and writes stream-json.
    #[arg(long, value_name = "MCP_TOOL")]
    pub(crate) permission_prompt_tool: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model and provider")]
pub(crate) struct ProviderArgs {
    /// Who answers: anthropic, openai, google, ollama, bedrock, vertex or azure
    /// (`CALIBAN_PROVIDER`) [default: anthropic]
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<ProviderKind>,

    /// The same as `--provider bedrock`.
    #[arg(long, hide = true, conflicts_with_all = ["provider", "vertex"])]
    bedrock: bool,

    /// The same as `--provider vertex`.
    #[arg(long, hide = true, conflicts_with = "provider")]
    vertex: bool,
}

impl ProviderArgs {
    pub(crate) fn kind(&self) -> Option<ProviderKind> {
        match (self.bedrock, self.vertex) {
            (true, _) => Some(ProviderKind::Bedrock),
            (false, true) => Some(ProviderKind::Vertex),
            (false, false) => self.provider,
        }
    }
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model and provider")]
pub(crate) struct ModelArgs {
    /// Name of the model [default: the provider's: claude-sonnet-4-6, gpt-5.5,
    /// gemini-3.8-flash, llama3.1]
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,

    /// Model that answers when the first cannot.
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) fallback_model: Option<String>,

    /// How many tokens one answer may have [default: 8192]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,

    /// Sampling temperature between 0 and 2, for models that take one.
    #[arg(long, allow_negative_numbers = true, value_name = "F", value_parser = temperature)]
    pub(crate) temperature: Option<f64>,

    /// Do not ask the provider to cache the prompt (`CALIBAN_NO_PROMPT_CACHE`)
    #[arg(long)]
    pub(crate) no_prompt_cache: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cassettes")]
pub(crate) struct CassetteArgs {
    /// Keep every exchange with the provider in FILE, without secrets.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,

    /// Answer from FILE instead of a provider.
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}

fn budget(text: &str) -> Result<Decimal, String> {
    match text.parse::<Decimal>() {
        Ok(value) if !value.is_sign_negative() => Ok(value),
        Ok(_) | Err(_) => Err("expected an amount of dollars such as 0.50".to_owned()),
    }
}

fn temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(value),
        Ok(_) | Err(_) => Err("expected a number between 0 and 2".to_owned()),
    }
}
