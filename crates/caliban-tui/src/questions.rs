//! Questions that wait for the operator, and who has the keyboard. No key that was typed for
//! something else answers one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_session::{Asked, QuestionKind};

use crate::layers::{ElicitationForm, PLAN_TOOL, PermissionForm, PlanForm};

/// How long after it appears, or gets the keyboard, nothing can be chosen.
pub(crate) const DEAF: Duration = Duration::from_millis(300);
/// How long nobody may have typed before a question takes the keyboard by itself.
pub(crate) const QUIET: Duration = Duration::from_secs(1);

/// The questions that are open, the one that is asked first.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: VecDeque<Open>,
    keyboard: Keyboard,
}

/// An open question with its form.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: Arc<str>,
    /// The agent that wants to know, where it is not the session's own.
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) form: Form,
    since: Instant,
}

#[derive(Debug)]
pub(crate) enum Form {
    Permission(Box<PermissionForm>),
    Plan(Box<PlanForm>),
    Elicitation(Box<ElicitationForm>),
}

/// Who hears keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Keyboard {
    #[default]
    Draft,
    /// The draft does, because the operator turned back to it: he turns to the question himself.
    Kept,
    /// The question does, from this moment on.
    Question { from: Instant },
}

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn add(&mut self, asked: &Asked, now: Instant) {
        let form = match &asked.kind {
            QuestionKind::Permission(inquiry) if &*inquiry.call.name == PLAN_TOOL => {
                Form::Plan(Box::new(PlanForm::new(inquiry)))
            }
            QuestionKind::Permission(inquiry) => {
                Form::Permission(Box::new(PermissionForm::new(inquiry)))
            }
            QuestionKind::Elicitation(elicitation) => {
                Form::Elicitation(Box::new(ElicitationForm::new(elicitation)))
            }
        };
        self.open.push_back(Open {
            id: Arc::clone(&asked.question),
            agent: asked.agent.clone(),
            form,
            since: now,
        });
    }

    /// A question is over.
    pub(crate) fn remove(&mut self, id: &str, now: Instant) {
        let was_first = self.open.front().is_some_and(|open| *open.id == *id);
        self.open.retain(|open| *open.id != *id);
        if was_first {
            // The next one is as new as if it had just been asked.
            self.keyboard = Keyboard::Draft;
            if let Some(next) = self.open.front_mut() {
                next.since = now;
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.keyboard = Keyboard::Draft;
    }

    pub(crate) fn first(&self) -> Option<&Open> {
        self.open.front()
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut Open> {
        self.open.front_mut()
    }

    /// Gives the first question the keyboard where nobody writes.
    pub(crate) fn settle(&mut self, now: Instant, last_typed: Option<Instant>, is_empty: bool) {
        let is_quiet = last_typed.is_none_or(|typed| typed + QUIET <= now);
        if !self.open.is_empty() && self.keyboard == Keyboard::Draft && is_empty && is_quiet {
            self.take(now);
        }
    }

    /// The operator turns to the question.
    pub(crate) fn take(&mut self, now: Instant) {
        if !self.open.is_empty() {
            self.keyboard = Keyboard::Question { from: now + DEAF };
        }
    }

    /// The operator turns back to the draft. What is asked later is another matter.
    pub(crate) fn release(&mut self) {
        if !self.open.is_empty() {
            self.keyboard = Keyboard::Kept;
        }
    }

    /// How keys stand to the first question.
    pub(crate) fn attention(&self, now: Instant) -> Attention {
        match (self.open.front(), self.keyboard) {
            (None, _) => Attention::None,
            (Some(_), Keyboard::Draft | Keyboard::Kept) => Attention::Waits,
            (Some(open), Keyboard::Question { from }) => {
                if from.max(open.since + DEAF) <= now {
                    Attention::Listens
                } else {
                    Attention::Deaf
                }
            }
        }
    }

    /// When the first question begins to listen or may take the keyboard.
    pub(crate) fn deadline(&self, now: Instant, last_typed: Option<Instant>) -> Option<Instant> {
        let open = self.open.front()?;
        match self.keyboard {
            Keyboard::Kept => None,
            Keyboard::Draft => last_typed
                .map(|typed| typed + QUIET)
                .filter(|due| *due > now),
            Keyboard::Question { from } => {
                let due = from.max(open.since + DEAF);
                (due > now).then_some(due)
            }
        }
    }
}

/// What a key means to the first question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    /// There is none.
    None,
    /// Keys go into the draft; Tab turns to the question.
    Waits,
    /// It is too new: keys do nothing.
    Deaf,
    Listens,
}
