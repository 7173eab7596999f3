//! What is kept about a job besides the job itself.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::job::{JobId, JobSpec, Pool};

/// Characters of a prompt that are kept for lists.
const SUMMARY: usize = 80;

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Queued,
    Running,
    /// Somebody wants it to end.
    Cancelling,
    Done,
    Failed,
    Cancelled,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether there is nothing more to come.
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Cancelling => false,
            Self::Done | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// What is known of a job. Its revision is the token by which an attempt knows that no other has
/// taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    pub job: JobId,
    pub pool: Pool,
    pub state: State,
    /// How many attempts were begun.
    pub attempt: u32,
    /// How many of these a worker gave back in good order.
    #[serde(default)]
    pub released: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Why the last attempt ended without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    pub by: String,
    pub submitted: Timestamp,
    pub updated: Timestamp,
    /// The beginning of the prompt.
    pub summary: String,
    /// Stands for what the job is, so that another one cannot go by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl JobRecord {
    /// Of a job that nobody has begun.
    pub fn queued(spec: &JobSpec) -> Self {
        let line = spec.prompt.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            job: spec.job,
            pool: spec.pool.clone(),
            state: State::Queued,
            attempt: 0,
            released: 0,
            worker: None,
            trouble: None,
            by: spec.by.clone(),
            submitted: spec.submitted,
            updated: spec.submitted,
            summary: line.chars().take(SUMMARY).collect(),
            digest: Some(spec.digest()),
        }
    }

    /// Attempts that ended without a result and without being given back.
    pub fn lost(&self) -> u32 {
        self.attempt.saturating_sub(self.released)
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Done,
    Failed,
    Cancelled,
}

impl From<Outcome> for State {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::Failed => Self::Failed,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}

/// Where changed files are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Files {
    /// A ref of the remote, and what it points at.
    Branch {
        name: String,
        commit: String,
    },
    /// An artefact.
    Bundle {
        name: String,
        commit: String,
    },
    Patch {
        name: String,
    },
}

/// An artefact in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    pub name: String,
    pub bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub digest: String,
}

/// The one result of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    pub job: JobId,
    pub outcome: Outcome,
    /// What the run's own result frame says it ended as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// What the run would have exited with.
    pub exit_code: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default)]
    pub cost_usd: serde_json::Value,
    #[serde(default)]
    pub turns: u64,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artefacts: Vec<Stored>,
    /// What was too large or could not be kept, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    pub at: Timestamp,
}

/// What somebody answered to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// `allow`, `allow-session` or `deny`.
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub by: String,
    pub at: Timestamp,
}
