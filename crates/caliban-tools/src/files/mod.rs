//! The tools that read and change single files, and what they share.

mod change;
#[cfg(unix)]
mod directory;
#[cfg(not(unix))]
#[path = "directory_plain.rs"]
mod directory;
mod document;
mod edit;
mod error;
mod hints;
mod measure;
mod multi_edit;
mod notebook;
mod notebook_edit;
mod opener;
mod pager;
mod read;
mod save;
mod similarity;
mod snippet;
mod state;
mod target;
mod text;
mod write;

use std::sync::Arc;

use caliban_agent::{ReadGuard, ToolContext, ToolOutput, Workspace};
use caliban_model::CancellationToken;

use error::FileError;

pub use edit::EditTool;
pub use multi_edit::MultiEditTool;
pub use notebook_edit::NotebookEditTool;
pub use read::ReadTool;
pub use state::FileState;
pub use write::WriteTool;

/// The key under which calls on the same file run one after the other: its real path. None when
/// the path cannot be used, since such a call touches nothing.
pub fn conflict_key_for(path: &str, workspace: &Workspace) -> Option<String> {
    let resolved = workspace.resolve(path).ok()?;
    Some(resolved.real.display().to_string())
}

/// Where a call finds files.
#[derive(Debug)]
struct Site {
    workspace: Arc<Workspace>,
    reading: Arc<dyn ReadGuard>,
}

/// Runs disk work off the async threads. Dropping the future tells the work to stop; it does so
/// at its next check, and never between the steps of a replacement.
async fn on_disk<F>(context: &ToolContext, work: F) -> ToolOutput
where
    F: FnOnce(&Site, &CancellationToken) -> Result<ToolOutput, FileError> + Send + 'static,
{
    let stop = context.cancel.child_token();
    let _stops_when_dropped = stop.clone().drop_guard();
    let site = Site {
        workspace: Arc::clone(&context.workspace),
        reading: Arc::clone(&context.reading),
    };
    let work = move || {
        if stop.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        work(&site, &stop)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => error.into(),
        Err(_) => ToolOutput::failed("The tool stopped unexpectedly; nothing is known to be done."),
    }
}
