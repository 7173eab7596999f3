//! Questions that wait for an answer, and who may give it. The one operator of a session: whoever
//! attends is asked, by an event; where nobody does, what stands in answers at once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use caliban_agent::{
    Answer, Elicitation, Inquiry, Interrupt, Operator, Remember, Reply, SharedOperator, Unattended,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::event::{Answered, Asked, By, QuestionKind, What};
use crate::fanout::Fanout;

/// Questions that are open at the same time; agents ask one at a time each.
const MAX_OPEN: usize = 1024;
/// Why nothing is permitted once those who attended have gone.
const DESERTED: &str = "the client has closed its end and can no longer answer";

/// The questions of a session.
pub struct Questions {
    desk: Mutex<Desk>,
    /// How long an answer may take.
    patience: Option<Duration>,
    stand_in: OnceLock<SharedOperator>,
    told: Mutex<Weak<Fanout>>,
}

#[derive(Default)]
struct Desk {
    permissions: HashMap<Arc<str>, Slot<Answer>>,
    elicitations: HashMap<Arc<str>, Slot<Reply>>,
    attendants: usize,
    hours: Hours,
}

/// Whether questions may still be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Hours {
    #[default]
    Open,
    Closed,
}

/// Both ends of the way an answer takes. It may come before whoever asked begins to wait, and
/// whoever asks may wait before anybody is told of the question.
struct Slot<T> {
    answer: Option<oneshot::Sender<T>>,
    answered: Option<oneshot::Receiver<T>>,
    publicity: Publicity,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Publicity {
    Unknown,
    /// By the work, with which it ends.
    Told,
    /// Aside from the work, which it may outlive: a command in the background wants to know.
    ToldAside,
}

/// Why a question has no answer.
enum Unanswered {
    Late,
    Withdrawn,
}

impl<T> Slot<T> {
    fn new() -> Self {
        let (answer, answered) = oneshot::channel();
        Self {
            answer: Some(answer),
            answered: Some(answered),
            publicity: Publicity::Unknown,
        }
    }
}

/// There is no such question, or somebody else has answered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOpen;

impl fmt::Debug for Questions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Questions")
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl Questions {
    /// Questions that wait this long for an answer.
    pub fn new(patience: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            desk: Mutex::default(),
            patience,
            stand_in: OnceLock::new(),
            told: Mutex::default(),
        })
    }

    /// Who answers where nobody attends; without anybody, every question is a refusal.
    pub fn stand_in(&self, operator: SharedOperator) {
        // There is one at most.
        let _ = self.stand_in.set(operator);
    }

    fn stands_in(&self) -> &dyn Operator {
        match self.stand_in.get() {
            Some(operator) => &**operator,
            None => &Unattended,
        }
    }

    pub(crate) fn tell(&self, fanout: &Arc<Fanout>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        *told = Arc::downgrade(fanout);
    }

    fn told(&self) -> Option<Arc<Fanout>> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.upgrade()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody answers from here on, until the guard is dropped.
    pub(crate) fn attend(self: &Arc<Self>) -> Attendance {
        self.desk().attendants += 1;
        Attendance(Arc::clone(self))
    }

    /// Makes room for the answer to a question that is about to be told.
    pub(crate) fn lay_out(&self, question: &Arc<str>) {
        let mut desk = self.desk();
        if let Some(slot) = desk.slot(question) {
            slot.publicity = Publicity::Told;
        }
    }

    /// The answer to a question is about to be told.
    pub(crate) fn settle(&self, question: &str) {
        self.desk().permissions.remove(question);
    }

    /// The work is over: the questions that it told and that will have no answer. What was asked
    /// aside from it stays open.
    pub(crate) fn withdraw(&self) -> Vec<Arc<str>> {
        let mut desk = self.desk();
        let of_work = |slot: &Slot<_>| slot.publicity != Publicity::ToldAside;
        let over = desk.permissions.extract_if(|_, slot| of_work(slot));
        over.filter(|(_, slot)| slot.publicity == Publicity::Told)
            .map(|(question, _)| question)
            .collect()
    }

    /// The session is over: every question that was told and will have no answer. None is told
    /// from here on.
    pub(crate) fn close(&self) -> Vec<Arc<str>> {
        let mut desk = self.desk();
        desk.hours = Hours::Closed;
        let elicited: Vec<_> = desk.elicitations.drain().map(|(it, _)| it).collect();
        let asked = desk.permissions.drain();
        asked
            .filter(|(_, slot)| slot.publicity != Publicity::Unknown)
            .map(|(question, _)| question)
            .chain(elicited)
            .collect()
    }

    /// The first answer counts.
    pub(crate) fn answer(&self, question: &str, answer: Answer) -> Result<(), NotOpen> {
        let mut desk = self.desk();
        let slot = desk.permissions.get_mut(question).ok_or(NotOpen)?;
        let sender = slot.answer.take().ok_or(NotOpen)?;
        sender.send(answer).map_err(|_| NotOpen)
    }

    pub(crate) fn reply(&self, question: &str, reply: Reply) -> Result<(), NotOpen> {
        let mut desk = self.desk();
        let slot = desk.elicitations.get_mut(question).ok_or(NotOpen)?;
        let sender = slot.answer.take().ok_or(NotOpen)?;
        sender.send(reply).map_err(|_| NotOpen)
    }

    fn leave(&self) {
        let mut desk = self.desk();
        desk.attendants = desk.attendants.saturating_sub(1);
        if desk.attendants > 0 {
            return;
        }
        for slot in desk.permissions.values_mut() {
            let answer = match slot.publicity {
                Publicity::Unknown | Publicity::Told => refusal(DESERTED.to_owned()),
                // Nothing hears a reason there, and nobody has refused anything.
                Publicity::ToldAside => Answer::Nobody,
            };
            if let Some(waiting) = slot.answer.take() {
                // Whoever asked may have stopped waiting.
                let _ = waiting.send(answer);
            }
        }
        let replies = desk
            .elicitations
            .values_mut()
            .filter_map(|slot| slot.answer.take());
        for reply in replies {
            let _ = reply.send(Reply::Cancel);
        }
    }

    async fn wait<T>(&self, answered: oneshot::Receiver<T>) -> Result<T, Unanswered> {
        let answer = match self.patience {
            None => answered.await,
            Some(patience) => tokio::time::timeout(patience, answered)
                .await
                .map_err(|_| Unanswered::Late)?,
        };
        answer.map_err(|_| Unanswered::Withdrawn)
    }

    fn late(&self) -> String {
        let millis = self.patience.unwrap_or_default().as_millis();
        format!("the client did not answer within {millis} ms")
    }
}

fn refusal(reason: String) -> Answer {
    Answer::Deny {
        reason: Some(reason),
        remember: Remember::Once,
        interrupt: Interrupt::No,
    }
}

impl Desk {
    /// The place of a question; nothing where there are too many.
    fn slot(&mut self, question: &Arc<str>) -> Option<&mut Slot<Answer>> {
        if !self.permissions.contains_key(question) {
            if self.permissions.len() >= MAX_OPEN {
                return None;
            }
            self.permissions.insert(Arc::clone(question), Slot::new());
        }
        self.permissions.get_mut(question)
    }

    /// What to wait for; nothing where nobody attends.
    fn waited_for(&mut self, question: &Arc<str>) -> Option<oneshot::Receiver<Answer>> {
        let has_attendants = self.attendants > 0;
        let slot = self.slot(question)?;
        slot.answered.take().filter(|_| has_attendants)
    }

    /// The same for a question that is about to be told aside from the work.
    fn laid_out(&mut self, question: &Arc<str>) -> Option<oneshot::Receiver<Answer>> {
        if self.attendants == 0 || self.hours == Hours::Closed {
            return None;
        }
        let slot = self.slot(question)?;
        slot.publicity = Publicity::ToldAside;
        slot.answered.take()
    }

    /// The same for what a server asks.
    fn elicited(&mut self, question: &Arc<str>) -> Option<oneshot::Receiver<Reply>> {
        let is_closed = self.hours == Hours::Closed;
        if self.attendants == 0 || is_closed || self.elicitations.len() >= MAX_OPEN {
            return None;
        }
        let mut slot = Slot::new();
        let answered = slot.answered.take();
        self.elicitations.insert(Arc::clone(question), slot);
        answered
    }
}

impl Operator for Questions {
    fn decide<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Answer> {
        async move {
            let answered = self.desk().waited_for(&inquiry.id);
            match answered {
                None => self.stands_in().decide(inquiry).await,
                Some(answered) => match self.wait(answered).await {
                    Ok(answer) => answer,
                    Err(Unanswered::Late) => refusal(self.late()),
                    Err(Unanswered::Withdrawn) => Answer::Nobody,
                },
            }
        }
        .boxed()
    }

    fn decide_aside<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Answer> {
        async move {
            let question = &inquiry.id;
            let answered = self.desk().laid_out(question);
            let Some(answered) = answered else {
                return self.stands_in().decide_aside(inquiry).await;
            };
            let mut asking = Asking {
                questions: self,
                question,
                by: By::Withdrawn,
            };
            if let Some(told) = self.told() {
                told.tell(What::Asked(Box::new(Asked {
                    question: Arc::clone(question),
                    agent: inquiry.call.agent.clone(),
                    kind: QuestionKind::Permission(Box::new(inquiry.clone())),
                })));
            }
            let answer = match self.wait(answered).await {
                Ok(answer) => answer,
                Err(Unanswered::Late) => Answer::TimedOut,
                Err(Unanswered::Withdrawn) => Answer::Nobody,
            };
            asking.by = By::Operator(answer.clone());
            answer
        }
        .boxed()
    }

    fn elicit<'a>(&'a self, elicitation: &'a Elicitation) -> BoxFuture<'a, Reply> {
        async move {
            let question: Arc<str> = Arc::from(uuid::Uuid::new_v4().to_string());
            let answered = self.desk().elicited(&question);
            let Some(answered) = answered else {
                return self.stands_in().elicit(elicitation).await;
            };
            let mut asking = Asking {
                questions: self,
                question: &question,
                by: By::Withdrawn,
            };
            if let Some(told) = self.told() {
                told.tell(What::Asked(Box::new(Asked {
                    question: Arc::clone(&question),
                    agent: None,
                    kind: QuestionKind::Elicitation(elicitation.clone()),
                })));
            }
            let reply = match self.wait(answered).await {
                Ok(reply) => reply,
                Err(Unanswered::Late | Unanswered::Withdrawn) => Reply::Cancel,
            };
            asking.by = By::Replied(reply.clone());
            reply
        }
        .boxed()
    }
}

/// Closes what was asked aside from the work on every path, and tells how it ended.
struct Asking<'a> {
    questions: &'a Questions,
    question: &'a Arc<str>,
    by: By,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let is_open = {
            let mut desk = self.questions.desk();
            let elicited = desk.elicitations.remove(self.question).is_some();
            elicited || desk.permissions.remove(self.question).is_some()
        };
        // Who withdrew it before has told so.
        if is_open && let Some(told) = self.questions.told() {
            told.tell(What::Answered(Answered {
                question: Arc::clone(self.question),
                by: std::mem::replace(&mut self.by, By::Withdrawn),
            }));
        }
    }
}

/// While it lives, questions wait for an answer.
#[derive(Debug)]
pub struct Attendance(Arc<Questions>);

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.leave();
    }
}
