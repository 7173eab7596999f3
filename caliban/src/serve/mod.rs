//! Faces for programs that keep sessions open and talk to them over a protocol.

mod acp;
mod app;
mod ground;
mod heddle;
mod host;
#[cfg(unix)]
mod http;
mod lines;
#[cfg(unix)]
mod peer;
mod registry;
#[cfg(unix)]
mod workers;

use std::time::Duration;

use caliban_harness::{Permissions, Process, RunOptions, configure};
use caliban_model::CancellationToken;
use caliban_serve::Registry;

use crate::args::{CommandLine, HttpArgs, ServeArgs, ServeCommand};
use crate::console::Console;
use crate::exit::Failure;

/// How long sessions may take to end when everything does.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves as the command line says.
pub(crate) async fn serve(
    line: &CommandLine,
    args: &ServeArgs,
    process: Process,
    cancel: &CancellationToken,
    console: Console,
) -> Result<(), Failure> {
    if args.command.is_some() && args.http.is_given() {
        return Err(Failure::Usage(
            "what a server listens at is said behind its protocol, such as `serve app --listen`"
                .to_owned(),
        ));
    }
    let begun = |options: RunOptions| {
        check_permissions(&options, &process)?;
        Ok::<_, Failure>(options)
    };
    let for_applications = || {
        line.check_for_applications()?;
        begun(line.options()?)
    };
    match &args.command {
        Some(ServeCommand::Heddle) => {
            line.check_served()?;
            let options = begun(line.options()?)?;
            Box::pin(heddle::serve(options, process, cancel, console)).await
        }
        Some(ServeCommand::Acp { login: true }) => acp::login(&line.options()?, process),
        Some(ServeCommand::Acp { login: false }) => {
            line.check_edited()?;
            let options = begun(line.options()?)?;
            Box::pin(acp::serve(options, process, cancel, console)).await
        }
        Some(ServeCommand::App(args)) => {
            let options = for_applications()?;
            Box::pin(app::serve(args, options, process, cancel, console)).await
        }
        #[cfg(unix)]
        Some(ServeCommand::Web(args)) => {
            let page = http::Page::Opened(args.session.clone());
            let options = for_applications()?;
            Box::pin(http::serve(
                &args.http, page, options, process, cancel, console,
            ))
            .await
        }
        #[cfg(unix)]
        None => {
            let page = if args.http.open {
                http::Page::Opened(None)
            } else {
                http::Page::Left
            };
            let options = for_applications()?;
            Box::pin(http::serve(
                &args.http, page, options, process, cancel, console,
            ))
            .await
        }
        #[cfg(not(unix))]
        Some(ServeCommand::Web(_)) | None => Err(no_sockets()),
    }
}

/// What no session could begin with is said at the start. Settings that cannot be read are told to
/// whoever opens a session, which may be in another directory.
fn check_permissions(options: &RunOptions, process: &Process) -> Result<(), Failure> {
    if let Ok(configuration) = configure(options, process.clone()) {
        Permissions::of_new_run(&options.permissions, &configuration)?;
    }
    Ok(())
}

/// Shows sessions of this directory in a page, the earlier one named first, until it is told to stop.
#[cfg(unix)]
pub(crate) async fn page(
    session: Option<String>,
    options: RunOptions,
    process: Process,
    cancel: &CancellationToken,
    console: Console,
) -> Result<(), Failure> {
    let args = HttpArgs {
        root: vec![caliban_harness::workspace(
            options.workspace.as_deref(),
            &process,
        )?],
        // Whoever ends it at the terminal means the session.
        in_process: true,
        ..HttpArgs::default()
    };
    let page = http::Page::Opened(session);
    Box::pin(http::serve(&args, page, options, process, cancel, console)).await
}

#[cfg(not(unix))]
pub(crate) async fn page(
    _: Option<String>,
    _: RunOptions,
    _: Process,
    _: &CancellationToken,
    _: Console,
) -> Result<(), Failure> {
    Err(no_sockets())
}

/// Ends every session; one that takes too long ends with the process. Returns the ids of those that
/// go on without it.
async fn farewell(registry: &Registry) -> Vec<String> {
    let ended = tokio::time::timeout(FAREWELL, registry.shut_down()).await;
    ended.map(|ended| ended.going_on).unwrap_or_default()
}

#[cfg(not(unix))]
fn no_sockets() -> Failure {
    let missing = "this system has no sockets that `caliban serve` needs; use `caliban serve app`";
    Failure::Runtime(missing.to_owned())
}
