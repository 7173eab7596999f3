//! The life of an agent in its own process: a session, those who are attached to it, and the end,
//! which is written down before the process goes.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use caliban_agent::{Outcome, RunTotals};
use caliban_model::CancellationToken;
use caliban_session::{
    Attach, Attendance, ClosedWhy, Command, Delivery, EventBatch, Events, Prompt, SessionHandle,
    Settled, Shutdown, What,
};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::conduct::{Attends, Conduct, OnFailure};
use super::questions::{Desk, Presence, Verdict};
use super::ring::Kind;
use super::room::Room;
use super::telling::lines;
use super::visitor::{Wish, Word, state_frame};
use crate::directory::AgentDirectory;
use crate::state::{End, Needs, NeedsKind, Phase, Report};
use crate::wire::line;

/// Prompts whose end is remembered for a server that comes after this process.
const SETTLED: usize = 256;

/// A session and all that its worker has to do with.
pub(crate) struct Host {
    pub(crate) handle: SessionHandle,
    pub(crate) events: Events,
    pub(crate) room: Arc<Room>,
    pub(crate) directory: AgentDirectory,
    pub(crate) words: mpsc::Receiver<Word>,
    pub(crate) conduct: Conduct,
    /// Whether it has something to do from the beginning.
    pub(crate) work: Work,
    /// Names this process, where the session is a server's.
    pub(crate) life: Option<Arc<str>>,
    /// SIGTERM.
    pub(crate) stop: CancellationToken,
}

/// What the host knows while the session lives.
struct Life {
    handle: SessionHandle,
    room: Arc<Room>,
    directory: AgentDirectory,
    desk: Desk,
    conduct: Conduct,
    session_id: String,
    work: Work,
    last: Option<(Outcome, RunTotals)>,
    /// Names this process, where the session is a server's.
    process: Option<Arc<str>>,
    /// How prompts ended: a server that comes after this process wants to know.
    settled: VecDeque<Settled>,
    ending: Option<Ending>,
    idle_since: Instant,
    /// What it had come to before this process: cost and turns.
    before: (Decimal, u32),
    /// So that questions wait for those who attach instead of being refused.
    _attendance: Option<Attendance>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Going,
    Waiting,
}

/// Why the session ends.
#[derive(Debug, Clone)]
struct Ending {
    state: Phase,
    reason: Option<String>,
}

impl Host {
    /// Lives to the end of the session and writes down what that was.
    pub(crate) async fn live(self) -> io::Result<End> {
        let Self {
            handle,
            mut events,
            room,
            directory,
            mut words,
            conduct,
            work,
            life,
            stop,
        } = self;
        let before = room.report();
        let mut life = Life {
            _attendance: match conduct.attendance {
                Attends::Yes => Some(handle.attend()),
                Attends::No => None,
            },
            handle,
            room,
            directory,
            desk: Desk::new(conduct.on_question, conduct.question_patience),
            conduct,
            session_id: String::new(),
            work,
            last: None,
            process: life,
            settled: VecDeque::new(),
            ending: None,
            idle_since: Instant::now(),
            before: (before.cost_usd, before.turns),
        };
        let mut is_stopped = false;
        loop {
            let (idle, late) = (life.idle_deadline(), life.desk.deadline());
            tokio::select! {
                batch = events.next() => match batch {
                    None => break,
                    Some(EventBatch::Missed(_)) => {}
                    Some(EventBatch::Events(batch)) => {
                        for event in batch {
                            life.hear(&event.what).await;
                        }
                    }
                },
                Some(word) = words.recv() => life.heed(word).await,
                () = stop.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    life.leave(Phase::Killed, None, Shutdown::Now).await;
                }
                () = at(late) => {
                    for command in life.desk.overdue(Instant::now()) {
                        life.send(command).await;
                    }
                }
                () = at(idle) => life.retire().await,
            }
            life.report().await;
        }
        life.end().await
    }
}

/// Waits for a moment, for ever where there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Life {
    async fn send(&self, command: Command) {
        // Where the session is over, its last event says so.
        let _ = self.handle.send(command).await;
    }

    fn presence(&self) -> Presence {
        if self.room.has_operators() {
            Presence::Somebody
        } else {
            Presence::Nobody
        }
    }

    /// When an agent that waits with nobody there has waited long enough.
    fn idle_deadline(&self) -> Option<Instant> {
        let is_alone = self.room.attached() == 0;
        let is_idle = self.work == Work::Waiting && self.desk.needs().is_none();
        (is_alone && is_idle && self.ending.is_none())
            .then(|| self.idle_since + self.conduct.idle_timeout)
    }

    /// Something happened in the session.
    async fn hear(&mut self, what: &What) {
        let (kind, told) = lines(what, &self.session_id);
        match what {
            What::Opened(facts) => {
                self.session_id.clone_from(&facts.session_id);
                let mut report = self.room.report();
                report.session_id = Some(facts.session_id.clone());
                report.model = Some(format!("{}/{}", facts.provider, facts.model));
                self.room.show(report);
            }
            What::Began { .. } => self.work = Work::Going,
            What::Ended {
                prompt,
                outcome,
                totals,
            } => {
                self.last = Some((outcome.clone(), (**totals).clone()));
                self.settle(prompt, outcome, totals);
            }
            What::Asked(asked) => {
                self.room.tell(kind, &told);
                let verdict = self.desk.ask(asked, self.presence());
                return self.follow(verdict).await;
            }
            What::Answered(answered) => self.desk.settle(&answered.question),
            What::Idle => {
                self.work = Work::Waiting;
                self.idle_since = Instant::now();
                self.room.tell(kind, &told);
                return self.come_to_rest().await;
            }
            What::Closed { why, trouble } => self.closed(*why, trouble.as_ref()),
            What::Run(_)
            | What::Queued { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::Refused(_)
            | What::ModeChanged { .. }
            | What::ModelChanged { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Closing => {}
        }
        self.room.tell(kind, &told);
    }

    fn settle(&mut self, prompt: &Arc<str>, outcome: &Outcome, totals: &RunTotals) {
        let Some(process) = &self.process else {
            return;
        };
        if self.settled.len() >= SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back(Settled {
            life: Arc::clone(process),
            prompt: Arc::clone(prompt),
            outcome: outcome.clone(),
            totals: Box::new(totals.clone()),
        });
    }

    /// Nothing is left to do. A failure that nobody sees is an end; somebody who is there may have
    /// an idea.
    async fn come_to_rest(&mut self) {
        let failure = self.last.as_ref().and_then(|(outcome, _)| match outcome {
            Outcome::Success { .. } | Outcome::Obeyed { .. } | Outcome::Cancelled => None,
            failed => Some(failed.message().unwrap_or_default()),
        });
        if self.conduct.on_failure == OnFailure::Stay {
            return;
        }
        if let (Some(reason), Presence::Nobody) = (failure, self.presence()) {
            self.leave(Phase::Failed, Some(reason), Shutdown::Now).await;
        }
    }

    fn closed(&mut self, why: ClosedWhy, trouble: Option<&String>) {
        let ending = match why {
            ClosedWhy::Budget => Some("the budget is spent".to_owned()),
            ClosedWhy::Crashed => {
                let told = self
                    .last
                    .as_ref()
                    .and_then(|(outcome, _)| outcome.message());
                Some(told.unwrap_or_else(|| "an internal error".to_owned()))
            }
            ClosedWhy::Shutdown | ClosedWhy::Abandoned => None,
        };
        if let Some(reason) = ending {
            self.ending.get_or_insert(Ending {
                state: Phase::Failed,
                reason: Some(reason),
            });
        }
        if let Some(trouble) = trouble {
            self.ending = Some(Ending {
                state: Phase::Failed,
                reason: Some(format!("the session was not saved: {trouble}")),
            });
        }
    }

    /// What the policy about questions says.
    async fn follow(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Wait => {}
            Verdict::Say(command) => self.send(command).await,
            Verdict::GiveUp(reason) => {
                self.leave(Phase::Failed, Some(reason), Shutdown::Now).await;
            }
        }
    }

    /// Somebody who is attached wants something.
    async fn heed(&mut self, word: Word) {
        let Word {
            visitor,
            what,
            aside,
        } = word;
        match what {
            Wish::Came => {}
            Wish::Left => {
                self.room.leave(visitor);
                self.idle_since = Instant::now();
                if self.presence() == Presence::Nobody {
                    for verdict in self.desk.deserted() {
                        self.follow(verdict).await;
                    }
                }
            }
            Wish::Answer {
                question,
                decision,
                input,
                message,
            } => match self.desk.answer(&question, decision, input, message) {
                Some(commands) if self.room.may_answer(visitor) => {
                    for command in commands {
                        self.send(command).await;
                    }
                }
                Some(_) => aside.refuse("this connection only watches"),
                None => aside.say(&json!({
                    "type": "error",
                    "question": question,
                    "message": "there is no such question, or it was answered already",
                })),
            },
            Wish::Reply { question, reply } => {
                self.send(Command::AnswerElicitation { question, reply })
                    .await;
            }
            Wish::Prompt { .. } | Wish::Interrupt | Wish::End if !self.room.may_type(visitor) => {
                aside.refuse(
                    "somebody else types to this agent; take over with `attach --take`, or wait \
                     until they detach",
                );
            }
            Wish::Prompt { id, message } => {
                let prompt = Prompt {
                    id,
                    message: *message,
                    attach: Attach::Named,
                };
                self.send(Command::Prompt {
                    prompt,
                    delivery: Delivery::Queue,
                })
                .await;
            }
            Wish::Interrupt => self.send(Command::Interrupt).await,
            Wish::End => self.retire_when(Shutdown::WhenIdle).await,
        }
    }

    /// The agent has done what it had to.
    async fn retire(&mut self) {
        self.retire_when(Shutdown::WhenIdle).await;
    }

    async fn retire_when(&mut self, when: Shutdown) {
        let failed = self.last.as_ref().and_then(|(outcome, _)| match outcome {
            Outcome::Success { .. } | Outcome::Obeyed { .. } => None,
            other => Some(other.message().unwrap_or_default()),
        });
        match failed {
            // Whoever sent it is told how it ended.
            Some(_) if self.conduct.on_failure == OnFailure::Stay => {
                self.leave(Phase::Done, None, when).await;
            }
            None => self.leave(Phase::Done, None, when).await,
            Some(reason) => self.leave(Phase::Failed, Some(reason), when).await,
        }
    }

    /// The session ends; who says so first says why.
    async fn leave(&mut self, state: Phase, reason: Option<String>, when: Shutdown) {
        let is_killed = state == Phase::Killed;
        if self.ending.is_none() || is_killed {
            self.ending = Some(Ending { state, reason });
        }
        self.send(Command::Shutdown { when }).await;
    }

    /// Shows and writes down the state, where it is another than before.
    async fn report(&mut self) {
        let before = self.room.report();
        let needs = self.desk.needs();
        let state = match (self.work, &needs) {
            (Work::Going, None) => Phase::Running,
            (Work::Going, Some(_)) | (Work::Waiting, _) => Phase::Idle,
        };
        let needs = needs.or_else(|| match state {
            Phase::Idle => Some(Needs {
                kind: NeedsKind::Input,
                id: None,
                since: before
                    .needs
                    .as_ref()
                    .filter(|needs| needs.kind == NeedsKind::Input)
                    .map_or_else(Timestamp::now, |needs| needs.since),
                summary: "it waits for input".to_owned(),
            }),
            _ => None,
        });
        let (cost_usd, turns) = self.spent();
        let mut report = Report {
            state,
            needs,
            cost_usd,
            turns,
            attached: self.room.attached(),
            ..before.clone()
        };
        if self.session_id.is_empty() || self.is_known(&report) {
            return;
        }
        report.counter += 1;
        if report.state != before.state {
            report.since = Timestamp::now();
        }
        self.room.tell(Kind::Other, &[line(&state_frame(&report))]);
        let (directory, shown) = (self.directory.clone(), report.clone());
        let written = tokio::task::spawn_blocking(move || directory.write_report(&report)).await;
        // Whoever hears of it finds it written.
        self.room.show(shown);
        if let Ok(Err(error)) = written {
            // The state is told over the socket all the same, and the next one is written again.
            self.room.tell(
                Kind::Other,
                &[line(&json!({
                    "type": "warning",
                    "subtype": "fleet",
                    "message": format!("the state cannot be written: {error}"),
                }))],
            );
        }
    }

    /// What it has come to: cost and turns.
    fn spent(&self) -> (Decimal, u32) {
        let (cost, turns) = self.before;
        match &self.last {
            Some((_, totals)) => (cost + totals.cost, turns + totals.turns),
            None => self.before,
        }
    }

    fn is_known(&self, report: &Report) -> bool {
        let before = self.room.report();
        let mut same = report.clone();
        same.counter = before.counter;
        same.since = before.since;
        same == before && before.counter > 0
    }

    /// Writes down how it ended, and tells those who are still there.
    async fn end(self) -> io::Result<End> {
        let (cost_usd, turns) = self.spent();
        let outcome = self.last.map(|(outcome, _)| outcome);
        let ending = self.ending.unwrap_or(Ending {
            state: Phase::Done,
            reason: None,
        });
        let end = End {
            state: ending.state,
            outcome: outcome.as_ref().map(|outcome| outcome.subtype().to_owned()),
            exit_code: match (ending.state, &outcome) {
                (Phase::Done, _) => 0,
                (Phase::Killed, _) => 124,
                (_, Some(outcome)) => outcome.exit_code().max(1),
                (_, None) => 1,
            },
            reason: ending.reason,
            cost_usd,
            turns,
            at: Timestamp::now(),
        };
        if self.process.is_some() {
            let (directory, settled) = (self.directory.clone(), self.settled);
            let written = tokio::task::spawn_blocking(move || directory.write_settled(&settled));
            // Without it the next server says that it does not know.
            let _ = written.await;
        }
        write_end(&self.directory, &end).await?;
        let mut frame = json!({"type": "ended"});
        if let (Some(frame), Ok(serde_json::Value::Object(fields))) =
            (frame.as_object_mut(), serde_json::to_value(&end))
        {
            frame.extend(fields);
        }
        self.room.tell(Kind::Other, &[line(&frame)]);
        self.room.close();
        Ok(end)
    }
}

/// Writes down how an agent ended, durably.
pub(crate) async fn write_end(directory: &AgentDirectory, end: &End) -> io::Result<()> {
    let (directory, end) = (directory.clone(), end.clone());
    let written = tokio::task::spawn_blocking(move || directory.write_end(&end));
    written.await.map_err(io::Error::other)?
}
