//! Edit: replaces an exact text in a file.

use std::sync::Arc;

use caliban_agent::{Details, Effect, ToolContext, ToolOutput, TypedTool, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{Change, ChangeError, Revision};
use super::document::{Document, Missing, Origin};
use super::error::FileError;
use super::opener::Place;
use super::snippet::Outline;
use super::state::FileState;
use super::{conflict_key_for, measure, on_disk};

#[derive(Debug)]
pub struct EditTool {
    state: Arc<FileState>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// Absolute, or relative to the working directory.
    #[serde(alias = "file_path")]
    path: String,
    /// Exact text to replace; empty to create a file.
    old_string: String,
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: Option<bool>,
}

impl EditTool {
    pub fn new(state: Arc<FileState>) -> Self {
        Self { state }
    }
}

impl TypedTool for EditTool {
    type Input = EditInput;

    const NAME: &'static str = "Edit";
    const DESCRIPTION: &'static str = "Replaces exact text in a file. old_string must occur \
        exactly once, whitespace included and without Read's line numbers, unless replace_all \
        is set.";
    const EFFECT: Effect = Effect::Writes;

    fn first_arg(&self, input: &EditInput) -> Option<String> {
        Some(input.path.clone())
    }

    fn conflict_key(&self, input: &EditInput, workspace: &Workspace) -> Option<String> {
        conflict_key_for(&input.path, workspace)
    }

    async fn preview(&self, input: EditInput, context: ToolContext) -> Option<Details> {
        self.change(input, &context, Doing::Show).await.details
    }

    async fn run(&self, input: EditInput, context: ToolContext) -> ToolOutput {
        self.change(input, &context, Doing::Save).await
    }
}

/// Whether a change is made or only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Save,
    Show,
}

impl EditTool {
    async fn change(&self, input: EditInput, context: &ToolContext, doing: Doing) -> ToolOutput {
        let state = Arc::clone(&self.state);
        on_disk(context, move |site, stop| {
            let change = Change {
                old_string: input.old_string,
                new_string: input.new_string,
                replace_all: input.replace_all,
            };
            let place = Place::to_change(site, &input.path)?;
            let document = Document::open(&place, missing(Some(&change)), &state, stop)?;
            let mut revision = Revision::new(document.text.clone());
            let times = revision
                .apply(&change)
                .map_err(|error| refusal(&error, &format!("`{}` was not edited", place.shown)))?;
            match doing {
                Doing::Save => document.save(&revision.text, &state, stop)?,
                Doing::Show => {}
            }
            Ok(report(&place, &document, &revision, times as u64))
        })
        .await
    }
}

/// The most bytes of a text before and after a change that are passed on for showing.
pub(super) const SHOWN_TEXTS: usize = 256 * 1024;

/// A file that does not exist can only be filled.
pub(super) fn missing(first: Option<&Change>) -> Missing {
    match first {
        Some(change) if change.old_string.is_empty() && !change.new_string.is_empty() => {
            Missing::Create
        }
        Some(_) | None => Missing::Refuse,
    }
}

/// What the model reads about a change that cannot be applied.
pub(super) fn refusal(error: &ChangeError, what: &str) -> FileError {
    let text = format!("{what}: {error}");
    match error {
        ChangeError::Same | ChangeError::EmptyOld => FileError::Invalid(text),
        ChangeError::NotFound(_) | ChangeError::Several { .. } => FileError::Unsuited(text),
    }
}

/// Where the file is different now, and how it looks there.
pub(super) fn report(
    place: &Place,
    document: &Document<'_>,
    revision: &Revision,
    times: u64,
) -> ToolOutput {
    let outline = Outline::of(&revision.text);
    let excerpt = outline.show(&outline.around(&revision.changed));
    let done = match document.origin() {
        Origin::Existing => format!(
            "Edited `{}`: {} at {}.",
            place.shown,
            measure::count(times, "replacement"),
            outline.name(&revision.changed)
        ),
        Origin::New => format!(
            "Created `{}` ({}).",
            place.shown,
            measure::count(measure::lines(&revision.text), "line")
        ),
    };
    let shown = document.text.len() + revision.text.len() <= SHOWN_TEXTS;
    ToolOutput::ok(format!("{done}\n{excerpt}")).with_details(Details::Edited {
        path: place.real().display().to_string(),
        texts: shown.then(|| (document.text.clone(), revision.text.clone())),
    })
}
