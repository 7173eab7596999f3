//! The `caliban` program: arguments in, exit code out. Everything else is in the modules and
//! crates it wires together.

mod args;
mod claude;
mod consent;
mod console;
mod demo;
mod doctor;
mod exit;
mod face;
mod manual;
mod mcp_command;
mod memory_command;
mod models;
mod perms_command;
mod print;
mod process;
mod prompt;
mod serve;
mod sessions_command;
mod settings_commands;
mod signals;
mod stdin;
mod text_face;
mod trust_command;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use caliban_harness::{
    Launched, Process, Surroundings, configure, launch, session_store, workspace,
};
use caliban_model::CancellationToken;
use caliban_protocol::{Encoder, HookEvents, Partial, Replay};
use caliban_session::Bounds;
use caliban_settings::variables::names;
use uuid::Uuid;

use crate::args::{
    Command, CommandLine, ConfigCommand, Dialect, InputFormat, OutputFormat, RunArgs, ServeCommand,
};
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::face::{Face, FrameFace, Stream};
use crate::print::{Denials, Print, Prompts};
use crate::prompt::Stdin;
use crate::text_face::{Announcements, TextFace};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words
        .next()
        .is_some_and(|word| word == caliban_process::GUARD_ARGUMENT)
    {
        return caliban_process::guard_main(words);
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
    let line = match CommandLine::parse(std::env::args_os()) {
        Ok(line) => line,
        Err(error) => {
            let code = if error.use_stderr() { 64 } else { 0 };
            // A closed output leaves nothing to report to.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed | Failure::Silent(_)) {
                note(&format!("caliban: {failure}"));
            }
            failure.code()
        }
    }
}

/// One thread does all that is a matter of waiting: connections, the session and its face hand
/// over to each other many thousand times a second, and every hand-over to another thread costs more
/// than what is handed over. What computes or touches the disk for long has threads of its own, and
/// so have signals.
#[tokio::main(flavor = "current_thread")]
async fn run(mut line: CommandLine) -> Result<(), Failure> {
    let process = process::current(process::environment());
    let cancel = signals::cancellation();
    let mut console = Console::new();
    let command = line.cli.command.take();
    let named = line.cli.run.tools.workspace.as_deref();
    let configured = || {
        let options = line.options()?;
        let configuration = configure(&options, process.clone())?;
        Ok::<_, Failure>((options, configuration))
    };
    match command {
        Some(Command::Demo) => Box::pin(demo::demo(&process, &cancel, &mut console)).await,
        Some(Command::Models(args)) => models::list(&args, &configured()?.1, &mut console).await,
        Some(Command::Doctor(args)) => {
            doctor::run(&args, &line.options()?, process, &cancel, &mut console).await
        }
        Some(Command::Completions { shell }) => manual::completions(shell, &mut console),
        Some(Command::Man { dir }) => manual::man(dir.as_deref(), &mut console),
        Some(Command::Config { command }) => match command {
            ConfigCommand::Print { json } => {
                settings_commands::print_effective(&configured()?.1, json, &mut console)
            }
            ConfigCommand::Migrate { dry_run } => {
                let workspace = workspace(named, &process)?;
                settings_commands::migrate(&workspace, dry_run, &mut console)
            }
        },
        Some(Command::Settings { command }) => {
            let workspace = workspace(named, &process)?;
            settings_commands::run(&command, &workspace, &process, &mut console)
        }
        Some(Command::Trust(args)) => {
            let router_file = line.cli.settings.config.as_deref();
            trust_command::run(&args, router_file, &process, &mut console)
        }
        Some(Command::Sessions { command }) => {
            let (options, configuration) = configured()?;
            let store = session_store(&options.session, &configuration);
            sessions_command::run(&command, &store, &configuration, &mut console)
        }
        Some(Command::Memory { command }) => {
            let (options, configuration) = configured()?;
            memory_command::run(&command, &options, &configuration, &mut console)
        }
        Some(Command::Perms { command }) => {
            let (options, configuration) = configured()?;
            perms_command::run(&command, &options, &configuration, &mut console)
        }
        Some(Command::Mcp { command }) => {
            let (_, configuration) = configured()?;
            Box::pin(mcp_command::run(
                &command,
                &line.cli.mcp,
                &configuration,
                &cancel,
                &mut console,
            ))
            .await
        }
        Some(Command::Serve {
            command: ServeCommand::Heddle,
        }) => {
            line.check_served()?;
            let options = line.options()?;
            Box::pin(serve::heddle::serve(options, process, &cancel, console)).await
        }
        Some(Command::Reserved(command)) => Err(command.refusal()),
        None => Box::pin(ask(&line, process, &cancel, &mut console)).await,
    }
}

/// Works on prompts. Whatever happens, a program that asked for JSON gets a result.
async fn ask(
    line: &CommandLine,
    process: Process,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let args = &line.cli.run;
    let id = Uuid::new_v4();
    match Box::pin(prepare(line, id, process)).await {
        Ok((launched, prompts)) => {
            let mut face = face(args, launched.facts.session_id.clone(), console);
            let (handle, events) = launched.begin();
            let print = Print {
                handle,
                events,
                cancel,
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
                    let frame = caliban_protocol::failure(&failure.to_string(), &id.to_string());
                    console.write(&caliban_protocol::line(&frame))?;
                }
            }
            Err(failure)
        }
    }
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
    if args.background.is_some() {
        return Err(args::no_background());
    }
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
    let mut surroundings = Surroundings::new(process);
    surroundings.dialect.bounds = Bounds::PIPE;
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
