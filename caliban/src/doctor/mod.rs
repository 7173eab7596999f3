//! `caliban doctor`: is everything here that a run needs? Nothing is changed, and nothing of a
//! workspace is executed.

mod local;
mod providers;
mod report;
mod workspace;

use caliban_agent::Outcome;
use caliban_harness::Extras;
use caliban_model::CancellationToken;
use caliban_settings::variables::{Environment, names};

use crate::args::{Cli, DoctorArgs};
use crate::configuration::{self, Configuration};
use crate::console::Console;
use crate::exit::Failure;
use crate::extras;
use providers::{Depth, Providers};
use report::{Report, Row};

/// Prints a row for every check; one that failed makes the exit code 1.
pub(crate) async fn run(
    args: &DoctorArgs,
    cli: &Cli,
    environment: Environment<'_>,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let rows = cancel.run_until_cancelled(rows(args, cli, environment));
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

async fn rows(args: &DoctorArgs, cli: &Cli, environment: Environment<'_>) -> Vec<Row> {
    let named = cli.run.tools.workspace.as_deref();
    let workspace = match configuration::workspace(named) {
        Ok(workspace) => workspace,
        // Everything else is about a workspace.
        Err(failure) => return vec![Row::fail("workspace", failure.to_string())],
    };
    let loaded = Configuration::load(&cli.settings, workspace.clone(), environment);
    let plain;
    let configuration = match &loaded {
        Ok(configuration) => configuration,
        Err(_) => match Configuration::empty(workspace, environment) {
            Ok(configuration) => {
                plain = configuration;
                &plain
            }
            Err(failure) => return vec![Row::fail("settings", failure.to_string())],
        },
    };
    let additions = Additions::load(cli, configuration);
    let named_model = args.model.as_deref().or(cli.run.model.model.as_deref());
    let providers = Providers {
        configuration,
        selected: args.provider.provider.or(cli.run.provider.provider),
        depth: if args.deep {
            Depth::Deep
        } else {
            Depth::Shallow
        },
        model: named_model,
    };
    let locations = &configuration.locations;
    let mut rows = vec![
        local::settings(&loaded),
        local::sandbox(&configuration.settings().sandbox),
        local::checkpoint_store(&locations.checkpoints(&configuration.workspace)),
        local::session_store(&locations.sessions()),
        workspace::skills(&additions.extras, configuration),
        workspace::instructions(&additions.extras),
        local::workspace(&configuration.workspace),
    ];
    rows.extend(providers.rows().await);
    rows.push(providers.model_row());
    rows.extend(match &loaded {
        Ok(configuration) => [
            workspace::permissions(cli, configuration),
            workspace::trust(configuration),
            workspace::hooks(&additions),
        ],
        Err(_) => ["permissions", "trust", "hooks"]
            .map(|name| Row::warn(name, "not checked: the settings cannot be read")),
    });
    rows.extend([
        local::program("git", environment.text("PATH").as_deref()),
        local::shell(),
    ]);
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
    fn load(cli: &Cli, configuration: &Configuration<'_>) -> Self {
        let fault = match extras::load(cli, configuration) {
            Ok(extras) => {
                return Self {
                    extras: Ok(extras),
                    hooks_fault: None,
                };
            }
            Err(failure) => failure.to_string(),
        };
        let read = configuration.environment.reader();
        let without_hooks = |name: &str| match name {
            names::CALIBAN_NO_HOOKS => Some("1".to_owned()),
            name => read(name),
        };
        let workspace = configuration.workspace.clone();
        let environment = Environment::new(&without_hooks);
        let extras = Configuration::load(&cli.settings, workspace, environment)
            .and_then(|configuration| extras::load(cli, &configuration))
            .map_err(|failure| failure.to_string());
        Self {
            hooks_fault: extras.is_ok().then_some(fault),
            extras,
        }
    }
}
