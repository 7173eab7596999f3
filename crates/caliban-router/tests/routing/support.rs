//! Providers that do as they are told, and a router made of them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_model::{
    Block, CancellationToken, Capabilities, Error, ErrorKind, EventStream, Message, ModelInfo,
    Origin, Provider, Purpose, Request, StopReason, StreamEvent, Usage,
};
use caliban_router::{
    BreakerPolicy, Clock, Declared, Dice, HedgePolicy, Parts, RetryPolicy, Route, RouteEffort,
    Router, Seat, Table, TableSettings, VirtualClock,
};
use futures::StreamExt;
use futures::future::BoxFuture;

/// A part of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Wait(Duration),
    Say(StreamEvent),
    Fail(Error),
}

pub(crate) type Answer = Vec<Step>;

/// A provider with answers for requests to come; when they are used up, it answers well.
#[derive(Debug)]
pub(crate) struct Fake {
    name: &'static str,
    clock: VirtualClock,
    answers: Mutex<VecDeque<Answer>>,
    pub(crate) asked: Mutex<Vec<(Duration, Request)>>,
    /// How many answers were dropped before they ended.
    pub(crate) dropped: Arc<Mutex<usize>>,
    pub(crate) in_flight: Arc<Mutex<(usize, usize)>>,
}

/// Notices that an answer is no longer wanted.
struct Guard {
    dropped: Arc<Mutex<usize>>,
    in_flight: Arc<Mutex<(usize, usize)>>,
    ended: bool,
}

impl Guard {
    fn end(&mut self) {
        self.ended = true;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.in_flight.lock().unwrap().0 -= 1;
        if !self.ended {
            *self.dropped.lock().unwrap() += 1;
        }
    }
}

impl Fake {
    pub(crate) fn new(name: &'static str, clock: &VirtualClock) -> Arc<Self> {
        Arc::new(Self {
            name,
            clock: clock.clone(),
            answers: Mutex::default(),
            asked: Mutex::default(),
            dropped: Arc::default(),
            in_flight: Arc::default(),
        })
    }

    pub(crate) fn will(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Provider for Fake {
    fn id(&self) -> &str {
        self.name
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        caliban_model::capabilities(self.name, model)
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        let answer = self.answers.lock().unwrap().pop_front();
        let answer = answer.unwrap_or_else(|| good("fine"));
        let (clock, name) = (self.clock.clone(), self.name);
        self.asked
            .lock()
            .unwrap()
            .push((clock.now(), request.clone()));
        let mut count = self.in_flight.lock().unwrap();
        count.0 += 1;
        count.1 = count.1.max(count.0);
        drop(count);
        let mut guard = Guard {
            dropped: Arc::clone(&self.dropped),
            in_flight: Arc::clone(&self.in_flight),
            ended: false,
        };
        async_stream::stream! {
            for step in answer {
                match step {
                    Step::Wait(pause) => {
                        if cancel.run_until_cancelled(clock.sleep(pause)).await.is_none() {
                            guard.end();
                            yield Err(Error::cancelled(name, &request.model));
                            return;
                        }
                    }
                    Step::Say(event) => {
                        if matches!(event, StreamEvent::Stopped { .. }) {
                            guard.end();
                        }
                        yield Ok(event);
                    }
                    Step::Fail(error) => {
                        guard.end();
                        yield Err(error);
                        return;
                    }
                }
            }
        }
        .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "fake", "m", "it broke")
}

pub(crate) fn text(text: &str) -> StreamEvent {
    StreamEvent::TextDelta {
        index: 0,
        text: text.into(),
    }
}

pub(crate) fn usage(input: u64, output: u64) -> StreamEvent {
    StreamEvent::Usage {
        usage: Usage {
            input,
            output,
            ..Usage::default()
        },
    }
}

pub(crate) fn good(said: &str) -> Answer {
    [
        StreamEvent::Started { model: "m".into() },
        text(said),
        StreamEvent::BlockEnded {
            index: 0,
            block: Block::text(said),
        },
        usage(10, 2),
        StreamEvent::Stopped {
            reason: StopReason::EndTurn,
            detail: None,
        },
    ]
    .map(Step::Say)
    .into()
}

pub(crate) fn fails(kind: ErrorKind) -> Answer {
    vec![Step::Fail(error(kind))]
}

/// A good answer that takes its time to begin.
pub(crate) fn slow(pause: Duration, said: &str) -> Answer {
    std::iter::once(Step::Wait(pause))
        .chain(good(said))
        .collect()
}

/// An answer that breaks off after some text.
pub(crate) fn breaks(kind: ErrorKind) -> Answer {
    vec![
        Step::Say(StreamEvent::Started { model: "m".into() }),
        Step::Say(text("half")),
        Step::Fail(error(kind)),
    ]
}

/// A router over fakes.
pub(crate) struct Bench {
    pub(crate) clock: VirtualClock,
    pub(crate) router: Router,
}

pub(crate) fn route(id: &str, provider: &Arc<Fake>, model: &str) -> Route {
    Route {
        id: id.into(),
        purpose: Purpose::MainLoop,
        seat: Seat::Connected(Arc::clone(provider) as _),
        model: model.into(),
        account: provider.name.into(),
        fallback: None,
        fallback_on: BTreeSet::new(),
        hedge: None,
        breaker: Some(BreakerPolicy::default()),
        declared: Declared::default(),
        effort: RouteEffort::default(),
    }
}

pub(crate) const SONNET: &str = "claude-sonnet-4-6";
pub(crate) const GPT: &str = "gpt-5.5";

pub(crate) fn hedged(after: Duration, max: u32) -> HedgePolicy {
    HedgePolicy {
        after,
        max,
        max_input_tokens: HedgePolicy::MAX_INPUT_TOKENS,
        same_account: caliban_router::SameAccount::NotRaced,
    }
}

impl Bench {
    pub(crate) fn new(clock: &VirtualClock, routes: Vec<Route>) -> Self {
        // The conversations of these tests are short, and stand for long ones.
        let settings = TableSettings {
            stay_from: 0,
            ..TableSettings::default()
        };
        Self::with(clock, routes, settings, |_| {})
    }

    pub(crate) fn with(
        clock: &VirtualClock,
        routes: Vec<Route>,
        settings: TableSettings,
        change: impl FnOnce(&mut Parts),
    ) -> Self {
        let mut parts = Parts {
            clock: Arc::new(clock.clone()),
            dice: Some(Dice::new(1)),
            retries: RetryPolicy {
                max_retries: 2,
                ..RetryPolicy::default()
            },
            ..Parts::new(Table::new(routes, settings))
        };
        change(&mut parts);
        Self {
            clock: clock.clone(),
            router: Router::new(parts),
        }
    }

    pub(crate) fn ask(&self) -> Vec<Result<StreamEvent, Error>> {
        self.send(request(SONNET))
    }

    pub(crate) fn send(&self, request: Request) -> Vec<Result<StreamEvent, Error>> {
        let stream = self.router.stream(request, CancellationToken::new());
        self.clock.run(stream.collect()).expect("no end")
    }

    /// The text of the answer, or why there is none.
    pub(crate) fn said(&self) -> Result<String, Error> {
        said(&self.ask())
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.run(self.clock.sleep(time)).unwrap();
    }
}

pub(crate) fn request(model: &str) -> Request {
    let mut request = Request::new(model, vec![Arc::new(Message::user("hi"))].into()).unwrap();
    request.metadata.session = Some("s".into());
    request
}

pub(crate) fn said(events: &[Result<StreamEvent, Error>]) -> Result<String, Error> {
    let mut said = String::new();
    for event in events {
        match event {
            Ok(StreamEvent::TextDelta { text, .. }) => said.push_str(text),
            Ok(StreamEvent::Rerouted(_)) => said.clear(),
            Ok(StreamEvent::Retrying(retry)) if retry.shown != caliban_model::Shown::Nothing => {
                said.clear();
            }
            Ok(_) => {}
            Err(error) => return Err(error.clone()),
        }
    }
    Ok(said)
}

/// Where the answer was sent to, hop by hop.
pub(crate) fn hops(events: &[Result<StreamEvent, Error>]) -> Vec<Origin> {
    let hops = events.iter().filter_map(|event| match event {
        Ok(StreamEvent::Rerouted(hop)) => Some(hop.to.clone()),
        _ => None,
    });
    hops.collect()
}

pub(crate) fn pair(clock: &VirtualClock) -> (Arc<Fake>, Arc<Fake>, Vec<Route>) {
    let (a, b) = (Fake::new("anthropic", clock), Fake::new("openai", clock));
    let routes = vec![route("a", &a, SONNET), route("b", &b, GPT)];
    (a, b, routes)
}
