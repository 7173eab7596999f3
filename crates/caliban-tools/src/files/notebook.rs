//! Jupyter notebooks (nbformat 4): changing one cell and leaving the rest, and the way the file
//! is written, as they were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize as _};
use serde_json::ser::{CompactFormatter, PrettyFormatter};
use serde_json::{Map, Value, json};

/// Cell ids listed when the one asked for is not there.
const LISTED_IDS: usize = 20;

#[derive(Debug)]
pub(super) struct Notebook {
    /// Everything but the cells, whose place is kept.
    root: Map<String, Value>,
    cells: Vec<Value>,
    layout: Layout,
}

/// How the file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layout {
    indent: Indent,
    line_break: &'static str,
    /// What follows the last brace.
    tail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Indent {
    OneLine,
    Each(String),
}

// Without a doc comment: the schema of the tool would carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CellType {
    Code,
    Markdown,
    Raw,
}

/// Which cell is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CellRef {
    Id(String),
    /// From zero.
    Index(usize),
}

/// A cell that was changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) index: usize,
    pub(super) id: Option<String>,
    pub(super) kind: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotebookError {
    #[error("It is not valid JSON ({0}); repair it with Read and Edit.")]
    NotJson(String),
    #[error("It is not a notebook: it has no list of cells.")]
    NoCells,
    #[error(
        "It is a notebook of format {0}; only format 4 can be edited. Convert it with `jupyter \
         nbconvert --to notebook`."
    )]
    OldFormat(u64),
    #[error("No cell has the id `{id}`. {known}")]
    UnknownId { id: String, known: String },
    #[error("There is no cell with index {index}: the notebook has {count} cells, from 0.")]
    UnknownIndex { index: usize, count: usize },
    #[error("Cell {0} is not an object; repair it with Read and Edit.")]
    BrokenCell(usize),
}

impl Notebook {
    pub(super) fn parse(text: &str) -> Result<Self, NotebookError> {
        let root: Value = serde_json::from_str(text)
            .map_err(|error| NotebookError::NotJson(error.to_string()))?;
        let Value::Object(mut root) = root else {
            return Err(NotebookError::NoCells);
        };
        match root.get("nbformat").and_then(Value::as_u64) {
            Some(4) | None => {}
            Some(other) => return Err(NotebookError::OldFormat(other)),
        }
        let Some(Value::Array(cells)) = root.get_mut("cells").map(Value::take) else {
            return Err(NotebookError::NoCells);
        };
        Ok(Self {
            root,
            cells,
            layout: Layout::of(text),
        })
    }

    /// The text of the file.
    pub(super) fn render(mut self) -> Result<String, serde_json::Error> {
        self.root
            .insert("cells".to_owned(), Value::Array(self.cells));
        let mut bytes = Vec::new();
        match &self.layout.indent {
            Indent::OneLine => {
                let formatter = CompactFormatter;
                let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
                self.root.serialize(&mut writer)?;
            }
            Indent::Each(indent) => {
                let formatter = PrettyFormatter::with_indent(indent.as_bytes());
                let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
                self.root.serialize(&mut writer)?;
            }
        }
        // Breaks inside strings are escaped, so these are all between values.
        let text = String::from_utf8_lossy(&bytes).replace('\n', self.layout.line_break);
        Ok(text + &self.layout.tail)
    }

    /// Gives a cell another source, and another kind if one is given. Its metadata stay, and so
    /// do its outputs as long as it remains code.
    pub(super) fn replace(
        &mut self,
        cell: &CellRef,
        source: &str,
        kind: Option<CellType>,
    ) -> Result<Touched, NotebookError> {
        let index = self.find(cell)?;
        let new_id = self.new_id();
        let Some(Value::Object(cell)) = self.cells.get_mut(index) else {
            return Err(NotebookError::BrokenCell(index));
        };
        let style = SourceStyle::of(cell.get("source"));
        cell.insert("source".to_owned(), style.value(source));
        if let Some(kind) = kind {
            set_kind(cell, kind);
        }
        if let Some(id) = new_id
            && !cell.contains_key("id")
        {
            cell.insert("id".to_owned(), Value::String(id));
        }
        Ok(Touched::of(index, cell))
    }

    /// Puts a new cell behind the one with an id, at an index, or at the end.
    pub(super) fn insert(
        &mut self,
        at: Option<&CellRef>,
        source: &str,
        kind: CellType,
    ) -> Result<Touched, NotebookError> {
        let count = self.cells.len();
        let index = match at {
            None => count,
            Some(CellRef::Index(index)) if *index == count => count,
            Some(cell @ CellRef::Index(_)) => self.find(cell)?,
            Some(cell @ CellRef::Id(_)) => self.find(cell)? + 1,
        };
        let style = SourceStyle::of(self.cells.first().and_then(|cell| cell.get("source")));
        let mut cell = Map::new();
        cell.insert("cell_type".to_owned(), json!(kind.as_str()));
        if let Some(id) = self.new_id() {
            cell.insert("id".to_owned(), Value::String(id));
        }
        cell.insert("metadata".to_owned(), json!({}));
        set_kind(&mut cell, kind);
        cell.insert("source".to_owned(), style.value(source));
        let touched = Touched::of(index, &cell);
        self.cells.insert(index, Value::Object(cell));
        Ok(touched)
    }

    pub(super) fn delete(&mut self, cell: &CellRef) -> Result<Touched, NotebookError> {
        let index = self.find(cell)?;
        match self.cells.remove(index) {
            Value::Object(cell) => Ok(Touched::of(index, &cell)),
            _ => Err(NotebookError::BrokenCell(index)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    fn find(&self, cell: &CellRef) -> Result<usize, NotebookError> {
        let count = self.cells.len();
        match cell {
            CellRef::Index(index) if *index < count => Ok(*index),
            CellRef::Index(index) => Err(NotebookError::UnknownIndex {
                index: *index,
                count,
            }),
            CellRef::Id(id) => self
                .ids()
                .find_map(|(index, known)| (known == id).then_some(index))
                .ok_or_else(|| NotebookError::UnknownId {
                    id: id.clone(),
                    known: self.known_ids(),
                }),
        }
    }

    /// The cells that have ids, with their indices.
    fn ids(&self) -> impl Iterator<Item = (usize, &str)> {
        let cells = self.cells.iter().enumerate();
        cells.filter_map(|(index, cell)| Some((index, cell.get("id")?.as_str()?)))
    }

    fn known_ids(&self) -> String {
        let ids: Vec<_> = self.ids().map(|(_, id)| format!("`{id}`")).collect();
        match ids.len().checked_sub(LISTED_IDS) {
            _ if ids.is_empty() => "The cells have no ids; use cell_index.".to_owned(),
            None | Some(0) => format!("The ids are {}.", ids.join(", ")),
            Some(more) => format!(
                "The first ids are {}, and there are {more} more.",
                ids[..LISTED_IDS].join(", ")
            ),
        }
    }

    /// An id for a cell, where the format asks for one.
    fn new_id(&self) -> Option<String> {
        let minor = self.root.get("nbformat_minor").and_then(Value::as_u64);
        if minor.unwrap_or(0) < 5 {
            return None;
        }
        let random = || uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        std::iter::repeat_with(random).find(|id| self.ids().all(|(_, known)| known != id))
    }
}

impl Touched {
    fn of(index: usize, cell: &Map<String, Value>) -> Self {
        let text = |key: &str| cell.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            index,
            id: text("id"),
            kind: text("cell_type").unwrap_or_default(),
        }
    }
}

impl CellType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

/// Makes a cell of this kind: code has outputs and a count, the others must not.
fn set_kind(cell: &mut Map<String, Value>, kind: CellType) {
    cell.insert("cell_type".to_owned(), json!(kind.as_str()));
    match kind {
        CellType::Code => {
            cell.entry("execution_count").or_insert(Value::Null);
            cell.entry("outputs").or_insert_with(|| json!([]));
        }
        CellType::Markdown | CellType::Raw => {
            cell.shift_remove("execution_count");
            cell.shift_remove("outputs");
        }
    }
}

/// The two ways in which a cell may hold its source.
#[derive(Clone, Copy)]
enum SourceStyle {
    /// A list of lines, each with its break.
    Lines,
    Text,
}

impl SourceStyle {
    fn of(source: Option<&Value>) -> Self {
        match source {
            Some(Value::String(_)) => Self::Text,
            Some(_) | None => Self::Lines,
        }
    }

    fn value(self, source: &str) -> Value {
        match self {
            Self::Lines => source.split_inclusive('\n').collect(),
            Self::Text => json!(source),
        }
    }
}

impl Layout {
    fn of(text: &str) -> Self {
        let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let end = text.trim_end();
        // The first key's distance from the margin is one step.
        let indent = text
            .trim_start()
            .strip_prefix('{')
            .map(|rest| rest.trim_start_matches([' ', '\r']))
            .and_then(|rest| rest.strip_prefix('\n'))
            .map(|rest| rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()].to_owned());
        Self {
            indent: indent.map_or(Indent::OneLine, Indent::Each),
            line_break,
            tail: text[end.len()..].to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {
    "tags": []
   },
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "calc",
   "metadata": {},
   "outputs": [
    {
     "data": {
      "text/plain": [
       "0.1"
      ]
     },
     "output_type": "execute_result"
    }
   ],
   "source": "1/10"
  }
 ],
 "metadata": {
  "zebra": 1.0,
  "alpha": {}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

    fn id(id: &str) -> CellRef {
        CellRef::Id(id.to_owned())
    }

    #[test]
    fn a_notebook_is_written_as_it_was() {
        let crlf = NOTEBOOK.replace('\n', "\r\n");
        let tabs = NOTEBOOK.replace("\n ", "\n\t").trim_end().to_owned();
        let value: Value = serde_json::from_str(NOTEBOOK).unwrap();
        let compact = value.to_string();
        for text in [NOTEBOOK, &crlf, &compact] {
            assert_eq!(Notebook::parse(text).unwrap().render().unwrap(), text);
        }
        let tabs = Notebook::parse(&tabs).unwrap().render().unwrap();
        assert!(tabs.starts_with("{\n\t\"cells\": [\n\t\t{"));
        assert!(tabs.ends_with('}'));
    }

    #[test]
    fn replacing_a_source_changes_nothing_else() {
        let mut notebook = Notebook::parse(NOTEBOOK).unwrap();
        let touched = notebook.replace(&id("calc"), "1/4\n", None).unwrap();
        assert_eq!(touched.index, 1);
        let expected = NOTEBOOK.replace(r#""1/10""#, r#""1/4\n""#);
        assert_eq!(notebook.render().unwrap(), expected);
        let mut notebook = Notebook::parse(NOTEBOOK).unwrap();
        notebook
            .replace(&CellRef::Index(0), "# Title\nwords", None)
            .unwrap();
        let expected = NOTEBOOK.replace(r#""text""#, r#""words""#);
        assert_eq!(notebook.render().unwrap(), expected);
    }

    #[test]
    fn kinds_have_the_fields_their_schema_asks_for() {
        let mut notebook = Notebook::parse(NOTEBOOK).unwrap();
        let markdown = Some(CellType::Markdown);
        notebook.replace(&id("calc"), "x", markdown).unwrap();
        assert!(notebook.cells[1].get("outputs").is_none());
        assert!(notebook.cells[1].get("execution_count").is_none());
        let code = Some(CellType::Code);
        notebook.replace(&id("intro"), "x", code).unwrap();
        assert_eq!(notebook.cells[0]["outputs"], json!([]));
        assert_eq!(notebook.cells[0]["execution_count"], Value::Null);
    }

    #[test]
    fn cells_are_inserted_and_deleted_in_place() {
        let mut notebook = Notebook::parse(NOTEBOOK).unwrap();
        let kind = CellType::Code;
        let behind = notebook.insert(Some(&id("intro")), "a\nb", kind).unwrap();
        assert_eq!(behind.index, 1);
        assert_eq!(behind.id.as_ref().map(String::len), Some(8));
        assert_eq!(notebook.cells[1]["source"], json!(["a\n", "b"]));
        let at = notebook.insert(Some(&CellRef::Index(0)), "", kind).unwrap();
        assert_eq!(at.index, 0);
        let last = notebook.insert(None, "z", CellType::Raw).unwrap();
        assert_eq!((last.index, notebook.len()), (4, 5));
        assert!(notebook.cells[4].get("outputs").is_none());
        notebook.delete(&id("calc")).unwrap();
        assert_eq!(notebook.cells[3]["source"], json!(["z"]));
    }

    #[test]
    fn older_notebooks_get_no_ids() {
        let old = NOTEBOOK.replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 4");
        let mut notebook = Notebook::parse(&old).unwrap();
        let touched = notebook.insert(None, "x", CellType::Code).unwrap();
        assert_eq!(touched.id, None);
    }

    #[test]
    fn errors_say_what_there_is() {
        let parse = |text: &str| Notebook::parse(text).unwrap_err();
        assert!(matches!(parse("{"), NotebookError::NotJson(_)));
        assert_eq!(parse("[]"), NotebookError::NoCells);
        assert_eq!(parse("{\"nbformat\": 4}"), NotebookError::NoCells);
        assert_eq!(parse("{\"nbformat\": 3}"), NotebookError::OldFormat(3));
        let mut notebook = Notebook::parse(NOTEBOOK).unwrap();
        assert_eq!(
            notebook.delete(&id("nope")).unwrap_err().to_string(),
            "No cell has the id `nope`. The ids are `intro`, `calc`."
        );
        assert_eq!(
            notebook.delete(&CellRef::Index(2)).unwrap_err().to_string(),
            "There is no cell with index 2: the notebook has 2 cells, from 0."
        );
    }
}
