//! The server itself: the listener, its shared state, and the way from a request to a plan.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use crate::anthropic::Call;
use crate::ask::{Ask, Mode};
use crate::auth;
use crate::cloud;
use crate::connection;
use crate::family::{self, Memory};
use crate::fault::{ErrorKind, Fault, Rejection, Verdict};
use crate::frame::{self, Event};
use crate::http::Request;
use crate::listing;
use crate::ollama;
use crate::plan::{self, End, Headers, Plan, Spares};
use crate::queue::Queue;
use crate::record::{Api, Log, Outcome, Recorded};
use crate::route::{Route, route};
use crate::script::{Checks, Document, ModelEntry, Reply, Script};
use crate::turn::{Ids, Turn};

/// A running server. Dropping it stops the listener and every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: AbortHandle,
}

impl ModelServer {
    /// Listens on a free loopback port. Must be called within a tokio runtime.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script).await
    }

    /// Listens on the given address. Must be called within a tokio runtime.
    pub async fn bind(address: SocketAddr, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script));
        let task = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self {
            address,
            shared,
            listener: task.abort_handle(),
        })
    }

    /// The base address without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything received so far, in order. The oldest are forgotten beyond 65536 requests or
    /// 256 MiB of bodies.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.log.all()
    }

    /// The generation calls among the requests.
    pub fn model_requests(&self) -> Vec<Recorded> {
        self.shared.log.model_calls()
    }

    /// Resolves once `n` generation calls have arrived.
    pub async fn wait_for_requests(&self, n: usize) -> Vec<Recorded> {
        self.shared.log.wait_for_calls(n).await;
        self.model_requests()
    }

    /// Connections that the client closed before its answer was completely written.
    pub fn disconnects(&self) -> usize {
        self.shared.log.disconnects()
    }

    /// Resolves once a client has closed a connection before its answer was completely written.
    pub async fn wait_for_disconnect(&self) {
        self.shared.log.wait_for_disconnect().await;
    }

    /// Appends a reply to the running script.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.queue).push(reply);
    }

    /// Lets one held reply go on: one that waits already, or the next that will.
    pub fn release(&self) {
        self.shared.releases.add_permits(1);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// Before accepting again after a failure.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Owns the connection tasks, so that ending this task ends them all.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: some become free when connections end.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let shared = shared.clone();
        connections.spawn(async move { connection::serve(stream, &shared).await });
        while connections.try_join_next().is_some() {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all connections of one server have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    memory: Mutex<Memory>,
    ids: Ids,
    log: Log,
    checks: Checks,
    require_key: Option<String>,
    models: Vec<ModelEntry>,
    documents: Vec<Document>,
    /// One permit for each held reply that may go on.
    releases: Semaphore,
}

type Answer = (Plan, Outcome);

impl Shared {
    fn new(script: Script) -> Self {
        Self {
            queue: Mutex::new(Queue::new(script.replies, script.after)),
            memory: Mutex::new(Memory::trusting(script.known_signatures)),
            ids: Ids::default(),
            log: Log::default(),
            checks: script.checks,
            require_key: script.require_key,
            models: script.models,
            documents: script.documents,
            releases: Semaphore::new(0),
        }
    }

    /// Resolves once a held reply may go on.
    pub(crate) async fn released(&self) {
        // Never closed, so there is nothing else to come of it.
        if let Ok(permit) = self.releases.acquire().await {
            permit.forget();
        }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Decides the complete response to a request and records both.
    pub(crate) fn answer(&self, request: &Request) -> Plan {
        let (api, (plan, outcome)) = match route(request) {
            _ if self.document(request).is_some() => {
                let document = self.document(request).unwrap_or_default();
                (None, (Plan::document(&document), Outcome::Answered))
            }
            Route::Wrapped(wrapped) => {
                let (inner, ask) = wrapped.unwrap(request);
                let api = wrapped.api();
                (Some(api), self.generate(api, &inner, ask))
            }
            Route::Generate(api) => (
                Some(api),
                self.generate(api, request, Ask::from_body(api, &request.body)),
            ),
            Route::GenerateGemini { model, mode } => {
                let ask = Ask::from_path(model, mode, &request.body);
                (Some(Api::Gemini), self.generate(Api::Gemini, request, ask))
            }
            Route::Count(api) => (
                None,
                self.count(api, request, Ask::from_body(api, &request.body)),
            ),
            Route::CountGemini { model } => {
                let ask = Ask::from_path(model, Mode::Whole, &request.body);
                (None, self.count(Api::Gemini, request, ask))
            }
            other => (None, self.describe(&other, request)),
        };
        self.log.add(Recorded {
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            body: request.body.clone(),
            api,
            outcome,
        });
        plan
    }

    /// What the script has at this very address.
    fn document(&self, request: &Request) -> Option<Document> {
        let path = request.path.split('?').next().unwrap_or_default();
        let mut documents = self.documents.iter();
        documents
            .find(|document| document.method == request.method && document.path == path)
            .cloned()
    }

    fn admit(
        &self,
        api: Api,
        request: &Request,
        ask: Result<Ask, Rejection>,
        call: Call,
    ) -> Result<Ask, Rejection> {
        auth::check(api, request, self.checks, self.require_key.as_deref())?;
        let ask = ask?;
        self.check(&ask, request, call)?;
        Ok(ask)
    }

    fn check(&self, ask: &Ask, request: &Request, call: Call) -> Verdict {
        match self.checks {
            Checks::On | Checks::Keyless => {
                family::check(ask, request, &lock(&self.memory), &self.models, call)
            }
            Checks::Off => Ok(()),
        }
    }

    fn describe(&self, route: &Route<'_>, request: &Request) -> Answer {
        if let Some(api) = listing::api(route) {
            let verdict = auth::check(api, request, self.checks, self.require_key.as_deref());
            if let Err(rejection) = verdict {
                let headers = family::headers(api, &self.ids.request());
                return refuse(api, Mode::Whole, &rejection, &headers);
            }
        }
        listing::answer(route, &self.models, request)
    }

    fn count(&self, api: Api, request: &Request, ask: Result<Ask, Rejection>) -> Answer {
        let headers = family::headers(api, &self.ids.request());
        match self.admit(api, request, ask, Call::Count) {
            Ok(_) => {
                let tokens = request.body.len().div_ceil(4);
                (
                    Plan::json(200, &headers, &family::count_body(api, tokens)),
                    Outcome::Answered,
                )
            }
            Err(rejection) => refuse(api, Mode::Whole, &rejection, &headers),
        }
    }

    fn generate(&self, api: Api, request: &Request, ask: Result<Ask, Rejection>) -> Answer {
        let headers = family::headers(api, &self.ids.request());
        let is_binary = match &ask {
            Ok(ask) => ask.mode == Mode::EventStream,
            Err(_) => api == Api::Converse,
        };
        let mode = if is_binary {
            Mode::EventStream
        } else {
            Mode::Whole
        };
        let ask = match self.admit(api, request, ask, Call::Create) {
            Ok(ask) => ask,
            Err(rejection) => return refuse(api, mode, &rejection, &headers),
        };
        if let Some(body) = ollama::loading(&ask) {
            return (Plan::json(200, &headers, &body), Outcome::Answered);
        }
        let Some(reply) = lock(&self.queue).take(&ask) else {
            let reason = "the script has no reply left for this request";
            let rejection = Rejection::new(500, ErrorKind::Server, reason);
            return refuse(api, ask.mode, &rejection, &headers);
        };
        if let Some(plan) = replaced(&ask, &reply, &headers) {
            return (plan.delayed(&reply), outcome(&reply));
        }
        let turn = Turn::resolve(&reply, &ask, &self.ids);
        lock(&self.memory).remember(&ask, &turn);
        (deliver(&ask, &turn, &reply, &headers), outcome(&reply))
    }
}

fn outcome(reply: &Reply) -> Outcome {
    reply
        .fault
        .clone()
        .map_or(Outcome::Answered, Outcome::Fault)
}

fn refuse(api: Api, mode: Mode, rejection: &Rejection, headers: &Headers) -> Answer {
    let body = family::error_body(api, mode, rejection, headers);
    let outcome = Outcome::Rejected {
        status: rejection.status,
        reason: rejection.message.clone(),
    };
    let headers = with_class(mode, rejection, headers);
    (Plan::json(rejection.status, &headers, &body), outcome)
}

/// Bedrock names the class of an error in a header.
fn with_class(mode: Mode, rejection: &Rejection, headers: &Headers) -> Headers {
    let mut headers = headers.clone();
    if mode == Mode::EventStream {
        let class = cloud::class(rejection.kind);
        let value = format!("{class}:http://internal.amazon.com/coral/com.amazon.bedrock/");
        headers.push(("x-amzn-errortype".to_owned(), value));
    }
    headers
}

/// The plan of a fault that leaves nothing of the answer.
fn replaced(ask: &Ask, reply: &Reply, headers: &Headers) -> Option<Plan> {
    let error = |code: u16, kind: ErrorKind| {
        Rejection::new(code, kind, family::message(ask.api, kind, &ask.model))
    };
    Some(match reply.fault.as_ref()? {
        Fault::Status {
            code,
            kind,
            retry_after,
            retry_after_ms,
            headers: extra,
            body,
        } => {
            let mut rejection = error(*code, kind.unwrap_or_else(|| ErrorKind::of_status(*code)));
            rejection.retry_after.clone_from(retry_after);
            let mut all = with_class(ask.mode, &rejection, headers);
            all.extend(
                retry_after
                    .iter()
                    .map(|v| ("retry-after".to_owned(), v.clone())),
            );
            all.extend(
                retry_after_ms
                    .iter()
                    .map(|v| ("retry-after-ms".to_owned(), v.to_string())),
            );
            all.extend(
                extra
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
            let default = || family::error_body(ask.api, ask.mode, &rejection, headers);
            Plan::json(*code, &all, &body.clone().unwrap_or_else(default))
        }
        Fault::ResetBeforeHeaders => Plan::nothing(End::Reset),
        Fault::StallBeforeHeaders => Plan::nothing(End::Stall),
        Fault::Garbage => Plan::fixed(200, family::content_type(ask), headers, &plan::garbage()),
        Fault::HtmlBody { status } => {
            let page =
                format!("<html><head><title>{status}</title></head><body>{status}</body></html>");
            Plan::fixed(*status, "text/html", headers, page.as_bytes())
        }
        Fault::JsonErrorWith200 => {
            let rejection = error(500, ErrorKind::Server);
            Plan::json(
                200,
                headers,
                &family::error_body(ask.api, ask.mode, &rejection, headers),
            )
        }
        Fault::ResetMidStream { .. }
        | Fault::CloseMidStream { .. }
        | Fault::StallMidStream { .. }
        | Fault::MalformedEvent { .. }
        | Fault::TruncatedEvent { .. }
        | Fault::ErrorEvent { .. } => return None,
    })
}

fn deliver(ask: &Ask, turn: &Turn, reply: &Reply, headers: &Headers) -> Plan {
    let (position, kind) = match &reply.fault {
        Some(Fault::ErrorEvent { after_events, kind }) => (*after_events, *kind),
        Some(Fault::MalformedEvent { after_events }) => (*after_events, ErrorKind::Server),
        _ => (0, ErrorKind::Server),
    };
    let rejection = Rejection::new(
        family::status(ask.api, kind),
        kind,
        family::message(ask.api, kind, &ask.model),
    );
    match ask.mode {
        Mode::Whole => {
            let error = family::error_body(ask.api, ask.mode, &rejection, headers);
            plan::whole(headers, &family::document(ask, turn), &error, reply)
        }
        Mode::Stream | Mode::Array | Mode::EventStream => {
            let frames = |events: &[_]| frame::frames(ask.api, ask.mode, &turn.quirks, events);
            // Framed behind a stand-in where others precede it: an array's elements differ by place.
            let spare = |event: Event| match position {
                0 => frames(&[event]).concat(),
                _ => frames(&[Event::unnamed(&"null"), event])
                    .pop()
                    .unwrap_or_default(),
            };
            let spares = Spares {
                malformed: spare(family::malformed_event(ask.api)),
                error: spare(match ask.mode {
                    Mode::EventStream => family::exception_event(&rejection),
                    _ => family::error_event(ask.api, &rejection, headers, position),
                }),
            };
            let frames = frames(&family::events(ask, turn));
            plan::streamed(family::content_type(ask), headers, frames, reply, spares)
        }
    }
}

/// The answer to an address no family has.
pub(crate) fn not_found(request: &Request) -> Answer {
    let reason = format!("no such endpoint: {} {}", request.method, request.path);
    let body = json!({"error": {"message": reason}});
    (
        Plan::json(404, &Headers::new(), &body),
        Outcome::Rejected {
            status: 404,
            reason,
        },
    )
}
