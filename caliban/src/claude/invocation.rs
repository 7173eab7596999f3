//! From the flags of this dialect to what the program does: the options of a run, and the wishes
//! that they have no place for.

use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::path::PathBuf;

use caliban_harness::options::{
    ConfiguredServers, Continuation, DebugTo, DefaultTurns, EarlierMode, EarlierSystem, Extent,
    RunOptions, Saving, SessionChoice, SettingsEnvironment,
};
use caliban_model::{Effort, Reasoning};
use caliban_permissions::{Origin, Precedence, Rule};
use caliban_protocol::claude::ours;
use caliban_settings::McpConfig;
use caliban_settings::variables::Environment;
use caliban_settings::{RuleAction, RuleSpec};
use serde_json::Value;

use super::consents::QuestionRoute;
use super::flags::Flags;
use super::host::Bypass;
use super::mode::Mode;
use super::models;
use super::wire::Format;
use crate::args::{OutputFormat, shared_options};
use crate::console::note;
use crate::exit::Failure;

/// What was asked for on the command line.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) options: RunOptions,
    pub(crate) prompt: Option<String>,
    pub(crate) input: InputKind,
    pub(crate) format: Format,
    pub(crate) mode: Option<Mode>,
    pub(crate) bypass: Bypass,
    pub(crate) questions: QuestionRoute,
    pub(crate) system: System,
    pub(crate) json_schema: Option<Value>,
    pub(crate) agents: Option<Value>,
    /// The agent that the session is.
    pub(crate) agent: Option<String>,
    /// The servers of tools that live in the client.
    pub(crate) hosted: Vec<String>,
    pub(crate) shows: Shows,
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
        environment: &Environment,
        privilege: Privilege,
    ) -> Result<Self, Failure> {
        let (format, input) = formats(flags)?;
        let mode = mode(flags, environment, privilege)?;
        let mut options = shared_options(&flags.native)?;
        options.permissions.mode = mode.map(Mode::ours);
        rules(flags, &mut options)?;
        run_options(flags, environment, &mut options)?;
        session_options(flags, &mut options)?;
        settings_options(flags, &mut options)?;
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
            questions: match (
                flags.value("permission-prompt-tool"),
                flags.value("permission-prompts"),
            ) {
                (_, Some("none")) => QuestionRoute::Nobody,
                (Some("events"), _) => QuestionRoute::Frames,
                (Some("stdio"), _) | (_, Some("host")) => QuestionRoute::Control,
                _ => QuestionRoute::Nobody,
            },
            system: System {
                instead: text_or_file(flags, "system-prompt")?,
                appended: text_or_file(flags, "append-system-prompt")?,
            },
            json_schema: json(flags, "json-schema")?,
            agents: agents(flags)?,
            agent: flags.value("agent").map(str::to_owned),
            hosted: servers(flags, &mut options)?,
            shows: Shows {
                partial: flags.has("include-partial-messages"),
                hooks: flags.has("include-hook-events"),
                replay: flags.has("replay-user-messages"),
                sub_agent_text: flags.has("forward-subagent-text"),
                mirror: flags.has("session-mirror"),
            },
            resume_at: flags.value("resume-session-at").map(str::to_owned),
            options,
        })
    }

    /// The session that is asked for by name or id.
    pub(crate) fn resumed(&self) -> Option<&String> {
        match &self.options.session.choice {
            SessionChoice::Resume(text) => Some(text),
            SessionChoice::New | SessionChoice::Named(_) | SessionChoice::Latest => None,
        }
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
    environment: &Environment,
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

/// The rules of the flags. What is forbidden counts first.
fn rules(flags: &Flags, options: &mut RunOptions) -> Result<(), Failure> {
    let usable = |pattern: &str, action: RuleAction| -> Result<Option<RuleSpec>, Failure> {
        let spec = RuleSpec::new(pattern, action);
        match Rule::new(spec.clone(), Origin::Flag) {
            Ok(_) => Ok(Some(spec)),
            // A tool that is not there need not be forbidden, and cannot be allowed.
            Err(error) if !pattern.contains('(') || action == RuleAction::Allow => {
                note(&format!("warning: {error}"));
                Ok(None)
            }
            Err(error) => Err(wrong(format!("Error: {error}"))),
        }
    };
    let mut rules = Vec::new();
    for pattern in flags.items("disallowed-tools") {
        if !pattern.contains('(') {
            let without = &mut options.tools.selection.without;
            without.push(ours(&pattern).to_owned());
        }
        rules.extend(usable(&pattern, RuleAction::Deny)?);
    }
    rules.append(&mut options.permissions.rules);
    for pattern in flags.items("allowed-tools") {
        rules.extend(usable(&pattern, RuleAction::Allow)?);
    }
    options.permissions.rules = rules;
    // The flags are the application's, and it cannot undo what its user forbade.
    options.permissions.precedence = Precedence::StrictestFirst;
    Ok(())
}

fn run_options(
    flags: &Flags,
    environment: &Environment,
    options: &mut RunOptions,
) -> Result<(), Failure> {
    let number = |name: &str, value: &str| {
        let bad = || {
            wrong(format!(
                "Error: --{name} needs a whole number, not `{value}`"
            ))
        };
        value.parse::<u32>().map_err(|_| bad())
    };
    let model = &mut options.model;
    model.model = match flags.value("model") {
        Some(name) => models::resolve(name, environment),
        None => environment
            .text("ANTHROPIC_MODEL")
            .and_then(|name| models::resolve(&name, environment)),
    };
    model.fallback = flags
        .value("fallback-model")
        .and_then(|name| models::resolve(name, environment));
    if let (None, Some(tokens)) = (
        model.max_tokens,
        environment.text("CLAUDE_CODE_MAX_OUTPUT_TOKENS"),
    ) {
        model.max_tokens = NonZeroU32::new(number("max-tokens", &tokens)?);
    }
    model.reasoning = reasoning(flags, environment)?;
    model.betas = flags.items("betas");
    if let Some(bad) = model.betas.iter().find(|beta| !is_beta(beta)) {
        return Err(wrong(format!(
            "Error: --betas needs names of beta features, not `{bad}`"
        )));
    }
    // Without a limit of its own a run ends when the model does.
    options.limits.default_turns = DefaultTurns::Unlimited;
    if let Some(turns) = flags.value("max-turns") {
        let turns = NonZeroU32::new(number("max-turns", turns)?);
        options.limits.max_turns = Some(turns.unwrap_or(NonZeroU32::MIN));
    }
    options.limits.budget = flags
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
    let directories = flags.values("add-dir").iter().map(PathBuf::from);
    options.tools.further_directories.extend(directories);
    let plugins = flags.values("plugin-dir").iter().map(PathBuf::from);
    options.tools.plugin_directories.extend(plugins);
    options.tools.selection.built_in = tools(flags);
    options.debug = match flags.value("debug-file") {
        _ if flags.has("debug-to-stderr") => DebugTo::Diagnostics,
        Some(path) => DebugTo::File(PathBuf::from(path)),
        None if flags.has("debug") => DebugTo::Log,
        None => DebugTo::AsConfigured,
    };
    Ok(())
}

/// Whether a word can be the name of a beta feature: it becomes part of a header.
fn is_beta(word: &str) -> bool {
    word.chars()
        .all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it))
}

fn session_options(flags: &Flags, options: &mut RunOptions) -> Result<(), Failure> {
    let session = &mut options.session;
    // A client that says nothing of the mode means the usual one, whatever the session was in.
    session.earlier_mode = EarlierMode::Left;
    session.earlier_system = EarlierSystem::Replaceable;
    if flags.has("continue") {
        session.choice = SessionChoice::Latest;
    }
    if flags.has("resume") {
        let named = flags.value("resume").filter(|text| !text.is_empty());
        let named = named.ok_or_else(|| wrong(
            "Error: --resume needs the id or the title of a session when there is no terminal to choose one",
        ))?;
        session.choice = SessionChoice::Resume(named.to_owned());
    }
    if flags.has("fork-session") {
        session.continuation = Continuation::Fork;
    }
    if flags.has("no-session-persistence") {
        session.saving = Saving::Off;
    }
    if let Some(id) = flags.value("session-id") {
        let bad = || {
            wrong(format!(
                "Error: `{id}` is not a session id: it must be a UUID"
            ))
        };
        session.id = Some(id.parse().map_err(|_| bad())?);
    }
    Ok(())
}

fn settings_options(flags: &Flags, options: &mut RunOptions) -> Result<(), Failure> {
    let settings = &mut options.settings;
    // What the settings say about the environment holds for the program itself.
    settings.environment = SettingsEnvironment::WholeRun;
    settings.overlay = flags.value("settings").map(str::to_owned);
    if let Some(sources) = flags.value("setting-sources") {
        let named: Vec<&str> = sources
            .split(',')
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .collect();
        if named.is_empty() && settings.extent == Extent::Everything {
            settings.extent = Extent::Isolated;
        }
        // What the operator of the machine demands holds whatever a client asks for.
        let all: Vec<&str> = std::iter::once("managed").chain(named).collect();
        settings.sources = Some(all.join(",").parse()?);
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

fn reasoning(flags: &Flags, environment: &Environment) -> Result<Option<Reasoning>, Failure> {
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
fn servers(flags: &Flags, options: &mut RunOptions) -> Result<Vec<String>, Failure> {
    let mut given = McpConfig::default();
    let servers = &mut options.servers;
    for config in flags.values("mcp-config") {
        given
            .read(config)
            .map_err(|error| wrong(format!("Error: --mcp-config: {error}")))?;
        servers.configs.push(config.to_owned());
    }
    if flags.has("strict-mcp-config") {
        servers.configured = ConfiguredServers::Left;
    }
    let judge = flags.value("permission-prompt-tool");
    let judge = judge.filter(|tool| tool.starts_with("mcp__"));
    servers.prompt_tool = judge.map(str::to_owned);
    Ok(given.hosted)
}
