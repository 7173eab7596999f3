//! `caliban memory`: what the model is told before every conversation, which files outside the
//! workspace may be part of it, and the agent's notes.

mod notes;

use std::fmt::Write as _;
use std::path::PathBuf;

use caliban_context::{AllowlistError, Approval, ImportAllowlist, Memory, load_memory, tiers};
use caliban_harness::{Configuration, RunOptions, context_options, context_places};
use serde_json::{Value, json};

use crate::args::MemoryCommand;
use crate::console::{Console, note};
use crate::exit::Failure;

pub(crate) fn run(
    command: &MemoryCommand,
    options: &RunOptions,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let places = context_places(configuration);
    let list = ImportAllowlist::new(&places.imports_allowlist);
    let memory = || {
        let options = context_options(options, configuration)?;
        Ok::<_, Failure>(load_memory(&places, &options))
    };
    match command {
        MemoryCommand::List { json: false } => {
            let memory = memory()?;
            for notice in &memory.notices {
                note(&format!("warning: {notice}"));
            }
            console.write(&table(&memory))
        }
        MemoryCommand::List { json: true } => {
            console.write(&format!("{:#}\n", document(&memory()?)))
        }
        MemoryCommand::Approve { paths } => approve(paths, &memory()?, &list, console),
        MemoryCommand::Revoke { path } => {
            // A file that is gone can still be taken off the list.
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            list.revoke(&path).map_err(|error| failed(&error))?;
            console.write(&format!("`{}` is not approved any more\n", path.display()))
        }
        MemoryCommand::Show { topic } => notes::show(&places.notes, topic.as_deref(), console),
        MemoryCommand::Edit { topic } => {
            let environment = configuration.environment();
            let mut names = ["VISUAL", "EDITOR"].iter();
            let editor = names.find_map(|name| environment.text(name));
            notes::edit(&places.notes, topic.as_deref(), editor.as_deref(), console)
        }
        MemoryCommand::Rm { topic } => notes::remove(&places.notes, topic, console),
        MemoryCommand::RebuildIndex => notes::rebuild(&places.notes, console),
    }
}

fn failed(error: &AllowlistError) -> Failure {
    Failure::Runtime(error.to_string())
}

/// Approves what the workspace wants to import: all of it, or these files.
fn approve(
    paths: &[PathBuf],
    memory: &Memory,
    list: &ImportAllowlist,
    console: &mut Console,
) -> Result<(), Failure> {
    let wanted = |path: &PathBuf| {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let found = memory.external.iter().find(|import| import.path == real);
        found.ok_or_else(|| {
            Failure::NoInput(format!(
                "no instruction file of this workspace imports `{}` from outside",
                path.display()
            ))
        })
    };
    let imports = if paths.is_empty() {
        let imports = memory.external.iter();
        imports
            .filter(|import| import.approval != Approval::Approved)
            .collect()
    } else {
        paths.iter().map(wanted).collect::<Result<Vec<_>, _>>()?
    };
    if imports.is_empty() {
        return console.write("nothing to approve\n");
    }
    for import in imports {
        list.approve(import).map_err(|error| failed(&error))?;
        console.write(&format!(
            "approved `{}` as it is now ({} bytes, wanted by `{}`)\n",
            import.path.display(),
            import.bytes,
            import.imported_by.display()
        ))?;
    }
    Ok(())
}

fn standing(approval: Approval) -> &'static str {
    match approval {
        Approval::Approved => "approved",
        Approval::Changed => "changed since it was approved",
        Approval::Refused => "refused",
        Approval::Unknown => "not approved",
    }
}

fn table(memory: &Memory) -> String {
    let files = memory.sections.iter();
    let mut text =
        tiers(files.map(|section| (section.tag, section.path.as_path(), section.tokens())));
    for import in &memory.external {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "outside: {} ({})",
            import.path.display(),
            standing(import.approval)
        );
    }
    text
}

fn document(memory: &Memory) -> Value {
    let sections: Vec<Value> = memory
        .sections
        .iter()
        .map(|section| {
            json!({
                "kind": section.tag.as_str(),
                "origin": section.origin.to_string(),
                "path": section.path,
                "tokens": section.tokens(),
                "truncated": section.truncated.is_some(),
            })
        })
        .collect();
    let imports: Vec<Value> = memory
        .external
        .iter()
        .map(|import| {
            json!({
                "path": import.path,
                "imported_by": import.imported_by,
                "bytes": import.bytes,
                "approved": import.approval == Approval::Approved,
            })
        })
        .collect();
    let notices = memory.notices.iter().map(ToString::to_string);
    json!({
        "sections": sections,
        "external_imports": imports,
        "warnings": notices.collect::<Vec<_>>(),
    })
}
