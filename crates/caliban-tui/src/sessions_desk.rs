//! What the list of sessions shows, and what it asks to be done with them.

use std::fmt::Debug;

use jiff::Timestamp;

/// Sessions that are kept. All of it may take long and is asked off the loop.
pub trait SessionsDesk: Debug + Send + Sync {
    /// Sessions that can go on, the newest first.
    fn sessions(&self) -> Result<Vec<SessionRow>, String>;

    /// The end of what was said in one.
    fn session_preview(&self, name: &str) -> Result<String, String>;

    /// The sessions in which this was said, with what stands around it.
    fn sessions_with(&self, text: &str) -> Result<Vec<(String, String)>, String>;

    /// Does something with one that is not open, and says what was done.
    fn change_session(&self, change: &SessionChange) -> Result<String, String>;
}

/// What can be done with a session that is not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    Rename { name: String, to: String },
    Delete { name: String },
    Fork { name: String, to: Option<String> },
}

/// A session in the list of those that can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// What it is opened by.
    pub name: String,
    pub title: String,
    pub turns: u64,
    pub tokens: u64,
    pub updated: Timestamp,
}
