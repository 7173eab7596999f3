//! The person or program that a run may ask for consent.

use std::fmt::Debug;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::ToolCall;
use crate::event::{Denial, DenialSource};
use crate::tool::Details;

/// Answers questions about calls. Consent exists only as an [`Answer`] that came from here; no
/// text of a model or a tool confers it.
pub trait Operator: Send + Sync + Debug {
    /// Waits for the answer. The run may be cancelled meanwhile, which drops the future.
    fn decide<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Answer>;

    /// The same for a question that no step of a run tells of: whoever is asked hears of it from
    /// here. Dropping the future takes it back.
    fn decide_aside<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Answer> {
        self.decide(inquiry)
    }

    /// Waits for the answer to what a server wants to know.
    fn elicit<'a>(&'a self, _question: &'a Elicitation) -> BoxFuture<'a, Reply> {
        async { Reply::Nobody }.boxed()
    }
}

/// A question that a server has for the operator. All of it is the server's own words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    pub server: String,
    pub message: String,
    /// Describes the object to answer with.
    pub schema: Value,
}

/// What the operator says to a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", content = "content", rename_all = "snake_case")]
pub enum Reply {
    Accept(Value),
    Decline,
    /// The operator went away without deciding.
    Cancel,
    /// There is nobody to ask.
    Nobody,
}

/// A question about a call, on its way to the operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inquiry {
    /// Told apart from all others of this process.
    pub id: Arc<str>,
    pub call: ToolCall,
    pub question: Question,
    /// What the call would change, where its tool can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Details>,
}

impl Inquiry {
    pub fn new(call: ToolCall, question: Question) -> Self {
        Self {
            id: Arc::from(uuid::Uuid::new_v4().to_string()),
            call,
            question,
            preview: None,
        }
    }
}

/// Why a call is asked about, and what would have permitted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub reason: String,
    /// The rule that asks, as it is written.
    pub rule: Option<String>,
    /// Where that rule stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<RulePlace>,
    /// How this very call can be permitted when nobody can be asked.
    pub remedy: String,
    /// Rules that would permit this call and as little else as possible.
    pub suggestions: Vec<String>,
    /// What the call is really about, where that differs from what it says: the target of a link.
    pub target: Option<String>,
    /// The input to run with, where a hook changed it.
    pub input: Option<Value>,
    /// What the call was taken apart into, each judged by itself; empty where it is one thing.
    #[serde(default)]
    pub parts: Vec<QuestionPart>,
}

/// Where a rule stands, and what its author noted there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulePlace {
    /// The scope, in one word.
    pub scope: String,
    /// The file, with the key where the rule is none of the scope's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A part of a call: a command of a line, a file that it touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionPart {
    pub item: String,
    pub verdict: PartVerdict,
    /// The rule that decided about it, as it is written, and whose it is.
    pub rule: String,
    pub origin: String,
    /// Why it cannot be read, where it cannot; then nothing is known of what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartVerdict {
    Allow,
    Ask,
    Deny,
}

/// What the operator says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Answer {
    /// Go on, perhaps with another input, which is validated like the model's own.
    Allow {
        input: Option<Value>,
        remember: Remember,
    },
    Deny {
        reason: Option<String>,
        remember: Remember,
        interrupt: Interrupt,
    },
    /// There is nobody to ask.
    Nobody,
    /// Somebody could have been asked, and nobody answered in time. That is nobody's decision.
    TimedOut,
}

/// How long an answer holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    Once,
    /// For the rest of the session, for calls that match this rule.
    Session {
        pattern: String,
    },
}

/// Whether a refusal also ends the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    No,
    Yes,
}

/// Nobody can be asked: every question is a refusal that names the remedy.
#[derive(Debug)]
pub struct Unattended;

impl Operator for Unattended {
    fn decide<'a>(&'a self, _: &'a Inquiry) -> BoxFuture<'a, Answer> {
        async { Answer::Nobody }.boxed()
    }
}

impl Question {
    /// The refusal that an answer comes to.
    pub(crate) fn denial(&self, call: &ToolCall, answer: Option<String>) -> Denial {
        Denial {
            source: DenialSource::Person,
            reason: answer.unwrap_or_else(|| format!("the user refused {}", call.name)),
            rule: self.rule.clone(),
            remedy: None,
        }
    }

    /// The refusal when nobody answered while the question waited.
    pub(crate) fn timed_out(&self) -> Denial {
        Denial {
            reason: format!(
                "{}; nobody was there to answer, and the user has decided nothing about it",
                self.reason
            ),
            ..self.unattended()
        }
    }

    /// The refusal when nobody can answer.
    pub(crate) fn unattended(&self) -> Denial {
        Denial {
            source: DenialSource::Unattended,
            reason: self.reason.clone(),
            rule: self.rule.clone(),
            remedy: Some(self.remedy.clone()),
        }
    }
}

/// Shared by all agents of a session.
pub type SharedOperator = Arc<dyn Operator>;
