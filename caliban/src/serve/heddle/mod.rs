//! `caliban serve heddle` as a face of the session: a client's requests in, events and results
//! out. One session per process, one message at a time; every `send` that was taken gets exactly
//! one result.

mod opening;
mod pace;
mod questions;
mod tool_names;

use std::sync::Arc;

use caliban_agent::{Outcome, Reply, RunTotals};
use caliban_harness::{DialectParts, Process, RunOptions, Surroundings};
use caliban_model::CancellationToken;
use caliban_protocol::heddle::{
    Baseline, Correlation, Envelope, Exchange, Init, Opening, Plan, Request, Response, Send,
    Version, request,
};
use caliban_session::{
    Asked, ClosedWhy, Command, Delivery, EventBatch, Events, Facts, Prompt, SessionHandle,
    Shutdown, What,
};
use caliban_settings::PermissionMode;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval};

use crate::console::{Console, note};
use crate::doctor::Doctor;
use crate::exit::Failure;
use crate::face::warn;
use crate::renaming::{Names, Renaming};
use crate::serve::lines::{Line, lines};

use opening::open;
use pace::{Pace, reached, tick};
use questions::OpenQuestions;
use tool_names::ListedNames;

/// The longest line that is read.
const MAX_LINE: usize = 10 * 1024 * 1024;
/// Why nothing is begun any more.
const SHUTTING_DOWN: &str = "the session is shutting down already";

/// Serves one client until it says goodbye or goes away.
pub(crate) async fn serve(
    options: RunOptions,
    process: Process,
    cancel: &CancellationToken,
    console: Console,
) -> Result<(), Failure> {
    let pace = Pace::read(&process.environment)?;
    let server = Server {
        options,
        process,
        cancel,
        console,
        pace,
        lines: Some(lines(std::io::stdin(), MAX_LINE)),
        open: None,
        active: None,
        goodbye: Goodbye::NotYet,
    };
    Box::pin(server.run()).await
}

struct Server<'a> {
    options: RunOptions,
    process: Process,
    cancel: &'a CancellationToken,
    console: Console,
    pace: Pace,
    /// Nothing once the client has closed its end.
    lines: Option<mpsc::Receiver<Line>>,
    open: Option<Open>,
    active: Option<Active>,
    goodbye: Goodbye,
}

/// A session that was begun, and what its client is told about it.
struct Open {
    handle: SessionHandle,
    /// Nothing once the session is over.
    events: Option<Events>,
    version: Version,
    correlation: Correlation,
    session_id: String,
    /// As the client named it.
    model: String,
    /// What the session is, as it told last.
    facts: Arc<Facts>,
    messages: usize,
    totals: RunTotals,
    questions: OpenQuestions,
}

/// The send that has no result yet.
struct Active {
    exchange: Exchange,
    started: Instant,
    beats: Option<Interval>,
}

/// Whether the session was told to end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Goodbye {
    NotYet,
    /// By the request `id`, which is answered when it is over; what is worked on is cancelled.
    Shutdown {
        id: String,
    },
    /// By the end of the input; what is worked on may go on until then.
    Hangup {
        until: Instant,
    },
    /// The time is up.
    Overdue,
}

impl Server<'_> {
    /// Serves requests and shows what happens until there will be no more of either.
    async fn run(mut self) -> Result<(), Failure> {
        let mut is_cancelled = false;
        loop {
            let done = tokio::select! {
                line = next_line(&mut self.lines) => self.heed(line).await,
                heard = next_heard(&mut self.open) => match self.hear(heard).await {
                    Ok(Some(end)) => return end,
                    Ok(None) => Ok(()),
                    Err(failure) => Err(failure),
                },
                () = tick(self.active.as_mut().and_then(|active| active.beats.as_mut())) => {
                    self.beat()
                }
                () = reached(self.goodbye.deadline()) => {
                    self.goodbye = Goodbye::Overdue;
                    self.leave(Shutdown::Now).await;
                    Ok(())
                }
                () = self.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    self.leave(Shutdown::Now).await;
                    Ok(())
                }
            };
            if self.is_over() {
                return done.and_then(|()| self.ending());
            }
            if let Err(failure) = done {
                // Nobody reads any more: there is nobody to work for.
                self.leave(Shutdown::Now).await;
                self.drain().await;
                return Err(failure);
            }
        }
    }

    /// Without a session there is nothing to wait for.
    fn is_over(&self) -> bool {
        let has_session = self.open.as_ref().is_some_and(|open| open.events.is_some());
        let is_told = match &self.goodbye {
            Goodbye::NotYet => self.cancel.is_cancelled(),
            Goodbye::Shutdown { .. } | Goodbye::Hangup { .. } | Goodbye::Overdue => true,
        };
        !has_session && is_told
    }

    fn ending(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.goodbye, Goodbye::Overdue) {
            Goodbye::Shutdown { id } => self.write(&Response::ShutdownOk { id }),
            Goodbye::NotYet | Goodbye::Hangup { .. } | Goodbye::Overdue => {
                if self.cancel.is_cancelled() {
                    Err(Failure::Outcome(Outcome::Cancelled))
                } else {
                    Ok(())
                }
            }
        }
    }

    async fn send(&self, command: Command) {
        if let Some(open) = &self.open {
            // It may have ended by itself.
            let _ = open.handle.send(command).await;
        }
    }

    async fn leave(&self, when: Shutdown) {
        self.send(Command::Shutdown { when }).await;
    }

    /// Hears the session out without showing it.
    async fn drain(&mut self) {
        if let Some(events) = self.open.as_mut().and_then(|open| open.events.as_mut()) {
            while events.next().await.is_some() {}
        }
    }

    /// A line of the client's, or the end of them.
    async fn heed(&mut self, line: Option<Line>) -> Result<(), Failure> {
        let Some(line) = line else {
            self.hang_up().await;
            return Ok(());
        };
        let Some(request) = self.read(line)? else {
            return Ok(());
        };
        if self.open.is_none() && !matches!(request, Request::Init(_)) {
            return self.refuse(id(request), "`init` must come first");
        }
        match request {
            Request::Init(init) if self.open.is_none() => self.init(init).await,
            Request::Init(Init { id, .. }) => self.refuse(id, "the session is initialised already"),
            Request::Send(send) => self.work(send).await,
            Request::Status { id } => self.status(id),
            Request::Cancel { id, target_id } => {
                let active = self.active.as_ref().map(|active| active.exchange.id());
                if active != Some(target_id.as_str()) {
                    return self.refuse(id, &format!("there is no send `{target_id}` to cancel"));
                }
                self.send(Command::Interrupt).await;
                Ok(())
            }
            Request::Permission(response) => {
                let id = response.id.clone();
                let open = self.open.as_mut();
                match open.and_then(|open| open.questions.answer(response)) {
                    Some(command) => {
                        self.send(command).await;
                        Ok(())
                    }
                    None if self.active.is_none() => self.refuse(id, "no question is open"),
                    None => self.refuse(id, "no such question is open"),
                }
            }
            Request::Shutdown { id } if self.goodbye == Goodbye::NotYet => {
                self.goodbye = Goodbye::Shutdown { id };
                self.leave(Shutdown::Now).await;
                Ok(())
            }
            Request::Shutdown { id } => self.refuse(id, SHUTTING_DOWN),
        }
    }

    /// The client wants nothing more, and cannot answer questions any more.
    async fn hang_up(&mut self) {
        self.lines = None;
        if let Some(events) = self.open.as_mut().and_then(|open| open.events.as_mut()) {
            events.stop_attending();
        }
        // Whoever said goodbye before is still answered.
        if self.goodbye == Goodbye::NotYet {
            let until = Instant::now() + self.pace.shutdown;
            self.goodbye = Goodbye::Hangup { until };
            self.leave(Shutdown::WhenIdle).await;
        }
    }

    async fn init(&mut self, init: Init) -> Result<(), Failure> {
        let Init {
            id,
            protocol_version,
            config,
        } = init;
        let version = match Version::negotiate(protocol_version.as_deref()) {
            Ok(version) => version,
            Err(mismatch) => return self.write(&Response::mismatch(id, &mismatch)),
        };
        let doctor = Doctor {
            options: self.options.clone(),
            process: self.process.clone(),
        };
        let names: Arc<dyn Names> = Arc::new(ListedNames::new(&config.tools));
        let surroundings = Surroundings {
            process: self.process.clone(),
            dialect: DialectParts {
                wrap_provider: Some(Box::new(|provider| {
                    Arc::new(Renaming::new(provider, names))
                })),
                examiner: Some(Arc::new(doctor)),
                patience: Some(self.pace.permission),
                ..DialectParts::default()
            },
        };
        let opened = tokio::select! {
            opened = open(&self.options, &config, surroundings) => opened,
            // Whoever ends the program does not wait for servers.
            () = self.cancel.cancelled() => return Ok(()),
        };
        let launched = match opened {
            Ok(launched) => launched,
            Err(failure) => return self.refuse(id, &failure.to_string()),
        };
        let facts = Arc::new(launched.facts.clone());
        let session_id = facts.session_id.clone();
        self.write(&Response::InitOk {
            id,
            session_id: session_id.clone(),
            protocol_version: version.as_str(),
            error: None,
        })?;
        let (handle, mut events) = launched.begin();
        if self.lines.is_some() && self.options.servers.prompt_tool.is_none() {
            events.attend();
        }
        self.open = Some(Open {
            handle,
            events: Some(events),
            version,
            correlation: Correlation {
                session_id: Some(session_id.clone()),
                task_id: config.task_id,
                worker_id: config.worker_id,
            },
            session_id,
            model: config.model,
            messages: facts.messages,
            facts,
            totals: RunTotals::default(),
            questions: OpenQuestions::default(),
        });
        Ok(())
    }

    /// Begins to work on a message.
    async fn work(&mut self, send: Send) -> Result<(), Failure> {
        if self.goodbye != Goodbye::NotYet {
            return self.refuse(send.id, SHUTTING_DOWN);
        }
        if let Some(active) = &self.active {
            let active = active.exchange.id();
            return self.refuse(send.id, &format!("the send `{active}` is not finished"));
        }
        let Some(open) = &self.open else {
            return Ok(());
        };
        if open.events.is_none() {
            return self.refuse(send.id, "the session has ended");
        }
        let started = Instant::now();
        let id = uuid::Uuid::new_v4().to_string();
        let prompt = Prompt::typed(id, send.message);
        self.active = Some(Active {
            exchange: open.exchange(send.id),
            started,
            beats: self.pace.heartbeats(started),
        });
        let delivery = Delivery::Queue;
        self.send(Command::Prompt { prompt, delivery }).await;
        Ok(())
    }

    /// What the session tells; an end where it is the last thing.
    async fn hear(
        &mut self,
        heard: Option<EventBatch>,
    ) -> Result<Option<Result<(), Failure>>, Failure> {
        let Some(EventBatch::Events(events)) = heard else {
            if let Some(open) = &mut self.open {
                open.events = None;
            }
            return Ok(None);
        };
        for event in events {
            if let Some(end) = self.tell(&event.what).await? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    async fn tell(&mut self, what: &What) -> Result<Option<Result<(), Failure>>, Failure> {
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let exchange = self.active.as_mut().map(|active| &mut active.exchange);
        let told = match what {
            What::Began { facts, .. } => {
                open.facts = Arc::clone(facts);
                Vec::new()
            }
            What::Run(event) => {
                warn(event);
                exchange.map_or_else(Vec::new, |it| it.events(event))
            }
            What::Asked(asked) => {
                let event = open.questions.add(asked);
                if let (Some(event), Some(exchange)) = (event, exchange) {
                    exchange.events(&event)
                } else {
                    self.decline(asked).await;
                    Vec::new()
                }
            }
            What::Answered(answered) => match open.questions.close(&answered.question) {
                Some(event) => exchange.map_or_else(Vec::new, |it| it.events(&event)),
                None => Vec::new(),
            },
            What::Ended {
                outcome, totals, ..
            } => {
                self.end(outcome, totals)?;
                return Ok(None);
            }
            What::Closed { why, trouble } => {
                if let Some(trouble) = trouble {
                    note(&format!("warning: the session was not saved: {trouble}"));
                }
                open.events = None;
                return Ok(match why {
                    ClosedWhy::Crashed => Some(Err(Failure::Silent(1))),
                    ClosedWhy::Shutdown | ClosedWhy::Budget | ClosedWhy::Abandoned => None,
                });
            }
            What::Refused(refused) => {
                let message = refused.reason.clone();
                if let caliban_session::Place::Prompt(_) = refused.what {
                    self.end(&Outcome::Internal { message }, &RunTotals::default())?;
                }
                return Ok(None);
            }
            What::Opened(_)
            | What::Queued { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::ModeChanged { .. }
            | What::ModelChanged { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing => Vec::new(),
        };
        for response in told {
            self.write(&response)?;
        }
        Ok(None)
    }

    /// The one result of a send.
    fn end(&mut self, outcome: &Outcome, totals: &RunTotals) -> Result<(), Failure> {
        let Some(Active {
            mut exchange,
            started,
            ..
        }) = self.active.take()
        else {
            return Ok(());
        };
        for response in exchange.ended(outcome) {
            self.write(&response)?;
        }
        if let Some(open) = &mut self.open {
            open.messages = exchange.messages();
            open.totals = totals.clone();
            open.questions.clear();
        }
        if let Outcome::Internal { message } = outcome {
            note(&format!("caliban: {message}"));
        }
        self.write(&exchange.result(outcome, Some(totals), started.elapsed()))
    }

    /// There is no way to ask this client on behalf of a server.
    async fn decline(&self, asked: &Asked) {
        let question = Arc::clone(&asked.question);
        let reply = Reply::Nobody;
        self.send(Command::AnswerElicitation { question, reply })
            .await;
    }

    /// Reads a line; one that is no request is answered here.
    fn read(&mut self, line: Line) -> Result<Option<Request>, Failure> {
        let read = match line {
            Line::Text(text) => request(&text).map_err(|bad| (bad.id, bad.error)),
            Line::Unusable(reason) => Err((None, Envelope::protocol(reason))),
        };
        match read {
            Ok(request) => Ok(request),
            Err((id, error)) => {
                self.write(&Response::Error { id, error })?;
                Ok(None)
            }
        }
    }

    fn refuse(&mut self, id: String, message: &str) -> Result<(), Failure> {
        self.write(&Response::Error {
            id: Some(id),
            error: Envelope::protocol(message),
        })
    }

    fn status(&mut self, id: String) -> Result<(), Failure> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let active = self.active.as_ref();
        let response = Response::StatusOk {
            id,
            model: open.model.clone(),
            messages_count: active.map_or(open.messages, |active| active.exchange.messages()),
            session_id: open.session_id.clone(),
            active: active.is_some(),
        };
        self.write(&response)
    }

    fn beat(&mut self) -> Result<(), Failure> {
        let Some(active) = &mut self.active else {
            return Ok(());
        };
        let heartbeat = active.exchange.heartbeat(active.started.elapsed());
        self.write(&heartbeat)
    }

    fn write(&mut self, response: &Response) -> Result<(), Failure> {
        self.console.write(&response.line())
    }
}

impl Goodbye {
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Hangup { until } => Some(*until),
            Self::NotYet | Self::Shutdown { .. } | Self::Overdue => None,
        }
    }
}

impl Open {
    fn exchange(&self, id: String) -> Exchange {
        Exchange::new(Opening {
            id,
            version: self.version,
            correlation: self.correlation.clone(),
            provider: self.facts.provider.clone(),
            plan: if self.facts.permission_mode == PermissionMode::Plan.as_str() {
                Plan::Expected
            } else {
                Plan::None
            },
            before: Baseline::new(&self.totals, self.messages),
        })
    }
}

async fn next_line(lines: &mut Option<mpsc::Receiver<Line>>) -> Option<Line> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_heard(open: &mut Option<Open>) -> Option<EventBatch> {
    match open.as_mut().and_then(|open| open.events.as_mut()) {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

fn id(request: Request) -> String {
    match request {
        Request::Init(Init { id, .. })
        | Request::Send(Send { id, .. })
        | Request::Status { id }
        | Request::Cancel { id, .. }
        | Request::Shutdown { id } => id,
        Request::Permission(response) => response.id,
    }
}
