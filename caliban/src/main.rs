//! The `caliban` program: arguments in, exit code out. Everything else is in the modules and
//! crates it wires together.

mod args;
mod attachments;
mod claude;
mod config_watch;
mod configuration;
mod consent;
mod console;
mod crash;
mod debug_log;
mod demo;
mod doctor;
mod exit;
mod extras;
mod face;
mod history;
mod manual;
mod mcp;
mod mcp_command;
mod memory_command;
mod models;
mod permissions;
mod perms_command;
mod print;
mod prompt;
mod provider;
mod serve;
mod session;
mod sessions_command;
mod settings_commands;
mod signals;
mod stdin;
mod text_face;
mod trust_command;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use caliban_agent::{RunTotals, Unattended};
use caliban_harness::Session;
use caliban_model::CancellationToken;
use caliban_protocol::{Encoder, HookEvents, Init, Partial, Replay};
use caliban_settings::variables::{Environment, names};

use crate::args::{
    Cli, Command, ConfigCommand, Dialect, InputFormat, OutputFormat, RunArgs, ServeCommand,
};
use crate::config_watch::ConfigWatch;
use crate::configuration::Configuration;
use crate::console::{Console, note};
use crate::debug_log::DebugLog;
use crate::exit::Failure;
use crate::face::{Face, FrameFace, Stream};
use crate::history::Found;
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
    let cli = match Cli::from_process() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 64 } else { 0 };
            // A closed output leaves nothing to report to.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed | Failure::Silent(_)) {
                note(&format!("caliban: {failure}"));
            }
            failure.code()
        }
    }
}

/// The run itself is worked on by the main thread, connections and signals by the worker: each
/// goes on while the other waits, and a request wakes one thread only.
#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn run(mut cli: Cli) -> Result<(), Failure> {
    let read = |name: &str| std::env::var(name).ok();
    let environment = Environment::new(&read);
    let cancel = signals::cancellation();
    let mut console = Console::new();
    let command = cli.command.take();
    let named = cli.run.tools.workspace.as_deref();
    let configure = || {
        let workspace = configuration::workspace(named)?;
        Configuration::load(&cli.settings, workspace, environment)
    };
    match command {
        Some(Command::Demo) => Box::pin(demo::demo(&environment, &cancel, &mut console)).await,
        Some(Command::Models(args)) => models::list(&args, &configure()?, &mut console).await,
        Some(Command::Doctor(args)) => {
            doctor::run(&args, &cli, environment, &cancel, &mut console).await
        }
        Some(Command::Completions { shell }) => manual::completions(shell, &mut console),
        Some(Command::Man { dir }) => manual::man(dir.as_deref(), &mut console),
        Some(Command::Config { command }) => match command {
            ConfigCommand::Print { json } => {
                settings_commands::print_effective(&configure()?, json, &mut console)
            }
            ConfigCommand::Migrate { dry_run } => {
                let workspace = configuration::workspace(named)?;
                settings_commands::migrate(&workspace, dry_run, &mut console)
            }
        },
        Some(Command::Settings { command }) => {
            let workspace = configuration::workspace(named)?;
            settings_commands::run(&command, &workspace, &environment, &mut console)
        }
        Some(Command::Trust(args)) => {
            trust_command::run(&args, &cli.settings, &environment, &mut console)
        }
        Some(Command::Sessions { command }) => {
            let configuration = configure()?;
            let store = history::store(&cli.session, &configuration);
            sessions_command::run(&command, &store, &configuration, &mut console)
        }
        Some(Command::Memory { command }) => {
            memory_command::run(&command, &cli, &configure()?, &mut console)
        }
        Some(Command::Perms { command }) => {
            perms_command::run(&command, &cli, &configure()?, &mut console)
        }
        Some(Command::Mcp { command }) => {
            let configuration = configure()?;
            Box::pin(mcp_command::run(
                &command,
                &cli.mcp,
                &configuration,
                &cancel,
                &mut console,
            ))
            .await
        }
        Some(Command::Serve {
            command: ServeCommand::Heddle,
        }) => Box::pin(serve::heddle::serve(cli, environment, &cancel, console)).await,
        Some(Command::Reserved(command)) => Err(command.refusal()),
        None => Box::pin(ask(&cli, environment, &cancel, &mut console)).await,
    }
}

/// Works on prompts. Whatever happens, a program that asked for JSON gets a result.
async fn ask(
    cli: &Cli,
    environment: Environment<'_>,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let args = &cli.run;
    let id = uuid::Uuid::new_v4();
    match Box::pin(prepare(cli, id, environment)).await {
        Ok(prepared) => {
            let mut face = face(args, prepared.init.session_id.clone(), console);
            let print = Print {
                session: prepared.session,
                cancel,
                watch: Some(prepared.watch),
                face: &mut face,
                denials: if args.output.fail_on_denial {
                    Denials::Fail
                } else {
                    Denials::Tolerated
                },
                debug: prepared.debug,
            };
            let run = Box::pin(print.run(prepared.prompts, &prepared.init));
            let ended = crash::guarded(run).await;
            match ended {
                Ok(result) => result,
                Err(crash) => {
                    // Whatever broke, a program that waits for a result gets one.
                    face.fail(&crash.to_string(), &RunTotals::default())?;
                    face.finish()?;
                    Err(Failure::Runtime(crash.to_string()))
                }
            }
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

/// A run that can begin.
struct Prepared {
    session: Session,
    prompts: Prompts,
    init: Init,
    watch: ConfigWatch,
    debug: Option<DebugLog>,
}

/// Everything that can fail before the run begins.
async fn prepare(
    cli: &Cli,
    id: uuid::Uuid,
    environment: Environment<'_>,
) -> Result<Prepared, Failure> {
    let args = &cli.run;
    let stdin = if std::io::stdin().is_terminal() {
        Stdin::Terminal
    } else {
        Stdin::Piped
    };
    if args.background.is_some() {
        return Err(args::no_background());
    }
    prompt::check_headless(args, stdin)?;
    let prompt = match args.output.input_format {
        InputFormat::StreamJson => {
            prompt::check_stream(args)?;
            None
        }
        InputFormat::Text => Some(prompt::resolve(args, stdin, std::io::stdin())?),
    };
    let workspace = configuration::workspace(args.tools.workspace.as_deref())?;
    let configuration = Configuration::load(&cli.settings, workspace, environment)?;
    let debug = DebugLog::wanted(args, &configuration)?;
    let servers = mcp::Servers::start(
        cli,
        &configuration,
        Vec::new(),
        Arc::new(Unattended),
        DebugLog::wanted(args, &configuration)?,
    )?;
    let found = Found::new(&cli.session, id, &configuration)?;
    let session_id = found.session_id.to_string();
    let (who, model) = provider::continued(&args.provider, &args.model, found.earlier());
    let chosen = provider::choose(&who, &model, &args.cassette, &configuration)?;
    let mode = found.earlier().and_then(|state| state.mode.clone());
    let (history, mut notices) =
        found.history(chosen.provider.id(), &chosen.model, &configuration)?;
    let continued = session::Continued { mode, history };
    servers.settle().await;
    let prompts = match prompt {
        None => Prompts::stream(stdin::commands(std::io::stdin())),
        Some(prompt) => {
            let (roots, limits) = session::attachments(args, &configuration)?;
            let mut attached = prompt.attached(&roots, limits)?;
            notices.append(&mut attached.notices);
            let message = &mut attached.message;
            servers.attach(&prompt.typed, message, limits).await?;
            let earlier = continued.history.earlier.iter();
            let earlier = earlier.flat_map(|state| &state.messages);
            attachments::leave_out_known(message, earlier.map(AsRef::as_ref));
            Prompts::one(attached.message)
        }
    };
    let (session, further) = session::build(
        cli,
        &chosen,
        session_id,
        continued,
        servers.partners(),
        &configuration,
    )?;
    notices.extend(further);
    let init = session::init(&session, &chosen, notices, cli, &configuration);
    if !cli.session.no_save {
        history::prune_sometimes(
            &history::store(&cli.session, &configuration),
            &configuration,
        );
    }
    let key_variables = configuration.key_variables();
    let key_variables = key_variables.into_iter().map(str::to_owned).collect();
    let watch = ConfigWatch::new(
        configuration.request,
        configuration.loaded,
        cli.rules.ordered.clone(),
        key_variables,
        &session,
    );
    Ok(Prepared {
        session,
        prompts,
        init,
        watch,
        debug,
    })
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
