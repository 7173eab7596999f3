//! The agent's notes on a workspace: printed, edited and removed by hand.

use std::path::Path;
use std::process::Command;

use caliban_context::{NoteStore, NotesError, TopicName, Topics};

use crate::console::{Console, note};
use crate::exit::Failure;

pub(super) fn show(
    directory: &Path,
    topic: Option<&str>,
    console: &mut Console,
) -> Result<(), Failure> {
    let store = NoteStore::new(directory);
    let text = match topic {
        None => store.index_text()?.ok_or_else(|| {
            Failure::NoInput(format!("there are no notes in `{}`", directory.display()))
        })?,
        Some(topic) => {
            let topic = store.read(&named(topic)?)?;
            format!("{}\n\n{}\n", topic.description(), topic.body().trim())
        }
    };
    console.write(&text)
}

pub(super) fn remove(directory: &Path, topic: &str, console: &mut Console) -> Result<(), Failure> {
    let name = named(topic)?;
    if !NoteStore::new(directory).remove(&name)? {
        return Err(NotesError::Unknown(name).into());
    }
    console.write(&format!("removed `{}`\n", name.as_str()))
}

pub(super) fn rebuild(directory: &Path, console: &mut Console) -> Result<(), Failure> {
    let count = renewed(&NoteStore::new(directory))?.topics.len();
    console.write(&format!("the index has {count} note(s)\n"))
}

/// Hands the file of a note to an editor. What comes out of it must still be a note.
pub(super) fn edit(
    directory: &Path,
    topic: Option<&str>,
    editor: Option<&str>,
    console: &mut Console,
) -> Result<(), Failure> {
    let store = NoteStore::new(directory);
    let name = topic.map(named).transpose()?;
    let path = match &name {
        Some(name) => {
            store.read(name)?;
            store.path(name)
        }
        None => store.index_path(),
    };
    if !path.exists() {
        let path = path.display();
        return Err(Failure::NoInput(format!("there is no `{path}` to edit")));
    }
    let editor = editor.ok_or_else(|| {
        let path = path.display();
        let message = format!("set `VISUAL` or `EDITOR` to a program that edits `{path}`");
        Failure::Config(message)
    })?;
    // As elsewhere, it may be a program with arguments; the path is never read by the shell.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("exec {editor} \"$1\""), "sh"])
        .arg(&path)
        .status();
    let status = status.map_err(|error| Failure::Runtime(format!("`{editor}`: {error}")))?;
    if !status.success() {
        return Err(Failure::Runtime(format!("`{editor}` failed: {status}")));
    }
    if let Some(name) = &name {
        store.read(name)?;
    }
    let count = renewed(&store)?.topics.len();
    console.write(&format!("the index has {count} note(s)\n"))
}

/// Brings the index up to date; files that are no notes are warnings.
fn renewed(store: &NoteStore) -> Result<Topics, Failure> {
    let topics = store.rebuild_index()?;
    for notice in &topics.notices {
        note(&format!("warning: {notice}"));
    }
    Ok(topics)
}

fn named(topic: &str) -> Result<TopicName, Failure> {
    let topic = topic.strip_suffix(".md").unwrap_or(topic);
    topic
        .parse()
        .map_err(|error| Failure::Usage(format!("`{topic}` is no topic: {error}")))
}

impl From<NotesError> for Failure {
    fn from(error: NotesError) -> Self {
        match &error {
            NotesError::Unknown(_) => Self::NoInput(format!(
                "{error}; `caliban memory show` prints the index of those there are"
            )),
            NotesError::Invalid(_)
            | NotesError::Unusable { .. }
            | NotesError::Full
            | NotesError::Write { .. } => Self::Runtime(error.to_string()),
        }
    }
}
