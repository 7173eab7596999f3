//! Every failure at every place in every arrangement of routes. Nothing is enumerated by hand: what
//! must hold is checked for each of them.

use std::sync::Arc;
use std::time::Duration;

use caliban_model::{Block, Error, ErrorKind, Shown, StreamEvent, Usage};
use caliban_router::{
    BreakerPolicy, Clock, Facts, KINDS, Next, Resolution, Route, TableSettings, VirtualClock,
    consequence, kind_name,
};
use serde_json::json;

use crate::support::{
    Answer, Bench, Fake, GPT, SONNET, Step, error, fails, hedged, ms, request, route, said, text,
    usage,
};

/// Where in an answer it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    BeforeAnything,
    AfterStart,
    InText,
    InThinking,
    InToolInput,
    AfterLastBlock,
    AfterUsage,
    Stalled,
}

const POSITIONS: [Position; 8] = [
    Position::BeforeAnything,
    Position::AfterStart,
    Position::InText,
    Position::InThinking,
    Position::InToolInput,
    Position::AfterLastBlock,
    Position::AfterUsage,
    Position::Stalled,
];

impl Position {
    fn answer(self, fault: &Error) -> Answer {
        let started = StreamEvent::Started { model: "m".into() };
        let said = [started, text("half")];
        let before: Vec<StreamEvent> = match self {
            Self::BeforeAnything | Self::Stalled => Vec::new(),
            Self::AfterStart => said[..1].to_vec(),
            Self::InText => said.to_vec(),
            Self::InThinking => vec![
                said[0].clone(),
                StreamEvent::ThinkingDelta {
                    index: 0,
                    text: "hm".into(),
                },
            ],
            Self::InToolInput => vec![
                said[0].clone(),
                StreamEvent::ToolStarted {
                    index: 0,
                    id: "t".into(),
                    name: "Bash".into(),
                },
                StreamEvent::ToolInputDelta {
                    index: 0,
                    json: "{".into(),
                },
            ],
            Self::AfterLastBlock => [
                said.to_vec(),
                vec![StreamEvent::BlockEnded {
                    index: 0,
                    block: Block::ToolUse {
                        id: "void".into(),
                        name: "Bash".into(),
                        input: json!({}),
                        private: None,
                    },
                }],
            ]
            .concat(),
            Self::AfterUsage => [said.to_vec(), vec![usage(10, 1)]].concat(),
        };
        let stall = (self == Self::Stalled).then_some(Step::Wait(Duration::from_mins(2)));
        let before = before.into_iter().map(Step::Say);
        stall
            .into_iter()
            .chain(before)
            .chain([Step::Fail(fault.clone())])
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Topology {
    One,
    Two,
    Hedged,
    FirstOpen,
    AllOpen,
    SameAccount,
    OptedIn,
}

const TOPOLOGIES: [Topology; 7] = [
    Topology::One,
    Topology::Two,
    Topology::Hedged,
    Topology::FirstOpen,
    Topology::AllOpen,
    Topology::SameAccount,
    Topology::OptedIn,
];

/// One cell: routes that all fail in the same way until their faults are used up.
struct Cell {
    bench: Bench,
    fakes: Vec<Arc<Fake>>,
    resolution: Resolution,
    /// When the call began.
    begun: Duration,
}

fn trip(fake: &Fake, times: usize) {
    fake.will((0..times).map(|_| fails(ErrorKind::Timeout)));
}

fn cell(topology: Topology, fault: &Error, position: Position, faults: usize) -> Cell {
    let clock = VirtualClock::default();
    let a = Fake::new("anthropic", &clock);
    let b = Fake::new(
        match topology {
            Topology::SameAccount => "anthropic",
            _ => "openai",
        },
        &clock,
    );
    let mut first = route("a", &a, SONNET);
    let other = match topology {
        Topology::SameAccount => "claude-haiku-4-5",
        _ => GPT,
    };
    let mut second = route("b", &b, other);
    let policy = BreakerPolicy {
        failure_threshold: 1,
        ..BreakerPolicy::default()
    };
    match topology {
        Topology::Hedged | Topology::SameAccount => first.hedge = Some(hedged(ms(500), 1)),
        Topology::FirstOpen => first.breaker = Some(policy),
        Topology::AllOpen => {
            first.breaker = Some(policy);
            second.breaker = Some(policy);
        }
        Topology::OptedIn => first.fallback_on.extend([
            caliban_router::Escape::Auth,
            caliban_router::Escape::Billing,
            caliban_router::Escape::Filtered,
        ]),
        Topology::One | Topology::Two => {}
    }
    let routes: Vec<Route> = match topology {
        Topology::One => vec![first],
        _ => vec![first, second],
    };
    let bench = Bench::with(&clock, routes, TableSettings::default(), |_| {});
    match topology {
        Topology::FirstOpen => trip(&a, 1),
        Topology::AllOpen => {
            trip(&a, 1);
            trip(&b, 3);
        }
        _ => {}
    }
    if matches!(topology, Topology::FirstOpen | Topology::AllOpen) {
        let mut before = request(SONNET);
        before.metadata.session = Some("before".into());
        bench.send(before);
    }
    let fakes = vec![a, b];
    for fake in &fakes {
        fake.asked.lock().unwrap().clear();
        fake.will((0..faults).map(|_| position.answer(fault)));
    }
    let resolution = bench.router.resolve(&Facts::of(&request(SONNET)));
    Cell {
        begun: clock.now(),
        bench,
        fakes,
        resolution,
    }
}

/// 4. Content that is void is declared so before any new content.
fn check_void(name: &str, events: &[Result<StreamEvent, Error>]) {
    let mut is_dirty = false;
    let mut ended_blocks = 0;
    for event in events {
        match event {
            Ok(StreamEvent::Started { .. }) => assert!(!is_dirty, "{name}: {events:?}"),
            Ok(
                StreamEvent::TextDelta { .. }
                | StreamEvent::ThinkingDelta { .. }
                | StreamEvent::ToolStarted { .. }
                | StreamEvent::ToolInputDelta { .. }
                | StreamEvent::BlockEnded { .. },
            ) => {
                is_dirty = true;
                ended_blocks += usize::from(matches!(event, Ok(StreamEvent::BlockEnded { .. })));
            }
            Ok(StreamEvent::Retrying(retry)) if retry.shown == Shown::Superseded => {
                is_dirty = false;
                ended_blocks = 0;
            }
            Ok(StreamEvent::Rerouted(_)) => {
                is_dirty = false;
                ended_blocks = 0;
            }
            Ok(_) | Err(_) => {}
        }
    }
    if said(events).is_ok() {
        assert_eq!(ended_blocks, 1, "{name}: only the answer's own");
        assert_eq!(said(events).unwrap(), "fine", "{name}");
    }
}

/// What must hold in every cell.
fn check(name: &str, cell: &Cell, fault: &Error, position: Position, topology: Topology) {
    let events = cell.bench.ask();
    let (a, b) = (&cell.fakes[0], &cell.fakes[1]);
    // 1. One end, and nothing after it.
    let ends = events
        .iter()
        .filter(|event| matches!(event, Err(_) | Ok(StreamEvent::Stopped { .. })));
    assert_eq!(ends.count(), 1, "{name}: {events:?}");
    assert!(
        matches!(
            events.last(),
            Some(Err(_) | Ok(StreamEvent::Stopped { .. }))
        ),
        "{name}"
    );
    // 2. No more attempts than may be, in the order that was resolved.
    // Two retries on the last that is left, one before it.
    for (id, fake) in [("a", a), ("b", b)] {
        assert!(fake.times() <= 3, "{name}: {} on {id}", fake.times());
    }
    let mut firsts: Vec<(Duration, &str)> = Vec::new();
    for (id, fake) in [("a", a), ("b", b)] {
        firsts.extend(fake.asked.lock().unwrap().first().map(|(at, _)| (*at, id)));
    }
    firsts.sort_by_key(|(at, _)| *at);
    let order: Vec<&str> = cell.resolution.candidates().map(|it| &*it.id).collect();
    let asked: Vec<&str> = firsts.iter().map(|(_, id)| *id).collect();
    if firsts.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        // Where no model exists, those that were left alone may be asked in the end.
        let listed: Vec<&str> = asked
            .iter()
            .copied()
            .filter(|id| order.contains(id))
            .collect();
        assert!(order.starts_with(&listed), "{name}: {order:?} {asked:?}");
        assert!(
            listed == asked || fault.kind == ErrorKind::Unavailable,
            "{name}: {order:?} {asked:?}"
        );
    }
    // 3. What another vendor would hide touches nobody else.
    let next = consequence(&fault.kind).next;
    let may_hop = match next {
        Next::Yes => true,
        Next::IfAskedFor(_) => topology == Topology::OptedIn,
        Next::IfLarger => topology != Topology::SameAccount,
        Next::No => false,
    };
    // A race asks others because of the time, not because of the failure.
    let is_raced = matches!(topology, Topology::Hedged) && position == Position::Stalled;
    if !may_hop && !is_raced {
        assert_eq!(asked.len(), 1, "{name}");
    }
    check_void(name, &events);
    // 5. What was billed for complete answers is accounted for.
    let accounts = cell.bench.router.accounts();
    let mut accounted = Usage::default();
    for (_, _, account) in &accounts {
        accounted += account.usage;
        accounted += account.wasted;
    }
    if said(&events).is_ok() {
        assert!(accounted.input >= 10 && accounted.output >= 2, "{name}");
    }
    // 6. No more probes than may be.
    if matches!(topology, Topology::FirstOpen | Topology::AllOpen) {
        for fake in &cell.fakes {
            assert!(fake.in_flight.lock().unwrap().1 <= 1, "{name}");
        }
    }
    // 7. Nothing is left open.
    for fake in &cell.fakes {
        assert_eq!(fake.in_flight.lock().unwrap().0, 0, "{name}");
    }
    // 8. A race asks no more than it may.
    if is_raced && said(&events).is_ok() {
        assert!(a.times() + b.times() <= 6, "{name}");
    }
    // 10. Nobody waits longer than was asked for.
    let waited = cell.bench.clock.now().saturating_sub(cell.begun);
    let attempts = u32::try_from(a.times() + b.times()).unwrap();
    let each = fault
        .retry_after
        .filter(|wait| *wait <= Duration::from_mins(10))
        .unwrap_or_default()
        .max(Duration::from_secs(16))
        + Duration::from_mins(2);
    let rest = Duration::from_mins(1);
    assert!(waited <= each * attempts + rest, "{name}: {waited:?}");
}

#[test]
fn whatever_goes_wrong_wherever_in_whichever_arrangement() {
    let mut faults: Vec<Error> = KINDS.iter().cloned().map(error).collect();
    for wait in [1_000, 600_000, 3 * 24 * 3_600 * 1_000] {
        let mut limited = error(ErrorKind::RateLimited);
        limited.retry_after = Some(ms(wait));
        faults.push(limited);
    }
    let mut certificate = error(ErrorKind::Network);
    certificate.advice = caliban_model::RetryAdvice::GiveUp;
    faults.push(certificate);
    let mut cells = 0;
    for fault in &faults {
        for position in POSITIONS {
            for topology in TOPOLOGIES {
                for times in [1, 2, 9] {
                    let name = format!(
                        "{} (wait {:?}) {position:?} {topology:?} {times} times",
                        kind_name(&fault.kind),
                        fault.retry_after
                    );
                    let cell = cell(topology, fault, position, times);
                    check(&name, &cell, fault, position, topology);
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 18 * 8 * 7 * 3);
}
