//! Why a file tool could not do what it was asked, worded for the model that asked.

use std::io;

use caliban_agent::{Closed, PathError, ToolOutput, ToolStatus};

use super::opener::Stopped;

/// `shown` is always the path as people read it, relative to the workspace where it can be.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("The path cannot be used: {0}.")]
    Path(#[from] PathError),
    /// The whole text, which names similar files.
    #[error("{0}")]
    NotFound(String),
    #[error("`{shown}` is a directory, not a file. Use Glob to list what it holds.")]
    Directory { shown: String },
    #[error("`{shown}` is {kind}, not a regular file; it is left alone.")]
    Special { shown: String, kind: &'static str },
    #[error(
        "`{shown}` cannot be used: a part of the path was replaced while it was being opened. \
         Nothing was done; try again."
    )]
    Swapped { shown: String },
    #[error("`{shown}` may not be read: {reason}.")]
    Closed { shown: String, reason: Closed },
    #[error("`{shown}` changed on disk since it was read; read it again. Nothing was written.")]
    Changed { shown: String },
    #[error("`{shown}` cannot be {action}: {source}.")]
    Io {
        action: &'static str,
        shown: String,
        source: io::Error,
    },
    /// The file is of a kind or size that the tool does not handle.
    #[error("{0}")]
    Unsuited(String),
    #[error("{0}")]
    Invalid(String),
    #[error("Cancelled; nothing was written.")]
    Cancelled,
}

impl FileError {
    /// An error of the operating system, told apart from cancellation.
    pub(super) fn io(action: &'static str, shown: &str, source: io::Error) -> Self {
        match source.get_ref() {
            Some(inner) if inner.is::<Stopped>() => Self::Cancelled,
            Some(_) | None => Self::Io {
                action,
                shown: shown.to_owned(),
                source,
            },
        }
    }
}

impl From<FileError> for ToolOutput {
    fn from(error: FileError) -> Self {
        let status = match &error {
            FileError::Path(PathError::Outside { .. } | PathError::Closed { .. })
            | FileError::Closed { .. } => ToolStatus::Denied,
            FileError::Path(
                PathError::Empty
                | PathError::Nul
                | PathError::Unresolvable { .. }
                | PathError::NoHome,
            )
            | FileError::Invalid(_) => ToolStatus::InvalidInput,
            FileError::NotFound(_)
            | FileError::Directory { .. }
            | FileError::Special { .. }
            | FileError::Swapped { .. }
            | FileError::Changed { .. }
            | FileError::Io { .. }
            | FileError::Unsuited(_) => ToolStatus::Failed,
            FileError::Cancelled => ToolStatus::Cancelled,
        };
        ToolOutput::new(status, error.to_string())
    }
}
