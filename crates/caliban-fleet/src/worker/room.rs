//! What a worker and those who are attached to it share: what was told, the state, and whose turn
//! it is to type.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::ring::{Cursor, Kind, Next, Ring};
use crate::state::Report;

/// Names a connection of this worker.
pub(crate) type VisitorId = u64;

#[derive(Debug)]
pub(crate) struct Room {
    inner: Mutex<Inner>,
    grown: Notify,
    report: watch::Sender<Report>,
}

#[derive(Debug, Default)]
struct Inner {
    ring: Ring,
    visitors: BTreeMap<VisitorId, Role>,
    /// Who may type.
    lease: Option<VisitorId>,
    next: VisitorId,
    is_closed: bool,
}

/// What somebody who is attached may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Look on.
    Viewer,
    /// Answer questions, and type while the lease is theirs.
    Operator,
    /// Say everything that a session can be told, beside whoever types.
    Server,
}

/// Whether this process saw the beginning of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    Here,
    /// Those who come are told what is on disk.
    Elsewhere,
}

/// Whether a lease is taken from whoever has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    IfFree,
    TakeOver,
}

/// What there is for somebody who is attached.
#[derive(Debug)]
pub(crate) enum Heard {
    Lines(String),
    /// Something was let go of.
    Lost,
    /// There will be nothing more.
    End,
}

impl Room {
    pub(crate) fn new(report: Report, beginning: Beginning) -> Self {
        let ring = match beginning {
            Beginning::Here => Ring::default(),
            Beginning::Elsewhere => Ring::continued(),
        };
        Self {
            inner: Mutex::new(Inner {
                ring,
                ..Inner::default()
            }),
            grown: Notify::new(),
            report: watch::Sender::new(report),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, kind: Kind, lines: &[String]) {
        self.inner().ring.push(kind, lines);
        self.grown.notify_waiters();
    }

    /// The state as it is from here on.
    pub(crate) fn show(&self, report: Report) {
        self.report.send_replace(report);
    }

    pub(crate) fn report(&self) -> Report {
        self.report.borrow().clone()
    }

    /// Whoever wants to hear of the state alone.
    pub(crate) fn watch(&self) -> watch::Receiver<Report> {
        self.report.subscribe()
    }

    /// Nothing will be told any more.
    pub(crate) fn close(&self) {
        self.inner().is_closed = true;
        self.grown.notify_waiters();
    }

    pub(crate) fn last(&self) -> u64 {
        self.inner().ring.last()
    }

    /// Somebody comes in.
    pub(crate) fn enter(&self, role: Role, claim: Claim) -> VisitorId {
        let mut inner = self.inner();
        inner.next += 1;
        let id = inner.next;
        inner.visitors.insert(id, role);
        inner.claim(id, claim);
        id
    }

    /// Somebody wants to type.
    pub(crate) fn claim(&self, id: VisitorId, claim: Claim) {
        self.inner().claim(id, claim);
    }

    pub(crate) fn leave(&self, id: VisitorId) {
        let mut inner = self.inner();
        inner.visitors.remove(&id);
        if inner.lease == Some(id) {
            // Whoever has waited longest types next.
            inner.lease = inner
                .visitors
                .iter()
                .find(|(_, role)| **role == Role::Operator)
                .map(|(id, _)| *id);
        }
    }

    pub(crate) fn may_type(&self, id: VisitorId) -> bool {
        self.inner().lease == Some(id)
    }

    pub(crate) fn may_answer(&self, id: VisitorId) -> bool {
        self.inner().visitors.get(&id) == Some(&Role::Operator)
    }

    pub(crate) fn attached(&self) -> usize {
        self.inner().visitors.len()
    }

    pub(crate) fn has_operators(&self) -> bool {
        let inner = self.inner();
        inner.visitors.values().any(|role| *role != Role::Viewer)
    }

    /// What somebody has not heard yet, at most about so many bytes; waits until there is
    /// something.
    pub(crate) async fn hear(&self, cursor: &mut Cursor, most: usize) -> Heard {
        loop {
            let grown = self.grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            {
                let inner = self.inner();
                match inner.ring.next(cursor, most) {
                    Next::Lines(text) => return Heard::Lines(text),
                    Next::Lost => return Heard::Lost,
                    Next::Nothing if inner.is_closed => return Heard::End,
                    Next::Nothing => {}
                }
            }
            grown.await;
        }
    }
}

impl Inner {
    fn claim(&mut self, id: VisitorId, claim: Claim) {
        if self.visitors.get(&id) != Some(&Role::Operator) {
            return;
        }
        match claim {
            Claim::IfFree => {
                self.lease.get_or_insert(id);
            }
            Claim::TakeOver => self.lease = Some(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn one_types_and_the_others_wait_for_their_turn() {
        let room = Room::new(Report::registered(Timestamp::now()), Beginning::Here);
        let viewer = room.enter(Role::Viewer, Claim::TakeOver);
        assert!(!room.may_type(viewer) && !room.may_answer(viewer) && !room.has_operators());
        let first = room.enter(Role::Operator, Claim::IfFree);
        let second = room.enter(Role::Operator, Claim::IfFree);
        assert!(room.may_type(first) && !room.may_type(second) && room.may_answer(second));
        room.claim(second, Claim::TakeOver);
        assert!(!room.may_type(first) && room.may_type(second));
        room.leave(second);
        assert!(room.may_type(first));
        room.leave(first);
        assert!(!room.has_operators());
        assert_eq!(room.attached(), 1);
    }
}
