//! How an agent behaves that nobody watches.

use std::time::Duration;

use super::questions::OnQuestion;

/// How an agent behaves that nobody watches.
#[derive(Debug, Clone)]
pub struct Conduct {
    /// How long it waits for input with nobody attached.
    pub idle_timeout: Duration,
    pub on_question: OnQuestion,
    /// How long a question waits.
    pub question_patience: Duration,
    pub on_failure: OnFailure,
    pub attendance: Attends,
}

/// What becomes of an agent whose work failed while nobody was there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    #[default]
    End,
    /// It waits for somebody who wants to know.
    Stay,
}

/// Whether questions wait for those who are attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attends {
    #[default]
    Yes,
    /// Something else stands in.
    No,
}
