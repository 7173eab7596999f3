//! What a run needs from the process it lives in and from the dialect that drives it: everything
//! that cannot be written down in its options.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_agent::{Adviser, Observer, PromptStage, StopStage, ToolSource};
use caliban_hooks::EventWording;
use caliban_mcp::Link;
use caliban_model::Provider;
use caliban_process::Guard;
use caliban_session::{Bounds, Retention};
use caliban_settings::variables::Environment;
use caliban_slash::Depth;
use caliban_telemetry::Ambient;
use caliban_tools::AgentKind;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::background::Fleet;
use crate::seat::Seat;

/// Hears what is said outside the events of a run.
pub trait Diagnostics: Debug + Send + Sync {
    /// Something that the user should know.
    fn warning(&self, text: &str);

    /// A line of the debug log, where it is wanted here.
    fn debug(&self, line: &str);
}

/// Looks the installation over, as `caliban doctor` does.
pub trait Examiner: Debug + Send + Sync {
    fn examine(&self, depth: Depth) -> BoxFuture<'_, String>;

    /// The settings that count, without secrets, and where they come from, as `caliban config
    /// print` shows them to people.
    fn settings(&self) -> Result<String, String>;
}

/// The process a run lives in.
#[derive(Debug, Clone)]
pub struct Process {
    /// How variables are read.
    pub environment: Environment,
    /// All variables, for children; keys are taken out later.
    pub variables: Vec<(OsString, OsString)>,
    pub home: PathBuf,
    /// What relative paths in the options are relative to.
    pub current_directory: PathBuf,
    /// The executable that guards programs.
    pub guard: Guard,
    pub diagnostics: Arc<dyn Diagnostics>,
    pub hearers: Hearers,
}

/// Who hears sessions beside their faces. They are waited for, for a moment, before the process
/// ends.
#[derive(Debug, Clone, Default)]
pub struct Hearers(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl Hearers {
    pub(crate) fn add(&self, hearer: JoinHandle<()>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(hearer);
    }

    /// Waits until all have told what they heard, at most for a second in all.
    pub async fn wait(&self) {
        let hearers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let bound = Instant::now() + caliban_telemetry::PATIENCE;
        for hearer in hearers {
            let hearer = AbortOnDropHandle::new(hearer);
            // Who is not ready by then is not waited for.
            let _ = timeout_at(bound, hearer).await;
        }
    }
}

/// Puts something of the dialect's own before a part of the run.
pub type Wrap<T> = Box<dyn FnOnce(Arc<T>) -> Arc<T> + Send>;

/// Makes the provider that stands in for one that cannot be set up, from the reason.
pub type StandIn = Arc<dyn Fn(String) -> Arc<dyn Provider> + Send + Sync>;

/// What a name of a model stands for; nothing for the one that answers anyway.
#[derive(Clone)]
pub struct ModelNames(pub Arc<NameReader>);

/// Reads a name, and says the model that it stands for.
pub(crate) type NameReader = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Debug for ModelNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ModelNames")
    }
}

/// What the dialect that drives a run brings along.
pub struct DialectParts {
    /// How much may wait, and how much is kept for those who hear it later.
    pub bounds: Bounds,
    pub retention: Retention,
    /// How long an answer to a question may take; for ever without a limit.
    pub patience: Option<Duration>,
    /// Who is heard before the gate decides, beside the configured hooks.
    pub advisers: Vec<Arc<dyn Adviser>>,
    pub prompt_stages: Vec<Arc<dyn PromptStage>>,
    pub stop_stages: Vec<Arc<dyn StopStage>>,
    pub observers: Vec<Arc<dyn Observer>>,
    /// MCP servers that live in the program which embeds this one.
    pub hosted: Vec<(String, Link)>,
    /// Tools beside the built-in ones and those of servers.
    pub tool_sources: Vec<Arc<dyn ToolSource>>,
    /// What stands before the provider.
    pub wrap_provider: Option<Wrap<dyn Provider>>,
    /// Who answers where no provider can be set up; without one the run does not begin.
    pub stand_in: Option<StandIn>,
    /// Where hooks know other names than ours.
    pub hook_wording: Option<Arc<dyn EventWording>>,
    /// Kinds of sub-agents beside the general one and those of files.
    pub agent_kinds: Vec<AgentKind>,
    /// What the names of models in files stand for.
    pub model_names: Option<ModelNames>,
    /// Where agents are sent that go on by themselves.
    pub fleet: Option<Arc<dyn Fleet>>,
    /// The worktree that the session works in, instead of the directory it is configured for.
    pub seat: Option<Seat>,
    /// Who looks the installation over when the operator asks for it.
    pub examiner: Option<Arc<dyn Examiner>>,
    /// Whether the run belongs to the trace that the environment names.
    pub trace: Ambient,
}

impl Default for DialectParts {
    /// Nobody and nothing: what would be asked is refused.
    fn default() -> Self {
        Self {
            bounds: Bounds::APPLICATION,
            retention: Retention::NONE,
            patience: None,
            advisers: Vec::new(),
            prompt_stages: Vec::new(),
            stop_stages: Vec::new(),
            observers: Vec::new(),
            hosted: Vec::new(),
            tool_sources: Vec::new(),
            wrap_provider: None,
            stand_in: None,
            hook_wording: None,
            agent_kinds: Vec::new(),
            model_names: None,
            fleet: None,
            seat: None,
            examiner: None,
            trace: Ambient::Counts,
        }
    }
}

impl Debug for DialectParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DialectParts")
            .field("bounds", &self.bounds)
            .field("advisers", &self.advisers)
            .field("hosted", &self.hosted)
            .field("tool_sources", &self.tool_sources)
            .finish_non_exhaustive()
    }
}

/// What a run needs from the process and cannot be written down.
#[derive(Debug)]
pub struct Surroundings {
    pub process: Process,
    pub dialect: DialectParts,
}

impl Surroundings {
    /// A process without a dialect of its own.
    pub fn new(process: Process) -> Self {
        Self {
            process,
            dialect: DialectParts::default(),
        }
    }
}
