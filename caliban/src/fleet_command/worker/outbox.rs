//! Events on their way to the board: in order, each once, and again where the server may have lost
//! the last of them.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use caliban_fleet_nats::{Board, BoardError, JobId};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::console::note;

/// Events that may wait; whoever has more to tell waits itself.
const WAITING: usize = 256;
/// Events that are told again after the connection was lost.
const KEPT: usize = 256;
/// The pause after trouble.
const PAUSE: Duration = Duration::from_millis(500);

/// Where events are put.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    send: mpsc::Sender<(String, Bytes)>,
    job: JobId,
}

/// Takes events to the board.
#[derive(Debug)]
pub(super) struct Outbox {
    events: mpsc::Receiver<(String, Bytes)>,
    job: JobId,
}

pub(super) fn outbox(job: JobId) -> (Teller, Outbox) {
    let (send, events) = mpsc::channel(WAITING);
    (Teller { send, job }, Outbox { events, job })
}

impl Teller {
    /// Tells a frame under a name that no other has.
    pub(super) async fn tell(&self, attempt: u32, number: u64, frame: &Value) {
        let name = format!("{}-{attempt}-{number}", self.job);
        // Nobody is there any more where the attempt is over.
        let _ = self.send.send((name, frame.to_string().into())).await;
    }
}

impl Outbox {
    /// Runs until every teller is gone and everything is told.
    pub(super) async fn run<B: Board>(mut self, board: &B) {
        let mut reconnected = board.reconnected();
        reconnected.mark_unchanged();
        let mut kept: VecDeque<(String, Bytes)> = VecDeque::new();
        loop {
            tokio::select! {
                event = self.events.recv() => {
                    let Some((name, frame)) = event else { return };
                    self.publish(board, &name, &frame).await;
                    if kept.len() >= KEPT {
                        kept.pop_front();
                    }
                    kept.push_back((name, frame));
                }
                Ok(()) = reconnected.changed() => {
                    // What the server still has it knows by name.
                    for (name, frame) in &kept {
                        self.publish(board, name, frame).await;
                    }
                }
            }
        }
    }

    async fn publish<B: Board>(&self, board: &B, name: &str, frame: &Bytes) {
        loop {
            match board.publish(self.job, name, frame.clone()).await {
                Ok(()) => return,
                Err(error @ BoardError::TooLarge(_)) => {
                    note(&format!("warning: {error}"));
                    return;
                }
                // Until it works, or the lease is lost and this with it.
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}
