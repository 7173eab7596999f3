//! From the command line to the options of a run. Files that hold a text are read here, so that
//! options depend on nobody's disk.

use std::ffi::OsString;
use std::num::NonZeroU32;

use caliban_agent::{AnswerSchema, Confinement};
use caliban_harness::SystemPrompt;
use caliban_harness::options::{
    Cassette, ConfiguredServers, Continuation, DebugTo, Extent, LimitOptions, ModelOptions,
    Parallel, Part, PermissionOptions, RunOptions, Saving, ServerOptions, SessionChoice,
    SessionOptions, SettingsOptions, ToolOptions,
};
use caliban_permissions::{AutoAllow, Gating, Latch};
use caliban_settings::{RuleAction, RuleSpec, Sources, TrustDecision};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use serde_json::Value;

use super::prompted;
use super::{
    Cli, InputFormat, OutputFormat, PermissionArgs, RunArgs, SessionArgs, SettingsArgs, ToolArgs,
    explained,
};
use crate::exit::Failure;
use crate::print::Attends;

/// Asks the program that reads our frames, in the place of a tool.
const EVENTS: &str = "events";

/// The flags of a run on a command line, before its command or after it, as one would type them again.
/// `words` begin with the program's name.
pub(crate) fn run_flags(words: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let command = Cli::command();
    // It was understood before.
    let Ok(matches) = command.clone().try_get_matches_from(words) else {
        return Vec::new();
    };
    let mut levels = vec![&matches];
    while let Some((_, below)) = levels.last().and_then(|level| level.subcommand()) {
        levels.push(below);
    }
    let mut flags = Vec::new();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let is_given = |level: &&&ArgMatches| {
            level.try_contains_id(id).is_ok_and(|is_known| is_known)
                && level.value_source(id) == Some(ValueSource::CommandLine)
        };
        let (Some(long), Some(level)) = (arg.get_long(), levels.iter().rev().find(is_given)) else {
            continue;
        };
        if !arg.get_action().takes_values() {
            flags.push(format!("--{long}"));
            continue;
        }
        for value in level.get_raw(id).into_iter().flatten() {
            let value = value.to_string_lossy();
            if value.starts_with('-') {
                flags.push(format!("--{long}={value}"));
            } else {
                flags.extend([format!("--{long}"), value.into_owned()]);
            }
        }
    }
    flags
}

/// A command line, and the order of its rules, which the arguments by themselves do not keep.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub(crate) cli: Cli,
    rules: Vec<RuleSpec>,
}

impl CommandLine {
    /// Whether the program that reads our frames answers questions.
    pub(crate) fn attends(&self) -> Attends {
        match self.cli.run.servers.permission_prompt_tool.as_deref() {
            Some(EVENTS) => Attends::Yes,
            Some(_) | None => Attends::No,
        }
    }

    /// Who is asked must be able to answer.
    pub(crate) fn check_attendance(&self) -> Result<(), Failure> {
        let output = &self.cli.run.output;
        let is_spoken_with = output.input_format == InputFormat::StreamJson
            && output.format() == OutputFormat::StreamJson;
        if self.attends() == Attends::Yes && !is_spoken_with {
            return Err(Failure::Usage(
                "`--permission-prompt-tool events` needs `--input-format stream-json` and `--output-format stream-json`"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// `words` begin with the program's name.
    pub(crate) fn parse(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let parsed = match prompted::read(&words) {
            Some(matches) => Ok(matches),
            None => Cli::command().try_get_matches_from(&words),
        };
        let matches = parsed.or_else(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                explained().try_get_matches_from(&words)
            }
            _ => Err(error),
        })?;
        Ok(Self {
            cli: Cli::from_arg_matches(&matches)?,
            rules: ordered_rules(&matches),
        })
    }

    /// What is asked of a run.
    pub(crate) fn options(&self) -> Result<RunOptions, Failure> {
        let Cli {
            run,
            settings,
            session,
            ..
        } = &self.cli;
        Ok(RunOptions {
            workspace: run.tools.workspace.clone(),
            settings: of_settings(settings)?,
            model: ModelOptions {
                provider: run.provider.kind(),
                model: run.model.model.clone(),
                fallback: run.model.fallback_model.clone(),
                max_tokens: run.model.max_tokens.and_then(NonZeroU32::new),
                temperature: run.model.temperature,
                prompt_cache: part(run.model.no_prompt_cache),
                reasoning: None,
                betas: Vec::new(),
            },
            limits: LimitOptions {
                max_turns: run.limits.max_turns.and_then(NonZeroU32::new),
                budget: run.limits.max_budget_usd,
                max_attach_bytes: run.limits.max_attach_bytes,
                attach_budget_bytes: run.limits.attach_budget_bytes,
                ..LimitOptions::default()
            },
            tools: of_tools(&run.tools),
            servers: ServerOptions {
                servers: part(run.servers.no_mcp),
                configs: run.servers.mcp_config.clone(),
                configured: if run.servers.strict_mcp_config {
                    ConfiguredServers::Left
                } else {
                    ConfiguredServers::Included
                },
                prompt_tool: match run.servers.permission_prompt_tool.as_deref() {
                    None | Some(EVENTS) => None,
                    Some(tool) => Some(tool.to_owned()),
                },
            },
            permissions: of_permissions(&run.permissions, self.rules.clone()),
            session: of_session(session)?,
            system: system_prompt(run)?,
            agent: run.agent.clone(),
            answer: run.output.json_schema.as_deref().map(answer).transpose()?,
            cassette: match (&run.cassette.record, &run.cassette.replay) {
                (Some(path), _) => Some(Cassette::Record(path.clone())),
                (None, Some(path)) => Some(Cassette::Replay(path.clone())),
                (None, None) => None,
            },
            debug: if run.output.debug {
                DebugTo::Log
            } else {
                DebugTo::AsConfigured
            },
        })
    }

    /// Refuses what an application says for every session by itself.
    pub(crate) fn check_for_applications(&self) -> Result<(), Failure> {
        let (run, session) = (&self.cli.run, &self.cli.session);
        let prompt = run.prompt.is_some() || run.prompt_flag.is_some() || run.print.is_some();
        let continues = session.continue_ || session.resume.is_some() || session.session.is_some();
        let misplaced = [
            (prompt, "a prompt"),
            (continues, "the session to go on with"),
            (run.output.output_format.is_some(), "`--output-format`"),
            (
                run.output.input_format != InputFormat::Text,
                "`--input-format`",
            ),
        ];
        match misplaced.into_iter().find(|(given, _)| *given) {
            None => Ok(()),
            Some((_, what)) => Err(Failure::Usage(format!(
                "a server has no place for {what}: its applications say it for each session"
            ))),
        }
    }

    /// Refuses what a client of `serve heddle` says, or what belongs to another face.
    pub(crate) fn check_served(&self) -> Result<(), Failure> {
        let run = &self.cli.run;
        let system = run.system.is_some() || run.system_file.is_some() || run.no_system;
        let further = [
            (system, "a system prompt"),
            (run.model.model.is_some(), "`--model`"),
        ];
        refuse(of_prompts(run).into_iter().chain(further), |what| {
            format!("`serve heddle` takes {what} from its client, not from the command line")
        })
    }

    /// Refuses what an editor says, or what belongs to another face.
    pub(crate) fn check_edited(&self) -> Result<(), Failure> {
        let (run, session) = (&self.cli.run, &self.cli.session);
        let is_chosen = choice(session) != SessionChoice::New;
        let further = [
            (is_chosen, "the session"),
            (run.servers.permission_prompt_tool.is_some(), "consent"),
            (run.tools.workspace.is_some(), "`--workspace`"),
        ];
        refuse(of_prompts(run).into_iter().chain(further), |what| {
            format!("`serve acp` takes {what} from the editor, not from the command line")
        })
    }
}

/// What only a run over prompts has, whether it was given and how it is called.
fn of_prompts(run: &RunArgs) -> [(bool, &'static str); 4] {
    let prompt = run.prompt.is_some() || run.prompt_flag.is_some() || run.print.is_some();
    let is_framed = run.output.input_format != InputFormat::Text;
    [
        (prompt, "a prompt"),
        (run.output.output_format.is_some(), "`--output-format`"),
        (is_framed, "`--input-format`"),
        (run.output.json_schema.is_some(), "`--json-schema`"),
    ]
}

/// An error about the first of these that was given.
fn refuse(
    mut misplaced: impl Iterator<Item = (bool, &'static str)>,
    said: impl FnOnce(&str) -> String,
) -> Result<(), Failure> {
    match misplaced.find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, what)) => Err(Failure::Usage(said(what))),
    }
}

/// What a flag of ours takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagTakes {
    Nothing,
    Value,
}

/// Flags that say how the native face reads and writes, which another face has its own for.
const NATIVE_FACE: [&str; 9] = [
    "base-ref",
    "bg",
    "dialect",
    "fail-on-denial",
    "isolation",
    "no-auto-print",
    "prompt",
    "quiet",
    "version",
];

/// What the flag of this name takes, if another dialect may have it as well.
pub(crate) fn shared_flag(name: &str) -> Option<FlagTakes> {
    let command = Cli::command();
    let mut flags = command.get_arguments();
    let flag = flags.find(|flag| {
        let others = flag.get_visible_aliases().unwrap_or_default();
        flag.get_long() == Some(name) || others.contains(&name)
    })?;
    if flag
        .get_long()
        .is_some_and(|long| NATIVE_FACE.contains(&long))
    {
        return None;
    }
    Some(if flag.get_action().takes_values() {
        FlagTakes::Value
    } else {
        FlagTakes::Nothing
    })
}

/// The options that flags of ours mean, where they stand in the command line of another dialect.
pub(crate) fn shared_options(flags: &[String]) -> Result<RunOptions, Failure> {
    if flags.is_empty() {
        return Ok(RunOptions::default());
    }
    let words = std::iter::once("caliban").chain(flags.iter().map(String::as_str));
    let line = CommandLine::parse(words);
    line.map_err(|error| Failure::Usage(error.to_string().trim_end().to_owned()))?
        .options()
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

fn part(is_off: bool) -> Part {
    if is_off {
        Part::Off
    } else {
        Part::AsConfigured
    }
}

fn of_settings(args: &SettingsArgs) -> Result<SettingsOptions, Failure> {
    Ok(SettingsOptions {
        overlay: args.settings.clone(),
        sources: match &args.setting_sources {
            Some(list) => Some(list.parse::<Sources>()?),
            None => None,
        },
        router_file: args.config.clone(),
        extent: if args.bare {
            Extent::Bare
        } else {
            Extent::Everything
        },
        trust: if args.trust_workspace {
            TrustDecision::Granted
        } else {
            TrustDecision::Recorded
        },
        ..SettingsOptions::default()
    })
}

fn of_tools(args: &ToolArgs) -> ToolOptions {
    ToolOptions {
        built_in: part(args.no_tools),
        confinement: if args.restrict_paths {
            Confinement::Restricted
        } else {
            Confinement::Open
        },
        further_directories: args.additional_directories.clone(),
        hooks: part(args.no_hooks),
        skills: part(args.no_skills),
        plugins: part(args.no_plugins),
        plugin_directories: args.plugin_dir.clone(),
        sub_agents: part(args.no_sub_agent),
        parallel: match (args.no_parallel_tools, args.parallel_tool_limit) {
            (true, _) => Parallel::Off,
            (false, Some(limit)) => Parallel::AtMost(limit),
            (false, None) => Parallel::AsConfigured,
        },
        ..ToolOptions::default()
    }
}

fn of_permissions(args: &PermissionArgs, rules: Vec<RuleSpec>) -> PermissionOptions {
    PermissionOptions {
        mode: args.permission_mode,
        gating: if args.no_permissions {
            Gating::Off
        } else {
            Gating::On
        },
        auto_allow: if args.auto_allow {
            AutoAllow::On
        } else {
            AutoAllow::Off
        },
        latch: if args.allow_dangerously_skip_permissions {
            Latch::Given
        } else {
            Latch::Absent
        },
        classifier: part(args.disable_auto_mode),
        rules,
        ..PermissionOptions::default()
    }
}

fn choice(args: &SessionArgs) -> SessionChoice {
    if let Some(text) = &args.resume {
        SessionChoice::Resume(text.clone())
    } else if args.continue_ {
        SessionChoice::Latest
    } else if let Some(name) = &args.session {
        SessionChoice::Named(name.clone())
    } else {
        SessionChoice::New
    }
}

fn of_session(args: &SessionArgs) -> Result<SessionOptions, Failure> {
    let choice = choice(args);
    if args.fork_session && choice == SessionChoice::New {
        return Err(Failure::Usage(
            "`--fork-session` continues in a copy: say of which session with `-c`, `-r NAME` or \
             `--session NAME`"
                .to_owned(),
        ));
    }
    Ok(SessionOptions {
        choice,
        continuation: if args.fork_session {
            Continuation::Fork
        } else {
            Continuation::InPlace
        },
        saving: if args.no_save {
            Saving::Off
        } else {
            Saving::On
        },
        directory: args.sessions_dir.clone(),
        ..SessionOptions::default()
    })
}

fn system_prompt(args: &RunArgs) -> Result<SystemPrompt, Failure> {
    match (&args.system, &args.system_file, args.no_system) {
        (Some(text), _, _) => Ok(SystemPrompt::Text(text.clone())),
        (None, Some(path), _) => match std::fs::read_to_string(path) {
            Ok(text) => Ok(SystemPrompt::Text(text)),
            Err(error) => Err(Failure::NoInput(format!(
                "system prompt `{}` cannot be read: {error}",
                path.display()
            ))),
        },
        (None, None, true) => Ok(SystemPrompt::None),
        (None, None, false) => Ok(SystemPrompt::Default),
    }
}

/// The schema of the final answer, given as such or in a file.
fn answer(given: &str) -> Result<Value, Failure> {
    let (place, text) = if given.trim_start().starts_with(['{', '[']) {
        ("`--json-schema`".to_owned(), given.to_owned())
    } else {
        let text = std::fs::read_to_string(given).map_err(|error| {
            Failure::NoInput(format!("the schema `{given}` cannot be read: {error}"))
        })?;
        (format!("the schema `{given}`"), text)
    };
    let wrong = |reason: String| Failure::Usage(format!("{place}: {reason}"));
    // Some editors put a mark at the beginning of a file.
    let text = text.trim_start_matches('\u{feff}');
    let schema: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    // Whether it is a schema is known here, where its place is.
    AnswerSchema::new(schema.clone()).map_err(wrong)?;
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use caliban_model::ProviderKind;
    use caliban_settings::{PermissionMode, Scope, Sources};

    use super::*;

    fn options(words: &[&str]) -> RunOptions {
        let words = std::iter::once(&"caliban").chain(words);
        CommandLine::parse(words).unwrap().options().unwrap()
    }

    #[test]
    fn nothing_typed_asks_for_nothing() {
        assert_eq!(options(&[]), RunOptions::default());
        assert_eq!(options(&["-p", "hi", "--quiet"]), RunOptions::default());
    }

    #[test]
    fn every_flag_of_a_run_has_its_option() {
        let line = "--workspace /w --settings {} --setting-sources user --config /r.toml --bare \
            --trust-workspace --provider openai --model m --fallback-model f --max-tokens 7 \
            --temperature 0.25 --no-prompt-cache --max-turns 3 --max-budget-usd 1.25 \
            --max-attach-bytes 1 --attach-budget-bytes 2 --no-tools --restrict-paths --add-dir /d \
            --no-hooks --no-skills --no-plugins --plugin-dir /p --no-sub-agent --parallel-tool-limit 2 --no-mcp \
            --mcp-config {} --strict-mcp-config --permission-prompt-tool mcp__a__b \
            --permission-mode plan --auto-allow --allow-dangerously-skip-permissions \
            --disable-auto-mode --deny Bash --allow Read --deny Write -r s --fork-session \
            --no-save --sessions-dir /s --system text --agent scout --json-schema {} --replay /c --debug";
        let words: Vec<&str> = line.split_whitespace().collect();
        let rule = |pattern: &str, action| RuleSpec::new(pattern, action);
        let expected = RunOptions {
            workspace: Some("/w".into()),
            settings: SettingsOptions {
                overlay: Some("{}".to_owned()),
                sources: Some(Sources::only(Scope::User)),
                router_file: Some("/r.toml".into()),
                extent: Extent::Bare,
                trust: TrustDecision::Granted,
                ..SettingsOptions::default()
            },
            model: ModelOptions {
                provider: Some(ProviderKind::OpenAi),
                model: Some("m".to_owned()),
                fallback: Some("f".to_owned()),
                max_tokens: NonZeroU32::new(7),
                temperature: Some(0.25),
                prompt_cache: Part::Off,
                reasoning: None,
                betas: Vec::new(),
            },
            limits: LimitOptions {
                max_turns: NonZeroU32::new(3),
                budget: Some("1.25".parse().unwrap()),
                max_attach_bytes: Some(1),
                attach_budget_bytes: Some(2),
                ..LimitOptions::default()
            },
            tools: ToolOptions {
                built_in: Part::Off,
                confinement: Confinement::Restricted,
                further_directories: vec![PathBuf::from("/d")],
                hooks: Part::Off,
                skills: Part::Off,
                plugins: Part::Off,
                plugin_directories: vec![PathBuf::from("/p")],
                sub_agents: Part::Off,
                parallel: Parallel::AtMost(2.try_into().unwrap()),
                ..ToolOptions::default()
            },
            servers: ServerOptions {
                servers: Part::Off,
                configs: vec!["{}".to_owned()],
                configured: ConfiguredServers::Left,
                prompt_tool: Some("mcp__a__b".to_owned()),
            },
            permissions: PermissionOptions {
                mode: Some(PermissionMode::Plan),
                auto_allow: AutoAllow::On,
                latch: Latch::Given,
                classifier: Part::Off,
                rules: vec![
                    rule("Bash", RuleAction::Deny),
                    rule("Read", RuleAction::Allow),
                    rule("Write", RuleAction::Deny),
                ],
                ..PermissionOptions::default()
            },
            session: SessionOptions {
                choice: SessionChoice::Resume("s".to_owned()),
                continuation: Continuation::Fork,
                saving: Saving::Off,
                directory: Some("/s".into()),
                ..SessionOptions::default()
            },
            system: SystemPrompt::Text("text".to_owned()),
            agent: Some("scout".to_owned()),
            answer: Some(serde_json::json!({})),
            cassette: Some(Cassette::Replay("/c".into())),
            debug: DebugTo::Log,
        };
        assert_eq!(options(&words), expected);
    }

    #[test]
    fn sessions_are_chosen_by_one_flag() {
        let choice = |words: &[&str]| options(words).session.choice;
        assert_eq!(choice(&["-c"]), SessionChoice::Latest);
        let named = SessionChoice::Named("n".to_owned());
        assert_eq!(choice(&["--session", "n"]), named);
        assert_eq!(
            options(&["--no-permissions"]).permissions.gating,
            Gating::Off
        );
        assert_eq!(
            options(&["--no-parallel-tools"]).tools.parallel,
            Parallel::Off
        );
        assert_eq!(options(&["--no-system"]).system, SystemPrompt::None);
        let recording = Cassette::Record("/c".into());
        assert_eq!(options(&["--record", "/c"]).cassette, Some(recording));
    }

    #[test]
    fn other_dialects_may_have_what_is_no_part_of_a_face() {
        for (flag, takes) in [
            ("provider", FlagTakes::Value),
            ("auto-allow", FlagTakes::Nothing),
            ("additional-directories", FlagTakes::Value),
            ("sessions-dir", FlagTakes::Value),
        ] {
            assert_eq!(shared_flag(flag), Some(takes), "{flag}");
        }
        for flag in ["prompt", "quiet", "banana", "version"] {
            assert_eq!(shared_flag(flag), None, "{flag}");
        }
        let typed = ["--provider=google", "--restrict-paths"].map(str::to_owned);
        let found = shared_options(&typed).unwrap();
        assert_eq!(found.model.provider, Some(ProviderKind::Google));
        assert_eq!(found.tools.confinement, Confinement::Restricted);
        assert!(matches!(
            shared_options(&["--provider=nobody".to_owned()]),
            Err(Failure::Usage(_))
        ));
    }
}
