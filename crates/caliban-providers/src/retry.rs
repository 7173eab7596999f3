//! A provider that makes failed calls again, and says so.

use std::sync::Arc;
use std::time::Duration;

use async_stream::try_stream;
use caliban_model::{
    CancellationToken, Capabilities, Error, ErrorKind, EventStream, ModelInfo, Provider, Request,
    Retry, Shown, StreamEvent,
};
use futures::StreamExt;
use futures::future::BoxFuture;
use rand::RngExt;

/// How often and how patiently a call is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    pub max_retries: u32,
    /// The first pause; each further one is twice as long, up to `longest`.
    pub base: Duration,
    pub longest: Duration,
    /// A server that asks for a longer wait than this is given up on.
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 5,
            base: Duration::from_millis(500),
            longest: Duration::from_secs(16),
            patience: Duration::from_mins(10),
        }
    }
}

/// Wraps a provider. A call that fails before any content is repeated up to the policy's limit;
/// one that breaks in the middle of its answer is repeated once, and what it showed is declared
/// void.
#[derive(Debug, Clone)]
pub struct Retrying {
    inner: Arc<dyn Provider>,
    policy: RetryPolicy,
}

impl Retrying {
    pub fn new(inner: Arc<dyn Provider>, policy: RetryPolicy) -> Self {
        Self { inner, policy }
    }
}

impl Provider for Retrying {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.inner.capabilities(model)
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        let inner = Arc::clone(&self.inner);
        let mut progress = Progress::new(self.policy);
        Box::pin(try_stream! {
            loop {
                let mut answer = inner.stream(request.clone(), cancel.clone());
                let failure = loop {
                    match answer.next().await {
                        Some(Ok(event)) => {
                            if progress.is_news(&event) {
                                yield event;
                            }
                        }
                        Some(Err(error)) => break error,
                        None => return,
                    }
                };
                drop(answer);
                let retry = progress.after(failure)?;
                let pause = retry.delay;
                yield StreamEvent::Retrying(retry);
                cancel
                    .run_until_cancelled(tokio::time::sleep(pause))
                    .await
                    .ok_or_else(|| Error::cancelled(inner.id(), &request.model))?;
            }
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        self.inner.models()
    }
}

/// What has happened to one call so far.
struct Progress {
    policy: RetryPolicy,
    attempt: u32,
    shown: Shown,
    restarted: bool,
}

impl Progress {
    fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            attempt: 0,
            shown: Shown::Nothing,
            restarted: false,
        }
    }

    /// Notes an event; warnings about the request are told on the first attempt only.
    fn is_news(&mut self, event: &StreamEvent) -> bool {
        match event {
            StreamEvent::Warning(_) => self.attempt == 0,
            StreamEvent::TextDelta { .. }
            | StreamEvent::ThinkingDelta { .. }
            | StreamEvent::ToolStarted { .. }
            | StreamEvent::ToolInputDelta { .. }
            | StreamEvent::BlockEnded { .. } => {
                self.shown = Shown::Superseded;
                true
            }
            StreamEvent::Started { .. }
            | StreamEvent::Usage { .. }
            | StreamEvent::Stopped { .. }
            | StreamEvent::Rerouted { .. }
            | StreamEvent::Retrying(_) => true,
        }
    }

    /// The retry that follows a failure, or the failure if it is final.
    fn after(&mut self, mut error: Error) -> Result<Retry, Error> {
        let spent = self.attempt >= self.policy.max_retries
            || (self.shown == Shown::Superseded && self.restarted);
        if !error.is_retryable() || spent {
            if self.attempt > 0 && error.kind != ErrorKind::Cancelled {
                let retries = match self.attempt {
                    1 => "one retry".to_owned(),
                    more => format!("{more} retries"),
                };
                error.message = format!("{} (gave up after {retries})", error.message);
            }
            return Err(error);
        }
        if let Some(wait) = error.retry_after
            && wait > self.policy.patience
        {
            return Err(error.with_remedy(format!(
                "the provider asks to wait {} s; try again then",
                wait.as_secs()
            )));
        }
        self.attempt += 1;
        let shown = std::mem::replace(&mut self.shown, Shown::Nothing);
        self.restarted |= shown == Shown::Superseded;
        Ok(Retry {
            attempt: self.attempt,
            max_retries: self.policy.max_retries,
            delay: error.retry_after.unwrap_or_else(|| self.backoff()),
            status: error.status,
            category: error.category(),
            message: error.message,
            shown,
        })
    }

    /// Doubling pauses, shortened at random by up to a quarter so that clients do not march in
    /// step.
    fn backoff(&self) -> Duration {
        let doubled = self
            .policy
            .base
            .saturating_mul(2u32.saturating_pow(self.attempt - 1));
        doubled
            .min(self.policy.longest)
            .mul_f64(rand::rng().random_range(0.75..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::{Message, RetryCategory, StopReason, Warning};
    use std::collections::VecDeque;
    use std::sync::Mutex;

    type Attempt = Vec<Result<StreamEvent, Error>>;

    #[derive(Debug)]
    struct Scripted(Mutex<VecDeque<Attempt>>);

    impl Provider for Scripted {
        fn id(&self) -> &'static str {
            "scripted"
        }
        fn capabilities(&self, model: &str) -> Capabilities {
            caliban_model::capabilities("anthropic", model)
        }
        fn stream(&self, _: Request, _: CancellationToken) -> EventStream {
            let attempt = self.0.lock().unwrap().pop_front().expect("an attempt");
            Box::pin(futures::stream::iter(attempt))
        }
        fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
            unreachable!()
        }
    }

    fn error(kind: ErrorKind) -> Error {
        Error::new(kind, "scripted", "m", "no")
    }

    fn text(text: &str) -> StreamEvent {
        StreamEvent::TextDelta {
            index: 0,
            text: text.into(),
        }
    }

    fn stopped() -> StreamEvent {
        StreamEvent::Stopped {
            reason: StopReason::EndTurn,
            detail: None,
        }
    }

    async fn run(attempts: Vec<Attempt>) -> Attempt {
        let provider = Retrying::new(
            Arc::new(Scripted(Mutex::new(attempts.into()))),
            RetryPolicy {
                max_retries: 2,
                base: Duration::from_millis(1),
                ..RetryPolicy::default()
            },
        );
        let request = Request::new("m", vec![Arc::new(Message::user("hi"))].into()).unwrap();
        provider
            .stream(request, CancellationToken::new())
            .collect()
            .await
    }

    fn retries(events: &Attempt) -> Vec<(u32, RetryCategory, Shown)> {
        events
            .iter()
            .filter_map(|event| match event {
                Ok(StreamEvent::Retrying(retry)) => {
                    Some((retry.attempt, retry.category, retry.shown))
                }
                _ => None,
            })
            .collect()
    }

    #[tokio::test]
    async fn failures_before_content_are_repeated_up_to_the_limit() {
        let events = run(vec![
            vec![Err(error(ErrorKind::Overloaded))],
            vec![Err(error(ErrorKind::Network))],
            vec![Ok(text("ok")), Ok(stopped())],
        ])
        .await;
        assert_eq!(
            retries(&events),
            [
                (1, RetryCategory::Overloaded, Shown::Nothing),
                (2, RetryCategory::Network, Shown::Nothing)
            ]
        );
        assert_eq!(events.last(), Some(&Ok(stopped())));

        let exhausted = run(vec![vec![Err(error(ErrorKind::Server))]; 3]).await;
        let last = exhausted.last().unwrap().as_ref().unwrap_err();
        assert_eq!(last.message, "no (gave up after 2 retries)");
    }

    #[tokio::test]
    async fn a_broken_answer_is_declared_void_and_repeated_once() {
        let broken: Attempt = vec![Ok(text("ha")), Err(error(ErrorKind::Network))];
        let events = run(vec![broken.clone(), vec![Ok(text("ha!")), Ok(stopped())]]).await;
        assert_eq!(
            retries(&events),
            [(1, RetryCategory::Network, Shown::Superseded)]
        );
        let twice = run(vec![broken.clone(), broken]).await;
        assert!(twice.last().unwrap().is_err());
        assert_eq!(retries(&twice).len(), 1);
    }

    #[tokio::test]
    async fn final_errors_are_not_repeated_and_warnings_come_once() {
        let warning = StreamEvent::Warning(Warning::dropped("temperature", "m", "it is rejected"));
        let events = run(vec![
            vec![Ok(warning.clone()), Err(error(ErrorKind::Timeout))],
            vec![Ok(warning.clone()), Err(error(ErrorKind::Auth))],
        ])
        .await;
        assert_eq!(
            events.iter().filter(|e| **e == Ok(warning.clone())).count(),
            1
        );
        assert_eq!(
            events.last().unwrap().as_ref().unwrap_err().kind,
            ErrorKind::Auth
        );
    }

    #[tokio::test]
    async fn the_servers_wait_is_kept_within_patience() {
        let mut asked = error(ErrorKind::RateLimited);
        asked.retry_after = Some(Duration::from_millis(3));
        let events = run(vec![vec![Err(asked)], vec![Ok(stopped())]]).await;
        assert!(
            matches!(&events[0], Ok(StreamEvent::Retrying(retry)) if retry.delay == Duration::from_millis(3))
        );
        let mut too_long = error(ErrorKind::RateLimited);
        too_long.retry_after = Some(Duration::from_secs(3_601));
        let events = run(vec![vec![Err(too_long)]]).await;
        assert!(
            events[0]
                .as_ref()
                .unwrap_err()
                .to_string()
                .contains("3601 s")
        );
    }
}
