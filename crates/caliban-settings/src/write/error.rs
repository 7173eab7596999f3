//! Why a settings file was not written.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Nothing was written; the file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(
        "settings are written as TOML, and `{}` is JSON; run `caliban settings import --from {} --scope {}` first",
        path.display(), path.display(), scope_of(path)
    )]
    Json { path: PathBuf },
    #[error("{}:{line}:{column}: {message}; correct the file first, it was left as it is", path.display())]
    Parse {
        path: PathBuf,
        line: usize,
        column: usize,
        message: String,
    },
    #[error("`{}` is larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("`{}` is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error(
        "another process has held `{}` for {seconds} s to write the same file; end it, or try again",
        lock.display()
    )]
    Busy { lock: PathBuf, seconds: u64 },
    #[error("`{}` was not changed: {source}", path.display())]
    Edit {
        path: PathBuf,
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl WriteError {
    /// For `map_err`: what was attempted, on what.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// The document does not have the shape a change needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("`{0}` is not a key")]
    BadKey(String),
    #[error("`{0}` is not a table")]
    NotATable(String),
    #[error("`{0}` is not a list of rules")]
    NotRules(String),
    #[error("rule {index} of `permissions.rules` cannot be used: {why}")]
    BadRule { index: usize, why: String },
    #[error("rule {index} is no longer `{pattern}`; list the rules again")]
    Moved { index: usize, pattern: String },
}

/// The scope whose settings a file of this name holds.
fn scope_of(path: &Path) -> &'static str {
    let is_named =
        |part: Option<&std::ffi::OsStr>, name: &str| part.is_some_and(|part| part == name);
    let directory = path.parent().and_then(Path::file_name);
    if !is_named(directory, ".caliban") {
        "user"
    } else if is_named(path.file_name(), "settings.local.json") {
        "local"
    } else {
        "project"
    }
}
