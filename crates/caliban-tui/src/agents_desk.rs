//! What the panel of background agents shows, and what it asks to be done.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

/// Agents in the background that can be looked at.
pub trait AgentsDesk: Debug + Send + Sync {
    /// All agents, whenever one of them changes. Ends with an error where that cannot be told any
    /// more.
    fn agents(&self) -> BoxStream<'static, Result<Vec<AgentRow>, String>>;

    /// Does something about an agent, and says what was done.
    fn change_agent(&self, change: AgentChange) -> BoxFuture<'static, Result<String, String>>;

    /// The conversation of an agent so far. Touches files.
    fn agent_log(&self, id: &str) -> Result<String, String>;

    /// The program that attaches a terminal to an agent.
    fn attachment(&self, id: &str) -> (PathBuf, Vec<OsString>);
}

/// An agent in lists. The task, the question and the reason may be anybody's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    pub id: String,
    pub state: &'static str,
    pub life: AgentLife,
    /// When it came to be in this state.
    pub since: Timestamp,
    pub cost: Decimal,
    pub task: String,
    pub question: Option<AgentQuestion>,
    /// Why it ended as it did.
    pub reason: Option<String>,
}

/// Whether an agent has a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentLife {
    Alive,
    Failed,
    Ended,
}

/// What an agent waits for an answer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentQuestion {
    pub id: String,
    pub summary: String,
}

/// Something to be done about an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentChange {
    Stop {
        id: String,
    },
    Answer {
        id: String,
        question: String,
        answer: AgentAnswer,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAnswer {
    Allow,
    AllowSession,
    Deny,
}

impl AgentRow {
    /// Characters of a task that are shown.
    const TASK: usize = 60;

    /// What stands above such lines.
    pub const HEAD: &'static str = "ID        STATE     AGE   COST     TASK";

    /// The agent in one line, as it is in every list.
    pub fn line(&self, now: Timestamp) -> String {
        format!(
            "{:<8}  {:<8}  {:<4}  ${:<6}  {}",
            self.id,
            self.state,
            age(now.duration_since(self.since)),
            self.cost.round_dp(4).normalize(),
            Self::cut(&self.task),
        )
    }

    /// The first line of a text, so far as there is room.
    pub fn cut(text: &str) -> String {
        let line = text.lines().next().unwrap_or_default();
        let mut shown: String = line.chars().take(Self::TASK).collect();
        if line.chars().count() > Self::TASK || text.lines().nth(1).is_some() {
            shown.push('…');
        }
        shown
    }
}

/// A length of time in its largest unit.
pub fn age(span: SignedDuration) -> String {
    let seconds = span.as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let aged = |seconds| age(SignedDuration::from_secs(seconds));
        let told = [-1, 59, 61, 3_600, 90_000].map(aged);
        assert_eq!(told, ["0s", "59s", "1m", "1h", "1d"]);
    }

    #[test]
    fn tasks_are_one_line_of_bounded_length() {
        assert_eq!(AgentRow::cut("one\ntwo"), "one…");
        assert_eq!(AgentRow::cut(&"x".repeat(61)).chars().count(), 61);
    }
}
