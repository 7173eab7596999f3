//! Installing and updating: what would be done is shown, and done when somebody agrees.

use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal};

use caliban_harness::Configuration;
use caliban_harness::plugins::{ManageError, Manager, Plan, Signing, Wanted};

use serde_json::{Value, json};

use super::Form;
use crate::args::{PluginInstallArgs, PluginScope};
use crate::console::{Console, note};
use crate::exit::Failure;

/// The most files that are named.
const FILES: usize = 20;

/// Whether somebody agreed beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    AskedFor,
}

impl Consent {
    pub(super) fn of(yes: bool) -> Self {
        if yes { Self::Given } else { Self::AskedFor }
    }
}

pub(super) async fn install(
    args: &PluginInstallArgs,
    manager: &Manager<'_>,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    if args.frozen {
        let plans = manager.plan_locked().await?;
        if plans.is_empty() {
            return console.write("everything that is locked is installed\n");
        }
        let consent = Consent::of(args.yes);
        return finish(plans, consent, manager, configuration, console);
    }
    let wanted = match (&args.dir, &args.plugin) {
        (Some(path), _) => Wanted::Directory(path.clone()),
        (None, plugin) => {
            let text = plugin.as_deref().unwrap_or_default();
            let parts = text.split_once('@');
            let parts = parts.filter(|(plugin, market)| !plugin.is_empty() && !market.is_empty());
            let (plugin, marketplace) = parts.ok_or_else(|| {
                Failure::Usage(format!(
                    "`{text}` names no marketplace or no plugin; write `NAME@MARKETPLACE`, or `--dir PATH` for a directory"
                ))
            })?;
            Wanted::Listed {
                plugin: plugin.to_owned(),
                marketplace: marketplace.to_owned(),
                version: args.version.clone(),
            }
        }
    };
    let plans = manager.plan_all(&wanted).await?;
    finish(
        plans,
        Consent::of(args.yes),
        manager,
        configuration,
        console,
    )?;
    if args.scope == PluginScope::Project && !configuration.is_trusted() {
        note("it counts once this workspace is trusted: `caliban trust`");
    }
    Ok(())
}

/// Writes down what is installed, so that others can have the same.
pub(super) fn lock(manager: &Manager<'_>, console: &mut Console) -> Result<(), Failure> {
    let lockable = manager.lockable()?;
    for name in &lockable.left_out {
        note(&format!(
            "warning: `{name}` is left out: it comes from a directory, which other machines do not have"
        ));
    }
    let lock = manager.lock();
    let names: Vec<String> = lockable.plugins.keys().map(ToString::to_string).collect();
    lock.write(lockable.plugins).map_err(ManageError::from)?;
    let names = if names.is_empty() {
        "no plugins".to_owned()
    } else {
        names.join(", ")
    };
    console.write(&format!("locked {names} in `{}`\n", lock.path().display()))
}

pub(super) async fn update(
    name: &str,
    consent: Consent,
    form: Form,
    manager: &Manager<'_>,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    match (manager.plan_update(name).await?, form) {
        (None, Form::Text) => console.write(&format!("`{name}` is up to date\n")),
        (plan, Form::Json) => {
            let plans = match plan {
                Some(plan) => manager.with_needed(plan).await?,
                None => Vec::new(),
            };
            let shown: Vec<Value> = plans.iter().map(plan_json).collect();
            console.write(&format!("{:#}\n", json!({ "changes": shown })))?;
            if consent == Consent::AskedFor && !plans.iter().all(|plan| plan.is_acknowledged) {
                return Err(nobody_asked());
            }
            for plan in plans {
                manager.carry_out(plan)?;
            }
            Ok(())
        }
        (Some(plan), Form::Text) => {
            let plans = manager.with_needed(plan).await?;
            finish(plans, consent, manager, configuration, console)
        }
    }
}

fn finish(
    plans: Vec<Plan>,
    consent: Consent,
    manager: &Manager<'_>,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let message = configuration.settings().plugins.trust_message.as_deref();
    for plan in &plans {
        console.write(&described(plan, message))?;
    }
    let is_known = plans.iter().all(|plan| plan.is_acknowledged);
    if !is_known && consent == Consent::AskedFor {
        ask(console)?;
    }
    for plan in plans {
        let name = plan.package.name().clone();
        let version = plan.version.clone();
        let version = version.unwrap_or_else(|| "without a version".to_owned());
        let asks = plan.package.manifest.options.iter();
        let asks: Vec<String> = asks
            .filter(|option| option.is_required)
            .map(|option| option.key.clone())
            .collect();
        let path = manager.carry_out(plan)?;
        console.write(&format!(
            "installed `{name}` {version} in `{}`\n",
            path.display()
        ))?;
        if !asks.is_empty() {
            note(&format!(
                "`{name}` wants to know {}: `caliban plugin configure {name}` lists what that is",
                asks.join(", ")
            ));
        }
    }
    Ok(())
}

/// Asks whoever sits at the terminal; without one nothing is installed.
fn ask(console: &mut Console) -> Result<(), Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(nobody_asked());
    }
    console.write("install it? [y/N] ")?;
    let mut answer = String::new();
    stdin
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    note("nothing was installed");
    Err(Failure::Silent(1))
}

fn nobody_asked() -> Failure {
    let told = "nothing was installed: nobody can be asked here; `--yes` agrees to what is shown";
    Failure::Usage(told.to_owned())
}

/// What would change, for programs.
pub(super) fn plan_json(plan: &Plan) -> Value {
    let package = &plan.package;
    let before = plan.previous.as_ref().and_then(|it| it.version.as_deref());
    json!({
        "name": package.name().as_str(),
        "before": before,
        "version": plan.version,
        "from": plan.origin.to_string(),
        "digest": plan.tree.digest,
        "agreed": plan.is_acknowledged,
        "runs": plan.effects.lines(),
        "runs_new": plan.difference.new,
        "runs_gone": plan.difference.gone,
        "files": plan.changed,
        "remarks": package.remarks.iter().chain(&plan.survey.notices).collect::<Vec<_>>(),
    })
}

/// Everything that somebody who decides should know.
pub(super) fn described(plan: &Plan, message: Option<&str>) -> String {
    let package = &plan.package;
    let mut text = String::new();
    // Writing to a string does not fail.
    let mut line = |said: &str| {
        let _ = writeln!(text, "{said}");
    };
    if let Some(message) = message.filter(|_| !plan.is_acknowledged) {
        line(message);
        line("");
    }
    let version = plan.version.as_deref().unwrap_or("-");
    match &plan.previous {
        Some(previous) => {
            let before = previous.version.as_deref().unwrap_or("-");
            line(&format!("{} {before} -> {version}", package.name()));
        }
        None => line(&format!("{} {version}", package.name())),
    }
    line(&format!("from      {}", plan.origin));
    match &plan.signing {
        None => {}
        Some(Signing::By(name)) => {
            line(&format!("signed    the list, with the key of `{name}`"));
        }
        Some(Signing::Unchecked) => line("signed    no: there is no key for its marketplace"),
    }
    line(&format!("manifest  sha256:{}", package.manifest_sha256));
    line(&format!("files     {}", plan.tree.digest));
    line(&format!(
        "          {} files, {} bytes",
        plan.tree.files.len(),
        plan.tree.bytes()
    ));
    let cost = plan.survey.cost;
    line(&format!(
        "costs     about {} tokens with every request, {} more when all of it is used",
        cost.always, cost.on_demand
    ));
    let survey = &plan.survey;
    for (what, names) in [
        ("skills", &survey.skills),
        ("commands", &survey.commands),
        ("agents", &survey.agents),
        ("styles", &survey.styles),
        ("servers", &survey.servers),
    ] {
        if !names.is_empty() {
            line(&format!("{what:<9} {}", names.join(", ")));
        }
    }
    let manifest = serde_json::Value::Object(package.manifest.raw.clone());
    line(&format!("\n{manifest:#}\n"));
    if plan.previous.is_none() {
        if plan.effects.is_empty() {
            line("It runs nothing by itself.");
        } else {
            line("By itself it");
            plan.effects
                .lines()
                .iter()
                .for_each(|effect| line(&format!("  {effect}")));
        }
    } else {
        let difference = &plan.difference;
        if difference.new.is_empty() && difference.gone.is_empty() {
            line("What it runs by itself is written as before.");
        } else {
            line("What it does by itself changes:");
            difference
                .gone
                .iter()
                .for_each(|effect| line(&format!("  - {effect}")));
            difference
                .new
                .iter()
                .for_each(|effect| line(&format!("  + {effect}")));
        }
        if !plan.changed.is_empty() {
            line("Files that change:");
            plan.changed
                .iter()
                .take(FILES)
                .for_each(|file| line(&format!("  {file}")));
            let more = plan.changed.len().saturating_sub(FILES);
            if more > 0 {
                line(&format!("  … and {more} more"));
            }
        }
    }
    let remarks = package.remarks.iter().chain(&survey.notices);
    remarks.for_each(|remark| line(&format!("note: {remark}")));
    text.push('\n');
    text
}
