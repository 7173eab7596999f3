//! The `caliban` program: arguments in, exit code out. Everything else is in the modules and
//! crates it wires together.
//!
//! It is a library so that it is compiled beside the last crates below it and not after them;
//! `main.rs` only starts it.

mod args;
mod claude;
mod consent;
mod console;
mod demo;
mod doctor;
mod exit;
mod face;
mod fleet;
mod fleet_command;
mod interactive;
mod manual;
mod masking;
mod mcp_command;
mod memory_command;
mod models;
mod perms_command;
mod plugin_command;
mod print;
mod process;
mod prompt;
mod renaming;
mod rewind_command;
mod rewind_json;
mod router_command;
mod runtime;
mod sandbox_command;
mod serve;
mod sessions_command;
mod settings_commands;
mod signals;
mod stdin;
mod tally;
mod text_face;
mod trust_command;
mod typed_lines;
mod usage_command;
mod worktrees_command;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use caliban_agent::{Outcome, RunTotals};
use caliban_harness::{
    Launched, Process, Surroundings, configure, launch, session_store, workspace,
};
use caliban_protocol::{Encoder, HookEvents, Partial, Replay};
use caliban_session::Bounds;
use caliban_settings::variables::names;
use uuid::Uuid;

use crate::args::{
    Command, CommandLine, ConfigCommand, Dialect, InputFormat, OutputFormat, RunArgs,
    SettingsCommand,
};
use crate::console::{Console, note};
use crate::doctor::Doctor;
use crate::exit::Failure;
use crate::face::{Face, FrameFace, Stream};
use crate::fleet::{Fleet, Sender};
use crate::masking::Secrets;
use crate::print::{Denials, Print, Prompts};
use crate::prompt::Stdin;
use crate::signals::Interrupts;
use crate::text_face::{Announcements, TextFace};

/// The whole program, from its arguments to its exit code.
pub fn main() -> ExitCode {
    caliban_process::seclude();
    if let Some(code) = another_program() {
        return code;
    }
    let all: Vec<OsString> = std::env::args_os().collect();
    let variable = std::env::var(names::CALIBAN_DIALECT).ok();
    let variable = variable.as_deref().filter(|text| !text.is_empty());
    match claude::dialect(all.first(), all.get(1..).unwrap_or_default(), variable) {
        Ok(Dialect::Caliban) => {}
        Ok(Dialect::Claude) => return claude::start(all.into_iter().skip(1).collect()),
        Err(failure) => {
            note(&format!("caliban: {failure}"));
            return failure.code();
        }
    }
    let line = match CommandLine::parse(&all) {
        Ok(line) => line,
        Err(error) => return misused(&error, &all),
    };
    match runtime::complete(run(line)).flatten() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed | Failure::Silent(_)) {
                note(&format!("caliban: {failure}"));
            }
            failure.code()
        }
    }
}

/// The programs that this one starts itself as: a guardian, and the steps to a confined program.
fn another_program() -> Option<ExitCode> {
    if fleet::is_daemon_name(std::env::args_os().next().as_ref()) {
        return Some(fleet::daemon_main(std::env::args_os().nth(1)));
    }
    let mut words = std::env::args_os().skip(1);
    let first = words.next()?;
    if first == caliban_process::GUARD_ARGUMENT {
        return Some(caliban_process::guard_main(words));
    }
    if first == caliban_fleet::WORKER_ARGUMENT {
        return Some(fleet::worker_main());
    }
    if first == fleet_command::JOB_ARGUMENT {
        return Some(fleet_command::job_main());
    }
    if first == caliban_fleet::DAEMON_ARGUMENT {
        return Some(fleet::daemon_main(words.next()));
    }
    #[cfg(target_os = "linux")]
    {
        if first == caliban_sandbox::CONFINE_ARGUMENT {
            return Some(caliban_sandbox::confine_main(words));
        }
        if first == caliban_sandbox::INNER_ARGUMENT {
            return Some(caliban_sandbox::inner_main(words));
        }
    }
    None
}

/// The command line makes no sense, or asks for what clap itself says. A program that asked for
/// JSON gets a result all the same.
fn misused(error: &clap::Error, words: &[OsString]) -> ExitCode {
    // A closed output leaves nothing to report to.
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let mistyped = args::mistyped(error, words);
    match &mistyped {
        Some(mistyped) => note(&format!("caliban: {mistyped}")),
        None => {
            let _ = error.print();
        }
    }
    if args::asks_for_frames(words) {
        let text = mistyped.unwrap_or_else(|| error.to_string());
        let (said, _usage) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
        let said = said.trim().trim_start_matches("error: ");
        let frame = caliban_protocol::failure(said, &Uuid::new_v4().to_string());
        let _ = Console::new().write(&caliban_protocol::line(&frame));
    }
    ExitCode::from(64)
}

async fn run(line: CommandLine) -> Result<(), Failure> {
    let process = process::current(process::environment());
    let hearers = process.hearers.clone();
    let ended = Box::pin(obey(line, process)).await;
    hearers.wait().await;
    ended
}

/// Does what the command line says.
#[expect(clippy::too_many_lines, reason = "every command is an arm")]
async fn obey(mut line: CommandLine, process: Process) -> Result<(), Failure> {
    let interrupts = Interrupts::listen();
    let cancel = interrupts.cancel.clone();
    let mut console = Console::new();
    let command = line.cli.command.take();
    let named = line.cli.run.tools.workspace.as_deref();
    let configured = || {
        let options = line.options()?;
        let configuration = configure(&options, process.clone())?;
        Ok::<_, Failure>((options, configuration))
    };
    match command {
        Some(Command::Demo) => Box::pin(demo::demo(&process, &interrupts, &mut console)).await,
        Some(Command::Models(args)) => {
            let (options, configuration) = configured()?;
            models::list(&args, &options.model, &configuration, &mut console).await
        }
        Some(Command::Doctor(args)) => {
            doctor::run(&args, &line.options()?, process, &cancel, &mut console).await
        }
        Some(Command::Completions { shell }) => manual::completions(shell, &mut console),
        Some(Command::Man { dir }) => manual::man(dir.as_deref(), &mut console),
        Some(Command::Config { command }) => match command {
            ConfigCommand::Print { json, show_secrets } => {
                let secrets = Secrets::shown_if(show_secrets);
                settings_commands::print_effective(&configured()?.1, json, secrets, &mut console)
            }
            ConfigCommand::Migrate { dry_run } => {
                settings_commands::migrate(&configured()?.1, dry_run, &mut console)
            }
        },
        Some(Command::Settings {
            command: SettingsCommand::Print { scope },
        }) if scope == settings_commands::EFFECTIVE => {
            settings_commands::print_merged(&configured()?.1, &mut console)
        }
        Some(Command::Settings { command }) => {
            let workspace = workspace(named, &process)?;
            settings_commands::run(&command, &workspace, &process, &mut console)
        }
        Some(Command::Trust(args)) => {
            let router_file = line.cli.settings.config.as_deref();
            trust_command::run(&args, named, router_file, &process, &mut console)
        }
        Some(Command::Sessions { command }) => {
            let (options, configuration) = configured()?;
            let store = session_store(&options.session, &configuration);
            sessions_command::run(&command, &store, &configuration, &mut console)
        }
        Some(Command::Usage(args)) => {
            let (options, configuration) = configured()?;
            let store = session_store(&options.session, &configuration);
            usage_command::run(&args, &store, &mut console)
        }
        Some(Command::Rewind(args)) => {
            let (options, configuration) = configured()?;
            let store = session_store(&options.session, &configuration);
            rewind_command::run(&args, &store, &configuration, &mut console)
        }
        Some(Command::Worktrees { command }) => {
            let (_, configuration) = configured()?;
            Box::pin(worktrees_command::run(
                &command,
                &configuration,
                &mut console,
            ))
            .await
        }
        Some(Command::Memory { command }) => {
            let (options, configuration) = configured()?;
            memory_command::run(&command, &options, &configuration, &mut console)
        }
        Some(Command::Perms { command }) => {
            let (options, configuration) = configured()?;
            perms_command::run(&command, &options, &configuration, &mut console)
        }
        Some(Command::Sandbox { command }) => {
            let (options, configuration) = configured()?;
            let running =
                sandbox_command::run(&command, &options, &configuration, &cancel, &mut console);
            Box::pin(running).await
        }
        Some(Command::Mcp { command }) => {
            let (options, configuration) = configured()?;
            Box::pin(mcp_command::run(
                &command,
                &line.cli.mcp,
                &options,
                &configuration,
                &cancel,
                &mut console,
            ))
            .await
        }
        Some(Command::Plugin { command }) => {
            let (options, configuration) = configured()?;
            let running = plugin_command::run(&command, &options, &configuration, &mut console);
            Box::pin(running).await
        }
        Some(Command::Router { command }) => {
            let (options, configuration) = configured()?;
            let running =
                router_command::run(&command, &options, &configuration, &cancel, &mut console);
            Box::pin(running).await
        }
        Some(Command::Serve(args)) => {
            Box::pin(serve::serve(&line, &args, process, &cancel, console)).await
        }
        Some(Command::Agents { command }) => {
            let (options, configuration) = configured()?;
            let fleet = Fleet::new(&options, &configuration);
            Box::pin(fleet.run(command, &cancel, &mut console)).await
        }
        Some(Command::Fleet(args)) => {
            let (options, configuration) = configured()?;
            let fleet = fleet_command::run(args, &options, &configuration, &cancel, &mut console);
            Box::pin(fleet).await
        }
        Some(Command::Agent(command)) => {
            let (options, configuration) = configured()?;
            let fleet = Fleet::new(&options, &configuration);
            Box::pin(fleet.run(command.into(), &cancel, &mut console)).await
        }
        Some(Command::Daemon { command }) => {
            let (options, configuration) = configured()?;
            let fleet = Fleet::new(&options, &configuration);
            fleet::daemon_command(&command, &fleet, &mut console).await
        }
        None if let Some(task) = line.cli.run.background.clone() => {
            let (options, configuration) = configured()?;
            let fleet = Fleet::new(&options, &configuration);
            let isolation = &line.cli.run.isolation;
            Box::pin(fleet.detach(task, isolation, &mut console)).await
        }
        None if line.cli.run.isolation.is_given() => Err(Failure::Usage(
            "`--isolation` and `--base-ref` are about agents in the background: give `--bg TASK`"
                .to_owned(),
        )),
        None if interactive::is_wanted(&line) => {
            Box::pin(interactive::run(&line, process, &interrupts, console)).await
        }
        None => Box::pin(ask(&line, process, &interrupts, &mut console)).await,
    }
}

/// Works on prompts. Whatever happens, a program that asked for JSON gets a result.
async fn ask(
    line: &CommandLine,
    process: Process,
    interrupts: &Interrupts,
    console: &mut Console,
) -> Result<(), Failure> {
    let args = &line.cli.run;
    let id = Uuid::new_v4();
    match args.output.format() {
        OutputFormat::Text => {}
        OutputFormat::Json | OutputFormat::StreamJson => {
            interrupts.set_last_words(written(&Failure::Outcome(Outcome::Cancelled), id));
        }
    }
    let preparing = Box::pin(prepare(line, id, process));
    let prepared = interrupts.cancel.run_until_cancelled(preparing).await;
    let asked = match prepared.unwrap_or(Err(Failure::Outcome(Outcome::Cancelled))) {
        Ok((launched, prompts)) => {
            let mut face = face(args, launched.facts.session_id.clone(), console);
            let (handle, events) = launched.begin();
            let print = Print {
                handle,
                events,
                interrupts,
                face: &mut face,
                denials: if args.output.fail_on_denial {
                    Denials::Fail
                } else {
                    Denials::Tolerated
                },
                attends: line.attends(),
            };
            Box::pin(print.run(prompts)).await
        }
        Err(failure) => {
            match args.output.format() {
                OutputFormat::Text => {}
                OutputFormat::Json | OutputFormat::StreamJson => {
                    console.write(&written(&failure, id))?;
                }
            }
            Err(failure)
        }
    };
    // There is nothing more to say.
    interrupts.take_last_words();
    asked
}

/// The result of a run that did not begin, as a line.
fn written(failure: &Failure, id: Uuid) -> String {
    let id = id.to_string();
    caliban_protocol::line(&match failure {
        Failure::Outcome(outcome) => caliban_protocol::result(outcome, &RunTotals::default(), &id),
        failure => caliban_protocol::failure(&failure.to_string(), &id),
    })
}

/// Everything that can fail before the run begins. A new session gets this id.
async fn prepare(
    line: &CommandLine,
    id: Uuid,
    process: Process,
) -> Result<(Launched, Prompts), Failure> {
    let args = &line.cli.run;
    let stdin = if std::io::stdin().is_terminal() {
        Stdin::Terminal
    } else {
        Stdin::Piped
    };
    args::check_prompt(args)?;
    prompt::check_headless(args, stdin)?;
    line.check_attendance()?;
    let prompt = match args.output.input_format {
        InputFormat::StreamJson => {
            prompt::check_stream(args)?;
            None
        }
        InputFormat::Text => Some(prompt::resolve(args, stdin, std::io::stdin())?),
    };
    let mut options = line.options()?;
    options.session.id = Some(id);
    let doctor = Doctor {
        options: options.clone(),
        process: process.clone(),
    };
    let sender = Sender {
        options: options.clone(),
        process: process.clone(),
    };
    let mut surroundings = Surroundings::new(process);
    surroundings.dialect.fleet = Some(Arc::new(sender));
    surroundings.dialect.bounds = Bounds::PIPE;
    surroundings.dialect.examiner = Some(Arc::new(doctor));
    let mut launched = launch(options, surroundings).await?;
    let prompts = match prompt {
        None => Prompts::Lines(stdin::commands(std::io::stdin())),
        Some(prompt) => {
            let message = launched.attach(prompt.session_prompt()).await?;
            Prompts::One(Box::new(prompt.with_piped(message)))
        }
    };
    Ok((launched, prompts))
}

fn face<'a>(args: &RunArgs, session_id: String, console: &'a mut Console) -> Face<'a> {
    let stream = match args.output.format() {
        OutputFormat::Text => {
            let announcements = if args.tools.quiet {
                Announcements::Off
            } else {
                Announcements::On
            };
            return Face::Text(TextFace::new(console, announcements));
        }
        OutputFormat::Json => Stream::ResultOnly,
        OutputFormat::StreamJson => Stream::All(Encoder {
            partial: if args.output.include_partial_messages {
                Partial::Included
            } else {
                Partial::Left
            },
            hooks: if args.output.include_hook_events {
                HookEvents::Included
            } else {
                HookEvents::Left
            },
            replay: if args.output.replay_user_messages {
                Replay::Prompts
            } else {
                Replay::Nothing
            },
        }),
    };
    Face::Frames(FrameFace::new(console, session_id, stream))
}
