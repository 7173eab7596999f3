//! What can go wrong with checkpoints.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` cannot be the name of a directory of checkpoints")]
    Name(String),
    #[error("there is no checkpoint {wanted}; there are {last}, and 0 is before the first")]
    NoSuchPoint { wanted: u32, last: u32 },
    #[error(
        "a restore of this session was interrupted and has to be finished first: the next `caliban rewind` to any point does, and so does the next run of the session"
    )]
    Unfinished,
    #[error("the files are back, but the conversation is not: {0}")]
    Companion(String),
    #[error("`{}` cannot be understood: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was tried, and on what.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
