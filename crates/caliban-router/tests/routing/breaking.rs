//! Failures: what is tried again, who is asked next, and what a breaker keeps away from.

use caliban_model::{CancellationToken, ErrorKind, Provider, Shown, StopReason, StreamEvent};
use caliban_router::{Clock, Escape, VirtualClock};
use futures::StreamExt;
use rstest::rstest;

use crate::support::{
    Bench, Fake, GPT, SONNET, Step, breaks, error, fails, hops, ms, pair, request, route, said,
    slow,
};

#[test]
fn one_retry_before_another_route_and_all_of_them_on_the_last() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will([fails(ErrorKind::Overloaded), fails(ErrorKind::Overloaded)]);
    b.will([fails(ErrorKind::Server), fails(ErrorKind::Server)]);
    let bench = Bench::new(&clock, routes);
    let events = bench.ask();
    assert_eq!(said(&events).unwrap(), "fine");
    assert_eq!((a.times(), b.times()), (2, 3));
    let hops = hops(&events);
    assert_eq!(hops.len(), 1);
    assert_eq!((&*hops[0].provider, &*hops[0].model), ("openai", GPT));
    // Told with the reason.
    let reason = events.iter().find_map(|event| match event {
        Ok(StreamEvent::Rerouted(hop)) => Some(hop.reason.clone()),
        _ => None,
    });
    assert!(reason.unwrap().contains("gave up after one retry"));
}

#[test]
fn when_nobody_answers_the_first_failure_is_told_and_the_others_named() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will(vec![fails(ErrorKind::Overloaded); 2]);
    b.will(vec![fails(ErrorKind::Server); 3]);
    let bench = Bench::new(&clock, routes);
    let error = bench.said().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Overloaded);
    assert!(
        error
            .message
            .contains("then `b`: it broke (gave up after 2 retries)"),
        "{error}"
    );
}

#[rstest]
#[case::auth(ErrorKind::Auth, Some(Escape::Auth))]
#[case::billing(ErrorKind::Billing, Some(Escape::Billing))]
#[case::filtered(ErrorKind::Filtered, Some(Escape::Filtered))]
#[case::invalid(ErrorKind::Invalid, None)]
#[case::mismatch(ErrorKind::Mismatch, None)]
fn what_another_vendor_would_hide_stays_unless_asked_for(
    #[case] kind: ErrorKind,
    #[case] escape: Option<Escape>,
) {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will([fails(kind.clone())]);
    let bench = Bench::new(&clock, routes);
    assert_eq!(bench.said().unwrap_err().kind, kind);
    assert_eq!((a.times(), b.times()), (1, 0));

    let (a, b, mut routes) = pair(&clock);
    routes[0].fallback_on.extend(escape);
    a.will([fails(kind)]);
    let bench = Bench::new(&clock, routes);
    assert_eq!(bench.said().is_ok(), escape.is_some());
    let expected = (1, usize::from(escape.is_some()));
    assert_eq!((a.times(), b.times()), expected);
}

#[test]
fn a_broken_answer_is_void_once_on_its_route_and_then_elsewhere() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will(vec![breaks(ErrorKind::Network); 2]);
    let bench = Bench::new(&clock, routes);
    let events = bench.ask();
    assert_eq!(said(&events).unwrap(), "fine");
    assert_eq!((a.times(), b.times()), (2, 1));
    let void = events.iter().filter(|event| {
        matches!(event, Ok(StreamEvent::Retrying(retry)) if retry.shown == Shown::Superseded)
    });
    assert_eq!(void.count(), 1);
    // Nobody reported what was spent, so it is estimated and told.
    let wasted: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Ok(StreamEvent::Wasted { origin, usage }) => Some((origin.model.clone(), usage)),
            _ => None,
        })
        .collect();
    assert_eq!(wasted.len(), 2);
    assert!(
        wasted
            .iter()
            .all(|(model, usage)| &**model == SONNET && usage.estimated)
    );
}

#[test]
fn a_prompt_that_is_too_long_goes_only_where_there_is_more_room() {
    let clock = VirtualClock::default();
    let too_long = || [fails(ErrorKind::TooLong { limit: None })];
    let (a, b) = (
        Fake::new("anthropic", &clock),
        Fake::new("anthropic", &clock),
    );
    let (small, large) = ("claude-haiku-4-5", "claude-opus-4-7");
    let window = |model| caliban_model::capabilities("anthropic", model).context_window;
    assert!(window(small) < window(large));
    a.will(too_long());
    let bench = Bench::new(&clock, vec![route("a", &a, small), route("b", &b, large)]);
    assert_eq!(said(&bench.send(request(small))).unwrap(), "fine");
    assert_eq!(b.times(), 1);

    let (a, b) = (
        Fake::new("anthropic", &clock),
        Fake::new("anthropic", &clock),
    );
    a.will(too_long());
    let bench = Bench::new(&clock, vec![route("a", &a, large), route("b", &b, small)]);
    let error = said(&bench.send(request(large))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLong { limit: None });
    assert_eq!(b.times(), 0);
}

#[test]
fn a_breaker_that_has_tripped_spares_the_route_until_a_probe_succeeds() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will(vec![fails(ErrorKind::Timeout); 6]);
    let bench = Bench::new(&clock, routes);
    for _ in 0..5 {
        assert_eq!(bench.said().unwrap(), "fine");
    }
    // Each call after the first stays where it was answered, so the route failed once only.
    assert_eq!((a.times(), b.times()), (1, 5));

    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will(vec![fails(ErrorKind::Timeout); 6]);
    let bench = Bench::new(&clock, routes);
    for number in 0..7 {
        let mut apart = request(SONNET);
        apart.metadata.session = Some(number.to_string());
        assert_eq!(said(&bench.send(apart)).unwrap(), "fine");
    }
    assert_eq!((a.times(), b.times()), (5, 7));
    bench.pass(ms(30_000));
    let ask = |session: &str| {
        let mut apart = request(SONNET);
        apart.metadata.session = Some(session.into());
        bench.send(apart)
    };
    // The probe fails, so it rests again; the next succeeds.
    assert_eq!(hops(&ask("x")).len(), 1);
    assert_eq!((a.times(), b.times()), (6, 8));
    let events = ask("y");
    assert_eq!(hops(&events).len(), 1, "told that it is left alone");
    assert_eq!(a.times(), 6);
    bench.pass(ms(30_000));
    assert_eq!(hops(&ask("z")), []);
    assert_eq!((a.times(), b.times()), (7, 9));
}

#[test]
fn where_everybody_rests_the_shortest_rest_is_waited_for_and_said() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    let limited = |seconds: u64| {
        let mut limited = error(ErrorKind::RateLimited);
        limited.retry_after = Some(ms(seconds * 1_000));
        vec![Step::Fail(limited)]
    };
    a.will([limited(50)]);
    // The last one is waited for as long as it asks; then it fails for good.
    b.will([limited(20), fails(ErrorKind::Invalid)]);
    let bench = Bench::new(&clock, routes);
    bench.said().unwrap_err();
    assert_eq!(clock.now_secs(), 20);
    // `b` rested 20 seconds from when it said so: it may be asked at once.
    assert_eq!(bench.said().unwrap(), "fine");
    assert_eq!((a.times(), b.times()), (1, 3));
}

trait Seconds {
    fn now_secs(&self) -> u64;
}

impl Seconds for VirtualClock {
    fn now_secs(&self) -> u64 {
        self.now().as_secs()
    }
}

#[test]
fn a_long_wait_is_left_for_another_route_and_remembered() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    let mut limited = error(ErrorKind::RateLimited);
    // Three days, as servers have been seen to ask for.
    limited.retry_after = Some(ms(3 * 24 * 3_600 * 1_000));
    a.will([vec![Step::Fail(limited)]]);
    let bench = Bench::new(&clock, routes);
    assert_eq!(bench.said().unwrap(), "fine");
    assert_eq!(clock.now_secs(), 0, "nobody waited");
    bench.pass(ms(3_600_000));
    assert_eq!(bench.said().unwrap(), "fine");
    assert_eq!((a.times(), b.times()), (1, 2));
}

#[test]
fn a_model_that_does_not_exist_is_told_once_and_then_passed_over() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will([fails(ErrorKind::Unavailable)]);
    let bench = Bench::new(&clock, routes);
    assert_eq!(hops(&bench.ask()).len(), 1);
    assert_eq!(
        hops(&bench.ask()).len(),
        0,
        "it stays where it was answered"
    );
    assert_eq!((a.times(), b.times()), (1, 2));
}

#[test]
fn cancelling_ends_everything_at_once_and_says_nothing_about_the_route() {
    let clock = VirtualClock::default();
    let (a, b, routes) = pair(&clock);
    a.will([slow(ms(60_000), "late")]);
    let bench = Bench::new(&clock, routes);
    let cancel = CancellationToken::new();
    let stream = bench.router.stream(request(SONNET), cancel.clone());
    let events: Vec<_> = clock
        .run(async {
            let asking = stream.collect::<Vec<_>>();
            let cancelling = async {
                clock.sleep(ms(10)).await;
                cancel.cancel();
            };
            futures::future::join(asking, cancelling).await.0
        })
        .unwrap();
    assert_eq!(said(&events).unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!((a.times(), b.times(), clock.now_secs()), (1, 0, 0));
}

/// A refusal without a word is what the route calls filtered; one with words is an answer.
#[test]
fn an_answer_that_is_withheld_leads_on_where_the_route_says_so() {
    let stopped = |reason| {
        let detail = Some("it was about locks".to_owned());
        Step::Say(StreamEvent::Stopped { reason, detail })
    };
    let said = || {
        Step::Say(StreamEvent::TextDelta {
            index: 0,
            text: "I".into(),
        })
    };
    for (reason, opted, words, asked) in [
        (StopReason::Refusal, true, false, 1),
        (StopReason::ContentFilter, true, false, 1),
        (StopReason::Refusal, true, true, 0),
        (StopReason::Refusal, false, false, 0),
        (StopReason::EndTurn, true, false, 0),
    ] {
        let clock = VirtualClock::default();
        let (a, b, mut routes) = pair(&clock);
        if opted {
            routes[0].fallback_on = [Escape::Filtered].into();
        }
        let mut answer = Vec::new();
        if words {
            answer.push(said());
        }
        answer.push(stopped(reason.clone()));
        a.will([answer]);
        let bench = Bench::new(&clock, routes);
        let events = bench.ask();
        assert_eq!((a.times(), b.times()), (1, asked), "{reason:?} {opted}");
        let hops: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Ok(StreamEvent::Rerouted(hop)) => Some(hop.reason.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(hops.len(), asked);
        assert!(
            hops.iter().all(|reason| reason.contains("about locks")),
            "{hops:?}"
        );
    }
}
