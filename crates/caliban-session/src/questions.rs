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
    Told,
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

    /// What asked is over: the questions that were told and will have no answer.
    pub(crate) fn withdraw(&self) -> Vec<Arc<str>> {
        let open = self.desk().permissions.drain().collect::<Vec<_>>();
        open.into_iter()
            .filter(|(_, slot)| slot.publicity == Publicity::Told)
            .map(|(question, _)| question)
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
        let answers = desk
            .permissions
            .values_mut()
            .filter_map(|slot| slot.answer.take());
        for answer in answers {
            // Whoever asked may have stopped waiting.
            let _ = answer.send(refusal(DESERTED.to_owned()));
        }
        let replies = desk
            .elicitations
            .values_mut()
            .filter_map(|slot| slot.answer.take());
        for reply in replies {
            let _ = reply.send(Reply::Cancel);
        }
    }

    async fn wait<T>(&self, answered: oneshot::Receiver<T>) -> Option<T> {
        match self.patience {
            None => answered.await.ok(),
            Some(patience) => tokio::time::timeout(patience, answered).await.ok()?.ok(),
        }
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
        if self.attendants == 0 {
            return None;
        }
        let slot = self.slot(question)?;
        slot.publicity = Publicity::Told;
        slot.answered.take()
    }

    /// The same for what a server asks.
    fn elicited(&mut self, question: &Arc<str>) -> Option<oneshot::Receiver<Reply>> {
        if self.attendants == 0 || self.elicitations.len() >= MAX_OPEN {
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
                    Some(answer) => answer,
                    None => refusal(self.late()),
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
                Some(answer) => answer,
                None => refusal(self.late()),
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
            let reply = self.wait(answered).await.unwrap_or(Reply::Cancel);
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
