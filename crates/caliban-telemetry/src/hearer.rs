//! Hears a session and exports what it hears, without ever holding it up.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_process::Guard;
use caliban_session::{EventBatch, Events};
use jiff::Timestamp;
use reqwest::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at};

use crate::bodies::{self, Bodies};
use crate::config::{Certificates, Collector, Config, Signal, Target};
use crate::exporter::{Body, SendError, client, send};
use crate::headers::Headers;
use crate::schema::Source;
use crate::traces::{Seed, Traces};
use crate::translation::{Batch, Beginning, Translator};
use crate::tree::Message;

/// Batches that may wait for a slow collector; what happens meanwhile waits with the translator.
const BATCHES: usize = 4;
/// Messages that are tried again later.
const UNSENT: usize = 64;

/// Tells the operator something, once.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// What exporting needs of the program.
#[derive(Clone)]
pub struct Means {
    pub guard: Guard,
    /// What programs see.
    pub environment: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
    pub warn: Warn,
    /// Calls as they are sent and answered, where somebody wants them.
    pub bodies: Option<Arc<Bodies>>,
}

impl std::fmt::Debug for Means {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Means")
    }
}

/// Hears a session to its end. The task ends when everything is sent; who waits for it sets the
/// bound, and whoever aborts it loses what is not.
pub fn hear(config: Config, traces: &Traces, events: Events, means: Means) -> JoinHandle<()> {
    tokio::spawn(heard(config, traces.seed(), events, means))
}

async fn heard(config: Config, seed: Seed, mut events: Events, means: Means) {
    let now = Timestamp::now();
    let mut translator = Translator::new(
        Beginning {
            contents: config.contents,
            temporality: config.temporality,
            included: config.included,
            seed,
        },
        now,
    );
    let begun = Instant::now();
    let mut metrics = interval_at(begun + config.metrics_every, config.metrics_every);
    let mut logs = interval_at(begun + config.logs_every, config.logs_every);
    let place = config.bodies.clone();
    let mut bodies = means.bodies.as_ref().and_then(|bodies| bodies.waiting());
    let (batches, waiting) = mpsc::channel(BATCHES);
    let sending = tokio::spawn(Sender::new(config, means.clone()).run(waiting));
    loop {
        tokio::select! {
            batch = events.next() => match batch {
                Some(EventBatch::Events(batch)) => {
                    for event in batch {
                        translator.hear(&event);
                    }
                }
                Some(EventBatch::Missed(_)) => {}
                None => break,
            },
            Some((at, body)) = bodies::next(&mut bodies) => {
                translator.body(at, place.as_ref(), body, &means).await;
            }
            _ = metrics.tick() => {
                if let Ok(room) = batches.try_reserve() {
                    room.send(translator.taken(Timestamp::now()));
                }
            }
            _ = logs.tick() => {
                if let Ok(room) = batches.try_reserve() {
                    room.send(translator.happened());
                }
            }
        }
    }
    while let Some(Ok((at, body))) = bodies.as_mut().map(mpsc::Receiver::try_recv) {
        translator.body(at, place.as_ref(), body, &means).await;
    }
    let lost = means.bodies.as_ref().map_or(0, |bodies| bodies.lost());
    let dropped = translator.dropped() + lost;
    if dropped > 0 {
        (means.warn)(&format!(
            "telemetry lost {dropped} records: nobody took them"
        ));
    }
    // The last one waits for room, and the one who waits for us sets the bound.
    let _ = batches.send(translator.taken(Timestamp::now())).await;
    drop(batches);
    let _ = sending.await;
}

/// Sends what waits, in the order in which it was told.
struct Sender {
    source: Source,
    outlets: Vec<Outlet>,
    certificates: Certificates,
    headers: Headers,
    means: Means,
    has_warned: bool,
    has_warned_of_headers: bool,
}

/// A signal and where it goes.
struct Outlet {
    signal: Signal,
    target: Target,
    client: Option<Client>,
    unsent: VecDeque<Body>,
}

impl Sender {
    fn new(config: Config, means: Means) -> Self {
        let outlets = config.targets.into_iter().map(|(signal, target)| Outlet {
            signal,
            target,
            client: None,
            unsent: VecDeque::new(),
        });
        Self {
            source: Source {
                resource: config.resource,
                version: env!("CARGO_PKG_VERSION"),
            },
            outlets: outlets.collect(),
            certificates: config.certificates,
            headers: Headers::new(config.helper),
            means,
            has_warned: false,
            has_warned_of_headers: false,
        }
    }

    async fn run(mut self, mut waiting: mpsc::Receiver<Batch>) {
        while let Some(batch) = waiting.recv().await {
            if batch.is_empty() && self.outlets.iter().all(|outlet| outlet.unsent.is_empty()) {
                continue;
            }
            if let Err(reason) = self.headers.refresh(&self.means).await {
                self.warn_of_headers(&reason);
            }
            self.send(&batch).await;
        }
    }

    /// All at the same time, so that a collector that hangs costs only what is for itself.
    async fn send(&mut self, batch: &Batch) {
        let source = &self.source;
        let message = |signal: Signal| match signal {
            Signal::Metrics if !batch.metrics.is_empty() => Some(source.metrics(&batch.metrics)),
            Signal::Logs if !batch.records.is_empty() => Some(source.records(&batch.records)),
            Signal::Traces if !batch.spans.is_empty() => Some(source.spans(&batch.spans)),
            Signal::Metrics | Signal::Logs | Signal::Traces => None,
        };
        let (certificates, headers) = (&self.certificates, &self.headers);
        let sending = self.outlets.iter_mut().map(|outlet| {
            let message = message(outlet.signal);
            outlet.send(message, certificates, headers)
        });
        let failed: Vec<String> = futures::future::join_all(sending)
            .await
            .into_iter()
            .filter_map(Result::err)
            .collect();
        for reason in failed {
            self.warn(&reason);
        }
    }

    /// What it printed before is used, or nothing; whether a collector minds is for it to say.
    fn warn_of_headers(&mut self, reason: &str) {
        if !self.has_warned_of_headers {
            self.has_warned_of_headers = true;
            let used = if self.headers.current.is_empty() {
                "without its headers"
            } else {
                "with the headers it printed before"
            };
            (self.means.warn)(&format!("telemetry is sent {used}: {reason}"));
        }
    }

    /// Says what is wrong the first time: a collector that is gone is gone for the whole session.
    fn warn(&mut self, reason: &str) {
        if !self.has_warned {
            self.has_warned = true;
            (self.means.warn)(&format!("telemetry is not exported: {reason}"));
        }
    }
}

impl Outlet {
    async fn send(
        &mut self,
        message: Option<Message>,
        certificates: &Certificates,
        headers: &Headers,
    ) -> Result<(), String> {
        let collector = match &self.target {
            Target::Console => {
                if let Some(message) = message {
                    let mut err = std::io::stderr().lock();
                    // Nobody may read it.
                    let _ = writeln!(err, "{}", message.json());
                }
                return Ok(());
            }
            Target::Collector(collector) => collector,
        };
        if let Some(message) = message {
            if self.unsent.len() >= UNSENT {
                self.unsent.pop_front();
            }
            self.unsent.push_back(Body::new(&message, collector));
        }
        if self.client.is_none() && !self.unsent.is_empty() {
            let made = made(collector.clone(), certificates.clone()).await;
            self.client = Some(made.map_err(|error| error.to_string())?);
        }
        while let (Some(body), Some(client)) = (self.unsent.front(), &self.client) {
            match send(client, collector, &headers.current, body).await {
                Ok(()) => {
                    self.unsent.pop_front();
                }
                Err(SendError::Never(reason)) => {
                    self.unsent.pop_front();
                    return Err(reason);
                }
                Err(SendError::Later(reason)) => return Err(reason),
            }
        }
        Ok(())
    }
}

/// A client, made where it holds nobody up.
async fn made(collector: Box<Collector>, certificates: Certificates) -> Result<Client, SendError> {
    let made = tokio::task::spawn_blocking(move || client(&collector, &certificates)).await;
    made.unwrap_or_else(|error| Err(SendError::Never(error.to_string())))
}
