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
mod signals;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use caliban_model::{CachePolicy, CancellationToken, Message, Request};
use clap::Parser;

use crate::args::{Cli, Command, RunArgs};
use crate::console::{Console, note};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::prompt::Stdin;

fn main() -> ExitCode {
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

#[tokio::main(flavor = "current_thread")]
async fn run(cli: Cli) -> Result<(), Failure> {
    let environment = Environment::new(&environment::process);
    let cancel = signals::cancellation();
    let mut console = Console::new();
    match cli.command {
        Some(Command::Demo) => demo::demo(&environment, cancel, &mut console).await,
        Some(Command::Models(args)) => models::list(&args, &environment, &mut console).await,
        None => ask(cli.run, &environment, cancel, &mut console).await,
    }
}

async fn ask(
    args: RunArgs,
    environment: &Environment<'_>,
    cancel: CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let stdin = if std::io::stdin().is_terminal() {
        Stdin::Terminal
    } else {
        Stdin::Piped
    };
    let prompt = prompt::resolve(&args, stdin, std::io::stdin())?;
    let workspace = std::env::current_dir()
        .map_err(|error| Failure::Runtime(format!("no working directory: {error}")))?;
    let chosen = provider::choose(
        &args.provider,
        args.model.model.as_deref(),
        &args.cassette,
        environment,
        &workspace,
    )?;
    let mut messages: Vec<Message> = system_prompt(&args)?
        .map(Message::system)
        .into_iter()
        .collect();
    messages.push(Message::user(prompt));
    let messages = messages.into_iter().map(Arc::new).collect();
    let mut request = Request::new(chosen.model, messages)
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    request.max_tokens = args.model.max_tokens;
    request.temperature = args.model.temperature;
    if args.model.no_prompt_cache || environment.is_set("CALIBAN_NO_PROMPT_CACHE") {
        request.cache = CachePolicy::Off;
    }
    print::print(&*chosen.provider, request, cancel, console).await
}

fn system_prompt(args: &RunArgs) -> Result<Option<String>, Failure> {
    match (&args.system, &args.system_file) {
        (Some(text), _) => Ok(Some(text.clone())),
        (None, Some(path)) => std::fs::read_to_string(path).map(Some).map_err(|error| {
            Failure::NoInput(format!(
                "system prompt `{}` cannot be read: {error}",
                path.display()
            ))
        }),
        (None, None) => Ok(None),
    }
}
