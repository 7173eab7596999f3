//! The `caliban` program: arguments in, exit code out. Everything else is in the modules and
//! crates it wires together.

mod args;
mod console;
mod demo;
mod environment;
mod exit;
mod models;
mod print;
mod prompt;
mod provider;
mod session;
mod signals;
mod text_face;

use std::io::IsTerminal;
use std::process::ExitCode;

use caliban_model::CancellationToken;
use clap::Parser;

use crate::args::{Cli, Command, RunArgs};
use crate::console::{Console, note};
use crate::environment::Environment;
use crate::exit::Failure;
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

async fn ask(
    args: RunArgs,
    environment: &Environment<'_>,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let stdin = if std::io::stdin().is_terminal() {
        Stdin::Terminal
    } else {
        Stdin::Piped
    };
    let prompt = prompt::resolve(&args, stdin, std::io::stdin())?;
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
    let announcements = if args.tools.quiet {
        Announcements::Off
    } else {
        Announcements::On
    };
    let session = session::build(&args, chosen, workspace, environment)?;
    let mut face = TextFace::new(console, announcements);
    print::print(session, prompt, cancel, &mut face).await
}
