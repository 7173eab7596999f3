//! `caliban doctor`: is everything here that a run needs? Nothing is changed, and nothing of a
//! workspace is executed.

mod brought;
mod local;
mod providers;
mod report;
mod routes;
mod sandbox;
mod servers;
mod workspace;

use caliban_agent::Outcome;
use caliban_harness::options::{Part, RunOptions};
use caliban_harness::{
    Configuration, Examiner, Extras, Process, checkpoint_store, load_extras, login_place,
    session_store, workspace as find_workspace,
};
use caliban_model::CancellationToken;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::args::DoctorArgs;
use crate::console::Console;
use crate::exit::Failure;
use crate::settings_commands;
use providers::{Depth, Providers};
use report::{Report, Row};

/// Prints a row for every check; one that failed makes the exit code 1.
pub(crate) async fn run(
    args: &DoctorArgs,
    options: &RunOptions,
    process: Process,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let rows = cancel.run_until_cancelled(Box::pin(rows(args, options, process)));
    let report = Report(rows.await.ok_or(Failure::Outcome(Outcome::Cancelled))?);
    console.write(&if args.json {
        report.json()
    } else {
        report.text()
    })?;
    if report.has_failed() {
        return Err(Failure::Silent(1));
    }
    Ok(())
}

/// Who looks the installation over when `/doctor` is typed.
#[derive(Debug)]
pub(crate) struct Doctor {
    pub(crate) options: RunOptions,
    pub(crate) process: Process,
}

impl Examiner for Doctor {
    fn examine(&self, depth: caliban_harness::Depth) -> BoxFuture<'_, String> {
        let args = DoctorArgs {
            deep: depth == caliban_harness::Depth::Deep,
            ..DoctorArgs::default()
        };
        async move {
            let looked = rows(&args, &self.options, self.process.clone());
            let rows = Box::pin(looked).await;
            Report(rows).text().trim_end().to_owned()
        }
        .boxed()
    }

    fn settings(&self) -> Result<String, String> {
        let configuration = caliban_harness::configure(&self.options, self.process.clone())
            .map_err(|error| error.to_string())?;
        Ok(settings_commands::effective(&configuration))
    }
}

async fn rows(args: &DoctorArgs, options: &RunOptions, process: Process) -> Vec<Row> {
    let workspace = match find_workspace(options.workspace.as_deref(), &process) {
        Ok(workspace) => workspace,
        // Everything else is about a workspace.
        Err(failure) => return vec![Row::fail("workspace", failure.to_string())],
    };
    let loaded = Configuration::load(&options.settings, workspace.clone(), process.clone());
    let plain;
    let configuration = if let Ok(configuration) = &loaded {
        configuration
    } else {
        plain = Configuration::empty(workspace, process.clone());
        &plain
    };
    let additions = Additions::load(options, configuration);
    let named_model = args.model.as_deref().or(options.model.model.as_deref());
    let providers = Providers {
        configuration,
        selected: args.provider.kind().or(options.model.provider),
        depth: if args.deep {
            Depth::Deep
        } else {
            Depth::Shallow
        },
        model: named_model,
    };
    let depth = providers.depth;
    let sessions = session_store(&options.session, configuration);
    let checkpoints = checkpoint_store(configuration).ok().flatten();
    let mut rows = vec![
        local::settings(&loaded),
        sandbox::row(options, configuration).await,
        local::checkpoint_store(checkpoints.as_ref()),
        local::session_store(sessions.directory()),
        workspace::skills(&additions.extras, configuration),
        workspace::instructions(&additions.extras),
        local::workspace(&configuration.workspace),
    ];
    let (called, connected) = tokio::join!(providers.rows(), servers::rows(configuration, depth));
    rows.extend(called);
    rows.push(providers.auth_row(&rows));
    rows.push(providers.model_row());
    rows.extend(providers.cloud_row().await);
    rows.push(routes::row(options, configuration));
    rows.extend(connected);
    rows.extend(match &loaded {
        Ok(configuration) => [
            workspace::permissions(&options.permissions, configuration),
            workspace::trust(configuration),
            workspace::hooks(&additions),
        ],
        Err(_) => ["permissions", "trust", "hooks"]
            .map(|name| Row::skip(name, "not checked: the settings cannot be read")),
    });
    rows.extend([
        local::secret_store(&login_place(configuration)),
        local::program("git", process.environment.text("PATH").as_deref()),
        local::shell(),
        local::agents(configuration),
    ]);
    rows.extend(brought::plugins(options, configuration));
    rows.extend(brought::worktrees(configuration).await);
    rows
}

/// What settings and files add to a session, read and not run.
struct Additions {
    extras: Result<Extras, String>,
    /// What is wrong with the hooks. Everything else is read without them then, so that they hide
    /// nothing.
    hooks_fault: Option<String>,
}

impl Additions {
    fn load(options: &RunOptions, configuration: &Configuration) -> Self {
        let fault = match load_extras(options, configuration) {
            Ok(extras) => {
                return Self {
                    extras: Ok(extras),
                    hooks_fault: None,
                };
            }
            Err(error) => error.to_string(),
        };
        let mut without_hooks = options.clone();
        without_hooks.tools.hooks = Part::Off;
        let extras = load_extras(&without_hooks, configuration).map_err(|error| error.to_string());
        Self {
            hooks_fault: extras.is_ok().then_some(fault),
            extras,
        }
    }
}
