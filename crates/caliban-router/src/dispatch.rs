//! One call: candidates are asked one after the other until one has answered, and whoever hears
//! it is told what happened.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use async_stream::try_stream;
use caliban_model::{
    CancellationToken, Dollars, Error, ErrorKind, EventStream, HedgeLoss, Hop, HopKind, Origin,
    Request, Retry, RetryCategory, Shown, StopReason, StreamEvent, Usage, Warning,
};

use crate::attempt::Attempt;
use crate::breaker::Standing;
use crate::consequence::{Next, follows};
use crate::core::{Core, Hedging, Place};
use crate::facts::Facts;
use crate::hop::End;
use crate::race::{Finish, Race};
use crate::resolution::{Candidate, Plan, Resolution, Verdict, Why};
use crate::retry::{Left, RetryPolicy};
use crate::route::{HedgePolicy, Route, SameAccount, Seat};

/// A hop is said with its price from so many tokens on.
const DEAR_HOP: u64 = 30_000;
/// The most that is told of each failure but the first.
const MAX_TOLD: usize = 160;

/// Answers a request.
pub(crate) fn dispatch(
    core: Arc<Core>,
    request: Request,
    cancel: CancellationToken,
) -> EventStream {
    Box::pin(try_stream! {
        let mut call = Call::new(core, request, cancel)?;
        for event in call.beginning() {
            yield event;
        }
        if let Some(retry) = call.rest() {
            let pause = retry.delay;
            yield StreamEvent::Retrying(retry);
            call.wait(pause).await?;
        }
        loop {
            let mut attempt = call.start();
            let mut failure = None;
            if let Some(race) = call.race() {
                let finish = race.run(attempt).await;
                let (events, next) = call.after_race(finish);
                for event in events {
                    yield event;
                }
                match next {
                    Raced::Won(winner) => attempt = winner,
                    Raced::Lost(leader, error) => {
                        attempt = leader;
                        failure = Some(error);
                    }
                }
            }
            let failure = match failure {
                Some(failure) => failure,
                None => loop {
                    match attempt.next(&call.core, &call.facts).await {
                        Ok(event @ StreamEvent::Stopped { .. }) => {
                            if let Some(error) = call.withheld(&attempt, &event) {
                                break error;
                            }
                            call.answered(attempt);
                            yield event;
                            return;
                        }
                        Ok(event) => {
                            if call.is_news(&event) {
                                yield event;
                            }
                        }
                        Err(error) => break error,
                    }
                },
            };
            let (events, after) = call.after(attempt, failure);
            for event in events {
                yield event;
            }
            match after {
                After::Again(pause) => call.wait(pause).await?,
                After::Next => {}
                After::End(error) => Err(error)?,
            }
        }
    })
}

/// A call on its way.
struct Call {
    core: Arc<Core>,
    request: Request,
    cancel: CancellationToken,
    facts: Facts,
    resolution: Resolution,
    current: Candidate,
    queue: VecDeque<Candidate>,
    /// Who could not answer, and why.
    failures: Vec<(Candidate, Error)>,
    /// How often the current candidate was tried again.
    retries: u32,
    waited: Duration,
    /// An answer that broke off begins anew on the same route once in a call.
    restarted: bool,
    attempts: u32,
}

/// What follows a failure.
enum After {
    Again(Duration),
    Next,
    End(Error),
}

enum Raced {
    Won(Attempt),
    Lost(Attempt, Error),
}

impl Call {
    fn new(core: Arc<Core>, request: Request, cancel: CancellationToken) -> Result<Self, Error> {
        // Where there is nobody to choose from, nothing needs to be known.
        let facts = if core.table.routes.len() > 1 {
            Facts::of(&request)
        } else {
            Facts::briefly(&request)
        };
        core.earns_hedge();
        let resolution = core.resolve(&facts);
        let mut queue: VecDeque<Candidate> = resolution.candidates().cloned().collect();
        let Some(current) = queue.pop_front() else {
            let reason = match &resolution.plan {
                Plan::Nobody(reason) => reason.as_str(),
                Plan::Try | Plan::Wait(_) => "nobody is left",
            };
            return Err(nobody(&facts, reason));
        };
        Ok(Self {
            core,
            request,
            cancel,
            facts,
            resolution,
            current,
            queue,
            failures: Vec::new(),
            retries: 0,
            waited: Duration::ZERO,
            restarted: false,
            attempts: 0,
        })
    }

    fn origin(&self, candidate: &Candidate) -> Origin {
        let route = self.core.table.routes.get(candidate.route);
        let name = route.map_or("", |route| route.provider_name());
        Origin::new(name, Arc::clone(&candidate.model))
    }

    /// Who answers, where that is not who was asked.
    fn beginning(&self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        let origin = self.origin(&self.current);
        if let Some(word) = &self.resolution.alias
            && self.core.tells(word)
        {
            events.push(StreamEvent::Warning(Warning::model_mismatch(
                word,
                &origin.model,
            )));
        }
        let asked = Origin::new(
            self.core.table.main().map_or("", Route::provider_name),
            Arc::clone(&self.facts.model),
        );
        let primary = self.resolution.primary.as_ref();
        let is_primary = primary.is_none_or(|primary| primary.id == self.current.id);
        let hop = match (is_primary, self.resolution.verdict(&self.current.id)) {
            (false, Some(Verdict::Kept(Why::Stays))) => None,
            (false, _) => primary.and_then(|primary| match self.resolution.verdict(&primary.id) {
                Some(Verdict::Dropped(reason)) => Some((
                    HopKind::Skipped,
                    self.end_of(primary),
                    format!("`{}` {reason}", primary.id),
                )),
                Some(Verdict::Kept(_)) | None => None,
            }),
            (true, Some(Verdict::Kept(Why::Saves))) if self.core.tells(&self.current.id) => {
                let reason = "so much of the budget is spent that a cheaper model goes on";
                let from = End::new(asked.clone(), self.core.table.main());
                Some((HopKind::Budget, from, reason.to_owned()))
            }
            (true, _) => self.return_from(),
        };
        match hop {
            Some((kind, from, reason)) => {
                events.push(self.rerouted(kind, from, &self.current, reason));
            }
            None if origin != asked => events.push(StreamEvent::Routed { origin }),
            None => {}
        }
        events
    }

    /// Where the conversation was until now, if that is not where it belongs.
    fn return_from(&self) -> Option<(HopKind, End, String)> {
        let left = self.core.stood_in(&self.facts)?;
        let route = self.core.table.route(&left)?;
        let reason = format!("`{}` answers again after `{left}`", self.current.id);
        let from = End::new(route.origin(), Some(route));
        (left != self.current.id).then_some((HopKind::Return, from, reason))
    }

    /// One end of a hop.
    fn end_of(&self, candidate: &Candidate) -> End {
        let route = self.core.table.routes.get(candidate.route);
        End::new(self.origin(candidate), route)
    }

    fn rerouted(&self, kind: HopKind, from: End, to: &Candidate, reason: String) -> StreamEvent {
        let marks = from.cleared_by(&self.end_of(to), &self.request);
        self.core.cleared_markers(marks);
        StreamEvent::Rerouted(Hop {
            route_id: to.id.to_string(),
            purpose: self.facts.purpose,
            kind,
            from: from.origin,
            to: self.origin(to),
            reason: reason + &self.price_of(to),
            markers_cleared: marks,
        })
    }

    /// What a hop costs, where that is worth telling.
    fn price_of(&self, candidate: &Candidate) -> String {
        let tokens = self.facts.input_tokens;
        if tokens < DEAR_HOP {
            return String::new();
        }
        let mut told = format!("; it reads about {tokens} tokens anew");
        let origin = self.origin(candidate);
        let rate = self.core.rates.lookup(&origin.provider, &origin.model);
        if let Some(rate) = rate {
            let cost = rate.cost(&Usage {
                cache_write_5m: tokens,
                ..Usage::default()
            });
            let _ = write!(told, ", for about {}", Dollars(cost));
        }
        told
    }

    /// The pause that everybody needs, where nobody is well.
    fn rest(&self) -> Option<Retry> {
        let Plan::Wait(pause) = self.resolution.plan else {
            return None;
        };
        Some(Retry {
            attempt: 1,
            max_retries: self.core.retries.max_retries,
            delay: pause,
            status: None,
            category: RetryCategory::Other,
            message: format!(
                "every route is left alone after failures; `{}` is tried first",
                self.current.id
            ),
            shown: Shown::Nothing,
        })
    }

    async fn wait(&mut self, pause: Duration) -> Result<(), Error> {
        self.waited = self.waited.saturating_add(pause);
        let sleep = self.core.clock.sleep(pause);
        let cancelled = || {
            let origin = self.origin(&self.current);
            Error::cancelled(&origin.provider, &origin.model)
        };
        let slept = self.cancel.run_until_cancelled(sleep).await;
        slept.ok_or_else(cancelled)
    }

    fn start(&mut self) -> Attempt {
        self.attempts = self.attempts.saturating_add(1);
        Attempt::start(&self.core, &self.current, &self.request, &self.cancel)
    }

    /// Warnings are about the request, and are told once for each candidate.
    fn is_news(&self, event: &StreamEvent) -> bool {
        !matches!(event, StreamEvent::Warning(_)) || self.retries == 0
    }

    /// An answer without a word that the provider keeps to itself has failed where the route says
    /// that others may be asked, and others are left.
    fn withheld(&self, attempt: &Attempt, stopped: &StreamEvent) -> Option<Error> {
        let StreamEvent::Stopped {
            reason: StopReason::Refusal | StopReason::ContentFilter,
            detail,
        } = stopped
        else {
            return None;
        };
        let Origin { provider, model } = &attempt.origin;
        let why = detail.as_deref().unwrap_or("the answer was refused");
        let error = Error::new(ErrorKind::Filtered, &**provider, &**model, why);
        let may = attempt.shown() == Shown::Nothing && self.next_for(&error).is_some();
        may.then_some(error)
    }

    fn answered(&self, attempt: Attempt) {
        let primary = self.resolution.primary.as_ref();
        let place = if primary.is_none_or(|primary| primary.id == attempt.candidate.id) {
            Place::Primary
        } else {
            Place::StandIn
        };
        let usage = attempt.usage.unwrap_or_else(|| attempt.estimate());
        self.core
            .answered(&attempt.candidate, &self.facts, usage, place);
        attempt.pass.succeeded();
    }

    /// The race that this attempt may have: the first of a call only.
    fn race(&self) -> Option<Race<'_>> {
        let route = self.core.table.routes.get(self.current.route)?;
        let policy = route.hedge.filter(|policy| policy.max > 0)?;
        if self.attempts > 1
            || self.core.hedging == Hedging::Never
            || self.facts.input_tokens > policy.max_input_tokens
            || self.would_overspend()
        {
            return None;
        }
        let rivals = self.rivals(policy);
        (!rivals.is_empty()).then_some(Race {
            core: &self.core,
            facts: &self.facts,
            request: &self.request,
            cancel: &self.cancel,
            rivals,
            after: policy.after,
        })
    }

    fn would_overspend(&self) -> bool {
        let Some(budget) = self.core.budget else {
            return false;
        };
        let all = std::iter::once(&self.current).chain(&self.queue);
        let next: rust_decimal::Decimal = all
            .take(2)
            .filter_map(|candidate| {
                let origin = self.origin(candidate);
                let rate = self.core.rates.lookup(&origin.provider, &origin.model)?;
                Some(rate.cost(&Usage {
                    input: self.facts.input_tokens,
                    ..Usage::default()
                }))
            })
            .sum();
        self.core.spent() + next > budget
    }

    /// Those that are well and do not share the limits of the first.
    fn rivals(&self, policy: HedgePolicy) -> VecDeque<Candidate> {
        let account = |candidate: &Candidate| {
            let route = self.core.table.routes.get(candidate.route);
            route.map(|route| Arc::clone(&route.account))
        };
        let own = account(&self.current);
        let view = self.core.view(&self.facts);
        let is_well = |candidate: &&Candidate| {
            let health = view.routes.get(&candidate.id).copied();
            match health.unwrap_or_default().breaker {
                None | Some(Standing::Closed { .. }) => true,
                Some(Standing::Open { .. } | Standing::Rested | Standing::Probed) => false,
            }
        };
        let is_apart = |candidate: &&Candidate| {
            policy.same_account == SameAccount::Raced || account(candidate) != own
        };
        let most = usize::try_from(policy.max).unwrap_or(usize::MAX);
        let queue = self.queue.iter();
        queue
            .filter(is_well)
            .filter(is_apart)
            .take(most)
            .cloned()
            .collect()
    }

    /// Who goes on after a race, and what it cost.
    fn after_race(&mut self, finish: Finish) -> (Vec<StreamEvent>, Raced) {
        let mut events = Vec::new();
        let winner = finish.winner.as_ref();
        for loser in &finish.losers {
            // Whoever was asked has read the whole input, whether or not it has said so.
            let usage = loser.usage.unwrap_or_else(|| loser.estimate());
            self.core.wasted(&loser.candidate, &self.facts, usage);
            events.push(StreamEvent::Wasted {
                origin: loser.origin.clone(),
                usage,
            });
            let Origin { provider, model } = &loser.origin;
            events.push(StreamEvent::Warning(Warning::hedge_loss(HedgeLoss {
                route_id: loser.candidate.id.to_string(),
                purpose: self.facts.purpose,
                from: loser.origin.clone(),
                to: winner.map_or_else(|| loser.origin.clone(), |it| it.origin.clone()),
                usage,
                cost: self.core.rates.price(provider, model, &usage),
            })));
        }
        drop(finish.losers);
        let leader = self.current.id.clone();
        let mut lost = None;
        for (attempt, error) in finish.failed {
            if finish.winner.is_none() && attempt.candidate.id == leader {
                lost = Some((attempt, error));
                continue;
            }
            let Attempt {
                candidate, pass, ..
            } = attempt;
            self.core.failed(&candidate, &self.facts, pass, &error);
            self.queue.retain(|other| other.id != candidate.id);
            self.failures.push((candidate, error));
        }
        match (finish.winner, lost) {
            (Some(winner), _) => {
                if winner.candidate.id != leader {
                    self.core.hedge_won();
                    self.queue.retain(|other| other.id != winner.candidate.id);
                    let reason = format!("`{leader}` was slow, and it began first");
                    let from = self.end_of(&self.current);
                    events.push(self.rerouted(HopKind::Hedge, from, &winner.candidate, reason));
                    self.current = winner.candidate.clone();
                }
                (events, Raced::Won(winner))
            }
            (None, Some((attempt, error))) => (events, Raced::Lost(attempt, error)),
            // The leader took part, so one of the two is there; asking again says what is wrong.
            (None, None) => (events, Raced::Won(self.start())),
        }
    }

    /// What a failure leads to.
    fn after(&mut self, attempt: Attempt, mut error: Error) -> (Vec<StreamEvent>, After) {
        let mut events = Vec::new();
        let shown = attempt.shown();
        if let Some(usage) = attempt.lost() {
            self.core.wasted(&attempt.candidate, &self.facts, usage);
            if attempt.usage.is_none() {
                // Whoever hears this knows what was reported, but not this.
                events.push(StreamEvent::Wasted {
                    origin: attempt.origin.clone(),
                    usage,
                });
            }
        }
        let Attempt {
            candidate, pass, ..
        } = attempt;
        if error.kind == ErrorKind::Cancelled {
            self.core.failed(&candidate, &self.facts, pass, &error);
            return (events, After::End(error));
        }
        let next = self.next_for(&error);
        let left = match next {
            Some(_) => Left::Others,
            None => Left::Nothing,
        };
        match self.again(&error, shown, left) {
            Repeat::After(retry) => {
                self.core.repeats(&candidate, &self.facts);
                let pause = retry.delay;
                events.push(StreamEvent::Retrying(retry));
                return (events, After::Again(pause));
            }
            Repeat::TooLate(wait) => {
                error = error.with_remedy(format!(
                    "the provider asks to wait {} s; try again then",
                    wait.as_secs()
                ));
            }
            Repeat::No => {}
        }
        self.core.failed(&candidate, &self.facts, pass, &error);
        if self.retries > 0 {
            let retries = match self.retries {
                1 => "one retry".to_owned(),
                more => format!("{more} retries"),
            };
            error.message = format!("{} (gave up after {retries})", error.message);
        }
        let reason = error.to_string();
        self.failures.push((candidate, error));
        let next = next.or_else(|| self.others_of_default());
        let next = next.and_then(|place| self.queue.drain(..=place).next_back());
        let Some(candidate) = next else {
            let error = self.end();
            return (events, After::End(error));
        };
        self.core.hopped();
        let from = self.end_of(&self.current);
        events.push(self.rerouted(HopKind::Fallback, from, &candidate, reason));
        self.current = candidate;
        self.retries = 0;
        (events, After::Next)
    }

    /// Whether the same candidate is tried again.
    fn again(&mut self, error: &Error, shown: Shown, left: Left) -> Repeat {
        let policy = self.core.retries;
        let is_second_break = shown == Shown::Superseded && self.restarted;
        if !RetryPolicy::may_repeat(error, left)
            || self.retries >= policy.limit(left)
            || is_second_break
        {
            return Repeat::No;
        }
        if let Some(wait) = error.retry_after
            && wait > policy.patience
        {
            return Repeat::TooLate(wait);
        }
        let pause = policy.pause(self.retries + 1, error, self.core.dice.part());
        if self.waited.saturating_add(pause) > policy.patience {
            return Repeat::No;
        }
        self.retries += 1;
        self.restarted |= shown == Shown::Superseded;
        Repeat::After(Retry {
            attempt: self.retries,
            max_retries: policy.limit(left),
            delay: pause,
            status: error.status,
            category: error.category(),
            message: error.message.clone(),
            shown,
        })
    }

    /// The place in the queue of who is asked after this failure.
    fn next_for(&self, error: &Error) -> Option<usize> {
        let route = self.core.table.routes.get(self.current.route);
        match follows(error).next {
            Next::Yes => (!self.queue.is_empty()).then_some(0),
            Next::IfAskedFor(escape) => route
                .is_some_and(|route| route.fallback_on.contains(&escape))
                .then_some(0)
                .filter(|_| !self.queue.is_empty()),
            Next::IfLarger => {
                let own = self.window(&self.current);
                self.queue
                    .iter()
                    .position(|candidate| match (self.window(candidate), own) {
                        (Some(window), Some(own)) => window > own,
                        (Some(_) | None, _) => false,
                    })
            }
            Next::No => None,
        }
    }

    fn window(&self, candidate: &Candidate) -> Option<u64> {
        match &self.core.table.routes.get(candidate.route)?.seat {
            Seat::Connected(provider) => provider.capabilities(&candidate.model).context_window,
            Seat::Vacant { .. } => None,
        }
    }

    /// Where no model of a purpose exists, those of the default purpose answer.
    fn others_of_default(&mut self) -> Option<usize> {
        let are_all_gone = self
            .failures
            .iter()
            .all(|(_, error)| error.kind == ErrorKind::Unavailable);
        if !are_all_gone {
            return None;
        }
        let again = self.core.resolve(&self.facts);
        let is_new = |candidate: &&Candidate| {
            let mut tried = self.failures.iter();
            !tried.any(|(other, _)| other.id == candidate.id)
        };
        self.queue = again.candidates().filter(is_new).cloned().collect();
        (!self.queue.is_empty()).then_some(0)
    }

    /// The first failure, and what became of the others.
    fn end(&mut self) -> Error {
        let mut failures = std::mem::take(&mut self.failures).into_iter();
        let Some((_, mut first)) = failures.next() else {
            return nobody(&self.facts, "nobody is left");
        };
        for (candidate, error) in failures {
            let told: String = error.message.chars().take(MAX_TOLD).collect();
            let _ = write!(first.message, "; then `{}`: {told}", candidate.id);
        }
        first
    }
}

enum Repeat {
    After(Retry),
    /// The server asks for more patience than there is.
    TooLate(Duration),
    No,
}

fn nobody(facts: &Facts, reason: &str) -> Error {
    Error::new(
        ErrorKind::Invalid,
        "router",
        &*facts.model,
        format!("no candidate: {reason}"),
    )
    .with_remedy("see `caliban router debug` for what becomes of each route")
}
