//! Where servers' own output and warnings about them go.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use crate::status::Status;

/// Lines of each server that are kept for whoever asks what it said.
const KEPT: usize = 200;

/// Hears what servers write on their standard error and what should be told about them. Called
/// from tasks that must not be held up. All text is one clean line of bounded length.
pub trait Log: Send + Sync + Debug {
    /// A line of a server's own output.
    fn line(&self, _server: &str, _line: &str) {}

    /// Something the operator should know: a lost connection, a withheld tool.
    fn warning(&self, _server: &str, _text: &str) {}

    /// A server is not tried any more.
    fn given_up(&self, server: &str, status: &Status) {
        self.warning(server, &status.to_string());
    }
}

/// Nobody listens.
#[derive(Debug, Clone, Copy)]
pub struct Silence;

impl Log for Silence {}

/// The last of what was said by a server and about it.
#[derive(Debug, Default)]
pub(crate) struct RecentLines(Mutex<VecDeque<String>>);

impl RecentLines {
    fn add(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

/// The log of one server.
#[derive(Debug, Clone)]
pub(crate) struct ServerLog {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) server: Arc<str>,
    pub(crate) recent: Arc<RecentLines>,
}

impl ServerLog {
    pub(crate) fn line(&self, line: &str) {
        self.recent.add(line.to_owned());
        self.log.line(&self.server, line);
    }

    pub(crate) fn warning(&self, text: &str) {
        self.recent.add(format!("warning: {text}"));
        self.log.warning(&self.server, text);
    }

    pub(crate) fn given_up(&self, status: &Status) {
        self.recent.add(format!("warning: {status}"));
        self.log.given_up(&self.server, status);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let recent = RecentLines::default();
        (0..=KEPT).for_each(|number| recent.add(number.to_string()));
        let lines = recent.all();
        assert_eq!(lines.len(), KEPT);
        assert_eq!(lines.first().map(String::as_str), Some("1"));
    }
}
