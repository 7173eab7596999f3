//! The command line, exactly as typed. What it means is decided elsewhere.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use caliban_providers::ProviderKind;
use caliban_settings::{PermissionMode, RuleAction, RuleSpec};
use clap::{
    ArgGroup, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use clap_complete::Shell;
use rust_decimal::Decimal;

/// An AI agent harness for scripts, applications and the terminal.
#[derive(Debug, Parser)]
#[command(
    name = "caliban",
    version,
    about,
    subcommand_precedence_over_arg = true,
    args_override_self = true,
    after_help = "Try `caliban demo` first: it needs neither a key nor a network."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
}

/// Which conversation goes on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Session")]
pub(crate) struct SessionArgs {
    /// Continue the session of this name, or begin it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resume", "continue_"])]
    pub(crate) session: Option<String>,

    /// Continue the session that was used last.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) continue_: bool,

    /// Continue the session of this name or id; it must exist.
    #[arg(short = 'r', long, value_name = "NAME")]
    pub(crate) resume: Option<String>,

    /// Continue in a copy, and leave the session as it is.
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// Write nothing down.
    #[arg(long)]
    pub(crate) no_save: bool,

    /// Where sessions are kept.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) sessions_dir: Option<PathBuf>,
}

/// Rules for this run, above all others.
#[derive(Debug, Args)]
#[command(next_help_heading = "Permissions")]
pub(crate) struct RuleArgs {
    /// Allow calls that match: `Tool`, `Tool:<glob>`, `Tool(<glob>)`. Can be repeated; the first
    /// flag that matches counts.
    #[arg(long, value_name = "PAT", global = true, action = clap::ArgAction::Append)]
    pub(crate) allow: Vec<String>,

    /// Deny calls that match. Can be repeated.
    #[arg(long, value_name = "PAT", global = true, action = clap::ArgAction::Append)]
    pub(crate) deny: Vec<String>,

    /// Ask about calls that match. Can be repeated.
    #[arg(long, value_name = "PAT", global = true, action = clap::ArgAction::Append)]
    pub(crate) ask: Vec<String>,

    /// All three in the order they were typed.
    #[arg(skip)]
    pub(crate) ordered: Vec<RuleSpec>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Permissions")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch exactly as it was typed"
)]
pub(crate) struct PermissionArgs {
    /// What happens to calls that would be asked about: default, acceptEdits, plan, auto, dontAsk
    /// or bypassPermissions (`CALIBAN_DEFAULT_PERMISSION_MODE`)
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Dangerous: judge no call at all (`CALIBAN_NO_PERMISSIONS`)
    #[arg(long, conflicts_with_all = ["allow", "deny", "ask", "auto_allow"])]
    pub(crate) no_permissions: bool,

    /// Dangerous: allow every call that would be asked about (`CALIBAN_AUTO_ALLOW`)
    #[arg(long)]
    pub(crate) auto_allow: bool,

    /// Dangerous: needed for the mode bypassPermissions
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    /// In the mode auto, ask instead of consulting the classifier (`CALIBAN_DISABLE_AUTO_MODE`)
    #[arg(long)]
    pub(crate) disable_auto_mode: bool,
}

impl Cli {
    /// Parses the command line of this process.
    pub(crate) fn from_process() -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches()?;
        let mut cli = Self::from_arg_matches(&matches)?;
        cli.rules.ordered = ordered_rules(&matches);
        Ok(cli)
    }
}

/// The rules of `--allow`, `--deny` and `--ask` in the order they were typed.
fn ordered_rules(matches: &ArgMatches) -> Vec<RuleSpec> {
    let mut deepest = matches;
    while let Some((_, inner)) = deepest.subcommand() {
        deepest = inner;
    }
    let mut found: Vec<(usize, RuleSpec)> = [
        ("allow", RuleAction::Allow),
        ("deny", RuleAction::Deny),
        ("ask", RuleAction::Ask),
    ]
    .into_iter()
    .flat_map(|(name, action)| {
        let places = deepest.indices_of(name).into_iter().flatten();
        let patterns = deepest.get_many::<String>(name).into_iter().flatten();
        places.zip(patterns.map(move |pattern| RuleSpec::new(pattern, action)))
    })
    .collect();
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, rule)| rule).collect()
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// Settings above all others: a JSON object, or a .toml or .json file.
    #[arg(long, value_name = "FILE_OR_JSON", global = true)]
    pub(crate) settings: Option<String>,

    /// Read only these scopes: a list of managed, user, project and local.
    #[arg(long, value_name = "SCOPES", global = true)]
    pub(crate) setting_sources: Option<String>,

    /// The `caliban.toml` to use (`CALIBAN_ROUTER_CONFIG`)
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// For scripts: read no settings but the managed ones, and no hooks, skills, plugins, MCP
    /// servers or memory.
    #[arg(long, global = true)]
    pub(crate) bare: bool,

    /// Let this workspace's settings run programs and loosen rules (`CALIBAN_TRUST_WORKSPACE`)
    #[arg(long, global = true)]
    pub(crate) trust_workspace: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the program at work on a recorded conversation, without a key or a network.
    Demo,
    /// List the models the provider offers to this account.
    Models(ModelsArgs),
    /// Check the installation; exits with 1 when something a run needs is missing.
    Doctor(DoctorArgs),
    /// Inspect the settings that are in effect, and tidy old files.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Show or import the settings of one scope.
    Settings {
        #[command(subcommand)]
        command: SettingsCommand,
    },
    /// Trust a workspace: let its settings run programs and loosen rules.
    Trust(TrustArgs),
    /// Look at earlier conversations and remove them.
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Look at permission rules, try them out and change them.
    Perms {
        #[command(subcommand)]
        command: PermsCommand,
    },
    /// Print a script that completes command lines in a shell.
    Completions {
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
    /// Print the manual page.
    Man {
        /// Write it and those of all subcommands into this directory instead.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also call providers at their own address, with the key: one request each.
    #[arg(long)]
    pub(crate) deep: bool,
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// With `--deep`, check that the provider offers this model.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the most recent first.
    List {
        /// Only those whose name contains this.
        #[arg(value_name = "TEXT")]
        filter: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a conversation.
    Show {
        /// Its name or id.
        #[arg(value_name = "SESSION")]
        session: String,
    },
    /// Print a conversation for use elsewhere.
    Export {
        /// Its name or id.
        #[arg(value_name = "SESSION")]
        session: String,
        #[arg(long, value_name = "FORMAT", value_enum, default_value = "markdown")]
        format: SessionExport,
    },
    /// Remove sessions with everything they keep.
    Rm {
        /// Their names or ids.
        #[arg(value_name = "SESSION", required = true)]
        sessions: Vec<String>,
    },
    /// Remove old sessions that nobody named.
    Prune {
        /// Older than this many days [default: `CALIBAN_CLEANUP_PERIOD_DAYS` or 30]
        #[arg(long, value_name = "DAYS")]
        days: Option<u32>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionExport {
    Markdown,
    /// One object with everything.
    Json,
    /// One message per line.
    Jsonl,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermsCommand {
    /// List the rules of a scope, or all that are in effect.
    List {
        /// managed, user, project, local or cli [default: project]
        #[arg(long, value_name = "SCOPE", conflicts_with = "effective")]
        scope: Option<RuleScope>,
        /// All scopes in the order they are tried, the built-in rules last.
        #[arg(long)]
        effective: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say whether a call would be allowed (exit code 0), denied (1) or asked about (2).
    Test(CallArgs),
    /// Show every rule in the order it is tried, and the one that decides.
    Explain(CallArgs),
    /// Append a rule to a scope.
    Add {
        /// `Tool`, `Tool:<glob>`, `Bash:~<glob>` or `Tool:key=<glob>`.
        #[arg(value_name = "PATTERN")]
        pattern: String,
        /// allow, ask or deny.
        #[arg(value_name = "ACTION", value_parser = rule_action)]
        action: RuleAction,
        /// user, project or local.
        #[arg(long, value_name = "SCOPE", default_value = "project")]
        scope: RuleScope,
        /// A note for whoever reads the rules.
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        /// Why it is denied; told to the model.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// When the rule stops counting, such as 2027-01-01T00:00:00Z.
        #[arg(long, value_name = "TIME")]
        expires_at: Option<jiff::Timestamp>,
    },
    /// Remove rules from a scope.
    #[command(group = ArgGroup::new("which").required(true).multiple(false))]
    Remove {
        /// The number that `perms list` shows.
        #[arg(long, value_name = "N", group = "which")]
        index: Option<std::num::NonZeroUsize>,
        /// All rules with exactly this pattern.
        #[arg(long, value_name = "PAT", group = "which")]
        pattern: Option<String>,
        /// user, project or local.
        #[arg(long, value_name = "SCOPE", default_value = "project")]
        scope: RuleScope,
    },
    /// Take over the rules of Claude Code or an older caliban.
    Import {
        /// The file to read.
        #[arg(long, value_name = "PATH")]
        from: PathBuf,
        /// user, project or local.
        #[arg(long, value_name = "SCOPE", default_value = "user")]
        scope: RuleScope,
        /// Show what would be written and change nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the rules of a scope for use elsewhere.
    Export {
        /// managed, user, project, local or cli.
        #[arg(long, value_name = "SCOPE", default_value = "project")]
        scope: RuleScope,
        #[arg(long, value_name = "FORMAT", value_enum, default_value = "toml")]
        format: ExportFormat,
    },
    /// Show decisions from the log, oldest first.
    Audit {
        /// Only those made at this time or later, such as 2026-06-01T00:00:00Z.
        #[arg(long, value_name = "ISO")]
        since: Option<jiff::Timestamp>,
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// allow, ask or deny.
        #[arg(long, value_name = "ACTION", value_parser = rule_action)]
        action: Option<RuleAction>,
        /// Only so many, the most recent ones.
        #[arg(long, value_name = "N")]
        head: Option<usize>,
    },
    /// Report duplicates, contradictions, and rules that never decide or bind less than they seem.
    Lint {
        /// managed, user, project, local or cli.
        #[arg(long, value_name = "SCOPE", default_value = "project")]
        scope: RuleScope,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool, such as Bash.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Its input as a JSON object, such as '{"command": "git push"}'.
    #[arg(value_name = "INPUT_JSON", default_value = "{}")]
    pub(crate) input: String,
}

/// A scope that has rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleScope {
    Managed,
    User,
    Project,
    Local,
    Cli,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Toml,
    Json,
}

fn rule_action(text: &str) -> Result<RuleAction, String> {
    [RuleAction::Allow, RuleAction::Ask, RuleAction::Deny]
        .into_iter()
        .find(|action| action.as_str() == text)
        .ok_or_else(|| "expected allow, ask or deny".to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the settings in effect, and which scope each comes from.
    Print {
        /// Print JSON also on a terminal.
        #[arg(long)]
        json: bool,
    },
    /// Move permissions.toml, mcp.toml and hooks.toml of the workspace into settings.toml.
    Migrate {
        /// Show what would be written and change nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Take over the settings of Claude Code, Codex or an older caliban.
    Import {
        /// The file to read.
        #[arg(long, value_name = "PATH")]
        from: PathBuf,
        /// Where to write: user, project or local.
        #[arg(long, value_name = "SCOPE", default_value = "project")]
        scope: String,
        /// Show what would be written and change nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the settings of one scope as they are written.
    Print {
        /// managed, user, project or local.
        #[arg(long, value_name = "SCOPE", default_value = "project")]
        scope: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The workspace [default: the current directory]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Take the trust back.
    #[arg(long, conflicts_with = "list")]
    pub(crate) revoke: bool,
    /// List trusted workspaces.
    #[arg(long, conflicts_with = "path")]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// Print JSON instead of a list of names.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("system_prompt").multiple(false))]
pub(crate) struct RunArgs {
    /// What to ask. `-` reads it from standard input.
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

    #[command(flatten)]
    pub(crate) provider: ProviderArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) tools: ToolArgs,

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
}

impl OutputArgs {
    pub(crate) fn format(&self) -> OutputFormat {
        self.output_format.unwrap_or(OutputFormat::Text)
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Largest file that `@path` in the prompt attaches (`CALIBAN_MAX_ATTACH_BYTES`) [default:
    /// 262144]
    #[arg(long, value_name = "N")]
    pub(crate) max_attach_bytes: Option<u64>,

    /// Most bytes that all `@path` of a prompt attach (`CALIBAN_ATTACH_BUDGET_BYTES`) [default:
    /// 1048576]
    #[arg(long, value_name = "N")]
    pub(crate) attach_budget_bytes: Option<u64>,

    /// Most calls to the model.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: u32,

    /// Stop, with exit code 137, when the run has cost more than this.
    #[arg(long, value_name = "USD", value_parser = budget)]
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

    /// Connect to no MCP servers (`CALIBAN_NO_MCP`)
    #[arg(long)]
    pub(crate) no_mcp: bool,

    /// Load no plugins (`CALIBAN_NO_PLUGINS`)
    #[arg(long)]
    pub(crate) no_plugins: bool,

    /// Offer no sub-agents (`CALIBAN_NO_SUB_AGENT`)
    #[arg(long)]
    pub(crate) no_sub_agent: bool,

    /// Run the calls of a turn one after the other (`CALIBAN_NO_PARALLEL_TOOLS`)
    #[arg(long)]
    pub(crate) no_parallel_tools: bool,

    /// Most calls that run at the same time (`CALIBAN_PARALLEL_TOOL_LIMIT`) [default: one less
    /// than there are cores]
    #[arg(long, value_name = "N")]
    pub(crate) parallel_tool_limit: Option<NonZeroUsize>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model and provider")]
pub(crate) struct ProviderArgs {
    /// Who answers: anthropic, openai, google or ollama (`CALIBAN_PROVIDER`) [default:
    /// anthropic]
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<ProviderKind>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model and provider")]
pub(crate) struct ModelArgs {
    /// Name of the model [default: the provider's: claude-sonnet-4-6, gpt-5.5,
    /// gemini-3.8-flash, llama3.1]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Model that answers when the first cannot.
    #[arg(long, value_name = "MODEL")]
    pub(crate) fallback_model: Option<String>,

    /// Most tokens of one answer.
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: u32,

    /// Sampling temperature between 0 and 2, for models that take one.
    #[arg(long, value_name = "F", value_parser = temperature)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
