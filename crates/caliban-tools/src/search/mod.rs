//! Finding files by name and by content. Both tools walk alike: ignore files are respected,
//! links are never followed, and everything is bounded and in a fixed order.

mod beneath;
mod glob;
mod grep;
mod hits;
mod line;
mod pattern;
mod scan;
mod sieve;
mod walk;

use caliban_agent::{
    Closed, PathError, ResolvedPath, ToolContext, ToolOutput, ToolStatus, Workspace,
};
use caliban_model::CancellationToken;

pub use glob::Glob;
pub use grep::Grep;

/// What to try when a search found less than expected.
const IGNORE_HINT: &str = "Files listed in ignore files (such as .gitignore) and hidden files are \
     skipped; name an ignored directory as `path` to look inside it.";

/// Runs disk-heavy work off the async runtime. The work gets a token that is cancelled when the
/// call is or when its future is dropped, and must watch it.
async fn off_runtime(
    context: &ToolContext,
    work: impl FnOnce(CancellationToken) -> ToolOutput + Send + 'static,
) -> ToolOutput {
    let cancel = context.cancel.child_token();
    let _stop_when_dropped = cancel.clone().drop_guard();
    let inner = cancel.clone();
    tokio::select! {
        biased;
        () = cancel.cancelled() => cancelled(),
        joined = tokio::task::spawn_blocking(move || work(inner)) => joined.unwrap_or_else(|error| {
            ToolOutput::new(ToolStatus::CouldNotRun, format!("The search broke off: {error}."))
        }),
    }
}

fn cancelled() -> ToolOutput {
    ToolOutput::new(ToolStatus::Cancelled, "The search was cancelled.")
}

/// Where a search starts: the given path, or the workspace root.
fn start(workspace: &Workspace, path: Option<&str>) -> Result<ResolvedPath, ToolOutput> {
    workspace
        .resolve_to_read(path.unwrap_or("."))
        .map_err(|error| match error {
            PathError::Empty | PathError::Nul => {
                ToolOutput::invalid(format!("{}.", sentence(&error.to_string())))
            }
            PathError::Outside { .. } | PathError::Closed { .. } => ToolOutput::new(
                ToolStatus::Denied,
                format!("{}.", sentence(&error.to_string())),
            ),
            PathError::Unresolvable { .. } | PathError::NoHome => {
                ToolOutput::failed(format!("{}.", sentence(&error.to_string())))
            }
        })
}

/// The answer about a file that was asked for by name.
fn refused(shown: &str, closed: &Closed) -> ToolOutput {
    ToolOutput::new(
        ToolStatus::Denied,
        format!("`{shown}` may not be read: {closed}."),
    )
}

fn not_found(shown: &str) -> ToolOutput {
    ToolOutput::failed(format!(
        "`{shown}` does not exist. Leave `path` out to search the whole workspace, or find the \
         right place with Glob."
    ))
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// A path on one line: control characters in file names must not look like output.
fn one_line(path: &str) -> String {
    if path.chars().any(char::is_control) {
        path.escape_debug().to_string()
    } else {
        path.to_owned()
    }
}
