//! Requests that the client was sent and has not answered, and who waits for the answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_protocol::acp::v1::RequestId;
use tokio::sync::mpsc;

use super::session::Wish;

/// All sessions of a connection share it, because they share its ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    last: AtomicI64,
    /// As many as there are open questions, which the sessions bound.
    open: Mutex<HashMap<i64, mpsc::Sender<Wish>>>,
}

impl Requests {
    fn open(&self) -> MutexGuard<'_, HashMap<i64, mpsc::Sender<Wish>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new request, whose answer goes to this session.
    pub(super) fn begin(&self, inbox: mpsc::Sender<Wish>) -> i64 {
        let number = self.0.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open().insert(number, inbox);
        number
    }

    /// Nobody waits for the answer any more.
    pub(super) fn forget(&self, number: i64) {
        self.open().remove(&number);
    }

    /// Who waits for this answer; nobody where none was asked for.
    pub(super) fn end(&self, id: &RequestId) -> Option<(i64, mpsc::Sender<Wish>)> {
        let RequestId::Number(number) = id else {
            return None;
        };
        let inbox = self.open().remove(number)?;
        Some((*number, inbox))
    }
}
