//! `caliban sessions`: what is kept of earlier conversations.

use std::fmt::Write as _;

use caliban_harness::{Configuration, forget_checkpoints, session_age};
use caliban_sessions::{SessionState, Store, Summary, Transcript, turns};
use jiff::Timestamp;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use crate::args::{SessionExport, SessionsCommand};
use crate::console::{Console, note};
use crate::exit::Failure;

pub(crate) fn run(
    command: &SessionsCommand,
    store: &Store,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    match command {
        SessionsCommand::List { filter, json } => list(store, filter.as_deref(), *json, console),
        SessionsCommand::Show { session } => {
            let state = load(store, session)?;
            console.write(&Transcript::of(&state).markdown())
        }
        SessionsCommand::Export { session, format } => {
            let state = load(store, session)?;
            console.write(&match format {
                SessionExport::Markdown => Transcript::of(&state).markdown(),
                SessionExport::Json => pretty(&document(&state))?,
                SessionExport::Jsonl => lines(&state)?,
            })
        }
        SessionsCommand::Rm { sessions } => {
            for session in sessions {
                let name = store.find(session)?;
                store.remove(&name)?;
                forget_checkpoints(configuration, std::slice::from_ref(&name))?;
                console.write(&format!("removed {}\n", name.as_str()))?;
            }
            Ok(())
        }
        SessionsCommand::Prune { days } => {
            let age = match days {
                Some(days) => Some(jiff::SignedDuration::from_hours(i64::from(*days) * 24)),
                None => session_age(configuration)?,
            };
            let Some(age) = age else {
                return console.write(
                    "nothing to remove: `CALIBAN_CLEANUP_PERIOD_DAYS` keeps sessions for ever; \
                     `--days N` removes older ones\n",
                );
            };
            let pruned = store.prune(age, Timestamp::now())?;
            forget_checkpoints(configuration, &pruned.removed)?;
            for warning in &pruned.warnings {
                note(&format!("warning: {warning}"));
            }
            for name in &pruned.removed {
                console.write(&format!("removed {}\n", name.as_str()))?;
            }
            if pruned.removed.is_empty() {
                console.write("nothing to remove\n")?;
            }
            Ok(())
        }
    }
}

fn load(store: &Store, session: &str) -> Result<SessionState, Failure> {
    let name = store.find(session)?;
    let (state, warnings) = store.load(&name)?;
    for warning in warnings {
        note(&format!("warning: {warning}"));
    }
    Ok(state)
}

fn list(
    store: &Store,
    filter: Option<&str>,
    json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let listing = store.list()?;
    for warning in &listing.warnings {
        note(&format!("warning: {warning}"));
    }
    let wanted: Vec<&Summary> = listing
        .summaries
        .iter()
        .filter(|summary| filter.is_none_or(|text| summary.name.as_str().contains(text)))
        .collect();
    if json {
        let rows: Vec<Value> = wanted.iter().map(|summary| row(summary)).collect();
        return console.write(&pretty(&json!(rows))?);
    }
    if wanted.is_empty() {
        return console.write("no sessions\n");
    }
    let width = wanted
        .iter()
        .map(|summary| summary.name.as_str().len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for summary in wanted {
        let _ = writeln!(
            text,
            "{:width$}  {:>10}  {:>9} tokens  {}  {}",
            summary.name.as_str(),
            turns(summary.turns),
            summary.usage.total_input() + summary.usage.output,
            summary.updated_at.strftime("%Y-%m-%d %H:%M"),
            summary
                .title
                .as_deref()
                .unwrap_or_default()
                .lines()
                .next()
                .unwrap_or_default(),
        );
    }
    console.write(&text)
}

fn row(summary: &Summary) -> Value {
    json!({
        "name": summary.name.as_str(),
        "session_id": summary.session_id,
        "parent": summary.parent,
        "title": summary.title,
        "provider": summary.provider,
        "model": summary.model,
        "cwd": summary.cwd,
        "turns": summary.turns,
        "total_tokens": summary.usage.total_input() + summary.usage.output,
        "total_cost_usd": summary.cost.to_f64(),
        "created_at": summary.created_at.to_string(),
        "updated_at": summary.updated_at.to_string(),
    })
}

fn document(state: &SessionState) -> Value {
    json!({
        "name": state.name.as_str(),
        "session_id": state.session_id,
        "provider": state.provider,
        "model": state.model,
        "cwd": state.cwd,
        "created_at": state.created_at.to_string(),
        "updated_at": state.updated_at.to_string(),
        "turns": state.turns,
        "total_usage": state.usage,
        "total_cost_usd": state.cost.to_f64(),
        "messages": state.messages,
        "todos": state.todos,
        "plan_mode": state.plan_mode,
    })
}

fn lines(state: &SessionState) -> Result<String, Failure> {
    let mut text = String::new();
    for message in &state.messages {
        let line =
            serde_json::to_string(message).map_err(|error| Failure::Runtime(error.to_string()))?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

pub(crate) fn pretty(value: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Failure::Runtime(error.to_string()))
}
