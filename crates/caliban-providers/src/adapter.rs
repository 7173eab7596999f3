//! The life of one call, the same for every family: encode, send, read frames, decode.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_stream::try_stream;
use bytes::Bytes;
use caliban_http::Events;
use caliban_model::{
    CancellationToken, Capabilities, Error, ErrorKind, EventStream, Freshness, ModelInfo, Origin,
    Provider, Request, StreamEvent, Usage, Warning, WarningKind, base_model,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use crate::assembly::Assembly;
use crate::failure::{Refusal, fail, network_error};
use crate::framing::{Frame, Framer, Lines, MAX_FRAME, Piece};
use crate::http::{self, Timeouts};
use crate::sight::{self, Blind};
use crate::transport::{Call, Framing, Transport};
use crate::wiretap::{Heard, Wiretap};

/// How often a family may change a refused call and send it again.
const MAX_REVISIONS: usize = 3;
/// The most of a refusal's body that is read.
const MAX_REFUSAL: usize = 256 * 1024;
/// How long an answer that is complete may take to end its body, so that the connection can be
/// used again.
const DRAIN: Duration = Duration::from_millis(250);

/// One wire format: how requests are written and answers read.
pub(crate) trait Family: Send + Sync + Debug {
    /// The provider's short name.
    fn id(&self) -> &'static str;

    fn framing(&self) -> Framing;

    /// Writes the request, leaving out what the model would reject. `link` is for families that
    /// must ask the server about the model first.
    fn encode<'a>(
        &'a self,
        request: &'a Request,
        link: &'a Link,
    ) -> BoxFuture<'a, Result<Encoded, Error>>;

    fn decoder(&self, request: &Request) -> Box<dyn Decoder>;

    /// Reads an error answer.
    fn refusal(&self, refusal: Refusal<'_>) -> Error;

    /// What the user can do about an error of this kind, where this provider knows better than
    /// the general advice.
    fn remedy(&self, _kind: &ErrorKind, _model: &str) -> Option<String> {
        None
    }

    /// Whether what was refused once is refused always.
    fn refusals(&self) -> Refusals {
        Refusals::Single
    }

    /// Changes a call that was refused for something that can be left out.
    fn revise(&self, _call: &mut Call, _error: &Error) -> Revision {
        Revision::GiveUp
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        caliban_model::capabilities(self.id(), model)
    }

    /// Whether a model is known to see no images; a family that asks its server answers for itself.
    fn is_blind(&self, model: &str) -> bool {
        !caliban_model::capabilities(self.id(), model).vision
    }

    fn models<'a>(&'a self, link: &'a Link) -> BoxFuture<'a, Result<Vec<ModelInfo>, Error>>;
}

/// Reads the frames of one answer.
pub(crate) trait Decoder: Send {
    fn frame(&mut self, frame: &Frame, assembly: &mut Assembly) -> Result<(), Error>;

    /// Whether all of an answer has come, though nothing says that it is the end: a connection
    /// that fails now takes nothing away.
    fn is_complete(&self) -> bool {
        false
    }

    /// The body ended before the answer did.
    fn finish(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        Err(assembly.error(
            ErrorKind::Malformed,
            "the stream ended without its end marker",
        ))
    }

    /// The server answered with one document although a stream was asked for.
    fn whole(&mut self, body: &Value, assembly: &mut Assembly) -> Result<(), Error>;
}

/// A request in its family's format.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) call: Call,
    pub(crate) warnings: Vec<Warning>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    Resend,
    GiveUp,
}

/// What a refusal that was got round says about later calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusals {
    /// Nothing: it was about what that call said.
    Single,
    /// The server would refuse those as well: it was about a parameter.
    Lasting,
}

/// The most refusals that are kept in mind; the oldest go first.
const MAX_LESSONS: usize = 16;

/// A refusal that the next calls of the kind need not earn again.
#[derive(Debug)]
struct Lesson {
    kind: CallKind,
    refusal: Error,
}

/// Calls that a server treats alike.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CallKind {
    model: Arc<str>,
    /// Some parameters are taken without tools only.
    has_tools: bool,
}

/// A provider made of a family and a transport.
#[derive(Debug, Clone)]
pub struct Adapter {
    family: Arc<dyn Family>,
    link: Arc<Link>,
    lessons: Arc<Mutex<VecDeque<Lesson>>>,
    blind: Blind,
}

/// The connection to one server.
#[derive(Debug)]
pub(crate) struct Link {
    transport: Box<dyn Transport>,
    timeouts: Timeouts,
    client: OnceLock<reqwest::Client>,
    tap: OnceLock<Arc<dyn Wiretap>>,
}

impl Adapter {
    pub(crate) fn new(
        family: impl Family + 'static,
        transport: impl Transport + 'static,
        timeouts: Timeouts,
    ) -> Self {
        Self {
            family: Arc::new(family),
            link: Arc::new(Link {
                transport: Box::new(transport),
                timeouts,
                client: OnceLock::new(),
                tap: OnceLock::new(),
            }),
            lessons: Arc::default(),
            blind: Blind::default(),
        }
    }

    /// The same with another way with images for models that cannot see.
    pub(crate) fn seeing(self, blind: Blind) -> Self {
        Self { blind, ..self }
    }

    /// The same with somebody who listens.
    pub(crate) fn tapped(self, tap: Option<&Arc<dyn Wiretap>>) -> Self {
        if let Some(tap) = tap {
            // It has none yet.
            let _ = self.link.tap.set(Arc::clone(tap));
        }
        self
    }

    /// Sends a call, renewing the key once and letting the family revise what was refused, or
    /// would be by what is known.
    async fn open(&self, mut call: Call, kind: CallKind) -> Result<Response, Error> {
        self.recall(&mut call, &kind);
        let mut freshness = Freshness::Cached;
        let mut revisions = 0;
        let mut refusals = Vec::new();
        loop {
            let response = self.link.send(call.clone(), freshness).await?;
            if response.status().is_success() {
                self.learn(&kind, refusals);
                return Ok(response);
            }
            let error = self.refused(&call.origin, response).await;
            let renew = error.kind == ErrorKind::Auth
                && freshness == Freshness::Cached
                && self.link.transport.renewable();
            if renew {
                freshness = Freshness::Renewed;
            } else if revisions < MAX_REVISIONS
                && self.family.revise(&mut call, &error) == Revision::Resend
            {
                revisions += 1;
                refusals.push(error);
            } else {
                return Err(error);
            }
        }
    }

    /// Leaves out at once what calls of this kind were refused for.
    fn recall(&self, call: &mut Call, kind: &CallKind) {
        let lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        for lesson in lessons.iter().filter(|lesson| lesson.kind == *kind) {
            // What it was about may not be in this call.
            let _ = self.family.revise(call, &lesson.refusal);
        }
    }

    fn learn(&self, kind: &CallKind, refusals: Vec<Error>) {
        match self.family.refusals() {
            Refusals::Single => return,
            Refusals::Lasting => {}
        }
        let mut lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.extend(refusals.into_iter().map(|refusal| Lesson {
            kind: kind.clone(),
            refusal,
        }));
        while lessons.len() > MAX_LESSONS {
            lessons.pop_front();
        }
    }

    /// Adds the family's advice to an error that carries none. What a family would advise is about
    /// its own servers.
    fn advised(&self, mut error: Error) -> Error {
        let transport = &self.link.transport;
        if let Some(platform) = transport.platform() {
            error.provider = platform.into();
        }
        if error.remedy.is_none() {
            let of_transport = transport.remedy(&error.kind);
            error.remedy = match transport.platform() {
                Some(_) => of_transport,
                None => of_transport.or_else(|| self.family.remedy(&error.kind, &error.model)),
            };
        }
        error
    }

    fn framing(&self) -> Framing {
        let own = self.link.transport.framing();
        own.unwrap_or_else(|| self.family.framing())
    }

    async fn refused(&self, origin: &Origin, response: Response) -> Error {
        let status = response.status();
        let headers = response.headers().clone();
        if status.is_redirection() {
            let target = headers
                .get("location")
                .and_then(|value| value.to_str().ok())
                .unwrap_or("an unnamed place");
            return fail(
                origin,
                ErrorKind::Invalid,
                format!("the server redirects to {target}, which is not followed"),
            )
            .with_status(status.as_u16())
            .with_remedy("set the base URL to the final address");
        }
        // What the status says stands even if the body breaks off.
        let body = self.link.body(origin, response, MAX_REFUSAL).await;
        let body = body.unwrap_or_default();
        self.link.refusal(
            &*self.family,
            Refusal {
                origin,
                status: status.as_u16(),
                headers: &headers,
                body: &body,
            },
        )
    }
}

impl Provider for Adapter {
    fn id(&self) -> &str {
        let platform = self.link.transport.platform();
        platform.unwrap_or_else(|| self.family.id())
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        match self.link.transport.platform() {
            Some(platform) => caliban_model::capabilities(platform, model),
            None => self.family.capabilities(model),
        }
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        let adapter = self.clone();
        let origin = Origin::new(self.id(), request.model.clone());
        Box::pin(try_stream! {
            let mut request = request;
            if adapter.family.is_blind(&request.model) {
                sight::check(&request, &origin, adapter.blind)?;
                if let Some(warning) = sight::without_images(&mut request) {
                    yield StreamEvent::Warning(warning);
                }
            }
            let encoding = adapter.family.encode(&request, &adapter.link);
            let mut encoded = until(&cancel, &origin, encoding).await?.map_err(|error| adapter.advised(error))?;
            encoded.call.origin = origin.clone();
            for warning in encoded.warnings {
                yield StreamEvent::Warning(warning);
            }
            let kind = CallKind {
                model: request.model.clone(),
                has_tools: !request.tools.is_empty(),
            };
            let opening = adapter.open(encoded.call, kind);
            let mut response = until(&cancel, &origin, opening).await?.map_err(|error| adapter.advised(error))?;
            let mut answer = Answer::new(&adapter, &request, origin.clone());
            if answer.is_whole(&response) {
                let body = until(&cancel, &origin, adapter.link.body(&origin, response, MAX_FRAME)).await??;
                for event in answer.whole(&body).map_err(|error| adapter.advised(error))? {
                    yield event;
                }
                return;
            }
            loop {
                let chunk = match until(&cancel, &origin, adapter.link.chunk(&origin, &mut response)).await? {
                    Err(_) if answer.decoder.is_complete() => None,
                    chunk => chunk?,
                };
                let ended = chunk.is_none();
                for event in answer.read(chunk.as_ref()).map_err(|error| adapter.advised(error))? {
                    yield event;
                }
                if ended || answer.assembly.has_stopped() {
                    break;
                }
            }
            drain(response).await;
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        async move {
            let models = match self.link.transport.models() {
                Some(models) => models.await,
                None => self.family.models(&self.link).await,
            };
            models.map_err(|error| self.advised(error))
        }
        .boxed()
    }
}

/// Waits for `work` unless the run is cancelled first, which drops it and its connection.
async fn until<T>(
    cancel: &CancellationToken,
    origin: &Origin,
    work: impl Future<Output = T>,
) -> Result<T, Error> {
    cancel
        .run_until_cancelled(work)
        .await
        .ok_or_else(|| Error::cancelled(&origin.provider, &origin.model))
}

async fn drain(mut response: Response) {
    let _ = timeout(DRAIN, async {
        while let Ok(Some(_)) = response.chunk().await {}
    })
    .await;
}

impl Link {
    /// Sends a call and waits for the head of its answer.
    pub(crate) async fn send(&self, call: Call, freshness: Freshness) -> Result<Response, Error> {
        let origin = call.origin.clone();
        let request = self.transport.prepare(call, freshness).await?;
        let client = self.client(&origin)?;
        let tap = self.tap.get();
        let tap = tap.map(|tap| (tap, tap.sent(&origin, &request.body)));
        let sending = client
            .request(request.method, request.url)
            .headers(request.headers)
            .body(request.body)
            .send();
        match timeout(self.timeouts.first_byte, sending).await {
            Ok(Ok(mut response)) => {
                if let Some((tap, call)) = tap {
                    Heard::listen(&mut response, tap, call, &origin);
                }
                Ok(response)
            }
            Ok(Err(error)) => Err(network_error(&origin, &error)),
            Err(_) => Err(fail(
                &origin,
                ErrorKind::Timeout,
                format!(
                    "no answer within {} s",
                    self.timeouts.first_byte.as_secs_f64()
                ),
            )),
        }
    }

    /// Reads a refusal as the platform means it, else as the family does.
    fn refusal(&self, family: &dyn Family, refusal: Refusal<'_>) -> Error {
        match self.transport.refusal(&refusal) {
            Some(error) => error,
            None if self.transport.platform().is_some() => Error {
                // Which variable to set is the family's own affair.
                remedy: None,
                ..family.refusal(refusal)
            },
            None => family.refusal(refusal),
        }
    }

    /// Asks for one JSON document, for model lists and probes.
    pub(crate) fn json<'a>(
        &'a self,
        family: &'a dyn Family,
        call: Call,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        async move {
            let origin = call.origin.clone();
            let response = self.send(call, Freshness::Cached).await?;
            let status = response.status();
            let headers = response.headers().clone();
            let body = self.body(&origin, response, MAX_FRAME).await?;
            if !status.is_success() {
                let refusal = Refusal {
                    origin: &origin,
                    status: status.as_u16(),
                    headers: &headers,
                    body: &body,
                };
                return Err(self.refusal(family, refusal));
            }
            serde_json::from_slice(&body).map_err(|error| {
                fail(
                    &origin,
                    ErrorKind::Malformed,
                    format!("the answer is not JSON: {error}"),
                )
            })
        }
        .boxed()
    }

    async fn chunk(
        &self,
        origin: &Origin,
        response: &mut Response,
    ) -> Result<Option<Bytes>, Error> {
        match timeout(self.timeouts.idle, response.chunk()).await {
            Ok(Ok(chunk)) => {
                if let Some(chunk) = &chunk {
                    Heard::piece(response, chunk);
                }
                Ok(chunk)
            }
            Ok(Err(error)) => Err(network_error(origin, &error)),
            Err(_) => Err(fail(
                origin,
                ErrorKind::Timeout,
                format!(
                    "the answer stalled: no byte within {} s",
                    self.timeouts.idle.as_secs_f64()
                ),
            )),
        }
    }

    /// A whole body; what exceeds `limit` is an error for answers and cut for refusals, which
    /// are read for their first lines only.
    pub(crate) async fn body(
        &self,
        origin: &Origin,
        mut response: Response,
        limit: usize,
    ) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(origin, &mut response).await? {
            body.extend_from_slice(&chunk);
            if body.len() > limit {
                if response.status().is_success() {
                    return Err(fail(
                        origin,
                        ErrorKind::Malformed,
                        format!("the answer is larger than {} MiB", limit / (1024 * 1024)),
                    ));
                }
                body.truncate(limit);
                break;
            }
        }
        Ok(body)
    }

    fn client(&self, origin: &Origin) -> Result<&reqwest::Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = http::client(self.transport.base(), &self.timeouts, origin)?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// An answer being read: frames into events, with what every family owes its listeners added.
struct Answer<'a> {
    adapter: &'a Adapter,
    request: &'a Request,
    framer: Framer,
    decoder: Box<dyn Decoder>,
    assembly: Assembly,
    usage_seen: bool,
}

impl<'a> Answer<'a> {
    fn new(adapter: &'a Adapter, request: &'a Request, origin: Origin) -> Self {
        Self {
            adapter,
            request,
            framer: match adapter.framing() {
                Framing::ServerSentEvents => Framer::Sse(Events::default()),
                Framing::JsonLines => Framer::Lines(Lines::default()),
                Framing::EventStream => Framer::Either,
            },
            decoder: adapter.family.decoder(request),
            assembly: Assembly::new(origin),
            usage_seen: false,
        }
    }

    fn is_whole(&self, response: &Response) -> bool {
        self.adapter.framing() != Framing::JsonLines
            && response
                .headers()
                .get("content-type")
                .and_then(|value| value.to_str().ok())
                .is_some_and(|kind| kind.trim_start().starts_with("application/json"))
    }

    fn whole(&mut self, body: &[u8]) -> Result<Vec<StreamEvent>, Error> {
        let body = serde_json::from_slice(body).map_err(|error| {
            self.assembly.error(
                ErrorKind::Malformed,
                format!("the answer is not JSON: {error}"),
            )
        })?;
        self.decoder.whole(&body, &mut self.assembly)?;
        Ok(self.events())
    }

    /// Reads a chunk, or the end of the body. Frames after the end of the answer are ignored.
    fn read(&mut self, chunk: Option<&Bytes>) -> Result<Vec<StreamEvent>, Error> {
        let frames = match chunk {
            Some(bytes) => self
                .framer
                .push(bytes)
                .map_err(|error| self.assembly.error(ErrorKind::Malformed, error.to_string()))?,
            None => self.framer.finish().map(Piece::Frame).into_iter().collect(),
        };
        for piece in frames {
            if self.assembly.has_stopped() {
                break;
            }
            match piece {
                Piece::Frame(frame) => self.decoder.frame(&frame, &mut self.assembly)?,
                Piece::Exception(exception) => {
                    let transport = &self.adapter.link.transport;
                    return Err(transport.exception(self.assembly.origin(), &exception));
                }
            }
        }
        if chunk.is_none() && !self.assembly.has_stopped() {
            if self.framer.is_broken_off() {
                let broken = "the answer broke off inside a message";
                return Err(self.assembly.error(ErrorKind::Network, broken));
            }
            self.decoder.finish(&mut self.assembly)?;
        }
        Ok(self.events())
    }

    /// Adds the warning about another model than the one asked for, and an estimate where the
    /// server reports no usage.
    fn events(&mut self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        for event in self.assembly.take_events() {
            match &event {
                StreamEvent::Usage { .. } => self.usage_seen = true,
                StreamEvent::Stopped { .. } if !self.usage_seen => {
                    let usage = Usage::estimate(self.request.text_bytes(), self.assembly.bytes());
                    events.push(StreamEvent::Usage { usage });
                    events.push(StreamEvent::Warning(Warning {
                        kind: WarningKind::UsageEstimated,
                        message: format!(
                            "{} reported no token usage; counts and cost are estimates",
                            self.adapter.id()
                        ),
                    }));
                }
                _ => {}
            }
            let mismatch = match &event {
                StreamEvent::Started { model } if !same_model(&self.request.model, model) => {
                    Some(Warning::model_mismatch(&self.request.model, model))
                }
                _ => None,
            };
            events.push(event);
            events.extend(mismatch.map(StreamEvent::Warning));
        }
        events
    }
}

/// Whether the model that answers is the one that was asked for: dates, platform prefixes and
/// Ollama's default tag do not matter, and an alias may stand for anything.
fn same_model(requested: &str, actual: &str) -> bool {
    actual.is_empty()
        || requested == actual
        || base_model(requested) == base_model(actual)
        || requested.ends_with("-latest")
        || actual.strip_suffix(":latest") == Some(requested)
        || requested.starts_with("arn:")
}

#[cfg(test)]
mod tests {
    use super::same_model;

    #[test]
    fn a_dated_name_is_the_same_model_and_another_size_is_not() {
        assert!(same_model("gpt-5.5", "gpt-5.5-2026-04-23"));
        assert!(same_model("llama3.1", "llama3.1:latest"));
        assert!(same_model("gemini-flash-latest", "gemini-3.8-flash"));
        assert!(same_model("m", ""));
        assert!(!same_model("llama3.1", "llama3.2"));
        assert!(!same_model("gpt-5.5", "gpt-5.5-mini"));
    }
}
