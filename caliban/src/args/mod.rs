//! The command line, exactly as typed. What it means is decided elsewhere.

mod agents;
mod commands;
mod fleet;
mod mcp;
mod mistakes;
mod options;
mod plugin;
mod prompted;
mod router;
mod run;
mod serve;
mod worktrees;

use std::path::PathBuf;

use caliban_settings::PermissionMode;
use clap::{Args, CommandFactory, Parser};

pub(crate) use agents::*;
pub(crate) use commands::*;
pub(crate) use fleet::*;
pub(crate) use mcp::*;
pub(crate) use mistakes::*;
pub(crate) use options::*;
pub(crate) use plugin::*;
pub(crate) use router::*;
pub(crate) use run::*;
pub(crate) use serve::*;
pub(crate) use worktrees::*;

const DEMO: &str = "Try `caliban demo` first: it needs neither a key nor a network.";
const USAGE: &str = "caliban [OPTIONS] [PROMPT]\n       caliban [OPTIONS] <COMMAND>";
/// One for each group of options.
const EXAMPLES: &str = "\
Examples:
  caliban -p \"summarise README.md\"
  git diff | caliban -p - \"review this\"
  caliban -p \"find dead code\" --output-format json --max-turns 20 --max-budget-usd 0.50
  caliban -p \"and remove it\" -c
  caliban -p \"fix the tests\" --permission-mode acceptEdits --allow 'Bash:cargo test*'
  caliban -p \"look around\" --workspace ../other --restrict-paths
  caliban -p \"hello\" --provider openai --model gpt-5.5
  caliban -p \"talk like a pirate\" --system \"You are a pirate.\"
  caliban -p \"what is new?\" --mcp-config servers.json
  caliban -p \"hello\" --settings '{\"model\": \"claude-haiku-4-5\"}' --record run.jsonl";
/// What the help of a command says instead of repeating the options that count everywhere.
const ELSEWHERE: &str =
    "`caliban --help` has the options for settings, rules and places, which count here as well.";

/// An AI agent harness for scripts, applications and the terminal.
#[derive(Debug, Parser)]
#[command(
    name = "caliban",
    version,
    about,
    args_override_self = true,
    override_usage = USAGE,
    after_help = format!("{EXAMPLES}\n\n{DEMO}"),
    after_long_help = format!("{EXAMPLES}\n\n{}\n\n{DEMO}", crate::exit::help())
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
    #[command(flatten)]
    pub(crate) mcp: McpArgs,

    /// Whose command line, frames and exit codes the program has: caliban's own, or those of
    /// Claude Code, for programs that were written for it (`CALIBAN_DIALECT`) [default: claude
    /// where the program is started under that name]
    #[arg(
        long,
        value_name = "DIALECT",
        value_enum,
        help_heading = "Input and output"
    )]
    pub(crate) dialect: Option<Dialect>,
}

/// The command line as it is explained: the help of a command has the arguments of that command.
/// It costs more to make than the plain one, so it is made where help is wanted.
pub(crate) fn explained() -> clap::Command {
    fn own(command: clap::Command, everywhere: &[clap::Id]) -> clap::Command {
        let note = match command.get_after_help() {
            Some(said) => format!("{said}\n\n{ELSEWHERE}"),
            None => ELSEWHERE.to_owned(),
        };
        // Those that a command has for its own commands are shown with these.
        let hidden = |arg: clap::Arg| {
            let is_elsewhere = everywhere.contains(arg.get_id());
            let is_hidden = arg.is_hide_set() || arg.is_global_set() && is_elsewhere;
            arg.hide(is_hidden)
        };
        command
            .mut_args(hidden)
            .mut_subcommands(|below| own(below, everywhere))
            .after_help(note)
    }
    let mut command = Cli::command();
    command.build();
    let everywhere: Vec<clap::Id> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .map(|arg| arg.get_id().clone())
        .collect();
    command.mut_subcommands(|below| own(below, &everywhere))
}

/// Whose command line and frames the program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dialect {
    Caliban,
    Claude,
}

/// Which conversation goes on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Session")]
pub(crate) struct SessionArgs {
    /// Continue the session of this name, or begin it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resume", "continue_"])]
    pub(crate) session: Option<String>,

    /// Continue the session that was used last in this workspace.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
