//! What is written to a journal: one record for each thing that happened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_model::{Message, Purpose, Reasoning, ToolContent, Usage};
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use crate::accounts::Work;
use crate::past::Position;

/// The version of both file formats. Additions keep it; a reader refuses a higher one.
pub const FORMAT: u32 = 1;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A message was added to the conversation.
    Message(Arc<Message>),
    /// A call is about to run. Recorded before it does.
    ToolIntent {
        id: String,
        /// The call of this conversation on whose behalf another agent makes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        name: String,
        effects: Effects,
    },
    /// A call has ended; the message with its turn's results is not complete yet.
    ToolDone {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        status: CallStatus,
        /// Nothing for another agent's, whose conversation is not recorded.
        content: Vec<ToolContent>,
    },
    /// A model was called.
    Usage {
        provider: String,
        model: String,
        usage: Usage,
        /// Nothing where the price is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Decimal>,
        #[serde(default)]
        purpose: Purpose,
        /// The kind of sub-agent that called it; nothing for the session's own agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// What a cache made cheaper.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<Decimal>,
        /// How often.
        #[serde(default = "once")]
        calls: u64,
        /// The day by the clock on the wall.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        day: Option<Date>,
    },
    /// Prompts were worked on.
    Work {
        day: Date,
        #[serde(flatten)]
        work: Work,
    },
    /// Settings of the session changed.
    State(Box<StateChange>),
    /// The conversation was shortened: its first `keep` messages stay, `messages` follow.
    Compacted {
        keep: usize,
        messages: Vec<Arc<Message>>,
    },
    /// The conversation was made valid again after an interruption, in the same form.
    Repaired {
        keep: usize,
        messages: Vec<Arc<Message>>,
    },
    /// Prompts were taken back. What was said then is kept, so that it can be gone to again.
    Rewound {
        /// Names the restore that it goes with, which happens once.
        restore: String,
        /// The checkpoint that this made.
        checkpoint: u32,
        /// The prompt after which the work goes on; 0 is before the first.
        to: u32,
        /// Where the conversation goes on; nothing where only files went back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<Position>,
        /// What the model has to know of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A turn is over. On disk it carries the totals so far, for listings.
    TurnEnded {},
    Title {
        text: String,
    },
    Notice(Notice),
}

/// Whether a call changes anything outside the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    ReadOnly,
    SideEffects,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Ok,
    Failed,
}

/// What changed; nothing where something stayed as it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard the model was told to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Reasoning>,
    /// The permission mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_mode: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_path")]
    pub cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_version: Option<String>,
}

/// Something a person was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub subtype: String,
    pub message: String,
}

/// The first record of a journal: enough to read it without a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: u32,
    pub(crate) session_id: Uuid,
    pub(crate) name: String,
    #[serde(serialize_with = "path")]
    pub(crate) cwd: PathBuf,
    pub(crate) program_version: String,
    /// The last record that the snapshot before this journal contains.
    pub(crate) base: u64,
    pub(crate) created_at: jiff::Timestamp,
    pub(crate) provider: String,
    pub(crate) model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<Uuid>,
}

/// What a session came to so far, as it is written with the end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Totals {
    pub(crate) turns: u64,
    pub(crate) usage: Usage,
    pub(crate) cost: Decimal,
    pub(crate) provider: String,
    pub(crate) model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
}

impl Record {
    /// The record that turns one conversation into another, keeping what both begin with.
    pub fn compaction(before: &[Arc<Message>], after: &[Arc<Message>]) -> Self {
        let keep = common(before, after);
        Self::Compacted {
            keep,
            messages: after[keep..].to_vec(),
        }
    }
}

fn once() -> u64 {
    1
}

/// How many messages two conversations begin with in common.
pub(crate) fn common(before: &[Arc<Message>], after: &[Arc<Message>]) -> usize {
    before
        .iter()
        .zip(after)
        .take_while(|(one, other)| Arc::ptr_eq(one, other) || one == other)
        .count()
}

/// A path as text; what is not UTF-8 in it is replaced, since JSON has no place for it.
pub(crate) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

#[expect(clippy::ref_option, reason = "the form in which serde calls it")]
fn some_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => self::path(path, serializer),
        None => serializer.serialize_none(),
    }
}
