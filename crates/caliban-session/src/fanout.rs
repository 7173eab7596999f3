//! Who hears a session: the journal first, then every hearer, each at its own pace.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use caliban_agent::{Event, Listener};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::command::PromptId;
use crate::engine::Journal;
use crate::event::{Answered, Asked, By, Facts, QuestionKind, SessionEvent, What};
use crate::questions::Questions;
use crate::standing::Standing;

/// Events that may wait for the first hearer before the work waits for it.
const HELD_BACK: u64 = 256;
/// Events that may wait for the first hearer before nothing is told any more that does not belong
/// to the work: what servers and hooks say, unasked.
const DROPPED: u64 = 4_096;

/// Events that may wait for the first hearer before no command is taken in any more.
const SWAMPED: u64 = 250_000;
/// What may be said before a session opens; more is not told.
const EARLY: usize = 256;

/// How many events are kept for hearers that come later or fall behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention(pub usize);

impl Retention {
    /// For a session with one hearer that is there from the beginning.
    pub const NONE: Self = Self(0);
    /// For a session with several.
    pub const USUAL: Self = Self(4_096);
}

/// The stream of a session.
#[derive(Debug)]
pub struct Fanout {
    log: Mutex<Log>,
    /// There is something to hear.
    pub(crate) grown: Notify,
    /// The first hearer has caught up.
    drained: Notify,
    journal: OnceLock<Arc<dyn Journal>>,
    questions: Arc<Questions>,
}

#[derive(Debug)]
struct Log {
    events: VecDeque<Arc<SessionEvent>>,
    /// The number of the first event in `events`.
    first: u64,
    retention: usize,
    /// The number of the event that the first hearer wants next; nothing once it is gone.
    leader: Option<u64>,
    exchange: Option<PromptId>,
    is_closed: bool,
    dropped: u64,
    /// What all events so far come to.
    standing: Standing,
    /// What was said before the session opened; nothing once it has.
    early: Option<Vec<Event>>,
}

impl Log {
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn behind(&self) -> u64 {
        self.leader.map_or(0, |leader| self.next() - leader)
    }

    fn push(&mut self, what: What) {
        let seq = self.next();
        let event = SessionEvent {
            seq,
            at: Timestamp::now(),
            exchange: self.exchange.clone(),
            what,
        };
        self.standing.hear(&event);
        self.events.push_back(Arc::new(event));
        self.trim();
    }

    /// Lets go of what everybody who must have it has.
    fn trim(&mut self) {
        let wanted = self.leader.unwrap_or(u64::MAX);
        while self.events.len() > self.retention && self.first < wanted {
            self.events.pop_front();
            self.first += 1;
        }
    }
}

/// What a hearer finds.
pub(crate) enum Backlog {
    Events(Vec<Arc<SessionEvent>>),
    /// These many were let go before it came for them.
    Missed(u64),
    NothingYet,
    /// There will be nothing more.
    End,
}

impl Fanout {
    pub fn new(retention: Retention, questions: &Arc<Questions>) -> Arc<Self> {
        let fanout = Arc::new(Self {
            log: Mutex::new(Log {
                events: VecDeque::new(),
                first: 1,
                retention: retention.0,
                leader: Some(1),
                exchange: None,
                is_closed: false,
                dropped: 0,
                standing: Standing::default(),
                early: Some(Vec::new()),
            }),
            grown: Notify::new(),
            drained: Notify::new(),
            journal: OnceLock::new(),
            questions: Arc::clone(questions),
        });
        questions.tell(&fanout);
        fanout
    }

    /// Whoever keeps what is told; it hears of everything first. There is one for the whole life
    /// of a session.
    pub fn keep_in(&self, journal: Arc<dyn Journal>) {
        // A second one would keep half of a session.
        let _ = self.journal.set(journal);
    }

    /// Tells something at once, without waiting for anybody.
    pub(crate) fn tell(&self, what: What) {
        self.log().push(what);
        self.grown.notify_waiters();
    }

    /// Tells what the session is, before everything else.
    pub(crate) fn open(&self, facts: Facts) {
        let mut log = self.log();
        log.push(What::Opened(Arc::new(facts)));
        for event in log.early.take().into_iter().flatten() {
            log.push(What::Run(event));
        }
        drop(log);
        self.grown.notify_waiters();
    }

    /// Something that a part of the session says beside the work: kept, and told at once, unless
    /// the first hearer is hopelessly behind.
    pub fn say(&self, event: Event) {
        if let Some(journal) = self.journal.get() {
            journal.record_aside(&event);
        }
        let mut log = self.log();
        if let Some(early) = &mut log.early {
            if early.len() < EARLY {
                early.push(event);
            }
            return;
        }
        if log.behind() >= DROPPED {
            log.dropped += 1;
            return;
        }
        match std::mem::take(&mut log.dropped) {
            0 => {}
            missed => log.push(What::Run(Event::Notice {
                subtype: "dropped".into(),
                message: format!("{missed} notices were not told, because nobody listened"),
            })),
        }
        log.push(What::Run(event));
        drop(log);
        self.grown.notify_waiters();
    }

    /// From here on events belong to this prompt.
    pub(crate) fn set_exchange(&self, exchange: Option<PromptId>) {
        self.log().exchange = exchange;
    }

    /// Nothing will be told any more.
    pub(crate) fn close(&self) {
        self.log().is_closed = true;
        self.grown.notify_waiters();
    }

    /// What all events so far come to.
    pub(crate) fn standing(&self) -> Standing {
        self.log().standing.clone()
    }

    /// The number of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        self.log().next()
    }

    pub(crate) fn find(&self, from: u64, most: usize) -> Backlog {
        let log = self.log();
        if from < log.first {
            return Backlog::Missed(log.first - from);
        }
        let skipped = usize::try_from(from - log.first).unwrap_or(usize::MAX);
        let events: Vec<_> = log
            .events
            .iter()
            .skip(skipped)
            .take(most)
            .cloned()
            .collect();
        match (events.is_empty(), log.is_closed) {
            (false, _) => Backlog::Events(events),
            (true, true) => Backlog::End,
            (true, false) => Backlog::NothingYet,
        }
    }

    /// The first hearer has heard everything before this one; nothing once it is gone.
    pub(crate) fn led_to(&self, next: Option<u64>) {
        let mut log = self.log();
        log.leader = next;
        log.trim();
        drop(log);
        self.drained.notify_waiters();
    }

    /// Waits until commands may be taken in, each of which is told of.
    pub(crate) async fn room(&self) {
        self.wait_until_behind(SWAMPED).await;
    }

    /// Waits until fewer events than this wait for the first hearer.
    async fn wait_until_behind(&self, most: u64) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if self.log().behind() < most {
                return;
            }
            drained.await;
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(&self, event: Event) {
        if let Some(what) = self.translate(event) {
            self.tell(what);
        }
    }

    /// What an event of the engine is to those who hear the session. A question is laid out for
    /// its answer before anybody can hear of it.
    fn translate(&self, event: Event) -> Option<What> {
        match event.innermost() {
            (Event::PermissionAsked { inquiry }, agent) => {
                self.questions.lay_out(&inquiry.id);
                Some(What::Asked(Box::new(Asked {
                    question: Arc::clone(&inquiry.id),
                    agent: agent.cloned(),
                    kind: QuestionKind::Permission(inquiry.clone()),
                })))
            }
            (
                Event::PermissionAnswered {
                    inquiry, answer, ..
                },
                _,
            ) => {
                self.questions.settle(inquiry);
                Some(What::Answered(Answered {
                    question: Arc::clone(inquiry),
                    by: By::Operator(answer.clone()),
                }))
            }
            // The end of a prompt is told by the actor.
            (Event::Finished { .. }, None) => None,
            (
                Event::PromptAccepted { .. }
                | Event::TurnStarted { .. }
                | Event::TextDelta { .. }
                | Event::ThinkingDelta { .. }
                | Event::Answer(_)
                | Event::ToolReady { .. }
                | Event::ToolStarted { .. }
                | Event::SentOn { .. }
                | Event::HistoryReplaced { .. }
                | Event::ToolProgress { .. }
                | Event::ToolFinished { .. }
                | Event::AssistantMessage { .. }
                | Event::Interrupted { .. }
                | Event::Steered { .. }
                | Event::ToolResults { .. }
                | Event::TurnEnded { .. }
                | Event::Retrying(_)
                | Event::Warning(_)
                | Event::Notice { .. }
                | Event::HookFired { .. }
                | Event::HookPassed { .. }
                | Event::CompactionStarted { .. }
                | Event::CompactionFinished { .. }
                | Event::Nested { .. }
                | Event::Finished { .. },
                _,
            ) => Some(What::Run(event)),
        }
    }
}

impl Listener for Fanout {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        let keeping = self
            .journal
            .get()
            .and_then(|journal| journal.record(&event));
        // An answer comes in thousands of pieces, and nearly all of them need no waiting.
        if keeping.is_none() && self.log().behind() < HELD_BACK {
            self.pass_on(event);
            return ready(()).boxed();
        }
        async move {
            if let Some(keeping) = keeping {
                keeping.await;
            }
            self.wait_until_behind(HELD_BACK).await;
            // Nothing may come between: who waits may be cancelled.
            self.pass_on(event);
        }
        .boxed()
    }
}
