//! Checks a plugin, or a marketplace with all the plugins that lie beside it.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use caliban_harness::plugins::{Manager, survey};
use caliban_plugins::{EntrySource, INDEX_FILES, MANIFESTS, Marketplace, Naming, Package, Survey};
use serde_json::{Value, json};

use super::show::details;
use crate::console::Console;
use crate::exit::Failure;

/// What was found out about one thing.
struct Finding {
    what: String,
    error: Option<String>,
    remarks: Vec<String>,
    details: Value,
}

pub(super) fn run(
    path: &Path,
    manager: &Manager<'_>,
    is_strict: bool,
    is_json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let path = &directory(path);
    let is_plugin = MANIFESTS.iter().any(|(name, _)| path.join(name).exists());
    let index = INDEX_FILES
        .iter()
        .map(|name| path.join(name))
        .find(|file| file.is_file());
    let mut findings = Vec::new();
    if let Some(index) = index {
        market(path, &index, manager, &mut findings);
    }
    if is_plugin || findings.is_empty() {
        findings.push(plugin(path, path.display().to_string()));
    }
    if is_json {
        let findings: Vec<Value> = findings
            .iter()
            .map(|it| json!({"what": it.what, "error": it.error, "remarks": it.remarks, "details": it.details}))
            .collect();
        console.write(&format!("{:#}\n", json!({ "findings": findings })))?;
    } else {
        for finding in &findings {
            let verdict = match &finding.error {
                Some(error) => format!("cannot be used: {error}"),
                None => "can be used".to_owned(),
            };
            console.write(&format!("{}: {verdict}\n", finding.what))?;
            for remark in &finding.remarks {
                console.write(&format!("  note: {remark}\n"))?;
            }
        }
    }
    let is_bad = |it: &Finding| it.error.is_some() || (is_strict && !it.remarks.is_empty());
    if findings.iter().any(is_bad) {
        return Err(Failure::Silent(1));
    }
    Ok(())
}

/// Where the plugin or marketplace is whose manifest or list is named.
fn directory(path: &Path) -> PathBuf {
    let files = MANIFESTS.iter().map(|(name, _)| *name).chain(INDEX_FILES);
    let named = files.into_iter().find(|name| path.ends_with(name));
    match named {
        Some(name) if path.is_file() => {
            let above = path.ancestors().nth(Path::new(name).components().count());
            above.unwrap_or(path).to_owned()
        }
        Some(_) | None => path.to_owned(),
    }
}

fn market(root: &Path, index: &Path, manager: &Manager<'_>, findings: &mut Vec<Finding>) {
    let what = index.display().to_string();
    let text = std::fs::read_to_string(index).map_err(|error| error.to_string());
    let list = text.and_then(|text| Marketplace::parse(&text).map_err(|error| error.to_string()));
    let list = match list {
        Ok(list) => list,
        Err(error) => {
            findings.push(Finding {
                what,
                error: Some(error),
                remarks: Vec::new(),
                details: Value::Null,
            });
            return;
        }
    };
    let mut remarks = list.remarks.clone();
    let mut beside = Vec::new();
    for entry in &list.entries {
        match &entry.source {
            Err(reason) => remarks.push(format!("`{}` cannot be installed: {reason}", entry.name)),
            Ok(EntrySource::Path { path }) => {
                let read = manager.check_entry(entry, path, root);
                beside.push(finding(format!("{} ({path})", entry.name), read));
            }
            Ok(_) => {}
        }
    }
    findings.push(Finding {
        what,
        error: None,
        remarks,
        details: json!({"name": list.name, "plugins": list.entries.len()}),
    });
    findings.extend(beside);
}

fn plugin(path: &Path, what: String) -> Finding {
    let read = Package::read(path, Naming::Free).map(|package| {
        let survey = survey(&package);
        (package, survey)
    });
    finding(what, read)
}

fn finding(what: String, read: Result<(Package, Survey), impl Display>) -> Finding {
    match read {
        Ok((package, survey)) => Finding {
            what,
            error: None,
            remarks: package
                .remarks
                .iter()
                .chain(&survey.notices)
                .cloned()
                .collect(),
            details: details(&package, &survey),
        },
        Err(error) => Finding {
            what,
            error: Some(error.to_string()),
            remarks: Vec::new(),
            details: Value::Null,
        },
    }
}
