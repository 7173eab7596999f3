//! What the face asks of the program that it is part of: to look around, and to begin sessions.

use std::fmt::{self, Debug, Display, Formatter};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caliban_compose::ImageAtom;
use caliban_model::{Image, Message, Reasoning};
use caliban_session::{Events, Rewind, SessionHandle};
use caliban_settings::RuleAction;
use caliban_terminal::Raster;
use futures::future::BoxFuture;
use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::agents_desk::AgentsDesk;
use crate::custom_theme::CustomTheme;
use crate::keys_desk::KeysDesk;
use crate::lists_desk::{ListRow, ListsDesk};
use crate::preferences::Preferences;
use crate::programs::Programs;
use crate::servers_desk::ServersDesk;
use crate::sessions_desk::SessionsDesk;
use crate::settings_desk::SettingsDesk;

/// The program around the face. What may take long is a future or is asked off the loop.
pub trait Host: SessionsDesk + KeysDesk + Debug + Send + Sync + 'static {
    /// Reads what is configured for the face, and what waits for trust. Touches files only.
    fn look(&self) -> Result<Look, String>;

    /// Trusts the workspace with its files as they are now.
    fn trust(&self) -> Result<(), String>;

    /// Lets the files from outside that instructions import be read, as they are now, or not.
    fn judge_imports(&self, verdict: ImportVerdict) -> Result<(), String>;

    /// The end of the conversation that is about to go on, as soon as it can be had; nothing where
    /// there is none.
    fn glimpse(&self) -> Vec<Arc<Message>>;

    /// Begins a session.
    fn open(self: Arc<Self>, which: Which) -> BoxFuture<'static, Result<Opened, String>>;

    /// Makes an image fit to be sent; the error says why it cannot be.
    fn ingest(&self, bytes: &[u8]) -> Result<ImageAtom, String>;

    /// An image in at most so many dots, to be drawn; the error says why it cannot be.
    fn picture(&self, image: &Image, dots: (u32, u32)) -> Result<Raster, String>;

    /// A theme of the operator's own by its name, and what of it cannot be used.
    fn theme(&self, name: &str) -> Result<(CustomTheme, Vec<String>), String>;
}

/// What is known before a session begins.
#[derive(Debug, Clone, Default)]
pub struct Look {
    pub preferences: Preferences,
    /// What the workspace asks for and does not get without trust; empty where nothing waits.
    pub untrusted: Vec<String>,
    /// Files outside the workspace that its instructions import and nobody has decided about.
    pub imports: Vec<String>,
    /// How programs are started for the face.
    pub programs: Programs,
    /// Where prompts of this project are remembered; nothing where they are not.
    pub history: Option<PathBuf>,
    /// Where prompts of all projects are remembered.
    pub histories: Option<PathBuf>,
}

/// What is decided about files that instructions import from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportVerdict {
    Approve,
    Refuse,
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
    /// What the session came to before.
    pub earlier: Earlier,
    /// How the session can be opened again; nothing where it is not kept.
    pub name: Option<String>,
    pub desk: Arc<dyn Desk>,
}

/// What a session came to before it was opened again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Earlier {
    pub turns: u64,
    pub cost: Decimal,
    /// Tokens in the model's window.
    pub used: u64,
}

/// A file that was changed.
#[derive(Debug)]
pub struct FileChanged {
    pub path: PathBuf,
    /// What is left to do before the change counts.
    pub remark: Option<String>,
}

impl Display for FileChanged {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        match &self.remark {
            Some(remark) => write!(formatter, "; {remark}"),
            None => Ok(()),
        }
    }
}

/// What can be looked up and written down while a session lives.
pub trait Desk: AgentsDesk + ListsDesk + ServersDesk + SettingsDesk + Debug + Send + Sync {
    /// Background jobs, in the order they began.
    fn jobs(&self) -> Vec<JobRow>;

    /// The end of what a job has written.
    fn job_output(&self, job: &str) -> String;

    /// Where a rule of this scope would be written.
    fn rule_file(&self, scope: RuleScope) -> Option<PathBuf>;

    /// Writes a rule down; it counts from the next call on.
    fn save_rule(&self, rule: &RuleDraft) -> Result<FileChanged, String>;

    /// Whether rules like these would together decide each of these calls.
    fn matches(&self, patterns: &[String], calls: &[(String, serde_json::Value)]) -> Vec<Matched>;

    /// The rules that count, in the order they are asked.
    fn rules(&self) -> Vec<RuleRow>;

    /// Takes a rule out of the file of a scope.
    fn remove_rule(&self, scope: RuleScope, pattern: &str) -> Result<FileChanged, String>;

    /// Whether the session was begun so that bypass can be reached.
    fn bypass_latch(&self) -> BypassLatch;

    /// What would become of a call, written as `Tool: argument`.
    fn judged(&self, call: &str) -> String;

    /// The models there are by provider, with what is known of them. One that cannot be chosen
    /// here has no value.
    fn models(&self) -> BoxFuture<'static, Result<Vec<ListRow>, String>>;

    /// How hard the model thinks.
    fn reasoning(&self) -> Reasoning;

    /// Whether hooks want to hear what is typed.
    fn has_prompt_hooks(&self) -> bool;

    /// Lets hooks hear a command; what they make of it, or why they refuse it.
    fn vet(&self, line: String) -> BoxFuture<'static, Result<String, String>>;

    /// What the model is told before everything else.
    fn system_prompt(&self) -> String;

    /// What the session is opened by now; nothing where it is not kept, or over.
    fn session_name(&self) -> Option<String>;

    /// The points that can be gone back to, the latest first. Touches files.
    fn points(&self) -> Result<Vec<PointRow>, String>;

    /// What going back would do to the files. Touches files.
    fn preview(&self, rewind: Rewind) -> Result<RewindPreview, String>;
}

/// Whether the mode that asks nobody can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BypassLatch {
    On,
    Off,
}

/// A point that can be gone back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointRow {
    /// The prompt at whose end it is; 0 is before the first.
    pub to: u32,
    pub title: String,
    pub at: Option<Timestamp>,
    /// What the prompt changed, in words.
    pub changes: String,
    pub standing: Standing,
    /// What was typed for the prompt after it.
    pub next: Option<String>,
}

/// Whether a prompt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Counts,
    TakenBack,
    /// It is no prompt: prompts were taken back there.
    Rewind,
}

/// What going back would do to the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindPreview {
    pub changes: usize,
    /// Files that others have changed since.
    pub conflicts: usize,
    /// Everything, with the differences.
    pub text: String,
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
