//! A race: where the first route is slow to begin, others join, and the first content wins.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use caliban_model::{CancellationToken, Error, Request, Shown, StreamEvent};
use futures::StreamExt;

use crate::attempt::Attempt;
use crate::core::Core;
use crate::facts::Facts;
use crate::resolution::Candidate;

/// So much may come before content does, from one of them.
const MAX_HELD: usize = 64;

/// Who takes part.
pub(crate) struct Race<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) facts: &'a Facts,
    pub(crate) request: &'a Request,
    pub(crate) cancel: &'a CancellationToken,
    /// In the order they join.
    pub(crate) rivals: VecDeque<Candidate>,
    /// How long nothing may come before another joins.
    pub(crate) after: Duration,
}

/// How it ended. Those that lost are dropped with their connections.
pub(crate) struct Finish {
    /// Nobody where all have failed.
    pub(crate) winner: Option<Attempt>,
    pub(crate) losers: Vec<Attempt>,
    pub(crate) failed: Vec<(Attempt, Error)>,
}

enum Step {
    Event(usize, Box<Option<Result<StreamEvent, Error>>>),
    Join,
}

impl Race<'_> {
    /// An error never wins. When the first fails before anybody has joined, this is no race.
    pub(crate) async fn run(mut self, leader: Attempt) -> Finish {
        let mut runners = vec![leader];
        let mut failed = Vec::new();
        let mut timer = self.core.clock.sleep(self.after);
        loop {
            let may_join = !self.rivals.is_empty();
            let step = std::future::poll_fn(|context| {
                for (place, runner) in runners.iter_mut().enumerate() {
                    if let Poll::Ready(event) = runner.stream.poll_next_unpin(context) {
                        return Poll::Ready(Step::Event(place, Box::new(event)));
                    }
                }
                if may_join && Pin::new(&mut timer).poll(context).is_ready() {
                    return Poll::Ready(Step::Join);
                }
                Poll::Pending
            })
            .await;
            match step {
                Step::Join => {
                    timer = self.core.clock.sleep(self.after);
                    match self.rivals.pop_front() {
                        Some(rival) if self.core.takes_hedge() => {
                            let attempt =
                                Attempt::start(self.core, &rival, self.request, self.cancel);
                            runners.push(attempt);
                        }
                        // Enough races for now.
                        Some(_) | None => self.rivals.clear(),
                    }
                }
                Step::Event(place, event) => match *event {
                    Some(Ok(event)) => {
                        let has_ended = matches!(event, StreamEvent::Stopped { .. });
                        let Some(runner) = runners.get_mut(place) else {
                            continue;
                        };
                        runner.hold(event, self.core, self.facts);
                        let has_begun = runner.shown() == Shown::Superseded;
                        if has_begun || has_ended || runner.held() >= MAX_HELD {
                            return Finish {
                                winner: Some(runners.remove(place)),
                                losers: runners,
                                failed,
                            };
                        }
                    }
                    ended => {
                        let runner = runners.remove(place);
                        let error = match ended {
                            Some(Err(error)) => error,
                            Some(Ok(_)) | None => runner.unfinished(),
                        };
                        failed.push((runner, error));
                        if runners.is_empty() {
                            return Finish {
                                winner: None,
                                losers: runners,
                                failed,
                            };
                        }
                    }
                },
            }
        }
    }
}
