//! Questions to the client: each has an id, and its answer comes back over standard input.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use caliban_protocol::claude::{LONGEST_LINE, cancel_request, request};
use caliban_protocol::line;
use caliban_session::SessionHandle;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use super::wire::Wire;

/// Questions that wait for an answer at the same time; more than a turn can ask.
const MAX_PENDING: usize = 1024;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("the client has closed its end and can no longer answer")]
    Closed,
    #[error("the question is too large for the client to read")]
    TooLong,
    #[error("too many questions wait for an answer")]
    TooMany,
    #[error("the client answered with an error: {0}")]
    Refused(String),
}

type Reply = Result<Value, Unanswered>;

/// Asks the client. Cloned for everybody who asks.
#[derive(Debug, Clone)]
pub(crate) struct Channel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wire: Wire,
    order: Order,
    /// Nothing once the client can no longer answer.
    pending: Mutex<Option<HashMap<String, oneshot::Sender<Reply>>>>,
}

/// Sees to it that nobody hears of a question before what led to it.
#[derive(Debug)]
pub(crate) struct Order {
    session: OnceLock<SessionHandle>,
    /// The number of the last event that was shown.
    shown: watch::Sender<u64>,
}

impl Order {
    fn new() -> Self {
        Self {
            session: OnceLock::new(),
            shown: watch::Sender::new(0),
        }
    }

    /// From here on there is something to keep behind.
    pub(crate) fn follow(&self, session: SessionHandle) {
        // There is one session, so nothing is replaced.
        let _ = self.session.set(session);
    }

    pub(crate) fn shown(&self, seq: u64) {
        self.shown.send_replace(seq);
    }

    /// Waits until everything is shown that has happened by now.
    async fn keep(&self) {
        let Some(session) = self.session.get() else {
            return;
        };
        let told = session.next_seq().saturating_sub(1);
        let mut shown = self.shown.subscribe();
        // Whoever shows is gone only with the session.
        let _ = shown.wait_for(|shown| *shown >= told).await;
    }
}

/// A question that was asked. Dropping it before the answer came takes it back.
struct Asked<'a> {
    id: String,
    channel: &'a Channel,
}

impl Channel {
    pub(crate) fn new(wire: Wire) -> Self {
        Self(Arc::new(Inner {
            wire,
            order: Order::new(),
            pending: Mutex::new(Some(HashMap::new())),
        }))
    }

    /// What keeps questions behind the frames of what happened before them.
    pub(crate) fn order(&self) -> &Order {
        &self.0.order
    }

    /// Asks and waits for the answer, however long that takes.
    pub(crate) async fn ask(&self, question: &Value) -> Reply {
        self.0.order.keep().await;
        let id = Uuid::new_v4().to_string();
        let text = line(&request(&id, question));
        if text.len() > LONGEST_LINE {
            return Err(Unanswered::TooLong);
        }
        let (sender, receiver) = oneshot::channel();
        match &mut *self.pending() {
            None => return Err(Unanswered::Closed),
            Some(pending) if pending.len() >= MAX_PENDING => return Err(Unanswered::TooMany),
            Some(pending) => pending.insert(id.clone(), sender),
        };
        let asked = Asked { id, channel: self };
        self.0.wire.line(&text);
        let reply = receiver.await.unwrap_or(Err(Unanswered::Closed));
        drop(asked);
        reply
    }

    /// An answer came. One that nobody waits for is passed over.
    pub(crate) fn answer(&self, id: &str, answer: Result<Value, String>) {
        let sender = self
            .pending()
            .as_mut()
            .and_then(|pending| pending.remove(id));
        if let Some(sender) = sender {
            // Whoever asked may have given up meanwhile.
            let _ = sender.send(answer.map_err(Unanswered::Refused));
        }
    }

    /// The client will not answer any more: everybody who waits learns so.
    pub(crate) fn close(&self) {
        drop(self.pending().take());
    }

    fn pending(&self) -> MutexGuard<'_, Option<HashMap<String, oneshot::Sender<Reply>>>> {
        self.0
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut pending = self.channel.pending();
        if pending
            .as_mut()
            .and_then(|pending| pending.remove(&self.id))
            .is_some()
        {
            drop(pending);
            self.channel.0.wire.line(&line(&cancel_request(&self.id)));
        }
    }
}
