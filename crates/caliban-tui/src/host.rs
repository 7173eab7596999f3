//! What the face asks of the program that it is part of: to look around, and to begin sessions.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caliban_compose::ImageAtom;
use caliban_model::Message;
use caliban_session::{Events, SessionHandle};
use caliban_settings::RuleAction;
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::preferences::Preferences;

/// The program around the face. What may take long is a future or is asked off the loop.
pub trait Host: Debug + Send + Sync + 'static {
    /// Reads what is configured for the face, and what waits for trust. Touches files only.
    fn look(&self) -> Result<Look, String>;

    /// Trusts the workspace with its files as they are now.
    fn trust(&self) -> Result<(), String>;

    /// Begins a session.
    fn open(self: Arc<Self>, which: Which) -> BoxFuture<'static, Result<Opened, String>>;

    /// Makes an image fit to be sent; the error says why it cannot be.
    fn ingest(&self, bytes: &[u8]) -> Result<ImageAtom, String>;

    /// Sessions that can go on, the newest first.
    fn sessions(&self) -> Result<Vec<SessionRow>, String>;
}

/// What is known before a session begins.
#[derive(Debug, Clone, Default)]
pub struct Look {
    pub preferences: Preferences,
    /// What the workspace asks for and does not get without trust; empty where nothing waits.
    pub untrusted: Vec<String>,
    /// Where prompts of this project are remembered; nothing where they are not.
    pub history: Option<PathBuf>,
    /// Where prompts of all projects are remembered.
    pub histories: Option<PathBuf>,
}

/// Which session is to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one that the command line asks for.
    Asked,
    /// An earlier one.
    Named(String),
}

/// A session that has begun.
#[derive(Debug)]
pub struct Opened {
    pub handle: SessionHandle,
    /// Taken by whoever hears them.
    pub events: Option<Events>,
    /// What was said before.
    pub past: Vec<Arc<Message>>,
    /// How the session can be opened again; nothing where it is not kept.
    pub name: Option<String>,
    pub desk: Arc<dyn Desk>,
}

/// What can be looked up and written down while a session lives.
pub trait Desk: Debug + Send + Sync {
    /// Background jobs, in the order they began.
    fn jobs(&self) -> Vec<JobRow>;

    /// The end of what a job has written.
    fn job_output(&self, job: &str) -> String;

    /// Where a rule of this scope would be written.
    fn rule_file(&self, scope: RuleScope) -> Option<PathBuf>;

    /// Writes a rule down; it counts from the next call on.
    fn save_rule(&self, rule: &RuleDraft) -> Result<PathBuf, String>;

    /// Whether rules like these would together decide each of these calls.
    fn matches(&self, patterns: &[String], calls: &[(String, serde_json::Value)]) -> Vec<Matched>;

    /// The rules that count, in the order they are asked.
    fn rules(&self) -> Vec<RuleRow>;

    /// Takes a rule out of the file of a scope, which it returns.
    fn remove_rule(&self, scope: RuleScope, pattern: &str) -> Result<PathBuf, String>;

    /// What would become of a call, written as `Tool: argument`.
    fn judged(&self, call: &str) -> String;

    /// The models that can be chosen, with what is known of them.
    fn models(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, String>>;

    /// What the model is told before everything else.
    fn system_prompt(&self) -> String;
}

/// How a rule stands to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matched {
    Yes,
    No,
}

/// A background job in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    pub id: String,
    pub command: String,
    pub state: JobState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    Running { since: Duration },
    Ended { code: Option<i32> },
}

/// A rule as the operator wants it written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleDraft {
    pub pattern: String,
    pub action: RuleAction,
    pub scope: RuleScope,
    pub comment: Option<String>,
}

/// A rule in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    pub action: RuleAction,
    pub pattern: String,
    /// Whose it is, in words.
    pub origin: &'static str,
    pub comment: Option<String>,
    pub home: RuleHome,
}

/// Where a rule can be taken out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleHome {
    Session,
    File(RuleScope),
    /// Nowhere: it is built in, managed, or of the command line.
    Fixed,
}

/// Where a rule of the operator's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleScope {
    /// Until the session ends.
    Session,
    Project,
    Local,
    User,
}

impl RuleScope {
    pub const ALL: [Self; 4] = [Self::Project, Self::User, Self::Local, Self::Session];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
            Self::Local => "local",
            Self::User => "user",
        }
    }
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
