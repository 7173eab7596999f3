//! What all calls of a router share: the table, the time, and what was learnt about routes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caliban_model::{Error, RateCard, Usage};
use rust_decimal::Decimal;

use crate::accounts::{Account, Accounts, Holder};
use crate::affinity::{Affinity, Primary};
use crate::breaker::{Admission, Breaker, Standing, Tripped};
use crate::clock::Clock;
use crate::consequence::{self, follows, kind_name};
use crate::dice::SharedDice;
use crate::facts::Facts;
use crate::resolution::{Candidate, Health, Resolution, View};
use crate::resolve::resolve;
use crate::retry::RetryPolicy;
use crate::route::{Route, Table};
use crate::shared::{OpenRecord, SharedStates};

/// The most routes whose health is known; models that are asked for by name are routes, too.
const MAX_KNOWN: usize = 256;
/// Of so many calls one may be raced, and so many in a row at most.
const HEDGE_EVERY: f64 = 0.1;
const HEDGE_BURST: f64 = 10.0;

/// Whether routes are raced at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hedging {
    #[default]
    AsConfigured,
    /// Where answers are recorded: there is one for each request.
    Never,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) table: Table,
    pub(crate) rates: Arc<RateCard>,
    pub(crate) retries: RetryPolicy,
    pub(crate) budget: Option<Decimal>,
    pub(crate) shared: Option<SharedStates>,
    pub(crate) hedging: Hedging,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dice: SharedDice,
    pub(crate) state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    breakers: HashMap<Arc<str>, Breaker>,
    dead: HashSet<Arc<str>>,
    affinity: Affinity,
    accounts: Accounts,
    /// Words that were explained.
    told: HashSet<Arc<str>>,
    /// How many races may begin at once.
    hedges: Option<f64>,
    counts: Counts,
}

/// What happened in all calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answers that came from another route than the one asked before.
    pub hops: u64,
    pub trips: u64,
    pub hedges_started: u64,
    pub hedges_won: u64,
    /// Marks for prompt caches that routes before a hop would have set and those after did not.
    pub markers_cleared: u64,
}

impl Core {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn resolve(&self, facts: &Facts) -> Resolution {
        resolve(&self.table, facts, &self.view(facts), &self.rates)
    }

    /// What a request finds.
    pub(crate) fn view(&self, facts: &Facts) -> View {
        let now = self.clock.now();
        if self.table.routes.len() > 1 {
            self.hear_others(now);
        }
        let state = self.state();
        let mut routes: HashMap<Arc<str>, Health> = HashMap::new();
        for route in &self.table.routes {
            let health = state.health(route, &route.id, now);
            routes.insert(Arc::clone(&route.id), health);
        }
        for id in &state.dead {
            routes.entry(Arc::clone(id)).or_default().is_dead = true;
        }
        for (id, breaker) in &state.breakers {
            let health = routes.entry(Arc::clone(id)).or_default();
            health.breaker = Some(breaker.standing(now));
        }
        let primary = self.table.head(facts.purpose).map(|route| &route.id);
        let primary = primary.and_then(|id| routes.get(id));
        let primary = match primary {
            Some(health) if health.is_dead => Primary::Ails,
            Some(health) => match health.breaker {
                Some(Standing::Open { .. } | Standing::Probed) => Primary::Ails,
                Some(Standing::Closed { .. } | Standing::Rested) | None => Primary::Works,
            },
            None => Primary::Works,
        };
        let settings = &self.table.settings;
        let is_worth_it = facts.goes_on || facts.input_tokens >= settings.stay_from;
        let return_after = if is_worth_it {
            settings.return_after
        } else {
            Duration::ZERO
        };
        View {
            now,
            stay: state.affinity.stay(facts, now, primary, return_after),
            spent: self
                .budget
                .filter(|budget| !budget.is_zero())
                .map(|budget| {
                    let spent = state.accounts.spent();
                    spent / budget
                }),
            routes,
        }
    }

    /// Takes over what other processes found out.
    fn hear_others(&self, now: Duration) {
        let Some(shared) = &self.shared else {
            return;
        };
        let wall = self.clock.wall();
        for route in &self.table.routes {
            if route.breaker.is_none() {
                continue;
            }
            let key = SharedStates::key(&route.account, &route.model);
            if let Some(record) = shared.open(&key, wall) {
                let left = Duration::from_millis(record.until_ms.saturating_sub(wall));
                let mut state = self.state();
                if let Some(breaker) = state.breaker(route, &route.id) {
                    breaker.learn(now.saturating_add(left));
                }
            }
        }
    }

    /// Lets a call through to a candidate.
    pub(crate) fn admit(self: &Arc<Self>, candidate: &Candidate) -> Pass {
        let now = self.clock.now();
        let mut state = self.state();
        let route = self.table.routes.get(candidate.route);
        let breaker = route.and_then(|route| state.breaker(route, &candidate.id));
        Pass {
            admission: breaker.map(|breaker| breaker.admit(now)),
            core: Arc::clone(self),
            candidate: candidate.clone(),
        }
    }

    pub(crate) fn holder<'a>(&'a self, candidate: &'a Candidate, facts: &Facts) -> Holder<'a> {
        let route = self.table.routes.get(candidate.route);
        Holder {
            id: &candidate.id,
            purpose: facts.purpose,
            provider: route.map_or("", Route::provider_name),
            model: &candidate.model,
        }
    }

    /// Notes that a candidate has answered, and whether the conversation stays with it.
    pub(crate) fn answered(
        &self,
        candidate: &Candidate,
        facts: &Facts,
        usage: Usage,
        place: Place,
    ) {
        let holder = self.holder(candidate, facts);
        let now = self.clock.now();
        let mut state = self.state();
        state.accounts.answered(holder, usage, &self.rates);
        match place {
            Place::Primary => state.affinity.over(facts),
            Place::StandIn => state.affinity.stood_in(facts, &candidate.id, now),
        }
    }

    pub(crate) fn wasted(&self, candidate: &Candidate, facts: &Facts, usage: Usage) {
        let holder = self.holder(candidate, facts);
        self.state().accounts.wasted(holder, usage, &self.rates);
    }

    pub(crate) fn began(&self, candidate: &Candidate, facts: &Facts, after: Duration) {
        let mut state = self.state();
        state.accounts.began(&candidate.id, facts.purpose, after);
    }

    /// Notes a failure after which the same route is tried again: whether the route is ill is
    /// for the last attempt of a call to say.
    pub(crate) fn repeats(&self, candidate: &Candidate, facts: &Facts) {
        let holder = self.holder(candidate, facts);
        self.state().accounts.failed(holder);
    }

    /// Notes a failure that ended the attempts of a call at a route.
    pub(crate) fn failed(&self, candidate: &Candidate, facts: &Facts, pass: Pass, error: &Error) {
        let holder = self.holder(candidate, facts);
        let mut state = self.state();
        state.accounts.failed(holder);
        if state.affinity.current(facts.purpose).as_deref() == Some(&*candidate.id) {
            state.affinity.over(facts);
        }
        drop(state);
        pass.failed(error);
    }

    /// Whether a word is explained for the first time.
    pub(crate) fn tells(&self, word: &Arc<str>) -> bool {
        let mut state = self.state();
        state.told.len() < MAX_KNOWN && state.told.insert(Arc::clone(word))
    }

    /// Whether one more race may begin.
    pub(crate) fn takes_hedge(&self) -> bool {
        let mut state = self.state();
        let left = state.hedges.unwrap_or(HEDGE_BURST);
        let may = left >= 1.0;
        if may {
            state.hedges = Some(left - 1.0);
            state.counts.hedges_started += 1;
        }
        may
    }

    /// Each call earns a part of a race.
    pub(crate) fn earns_hedge(&self) {
        let mut state = self.state();
        let left = state.hedges.unwrap_or(HEDGE_BURST);
        state.hedges = Some((left + HEDGE_EVERY).min(HEDGE_BURST));
    }

    pub(crate) fn hedge_won(&self) {
        self.state().counts.hedges_won += 1;
    }

    pub(crate) fn cleared_markers(&self, marks: u32) {
        self.state().counts.markers_cleared += u64::from(marks);
    }

    pub(crate) fn hopped(&self) {
        self.state().counts.hops += 1;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state().counts
    }

    pub(crate) fn accounts(&self) -> Vec<(Arc<str>, caliban_model::Purpose, Account)> {
        let state = self.state();
        let all = state.accounts.all();
        all.map(|(id, purpose, account)| (Arc::clone(id), purpose, account.clone()))
            .collect()
    }

    pub(crate) fn spent(&self) -> Decimal {
        self.state().accounts.spent()
    }

    /// The route that answered this conversation instead of the first, whether or not it still
    /// would.
    pub(crate) fn stood_in(&self, facts: &Facts) -> Option<Arc<str>> {
        self.state().affinity.last(facts)
    }

    /// The route that stands in for a purpose at the moment.
    pub(crate) fn stand_in(&self, purpose: caliban_model::Purpose) -> Option<Arc<str>> {
        self.state().affinity.current(purpose)
    }

    /// Tells other processes of a breaker that has opened.
    fn publish(&self, candidate: &Candidate, tripped: Tripped, error: &Error) {
        let (Some(shared), Some(route)) = (&self.shared, self.table.routes.get(candidate.route))
        else {
            return;
        };
        let (now, wall) = (self.clock.now(), self.clock.wall());
        let left = tripped.until.saturating_sub(now).as_millis();
        let record = OpenRecord {
            provider: route.provider_name().to_owned(),
            model: candidate.model.to_string(),
            until_ms: wall.saturating_add(u64::try_from(left).unwrap_or(u64::MAX)),
            reason: kind_name(&error.kind).to_owned(),
            pid: std::process::id(),
            at_ms: wall,
        };
        shared.publish(
            &SharedStates::key(&route.account, &candidate.model),
            &record,
        );
    }

    fn withdraw(&self, candidate: &Candidate) {
        if let (Some(shared), Some(route)) = (&self.shared, self.table.routes.get(candidate.route))
        {
            shared.withdraw(&SharedStates::key(&route.account, &candidate.model));
        }
    }
}

/// Whether the one who answered is the one who should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Primary,
    StandIn,
}

impl State {
    fn health(&self, route: &Route, id: &Arc<str>, now: Duration) -> Health {
        Health {
            breaker: route.breaker.map(|_| match self.breakers.get(id) {
                Some(breaker) => breaker.standing(now),
                None => Standing::Closed { failures: 0 },
            }),
            is_dead: self.dead.contains(id),
            first_content: self.accounts.first_content(id),
        }
    }

    /// The breaker of a candidate, where its route has one.
    fn breaker(&mut self, route: &Route, id: &Arc<str>) -> Option<&mut Breaker> {
        let policy = route.breaker?;
        if !self.breakers.contains_key(id) && self.breakers.len() >= MAX_KNOWN {
            return None;
        }
        let breaker = self.breakers.entry(Arc::clone(id));
        Some(breaker.or_insert_with(|| Breaker::new(policy)))
    }
}

/// The right of one call to ask a candidate. Dropped, it says nothing about the route.
#[derive(Debug)]
pub(crate) struct Pass {
    admission: Option<Admission>,
    core: Arc<Core>,
    candidate: Candidate,
}

impl Pass {
    fn with_breaker<T>(&mut self, tell: impl FnOnce(&mut Breaker, Admission) -> T) -> Option<T> {
        let admission = self.admission.take()?;
        let mut state = self.core.state();
        let breaker = state.breakers.get_mut(&self.candidate.id)?;
        Some(tell(breaker, admission))
    }

    pub(crate) fn succeeded(mut self) {
        if self.with_breaker(Breaker::succeeded) == Some(true) {
            self.core.withdraw(&self.candidate);
        }
    }

    fn failed(mut self, error: &Error) {
        let now = self.core.clock.now();
        let tripped = match follows(error).health {
            consequence::Health::Failure => self
                .with_breaker(|breaker, admission| breaker.failed(admission, now))
                .flatten(),
            consequence::Health::Rests => match error.retry_after {
                Some(wait) => {
                    self.with_breaker(|breaker, admission| breaker.rest(admission, now, wait))
                }
                None => None,
            },
            consequence::Health::Dead => {
                let mut state = self.core.state();
                if state.dead.len() < MAX_KNOWN {
                    state.dead.insert(Arc::clone(&self.candidate.id));
                }
                None
            }
            consequence::Health::Unchanged => None,
        };
        if let Some(tripped) = tripped {
            self.core.state().counts.trips += 1;
            self.core.publish(&self.candidate, tripped, error);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.with_breaker(Breaker::released);
    }
}
