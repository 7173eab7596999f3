//! Values that remember where they were written, so that an error found after merging still
//! names its file and line.

use std::fmt::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use crate::scope::Scope;

/// What a document was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    File(PathBuf),
    /// JSON written on the command line.
    Overlay,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Overlay => f.write_str("--settings"),
        }
    }
}

/// One document as it was read.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) scope: Scope,
    pub(crate) origin: Origin,
    pub(crate) content: String,
}

/// A stretch of a document.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) text: Arc<Text>,
    pub(crate) span: Range<usize>,
}

impl Place {
    pub(crate) fn scope(&self) -> Scope {
        self.text.scope
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) place: Place,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Node>),
    Table(Table),
}

/// A table in the order it was written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(Vec<Entry>);

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.0.iter_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0
            .iter_mut()
            .find(|entry| entry.key == key)
            .map(|entry| &mut entry.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn entry_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.key == key)
    }

    /// Sets a key, in place where it exists and at the end otherwise.
    pub(crate) fn set(&mut self, entry: Entry) {
        match self.entry_mut(&entry.key) {
            Some(known) => *known = entry,
            None => self.0.push(entry),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index))
    }
}

impl FromIterator<Entry> for Table {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl IntoIterator for Table {
    type Item = Entry;
    type IntoIter = std::vec::IntoIter<Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Node {
    /// A document that says nothing and stands nowhere.
    pub(crate) fn nothing() -> Self {
        let text = Text {
            scope: Scope::Managed,
            origin: Origin::Overlay,
            content: String::new(),
        };
        Self {
            content: Content::Table(Table::default()),
            place: Place {
                text: Arc::new(text),
                span: 0..0,
            },
        }
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.content {
            Content::Table(table) => Some(table),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::String(_)
            | Content::List(_) => None,
        }
    }

    pub(crate) fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.content {
            Content::Table(table) => Some(table),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::String(_)
            | Content::List(_) => None,
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(value) => Value::Number(value.clone()),
            Content::String(value) => Value::String(value.clone()),
            Content::List(nodes) => Value::Array(nodes.iter().map(Self::to_value).collect()),
            Content::Table(table) => Value::Object(table.to_map()),
        }
    }

    /// The node a path leads to, or the last one on the way that exists.
    pub(crate) fn nearest(&self, path: &[Step]) -> &Self {
        let Some((step, rest)) = path.split_first() else {
            return self;
        };
        let next = match (&self.content, step) {
            (Content::Table(table), Step::Key(key)) => table.get(key),
            (Content::List(nodes), Step::Index(index)) => nodes.get(*index),
            _ => None,
        };
        next.map_or(self, |node| node.nearest(rest))
    }

    /// The node at a path of keys.
    pub(crate) fn at(&self, keys: &[&str]) -> Option<&Self> {
        keys.iter()
            .try_fold(self, |node, key| node.as_table()?.get(key))
    }
}

impl Table {
    pub(crate) fn to_map(&self) -> Map<String, Value> {
        self.0
            .iter()
            .map(|entry| (entry.key.clone(), entry.node.to_value()))
            .collect()
    }
}

/// One step of a path into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// Writes a path as it is shown and looked up: `mcp_servers."a.b".args[0]`.
pub(crate) fn dotted(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                let is_bare = !key.is_empty()
                    && key
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                if is_bare {
                    out.push_str(key);
                } else {
                    let _ = write!(out, "{key:?}");
                }
            }
            Step::Index(index) => {
                let _ = write!(out, "[{index}]");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_quote_what_is_not_a_bare_key() {
        let path = [
            Step::Key("mcp_servers".to_owned()),
            Step::Key("a.b".to_owned()),
            Step::Key("args".to_owned()),
            Step::Index(2),
        ];
        assert_eq!(dotted(&path), r#"mcp_servers."a.b".args[2]"#);
    }
}
