//! What a request is answered with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Content;
use crate::request::Id;
use crate::view::TabView;

/// The answer to a request; each has exactly one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reply {
    Ok { re: Id, ok: Done },
    Error { re: Option<Id>, error: Problem },
}

impl Reply {
    pub fn new(re: Id, done: Result<Done, Problem>) -> Self {
        match done {
            Ok(ok) => Self::Ok { re, ok },
            Err(error) => Self::Error {
                re: Some(re),
                error,
            },
        }
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Done {
    Hello(Hello),
    Opened(Box<Opened>),
    Sent(Box<Sent>),
    Heard(Heard),
    Settled(Settled),
    Tabs(Tabs),
    Closed(Closed),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of this protocol.
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
    /// `caliban` or `claude`: what the events of a session look like.
    pub frames: &'static str,
    pub max_running: usize,
    pub max_queue: usize,
}

/// A tab that is open from here on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    #[serde(flatten)]
    pub view: TabView,
    /// What the session is: the frame `system/init`.
    pub init: Value,
    /// It was open before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
}

/// Where a piece of work stands.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    pub request: String,
    pub state: SentState,
    /// How many of this tab come before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// It was sent before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    /// How it ended: the frame `result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SentState {
    Queued,
    Running,
    Ended,
}

/// A piece of work that has not ended, with what it says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptView {
    pub request: String,
    pub state: SentState,
    /// Nothing for one that is worked on: it is in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// What is told next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Heard {
    pub tab: String,
    /// The number of the first event that is told.
    pub next: u64,
}

/// Nothing more is to be said about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settled {}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tabs {
    pub tabs: Vec<TabView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    pub closed: Vec<String>,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    pub code: Code,
    pub message: String,
    /// How the question was answered, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
}

/// What kind of problem it is; others may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request makes no sense.
    BadRequest,
    NoSuchTab,
    NoSuchRequest,
    NoSuchQuestion,
    /// Somebody else has answered it.
    AlreadyAnswered,
    /// The same id with other content.
    Conflict,
    /// Too much waits; send it again when some is done.
    QueueFull,
    TooManyTabs,
    /// The session could not begin.
    CannotStart,
    /// Another process works in the session.
    Busy,
    /// The session is over.
    Ended,
    /// The rules or the operator do not permit it.
    Refused,
    /// It could not be written down, so it was not taken.
    NotKept,
    /// What is needed for it does not answer.
    Unavailable,
    /// Everything is being ended.
    ShuttingDown,
}

impl Problem {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            how: None,
        }
    }

    pub(crate) fn no_such_tab(tab: &str) -> Self {
        Self::new(Code::NoSuchTab, format!("there is no tab `{tab}`"))
    }
}
