//! How a session is reached: commands in, events out.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::command::{Command, PromptId};
use crate::event::SessionEvent;
use crate::fanout::{Backlog, Fanout};
use crate::questions::{Attendance, Questions};
use crate::standing::Standing;

/// Most events that are handed over in one piece.
const BATCH: usize = 256;

/// A session, for whoever wants something from it. Can be cloned; a session that nobody holds
/// ends.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) fanout: Arc<Fanout>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) state: watch::Receiver<State>,
}

/// The session is over and hears nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// How a session is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    pub stage: Stage,
    /// Prompts that wait.
    pub waiting: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stage {
    #[default]
    Idle,
    Working {
        prompt: PromptId,
    },
    Closed,
}

impl SessionHandle {
    /// Sends a command; waits only while the session takes in those before it.
    pub async fn send(&self, command: Command) -> Result<(), Closed> {
        self.commands.send(command).await.map_err(|_| Closed)
    }

    /// Hears everything from the event with this number on, as far as it was kept. This hearer
    /// holds nobody up; it is told what it missed.
    pub fn subscribe(&self, since: u64) -> Events {
        Events {
            fanout: Arc::clone(&self.fanout),
            next: since.max(1),
            lead: Lead::Follows,
            attendance: None,
            questions: Arc::clone(&self.questions),
        }
    }

    /// Somebody answers questions while the guard lives, beside hearers that do.
    pub fn attend(&self) -> Attendance {
        self.questions.attend()
    }

    /// The number that the next event will have.
    pub fn next_seq(&self) -> u64 {
        self.fanout.next_seq()
    }

    /// Where it stands, for a hearer that comes now.
    pub fn standing(&self) -> Standing {
        self.fanout.standing()
    }

    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }
}

/// Whether the work waits for a hearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    Leads,
    Follows,
}

/// The events of a session, as one hearer hears them.
#[derive(Debug)]
pub struct Events {
    pub(crate) fanout: Arc<Fanout>,
    pub(crate) next: u64,
    pub(crate) lead: Lead,
    pub(crate) attendance: Option<Attendance>,
    pub(crate) questions: Arc<Questions>,
}

/// What a hearer hears next.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBatch {
    Events(Vec<Arc<SessionEvent>>),
    /// So many events were let go before this hearer came for them.
    Missed(u64),
}

impl Events {
    /// Everything that has not been heard yet, at most some hundred at a time; waits until there
    /// is something. Nothing once the session is over.
    pub async fn next(&mut self) -> Option<EventBatch> {
        loop {
            let fanout = Arc::clone(&self.fanout);
            let grown = fanout.grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            match self.fanout.find(self.next, BATCH) {
                Backlog::Events(events) => {
                    self.move_to(self.next + events.len() as u64);
                    return Some(EventBatch::Events(events));
                }
                Backlog::Missed(count) => {
                    self.move_to(self.next + count);
                    return Some(EventBatch::Missed(count));
                }
                Backlog::End => return None,
                Backlog::NothingYet => grown.await,
            }
        }
    }

    /// From here on this hearer answers questions.
    pub fn attend(&mut self) {
        if self.attendance.is_none() {
            self.attendance = Some(self.questions.attend());
        }
    }

    /// This hearer does not answer questions any more.
    pub fn stop_attending(&mut self) {
        self.attendance = None;
    }

    fn move_to(&mut self, next: u64) {
        self.next = next;
        if self.lead == Lead::Leads {
            self.fanout.led_to(Some(next));
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if self.lead == Lead::Leads {
            self.fanout.led_to(None);
        }
    }
}
