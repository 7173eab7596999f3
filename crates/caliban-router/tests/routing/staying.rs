//! Where a conversation stays, and that a route sees the same history whatever others were asked.

use std::sync::Arc;

use caliban_model::{
    Block, ErrorKind, HopKind, Message, Origin, Provider, Purpose, Request, Role, StreamEvent,
};
use caliban_router::{Facts, TableSettings, VirtualClock};
use serde_json::json;

use crate::support::{Bench, Fake, GPT, SONNET, fails, good, ms, pair, request, route};

#[test]
fn a_conversation_stays_where_it_was_answered_until_its_cache_is_cold() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will([fails(ErrorKind::Timeout)]);
    let bench = Bench::new(&clock, routes);
    let expected = [(1, 1), (1, 2), (1, 3)];
    for times in expected {
        bench.said().unwrap();
        assert_eq!((a.times(), b.times()), times);
        bench.pass(ms(200_000));
    }
    bench.pass(ms(101_000));
    bench.said().unwrap();
    assert_eq!((a.times(), b.times()), (2, 3), "five minutes are over");
}

#[test]
fn it_returns_after_a_while_and_when_the_history_is_new() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will([fails(ErrorKind::Timeout)]);
    let bench = Bench::new(&clock, routes);
    for _ in 0..4 {
        bench.said().unwrap();
        bench.pass(ms(200_000));
    }
    assert_eq!((a.times(), b.times()), (2, 3), "ten minutes are over");

    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will([fails(ErrorKind::Timeout)]);
    let bench = Bench::new(&clock, routes);
    let long: Vec<_> = (0..3).map(|_| Arc::new(Message::user("x"))).collect();
    let mut request = Request::new(SONNET, long.into()).unwrap();
    request.metadata.session = Some("s".into());
    bench.send(request);
    bench.said().unwrap();
    assert_eq!((a.times(), b.times()), (2, 1), "it was condensed");
}

/// What is short is soon read anew: the route that is wanted is asked with every prompt, until its
/// breaker trips, and once it has rested.
#[test]
fn a_short_conversation_returns_with_the_next_prompt() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will(vec![fails(ErrorKind::Timeout); 5]);
    let bench = Bench::with(&clock, routes, TableSettings::default(), |_| {});
    let expected = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (5, 6), (5, 7)];
    for times in expected {
        bench.said().unwrap();
        assert_eq!((a.times(), b.times()), times);
    }
    bench.pass(ms(30_000));
    bench.said().unwrap();
    assert_eq!(
        (a.times(), b.times()),
        (6, 7),
        "it has rested, and works again"
    );

    // Within a prompt it stays where it is.
    let (a, b, routes) = pair(&clock);
    a.will([fails(ErrorKind::Timeout)]);
    let bench = Bench::with(&clock, routes, TableSettings::default(), |_| {});
    let mut history = vec![Arc::new(Message::user("hi"))];
    for times in [(1, 1), (1, 2), (1, 3)] {
        let mut request = Request::new(SONNET, history.clone().into()).unwrap();
        request.metadata.session = Some("s".into());
        bench.send(request);
        assert_eq!((a.times(), b.times()), times);
        let id = format!("call_{}", history.len());
        history.push(Arc::new(Message::new(
            Role::Assistant,
            vec![Block::ToolUse {
                id: id.clone(),
                name: "Bash".to_owned(),
                input: json!({}),
                private: None,
            }],
        )));
        history.push(Arc::new(Message::new(
            Role::User,
            vec![Block::ToolResult {
                tool_use_id: id,
                content: Vec::new(),
                is_error: false,
            }],
        )));
    }
}

/// The way back is a change of model like the way there.
#[test]
fn the_way_back_is_told() {
    let clock = VirtualClock::default();
    let (a, _, routes) = pair(&clock);
    a.will([fails(ErrorKind::Timeout)]);
    let bench = Bench::new(&clock, routes);
    let kinds = |events: &[Result<StreamEvent, _>]| -> Vec<_> {
        let hops = events.iter().filter_map(|event| match event {
            Ok(StreamEvent::Rerouted(hop)) => Some((hop.kind, hop.to.model.to_string())),
            _ => None,
        });
        hops.collect()
    };
    let expected = [
        vec![(HopKind::Fallback, GPT.to_owned())],
        vec![],
        vec![],
        vec![(HopKind::Return, SONNET.to_owned())],
        vec![],
    ];
    for hops in expected {
        assert_eq!(kinds(&bench.ask()), hops);
        bench.pass(ms(200_000));
    }
}

#[test]
fn who_answers_is_told_also_where_nothing_has_failed() {
    let clock = VirtualClock::default();
    let (a, b, mut routes) = pair(&clock);
    routes[1].purpose = Purpose::Summarization;
    let bench = Bench::new(&clock, routes);
    let mut summary = request(GPT);
    summary.metadata.purpose = Purpose::Summarization;
    let events = bench.send(summary);
    assert_eq!(
        events.first(),
        Some(&Ok(StreamEvent::Routed {
            origin: Origin::new("openai", GPT)
        }))
    );
    assert_eq!((a.times(), b.times()), (0, 1));
    assert_eq!(bench.router.id(), "anthropic");
}

/// What is sent to a route depends on the conversation and the route alone.
#[test]
fn a_request_to_a_route_is_the_same_whatever_happened_elsewhere() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will([good("one"), fails(ErrorKind::Timeout), good("three")]);
    let bench = Bench::with(
        &clock,
        routes,
        TableSettings {
            return_after: ms(0),
            ..TableSettings::default()
        },
        |_| {},
    );
    let mut history = vec![Arc::new(Message::user("hi"))];
    for _ in 0..3 {
        let mut request = Request::new(SONNET, history.clone().into()).unwrap();
        request.metadata.session = Some("s".into());
        bench.send(request);
        history.push(Arc::new(Message::assistant("so")));
        history.push(Arc::new(Message::user("on")));
    }
    let asked = a.asked.lock().unwrap();
    let [first, _, third] = asked.as_slice() else {
        panic!("{}", asked.len());
    };
    assert_eq!(b.times(), 1);
    let known = first.1.messages().len();
    assert_eq!(first.1.messages(), &third.1.messages()[..known]);
    assert_eq!(first.1.model, third.1.model);
    assert_eq!(first.1.reasoning, third.1.reasoning);
    assert_eq!(first.1.cache, third.1.cache);
}

#[test]
fn the_window_is_the_smaller_one_while_another_route_stands_in() {
    let clock = VirtualClock::default();
    let (a, b) = (
        Fake::new("anthropic", &clock),
        Fake::new("anthropic", &clock),
    );
    let (large, small) = ("claude-opus-4-7", "claude-haiku-4-5");
    let routes = vec![route("a", &a, large), route("b", &b, small)];
    a.will([fails(ErrorKind::Timeout)]);
    let bench = Bench::new(&clock, routes);
    let window = |model| bench.router.capabilities(model).context_window;
    let before = window(large);
    bench.send(request(large));
    assert_eq!(window(large), window(small));
    assert!(before > window(large));
    let facts = Facts::of(&request(large));
    let first = bench.router.resolve(&facts);
    assert_eq!(&*first.candidates().next().unwrap().id, "b");
}
