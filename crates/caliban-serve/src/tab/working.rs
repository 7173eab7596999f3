//! How requests are begun and ended.

use std::sync::Arc;

use caliban_agent::{Outcome as Ending, RunTotals};
use caliban_session::{Command, Delivery, Settled};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::{Kept, Running, Tab, Turn, Waiting};
use crate::answer::{Done, Sent, SentState};
use crate::content::Content;
use crate::ledger::Standing;
use crate::view::Last;

/// What is known of a request that was worked on when the process died.
const CUT_OFF: &str = "the process ended while this was worked on; what had been done is kept in \
                       the session, and it is not begun again";

impl Tab {
    /// Takes over what an earlier process acknowledged: what waited is worked on, and what was
    /// worked on has ended.
    pub(super) async fn recover(&mut self) {
        self.queue.clear();
        for (request, standing) in self.ledger.open_requests() {
            match standing {
                Standing::Accepted(content) => self.queue.push_back(Waiting { request, content }),
                Standing::Began { content, life } if life.is_some() && life == self.life() => {
                    self.take_over(request, &content).await;
                }
                Standing::Began { life, .. } => {
                    if let Some(known) = self.settled(life.as_deref(), &request) {
                        self.conclude(&request, &known.outcome, &known.totals).await;
                    } else {
                        let result = self.encoder.failure(CUT_OFF);
                        self.settle(&request, Last::Failed, vec![result]).await;
                    }
                }
                Standing::Ended(_) => {}
            }
        }
    }

    /// How a request ended that an earlier process of the session worked on.
    fn settled(&self, life: Option<&str>, request: &str) -> Option<Settled> {
        let known = self.hosted.as_ref()?.settled();
        let mut known = known.iter();
        let found = known.find(|it| Some(&*it.life) == life && *it.prompt == *request);
        found.cloned()
    }

    /// What the session was given by an earlier server goes on.
    async fn take_over(&mut self, request: Arc<str>, content: &Content) {
        let prompt = content.prompt(&request);
        let place = Arc::clone(&self.shared.places).try_acquire_owned();
        self.running = Some(Running {
            request,
            prompt,
            _place: place.ok(),
        });
        self.kept = Kept::OnDisk;
        self.tell_again().await;
    }

    /// Tells the session again what it is to work on: it works on it once, and says how it ended.
    pub(super) async fn tell_again(&mut self) {
        if let (Some(running), Some(hosted)) = (&self.running, &self.hosted) {
            let prompt = running.prompt.clone();
            let delivery = Delivery::Queue;
            let _ = hosted.send(Command::Prompt { prompt, delivery }).await;
        }
    }

    /// Begins what waits, or waits for its turn.
    pub(super) async fn seek(&mut self) {
        while self.running.is_none() && self.over.is_none() && !self.queue.is_empty() {
            if self.turn.is_some() {
                return;
            }
            let places = Arc::clone(&self.shared.places);
            if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                self.start(place).await;
            } else {
                let turn = async move { places.acquire_owned().await.ok() };
                self.turn = Some(Turn(Box::pin(turn)));
            }
        }
        if self.queue.is_empty() || self.over.is_some() {
            self.turn = None;
        }
    }

    /// Begins what waits first.
    pub(super) async fn start(&mut self, place: OwnedSemaphorePermit) {
        if self.running.is_some() {
            return;
        }
        let woken = self.wake().await;
        if self.running.is_some() {
            return;
        }
        let Some(Waiting { request, content }) = self.queue.pop_front() else {
            return;
        };
        let begun = match woken {
            Ok(()) => {
                let begun = self.ledger.begin(&request, self.life()).await;
                begun.map_err(|error| {
                    format!("it cannot be written down that this is worked on: {error}")
                })
            }
            Err(problem) => Err(problem.message),
        };
        if let Err(reason) = begun {
            let result = self.encoder.failure(&reason);
            self.settle(&request, Last::Failed, vec![result]).await;
            return;
        }
        let prompt = content.prompt(&request);
        self.running = Some(Running {
            request,
            prompt: prompt.clone(),
            _place: Some(place),
        });
        self.kept = Kept::OnDisk;
        let delivery = Delivery::Queue;
        if let Some(hosted) = &self.hosted {
            // If it ended meanwhile, its end is heard next.
            let _ = hosted.send(Command::Prompt { prompt, delivery }).await;
        }
    }

    /// What is worked on has ended.
    pub(super) async fn finish(&mut self, outcome: &Ending, totals: &RunTotals) {
        let Some(running) = self.running.take() else {
            return;
        };
        self.totals = totals.clone();
        self.partial.clear();
        self.conclude(&running.request, outcome, totals).await;
    }

    /// Tells how a request ended.
    async fn conclude(&mut self, request: &Arc<str>, outcome: &Ending, totals: &RunTotals) {
        let last = match outcome {
            Ending::Success { .. } | Ending::Obeyed { .. } => Last::Completed,
            Ending::Cancelled => Last::Cancelled,
            _ => Last::Failed,
        };
        let frames = self.encoder.end(outcome, totals);
        self.settle(request, last, frames).await;
    }

    /// Writes a result down, then tells it.
    pub(super) async fn settle(&mut self, request: &Arc<str>, last: Last, frames: Vec<Value>) {
        let result = frames.last().cloned().unwrap_or_default();
        if let Err(error) = self.ledger.end(request, &result).await {
            let message = format!("the result of `{request}` could not be written down: {error}");
            let warning = serde_json::json!({
                "type": "warning", "subtype": "not_kept", "message": message,
            });
            self.tell(Some(request), &warning);
        }
        for frame in &frames {
            self.tell(Some(request), frame);
        }
        self.last = Some(last);
        self.idle_since = Instant::now();
        for waiter in self.waiters.remove(request).into_iter().flatten() {
            // Whoever waited may have gone.
            let _ = waiter.send(Ok(ended(request, &result)));
        }
    }

    /// Everything that waits is cancelled.
    pub(super) async fn clear_queue(&mut self) {
        while let Some(waiting) = self.queue.pop_front() {
            let result = self.encoder.cancelled();
            self.settle(&waiting.request, Last::Cancelled, vec![result])
                .await;
        }
    }

    /// Everything that waits fails for this reason.
    pub(super) async fn fail_queue(&mut self, reason: &str) {
        while let Some(waiting) = self.queue.pop_front() {
            let result = self.encoder.failure(reason);
            self.settle(&waiting.request, Last::Failed, vec![result])
                .await;
        }
    }
}

/// What is said of a request that has its result.
pub(super) fn ended(request: &str, result: &Value) -> Done {
    Done::Sent(Box::new(Sent {
        request: request.to_owned(),
        state: SentState::Ended,
        position: None,
        duplicate: false,
        result: Some(result.clone()),
    }))
}
