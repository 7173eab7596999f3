//! `caliban config` and `caliban settings`: looking at settings and bringing old ones along.

use std::path::{Path, PathBuf};

use caliban_harness::options::SettingsOptions;
use caliban_harness::{Configuration, Process, locations};
use caliban_settings::write::Writer;
use caliban_settings::{Scope, import, migrate, project_of, value_at};
use serde_json::Value;

use crate::args::SettingsCommand;
use crate::consent::Consent;
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::masking::Secrets;

/// `config print`: JSON for programs, a table for people.
pub(crate) fn print_effective(
    configuration: &Configuration,
    json: bool,
    secrets: Secrets,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut document = configuration.loaded.to_print_json();
    document["warnings"] = configuration.warnings().into();
    secrets.mask(&mut document["settings"]);
    if json || !console.is_terminal() {
        let text = serde_json::to_string_pretty(&document)
            .map_err(|error| Failure::Runtime(error.to_string()))?;
        return console.write(&format!("{text}\n"));
    }
    console.write(&table(&document))
}

/// The same for people, wherever it is shown.
pub(crate) fn effective(configuration: &Configuration) -> String {
    let mut document = configuration.loaded.to_print_json();
    document["warnings"] = configuration.warnings().into();
    Secrets::Masked.mask(&mut document["settings"]);
    table(&document).trim_end().to_owned()
}

/// The scope that stands for all of them.
pub(crate) const EFFECTIVE: &str = "effective";

/// `settings print --scope effective`: the settings alone, as all scopes come to.
pub(crate) fn print_merged(
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut settings = serde_json::json!(configuration.settings());
    Secrets::Masked.mask(&mut settings);
    console.write(&format!("{settings:#}\n"))
}

fn table(document: &Value) -> String {
    let empty = serde_json::Map::new();
    let scopes = document["scopes"].as_object().unwrap_or(&empty);
    let mut lines = Vec::new();
    let width = scopes.keys().map(String::len).max().unwrap_or(0);
    for (key, scope) in scopes {
        let value = value_at(&document["settings"], key).map_or_else(String::new, Value::to_string);
        let scope = scope.as_str().unwrap_or_default();
        lines.push(format!("{key:width$}  {scope:8}  {value}"));
    }
    if lines.is_empty() {
        lines.push("no settings; every key has its default".to_owned());
    }
    lines.push(String::new());
    for file in document["files"].as_array().into_iter().flatten() {
        let state = if file["loaded"] == true {
            "read"
        } else {
            "absent"
        };
        lines.push(format!(
            "{:8}  {state:6}  {}",
            file["scope"].as_str().unwrap_or_default(),
            file["path"].as_str().unwrap_or_default()
        ));
    }
    for warning in document["warnings"].as_array().into_iter().flatten() {
        lines.push(format!(
            "\nwarning: {}",
            warning.as_str().unwrap_or_default()
        ));
    }
    lines.join("\n") + "\n"
}

/// `config migrate`: the older files of the workspace, and the user's own.
pub(crate) fn migrate(
    configuration: &Configuration,
    dry_run: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let locations = &configuration.locations;
    let project = locations.project_dir(configuration.project());
    let mut found = false;
    for (scope, directory) in [
        (Scope::User, locations.config_dir()),
        (Scope::Project, &project),
    ] {
        let consent = Consent::of(configuration);
        let migration = if dry_run {
            migrate::plan(directory)?
        } else {
            migrate::migrate(directory, &configuration.writer())?
        };
        if migration.sources.is_empty() {
            continue;
        }
        found = true;
        if !dry_run {
            consent.keep(scope, configuration);
        }
        told(&migration, dry_run, console)?;
    }
    if found {
        return Ok(());
    }
    console.write("nothing to migrate: there are no old settings files that are still read\n")
}

fn told(
    migration: &migrate::Migration,
    dry_run: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    for line in &migration.notes {
        note(line);
    }
    let target = migration.target.display();
    if migration.changes.is_empty() {
        return console.write(&format!("nothing to migrate: `{target}` has it all\n"));
    }
    if dry_run {
        note(&format!("`{target}` would be:"));
        return console.write(&migration.text);
    }
    console.write(&format!(
        "wrote `{target}`; the old files are no longer read\n"
    ))
}

/// `settings import` and `settings print`.
pub(crate) fn run(
    command: &SettingsCommand,
    workspace: &Path,
    process: &Process,
    console: &mut Console,
) -> Result<(), Failure> {
    match command {
        SettingsCommand::Print { scope } => {
            let files = scope_files(
                scope,
                ", or effective to print all of them merged",
                workspace,
                process,
            )?;
            let present = [&files.toml, &files.json]
                .into_iter()
                .find(|path| path.is_file());
            let Some(path) = present else {
                note(&format!(
                    "the {scope} scope has no file; it would be `{}`",
                    files.toml.display()
                ));
                return Ok(());
            };
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::Runtime(format!("cannot read `{}`: {error}", path.display()))
            })?;
            console.write(&text)
        }
        SettingsCommand::Import {
            from,
            scope,
            dry_run,
        } => {
            let target = scope_files(scope, "", workspace, process)?.toml;
            if scope == Scope::Managed.as_str() && !dry_run {
                return Err(Failure::Usage(format!(
                    "the managed scope is its operator's to write; `--dry-run` prints what `{}` would be",
                    target.display()
                )));
            }
            let home = process.environment.text("HOME").map(PathBuf::from);
            if !from.is_file() {
                return Err(Failure::NoInput(format!(
                    "there is no file `{}`",
                    from.display()
                )));
            }
            let imported = import::from_file(from, home.as_deref())
                .map_err(|error| Failure::Config(error.to_string()))?;
            for line in &imported.notes {
                note(line);
            }
            if *dry_run {
                let merged = imported.preview(&target)?;
                note(&format!("`{}` would be:", target.display()));
                return console.write(&merged.text);
            }
            let scope = Scope::ON_DISK.into_iter().find(|it| it.as_str() == scope);
            let standing = scope.and_then(|scope| Standing::of(from, scope, workspace, process));
            take_over(&imported, &target, process, console)?;
            if let Some(standing) = standing {
                standing.keep();
            }
            Ok(())
        }
    }
}

/// How far the workspace was trusted before something was imported into it.
struct Standing {
    consent: Consent,
    scope: Scope,
    configuration: Configuration,
}

impl Standing {
    /// Nothing where the settings cannot be read: then there is nothing to keep, and whoever reads
    /// them next says why.
    fn of(from: &Path, scope: Scope, workspace: &Path, process: &Process) -> Option<Self> {
        let options = SettingsOptions::default();
        let configuration =
            Configuration::load(&options, workspace.to_owned(), process.clone()).ok()?;
        let from = from.canonicalize().ok()?;
        let project = configuration.project();
        let project = project
            .canonicalize()
            .unwrap_or_else(|_| project.to_owned());
        // What a file of the workspace says is not the operator's word, whoever imports it.
        let consent = if from.starts_with(project) {
            Consent::Missing
        } else {
            Consent::of(&configuration)
        };
        Some(Self {
            consent,
            scope,
            configuration,
        })
    }

    fn keep(self) {
        self.consent.keep(self.scope, &self.configuration);
    }
}

fn take_over(
    imported: &import::Imported,
    target: &Path,
    process: &Process,
    console: &mut Console,
) -> Result<(), Failure> {
    let writer = Writer::new(locations(process).settings_locks());
    let merged = imported.apply(target, &writer)?;
    if merged.changes.is_empty() {
        return console.write(&format!("`{}` has it all already\n", target.display()));
    }
    let changes = merged.changes.join("\n  ");
    console.write(&format!("changed `{}`:\n  {changes}\n", target.display()))
}

/// `also` is what else the command takes for a scope, in words.
fn scope_files(
    name: &str,
    also: &str,
    workspace: &Path,
    process: &Process,
) -> Result<caliban_settings::ScopeFiles, Failure> {
    let scope = Scope::ON_DISK
        .into_iter()
        .find(|scope| scope.as_str() == name)
        .ok_or_else(|| {
            Failure::Usage(format!(
                "unknown scope `{name}`; use managed, user, project or local{also}"
            ))
        })?;
    let locations = locations(process);
    locations
        .settings(scope, &project_of(workspace, &locations))
        .ok_or_else(|| Failure::Usage(format!("the {name} scope has no file")))
}
