//! The actor: one loop that owns the engine and is the only place where the session changes. A
//! command is dealt with in a few lines and by one collaborator; the work goes on in a task of its
//! own, so that commands are heard whatever the engine does.

use std::collections::HashMap;
use std::sync::Arc;

use caliban_agent::{Listener, Mailbox, Outcome, RunTotals};
use caliban_model::CancellationToken;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::changes::LastTold;
use crate::command::{Attach, Command, Prompt, PromptId};
use crate::crash::guarded;
use crate::engine::{Controls, Engine, ExchangeEnd};
use crate::event::{Answered, By, ClosedWhy, What};
use crate::fanout::Fanout;
use crate::handle::{Stage, State};
use crate::inbox::{Inbox, Work};
use crate::questions::Questions;

/// A session while it lives.
pub(crate) struct Actor {
    /// Away while it works; gone for good once it broke.
    pub(crate) engine: Option<Box<dyn Engine>>,
    pub(crate) controls: Arc<dyn Controls>,
    pub(crate) mailbox: Mailbox,
    pub(crate) fanout: Arc<Fanout>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) inbox: Inbox,
    /// Those that were to join what is being worked on, and what they bring along if they come
    /// too late.
    pub(crate) steering: HashMap<PromptId, Attach>,
    pub(crate) running: Option<Running>,
    pub(crate) leaving: Option<Leaving>,
    pub(crate) totals: RunTotals,
    pub(crate) state: watch::Sender<State>,
}

/// What is being worked on.
pub(crate) struct Running {
    pub(crate) id: PromptId,
    pub(crate) stop: CancellationToken,
    /// What everybody was told last.
    pub(crate) told: LastTold,
    task: JoinHandle<Returned>,
}

/// The engine comes back with how the work ended, unless it broke.
type Returned = Result<(Box<dyn Engine>, ExchangeEnd), String>;

/// The session ends, and how.
#[derive(Debug, Clone)]
pub(crate) struct Leaving {
    why: ClosedWhy,
    /// What becomes of what waits; nothing where it is still worked on.
    unbegun: Option<Outcome>,
}

impl Actor {
    pub(crate) async fn live(mut self, mut wishes: mpsc::Receiver<Command>) {
        if let Some(engine) = &self.engine {
            self.fanout.open(engine.facts());
        }
        let mut is_held = true;
        let fanout = Arc::clone(&self.fanout);
        loop {
            self.go_on();
            if self.running.is_none() && self.leaving.is_some() {
                return self.close().await;
            }
            tokio::select! {
                biased;
                wish = next(&mut wishes, &fanout), if is_held => {
                    is_held = wish.is_some();
                    self.heed(wish);
                }
                returned = returned(&mut self.running) => self.take_in(returned),
            }
        }
    }

    /// Begins the next piece of work, if there is any and nothing keeps it.
    fn go_on(&mut self) {
        if self.running.is_none() {
            let cut = self
                .leaving
                .as_ref()
                .and_then(|leaving| leaving.unbegun.clone());
            match cut {
                Some(outcome) => self.end_unbegun(&outcome),
                None => {
                    if let Some(work) = self.inbox.pop() {
                        self.start(work);
                    }
                }
            }
        }
        self.show_state();
    }

    fn start(&mut self, work: Work) {
        let Some(mut engine) = self.engine.take() else {
            return;
        };
        let (id, stop) = (work.id().clone(), CancellationToken::new());
        self.fanout.set_exchange(Some(id.clone()));
        let facts = engine.facts();
        let known = LastTold::of(&facts);
        self.fanout.tell(What::Began {
            prompt: id.clone(),
            facts: Arc::new(facts),
        });
        let (told, cancel) = (Arc::clone(&self.fanout), stop.clone());
        let task = tokio::spawn(async move {
            let end = guarded(perform(&mut *engine, work, &*told, &cancel)).await?;
            Ok((engine, end))
        });
        self.running = Some(Running {
            id,
            stop,
            told: known,
            task,
        });
    }

    /// The work has ended.
    fn take_in(&mut self, returned: Returned) {
        let Some(Running { id, told, .. }) = self.running.take() else {
            return;
        };
        self.tell_withdrawn(self.questions.withdraw());
        let outcome = match returned {
            Ok((engine, ExchangeEnd { outcome, totals })) => {
                self.engine = Some(engine);
                self.totals = totals;
                outcome
            }
            Err(message) => Outcome::Internal { message },
        };
        self.tell_changes(&told);
        self.finish(id, outcome.clone());
        self.fanout.set_exchange(None);
        self.gather_mail(&outcome);
        self.keep_going_after(outcome);
    }

    /// What came too late to join comes next; what joined has ended with what it joined.
    fn gather_mail(&mut self, outcome: &Outcome) {
        while let Some((id, message)) = self.mailbox.take_last() {
            let attach = self.steering.remove(&id).unwrap_or(Attach::Nothing);
            let prompt = Prompt {
                id,
                message,
                attach,
            };
            self.inbox.push_first(Work::Prompt(Box::new(prompt)));
        }
        for (id, _) in self.steering.drain() {
            self.inbox.ended(id, outcome.clone(), self.totals.clone());
        }
    }

    /// What the end of one piece of work means for the session.
    fn keep_going_after(&mut self, outcome: Outcome) {
        if self.engine.is_none() {
            self.leave(ClosedWhy::Crashed, Some(outcome));
        } else if let Outcome::BudgetExceeded { .. } = outcome {
            self.leave(ClosedWhy::Budget, Some(outcome));
        } else if self.inbox.len() == 0 && self.leaving.is_none() {
            self.fanout.tell(What::Idle);
        }
    }

    fn finish(&mut self, prompt: PromptId, outcome: Outcome) {
        self.inbox
            .ended(prompt.clone(), outcome.clone(), self.totals.clone());
        let totals = Box::new(self.totals.clone());
        self.fanout.tell(What::Ended {
            prompt,
            outcome,
            totals,
        });
    }

    fn end_unbegun(&mut self, outcome: &Outcome) {
        while let Some(work) = self.inbox.pop() {
            self.finish(work.id().clone(), outcome.clone());
        }
    }

    pub(crate) fn leave(&mut self, why: ClosedWhy, unbegun: Option<Outcome>) {
        self.leaving = Some(Leaving { why, unbegun });
    }

    async fn close(mut self) {
        self.fanout.tell(What::Closing);
        let trouble = match self.engine.take() {
            Some(engine) => engine.close().await.err(),
            None => None,
        };
        self.tell_withdrawn(self.questions.close());
        let why = self
            .leaving
            .map_or(ClosedWhy::Shutdown, |leaving| leaving.why);
        self.state.send_replace(State {
            stage: Stage::Closed,
            waiting: 0,
        });
        self.fanout.tell(What::Closed { why, trouble });
    }

    fn tell_withdrawn(&self, questions: Vec<Arc<str>>) {
        for question in questions {
            self.fanout.tell(What::Answered(Answered {
                question,
                by: By::Withdrawn,
            }));
        }
    }

    fn show_state(&self) {
        let stage = match &self.running {
            Some(running) => Stage::Working {
                prompt: running.id.clone(),
            },
            None => Stage::Idle,
        };
        let current = State {
            stage,
            waiting: self.inbox.len(),
        };
        self.state.send_if_modified(|known| {
            let is_new = *known != current;
            *known = current;
            is_new
        });
    }
}

async fn perform(
    engine: &mut dyn Engine,
    work: Work,
    told: &dyn Listener,
    cancel: &CancellationToken,
) -> ExchangeEnd {
    match work {
        Work::Prompt(prompt) => engine.work(*prompt, told, cancel).await,
        Work::Compact { instructions, .. } => engine.compact(instructions, told, cancel).await,
        Work::Shell { id, command } => engine.shell(id, command, told, cancel).await,
        Work::Rewind { rewind, .. } => engine.rewind(rewind, told, cancel).await,
    }
}

/// The next command, once there is room for what it will be told with.
async fn next(wishes: &mut mpsc::Receiver<Command>, fanout: &Fanout) -> Option<Command> {
    fanout.room().await;
    wishes.recv().await
}

/// Waits for what is being worked on, for ever where nothing is.
async fn returned(running: &mut Option<Running>) -> Returned {
    match running {
        None => std::future::pending().await,
        Some(running) => match (&mut running.task).await {
            Ok(returned) => returned,
            Err(error) => Err(format!("internal error: {error}; please report it")),
        },
    }
}
