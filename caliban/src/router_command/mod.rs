//! `caliban router`: what routes do, shown before they do it.

mod debug;
mod explain;
mod simulate;
mod test;

use std::sync::Arc;

use caliban_harness::options::SettingsOptions;
use caliban_harness::routes::{Asked, Routes, Vacancies};
use caliban_harness::{Configuration, RunOptions, session_store};
use caliban_model::{CancellationToken, Reasoning};
use caliban_router::{Hedging, Route, Router, SharedStates, Standing};
use caliban_sessions::SessionState;
use caliban_settings::LoadedRouterFile;
use serde_json::json;

use crate::args::RouterCommand;
use crate::console::{Console, note};
use crate::exit::Failure;

pub(crate) async fn run(
    command: &RouterCommand,
    options: &RunOptions,
    configuration: &Configuration,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let shown;
    let file = configuration.router.as_ref();
    let refused = file.and_then(|file| Some((file, file.refusal.clone()?)));
    let configuration = match (command, refused) {
        (_, None) => configuration,
        // It would ask the models.
        (RouterCommand::Test { .. }, Some((_, refusal))) => return Err(refusal.into()),
        (_, Some((file, _))) => {
            shown = as_if_named(file, options, configuration)?;
            &shown
        }
    };
    match command {
        RouterCommand::Debug(args) => {
            let router = router(options, configuration)?;
            let configured = configuration.settings().max_tokens;
            let max_tokens = options.model.max_tokens.or(configured);
            debug::run(args, max_tokens, &router, console)
        }
        RouterCommand::Explain { session, json } => {
            let state = session
                .as_deref()
                .map(|name| session_state(name, options, configuration))
                .transpose()?;
            let router = router(options, configuration)?;
            explain::run(state.as_ref(), *json, &router, console)
        }
        RouterCommand::Status { json } => status(*json, configuration, console),
        RouterCommand::Test { full, routes, yes } => {
            let router = router(options, configuration)?;
            let consent = if *yes {
                test::Consent::Given
            } else {
                test::Consent::Missing
            };
            let extent = if *full {
                test::Extent::Full
            } else {
                test::Extent::Answer
            };
            test::run(routes, extent, consent, &router, cancel, console).await
        }
        RouterCommand::Simulate(args) => simulate::run(args, options, configuration, console),
    }
}

/// What would hold if the user named the file: nothing of it is used, so it may be shown.
fn as_if_named(
    file: &LoadedRouterFile,
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<Configuration, Failure> {
    note(&format!(
        "warning: the workspace is not trusted, so no run uses the routes of `{}` before `caliban trust`",
        file.path.display()
    ));
    let settings = SettingsOptions {
        router_file: Some(file.path.clone()),
        ..options.settings.clone()
    };
    let (workspace, process) = (&configuration.workspace, &configuration.process);
    Ok(Configuration::load(
        &settings,
        workspace.clone(),
        process.clone(),
    )?)
}

/// The routes of a run with these options. A key that is missing is shown, not an error.
pub(crate) fn routes(
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<Routes, Failure> {
    let asked = Asked {
        options: &options.model,
        continued: &options.model,
        budget: options.limits.budget,
    };
    Ok(Routes::compile(&asked, Vacancies::Shown, configuration)?)
}

fn router(options: &RunOptions, configuration: &Configuration) -> Result<Router, Failure> {
    let routes = routes(options, configuration)?;
    let budget = options.limits.budget;
    Ok(routes.router(budget, Hedging::AsConfigured, configuration)?)
}

fn session_state(
    name: &str,
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<SessionState, Failure> {
    let store = session_store(&options.session, configuration);
    let name = store.find(name)?;
    let (state, _) = store.load(&name)?;
    Ok(state)
}

/// What processes have told each other.
fn status(json: bool, configuration: &Configuration, console: &mut Console) -> Result<(), Failure> {
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    let open = SharedStates::new(configuration.locations.router_state()).all(now);
    if json {
        let text = serde_json::to_string_pretty(&json!({ "open": open }));
        let text = text.map_err(|error| Failure::Runtime(error.to_string()))?;
        return console.write(&format!("{text}\n"));
    }
    if open.is_empty() {
        return console.write("No process has found a route that does not work.\n");
    }
    for record in open {
        let left = record.until_ms.saturating_sub(now).div_ceil(1_000);
        console.put(&format!(
            "{}/{}: left alone for {left} s more ({}, found by process {})\n",
            record.provider, record.model, record.reason, record.pid
        ))?;
    }
    console.flush()
}

/// How a breaker stands, in words. Each process has its own.
fn breaker(standing: Option<Standing>, route: &Route, now: std::time::Duration) -> String {
    match (standing, route.breaker) {
        (_, None) => "off".to_owned(),
        (Some(Standing::Open { until }), Some(_)) => format!(
            "open for {} s, says another process",
            until.saturating_sub(now).as_secs()
        ),
        (Some(Standing::Rested | Standing::Probed), Some(_)) => "half open".to_owned(),
        (Some(Standing::Closed { .. }) | None, Some(_)) => "no state in this process".to_owned(),
    }
}

/// The model that callers name who choose none.
fn asked_model(router: &Router) -> Arc<str> {
    let main = router.table().main();
    main.map_or_else(|| Arc::from("inherit"), |route| Arc::clone(&route.model))
}

/// What a route makes of a wish for effort, in words.
fn knob(reasoning: Reasoning) -> String {
    match reasoning {
        Reasoning::Auto => "nothing".to_owned(),
        Reasoning::Off => "off".to_owned(),
        Reasoning::Effort(level) => level.as_str().to_owned(),
        Reasoning::Budget(tokens) => format!("budget={tokens}"),
    }
}
