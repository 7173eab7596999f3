//! Races: who joins when, who wins, and who pays.

use caliban_model::{ErrorKind, StreamEvent, Warning, WarningKind};
use caliban_router::{Hedging, SameAccount, TableSettings, VirtualClock};
use rstest::rstest;

use crate::support::{Bench, Fake, SONNET, fails, hedged, hops, ms, pair, route, said, slow};

#[test]
fn another_route_joins_a_slow_one_and_the_first_content_wins() {
    let clock = VirtualClock::default();
    let (a, b, mut routes) = pair(&clock);
    routes[0].hedge = Some(hedged(ms(1_000), 1));
    a.will([slow(ms(5_000), "late")]);
    let bench = Bench::new(&clock, routes);
    let events = bench.ask();
    assert_eq!(said(&events).unwrap(), "fine");
    assert_eq!((a.times(), b.times()), (1, 1));
    assert_eq!(b.asked.lock().unwrap()[0].0, ms(1_000));
    assert_eq!(*a.dropped.lock().unwrap(), 1, "its connection is closed");
    let wasted: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Ok(StreamEvent::Wasted { origin, usage }) => Some((&*origin.model, usage.estimated)),
            _ => None,
        })
        .collect();
    assert_eq!(wasted, [(SONNET, true)], "the whole input is paid for");
    let lost: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Ok(StreamEvent::Warning(Warning {
                kind: WarningKind::HedgeLoss { loss },
                ..
            })) => Some((loss.route_id.clone(), loss.cost.is_some())),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [("a".to_owned(), true)], "and that is said");
    assert_eq!(hops(&events).len(), 1);
    assert_eq!(bench.router.counts().hedges_won, 1);
}

#[test]
fn the_first_route_may_still_win() {
    let clock = VirtualClock::default();
    let (a, b, mut routes) = pair(&clock);
    routes[0].hedge = Some(hedged(ms(1_000), 1));
    a.will([slow(ms(1_500), "first")]);
    b.will([slow(ms(5_000), "second")]);
    let bench = Bench::new(&clock, routes);
    let events = bench.ask();
    assert_eq!(said(&events).unwrap(), "first");
    assert_eq!(hops(&events), []);
    assert_eq!(*b.dropped.lock().unwrap(), 1);
}

#[test]
fn an_error_never_wins() {
    let clock = VirtualClock::default();
    let (a, b, mut routes) = pair(&clock);
    routes[0].hedge = Some(hedged(ms(1_000), 1));
    a.will([slow(ms(3_000), "first")]);
    b.will([fails(ErrorKind::Overloaded)]);
    let bench = Bench::new(&clock, routes);
    assert_eq!(bench.said().unwrap(), "first");
    assert_eq!((a.times(), b.times()), (1, 1));
}

#[test]
fn a_route_that_fails_before_the_delay_is_no_race() {
    let clock = VirtualClock::default();
    let (a, b, mut routes) = pair(&clock);
    routes[0].hedge = Some(hedged(ms(1_000), 1));
    a.will([fails(ErrorKind::Timeout)]);
    let bench = Bench::new(&clock, routes);
    assert_eq!(bench.said().unwrap(), "fine");
    assert_eq!((a.times(), b.times()), (1, 1));
    assert_eq!(bench.router.counts().hedges_started, 0);
}

#[rstest]
#[case::same_account(SameAccount::NotRaced, 10, Hedging::AsConfigured, 0)]
#[case::same_account_raced(SameAccount::Raced, 10, Hedging::AsConfigured, 1)]
#[case::long_input(SameAccount::Raced, 0, Hedging::AsConfigured, 0)]
#[case::recorded(SameAccount::Raced, 10, Hedging::Never, 0)]
fn races_are_not_begun_where_they_help_nobody(
    #[case] same_account: SameAccount,
    #[case] max_input_tokens: u64,
    #[case] hedging: Hedging,
    #[case] joined: usize,
) {
    let clock = VirtualClock::default();
    let (a, b) = (
        Fake::new("anthropic", &clock),
        Fake::new("anthropic", &clock),
    );
    let mut first = route("a", &a, SONNET);
    first.hedge = Some(caliban_router::HedgePolicy {
        same_account,
        max_input_tokens,
        ..hedged(ms(1_000), 1)
    });
    let routes = vec![first, route("b", &b, "claude-haiku-4-5")];
    a.will([slow(ms(5_000), "late")]);
    let bench = Bench::with(&clock, routes, TableSettings::default(), |parts| {
        parts.hedging = hedging;
    });
    bench.said().unwrap();
    assert_eq!(b.times(), joined);
}

#[test]
fn of_a_hundred_slow_calls_a_few_are_raced() {
    let clock = VirtualClock::default();
    let (a, b, mut routes) = pair(&clock);
    routes[0].hedge = Some(hedged(ms(1_000), 1));
    a.will((0..100).map(|_| slow(ms(1_500), "first")));
    b.will((0..100).map(|_| slow(ms(9_000), "second")));
    let bench = Bench::new(&clock, routes);
    for _ in 0..100 {
        assert_eq!(bench.said().unwrap(), "first");
    }
    // Ten at the beginning, and one for every ten calls.
    assert_eq!(b.times(), 19);
}
