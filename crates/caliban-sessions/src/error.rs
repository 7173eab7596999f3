//! What can go wrong with a session, and what was found wrong but could be lived with.

use std::io;
use std::path::PathBuf;

use crate::name::{InvalidName, SessionName};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error("there is no session `{text}`; `caliban sessions list` shows those there are")]
    NotFound { text: String },
    #[error(
        "`{text}` fits several sessions: {}; give more of the id, or a name",
        list(names)
    )]
    Ambiguous {
        text: String,
        names: Vec<SessionName>,
    },
    #[error("the session `{name}` exists already in `{}`; resume it or choose another name", directory.display())]
    Exists {
        name: SessionName,
        directory: PathBuf,
    },
    #[error(
        "the session `{name}` is in use by {}; end that first, or continue in a copy with `--fork-session`",
        holder(*pid)
    )]
    Busy { name: SessionName, pid: Option<u32> },
    #[error(
        "the session file `{}` cannot be understood, line {line}, column {column}: {problem}; \
         repair it there, or move it away to continue without it",
        path.display()
    )]
    Snapshot {
        path: PathBuf,
        line: usize,
        column: usize,
        problem: String,
    },
    #[error(
        "`{}` was written by a newer version (format {format}); update to use it",
        path.display()
    )]
    Newer { path: PathBuf, format: u32 },
    #[error("`{}` is larger than {limit} bytes; move it away or shorten it", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// What was recorded is kept in memory and tried again with the next record.
    #[error(
        "the session is not safe on disk: `{}` could not be written ({source}); {} \
         until that works; make room or check the disk",
        path.display(),
        waiting(*records)
    )]
    Unsaved {
        path: PathBuf,
        records: usize,
        source: io::Error,
    },
}

/// Something that was wrong and was lived with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error("`{}` ended in the middle of a record, which was never confirmed; it was left out", path.display())]
    Torn { path: PathBuf },
    #[error(
        "`{}` ended in a damaged record; its bytes were moved to `{}`",
        path.display(),
        aside.display()
    )]
    SetAside { path: PathBuf, aside: PathBuf },
    #[error("`{}`, line {line}: the record is damaged and was left out: {problem}", path.display())]
    BadRecord {
        path: PathBuf,
        line: u64,
        problem: String,
    },
    #[error("`{}`, line {line}: the record `{kind}` is not understood and was left out", path.display())]
    UnknownRecord {
        path: PathBuf,
        line: u64,
        kind: String,
    },
    #[error("`{}`: the records {from} to {to} are missing", path.display())]
    Gap { path: PathBuf, from: u64, to: u64 },
    #[error(
        "`{}` is missing; everything before record {base} is lost",
        path.display()
    )]
    SnapshotMissing { path: PathBuf, base: u64 },
    #[error("`{}` belongs to another session and was not read", path.display())]
    ForeignJournal { path: PathBuf },
    #[error("`{}` {problem}; a note stands in its place", path.display())]
    Blob { path: PathBuf, problem: String },
    #[error("the tool `{name}` was running when the session ended, but its call was not recorded")]
    StrayCall { name: String },
    /// The problem names the file.
    #[error("a session is not listed: {problem}")]
    Unlisted { path: PathBuf, problem: String },
    #[error("{0}")]
    Unsaved(String),
    #[error("the session `{name}` was not removed: {problem}")]
    NotRemoved { name: SessionName, problem: String },
}

impl Warning {
    /// Whether records may be missing that had been confirmed.
    pub(crate) fn is_loss(&self) -> bool {
        match self {
            Self::SetAside { .. }
            | Self::BadRecord { .. }
            | Self::UnknownRecord { .. }
            | Self::Gap { .. }
            | Self::SnapshotMissing { .. }
            | Self::ForeignJournal { .. } => true,
            Self::Torn { .. }
            | Self::Blob { .. }
            | Self::StrayCall { .. }
            | Self::Unlisted { .. }
            | Self::Unsaved(_)
            | Self::NotRemoved { .. } => false,
        }
    }
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

fn list(names: &[SessionName]) -> String {
    let names: Vec<&str> = names.iter().map(SessionName::as_str).collect();
    names.join(", ")
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

fn waiting(records: usize) -> String {
    match records {
        0 => "it is not durable".to_owned(),
        1 => "1 record waits in memory".to_owned(),
        several => format!("{several} records wait in memory"),
    }
}
