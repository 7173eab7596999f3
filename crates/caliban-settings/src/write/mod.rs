//! Edits of settings files that lose nothing: comments and order stay, concurrent writers take
//! turns, and a crash leaves the old file or the new one.

mod array;
mod error;
mod file;
mod lock;
pub(crate) mod rules;
mod servers;
mod setting;
pub(crate) mod values;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Map;
use toml_edit::{DocumentMut, InlineTable, Item, Key, Table, Value};

pub use crate::types::{RuleAction, RuleSpec};
pub(crate) use array::push;
pub use error::{ShapeError, WriteError};
pub(crate) use file::{parse, read_bounded};
pub use rules::{Appended, RuleRef};
pub use servers::{Existing, Put, has_server};
pub use setting::{Edited, SettingEdit, SettingError, read_value, written_value};

use file::Place;
use lock::Lock;

/// How long a writer waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// What to do about a JSON file beside a TOML file that does not exist yet. Once the TOML file
/// exists, the JSON file is no longer read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonSibling {
    /// Its settings would silently be lost: do not write.
    Refuse,
    /// The change contains its settings.
    Supersede,
}

/// Changes settings files. Whoever changes the same file, in whichever process, takes turns; what
/// they take turns by lies in a private directory, never beside the file, which may be a
/// repository's.
#[derive(Debug, Clone)]
pub struct Writer {
    locks: PathBuf,
}

impl Writer {
    /// Writes under locks in this directory, which is created where it is missing. All who write
    /// the same files must name the same one.
    pub fn new(locks: impl Into<PathBuf>) -> Self {
        Self {
            locks: locks.into(),
        }
    }

    /// Changes a settings file in place. The change sees what is on disk at that moment, no other
    /// writer comes between, and when it fails, or changes nothing, nothing is written.
    pub fn edit<T, E>(
        &self,
        path: &Path,
        change: impl FnOnce(&mut DocumentMut) -> Result<T, E>,
    ) -> Result<T, WriteError>
    where
        E: Error + Send + Sync + 'static,
    {
        self.edit_beside(path, JsonSibling::Refuse, change)
    }

    /// [`Self::edit`], saying what a JSON file of the same scope means.
    pub fn edit_beside<T, E>(
        &self,
        path: &Path,
        sibling: JsonSibling,
        change: impl FnOnce(&mut DocumentMut) -> Result<T, E>,
    ) -> Result<T, WriteError>
    where
        E: Error + Send + Sync + 'static,
    {
        self.edit_within(path, sibling, TURN, change)
    }

    fn edit_within<T, E>(
        &self,
        path: &Path,
        sibling: JsonSibling,
        turn: Duration,
        change: impl FnOnce(&mut DocumentMut) -> Result<T, E>,
    ) -> Result<T, WriteError>
    where
        E: Error + Send + Sync + 'static,
    {
        let place = Place::resolve(path)?;
        place.refuse_json(path, sibling)?;
        place.create_directory()?;
        let _turn = Lock::take(&self.locks, &place, turn)?;
        let (answer, draft) = draft(&place, path, change)?;
        if let Draft::Changed(text) = draft {
            place.remove_abandoned();
            place.replace(&text)?;
        }
        Ok(answer)
    }

    /// As [`Self::edit`] for a settings file of another program, which is a JSON object.
    pub fn edit_json<T, E>(
        &self,
        path: &Path,
        change: impl FnOnce(&mut Map<String, serde_json::Value>) -> Result<T, E>,
    ) -> Result<T, WriteError>
    where
        E: Error + Send + Sync + 'static,
    {
        let failed = |source: Box<dyn Error + Send + Sync>| WriteError::Edit {
            path: path.to_owned(),
            source,
        };
        let place = Place::resolve(path)?;
        place.create_directory()?;
        let _turn = Lock::take(&self.locks, &place, TURN)?;
        let mut document: Map<String, serde_json::Value> = match place.read()? {
            None => Map::new(),
            Some(text) => serde_json::from_str(&text).map_err(|error| failed(Box::new(error)))?,
        };
        let before = document.clone();
        let answer = change(&mut document).map_err(|error| failed(Box::new(error)))?;
        if document != before {
            place.remove_abandoned();
            place.replace(&format!("{:#}\n", serde_json::Value::Object(document)))?;
        }
        Ok(answer)
    }

    /// Sets one key, given as TOML writes dotted keys (`permissions.default_mode`,
    /// `mcp_servers."my server".disabled`). Missing tables are created.
    pub fn set_key(
        &self,
        path: &Path,
        dotted: &str,
        value: impl Into<Value>,
    ) -> Result<(), WriteError> {
        self.edit(path, |document| set(document, dotted, value.into()))
    }

    /// Makes a rule hold in this file's ordered list. See [`Appended`] for what that means when
    /// the pattern is already there.
    pub fn append_rule(&self, path: &Path, rule: &RuleSpec) -> Result<Appended, WriteError> {
        self.edit(path, |document| rules::append(document, rule))
    }

    /// Removes rules from this file's list and says how many there were.
    pub fn remove_rule(&self, path: &Path, which: &RuleRef) -> Result<usize, WriteError> {
        self.edit(path, |document| rules::remove(document, which))
    }

    /// Writes `[mcp_servers.NAME]`. What stands around it stays as it is.
    pub fn put_server(
        &self,
        path: &Path,
        name: &str,
        server: &Map<String, serde_json::Value>,
        existing: Existing,
    ) -> Result<Put, WriteError> {
        self.edit(path, |document| {
            servers::put(document, name, server, existing)
        })
    }

    /// Removes `[mcp_servers.NAME]`; whether it was there.
    pub fn remove_server(&self, path: &Path, name: &str) -> Result<bool, WriteError> {
        self.edit(path, |document| servers::remove(document, name))
    }

    /// Puts a line before everything else in a file of at most `limit` bytes.
    pub(crate) fn prepend(&self, path: &Path, line: &str, limit: u64) -> Result<(), WriteError> {
        let place = Place::resolve(path)?;
        let _turn = Lock::take(&self.locks, &place, TURN)?;
        let text = read_bounded(path, limit)?;
        place.replace(&format!("{line}\n{text}"))
    }
}

/// What [`Writer::edit_beside`] would leave in the file, without touching anything.
pub fn preview<T, E>(
    path: &Path,
    sibling: JsonSibling,
    change: impl FnOnce(&mut DocumentMut) -> Result<T, E>,
) -> Result<(T, Draft), WriteError>
where
    E: Error + Send + Sync + 'static,
{
    let place = Place::resolve(path)?;
    place.refuse_json(path, sibling)?;
    draft(&place, path, change)
}

/// The text a change leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Draft {
    Changed(String),
    /// The file already says so.
    Unchanged(String),
}

impl Draft {
    pub fn text(&self) -> &str {
        match self {
            Self::Changed(text) | Self::Unchanged(text) => text,
        }
    }
}

fn draft<T, E>(
    place: &Place,
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<T, E>,
) -> Result<(T, Draft), WriteError>
where
    E: Error + Send + Sync + 'static,
{
    let before = place.read()?.unwrap_or_default();
    let mut document = parse(path, &before)?;
    // The encoder writes plain newlines; what it makes of the untouched document is the measure.
    let untouched = document.to_string();
    let answer = change(&mut document).map_err(|source| WriteError::Edit {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let after = document.to_string();
    if after == untouched {
        return Ok((answer, Draft::Unchanged(before)));
    }
    // A document can be built that is not TOML; such a file would stop every later run.
    parse(path, &after)?;
    let after = if before.contains("\r\n") {
        after.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        after
    };
    Ok((answer, Draft::Changed(after)))
}

fn set(document: &mut DocumentMut, dotted: &str, value: Value) -> Result<(), ShapeError> {
    let bad = || ShapeError::BadKey(dotted.to_owned());
    let mut keys = Key::parse(dotted).map_err(|_| bad())?;
    let last = keys.pop().ok_or_else(bad)?;
    let mut item = document.as_item_mut();
    let mut walked = String::new();
    for key in &keys {
        // An inline table can only hold inline tables.
        let missing = match item {
            Item::Value(_) => Item::Value(InlineTable::new().into()),
            Item::None | Item::Table(_) | Item::ArrayOfTables(_) => {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            }
        };
        let table = item
            .as_table_like_mut()
            .ok_or_else(|| ShapeError::NotATable(walked.clone()))?;
        if !table.contains_key(key.get()) {
            table.insert(key.get(), missing);
        }
        item = table.get_mut(key.get()).ok_or_else(bad)?;
        walked.push_str(if walked.is_empty() { "" } else { "." });
        walked.push_str(&key.display_repr());
    }
    let table = item
        .as_table_like_mut()
        .ok_or(ShapeError::NotATable(walked))?;
    values::put(table, last.get(), Item::Value(value));
    Ok(())
}

#[cfg(test)]
mod tests;
