//! Where sessions live. The registry knows only this: they may be actors in the same process, or
//! each in a process of its own that outlives it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use caliban_model::Message;
use caliban_session::{Closed, Command, Facts, SessionEvent, Settled, Standing};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::answer::{Code, Problem};
use crate::request::Open;

/// A session that shall be there.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub open: Arc<Open>,
    pub session: SessionWanted,
    /// How long its questions wait.
    pub patience: Duration,
}

/// Which session it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionWanted {
    /// A new one with this id.
    New(Uuid),
    /// One that was there before, by its id or name; in a copy with this id, where there is one.
    Earlier { session: String, copy: Option<Uuid> },
}

/// A session that is kept and can be gone on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// Its id.
    pub session: String,
    pub name: String,
    /// The beginning of its first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub model: String,
    pub cwd: String,
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub updated: Timestamp,
}

/// Makes sessions and knows what was said in them.
pub trait SessionHost: Send + Sync + Debug {
    /// Begins a session or goes on with one. It attends: its questions wait for an answer.
    fn open(&self, wanted: Wanted) -> BoxFuture<'_, Result<Box<dyn HostedSession>, Unopened>>;

    /// What was said in a session, as it is kept.
    fn history(&self, session: &str) -> BoxFuture<'_, Result<Vec<Arc<Message>>, String>>;

    /// The sessions that can be gone on with, the newest first.
    fn saved(&self) -> BoxFuture<'_, Result<Vec<Saved>, String>>;

    /// The models that can be chosen from.
    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, String>>;

    /// Removes a session that nobody works in.
    fn remove(&self, session: &str) -> BoxFuture<'_, Result<(), String>>;
}

/// A session that lives somewhere. Dropping it ends it, unless its life goes on.
pub trait HostedSession: Send + Sync + Debug {
    fn facts(&self) -> &Facts;

    /// Names the process that it lives in, where that outlives this one: as long as the name is the
    /// same, the session knows what it was told and does nothing twice.
    fn life(&self) -> Option<Arc<str>> {
        None
    }

    /// How prompts ended in processes of this session that are no more.
    fn settled(&self) -> &[Settled] {
        &[]
    }

    fn send(&self, command: Command) -> BoxFuture<'_, Result<(), Closed>>;

    /// What happened since; nothing once the session is over. May be dropped without a loss.
    fn next(&mut self) -> BoxFuture<'_, Option<News>>;

    /// Waits until nothing of a session is left whose end was heard.
    fn gone(&mut self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

/// What is heard of a session.
#[derive(Debug)]
pub enum News {
    Events(Vec<Arc<SessionEvent>>),
    /// Where it stands, in place of what was not heard: it was at work before it was opened, or its
    /// events were let go.
    Standing(Box<Standing>),
}

/// Why a session did not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unopened {
    /// What was asked for makes no sense.
    Misused(String),
    /// It is not for whoever asks.
    Refused(String),
    /// Another process works in it.
    Busy(String),
    Failed(String),
}

impl From<Unopened> for Problem {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Misused(message) => Self::new(Code::BadRequest, message),
            Unopened::Refused(message) => Self::new(Code::Refused, message),
            Unopened::Busy(message) => Self::new(Code::Busy, message),
            Unopened::Failed(message) => Self::new(Code::CannotStart, message),
        }
    }
}
