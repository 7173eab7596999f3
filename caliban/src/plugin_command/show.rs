//! Lists of plugins, and one of them looked at closely.

use std::fmt::Write as _;

use caliban_harness::plugins::{PluginSet, source, survey};
use caliban_harness::{Configuration, RunOptions};
use caliban_plugins::{Effects, Found, Package, Survey};
use serde_json::{Value, json};

use crate::console::{Console, note};
use crate::exit::Failure;

pub(super) fn list(
    options: &RunOptions,
    configuration: &Configuration,
    is_json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let set = PluginSet::of_run(options, configuration);
    if is_json {
        let plugins: Vec<Value> = set.found.iter().map(|it| described(it, &set)).collect();
        return console.write(&format!("{:#}\n", json!({ "plugins": plugins })));
    }
    if set.is_left_out() {
        note("plugins are left out here: --no-plugins, --bare or CALIBAN_NO_PLUGINS says so");
    }
    if set.found.is_empty() {
        return console.write(
            "no plugins; `caliban plugin install NAME@MARKETPLACE` installs one, `caliban plugin new NAME` begins one\n",
        );
    }
    let rows: Vec<[String; 4]> = set
        .found
        .iter()
        .map(|found| {
            let version = found.package().and_then(|it| it.manifest.version.clone());
            let installed = found.installed.as_ref().and_then(|it| it.version.clone());
            [
                found.name.clone(),
                version.or(installed).unwrap_or_else(|| "-".to_owned()),
                source(found),
                set.state(found),
            ]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths = [0, 1, 2].map(|column| width(column).unwrap_or_default());
    let mut text = String::new();
    for [name, version, source, state] in &rows {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{name:<0$}  {version:<1$}  {source:<2$}  {state}",
            widths[0], widths[1], widths[2]
        );
    }
    console.write(&text)
}

pub(super) fn info(
    options: &RunOptions,
    configuration: &Configuration,
    name: &str,
    console: &mut Console,
) -> Result<(), Failure> {
    let set = PluginSet::of_run(options, configuration);
    let found = set
        .found
        .iter()
        .find(|found| found.name == name)
        .ok_or_else(|| {
            Failure::NoInput(format!(
                "there is no plugin `{name}`; `caliban plugin list` shows those there are"
            ))
        })?;
    let mut shown = described(found, &set);
    if let Some(package) = found.package() {
        let survey = survey(package);
        let fields = details(package, &survey);
        if let (Value::Object(shown), Value::Object(fields)) = (&mut shown, fields) {
            shown.extend(fields);
            // The manifest's own fields stand there too, where none of ours has the name.
            for (key, value) in &package.manifest.raw {
                shown.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    console.write(&format!("{shown:#}\n"))
}

/// What a plugin is, and whether it counts.
fn described(found: &Found, set: &PluginSet) -> Value {
    let package = found.package();
    let version = package.and_then(|it| it.manifest.version.clone());
    let installed = found.installed.as_ref();
    json!({
        "name": found.name,
        "version": version.or_else(|| installed.and_then(|it| it.version.clone())),
        "description": package.and_then(|it| it.manifest.description.clone()),
        "path": found.path.display().to_string(),
        "source": source(found),
        "scope": found.owner.as_str(),
        "enabled": found.active().is_some(),
        "state": set.state(found),
        "from": installed.map(|it| it.origin.to_string()),
    })
}

/// What a plugin brings, runs and costs.
pub(super) fn details(package: &Package, survey: &Survey) -> Value {
    let effects = Effects::of(package, survey);
    json!({
        "manifest": package.manifest.raw,
        "manifest_sha256": package.manifest_sha256,
        "skills": survey.skills,
        "commands": survey.commands,
        "agents": survey.agents,
        "output_styles": survey.styles,
        "mcp_servers": survey.servers,
        "hooks": survey.hooks,
        "runs": effects.lines(),
        "tokens": {"always": survey.cost.always, "on_demand": survey.cost.on_demand},
        "remarks": package.remarks.iter().chain(&survey.notices).collect::<Vec<_>>(),
    })
}
