//! Marketplaces that are known, and what they list.

use caliban_harness::plugins::Manager;
use serde_json::{Value, json};

use crate::console::{Console, note};
use crate::exit::Failure;

pub(super) async fn add(
    manager: &Manager<'_>,
    source: &str,
    console: &mut Console,
) -> Result<(), Failure> {
    let (name, list) = manager.add_market(source).await?;
    for remark in &list.remarks {
        note(&format!("warning: {remark}"));
    }
    console.write(&format!(
        "added the marketplace `{name}` with {}; `caliban plugin search` lists them\n",
        plugins(list.entries.len())
    ))
}

pub(super) fn list(
    manager: &Manager<'_>,
    is_json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let markets = manager.markets()?;
    if is_json {
        let markets: Vec<Value> = markets
            .into_iter()
            .map(|(name, (source, updated))| {
                json!({"name": name, "source": source.to_string(), "updated_at": updated})
            })
            .collect();
        return console.write(&format!("{:#}\n", json!({ "marketplaces": markets })));
    }
    if markets.is_empty() {
        return console
            .write("no marketplaces; `caliban plugin marketplace add SOURCE` adds one\n");
    }
    let lines: Vec<String> = markets
        .into_iter()
        .map(|(name, (source, _))| format!("{name}  {source}\n"))
        .collect();
    console.write(&lines.concat())
}

pub(super) async fn update(
    manager: &Manager<'_>,
    name: Option<&str>,
    console: &mut Console,
) -> Result<(), Failure> {
    let names = if let Some(name) = name {
        vec![name.to_owned()]
    } else {
        let markets = manager.markets()?.into_iter();
        let added = markets.filter(|(_, (_, updated))| updated.is_some());
        added.map(|(name, _)| name).collect()
    };
    if names.is_empty() {
        return console
            .write("no marketplaces; `caliban plugin marketplace add SOURCE` adds one\n");
    }
    let mut failed = None;
    for name in names {
        // One that cannot be reached holds up no other.
        match manager.update_market(&name).await {
            Ok(list) => {
                let entries = plugins(list.entries.len());
                console.write(&format!("`{name}` lists {entries}\n"))?;
            }
            Err(error) => match failed {
                None => failed = Some(error),
                Some(_) => note(&error.to_string()),
            },
        }
    }
    match failed {
        None => Ok(()),
        Some(error) => Err(error.into()),
    }
}

pub(super) fn search(
    manager: &Manager<'_>,
    word: &str,
    is_json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let (hits, unread) = manager.search(word)?;
    for problem in unread {
        note(&format!("warning: {problem}"));
    }
    if is_json {
        let hits: Vec<Value> = hits
            .into_iter()
            .map(|hit| {
                json!({
                    "name": hit.name, "marketplace": hit.marketplace, "version": hit.version,
                    "description": hit.description, "obstacle": hit.obstacle,
                })
            })
            .collect();
        return console.write(&format!("{:#}\n", json!({ "plugins": hits })));
    }
    if hits.is_empty() {
        return console.write("nothing found\n");
    }
    let lines: Vec<String> = hits
        .into_iter()
        .map(|hit| {
            let version = hit.version.map_or_else(String::new, |it| format!(" {it}"));
            let about = hit.description.unwrap_or_default();
            let obstacle = hit
                .obstacle
                .map_or_else(String::new, |it| format!(" (cannot be installed: {it})"));
            format!(
                "{}@{}{version}  {about}{obstacle}\n",
                hit.name, hit.marketplace
            )
        })
        .collect();
    console.write(&lines.concat())
}

fn plugins(count: usize) -> String {
    match count {
        1 => "1 plugin".to_owned(),
        _ => format!("{count} plugins"),
    }
}
