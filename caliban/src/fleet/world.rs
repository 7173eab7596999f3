//! What an agent in the background gets from whoever asks for it: task, options and environment,
//! with everything that may be a secret apart.

use std::ffi::OsString;
use std::num::NonZeroUsize;

use caliban_fleet::{AgentId, CallerWorld, Isolation, Limits, Restart, Task};
use caliban_harness::options::{Saving, SessionChoice};
use caliban_harness::{Child, Configuration, RunOptions, child_environment};
use caliban_settings::variables::names;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::Fleet;
use crate::exit::Failure;

/// What is kept apart from the options: settings and servers that are given as JSON may hold keys.
const SETTINGS: &str = "--settings";
const SERVERS: &str = "--mcp-config";

impl Fleet<'_> {
    /// The task as it is written down.
    pub(super) fn task(&self, prompt: String, label: Option<String>) -> Result<Task, Failure> {
        task(self.options, self.configuration, prompt, label)
    }

    /// Who asks, as far as the agent shall know.
    pub(super) fn world(&self) -> CallerWorld {
        world(self.options, self.configuration)
    }

    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        limits(self.configuration)
    }
}

/// A task with the options of a run.
pub(super) fn task(
    options: &RunOptions,
    configuration: &Configuration,
    prompt: String,
    label: Option<String>,
) -> Result<Task, Failure> {
    if options.session.choice != SessionChoice::New || options.session.saving == Saving::Off {
        return Err(Failure::Usage(
            "an agent in the background has a session of its own: leave `--session`, `--resume`, \
             `--continue` and `--no-save` out"
                .to_owned(),
        ));
    }
    described(options, configuration, prompt, label)
}

/// The same whatever session it is.
pub(super) fn described(
    options: &RunOptions,
    configuration: &Configuration,
    prompt: String,
    label: Option<String>,
) -> Result<Task, Failure> {
    let (kept, withheld) = apart(options);
    let parent = configuration.environment().text(names::CALIBAN_AGENT_ID);
    Ok(Task {
        prompt,
        label,
        cwd: configuration.process.current_directory.clone(),
        options: serde_json::to_value(kept).map_err(|error| Failure::Runtime(error.to_string()))?,
        parent: parent.and_then(|id| id.parse::<AgentId>().ok()),
        profile: None,
        isolation: Isolation::None,
        withheld: withheld.into_iter().map(|(name, _)| name).collect(),
        handover: None,
        served: None,
    })
}

/// The environment of whoever asks, and what was left out of the options.
pub(super) fn world(options: &RunOptions, configuration: &Configuration) -> CallerWorld {
    let hidden = configuration.key_variables();
    let all = configuration.process.variables.iter().cloned();
    let harmless = child_environment(Child::Stranger, all.clone(), &hidden, []);
    let is_harmless = |name: &OsString| harmless.iter().any(|(known, _)| known == name);
    // What is no text can be no variable that counts here.
    let (environment, secrets) = all
        .filter_map(|(name, value)| {
            let is_harmless = is_harmless(&name);
            let pair = (name.into_string().ok()?, value.into_string().ok()?);
            Some((pair, is_harmless))
        })
        .partition::<Vec<_>, _>(|(_, is_harmless)| *is_harmless);
    let plain = |pairs: Vec<((String, String), bool)>| {
        let pairs = pairs.into_iter().map(|(pair, _)| pair);
        pairs
            .filter(|(name, _)| name != names::CALIBAN_AGENT_ID)
            .collect()
    };
    CallerWorld {
        environment: plain(environment),
        secrets: plain(secrets),
        withheld: apart(options).1,
    }
}

/// The options without what may hold secrets, and that.
fn apart(options: &RunOptions) -> (RunOptions, Vec<(String, Value)>) {
    let is_inline = |text: &str| text.trim_start().starts_with('{');
    let mut kept = options.clone();
    let mut withheld = Vec::new();
    if let Some(overlay) = kept.settings.overlay.take_if(|text| is_inline(text)) {
        withheld.push((SETTINGS.to_owned(), json!(overlay)));
    }
    if kept.servers.configs.iter().any(|text| is_inline(text)) {
        let configs = std::mem::take(&mut kept.servers.configs);
        withheld.push((SERVERS.to_owned(), json!(configs)));
    }
    (kept, withheld)
}

/// Puts back what was kept apart.
pub(super) fn together(options: &mut RunOptions, world: &CallerWorld) {
    for (name, value) in &world.withheld {
        match name.as_str() {
            SETTINGS => options.settings.overlay = value.as_str().map(str::to_owned),
            SERVERS => {
                let configs = value.as_array().into_iter().flatten();
                let configs = configs.filter_map(Value::as_str).map(str::to_owned);
                options.servers.configs = configs.collect();
            }
            _ => {}
        }
    }
}

/// How many agents there may be, as the settings say.
pub(super) fn limits(configuration: &Configuration) -> Result<Limits, Failure> {
    let fleet = &configuration.settings().fleet;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let count = |set: Option<u64>, otherwise: usize| {
        set.and_then(|set| usize::try_from(set).ok())
            .unwrap_or(otherwise)
    };
    let budget = match fleet.max_budget_usd {
        None => None,
        Some(dollars) => Some(Decimal::try_from(dollars).map_err(|error| {
            Failure::Config(format!("`fleet.max_budget_usd` = {dollars}: {error}"))
        })?),
    };
    Ok(Limits {
        running: count(fleet.max_running, (2 * cores).max(4)),
        registered: count(fleet.max_agents, 1_000),
        grace_ms: u64::try_from(fleet.grace().as_millis()).unwrap_or(u64::MAX),
        budget,
        restart: match fleet.restart {
            Some(caliban_settings::Restart::OnCrash) => Restart::OnCrash,
            Some(caliban_settings::Restart::Never) | None => Restart::Never,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_hold_a_secret_is_kept_apart_and_comes_back() {
        let mut options = RunOptions::default();
        options.settings.overlay = Some(r#" {"env": {"KEY": "s3cret"}}"#.to_owned());
        options.servers.configs = vec!["file.json".to_owned(), "{\"mcpServers\":{}}".to_owned()];
        let (kept, withheld) = apart(&options);
        assert!(!serde_json::to_string(&kept).unwrap().contains("s3cret"));
        let names: Vec<&str> = withheld.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [SETTINGS, SERVERS]);
        let world = CallerWorld {
            withheld,
            ..CallerWorld::default()
        };
        let mut again = kept;
        together(&mut again, &world);
        assert_eq!(again, options);
        let mut files = RunOptions::default();
        files.settings.overlay = Some("settings.toml".to_owned());
        assert_eq!(apart(&files), (files, Vec::new()));
    }
}
