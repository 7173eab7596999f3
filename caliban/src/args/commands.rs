//! The subcommands and their arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use caliban_settings::RuleAction;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::agents::{AgentShorthand, AgentsCommand, DaemonCommand};
use super::fleet::FleetArgs;
use super::mcp::McpCommand;
use super::plugin::PluginCommand;
use super::router::RouterCommand;
use super::run::ProviderArgs;
use super::serve::{AppArgs, HttpArgs, WebArgs};
use super::worktrees::WorktreesCommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the program at work on a recorded conversation, without a key or a network.
    Demo,
    /// List the models that the configured providers offer, with price, window and routes.
    Models(ModelsArgs),
    /// Check the installation; exits with 1 when a check has failed.
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
    /// Show what sessions consumed and cost, by day, model, project, session, purpose or agent.
    Usage(UsageArgs),
    /// Take back what prompts changed in the workspace.
    Rewind(RewindArgs),
    /// Look at the worktrees of sub-agents, bring their work back, and remove them.
    Worktrees {
        #[command(subcommand)]
        command: WorktreesCommand,
    },
    /// Look at permission rules, try them out and change them.
    Perms {
        #[command(subcommand)]
        command: PermsCommand,
    },
    /// Run a command as the sandbox would, or see what it makes of a path or host.
    Sandbox {
        #[command(subcommand)]
        command: SandboxCommand,
    },
    /// Look at what the model is told beforehand, approve files outside the workspace, and tend the
    /// agent's notes.
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// Keep sessions open for programs that talk to them: over HTTP, or over another protocol.
    ///
    /// Without a protocol, sessions are reached over HTTP: `docs/applications.md` has the resources.
    /// Each has a process of its own, which goes on when the server ends.
    /// What the operator decides is given as for a run, before `serve`.
    Serve(ServeArgs),
    /// Look at MCP servers, add and remove them, and log in to them.
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Look at plugins, install, update and remove them, and begin one.
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// Show what routes would do, test them, and rehearse outages.
    Router {
        #[command(subcommand)]
        command: RouterCommand,
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
    /// Start, list, steer and end agents in the background, and look at kinds of agents.
    Agents {
        #[command(subcommand)]
        command: AgentsCommand,
    },
    /// Have jobs done by workers on many machines, over a NATS server.
    Fleet(FleetArgs),
    /// Look at the daemon that supervises the agents of this repository.
    Daemon {
        #[command(subcommand)]
        command: DaemonCommand,
    },
    #[command(flatten)]
    Agent(AgentShorthand),
}

#[derive(Debug, Default, Args)]
pub(crate) struct DoctorArgs {
    /// Also call providers at their own address, with the key, one request each; and connect to
    /// MCP servers.
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
pub(crate) enum SandboxCommand {
    /// Run a command in the sandbox that the settings describe; its exit code is the command's.
    Exec {
        /// The program and its arguments, after `--`.
        #[arg(value_name = "COMMAND", required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Say what commands may do with a path, or whether they reach a host.
    Explain {
        #[arg(value_name = "PATH|HOST")]
        what: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the instruction files and notes that enter the prompt, with their size in tokens.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let instruction files import these files from outside the workspace, as they are now.
    Approve {
        /// Files that an instruction file imports [default: all that are imported]
        #[arg(value_name = "FILE")]
        paths: Vec<PathBuf>,
    },
    /// Take an approval back.
    Revoke {
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
    /// Print a note of the agent on this workspace, or the index of all of them.
    Show {
        /// Such as `build`, for the file `build.md` [default: the index]
        #[arg(value_name = "TOPIC")]
        topic: Option<String>,
    },
    /// Edit a note, or the index, with `$VISUAL` or `$EDITOR`; then the index is brought up to
    /// date.
    Edit {
        /// Such as `build`, for the file `build.md` [default: the index]
        #[arg(value_name = "TOPIC")]
        topic: Option<String>,
    },
    /// Remove a note and its line in the index.
    Rm {
        #[arg(value_name = "TOPIC")]
        topic: String,
    },
    /// Make the index agree with the notes that are there.
    RebuildIndex,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Speak the heddle protocol: one JSON object per line, requests in, events and results out.
    ///
    /// The client names the model, the system prompt and the tools. What the operator decides is
    /// given as for a run, before `serve`: `caliban --workspace DIR --provider openai --deny
    /// 'Bash:git push*' serve heddle`.
    Heddle,
    /// Speak the Agent Client Protocol with an editor: one JSON-RPC message per line.
    ///
    /// The editor opens sessions, each in a directory of its own. What the operator decides is given
    /// as for a run, before `serve`: `caliban --model gpt-5.5 --deny 'Bash:git push*' serve acp`.
    Acp {
        /// Ask for the provider's key in this terminal and keep it, instead of serving.
        #[arg(long)]
        login: bool,
    },
    /// Keep sessions for an application: one JSON object per line, requests in, answers and events
    /// out.
    ///
    /// Each session is a tab with a queue of its own. What the operator decides is given as for a
    /// run, before `serve`; an application cannot undo what is denied there or in the settings.
    App(AppArgs),
    /// Keep sessions for a browser: the same as `serve`, at an address of this machine, with the
    /// page opened.
    Web(WebArgs),
}

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// What the lines are about.
    #[arg(long, value_name = "WHAT", value_enum, default_value = "day")]
    pub(crate) by: UsageBy,
    /// From this day on: 2026-01-31, today, yesterday, or so long ago, as 7d or 2w.
    #[arg(long, value_name = "DAY", value_parser = crate::usage_command::day)]
    pub(crate) since: Option<jiff::civil::Date>,
    /// Up to and including this day.
    #[arg(long, value_name = "DAY", value_parser = crate::usage_command::day)]
    pub(crate) until: Option<jiff::civil::Date>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What consumption is summed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageBy {
    Day,
    Model,
    Project,
    Session,
    Purpose,
    Agent,
}

impl UsageBy {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Project => "project",
            Self::Session => "session",
            Self::Purpose => "purpose",
            Self::Agent => "agent",
        }
    }

    /// Whether time and denials can be told apart by it.
    pub(crate) fn has_work(self) -> bool {
        match self {
            Self::Day | Self::Project | Self::Session => true,
            Self::Model | Self::Purpose | Self::Agent => false,
        }
    }
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct RewindArgs {
    /// The session, by its name or id [default: the latest of this workspace]
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// List the prompts to go back to, the latest first.
    #[arg(long, conflicts_with = "to")]
    pub(crate) list: bool,
    /// Go back to the end of this prompt; 0 is before the first.
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<u32>,
    /// Restore the files alone; the model is told of it.
    #[arg(long, requires = "to")]
    pub(crate) code: bool,
    /// Restore the conversation alone.
    #[arg(long, requires = "to", conflicts_with = "code")]
    pub(crate) conversation: bool,
    /// Restore both, which is the default.
    #[arg(long, requires = "to", conflicts_with_all = ["code", "conversation"])]
    pub(crate) both: bool,
    /// Only show what would change.
    #[arg(long, requires = "to")]
    pub(crate) dry_run: bool,
    /// Overwrite what others have changed since; it is kept, too.
    #[arg(long, requires = "to")]
    pub(crate) force: bool,
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
    /// List the rules of a scope as they are written, or all that are in effect.
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
        scope: WritableScope,
        /// A note for whoever reads the rules.
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        /// Why it is so; told to the model where a call is denied.
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
        scope: WritableScope,
    },
    /// Take over the rules of Claude Code or an older caliban.
    Import {
        /// The file to read.
        #[arg(long, value_name = "PATH")]
        from: PathBuf,
        /// user, project or local.
        #[arg(long, value_name = "SCOPE", default_value = "user")]
        scope: WritableScope,
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
        /// Only those made at this time or later, such as 2026-06-01T00:00:00Z or 2026-06-01.
        #[arg(long, value_name = "ISO", value_parser = time)]
        since: Option<jiff::Timestamp>,
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// allow, ask or deny.
        #[arg(long, value_name = "ACTION", value_parser = rule_action)]
        action: Option<RuleAction>,
        /// Only what rules of this scope decided: managed, user, project, local or cli.
        #[arg(long, value_name = "SCOPE")]
        scope: Option<RuleScope>,
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
    /// Only the rules of this scope and the built-in ones: managed, user, project, local or cli.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<RuleScope>,
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

/// A scope whose rules are ours to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WritableScope {
    User,
    Project,
    Local,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Toml,
    Json,
}

/// A time, or the beginning of a day in UTC.
fn time(text: &str) -> Result<jiff::Timestamp, jiff::Error> {
    text.parse().or_else(|error| {
        let day: jiff::civil::Date = text.parse().map_err(|_| error)?;
        Ok(day.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp())
    })
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
        /// Print values too that look like secrets or are named as such.
        #[arg(long)]
        show_secrets: bool,
    },
    /// Move permissions.toml, mcp.toml and hooks.toml of the workspace and of the user into
    /// settings.toml.
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
    /// Print the settings of one scope as they are written, or all of them merged.
    Print {
        /// managed, user, project or local, or effective for what they come to.
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
    /// Print JSON instead of columns.
    #[arg(long)]
    pub(crate) json: bool,
}
