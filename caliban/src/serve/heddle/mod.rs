//! `caliban serve heddle`: a client's requests in, events and results out. One session per
//! process, one message at a time; every `send` that was taken gets exactly one result.

mod desk;
mod lines;
mod opening;

use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Event, Outcome, RunTotals};
use caliban_harness::Session;
use caliban_model::{CancellationToken, Message};
use caliban_permissions::Regime;
use caliban_protocol::heddle::{
    Baseline, Correlation, Envelope, Exchange, Init, Opening, Plan, Request, Response, Send,
    Version, request,
};
use caliban_settings::PermissionMode;
use caliban_settings::variables::{Environment, names};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::args::{Cli, InputFormat};
use crate::console::{Console, note};
use crate::crash;
use crate::debug_log::DebugLog;
use crate::exit::Failure;

use desk::{Desk, Ear};
use lines::{Line, lines};
use opening::{Flags, Opened, open};

/// Events that wait to be written; a run waits for a client that is further behind.
const EVENT_QUEUE: usize = 256;
/// How long ending the session may take: what takes longer, its guardian ends without us.
const GOODBYE: Duration = Duration::from_millis(1500);

/// Serves one client until it says goodbye or goes away.
pub(crate) async fn serve(
    cli: Cli,
    environment: Environment<'_>,
    cancel: &CancellationToken,
    console: Console,
) -> Result<(), Failure> {
    check(&cli)?;
    let pace = Pace::read(&environment)?;
    let mut server = Server {
        flags: Flags::of(&cli),
        cli,
        environment,
        cancel,
        console,
        desk: Arc::new(Desk::new(pace.permission)),
        pace,
        lines: lines(std::io::stdin()),
        active: None,
    };
    let ended = crash::guarded(Box::pin(server.run())).await;
    match ended {
        Ok(result) => result,
        Err(crash) => {
            let message = crash.to_string();
            if let Some((exchange, started)) = server.active.take() {
                let outcome = Outcome::Internal {
                    message: message.clone(),
                };
                let result = exchange.result(&outcome, None, started.elapsed());
                server.write(&result)?;
            }
            Err(Failure::Runtime(message))
        }
    }
}

/// Refuses what a client says, or what belongs to another face.
fn check(cli: &Cli) -> Result<(), Failure> {
    let run = &cli.run;
    let prompt = run.prompt.is_some() || run.prompt_flag.is_some() || run.print.is_some();
    let system = run.system.is_some() || run.system_file.is_some() || run.no_system;
    let misplaced = [
        (prompt, "a prompt"),
        (system, "a system prompt"),
        (run.model.model.is_some(), "`--model`"),
        (run.output.output_format.is_some(), "`--output-format`"),
        (
            run.output.input_format != InputFormat::Text,
            "`--input-format`",
        ),
        (run.output.json_schema.is_some(), "`--json-schema`"),
    ];
    match misplaced.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, what)) => Err(Failure::Usage(format!(
            "`serve heddle` takes {what} from its client, not from the command line"
        ))),
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Between two signs of life; none are sent where it is zero.
    heartbeat: Duration,
    /// For an answer to a question.
    permission: Duration,
    /// For the work that goes on when the client wants to leave.
    shutdown: Duration,
}

impl Pace {
    fn read(environment: &Environment<'_>) -> Result<Self, Failure> {
        let millis = |name, default| -> Result<Duration, Failure> {
            Ok(environment.millis(name)?.unwrap_or(default))
        };
        Ok(Self {
            heartbeat: millis(names::HEDDLE_HEARTBEAT_INTERVAL, Duration::from_secs(5))?,
            permission: millis(names::HEDDLE_PERMISSION_TIMEOUT, Duration::from_mins(1))?,
            shutdown: millis(names::HEDDLE_SHUTDOWN_TIMEOUT, Duration::from_secs(30))?,
        })
    }

    fn heartbeats(&self, from: Instant) -> Option<Interval> {
        if self.heartbeat.is_zero() {
            return None;
        }
        let mut beats = interval_at(from + self.heartbeat, self.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(beats)
    }
}

struct Server<'a> {
    cli: Cli,
    flags: Flags,
    environment: Environment<'a>,
    cancel: &'a CancellationToken,
    console: Console,
    desk: Arc<Desk>,
    pace: Pace,
    lines: mpsc::Receiver<Line>,
    /// The send that has no result yet, and since when.
    active: Option<(Exchange, Instant)>,
}

/// A session that was begun, and what its client is told about it.
struct Open {
    session: Session,
    debug: Option<DebugLog>,
    about: About,
    totals: RunTotals,
}

struct About {
    version: Version,
    correlation: Correlation,
    session_id: String,
    /// As the client named it.
    model: String,
}

/// What the client wants after the message that is worked on.
#[derive(Debug, PartialEq, Eq)]
enum After {
    Next,
    Shutdown {
        id: String,
    },
    /// It asks nothing more, or a signal ended everything.
    Gone,
}

impl Server<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        let mut open = None;
        let after = self.requests(&mut open).await;
        if let Some(Open { session, .. }) = open
            && let Ok(Err(trouble)) = timeout(GOODBYE, session.shutdown()).await
        {
            note(&format!("warning: the session was not saved: {trouble}"));
        }
        match after? {
            After::Shutdown { id } => self.write(&Response::ShutdownOk { id }),
            After::Next | After::Gone if self.cancel.is_cancelled() => {
                Err(Failure::Outcome(Outcome::Cancelled))
            }
            After::Next | After::Gone => Ok(()),
        }
    }

    /// Serves requests until there will be no more.
    async fn requests(&mut self, open: &mut Option<Open>) -> Result<After, Failure> {
        loop {
            let line = tokio::select! {
                line = self.lines.recv() => line,
                () = self.cancel.cancelled() => None,
            };
            let Some(line) = line else {
                return Ok(After::Gone);
            };
            let Some(request) = self.read(line)? else {
                continue;
            };
            match (request, &mut *open) {
                (Request::Init(init), None) => *open = self.init(init)?,
                (Request::Init(Init { id, .. }), Some(_)) => {
                    self.refuse(id, "the session is initialised already")?;
                }
                (request, None) => self.refuse(id(request), "`init` must come first")?,
                (Request::Send(send), Some(open)) => match self.work(open, send).await? {
                    After::Next => {}
                    last => return Ok(last),
                },
                (Request::Status { id }, Some(open)) => {
                    let messages = open.session.conversation().messages().len();
                    self.status(id, &open.about, messages)?;
                }
                (Request::Cancel { id, target_id }, Some(_)) => {
                    self.refuse(id, &format!("there is no send `{target_id}` to cancel"))?;
                }
                (Request::Permission(response), Some(_)) => {
                    self.refuse(response.id, "no question is open")?;
                }
                (Request::Shutdown { id }, Some(_)) => return Ok(After::Shutdown { id }),
            }
        }
    }

    fn init(&mut self, init: Init) -> Result<Option<Open>, Failure> {
        let Init {
            id,
            protocol_version,
            config,
        } = init;
        let version = match Version::negotiate(protocol_version.as_deref()) {
            Ok(version) => version,
            Err(mismatch) => {
                self.write(&Response::mismatch(id, &mismatch))?;
                return Ok(None);
            }
        };
        let operator = Arc::clone(&self.desk);
        let opened = open(
            &mut self.cli,
            self.flags,
            &config,
            self.environment,
            operator,
        );
        let Opened { session, debug } = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                self.refuse(id, &failure.to_string())?;
                return Ok(None);
            }
        };
        let session_id = session.agent().session_id.to_string();
        self.write(&Response::InitOk {
            id,
            session_id: session_id.clone(),
            protocol_version: version.as_str(),
            error: None,
        })?;
        Ok(Some(Open {
            session,
            debug,
            about: About {
                version,
                correlation: Correlation {
                    session_id: Some(session_id.clone()),
                    task_id: config.task_id,
                    worker_id: config.worker_id,
                },
                session_id,
                model: config.model,
            },
            totals: RunTotals::default(),
        }))
    }

    /// Works on one message to its result, and serves what the client wants meanwhile.
    async fn work(&mut self, open: &mut Open, send: Send) -> Result<After, Failure> {
        let started = Instant::now();
        self.active = Some((exchange(open, send.id), started));
        let Open {
            session,
            debug,
            about,
            totals,
        } = open;
        let (sender, mut events) = mpsc::channel(EVENT_QUEUE);
        let stop = self.cancel.child_token();
        let desk = Arc::clone(&self.desk);
        let ear = Ear {
            desk: &desk,
            events: sender,
        };
        let running = session.run(Message::user(send.message), &ear, &stop);
        tokio::pin!(running);
        let mut beats = self.pace.heartbeats(started);
        let mut after = After::Next;
        let mut has_input = true;
        let mut deadline = None;
        let mut shown = Ok(());
        let (outcome, sums) = loop {
            let told = tokio::select! {
                ended = &mut running => break ended,
                Some(event) = events.recv() => self.tell(&event, debug.as_mut()),
                () = tick(beats.as_mut()) => self.beat(),
                () = reached(deadline) => {
                    deadline = None;
                    stop.cancel();
                    Ok(())
                }
                line = self.lines.recv(), if has_input => match line {
                    None => {
                        has_input = false;
                        // Whoever said goodbye before is still answered.
                        if after == After::Next {
                            after = After::Gone;
                        }
                        desk.desert();
                        Ok(())
                    }
                    Some(line) => self.meanwhile(line, about, &stop, &mut after),
                },
            };
            if deadline.is_none() && after != After::Next && !stop.is_cancelled() {
                deadline = Some(Instant::now() + self.pace.shutdown);
            }
            // Nobody reads any more: there is nobody to work for.
            if told.is_err() && shown.is_ok() {
                shown = told;
                stop.cancel();
            }
        };
        desk.clear();
        while let Ok(event) = events.try_recv() {
            if shown.is_ok() {
                shown = self.tell(&event, debug.as_mut());
            }
        }
        shown?;
        if let Some((exchange, started)) = self.active.take() {
            let result = exchange.result(&outcome, Some(&sums), started.elapsed());
            self.write(&result)?;
        }
        *totals = sums;
        if self.cancel.is_cancelled() {
            after = After::Gone;
        }
        Ok(after)
    }

    /// A line while a message is worked on.
    fn meanwhile(
        &mut self,
        line: Line,
        about: &About,
        stop: &CancellationToken,
        after: &mut After,
    ) -> Result<(), Failure> {
        let Some(request) = self.read(line)? else {
            return Ok(());
        };
        let active = self.active.as_ref();
        let active = active.map(|(exchange, _)| (exchange.id().to_owned(), exchange.messages()));
        let (active, messages) = active.unwrap_or_default();
        match request {
            Request::Init(Init { id, .. }) => self.refuse(id, "the session is initialised already"),
            Request::Send(Send { id, .. }) => {
                self.refuse(id, &format!("the send `{active}` is not finished"))
            }
            Request::Status { id } => self.status(id, about, messages),
            Request::Cancel { target_id, .. } if target_id == active => {
                stop.cancel();
                Ok(())
            }
            Request::Cancel { id, target_id } => {
                self.refuse(id, &format!("there is no send `{target_id}` to cancel"))
            }
            Request::Permission(response) => {
                let id = response.id.clone();
                match self.desk.answer(response) {
                    Ok(()) => Ok(()),
                    Err(reason) => self.refuse(id, &reason),
                }
            }
            Request::Shutdown { id } if *after == After::Next => {
                *after = After::Shutdown { id };
                Ok(())
            }
            Request::Shutdown { id } => self.refuse(id, "the session is shutting down already"),
        }
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

    fn status(&mut self, id: String, about: &About, messages: usize) -> Result<(), Failure> {
        self.write(&Response::StatusOk {
            id,
            model: about.model.clone(),
            messages_count: messages,
            session_id: about.session_id.clone(),
            active: self.active.is_some(),
        })
    }

    fn tell(&mut self, event: &Event, debug: Option<&mut DebugLog>) -> Result<(), Failure> {
        if let Some(debug) = debug {
            debug.note(event);
        }
        match event {
            Event::Warning(warning) => note(&format!("warning: {}", warning.message)),
            Event::Notice { message, .. } => note(&format!("warning: {message}")),
            _ => {}
        }
        let told = match &mut self.active {
            Some((exchange, _)) => exchange.events(event),
            None => Vec::new(),
        };
        told.iter().try_for_each(|response| self.write(response))
    }

    fn beat(&mut self) -> Result<(), Failure> {
        match &mut self.active {
            Some((exchange, started)) => {
                let beat = exchange.heartbeat(started.elapsed());
                self.write(&beat)
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, response: &Response) -> Result<(), Failure> {
        self.console.write(&response.line())
    }
}

fn exchange(open: &Open, id: String) -> Exchange {
    let Open {
        session,
        about,
        totals,
        ..
    } = open;
    Exchange::new(Opening {
        id,
        version: about.version,
        correlation: about.correlation.clone(),
        provider: session.agent().provider.id().to_owned(),
        plan: match session.regime() {
            Regime::Rules(PermissionMode::Plan) => Plan::Expected,
            Regime::Rules(_) | Regime::Disabled => Plan::None,
        },
        before: Baseline::new(totals, session.conversation().messages().len()),
    })
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

async fn tick(beats: Option<&mut Interval>) {
    match beats {
        Some(beats) => {
            beats.tick().await;
        }
        None => std::future::pending().await,
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
