//! One request to one candidate, and what has come of it so far.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use caliban_model::{
    CancellationToken, Error, ErrorKind, EventStream, Origin, Request, Shown, StreamEvent, Usage,
};
use futures::StreamExt;

use crate::core::{Core, Pass};
use crate::facts::Facts;
use crate::resolution::Candidate;
use crate::route::Seat;

pub(crate) struct Attempt {
    pub(crate) candidate: Candidate,
    pub(crate) origin: Origin,
    pub(crate) pass: Pass,
    pub(crate) stream: EventStream,
    /// What came before it was clear whether anybody wants it.
    held: VecDeque<StreamEvent>,
    started: Duration,
    pub(crate) usage: Option<Usage>,
    /// Of content, all of it.
    bytes: usize,
    has_content: bool,
    request: Request,
}

impl Attempt {
    /// Asks a candidate. Nothing is sent before the stream is polled.
    pub(crate) fn start(
        core: &Arc<Core>,
        candidate: &Candidate,
        request: &Request,
        cancel: &CancellationToken,
    ) -> Self {
        let route = core.table.routes.get(candidate.route);
        let mut request = request.clone();
        request.model = Arc::clone(&candidate.model);
        if let Some(route) = route {
            request.reasoning = route.effort.sent(request.reasoning);
        }
        let (name, stream) = match route.map(|route| &route.seat) {
            Some(Seat::Connected(provider)) => (
                provider.id().to_owned(),
                provider.stream(request.clone(), cancel.clone()),
            ),
            // Such a candidate is never kept; asking it fails like asking anybody who is not there.
            Some(Seat::Vacant { provider, reason }) => {
                let error = Error::new(ErrorKind::Auth, &**provider, &*candidate.model, reason);
                (provider.to_string(), failing(error))
            }
            None => {
                let error = Error::new(ErrorKind::Invalid, "", &*candidate.model, "no such route");
                (String::new(), failing(error))
            }
        };
        Self {
            origin: Origin::new(name, Arc::clone(&candidate.model)),
            pass: core.admit(candidate),
            candidate: candidate.clone(),
            stream,
            held: VecDeque::new(),
            started: core.clock.now(),
            usage: None,
            bytes: 0,
            has_content: false,
            request,
        }
    }

    /// The next event. An answer that ends without saying so has failed.
    pub(crate) async fn next(&mut self, core: &Core, facts: &Facts) -> Result<StreamEvent, Error> {
        if let Some(event) = self.held.pop_front() {
            return Ok(event);
        }
        match self.stream.next().await {
            Some(Ok(event)) => {
                self.note(&event, core, facts);
                Ok(event)
            }
            Some(Err(error)) => Err(error),
            None => Err(self.unfinished()),
        }
    }

    pub(crate) fn unfinished(&self) -> Error {
        let Origin { provider, model } = &self.origin;
        Error::new(
            ErrorKind::Malformed,
            &**provider,
            &**model,
            "the answer ended without saying so",
        )
    }

    /// Keeps an event for later; it counts from now on.
    pub(crate) fn hold(&mut self, event: StreamEvent, core: &Core, facts: &Facts) {
        self.note(&event, core, facts);
        self.held.push_back(event);
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    fn note(&mut self, event: &StreamEvent, core: &Core, facts: &Facts) {
        let bytes = match event {
            StreamEvent::TextDelta { text, .. } | StreamEvent::ThinkingDelta { text, .. } => {
                text.len()
            }
            StreamEvent::ToolInputDelta { json, .. } => json.len(),
            StreamEvent::ToolStarted { name, .. } => name.len(),
            StreamEvent::BlockEnded { .. } => 0,
            StreamEvent::Usage { usage } => {
                self.usage = Some(*usage);
                return;
            }
            StreamEvent::Started { .. }
            | StreamEvent::Stopped { .. }
            | StreamEvent::Retrying(_)
            | StreamEvent::Routed { .. }
            | StreamEvent::Rerouted(_)
            | StreamEvent::Wasted { .. }
            | StreamEvent::Warning(_) => return,
        };
        self.bytes = self.bytes.saturating_add(bytes);
        if !self.has_content {
            self.has_content = true;
            let after = core.clock.now().saturating_sub(self.started);
            core.began(&self.candidate, facts, after);
        }
    }

    /// Whether anything of an answer has come.
    pub(crate) fn shown(&self) -> Shown {
        if self.has_content {
            Shown::Superseded
        } else {
            Shown::Nothing
        }
    }

    /// What it will have cost, as far as anybody knows: what was reported, else a guess from what
    /// was sent and what came back. Nothing where nothing was read.
    pub(crate) fn lost(&self) -> Option<Usage> {
        match (self.usage, self.has_content) {
            (Some(usage), _) => Some(usage),
            (None, true) => Some(self.estimate()),
            (None, false) => None,
        }
    }

    /// The whole input, and what has come.
    pub(crate) fn estimate(&self) -> Usage {
        Usage::estimate(self.request.text_bytes(), self.bytes)
    }
}

fn failing(error: Error) -> EventStream {
    futures::stream::iter([Err(error)]).boxed()
}
