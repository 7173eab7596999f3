//! `MultiEdit`: several replacements in one file, all or none.

use std::sync::Arc;

use caliban_agent::{Details, Effect, ToolContext, ToolOutput, TypedTool, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{Change, Revision};
use super::document::Document;
use super::edit::{Doing, missing, refusal, report};
use super::error::FileError;
use super::opener::Place;
use super::state::FileState;
use super::{conflict_key_for, on_disk};

#[derive(Debug)]
pub struct MultiEditTool {
    state: Arc<FileState>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MultiEditInput {
    /// Absolute, or relative to the working directory.
    #[serde(alias = "file_path")]
    path: String,
    /// Applied in order, each to the result of the one before.
    edits: Vec<Change>,
}

impl MultiEditTool {
    pub fn new(state: Arc<FileState>) -> Self {
        Self { state }
    }
}

impl TypedTool for MultiEditTool {
    type Input = MultiEditInput;

    const NAME: &'static str = "MultiEdit";
    const DESCRIPTION: &'static str =
        "Makes several Edit replacements in one file. If one of them fails, none is made.";
    const EFFECT: Effect = Effect::Writes;

    fn first_arg(&self, input: &MultiEditInput) -> Option<String> {
        Some(input.path.clone())
    }

    fn conflict_key(&self, input: &MultiEditInput, workspace: &Workspace) -> Option<String> {
        conflict_key_for(&input.path, workspace)
    }

    async fn preview(&self, input: MultiEditInput, context: ToolContext) -> Option<Details> {
        self.change(input, &context, Doing::Show).await.details
    }

    async fn run(&self, input: MultiEditInput, context: ToolContext) -> ToolOutput {
        self.change(input, &context, Doing::Save).await
    }
}

impl MultiEditTool {
    async fn change(
        &self,
        input: MultiEditInput,
        context: &ToolContext,
        doing: Doing,
    ) -> ToolOutput {
        let state = Arc::clone(&self.state);
        on_disk(context, move |site, stop| {
            let edits = &input.edits;
            if edits.is_empty() {
                return Err(FileError::Invalid("edits is empty; give some.".to_owned()));
            }
            let place = Place::to_change(site, &input.path)?;
            let document = Document::open(&place, missing(edits.first()), &state, stop)?;
            let mut revision = Revision::new(document.text.clone());
            let mut times = 0;
            for (index, change) in edits.iter().enumerate() {
                let failed = format!(
                    "`{}` was not edited, since edit {} of {} failed",
                    place.shown,
                    index + 1,
                    edits.len()
                );
                times += revision
                    .apply(change)
                    .map_err(|error| refusal(&error, &failed))? as u64;
            }
            match doing {
                Doing::Save => document.save(&revision.text, &state, stop)?,
                Doing::Show => {}
            }
            Ok(report(&place, &document, &revision, times))
        })
        .await
    }
}
