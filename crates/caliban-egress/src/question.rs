//! Asking about targets that no list names: one question for each, however many connections wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::audit::Rule;
use crate::entry::Entry;
use crate::host::Target;
use crate::policy::Policy;
use crate::stop::Refusal;

/// How many questions one command may raise; a program that tries names one after the other is not
/// answered for ever.
const QUESTIONS: usize = 16;

/// Who can be asked.
pub trait Asker: Send + Sync {
    /// Asks about one target. The future is dropped when the command ends first; the question is then
    /// moot.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;
}

/// May this be reached?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub target: Target,
    /// The entry of the allowed domains that would allow it: what an answer for longer stands for.
    pub entry: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// As long as the command runs.
    AllowOnce,
    AllowSession,
    Deny,
    NobodyAttends,
}

/// The questions of one command.
pub(crate) struct Asking {
    asker: Arc<dyn Asker>,
    policy: Arc<Policy>,
    patience: Duration,
    raised: Mutex<Raised>,
}

#[derive(Default)]
struct Raised {
    questions: BTreeMap<Entry, watch::Receiver<Option<Answer>>>,
    /// Dropped with the command, and the open questions with it.
    tasks: JoinSet<()>,
}

impl Asking {
    pub(crate) fn new(asker: Arc<dyn Asker>, policy: Arc<Policy>, patience: Duration) -> Self {
        Self {
            asker,
            policy,
            patience,
            raised: Mutex::default(),
        }
    }

    /// Waits for the answer, for so long as clients have patience. The question stays open after that,
    /// and its answer holds for the next try.
    pub(crate) async fn about(&self, target: &Target) -> Result<Rule, Refusal> {
        let mut answer = self.raise(target).ok_or(Refusal::TooManyQuestions)?;
        let answered = answer.wait_for(Option::is_some);
        match tokio::time::timeout(self.patience, answered).await {
            Ok(Ok(answer)) => match *answer {
                Some(Answer::AllowOnce) => Ok(Rule::Command),
                Some(Answer::AllowSession) => Ok(Rule::Session),
                Some(Answer::Deny) => Err(Refusal::Declined),
                Some(Answer::NobodyAttends) => Err(Refusal::Unlisted),
                None => Err(Refusal::Unanswered),
            },
            // Time is up, or whoever was asked is gone.
            Ok(Err(_)) | Err(_) => Err(Refusal::Unanswered),
        }
    }

    fn raise(&self, target: &Target) -> Option<watch::Receiver<Option<Answer>>> {
        let entry = Entry::covering(target);
        let mut raised = self.raised();
        if let Some(answer) = raised.questions.get(&entry) {
            return Some(answer.clone());
        }
        if raised.questions.len() >= QUESTIONS {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        raised.questions.insert(entry.clone(), receiver.clone());
        let (asker, policy) = (self.asker.clone(), self.policy.clone());
        let question = Question {
            target: target.clone(),
            entry: entry.to_string(),
        };
        raised.tasks.spawn(async move {
            let answer = asker.ask(question).await;
            match answer {
                Answer::AllowSession => policy.grant(entry),
                Answer::AllowOnce | Answer::Deny | Answer::NobodyAttends => {}
            }
            // Nobody may be waiting any more.
            let _ = sender.send(Some(answer));
        });
        Some(receiver)
    }

    fn raised(&self) -> MutexGuard<'_, Raised> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
