//! What came of a rehearsal.

use std::time::Duration;

use caliban_model::RateCard;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;

use crate::route::Route;
use crate::router::Router;

/// One session.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) answered: u64,
    pub(super) failed: u64,
    pub(super) restarted: u64,
    pub(super) hops: u64,
    pub(super) waited: Duration,
    /// From asking to the first content, for each answer.
    pub(super) first: Vec<Duration>,
    trips: u64,
    hedges: u64,
    fresh: f64,
    cached: f64,
    output: f64,
    wasted: f64,
}

impl Session {
    /// What the router knows of it in the end.
    pub(super) fn take_over(&mut self, router: &Router, rates: &RateCard) {
        let counts = router.counts();
        self.trips = counts.trips;
        self.hedges = counts.hedges_started;
        for (id, _, account) in router.accounts() {
            let route = router.table().route(&id);
            let provider = route.map_or("", Route::provider_name);
            let model = route.map_or("", |route| &route.model);
            let Some(rate) = rates.lookup(provider, model) else {
                continue;
            };
            let usage = account.usage;
            // By the price of a token: the sum of all calls is no call, and has no tier.
            let price = |tokens: u64, price: Decimal| {
                let cost = Decimal::from(tokens) * price / Decimal::from(1_000_000);
                cost.to_f64().unwrap_or_default()
            };
            let cached = price(usage.cache_read, rate.cache_read.unwrap_or(rate.input));
            let output = price(usage.output, rate.output);
            self.cached += cached;
            self.output += output;
            self.fresh += account.cost.to_f64().unwrap_or_default() - cached - output;
            self.wasted += account.wasted_cost.to_f64().unwrap_or_default();
        }
    }

    fn cost(&self) -> f64 {
        self.fresh + self.cached + self.output + self.wasted
    }
}

/// All sessions. Times are in seconds, money in USD, both for one session unless they say
/// otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub sessions: u64,
    pub turns: u64,
    pub answered: u64,
    pub failed: u64,
    pub failed_percent: f64,
    pub restarted: u64,
    pub waited: f64,
    pub first_content_p50: f64,
    pub first_content_p95: f64,
    pub first_content_p99: f64,
    pub cost: f64,
    pub cost_fresh: f64,
    pub cost_cached: f64,
    pub cost_output: f64,
    pub cost_wasted: f64,
    pub hops: f64,
    pub trips: f64,
    pub hedges: f64,
}

/// Two policies in the same weather.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub first: Report,
    pub second: Report,
    /// What the second costs and waits more than the first, session by session.
    pub cost: Difference,
    pub waited: Difference,
    pub failed: Difference,
}

/// A mean, and how far it may be off in 95 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    pub mean: f64,
    pub margin: f64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a rehearsal are far below what a float holds"
)]
const fn float(count: u64) -> f64 {
    count as f64
}

/// Rounded, so that a report says no more than it knows.
fn round(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    let rounded = (value * scale).round() / scale;
    // There is no less than nothing.
    if rounded == 0.0 { 0.0 } else { rounded }
}

impl Report {
    pub(super) fn of(sessions: &[Session]) -> Self {
        let count = sessions.len() as u64;
        let sum = |of: fn(&Session) -> u64| sessions.iter().map(of).sum::<u64>();
        let mean =
            |of: fn(&Session) -> f64| sessions.iter().map(of).sum::<f64>() / float(count.max(1));
        let (answered, failed) = (sum(|it| it.answered), sum(|it| it.failed));
        let turns = answered + failed;
        let mut first: Vec<Duration> = sessions
            .iter()
            .flat_map(|session| session.first.iter().copied())
            .collect();
        first.sort_unstable();
        let at = |percent: usize| {
            let place = (first.len() * percent / 100).min(first.len().saturating_sub(1));
            round(first.get(place).map_or(0.0, Duration::as_secs_f64), 2)
        };
        Self {
            sessions: count,
            turns,
            answered,
            failed,
            failed_percent: round(100.0 * float(failed) / float(turns.max(1)), 3),
            restarted: sum(|it| it.restarted),
            waited: round(mean(|it| it.waited.as_secs_f64()), 1),
            first_content_p50: at(50),
            first_content_p95: at(95),
            first_content_p99: at(99),
            cost: round(mean(Session::cost), 4),
            cost_fresh: round(mean(|it| it.fresh), 4),
            cost_cached: round(mean(|it| it.cached), 4),
            cost_output: round(mean(|it| it.output), 4),
            cost_wasted: round(mean(|it| it.wasted), 4),
            hops: round(mean(|it| float(it.hops)), 2),
            trips: round(mean(|it| float(it.trips)), 2),
            hedges: round(mean(|it| float(it.hedges)), 2),
        }
    }
}

impl Comparison {
    pub(super) fn of(first: &[Session], second: &[Session]) -> Self {
        let difference = |of: fn(&Session) -> f64| {
            let pairs: Vec<f64> = first
                .iter()
                .zip(second)
                .map(|(first, second)| of(second) - of(first))
                .collect();
            let count = float((pairs.len() as u64).max(1));
            let mean = pairs.iter().sum::<f64>() / count;
            let spread = pairs.iter().map(|pair| (pair - mean).powi(2)).sum::<f64>();
            let deviation = (spread / (count - 1.0).max(1.0)).sqrt();
            Difference {
                mean: round(mean, 4),
                margin: round(1.96 * deviation / count.sqrt(), 4),
            }
        };
        Self {
            cost: difference(Session::cost),
            waited: difference(|it| it.waited.as_secs_f64()),
            failed: difference(|it| float(it.failed)),
            first: Report::of(first),
            second: Report::of(second),
        }
    }
}
