//! Rehearsals: the same seed tells the same story, and a fallback is worth what it costs.

use std::sync::Arc;

use caliban_model::RateCard;
use caliban_router::rehearsal::{Outages, Preset, Rehearsal};
use caliban_router::{RetryPolicy, Route, Table, TableSettings, VirtualClock};

use crate::support::pair;

fn rehearsal(routes: Vec<Route>, seed: u64) -> Rehearsal {
    Rehearsal {
        table: Table::new(routes, TableSettings::default()),
        rates: Arc::new(RateCard::builtin().clone()),
        retries: RetryPolicy::default(),
        outages: Outages::preset(Preset::Flaky, "anthropic"),
        seed,
        sessions: 6,
        turns: 60,
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let (_, _, routes) = pair(&VirtualClock::default());
    let told = |seed| {
        let report = rehearsal(routes.clone(), seed).report();
        serde_json::to_string(&report).unwrap()
    };
    assert_eq!(told(7), told(7));
    assert_ne!(told(7), told(8));
}

#[test]
fn a_second_route_saves_turns_and_every_turn_is_counted() {
    let (_, _, both) = pair(&VirtualClock::default());
    let alone = rehearsal(both[..1].to_vec(), 3);
    let together = rehearsal(both, 3);
    let comparison = alone.compare(&together);
    let (first, second) = (&comparison.first, &comparison.second);
    assert_eq!((first.turns, second.turns), (360, 360));
    assert_eq!(first.answered + first.failed, first.turns);
    assert!(second.failed <= first.failed, "{comparison:?}");
    assert!(second.waited < first.waited, "{comparison:?}");
    assert!(first.hops <= 0.0);
    assert!(second.hops > 0.0);
    assert!(first.cost > 0.0 && first.cost_cached > 0.0);
}

#[test]
fn without_weather_nothing_happens() {
    let (_, _, routes) = pair(&VirtualClock::default());
    let mut calm = rehearsal(routes, 1);
    calm.outages.default.mtbf_secs = Some(1e12);
    calm.outages.default.error_rate = Some(0.0);
    calm.outages.default.break_rate = Some(0.0);
    let report = calm.report();
    assert_eq!((report.failed, report.restarted), (0, 0));
    assert!(
        report.hops + report.waited + report.cost_wasted <= 0.0,
        "{report:?}"
    );
}
