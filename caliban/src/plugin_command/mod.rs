//! `caliban plugin`: the plugins there are, and where they come from.

mod choice;
mod configure;
mod difference;
mod install;
mod market;
mod show;
mod validate;

use std::path::Path;

use caliban_harness::plugins::{Audience, ManageError, Manager, PluginSet, dependants};
use caliban_harness::{Configuration, RunOptions};
use caliban_plugins::{LockError, PluginName, create_skeleton};

use crate::args::{MarketplaceCommand, PluginCommand, PluginScope};
use crate::console::{Console, note};
use crate::exit::Failure;

pub(crate) async fn run(
    command: &PluginCommand,
    options: &RunOptions,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    for warning in configuration.warnings() {
        note(&format!("warning: {warning}"));
    }
    let manager = Manager::new(configuration);
    match command {
        PluginCommand::List {
            available: true,
            json,
        } => market::search(&manager, "", *json, console),
        PluginCommand::List {
            available: false,
            json,
        } => show::list(options, configuration, *json, console),
        PluginCommand::Info { name } => show::info(options, configuration, name, console),
        PluginCommand::Install(args) => {
            let manager = Manager::of(configuration, audience(args.scope));
            install::install(args, &manager, configuration, console).await
        }
        PluginCommand::Lock { scope } => {
            let manager = Manager::of(configuration, audience(*scope));
            install::lock(&manager, console)
        }
        PluginCommand::Update {
            name,
            yes,
            scope,
            json,
        } => {
            let manager = keeper(configuration, name, *scope, Access::Fetches)?;
            let consent = install::Consent::of(*yes);
            let form = Form::of(*json);
            install::update(name, consent, form, &manager, configuration, console).await
        }
        PluginCommand::Remove { name, scope } => {
            let manager = keeper(configuration, name, *scope, Access::Removes)?;
            let needed = dependants(&PluginSet::all(configuration), name);
            if !needed.is_empty() {
                return Err(ManageError::Needed(name.clone(), needed.join(", ")).into());
            }
            let removed = manager.remove(name)?;
            console.write(&format!("removed `{}`\n", removed.path.display()))
        }
        PluginCommand::Enable { name, scope } => {
            choice::set(name, choice::Use::Wanted, *scope, configuration, console)
        }
        PluginCommand::Disable { name, scope } => {
            choice::set(name, choice::Use::Unwanted, *scope, configuration, console)
        }
        PluginCommand::Configure {
            name,
            values,
            unset,
        } => configure::run(name, values, unset, configuration, console),
        PluginCommand::Verify { name, json } => {
            difference::verify(name.as_deref(), *json, configuration, console)
        }
        PluginCommand::Diff { name, scope, json } => {
            let manager = keeper(configuration, name, *scope, Access::Fetches)?;
            difference::show(name, Form::of(*json), &manager, console).await
        }
        PluginCommand::Validate { path, strict, json } => {
            let path = configuration.process.current_directory.join(path);
            validate::run(&path, &manager, *strict, *json, console)
        }
        PluginCommand::Search { word, json } => market::search(&manager, word, *json, console),
        PluginCommand::New { name, dir } => begin(name, dir.as_deref(), configuration, console),
        PluginCommand::Marketplace { command } => match command {
            MarketplaceCommand::Add { source } => market::add(&manager, source, console).await,
            MarketplaceCommand::List { json } => market::list(&manager, *json, console),
            MarketplaceCommand::Update { name } => {
                market::update(&manager, name.as_deref(), console).await
            }
            MarketplaceCommand::Remove { name } => {
                manager.remove_market(name)?;
                console.write(&format!("forgot the marketplace `{name}`\n"))
            }
        },
    }
}

/// Makes a plugin for its author to go on with.
fn begin(
    name: &str,
    directory: Option<&Path>,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let name: PluginName = name
        .parse()
        .map_err(|error: caliban_plugins::InvalidName| Failure::Usage(error.to_string()))?;
    if !name.is_conventional() {
        return Err(Failure::Usage(format!(
            "`{name}` is not a name that every program takes: lower case letters, digits, `-` and `_`, at most 32 of them"
        )));
    }
    let from = &configuration.process.current_directory;
    let directory = from.join(directory.unwrap_or(Path::new(name.as_str())));
    let made =
        create_skeleton(&directory, &name).map_err(|error| Failure::Runtime(error.to_string()))?;
    let made: Vec<String> = made
        .iter()
        .map(|path| format!("{}\n", path.display()))
        .collect();
    console.write(&made.concat())?;
    console.write(&format!(
        "\ntry it with `caliban --plugin-dir {0}`, check it with `caliban plugin validate {0}`\n",
        directory.display()
    ))
}

/// For whom something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

impl Form {
    fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// What is done with an installed plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// It is looked for where it says that it came from.
    Fetches,
    Removes,
}

/// Who keeps the plugin that is meant: of the user's and the project's the first that there is,
/// where nobody says whose. A project that is not trusted does not say where to fetch from.
fn keeper<'a>(
    configuration: &'a Configuration,
    name: &str,
    scope: Option<PluginScope>,
    access: Access,
) -> Result<Manager<'a>, Failure> {
    let user = Manager::new(configuration);
    let project = Manager::of(configuration, Audience::Project);
    let is_projects = match scope {
        Some(PluginScope::User | PluginScope::Local) => false,
        Some(PluginScope::Project) => true,
        None => !user.holds(name) && project.holds(name),
    };
    if !is_projects {
        return Ok(user);
    }
    if !project.is_in_the_project() {
        return Err(Failure::Runtime(
            "the project's plugins lie elsewhere, behind a link; change them there".to_owned(),
        ));
    }
    if access == Access::Fetches && !configuration.is_trusted() {
        return Err(Failure::Config(
            "this workspace is not trusted, and says where its plugins come from; look at it and run `caliban trust`"
                .to_owned(),
        ));
    }
    Ok(project)
}

fn audience(scope: PluginScope) -> Audience {
    match scope {
        PluginScope::User => Audience::User,
        PluginScope::Project => Audience::Project,
        PluginScope::Local => Audience::Local,
    }
}

impl From<ManageError> for Failure {
    fn from(error: ManageError) -> Self {
        match error {
            ManageError::Address(_) | ManageError::Value { .. } => Self::Usage(error.to_string()),
            ManageError::NoMarketplace(_)
            | ManageError::Lock(LockError::Absent(_))
            | ManageError::NoEntry { .. }
            | ManageError::NotInstalled(_) => Self::NoInput(error.to_string()),
            ManageError::Refused(_)
            | ManageError::Fetch { .. }
            | ManageError::Index { .. }
            | ManageError::Archive { .. }
            | ManageError::Signature { .. }
            | ManageError::NotAsLocked { .. }
            | ManageError::Package(_)
            | ManageError::Staging(_)
            | ManageError::Tree(_)
            | ManageError::LeadsOut(_)
            | ManageError::State(_)
            | ManageError::Lock(LockError::Unusable { .. } | LockError::Write { .. })
            | ManageError::Uninstallable { .. }
            | ManageError::Unsuitable(..)
            | ManageError::Managed(_)
            | ManageError::Another(..)
            | ManageError::AnotherMarket(..)
            | ManageError::Needs { .. }
            | ManageError::Unfit { .. }
            | ManageError::Circle(_)
            | ManageError::TooMany(_)
            | ManageError::Needed(..)
            | ManageError::Settings(_)
            | ManageError::ByHand(_) => Self::Runtime(error.to_string()),
        }
    }
}
