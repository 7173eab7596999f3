//! What is decided about a request: who was considered, who is kept in which order, and the words for why.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caliban_model::Purpose;
use rust_decimal::Decimal;

use crate::breaker::Standing;
use crate::facts::Need;

/// Somebody who may answer: a route, perhaps with another model than its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the table.
    pub route: usize,
    /// By which its health and its accounts are known.
    pub id: Arc<str>,
    pub model: Arc<str>,
}

/// What is known about routes when a request comes.
#[derive(Debug, Clone, Default)]
pub struct View {
    pub now: Duration,
    pub routes: HashMap<Arc<str>, Health>,
    /// The route that this conversation stays on.
    pub stay: Option<Arc<str>>,
    /// The part of the budget that is spent, where there is one.
    pub spent: Option<Decimal>,
}

/// What is known about one route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// Nothing where it has no breaker.
    pub breaker: Option<Standing>,
    /// It was found not to exist, or not to be reachable as configured.
    pub is_dead: bool,
    /// How soon it began to answer of late.
    pub first_content: Option<Duration>,
}

/// What became of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered {
    pub candidate: Candidate,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Kept(Why),
    Dropped(Reason),
}

/// Why a route stands where it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    First,
    /// After the one before it failed.
    Next,
    /// The model was asked for by name.
    Asked,
    /// The conversation was answered there last, and is cached there.
    Stays,
    /// So much of the budget is spent.
    Saves,
    /// Nobody else is left.
    LastResort(Box<Reason>),
}

/// Why a route is out of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Purpose(Purpose),
    NoCredentials(String),
    Lacks(Need),
    /// Nobody knows whether its model can.
    Undeclared(Need),
    Window {
        tokens: u64,
        window: u64,
    },
    Dead,
    Resting {
        left: Duration,
    },
    Probed,
    NotAFallback,
    UnknownPrice,
    Dearer,
}

/// What is done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Those that are kept are tried one after the other.
    Try,
    /// All of them are left alone; the one that is kept is tried after this pause.
    Wait(Duration),
    Nobody(String),
}

/// Everything that was considered: those that are kept in the order they are tried, then those
/// that are dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// Whose routes these are, where the purpose has none of its own.
    pub purpose: Purpose,
    pub considered: Vec<Considered>,
    pub plan: Plan,
    /// Who would be first if all were well.
    pub primary: Option<Candidate>,
    /// The word that was taken for another model.
    pub alias: Option<Arc<str>>,
}

impl Resolution {
    pub fn candidates(&self) -> impl Iterator<Item = &Candidate> {
        self.considered.iter().filter_map(|it| match it.verdict {
            Verdict::Kept(_) => Some(&it.candidate),
            Verdict::Dropped(_) => None,
        })
    }

    /// What became of a route.
    pub fn verdict(&self, id: &str) -> Option<&Verdict> {
        let found = self.considered.iter().find(|it| &*it.candidate.id == id);
        found.map(|it| &it.verdict)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Purpose(purpose) => write!(f, "is for `{}`", purpose.slug()),
            Self::NoCredentials(reason) => {
                // A remedy may show lines of a file; a reason is one line of a list.
                let lines: Vec<&str> = reason.lines().collect();
                write!(f, "no credentials: {}", lines.join(" "))
            }
            Self::Lacks(need) => write!(f, "lacks {}", need.as_str()),
            Self::Undeclared(need) => write!(
                f,
                "is not known to have {name}; if it has, say `requires = {{ {name} = true }}`",
                name = need.as_str()
            ),
            Self::Window { tokens, window } => write!(
                f,
                "its window of {window} tokens is too small for about {tokens}"
            ),
            Self::Dead => f.write_str("does not exist or cannot be reached as configured"),
            Self::Resting { left } => {
                write!(f, "is left alone for {} s after failures", seconds(*left))
            }
            Self::Probed => f.write_str("is being tried by another call"),
            Self::NotAFallback => f.write_str("is no fallback of the first route"),
            Self::UnknownPrice => f.write_str("its price is not known, and there is a budget"),
            Self::Dearer => f.write_str("costs more than what is left is for"),
        }
    }
}

fn seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Next => f.write_str("if those before it fail"),
            Self::Asked => f.write_str("asked for by name"),
            Self::Stays => f.write_str("the conversation is cached there"),
            Self::Saves => f.write_str("saves what is left of the budget"),
            Self::LastResort(reason) => write!(f, "nobody else is left: it {reason}"),
        }
    }
}
