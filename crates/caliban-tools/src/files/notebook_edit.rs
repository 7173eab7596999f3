//! `NotebookEdit`: replaces, inserts or deletes one cell of a Jupyter notebook.

use std::sync::Arc;

use caliban_agent::{Effect, ToolContext, ToolOutput, TypedTool, Workspace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{Document, Missing};
use super::error::FileError;
use super::notebook::{CellRef, CellType, Notebook, NotebookError, Touched};
use super::opener::Place;
use super::state::FileState;
use super::{conflict_key_for, measure, on_disk};

#[derive(Debug)]
pub struct NotebookEditTool {
    state: Arc<FileState>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotebookEditInput {
    /// The .ipynb file.
    #[serde(alias = "file_path", alias = "notebook_path")]
    path: String,
    /// The cell; insert goes behind it.
    #[serde(default)]
    cell_id: Option<String>,
    /// Its index from 0, instead of the id; insert goes here.
    #[serde(default)]
    cell_index: Option<usize>,
    #[serde(default)]
    edit_mode: EditMode,
    /// For insert code if absent.
    #[serde(default)]
    #[schemars(with = "CellType")]
    cell_type: Option<CellType>,
    #[serde(default)]
    new_source: Option<String>,
}

// Without a doc comment: the values say it, and every request would carry it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum EditMode {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl NotebookEditTool {
    pub fn new(state: Arc<FileState>) -> Self {
        Self { state }
    }
}

impl TypedTool for NotebookEditTool {
    type Input = NotebookEditInput;

    const NAME: &'static str = "NotebookEdit";
    const DESCRIPTION: &'static str = "Changes one cell of a Jupyter notebook. Metadata and \
        outputs are kept. Without a cell, insert goes to the end.";
    const EFFECT: Effect = Effect::Writes;

    fn first_arg(&self, input: &NotebookEditInput) -> Option<String> {
        Some(input.path.clone())
    }

    fn conflict_key(&self, input: &NotebookEditInput, workspace: &Workspace) -> Option<String> {
        conflict_key_for(&input.path, workspace)
    }

    async fn run(&self, input: NotebookEditInput, context: ToolContext) -> ToolOutput {
        let state = Arc::clone(&self.state);
        on_disk(&context, move |site, stop| {
            let edit = CellEdit::of(&input)?;
            let place = Place::to_change(site, &input.path)?;
            let document = Document::open(&place, Missing::Refuse, &state, stop)?;
            let refuse = |error: NotebookError| {
                FileError::Unsuited(format!("`{}` was not edited. {error}", place.shown))
            };
            let mut notebook = Notebook::parse(&document.text).map_err(refuse)?;
            let touched = edit.apply(&mut notebook).map_err(refuse)?;
            let count = notebook.len() as u64;
            let text = notebook
                .render()
                .map_err(|error| refuse(NotebookError::NotJson(error.to_string())))?;
            document.save(&text, &state, stop)?;
            Ok(ToolOutput::ok(edit.report(&place, &touched, count)))
        })
        .await
    }
}

/// An edit with everything it needs.
#[derive(Debug)]
enum CellEdit<'a> {
    Replace {
        cell: CellRef,
        source: &'a str,
        kind: Option<CellType>,
    },
    Insert {
        at: Option<CellRef>,
        source: &'a str,
        kind: CellType,
    },
    Delete {
        cell: CellRef,
    },
}

impl<'a> CellEdit<'a> {
    fn of(input: &'a NotebookEditInput) -> Result<Self, FileError> {
        let invalid = |text: &str| FileError::Invalid(text.to_owned());
        let cell = match (&input.cell_id, input.cell_index) {
            (Some(_), Some(_)) => return Err(invalid("Give cell_id or cell_index, not both.")),
            (Some(id), None) => Some(CellRef::Id(id.clone())),
            (None, Some(index)) => Some(CellRef::Index(index)),
            (None, None) => None,
        };
        let named = |cell: Option<CellRef>| {
            cell.ok_or_else(|| invalid("Give cell_id or cell_index to say which cell is meant."))
        };
        let source = || {
            let source = input.new_source.as_deref();
            source.ok_or_else(|| invalid("Give new_source: what the cell shall hold."))
        };
        Ok(match input.edit_mode {
            EditMode::Replace => Self::Replace {
                cell: named(cell)?,
                source: source()?,
                kind: input.cell_type,
            },
            EditMode::Insert => Self::Insert {
                at: cell,
                source: source()?,
                kind: input.cell_type.unwrap_or(CellType::Code),
            },
            EditMode::Delete => Self::Delete { cell: named(cell)? },
        })
    }

    fn apply(&self, notebook: &mut Notebook) -> Result<Touched, NotebookError> {
        match self {
            Self::Replace { cell, source, kind } => notebook.replace(cell, source, *kind),
            Self::Insert { at, source, kind } => notebook.insert(at.as_ref(), source, *kind),
            Self::Delete { cell } => notebook.delete(cell),
        }
    }

    fn report(&self, place: &Place, touched: &Touched, count: u64) -> String {
        let done = match self {
            Self::Replace { .. } => "Replaced the source of",
            Self::Insert { .. } => "Inserted",
            Self::Delete { .. } => "Deleted",
        };
        let id = match &touched.id {
            Some(id) => format!(", id `{id}`"),
            None => String::new(),
        };
        format!(
            "{done} cell {} ({}{id}) of `{}`, which has {} now.",
            touched.index,
            touched.kind,
            place.shown,
            measure::count(count, "cell")
        )
    }
}
