//! `caliban router simulate`: outages, rehearsed.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use caliban_harness::{Configuration, RunOptions, configure};
use caliban_model::{Purpose, RateCard};
use caliban_router::rehearsal::{Comparison, Difference, Outages, Preset, Rehearsal, Report};
use caliban_router::{RetryPolicy, Table};
use caliban_sessions::{SessionState, Store};

use super::{routes, session_state};
use crate::args::{PresetName, SimulateArgs};
use crate::console::Console;
use crate::exit::Failure;

pub(crate) fn run(
    args: &SimulateArgs,
    options: &RunOptions,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let table = match &args.policy {
        None => routes(options, configuration)?.table,
        Some(path) => table_of(path, options, configuration)?,
    };
    let mut outages = outages(args, &table)?;
    if let Some(name) = &args.session {
        let state = recorded(name, options, configuration)?;
        outages.load = outages.load.recorded(&state.messages);
    }
    let rehearsal = |table: Table| Rehearsal {
        table,
        rates: Arc::new(RateCard::builtin().clone()),
        retries: RetryPolicy::default(),
        outages: outages.clone(),
        seed: args.seed,
        sessions: args.sessions,
        turns: args.turns,
    };
    let first = rehearsal(table);
    let text = match &args.compare {
        None => {
            let report = first.report();
            if args.json {
                written(&report)?
            } else {
                column(&report)
            }
        }
        Some(path) => {
            let second = rehearsal(table_of(path, options, configuration)?);
            let comparison = first.compare(&second);
            if args.json {
                written(&comparison)?
            } else {
                columns(&comparison, path)
            }
        }
    };
    console.write(&text)
}

/// The routes of another file.
fn table_of(
    path: &Path,
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<Table, Failure> {
    let mut other = options.clone();
    other.settings.router_file = Some(path.to_owned());
    let other = configure(&other, configuration.process.clone())?;
    Ok(routes(options, &other)?.table)
}

/// A session of the user's, or one whose journal is somewhere else.
fn recorded(
    name: &str,
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<SessionState, Failure> {
    let path = Path::new(name);
    let parts = (path.parent(), path.file_stem().and_then(OsStr::to_str));
    match (path.extension(), parts) {
        (Some(kind), (Some(directory), Some(stem))) if kind == "journal" => {
            let store = Store::new(configuration.process.current_directory.join(directory));
            let name = store.find(stem)?;
            let (state, _) = store.load(&name)?;
            Ok(state)
        }
        _ => session_state(name, options, configuration),
    }
}

fn written(report: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(report);
    let text = text.map_err(|error| Failure::Runtime(error.to_string()))?;
    Ok(format!("{text}\n"))
}

fn outages(args: &SimulateArgs, table: &Table) -> Result<Outages, Failure> {
    let Some(path) = &args.outages else {
        let first = table.head(Purpose::MainLoop);
        let first = first.map_or("", |route| route.provider_name());
        let preset = match args.preset {
            PresetName::Calm => Preset::Calm,
            PresetName::Flaky => Preset::Flaky,
            PresetName::Regional => Preset::Regional,
            PresetName::ProviderDown => Preset::ProviderDown,
        };
        return Ok(Outages::preset(preset, first));
    };
    let unusable = |reason: String| {
        let problem = format!("`{}`: {reason}", path.display());
        Failure::Launch(caliban_harness::LaunchError::configuration(problem))
    };
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    toml::from_str(&text).map_err(|error| unusable(error.to_string()))
}

/// What a report says, each with its name.
fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let seconds = |value: f64| format!("{value} s");
    let money = |value: f64| format!("${value:.4}");
    vec![
        ("sessions", report.sessions.to_string()),
        ("turns", report.turns.to_string()),
        (
            "failed turns",
            format!("{} ({} %)", report.failed, report.failed_percent),
        ),
        ("answers begun anew", report.restarted.to_string()),
        ("waiting in a session", seconds(report.waited)),
        ("first content, half", seconds(report.first_content_p50)),
        ("first content, 95 %", seconds(report.first_content_p95)),
        ("first content, 99 %", seconds(report.first_content_p99)),
        ("cost of a session", money(report.cost)),
        ("  read anew", money(report.cost_fresh)),
        ("  from the cache", money(report.cost_cached)),
        ("  written", money(report.cost_output)),
        ("  wasted", money(report.cost_wasted)),
        ("hops in a session", report.hops.to_string()),
        ("breakers tripped", report.trips.to_string()),
        ("routes that joined", report.hedges.to_string()),
    ]
}

fn column(report: &Report) -> String {
    let mut text = String::new();
    for (name, value) in rows(report) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<22}{value}");
    }
    text
}

fn columns(comparison: &Comparison, other: &Path) -> String {
    let (first, second) = (rows(&comparison.first), rows(&comparison.second));
    let mut text = format!("{:<22}{:<18}{}\n", "", "configured", other.display());
    for ((name, first), (_, second)) in first.into_iter().zip(second) {
        let _ = writeln!(text, "{name:<22}{first:<18}{second}");
    }
    let line = |name: &str, unit: &str, difference: Difference| {
        let Difference { mean, margin } = difference;
        format!("{name:<22}{mean:+} ± {margin} {unit}\n")
    };
    text.push_str("\nthe second against the first, session by session\n");
    text.push_str(&line("cost", "USD", comparison.cost));
    text.push_str(&line("waiting", "s", comparison.waited));
    text.push_str(&line("failed turns", "turns", comparison.failed));
    text
}
