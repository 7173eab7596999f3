//! What the engine yields: everything a face may want to show, in the order it happened.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use caliban_model::{Block, Message, Retry, StopReason, Usage, Warning};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::operator::{Answer, Inquiry};
use crate::outcome::Outcome;
use crate::tool::ToolOutput;

/// One step of a run. A run starts with [`PromptAccepted`](Self::PromptAccepted), unless a hook
/// refuses the prompt, and ends with exactly one [`Finished`](Self::Finished); every [`ToolReady`](Self::ToolReady) is followed by one
/// [`ToolFinished`](Self::ToolFinished) with the same id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A prompt became part of the conversation; a run that waits for more has several.
    PromptAccepted {
        prompt: Arc<Message>,
    },
    TurnStarted {
        turn: u32,
    },
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        text: String,
    },
    /// How the answer is put together, for those who show its pieces or keep its form.
    Answer(AnswerStep),
    /// The whole answer is there, and it is the turn of this call in it to be judged.
    ToolReady {
        id: Arc<str>,
        name: Arc<str>,
        input: Value,
        /// What identifies the call to a person: a path, a command.
        first_arg: Option<String>,
    },
    /// The operator is asked about a call; an answer follows unless the run ends.
    PermissionAsked {
        inquiry: Box<Inquiry>,
    },
    PermissionAnswered {
        /// The id of the inquiry.
        inquiry: Arc<str>,
        /// The id of the call.
        id: Arc<str>,
        answer: Answer,
    },
    /// A call was permitted and runs now, with an input that may not be the model's own any more.
    ToolStarted {
        id: Arc<str>,
        name: Arc<str>,
        /// What identifies the call to a person, as it runs.
        first_arg: Option<String>,
    },
    /// The model is sent on by a message that nobody typed: a hook's, or what is wrong with its
    /// answer.
    SentOn {
        message: Arc<Message>,
    },
    /// History was rewritten to make room.
    HistoryReplaced {
        messages: Vec<Arc<Message>>,
    },
    ToolProgress {
        id: Arc<str>,
        text: String,
    },
    ToolFinished {
        id: Arc<str>,
        name: Arc<str>,
        output: ToolOutput,
        duration: Duration,
        /// Present when the call was not permitted.
        denial: Option<Denial>,
    },
    /// The model's whole message; ends the streaming of a turn.
    AssistantMessage {
        message: Arc<Message>,
        usage: Usage,
        cost: Option<Decimal>,
    },
    /// The operator stopped the run: what the model had said of an answer that was cut off, and
    /// the note that it will read about it. Both are part of the conversation.
    Interrupted {
        said: Option<Arc<Message>>,
        note: Arc<Message>,
    },
    /// A prompt that came meanwhile joined the run between two turns.
    Steered {
        prompt: Arc<str>,
        message: Arc<Message>,
    },
    /// The results of a turn, as the model will read them.
    ToolResults {
        message: Arc<Message>,
    },
    /// A turn is over, its calls included.
    TurnEnded {
        message: Arc<Message>,
    },
    Retrying(Retry),
    Warning(Warning),
    /// Something the engine itself has to say.
    Notice {
        subtype: Cow<'static, str>,
        message: String,
    },
    /// A handler of the operator's had its part in an event.
    HookFired {
        event: Cow<'static, str>,
        output: Value,
    },
    /// An event that no handler heard, or the permission rules' own part in one.
    HookPassed {
        event: Cow<'static, str>,
        output: Value,
    },
    CompactionStarted {
        reason: CompactionReason,
    },
    CompactionFinished {
        before_tokens: u64,
        after_tokens: u64,
    },
    /// An event of an agent run by the call `parent`.
    Nested {
        parent: Arc<str>,
        event: Box<Event>,
    },
    Finished {
        outcome: Outcome,
        totals: Box<RunTotals>,
    },
}

/// A step of one answer of the model. [`Started`](Self::Started) begins it anew, also where what
/// was told before is void.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum AnswerStep {
    Started {
        /// The model that answers, as the provider names it.
        model: Arc<str>,
    },
    /// What the call has consumed so far.
    Measured {
        usage: Usage,
    },
    /// The model begins to write a call.
    ToolBegun {
        id: Arc<str>,
        name: Arc<str>,
    },
    /// A piece of a call's input as the model writes it.
    ToolInput {
        json: String,
    },
    /// A block is complete.
    BlockEnded {
        block: Arc<Block>,
    },
    Stopped {
        reason: StopReason,
    },
}

/// Why history is being shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// Context use crossed the threshold.
    Threshold,
    /// The provider said the prompt is too long.
    TooLong,
    /// The operator asked for it.
    Asked,
}

/// A call that was not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    pub source: DenialSource,
    pub reason: String,
    /// The rule that decided, as it is written.
    pub rule: Option<String>,
    /// What would permit it.
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenialSource {
    Rule,
    Hook,
    /// The classifier of auto mode.
    Classifier,
    Person,
    /// Nobody could be asked.
    Unattended,
}

/// What a run came to. Usage and cost are sums over the whole session so far, sub-agents,
/// compaction and failed attempts included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTotals {
    pub turns: u32,
    pub usage: Usage,
    /// Of all calls whose price is known.
    pub cost: Decimal,
    pub tool_calls: u32,
    pub denials: Vec<(Arc<str>, Arc<str>, Denial)>,
    /// The last text the model produced, whatever the outcome.
    pub last_text: Option<String>,
    /// The final answer, where it had to have a form.
    pub structured: Option<Value>,
    pub duration: Duration,
    /// The part of `duration` that was spent on the model's answers, retries included.
    pub model_time: Duration,
    /// Usage and cost by model.
    pub models: Vec<ModelTotals>,
}

/// What one model of a session came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelTotals {
    pub provider: String,
    pub model: String,
    pub usage: Usage,
    /// Nothing where the price is not known.
    pub cost: Option<Decimal>,
}

impl Event {
    /// The event itself, whichever agent of the session it is of, and the call that runs that
    /// agent.
    pub fn innermost(&self) -> (&Self, Option<&Arc<str>>) {
        match self {
            Self::Nested { parent, event } => {
                let (event, inner) = event.innermost();
                (event, inner.or(Some(parent)))
            }
            event => (event, None),
        }
    }
}

impl RunTotals {
    /// The same with what earlier runs of the session came to. Usage and cost are sums already.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        self.turns += earlier.turns;
        self.tool_calls += earlier.tool_calls;
        self.duration += earlier.duration;
        self.model_time += earlier.model_time;
        self.denials.splice(0..0, earlier.denials.iter().cloned());
        self
    }
}

impl Denial {
    /// A refusal by a hook, without a rule.
    pub fn by_hook(reason: impl Into<String>) -> Self {
        Self {
            source: DenialSource::Hook,
            reason: reason.into(),
            rule: None,
            remedy: None,
        }
    }
}
