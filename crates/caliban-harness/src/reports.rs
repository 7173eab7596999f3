//! What commands have to say, as text.

use std::fmt::Write as _;

use caliban_context::{Commands, tiers};
use caliban_hooks::{ExternalHooks, LastRun};
use caliban_model::Reasoning;
use caliban_permissions::{Latch, Origin};
use caliban_session::{Engine, McpServer};
use caliban_slash::{Asks, BUILT_IN, Category, Entry, Place};

use crate::gate::Gate;
use crate::inventory::{Inventory, Listed};
use crate::session::Session;
use crate::typeable::Typeable;

/// The most models that are listed.
const MODELS: usize = 200;

/// Left column and right column, lined up.
pub(crate) fn columns(rows: impl IntoIterator<Item = (String, String)>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let width = rows.iter().map(|(left, _)| left.chars().count()).max();
    let width = width.unwrap_or_default();
    let line = |(left, right): &(String, String)| format!("{left:width$}  {right}");
    let lines: Vec<String> = rows.iter().map(line).collect();
    lines.join("\n")
}

/// The widest usage that what it does still stands beside.
const WIDEST_USAGE: usize = 36;

/// What commands do stands beside them, or below where they take the whole line.
fn usages(rows: &[(String, String)]) -> String {
    let widths = rows.iter().map(|(usage, _)| usage.chars().count());
    let width = widths.filter(|width| *width <= WIDEST_USAGE).max();
    let width = width.unwrap_or_default();
    let line = |(usage, does): &(String, String)| {
        if usage.chars().count() > width {
            format!("{usage}\n{:width$}  {does}", "")
        } else {
            format!("{usage:width$}  {does}")
        }
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    lines.join("\n")
}

pub(crate) fn help(own: &Commands, prompts: &[Typeable]) -> String {
    let mut text = String::new();
    for category in Category::ALL {
        let entries = BUILT_IN
            .iter()
            .filter(|entry| entry.category == category && entry.works_anywhere());
        let rows: Vec<_> = entries
            .map(|entry: &Entry| {
                let asks = match entry.asks {
                    Asks::Nobody => "",
                    Asks::Model => "; asks a model",
                };
                let does = format!("{}{asks}", entry.summary);
                (format!("  {}", entry.usage()), does)
            })
            .collect();
        if !rows.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(text, "{}\n{}\n\n", category.title(), usages(&rows));
        }
    }
    let on_screen: Vec<String> = BUILT_IN
        .iter()
        .filter(|entry| entry.place() == Place::Screen)
        .map(Entry::usage)
        .collect();
    let _ = write!(text, "On a terminal also\n  {}\n\n", on_screen.join(", "));
    let rows: Vec<_> = own
        .iter()
        .map(|command| {
            let hint = command.argument_hint().unwrap_or_default();
            let usage = format!("  /{} {hint}", command.name());
            (
                usage.trim_end().to_owned(),
                command.description().to_owned(),
            )
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(text, "Your own\n{}\n\n", usages(&rows));
    }
    let rows: Vec<_> = prompts
        .iter()
        .map(|prompt| {
            let usage = format!("  /{} {}", prompt.name, prompt.hint);
            (usage.trim_end().to_owned(), prompt.about.clone())
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(text, "Prompts of MCP servers\n{}\n", usages(&rows));
    }
    text.trim_end().to_owned()
}

pub(crate) fn reasoning(reasoning: Reasoning) -> String {
    match reasoning {
        Reasoning::Auto => "auto".to_owned(),
        Reasoning::Off => "off".to_owned(),
        Reasoning::Effort(effort) => effort.as_str().to_owned(),
        Reasoning::Budget(tokens) => format!("{tokens} tokens"),
    }
}

pub(crate) fn status(session: &Session) -> String {
    let facts = session.facts();
    let key = session.agent.provider.id();
    let thinking = session.reasoning();
    let rows = [
        ("version", facts.program_version),
        ("session", facts.session_id),
        ("directory", facts.cwd),
        ("provider", key.to_owned()),
        ("model", facts.model),
        ("effort", reasoning(thinking)),
        ("mode", facts.permission_mode),
        (
            "workspace",
            if facts.trusted {
                "trusted"
            } else {
                "not trusted"
            }
            .to_owned(),
        ),
        (
            "settings",
            match facts.setting_sources.as_slice() {
                [] => "built-in defaults".to_owned(),
                sources => sources.join(", "),
            },
        ),
        ("messages", facts.messages.to_string()),
        ("servers", facts.servers.len().to_string()),
        ("skills", facts.skills.len().to_string()),
    ];
    let agents = session
        .fleet
        .as_ref()
        .map(|fleet| ("agents", fleet.status()));
    let rows = rows.into_iter().chain(agents);
    columns(rows.map(|(name, value)| (name.to_owned(), value)))
}

/// The agent profiles, each with what it has of its own and where it is written.
pub(crate) fn profiles(inventory: &Inventory) -> String {
    if inventory.profiles.is_empty() {
        return crate::profile_report::NONE.to_owned();
    }
    let rows = inventory.profiles.iter().flat_map(|profile| {
        let about = format!("{} ({})", profile.about, profile.origin);
        let place = profile.path.display().to_string();
        let more = [profile.details.clone(), place];
        let more = more.into_iter().filter(|text| !text.is_empty());
        [(profile.name.clone(), about)]
            .into_iter()
            .chain(more.map(|text| (String::new(), text)))
    });
    columns(rows)
}

pub(crate) fn permissions(gate: &Gate, latch: Latch) -> String {
    let latch = match latch {
        Latch::Given => "on",
        Latch::Absent => "off",
    };
    let mut text = format!("mode: {}\nbypass latch: {latch}\n", gate.regime().as_str());
    let book = gate.book();
    let rules = book.rules().iter();
    if rules.clone().all(|rule| rule.origin == Origin::BuiltIn) {
        text.push_str("no rules but the built-in ones\n");
    }
    text.push('\n');
    text.push_str(&columns(rules.map(|rule| {
        let origin = rule.origin.as_str().to_owned();
        (format!("{} {}", rule.action, rule.pattern), origin)
    })));
    text
}

pub(crate) fn listed(things: &[Listed], none: &str) -> String {
    if things.is_empty() {
        return none.to_owned();
    }
    let row = |thing: &Listed| {
        (
            thing.name.clone(),
            format!("{} ({})", thing.about, thing.origin),
        )
    };
    columns(things.iter().map(row))
}

/// How many handlers each event has, which, how often each fired and what came of it last.
pub(crate) fn hooks(hooks: Option<&ExternalHooks>) -> String {
    let counts = hooks.map(ExternalHooks::counts).unwrap_or_default();
    let (Some(hooks), false) = (hooks, counts.is_empty()) else {
        return "no hooks".to_owned();
    };
    let rows = counts.into_iter().map(|(event, count)| {
        let handlers = match count {
            1 => "1 handler".to_owned(),
            count => format!("{count} handlers"),
        };
        (event.to_owned(), handlers)
    });
    let handlers = hooks.listed().into_iter().zip(hooks.report());
    let handlers = handlers.map(|(line, report)| match &report.last {
        None => line,
        Some(last) => format!("{line}\n{:<19}{}", "", fired(report.runs, last)),
    });
    let handlers: Vec<String> = handlers.collect();
    format!("{}\n\n{}", columns(rows), handlers.join("\n"))
}

/// How often a handler fired, and what came of it last.
pub(crate) fn fired(runs: u64, last: &LastRun) -> String {
    let reason = last.reason.as_deref().unwrap_or_default();
    let reason = reason.lines().next().unwrap_or_default();
    let colon = if reason.is_empty() { "" } else { ": " };
    let times = match runs {
        1 => "once".to_owned(),
        runs => format!("{runs} times"),
    };
    let end = if last.failed { "failed" } else { last.decision };
    format!(
        "ran {times}, last {end} in {} ms{colon}{reason}",
        last.duration_ms
    )
}

/// The models there are, with a mark at the one that answers.
pub(crate) fn models(
    headline: &str,
    current: &str,
    mut names: Vec<String>,
    source: &str,
) -> String {
    // A provider need not list what it answers to.
    if !names.iter().any(|name| name == current) {
        names.insert(0, current.to_owned());
    }
    let more = names.len().saturating_sub(MODELS);
    let mut lines = vec![headline.to_owned(), String::new(), source.to_owned()];
    lines.extend(names.into_iter().take(MODELS).map(|name| {
        let mark = if name == current { '*' } else { ' ' };
        format!("{mark} {name}")
    }));
    if more > 0 {
        lines.push(format!(
            "  … and {more} more; `caliban models` lists them all"
        ));
    }
    lines.join("\n")
}

/// The lines of a report that have a text in them, whatever its case; all of them without one.
pub(crate) fn with(report: &str, text: Option<&str>) -> Result<String, String> {
    let Some(text) = text else {
        return Ok(report.to_owned());
    };
    let wanted = text.to_lowercase();
    let has = |line: &&str| line.to_lowercase().contains(&wanted);
    let lines: Vec<&str> = report.lines().filter(has).collect();
    if lines.is_empty() {
        return Err(format!("no setting that counts has `{text}` in it"));
    }
    Ok(lines.join("\n"))
}

pub(crate) fn styles(inventory: &Inventory) -> String {
    let current = inventory.style().unwrap_or_else(|| "none".to_owned());
    let lock = inventory.style_lock.as_ref();
    let lock = lock.map_or_else(String::new, |plugin| {
        format!(" (locked by plugin: {plugin})")
    });
    format!(
        "output style: {current}{lock}\n\n{}",
        listed(&inventory.styles, "there are no others")
    )
}

pub(crate) fn servers(servers: &[McpServer]) -> String {
    if servers.is_empty() {
        return "no MCP servers".to_owned();
    }
    columns(
        servers
            .iter()
            .map(|server| (server.name.clone(), server.status.clone())),
    )
}

pub(crate) fn memory(inventory: &Inventory) -> String {
    let files = inventory.instructions.iter();
    let mut text = tiers(files.map(|file| (file.tag, file.path.as_path(), file.tokens)));
    text.truncate(text.trim_end().len());
    if let Some(notes) = &inventory.notes {
        let topics = notes.topics();
        let _ = write!(text, "\n\nnotes in `{}`\n", notes.directory().display());
        if topics.topics.is_empty() {
            text.push_str("  none");
        }
        let rows = topics.topics.iter().map(|(name, topic)| {
            (
                format!("  {}", name.as_str()),
                topic.description().to_owned(),
            )
        });
        text.push_str(&columns(rows));
    }
    text
}
