//! Where servers' own output and warnings about them go.

use std::fmt::Debug;
use std::sync::Arc;

/// Hears what servers write on their standard error and what should be told about them. Called
/// from tasks that must not be held up. All text is one clean line of bounded length.
pub trait Log: Send + Sync + Debug {
    /// A line of a server's own output.
    fn line(&self, _server: &str, _line: &str) {}

    /// Something the operator should know: a lost connection, a withheld tool.
    fn warning(&self, _server: &str, _text: &str) {}
}

/// Nobody listens.
#[derive(Debug, Clone, Copy)]
pub struct Silence;

impl Log for Silence {}

/// The log of one server.
#[derive(Debug, Clone)]
pub(crate) struct ServerLog {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) server: Arc<str>,
}

impl ServerLog {
    pub(crate) fn line(&self, line: &str) {
        self.log.line(&self.server, line);
    }

    pub(crate) fn warning(&self, text: &str) {
        self.log.warning(&self.server, text);
    }
}
