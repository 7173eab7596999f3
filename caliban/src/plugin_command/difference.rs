//! What is different: files that are not those that were agreed to, and what an update would
//! change.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use caliban_harness::Configuration;
use caliban_harness::plugins::{Audience, Checked, Manager, Plan};
use serde_json::{Value, json};
use similar::TextDiff;

use super::Form;
use crate::console::Console;
use crate::exit::Failure;

/// The most files whose texts are compared, and the longest of them, in bytes.
const FILES: usize = 50;
const LONGEST: u64 = 256 * 1024;

pub(super) fn verify(
    name: Option<&str>,
    is_json: bool,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let own = Manager::new(configuration).verify(name);
    let shared = Manager::of(configuration, Audience::Project).verify(name);
    let checked: Vec<_> = match (own, shared) {
        (Ok(own), Ok(shared)) => own.into_iter().chain(shared).collect(),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) if name.is_some() => one.into_iter().collect(),
        (Err(error), _) | (_, Err(error)) => return Err(error.into()),
    };
    let said = |checked: &Checked| match checked {
        Checked::Same => "as agreed to".to_owned(),
        Checked::Changed(files) if files.is_empty() => "files are others".to_owned(),
        Checked::Changed(files) => format!("files are others: {}", files.join(", ")),
        Checked::Gone(reason) => format!("cannot be read: {reason}"),
        Checked::Unrecorded => "nobody agreed to it".to_owned(),
    };
    if is_json {
        let plugins: Vec<Value> = checked
            .iter()
            .map(|(name, state)| {
                let files = match state {
                    Checked::Changed(files) => files.as_slice(),
                    Checked::Same | Checked::Gone(_) | Checked::Unrecorded => &[],
                };
                json!({"name": name.as_str(), "ok": *state == Checked::Same,
                       "state": said(state), "files": files})
            })
            .collect();
        console.write(&format!("{:#}\n", json!({ "plugins": plugins })))?;
    } else if checked.is_empty() {
        console.write("nothing is installed\n")?;
    } else {
        let lines = checked
            .iter()
            .map(|(name, state)| format!("{name}  {}\n", said(state)));
        console.write(&lines.collect::<String>())?;
    }
    if checked.iter().all(|(_, state)| *state == Checked::Same) {
        Ok(())
    } else {
        Err(Failure::Silent(1))
    }
}

pub(super) async fn show(
    name: &str,
    form: Form,
    manager: &Manager<'_>,
    console: &mut Console,
) -> Result<(), Failure> {
    match (manager.plan_update(name).await?, form) {
        (None, Form::Text) => console.write(&format!("`{name}` is up to date\n")),
        (plan, Form::Json) => {
            let plans: Vec<Value> = plan.iter().map(super::install::plan_json).collect();
            console.write(&format!("{:#}\n", json!({ "changes": plans })))
        }
        (Some(plan), Form::Text) => {
            let text = super::install::described(&plan, None) + &texts(&plan, manager);
            console.write(&text)
        }
    }
}

/// The texts of files that change.
fn texts(plan: &Plan, manager: &Manager<'_>) -> String {
    let before = manager.directory(plan.package.name());
    let mut shown = String::new();
    for change in plan.changed.iter().take(FILES) {
        let Some((_, file)) = change.split_once(' ') else {
            continue;
        };
        let (Some(old), Some(new)) = (
            text(&before.join(file)),
            text(&plan.package.root.join(file)),
        ) else {
            let _ = writeln!(shown, "{change} (not compared)");
            continue;
        };
        let difference = TextDiff::from_lines(old.as_str(), new.as_str());
        let mut difference = difference.unified_diff();
        let difference = difference.header(&format!("a/{file}"), &format!("b/{file}"));
        for line in difference.to_string().lines() {
            // A text of somebody else's does not steer the terminal.
            let letters = line.chars().flat_map(|letter| {
                let is_harmful = letter.is_control() && letter != '\t';
                let spelled = is_harmful.then(|| letter.escape_unicode());
                let harmless = (!is_harmful).then_some(letter);
                spelled.into_iter().flatten().chain(harmless)
            });
            shown.extend(letters);
            shown.push('\n');
        }
    }
    let more = plan.changed.len().saturating_sub(FILES);
    if more > 0 {
        let _ = writeln!(shown, "… and {more} more files");
    }
    shown
}

/// A text that can be compared; what is not there is empty.
fn text(path: &Path) -> Option<String> {
    match fs::symlink_metadata(path) {
        Err(_) => Some(String::new()),
        Ok(metadata) if metadata.is_file() && metadata.len() <= LONGEST => {
            fs::read_to_string(path).ok()
        }
        Ok(_) => None,
    }
}
