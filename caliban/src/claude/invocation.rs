//! From the flags of this dialect to what the program does: the options of a native run, and the
//! wishes that it has no options for.

use std::io::IsTerminal;
use std::path::PathBuf;

use caliban_harness::Selection;
use caliban_model::{Effort, Reasoning};
use caliban_permissions::{Origin, Rule};
use caliban_protocol::claude::ours;
use caliban_settings::McpConfig;
use caliban_settings::variables::Environment;
use caliban_settings::{RuleAction, RuleSpec};
use clap::Parser;
use serde_json::Value;

use super::flags::Flags;
use super::host::Bypass;
use super::mode::Mode;
use super::models;
use super::operator::Prompts;
use super::wire::Format;
use crate::args::{Cli, OutputFormat};
use crate::console::note;
use crate::exit::Failure;

/// What was asked for on the command line.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) cli: Cli,
    pub(crate) prompt: Option<String>,
    pub(crate) input: InputKind,
    pub(crate) format: Format,
    pub(crate) mode: Option<Mode>,
    pub(crate) bypass: Bypass,
    pub(crate) prompts: Prompts,
    pub(crate) system: System,
    pub(crate) selection: Selection,
    pub(crate) reasoning: Option<Reasoning>,
    pub(crate) json_schema: Option<Value>,
    pub(crate) agents: Option<Value>,
    /// The agent that the session is.
    pub(crate) agent: Option<String>,
    /// The servers of tools that live in the client.
    pub(crate) hosted: Vec<String>,
    pub(crate) shows: Shows,
    pub(crate) debug: DebugTo,
    /// The id that a new session gets.
    pub(crate) session_id: Option<uuid::Uuid>,
    /// The message after which the history of a resumed session is cut.
    pub(crate) resume_at: Option<String>,
}

/// What standard input carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputKind {
    Text,
    Frames,
}

/// What the model is told before everything else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct System {
    /// In the place of the default; an empty text means nothing at all.
    pub(crate) instead: Option<String>,
    pub(crate) appended: Option<String>,
}

/// The frames that are wanted beside the usual ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch exactly as it was typed"
)]
pub(crate) struct Shows {
    pub(crate) partial: bool,
    pub(crate) hooks: bool,
    pub(crate) replay: bool,
    pub(crate) sub_agent_text: bool,
    /// The rows of the transcript, too.
    pub(crate) mirror: bool,
}

/// Where it is written what happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DebugTo {
    /// The log, if one is wanted.
    Log,
    File(PathBuf),
    Stderr,
}

/// Whoever may do everything on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privilege {
    Root,
    Ordinary,
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::Usage(message.into())
}

impl Invocation {
    pub(crate) fn new(
        flags: &Flags,
        environment: &Environment<'_>,
        privilege: Privilege,
    ) -> Result<Self, Failure> {
        let (format, input) = formats(flags)?;
        let mode = mode(flags, environment, privilege)?;
        let mut cli = Cli::try_parse_from(["caliban"]).map_err(|error| wrong(error.to_string()))?;
        let without = rules(flags, &mut cli)?;
        options(flags, environment, &mut cli)?;
        Ok(Self {
            prompt: (!flags.words.is_empty()).then(|| flags.words.join(" ")),
            input,
            format,
            mode,
            bypass: if mode == Some(Mode::BypassPermissions)
                || flags.has("dangerously-skip-permissions")
                || flags.has("allow-dangerously-skip-permissions")
            {
                Bypass::Launched
            } else {
                Bypass::NotLaunched
            },
            prompts: match (
                flags.value("permission-prompt-tool"),
                flags.value("permission-prompts"),
            ) {
                (_, Some("none")) => Prompts::Nobody,
                (Some("stdio"), _) | (_, Some("host")) => Prompts::Client,
                _ => Prompts::Nobody,
            },
            system: System {
                instead: text_or_file(flags, "system-prompt")?,
                appended: text_or_file(flags, "append-system-prompt")?,
            },
            selection: Selection {
                only: None,
                built_in: tools(flags),
                without,
            },
            reasoning: reasoning(flags, environment)?,
            json_schema: json(flags, "json-schema")?,
            agents: agents(flags)?,
            agent: flags.value("agent").map(str::to_owned),
            hosted: servers(flags, &mut cli)?,
            shows: Shows {
                partial: flags.has("include-partial-messages"),
                hooks: flags.has("include-hook-events"),
                replay: flags.has("replay-user-messages"),
                sub_agent_text: flags.has("forward-subagent-text"),
                mirror: flags.has("session-mirror"),
            },
            debug: match flags.value("debug-file") {
                _ if flags.has("debug-to-stderr") => DebugTo::Stderr,
                Some(path) => DebugTo::File(PathBuf::from(path)),
                None => DebugTo::Log,
            },
            session_id: flags
                .value("session-id")
                .map(|id| {
                    let bad = || {
                        wrong(format!(
                            "Error: `{id}` is not a session id: it must be a UUID"
                        ))
                    };
                    id.parse().map_err(|_| bad())
                })
                .transpose()?,
            resume_at: flags.value("resume-session-at").map(str::to_owned),
            cli,
        })
    }
}

fn formats(flags: &Flags) -> Result<(Format, InputKind), Failure> {
    let output = match flags.value("output-format") {
        None | Some("text") => OutputFormat::Text,
        Some("json") => OutputFormat::Json,
        Some("stream-json") => OutputFormat::StreamJson,
        Some(other) => {
            return Err(wrong(format!(
                "Error: there is no output format `{other}`; use text, json or stream-json"
            )));
        }
    };
    let input = match flags.value("input-format") {
        None | Some("text") => InputKind::Text,
        Some("stream-json") => InputKind::Frames,
        Some(other) => {
            return Err(wrong(format!(
                "Error: there is no input format `{other}`; use text or stream-json"
            )));
        }
    };
    if input == InputKind::Frames && output != OutputFormat::StreamJson {
        return Err(wrong(
            "Error: --input-format stream-json needs --output-format stream-json",
        ));
    }
    let is_verbose = flags.has("verbose");
    if output == OutputFormat::StreamJson && flags.has("print") && !is_verbose {
        return Err(wrong(
            "Error: with --print, --output-format stream-json needs --verbose",
        ));
    }
    let is_headless =
        flags.has("print") || input == InputKind::Frames || !std::io::stdout().is_terminal();
    if !is_headless {
        return Err(wrong(
            "Error: there is no terminal interface in this dialect; use -p to answer and exit",
        ));
    }
    Ok((Format::new(output, is_verbose), input))
}

fn mode(
    flags: &Flags,
    environment: &Environment<'_>,
    privilege: Privilege,
) -> Result<Option<Mode>, Failure> {
    let named = flags
        .value("permission-mode")
        .map(|mode| {
            mode.parse::<Mode>()
                .map_err(|error| wrong(format!("Error: {error}")))
        })
        .transpose()?;
    let mode = if flags.has("dangerously-skip-permissions") {
        Some(Mode::BypassPermissions)
    } else {
        named
    };
    let is_sandboxed = environment.text("IS_SANDBOX").as_deref() == Some("1");
    if mode == Some(Mode::BypassPermissions) && privilege == Privilege::Root && !is_sandboxed {
        return Err(wrong(
            "Error: --dangerously-skip-permissions cannot be used as root, unless IS_SANDBOX=1 says that the machine is a sandbox",
        ));
    }
    Ok(mode)
}

/// The rules of the flags; returns the tools that are not to be offered.
fn rules(flags: &Flags, cli: &mut Cli) -> Result<Vec<String>, Failure> {
    let mut without = Vec::new();
    let mut add = |pattern: &str, action: RuleAction| -> Result<(), Failure> {
        let spec = RuleSpec::new(pattern, action);
        match Rule::new(spec.clone(), Origin::Flag) {
            Ok(_) => cli.rules.ordered.push(spec),
            // A tool that is not there need not be forbidden, and cannot be allowed.
            Err(error) if !pattern.contains('(') || action == RuleAction::Allow => {
                note(&format!("warning: {error}"));
            }
            Err(error) => return Err(wrong(format!("Error: {error}"))),
        }
        Ok(())
    };
    for pattern in flags.items("disallowed-tools") {
        if !pattern.contains('(') {
            without.push(ours(&pattern).to_owned());
        }
        add(&pattern, RuleAction::Deny)?;
    }
    for pattern in flags.items("allowed-tools") {
        add(&pattern, RuleAction::Allow)?;
    }
    Ok(without)
}

fn options(flags: &Flags, environment: &Environment<'_>, cli: &mut Cli) -> Result<(), Failure> {
    let number = |name: &str, value: &str| {
        let bad = || {
            wrong(format!(
                "Error: --{name} needs a whole number, not `{value}`"
            ))
        };
        value.parse::<u32>().map_err(|_| bad())
    };
    let run = &mut cli.run;
    run.print = Some(String::new());
    run.model.model = match flags.value("model") {
        Some(name) => models::resolve(name, environment),
        None => environment
            .text("ANTHROPIC_MODEL")
            .and_then(|name| models::resolve(&name, environment)),
    };
    run.model.fallback_model = flags
        .value("fallback-model")
        .and_then(|name| models::resolve(name, environment));
    if let Some(tokens) = environment.text("CLAUDE_CODE_MAX_OUTPUT_TOKENS") {
        run.model.max_tokens = number("max-tokens", &tokens)?;
    }
    // Without a limit of its own a turn ends when the model does.
    run.limits.max_turns = match flags.value("max-turns") {
        Some(turns) => number("max-turns", turns)?.max(1),
        None => u32::MAX,
    };
    run.limits.max_budget_usd = flags
        .value("max-budget-usd")
        .map(|amount| {
            let bad = || {
                wrong(format!(
                    "Error: --max-budget-usd needs an amount, not `{amount}`"
                ))
            };
            amount.parse().map_err(|_| bad())
        })
        .transpose()?;
    run.tools.additional_directories = flags.values("add-dir").iter().map(PathBuf::from).collect();
    run.output.debug = flags.has("debug");
    cli.session.continue_ = flags.has("continue");
    cli.session.resume = flags.value("resume").map(str::to_owned);
    if flags.has("resume") && cli.session.resume.as_deref().is_none_or(str::is_empty) {
        return Err(wrong(
            "Error: --resume needs the id or the title of a session when there is no terminal to choose one",
        ));
    }
    cli.session.fork_session = flags.has("fork-session");
    cli.session.no_save = flags.has("no-session-persistence");
    cli.settings.settings = flags.value("settings").map(str::to_owned);
    if let Some(sources) = flags.value("setting-sources") {
        let named: Vec<&str> = sources
            .split(',')
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .collect();
        cli.settings.isolated = named.is_empty();
        // What the operator of the machine demands holds whatever a client asks for.
        let all: Vec<&str> = std::iter::once("managed").chain(named).collect();
        cli.settings.setting_sources = Some(all.join(","));
    }
    Ok(())
}

/// The built-in tools that exist at all; nothing for all of them.
fn tools(flags: &Flags) -> Option<Vec<String>> {
    if !flags.has("tools") {
        return None;
    }
    let names = flags.items("tools");
    if names.iter().any(|name| name == "default") {
        return None;
    }
    Some(names.iter().map(|name| ours(name).to_owned()).collect())
}

fn text_or_file(flags: &Flags, name: &str) -> Result<Option<String>, Failure> {
    if let Some(text) = flags.value(name) {
        return Ok(Some(text.to_owned()));
    }
    let Some(path) = flags.value(&format!("{name}-file")) else {
        return Ok(None);
    };
    std::fs::read_to_string(path)
        .map(Some)
        .map_err(|error| wrong(format!("Error: `{path}` cannot be read: {error}")))
}

fn reasoning(flags: &Flags, environment: &Environment<'_>) -> Result<Option<Reasoning>, Failure> {
    let effort = match flags.value("effort") {
        // Adaptive thinking is what models do at the effort they take by themselves.
        None if flags.value("thinking") == Some("adaptive") => Some(Effort::High),
        None | Some("auto") => None,
        Some("low") => Some(Effort::Low),
        Some("medium") => Some(Effort::Medium),
        Some("high") => Some(Effort::High),
        Some("xhigh") => Some(Effort::Xhigh),
        Some("max") => Some(Effort::Max),
        Some(other) => {
            return Err(wrong(format!(
                "Error: there is no effort `{other}`; use low, medium, high, xhigh or max"
            )));
        }
    };
    if flags.value("thinking") == Some("disabled") {
        return Ok(Some(Reasoning::Off));
    }
    let variable = environment.text("MAX_THINKING_TOKENS");
    let tokens = flags.value("max-thinking-tokens").or(variable.as_deref());
    let budget =
        match tokens {
            None => None,
            Some(tokens) => Some(tokens.parse::<u32>().map_err(|_| {
                wrong(format!("Error: `{tokens}` is no number of thinking tokens"))
            })?),
        };
    Ok(effort.map(Reasoning::Effort).or(budget.map(budgeted)))
}

/// Thinking within so many tokens; none at all without any.
pub(crate) fn budgeted(tokens: u32) -> Reasoning {
    match tokens {
        0 => Reasoning::Off,
        tokens => Reasoning::Budget(tokens),
    }
}

fn json(flags: &Flags, name: &str) -> Result<Option<Value>, Failure> {
    let bad = |reason: String| wrong(format!("Error: --{name}: {reason}"));
    let value = flags
        .value(name)
        .map(|text| serde_json::from_str::<Value>(text).map_err(|error| bad(error.to_string())));
    value.transpose()
}

/// Agents as JSON, or the file that holds it.
fn agents(flags: &Flags) -> Result<Option<Value>, Failure> {
    let Some(given) = flags.value("agents") else {
        return Ok(None);
    };
    config(given, "agents").map(Some)
}

fn config(given: &str, name: &str) -> Result<Value, Failure> {
    let bad = |reason: String| wrong(format!("Error: --{name}: {reason}"));
    let text = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        let path = given.strip_prefix('@').unwrap_or(given);
        std::fs::read_to_string(path).map_err(|error| bad(format!("`{path}`: {error}")))?
    };
    serde_json::from_str(&text).map_err(|error| bad(error.to_string()))
}

/// The servers of the flags; returns those that live in the client.
fn servers(flags: &Flags, cli: &mut Cli) -> Result<Vec<String>, Failure> {
    let mut given = McpConfig::default();
    for config in flags.values("mcp-config") {
        given
            .read(config)
            .map_err(|error| wrong(format!("Error: --mcp-config: {error}")))?;
        cli.run.servers.mcp_config.push(config.to_owned());
    }
    cli.run.servers.strict_mcp_config = flags.has("strict-mcp-config");
    let judge = flags.value("permission-prompt-tool");
    let judge = judge.filter(|tool| tool.starts_with("mcp__"));
    cli.run.servers.permission_prompt_tool = judge.map(str::to_owned);
    Ok(given.hosted)
}
