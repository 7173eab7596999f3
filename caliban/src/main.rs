//! The `caliban` program: arguments in, exit code out. Everything else is in the modules and
//! crates it wires together.

mod args;
mod console;
mod demo;
mod environment;
mod exit;
mod face;
mod models;
mod print;
mod prompt;
mod provider;
mod session;
mod signals;
mod text_face;

use std::io::IsTerminal;
use std::process::ExitCode;

use caliban_harness::Session;
use caliban_model::CancellationToken;
use caliban_protocol::{Encoder, Partial, Replay};
use clap::Parser;

use crate::args::{Cli, Command, OutputFormat, RunArgs};
use crate::console::{Console, note};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::face::{Face, FrameFace, Stream};
use crate::prompt::Stdin;
use crate::text_face::{Announcements, TextFace};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words
        .next()
        .is_some_and(|word| word == caliban_tools::GUARD_ARGUMENT)
    {
        return caliban_tools::guard_main(words);
    }
    let cli = match Cli::try_parse() {
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
            if !matches!(failure, Failure::OutputClosed) {
                note(&format!("caliban: {failure}"));
            }
            failure.code()
        }
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn run(cli: Cli) -> Result<(), Failure> {
    let environment = Environment::new(&environment::process);
    let cancel = signals::cancellation();
    let mut console = Console::new();
    match cli.command {
        Some(Command::Demo) => demo::demo(&environment, &cancel, &mut console).await,
        Some(Command::Models(args)) => models::list(&args, &environment, &mut console).await,
        None => ask(cli.run, &environment, &cancel, &mut console).await,
    }
}

/// Works on a prompt. Whatever happens, a program that asked for JSON gets a result.
async fn ask(
    args: RunArgs,
    environment: &Environment<'_>,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let session_id = uuid::Uuid::new_v4().to_string();
    match prepare(&args, &session_id, environment) {
        Ok((session, prompt)) => {
            let init = session::init(&session, Vec::new(), args.model.fallback_model.clone());
            let mut face = face(&args, session_id, console);
            print::print(session, prompt, cancel, &init, &mut face).await
        }
        Err(failure) => {
            match args.output.output_format {
                OutputFormat::Text => {}
                OutputFormat::Json | OutputFormat::StreamJson => {
                    let frame = caliban_protocol::failure(&failure.to_string(), &session_id);
                    console.write(&caliban_protocol::line(&frame))?;
                }
            }
            Err(failure)
        }
    }
}

/// Everything that can fail before the run begins.
fn prepare(
    args: &RunArgs,
    session_id: &str,
    environment: &Environment<'_>,
) -> Result<(Session, String), Failure> {
    let stdin = if std::io::stdin().is_terminal() {
        Stdin::Terminal
    } else {
        Stdin::Piped
    };
    let prompt = prompt::resolve(args, stdin, std::io::stdin())?;
    let workspace = match &args.tools.workspace {
        Some(path) => path.clone(),
        None => std::env::current_dir()
            .map_err(|error| Failure::Runtime(format!("no working directory: {error}")))?,
    };
    let chosen = provider::choose(
        &args.provider,
        &args.model,
        &args.cassette,
        environment,
        &workspace,
    )?;
    let session = session::build(args, chosen, workspace, session_id.to_owned(), environment)?;
    Ok((session, prompt))
}

fn face<'a>(args: &RunArgs, session_id: String, console: &'a mut Console) -> Face<'a> {
    let stream = match args.output.output_format {
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
            replay: if args.output.replay_user_messages {
                Replay::Prompts
            } else {
                Replay::Nothing
            },
        }),
    };
    Face::Frames(FrameFace::new(console, session_id, stream))
}
