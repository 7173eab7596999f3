//! Leaves a failing route alone for a while, then tries it with few calls before it counts again.

use std::collections::VecDeque;
use std::time::Duration;

/// When a route is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// So many failures within the window trip it.
    pub failure_threshold: u32,
    pub window: Duration,
    pub cooldown: Duration,
    /// Each trip in a row doubles the cooldown up to this; without it the cooldown stays.
    pub max_cooldown: Option<Duration>,
    /// So many calls try it at once when it has rested, and must all succeed.
    pub half_open_probes: u32,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            failure_threshold: 5,
            window: Duration::from_mins(1),
            cooldown: Duration::from_secs(30),
            max_cooldown: None,
            half_open_probes: 1,
        }
    }
}

/// The most failures that are kept in mind, whatever the threshold.
const MAX_FAILURES: usize = 1_000;

/// The breaker of one route.
#[derive(Debug)]
pub(crate) struct Breaker {
    policy: BreakerPolicy,
    state: State,
    /// Trips since the last success.
    trips: u32,
}

#[derive(Debug)]
enum State {
    Closed {
        failures: VecDeque<Duration>,
    },
    Open {
        until: Duration,
    },
    HalfOpen {
        /// When it had rested.
        since: Duration,
        in_flight: u32,
        good: u32,
    },
}

/// How a breaker stands, for whoever chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In use; so many recent failures.
    Closed { failures: u32 },
    /// Left alone until then.
    Open { until: Duration },
    /// Rested, and a call may try it.
    Rested,
    /// Rested, and others are trying it.
    Probed,
}

/// What a call on a route is to its breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// One of many.
    Ordinary,
    /// One of the few that decide.
    Probe,
}

/// A trip, to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tripped {
    pub(crate) until: Duration,
}

impl Breaker {
    pub(crate) fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            state: State::Closed {
                failures: VecDeque::new(),
            },
            trips: 0,
        }
    }

    pub(crate) fn standing(&self, now: Duration) -> Standing {
        match &self.state {
            State::Closed { failures } => {
                let recent = failures.iter().filter(|at| self.is_recent(**at, now));
                Standing::Closed {
                    failures: u32::try_from(recent.count()).unwrap_or(u32::MAX),
                }
            }
            State::Open { until } if *until > now => Standing::Open { until: *until },
            State::Open { .. } => Standing::Rested,
            State::HalfOpen { in_flight, .. } if *in_flight < self.probes() => Standing::Rested,
            State::HalfOpen { .. } => Standing::Probed,
        }
    }

    fn probes(&self) -> u32 {
        self.policy.half_open_probes.max(1)
    }

    fn is_recent(&self, at: Duration, now: Duration) -> bool {
        now.saturating_sub(at) < self.policy.window
    }

    /// Lets a call through. One that is forced goes through an open breaker as a probe.
    pub(crate) fn admit(&mut self, now: Duration) -> Admission {
        match &mut self.state {
            State::Closed { .. } => Admission::Ordinary,
            State::Open { until } => {
                self.state = State::HalfOpen {
                    since: (*until).max(now),
                    in_flight: 1,
                    good: 0,
                };
                Admission::Probe
            }
            State::HalfOpen { in_flight, .. } => {
                *in_flight += 1;
                Admission::Probe
            }
        }
    }

    /// A call that says nothing about the route: cancelled, or refused for what it asked.
    pub(crate) fn released(&mut self, admission: Admission) {
        if let (Admission::Probe, State::HalfOpen { in_flight, .. }) = (admission, &mut self.state)
        {
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    /// Returns whether it closed by this.
    pub(crate) fn succeeded(&mut self, admission: Admission) -> bool {
        self.released(admission);
        let probes = self.probes();
        if let (Admission::Probe, State::HalfOpen { good, .. }) = (admission, &mut self.state) {
            *good += 1;
            if *good >= probes {
                self.trips = 0;
                self.state = State::Closed {
                    failures: VecDeque::new(),
                };
                return true;
            }
        }
        // A success does not clear the window: a route that comes and goes must trip, too.
        false
    }

    /// A failure that counts.
    pub(crate) fn failed(&mut self, admission: Admission, now: Duration) -> Option<Tripped> {
        self.released(admission);
        let (policy, cooldown) = (self.policy, self.cooldown());
        match &mut self.state {
            State::Closed { failures } => {
                failures.retain(|at| now.saturating_sub(*at) < policy.window);
                failures.push_back(now);
                let threshold = usize::try_from(policy.failure_threshold.max(1));
                if failures.len() < threshold.unwrap_or(MAX_FAILURES).min(MAX_FAILURES) {
                    return None;
                }
            }
            // Somebody tripped it meanwhile; this one says nothing new.
            State::Open { .. } => return None,
            State::HalfOpen { .. } => {}
        }
        self.trips = self.trips.saturating_add(1);
        Some(self.open(now.saturating_add(cooldown)))
    }

    /// The server asked to be left alone for so long.
    pub(crate) fn rest(&mut self, admission: Admission, now: Duration, wait: Duration) -> Tripped {
        self.released(admission);
        self.open(now.saturating_add(wait))
    }

    /// Opens, never for shorter than it is open already.
    fn open(&mut self, until: Duration) -> Tripped {
        let until = match &self.state {
            State::Closed { .. } => until,
            State::Open { until: before } => until.max(*before),
            State::HalfOpen { since, .. } => until.max(*since),
        };
        self.state = State::Open { until };
        Tripped { until }
    }

    /// Takes over that another process has opened it. A breaker that is being tried stays so.
    pub(crate) fn learn(&mut self, until: Duration) {
        match &self.state {
            State::Closed { .. } | State::Open { .. } => {
                self.open(until);
            }
            State::HalfOpen { .. } => {}
        }
    }

    fn cooldown(&self) -> Duration {
        match self.policy.max_cooldown {
            None => self.policy.cooldown,
            Some(most) => self
                .policy
                .cooldown
                .saturating_mul(2_u32.saturating_pow(self.trips))
                .min(most.max(self.policy.cooldown)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn tripped(policy: BreakerPolicy) -> Breaker {
        let mut breaker = Breaker::new(policy);
        for second in 0..u64::from(policy.failure_threshold) {
            let admission = breaker.admit(at(second));
            breaker.failed(admission, at(second));
        }
        breaker
    }

    #[test]
    fn the_fifth_failure_within_a_minute_trips_it() {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        for second in [0, 1, 2, 3] {
            assert_eq!(breaker.failed(Admission::Ordinary, at(second)), None);
        }
        // The first is forgotten by now, so this is the fourth again.
        assert_eq!(breaker.failed(Admission::Ordinary, at(60)), None);
        assert_eq!(
            breaker.failed(Admission::Ordinary, at(60)),
            Some(Tripped { until: at(90) })
        );
        assert_eq!(breaker.standing(at(89)), Standing::Open { until: at(90) });
        assert_eq!(breaker.standing(at(90)), Standing::Rested);
    }

    #[test]
    fn successes_between_failures_do_not_hide_them() {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        for second in 0..4 {
            breaker.failed(Admission::Ordinary, at(second));
            breaker.succeeded(Admission::Ordinary);
        }
        assert!(breaker.failed(Admission::Ordinary, at(5)).is_some());
    }

    #[test]
    fn one_probe_at_a_time_decides() {
        let mut breaker = tripped(BreakerPolicy::default());
        assert_eq!(breaker.standing(at(40)), Standing::Rested);
        let probe = breaker.admit(at(40));
        assert_eq!(probe, Admission::Probe);
        assert_eq!(breaker.standing(at(40)), Standing::Probed);
        breaker.released(probe);
        assert_eq!(breaker.standing(at(40)), Standing::Rested);
        let probe = breaker.admit(at(41));
        assert_eq!(
            breaker.failed(probe, at(42)),
            Some(Tripped { until: at(72) })
        );
        let probe = breaker.admit(at(80));
        assert!(breaker.succeeded(probe));
        assert_eq!(breaker.standing(at(80)), Standing::Closed { failures: 0 });
    }

    #[test]
    fn a_cooldown_grows_only_where_it_may() {
        let policy = BreakerPolicy {
            max_cooldown: Some(at(100)),
            ..BreakerPolicy::default()
        };
        let mut breaker = tripped(policy);
        let mut now = at(4);
        let mut waits = Vec::new();
        for _ in 0..3 {
            let Standing::Open { until } = breaker.standing(now) else {
                panic!("{breaker:?}");
            };
            waits.push(until.saturating_sub(now).as_secs());
            now = until;
            let probe = breaker.admit(now);
            breaker.failed(probe, now);
        }
        assert_eq!(waits, [30, 60, 100]);
    }

    proptest! {
        /// Whatever happens in whatever order: a deadline never moves to an earlier time, and no
        /// more probes are let through than may be, as long as nobody forces one.
        #[test]
        fn deadlines_only_move_on_and_probes_are_few(
            steps in proptest::collection::vec((0..5_u8, 0..40_u64), 1..200),
            probes in 1..3_u32,
        ) {
            let mut breaker = Breaker::new(BreakerPolicy {
                half_open_probes: probes,
                failure_threshold: 2,
                ..BreakerPolicy::default()
            });
            let mut now = Duration::ZERO;
            let mut deadline = Duration::ZERO;
            let mut running: Vec<Admission> = Vec::new();
            for (step, pause) in steps {
                now += at(pause);
                let may_start = !matches!(
                    breaker.standing(now),
                    Standing::Open { .. } | Standing::Probed
                );
                match step {
                    0 | 1 if may_start => running.push(breaker.admit(now)),
                    2 => if let Some(admission) = running.pop() {
                        breaker.failed(admission, now);
                    },
                    3 => if let Some(admission) = running.pop() {
                        breaker.succeeded(admission);
                    },
                    4 => if let Some(admission) = running.pop() {
                        breaker.rest(admission, now, at(3));
                    },
                    _ => {}
                }
                if let State::Open { until } = breaker.state {
                    prop_assert!(until >= deadline);
                    deadline = until;
                }
                if let State::HalfOpen { in_flight, .. } = breaker.state {
                    prop_assert!(in_flight <= probes);
                }
            }
        }
    }
}
