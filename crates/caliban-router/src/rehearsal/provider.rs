//! A provider that only pretends: it is up and down, slow and fast, as the weather says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_stream::stream;
use caliban_model::{
    Block, CancellationToken, Capabilities, Error, ErrorKind, EventStream, ModelInfo, Provider,
    Request, StopReason, StreamEvent, Usage,
};
use futures::future::BoxFuture;

use super::counted;
use super::weather::{Kind, Weather};
use crate::clock::{Clock, VirtualClock};
use crate::dice::Dice;

/// How long it takes to be refused.
const REFUSED: Duration = Duration::from_millis(300);
/// How long nothing comes before it is given up.
const SILENCE: Duration = Duration::from_mins(2);
/// What a provider that is too busy asks for.
const RETRY_AFTER: Duration = Duration::from_secs(20);
/// How far the 95th of a hundred is from the middle, in deviations.
const P95: f64 = 1.645;

/// When a provider is down.
#[derive(Debug)]
pub(super) struct Outage {
    dice: Dice,
    mtbf: f64,
    mttr: f64,
    is_down: bool,
    until: f64,
}

impl Outage {
    pub(super) fn new(mut dice: Dice, weather: &Weather) -> Self {
        let until = dice.exponential(weather.mtbf_secs);
        Self {
            dice,
            mtbf: weather.mtbf_secs,
            mttr: weather.mttr_secs,
            is_down: false,
            until,
        }
    }

    /// Time only goes on.
    fn is_down(&mut self, now: Duration) -> bool {
        while self.until <= now.as_secs_f64() {
            self.is_down = !self.is_down;
            let mean = if self.is_down { self.mttr } else { self.mtbf };
            // Without a length there would be no end of it.
            self.until += self.dice.exponential(mean).max(0.001);
        }
        self.is_down
    }
}

#[derive(Debug, Clone)]
pub(super) struct Simulated(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    clock: VirtualClock,
    outage: Arc<Mutex<Outage>>,
    weather: Weather,
    output: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    dice: Dice,
    /// When it was asked last, and what it has read by then.
    cached: Option<(Duration, u64)>,
    /// The minute, and the tokens in it.
    minute: (u64, f64),
}

/// What becomes of a request.
enum Fate {
    Fails(Duration, Error),
    Answers {
        first: Duration,
        rest: Duration,
        usage: Usage,
        breaks: bool,
    },
}

impl Simulated {
    pub(super) fn new(
        name: String,
        clock: VirtualClock,
        outage: Arc<Mutex<Outage>>,
        weather: Weather,
        output: u64,
        dice: Dice,
    ) -> Self {
        Self(Arc::new(Inner {
            name,
            clock,
            outage,
            weather,
            output,
            state: Mutex::new(State {
                dice,
                cached: None,
                minute: (0, 0.0),
            }),
        }))
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "tokens of a rehearsal are far below what a float holds"
    )]
    fn fate(&self, input: u64, model: &str) -> Fate {
        let now = self.clock.now();
        let is_down = self
            .outage
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_down(now);
        let mut state = self.state();
        // Every call throws the same dice, so that one fate does not move another.
        let (error, kind, breaks) = (state.dice.part(), state.dice.part(), state.dice.part());
        let speed = state.dice.normal();
        let minute = now.as_secs() / 60;
        if state.minute.0 != minute {
            state.minute = (minute, 0.0);
        }
        state.minute.1 += input as f64;
        let limit = self.weather.tokens_per_minute;
        if limit.is_some_and(|limit| state.minute.1 > limit) {
            let mut error = self.error(ErrorKind::RateLimited, model);
            error.retry_after = Some(Duration::from_secs(60 - now.as_secs() % 60));
            return Fate::Fails(REFUSED, error);
        }
        if is_down || error < self.weather.error_rate {
            let kind = self.kind(kind);
            let after = match kind {
                ErrorKind::Timeout => SILENCE,
                _ => REFUSED,
            };
            let mut error = self.error(kind, model);
            if error.kind == ErrorKind::RateLimited {
                error.retry_after = Some(RETRY_AFTER);
            }
            return Fate::Fails(after, error);
        }
        let ttl = Duration::from_secs_f64(self.weather.cache_ttl_secs);
        let cached = match state.cached {
            Some((at, tokens)) if now.saturating_sub(at) <= ttl => tokens,
            Some(_) | None => 0,
        };
        state.cached = Some((now, input));
        let (median, p95) = (
            self.weather.first_content_ms.max(1.0),
            self.weather.first_content_p95_ms.max(1.0),
        );
        let deviation = (p95 / median).ln().max(0.0) / P95;
        let first = median * (deviation * speed).exp() / 1_000.0;
        let rest = self.output as f64 / self.weather.tokens_per_second.max(0.001);
        Fate::Answers {
            first: Duration::from_secs_f64(first.min(600.0)),
            rest: Duration::from_secs_f64(rest.min(600.0)),
            usage: counted(input, cached, self.output),
            breaks: breaks < self.weather.break_rate,
        }
    }

    fn kind(&self, chance: f64) -> ErrorKind {
        let all: f64 = self.weather.kinds.values().sum();
        let mut left = chance * all;
        for (kind, weight) in &self.weather.kinds {
            left -= weight;
            if left < 0.0 {
                return match kind {
                    Kind::Overloaded => ErrorKind::Overloaded,
                    Kind::Server => ErrorKind::Server,
                    Kind::Network => ErrorKind::Network,
                    Kind::Timeout => ErrorKind::Timeout,
                    Kind::RateLimited => ErrorKind::RateLimited,
                };
            }
        }
        ErrorKind::Overloaded
    }

    fn error(&self, kind: ErrorKind, model: &str) -> Error {
        Error::new(kind, &self.name, model, "rehearsed")
    }
}

impl Provider for Simulated {
    fn id(&self) -> &str {
        &self.0.name
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        caliban_model::capabilities(&self.0.name, model)
    }

    fn stream(&self, request: Request, _: CancellationToken) -> EventStream {
        let inner = Arc::clone(&self.0);
        Box::pin(stream! {
            let input = (request.text_bytes() as u64).div_ceil(4);
            let (first, rest, usage, breaks) = match inner.fate(input, &request.model) {
                Fate::Fails(after, error) => {
                    inner.clock.sleep(after).await;
                    yield Err(error);
                    return;
                }
                Fate::Answers { first, rest, usage, breaks } => (first, rest, usage, breaks),
            };
            inner.clock.sleep(first).await;
            yield Ok(StreamEvent::Started { model: request.model.to_string() });
            let begun = Usage { output: 1, ..usage };
            yield Ok(StreamEvent::Usage { usage: begun });
            yield Ok(StreamEvent::TextDelta { index: 0, text: "x".to_owned() });
            inner.clock.sleep(if breaks { rest / 2 } else { rest }).await;
            if breaks {
                yield Err(inner.error(ErrorKind::Network, &request.model));
                return;
            }
            yield Ok(StreamEvent::BlockEnded { index: 0, block: Block::text("x") });
            yield Ok(StreamEvent::Usage { usage });
            yield Ok(StreamEvent::Stopped { reason: StopReason::EndTurn, detail: None });
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
