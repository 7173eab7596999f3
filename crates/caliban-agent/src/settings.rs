//! How an agent works: limits and choices, as data.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use crate::answer::AnswerSchema;

use caliban_model::{AnswerLimit, CachePolicy, CacheTtl, Purpose, Reasoning, Request};
use rust_decimal::Decimal;

/// Everything about an agent that is not a collaborator.
#[derive(Debug, Clone)]
pub struct Settings {
    pub model: Arc<str>,
    /// Other models for some purposes.
    pub overrides: ModelOverrides,
    /// What the final answer must look like.
    pub answer: Option<AnswerSchema>,
    /// Output tokens of one answer.
    pub max_tokens: u32,
    pub answer_limit: AnswerLimit,
    pub temperature: Option<f64>,
    pub reasoning: Reasoning,
    pub cache: CachePolicy,
    /// User turns of fewer tokens, by estimate, get no cache mark of their own.
    pub min_cached_turn: u64,
    pub purpose: Purpose,
    pub limits: Limits,
    /// How many calls of one turn run at the same time.
    pub parallel_tools: NonZeroUsize,
    pub capping: Capping,
    pub compaction: CompactionSettings,
}

/// Models used instead of the main one, by what they are used for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelOverrides {
    pub summarization: Option<Arc<str>>,
    pub classifier: Option<Arc<str>>,
    pub sub_agent: Option<Arc<str>>,
}

/// What ends a run that does not end by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Calls to the model.
    pub max_turns: u32,
    /// USD over the whole run.
    pub budget: Option<Decimal>,
    /// The same call with the same result this often in a row is a loop that ends the run; it goes
    /// on as far as its turns do where nothing is said.
    pub max_repetitions: Option<u32>,
    /// How often hooks may send a finished model on.
    pub max_continuations: u32,
}

/// How much of a tool's result the model sees at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capping {
    /// Characters; nothing is cut without a limit.
    pub limit: Option<NonZeroUsize>,
    /// Where the whole goes: the first that can be written. Without a place it is dropped.
    pub spill_directories: Vec<PathBuf>,
}

/// Part of the window whose use triggers compaction unless told otherwise.
pub(crate) const DEFAULT_THRESHOLD: f64 = 0.75;

/// When and how history is shortened.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionSettings {
    /// Part of the window whose use triggers it; never by itself without one.
    pub threshold: Option<f64>,
    /// Whether outdated results are replaced by placeholders.
    pub micro: Micro,
    pub strategy: Strategy,
    /// Where the provider names no window.
    pub assumed_window: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Micro {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The model summarises what is cut.
    Summarize,
    /// What is cut is gone.
    DropOldest,
}

impl Settings {
    pub fn new(model: impl Into<Arc<str>>) -> Self {
        Self {
            model: model.into(),
            overrides: ModelOverrides::default(),
            answer: None,
            max_tokens: Request::DEFAULT_MAX_TOKENS,
            answer_limit: AnswerLimit::Open,
            temperature: None,
            reasoning: Reasoning::Auto,
            cache: CachePolicy::Ephemeral(CacheTtl::FiveMinutes),
            min_cached_turn: 0,
            purpose: Purpose::MainLoop,
            limits: Limits::default(),
            parallel_tools: default_parallel_tools(),
            capping: Capping::default(),
            compaction: CompactionSettings::default(),
        }
    }
}

impl Settings {
    /// The model that writes summaries.
    pub(crate) fn summary_model(&self) -> &Arc<str> {
        self.overrides.summarization.as_ref().unwrap_or(&self.model)
    }

    /// The model that judges calls in auto mode.
    pub fn classifier_model(&self) -> &Arc<str> {
        self.overrides.classifier.as_ref().unwrap_or(&self.model)
    }
}

/// One core is left to the loop and the face.
fn default_parallel_tools() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores.saturating_sub(1)).unwrap_or(NonZeroUsize::MIN)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 50,
            budget: None,
            max_repetitions: None,
            max_continuations: 3,
        }
    }
}

impl Default for Capping {
    fn default() -> Self {
        Self {
            limit: NonZeroUsize::new(50_000),
            spill_directories: Vec::new(),
        }
    }
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            threshold: Some(DEFAULT_THRESHOLD),
            micro: Micro::On,
            strategy: Strategy::Summarize,
            assumed_window: 128_000,
        }
    }
}
