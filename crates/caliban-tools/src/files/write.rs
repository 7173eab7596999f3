//! Write: creates a file or replaces all of its content.

use std::sync::Arc;

use caliban_agent::{Details, Effect, ToolContext, ToolOutput, TypedTool, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;

use super::directory::Parents;
use super::edit::SHOWN_TEXTS;
use super::opener::Place;
use super::state::FileState;
use super::target::Target;
use super::{conflict_key_for, measure, on_disk};

#[derive(Debug)]
pub struct WriteTool {
    state: Arc<FileState>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {
    /// Absolute, or relative to the working directory.
    #[serde(alias = "file_path")]
    path: String,
    /// All of the new content.
    content: String,
}

impl WriteTool {
    pub fn new(state: Arc<FileState>) -> Self {
        Self { state }
    }
}

impl TypedTool for WriteTool {
    type Input = WriteInput;

    const NAME: &'static str = "Write";
    const DESCRIPTION: &'static str = "Creates a file, with its directories, or overwrites all \
        of its content. Read an existing file first; to change parts of it use Edit.";
    const EFFECT: Effect = Effect::Writes;

    fn first_arg(&self, input: &WriteInput) -> Option<String> {
        Some(input.path.clone())
    }

    fn conflict_key(&self, input: &WriteInput, workspace: &Workspace) -> Option<String> {
        conflict_key_for(&input.path, workspace)
    }

    async fn preview(&self, input: WriteInput, context: ToolContext) -> Option<Details> {
        let shown = on_disk(&context, move |site, _stop| {
            let place = Place::to_change(site, &input.path)?;
            let path = place.real().display().to_string();
            let size = std::fs::metadata(place.real()).map_or(0, |meta| meta.len());
            let before = (size <= SHOWN_TEXTS as u64)
                .then(|| std::fs::read_to_string(place.real()).unwrap_or_default());
            let texts = before.filter(|_| input.content.len() <= SHOWN_TEXTS);
            Ok(ToolOutput::ok("").with_details(Details::Edited {
                path,
                texts: texts.map(|before| (before, input.content)),
            }))
        });
        shown.await.details
    }

    async fn run(&self, input: WriteInput, context: ToolContext) -> ToolOutput {
        let state = Arc::clone(&self.state);
        on_disk(&context, move |site, stop| {
            let place = Place::to_change(site, &input.path)?;
            let target = Target::locate(&place, Parents::Create)?;
            target.check_unchanged(&state, stop)?;
            target.save(input.content.as_bytes(), &state, stop)?;
            let path = place.real().display().to_string();
            let (done, details) = match target.existing {
                Some(_) => ("Overwrote", Details::Overwritten { path }),
                None => ("Created", Details::Created { path }),
            };
            let report = format!(
                "{done} `{}` ({}, {}).",
                place.shown,
                measure::count(input.content.len() as u64, "byte"),
                measure::count(measure::lines(&input.content), "line")
            );
            Ok(ToolOutput::ok(report).with_details(details))
        })
        .await
    }
}
