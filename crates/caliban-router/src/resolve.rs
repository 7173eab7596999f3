//! Who may answer a request, in which order, and why: a pure function. Whatever shows a decision
//! calls it, and so does whatever acts on one.

use std::sync::Arc;
use std::time::Duration;

use caliban_model::{
    Capabilities, ForcedTools, ProviderKind, Purpose, RateCard, ToolSupport, traits,
};
use rust_decimal::Decimal;

use crate::breaker::Standing;
use crate::facts::{Facts, Need};
use crate::resolution::{
    Candidate, Considered, Health, Plan, Reason, Resolution, Verdict, View, Why,
};
use crate::route::{Declared, Order, Origins, Route, Seat, Strictness, Table};

/// How long every route may be left alone before one is tried all the same.
pub(crate) const REST_PATIENCE: Duration = Duration::from_mins(1);
/// By how much an estimate of tokens may be too small for a model that has not counted them yet.
const ESTIMATE_SLACK: (u64, u64) = (13, 10);
/// What plugins call models, whoever serves them.
const TIERS: [&str; 4] = ["sonnet", "opus", "fable", "default"];

/// Decides. Filters in this order: purpose, what the request needs, health, budget; then the order
/// of the head route's fallbacks; then the route that the conversation stays on.
pub fn resolve(table: &Table, facts: &Facts, view: &View, rates: &RateCard) -> Resolution {
    let mut work = Work {
        table,
        facts,
        view,
        rates,
        dropped: Vec::new(),
    };
    let Some(purpose) = work.purpose() else {
        return work.nobody(
            facts.purpose,
            format!("no route is for `{}`", facts.purpose.slug()),
        );
    };
    let asked = work.asked(purpose);
    let mut kept = work.fitting(purpose, &asked);
    if kept.is_empty() {
        let reason = work.why_nobody();
        return work.nobody(purpose, reason);
    }
    work.restrict(&mut kept);
    let head = kept.first().map(|kept| kept.candidate.clone());
    let is_passed_over = work.pass_over_unpriced(&mut kept);
    work.save(&mut kept);
    let first = kept.first().map(|kept| kept.candidate.clone());
    let primary = if is_passed_over { head } else { first };
    let plan = work.spare(&mut kept);
    work.stay(&mut kept);
    let alias = match asked {
        Asked::Tier => Some(Arc::clone(&facts.model)),
        Asked::Chain | Asked::Named(_) => None,
    };
    let kept = kept.into_iter().map(|kept| Considered {
        candidate: kept.candidate,
        verdict: Verdict::Kept(kept.why),
    });
    Resolution {
        purpose,
        considered: kept.chain(work.dropped).collect(),
        plan,
        primary,
        alias,
    }
}

/// What the model's name of a request means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    /// The routes as they are.
    Chain,
    /// The same, though another word was used.
    Tier,
    /// This one first.
    Named(Candidate),
}

#[derive(Debug, Clone)]
struct Kept {
    candidate: Candidate,
    why: Why,
}

struct Work<'a> {
    table: &'a Table,
    facts: &'a Facts,
    view: &'a View,
    rates: &'a RateCard,
    dropped: Vec<Considered>,
}

impl<'a> Work<'a> {
    fn route(&self, candidate: &Candidate) -> Option<&'a Route> {
        self.table.routes.get(candidate.route)
    }

    fn health(&self, id: &str) -> Health {
        self.view.routes.get(id).copied().unwrap_or_default()
    }

    fn own(route: usize, of: &Route) -> Candidate {
        Candidate {
            route,
            id: Arc::clone(&of.id),
            model: Arc::clone(&of.model),
        }
    }

    fn of_purpose(&self, purpose: Purpose) -> impl Iterator<Item = (usize, &'a Route)> + use<'a> {
        let routes = self.table.routes.iter().enumerate();
        routes.filter(move |(_, route)| route.purpose == purpose)
    }

    /// Whose routes are used: its own; where it has none, or none that exists, those of a purpose
    /// like it, and at last those of the default.
    fn purpose(&self) -> Option<Purpose> {
        let (asked, default) = (self.facts.purpose, self.table.settings.default_purpose);
        let chain: Vec<Purpose> = match asked {
            Purpose::MainLoop => vec![Purpose::MainLoop, default],
            // Nothing but an embedding model makes embeddings.
            Purpose::Embedding => vec![Purpose::Embedding],
            Purpose::FastClassifier => vec![
                Purpose::FastClassifier,
                Purpose::Summarization,
                default,
                Purpose::MainLoop,
            ],
            Purpose::Summarization | Purpose::SubAgent | Purpose::Other => {
                vec![asked, default, Purpose::MainLoop]
            }
        };
        let is_there = |purpose: &Purpose| self.of_purpose(*purpose).next().is_some();
        let is_alive = |purpose: &Purpose| {
            self.of_purpose(*purpose).any(|(_, route)| {
                matches!(route.seat, Seat::Connected(_)) && !self.health(&route.id).is_dead
            })
        };
        let found = chain.iter().copied().find(is_alive);
        found.or_else(|| chain.iter().copied().find(is_there))
    }

    /// What is meant by the model's name.
    fn asked(&self, purpose: Purpose) -> Asked {
        let alias = self.table.settings.aliases.get(&*self.facts.model);
        let name: &str = alias.map_or(&self.facts.model, String::as_str);
        // The main model is what callers name that choose none.
        let heads = [purpose, self.facts.purpose, Purpose::MainLoop];
        let mut heads = heads.iter().filter_map(|purpose| self.table.head(*purpose));
        if name == "inherit" || heads.any(|head| &*head.model == name || &*head.id == name) {
            return Asked::Chain;
        }
        let routes = || self.table.routes.iter().enumerate();
        let by_id = routes().find(|(_, route)| &*route.id == name);
        let mut of_purpose = self.of_purpose(purpose);
        let by_model = of_purpose.find(|(_, route)| &*route.model == name);
        let anywhere = || routes().find(|(_, route)| &*route.model == name);
        if let Some((index, route)) = by_id.or(by_model).or_else(anywhere) {
            return Asked::Named(Self::own(index, route));
        }
        if name == "haiku" {
            return match self.of_purpose(Purpose::FastClassifier).next() {
                Some((index, route)) => Asked::Named(Self::own(index, route)),
                None => Asked::Tier,
            };
        }
        if TIERS.contains(&name) {
            return Asked::Tier;
        }
        self.of_provider(purpose, name)
            .map_or(Asked::Chain, Asked::Named)
    }

    /// A model that no route has, at the provider whose it is, or else at the first one.
    fn of_provider(&self, purpose: Purpose, model: &str) -> Option<Candidate> {
        let owner = ProviderKind::of_model(model).map(ProviderKind::as_str);
        let routes = self.table.routes.iter().enumerate();
        let owns = routes
            .filter(|(_, route)| matches!(route.seat, Seat::Connected(_)))
            .find(|(_, route)| owner == Some(route.provider_name()));
        let (index, route) = owns.or_else(|| self.of_purpose(purpose).next())?;
        Some(Candidate {
            route: index,
            id: Route::default_id(route.provider_name(), model, purpose),
            model: Arc::from(model),
        })
    }

    fn drop(&mut self, candidate: Candidate, reason: Reason) {
        self.dropped.push(Considered {
            candidate,
            verdict: Verdict::Dropped(reason),
        });
    }

    /// The routes of a purpose that can do what the request needs, in their order.
    fn fitting(&mut self, purpose: Purpose, asked: &Asked) -> Vec<Kept> {
        let mut all: Vec<Candidate> = self
            .of_purpose(purpose)
            .map(|(index, route)| Self::own(index, route))
            .collect();
        self.sort(purpose, &mut all);
        if let Asked::Named(candidate) = asked {
            all.retain(|other| other.id != candidate.id);
            all.insert(0, candidate.clone());
        }
        let mut kept = Vec::new();
        let mut unfit = Vec::new();
        for (place, candidate) in all.into_iter().enumerate() {
            match self.unfit(&candidate, place == 0) {
                None => kept.push(Kept {
                    why: match asked {
                        Asked::Named(named) if named.id == candidate.id => Why::Asked,
                        Asked::Named(_) | Asked::Chain | Asked::Tier if kept.is_empty() => {
                            Why::First
                        }
                        Asked::Named(_) | Asked::Chain | Asked::Tier => Why::Next,
                    },
                    candidate,
                }),
                Some(reason) => unfit.push((candidate, reason)),
            }
        }
        if kept.is_empty() {
            kept.extend(self.last_resort(&mut unfit));
        }
        for (candidate, reason) in unfit {
            self.drop(candidate, reason);
        }
        for (index, route) in self.table.routes.iter().enumerate() {
            let is_listed = |id: &Arc<str>| *id == route.id;
            let is_kept = kept.iter().any(|kept| is_listed(&kept.candidate.id));
            let is_dropped = self.dropped.iter().any(|it| is_listed(&it.candidate.id));
            if !is_kept && !is_dropped {
                self.drop(Self::own(index, route), Reason::Purpose(route.purpose));
            }
        }
        kept
    }

    /// Who is asked although nobody fits: where what is missing can be left out, or where it is
    /// for the provider to say.
    fn last_resort(&self, unfit: &mut Vec<(Candidate, Reason)>) -> Option<Kept> {
        let settings = &self.table.settings;
        let is_lenient =
            settings.origins == Origins::Implied || settings.strictness == Strictness::Lenient;
        let may_do = |reason: &Reason| match reason {
            Reason::Lacks(need) | Reason::Undeclared(need) => is_lenient || !need.is_essential(),
            Reason::Window { .. } => true,
            Reason::Purpose(_)
            | Reason::NoCredentials(_)
            | Reason::Dead
            | Reason::Resting { .. }
            | Reason::Probed
            | Reason::NotAFallback
            | Reason::UnknownPrice
            | Reason::Dearer => false,
        };
        // Of those that are too small the largest, of others the first.
        let room = |reason: &Reason| match reason {
            Reason::Window { window, .. } => *window,
            _ => u64::MAX,
        };
        let mut best: Option<(usize, u64)> = None;
        for (place, (_, reason)) in unfit.iter().enumerate() {
            let room = room(reason);
            if may_do(reason) && best.is_none_or(|(_, most)| room > most) {
                best = Some((place, room));
            }
        }
        let (candidate, reason) = unfit.remove(best?.0);
        Some(Kept {
            candidate,
            why: Why::LastResort(Box::new(reason)),
        })
    }

    /// By price or speed where that was asked for; who is alike stays in the order of the file.
    fn sort(&self, purpose: Purpose, all: &mut [Candidate]) {
        let order = self.table.settings.orders.get(&purpose).copied();
        match order.unwrap_or_default() {
            Order::Declared => {}
            Order::Cheapest => all.sort_by_key(|it| {
                let price = self.price(it);
                (price.is_none(), price.unwrap_or_default())
            }),
            Order::Fastest => all.sort_by_key(|it| {
                let time = self.health(&it.id).first_content;
                (time.is_none(), time.unwrap_or_default())
            }),
        }
    }

    /// What a million tokens in and a million out cost.
    fn price(&self, candidate: &Candidate) -> Option<Decimal> {
        let provider = self.route(candidate)?.provider_name();
        let rate = self.rates.lookup(provider, &candidate.model)?;
        Some(rate.input + rate.output)
    }

    /// Why a route cannot serve the request, if it cannot.
    fn unfit(&self, candidate: &Candidate, is_first: bool) -> Option<Reason> {
        let route = self.route(candidate)?;
        let provider = match &route.seat {
            Seat::Connected(provider) => provider,
            Seat::Vacant { reason, .. } => return Some(Reason::NoCredentials(reason.clone())),
        };
        let model = &candidate.model;
        let able = provider.capabilities(model);
        let rate = self.rates.lookup(provider.id(), model);
        let is_known = rate.is_some_and(|rate| rate.model != "*");
        let mut needs = self.facts.needs.iter().copied();
        let unmet = needs
            .find_map(|need| lacks(need, route.declared, able, is_known, (provider.id(), model)));
        unmet.or_else(|| {
            let window = able.context_window?;
            let (more, of) = if is_first { (1, 1) } else { ESTIMATE_SLACK };
            let tokens = self.facts.input_tokens.saturating_mul(more) / of
                + u64::from(self.facts.max_tokens);
            (tokens > window).then_some(Reason::Window { tokens, window })
        })
    }

    /// Leaves only those that the first route names as its fallbacks, in its order.
    fn restrict(&mut self, kept: &mut Vec<Kept>) {
        let head = kept.first().and_then(|head| self.route(&head.candidate));
        let Some(list) = head.and_then(|head| head.fallback.as_ref()) else {
            return;
        };
        let mut rest = kept.split_off(1);
        for id in list {
            if let Some(place) = rest.iter().position(|it| it.candidate.id == *id) {
                kept.push(rest.remove(place));
                continue;
            }
            // It may be for another purpose, and was not looked at.
            let known = self.table.routes.iter().position(|route| route.id == *id);
            let Some((index, route)) =
                known.and_then(|index| Some((index, self.table.routes.get(index)?)))
            else {
                continue;
            };
            let candidate = Self::own(index, route);
            let elsewhere = |it: &Considered| {
                it.candidate.id == *id && matches!(it.verdict, Verdict::Dropped(Reason::Purpose(_)))
            };
            if !self.dropped.iter().any(elsewhere) {
                continue;
            }
            self.dropped.retain(|it| it.candidate.id != *id);
            match self.unfit(&candidate, false) {
                None => kept.push(Kept {
                    candidate,
                    why: Why::Next,
                }),
                Some(reason) => self.drop(candidate, reason),
            }
        }
        for left in rest {
            self.drop(left.candidate, Reason::NotAFallback);
        }
    }

    /// A budget is not spent on nobody knows what: where the price of some is known, the others
    /// are left out. Whether that is true of who would have been asked first.
    fn pass_over_unpriced(&mut self, kept: &mut Vec<Kept>) -> bool {
        let is_priced = |work: &Self, it: &Kept| work.price(&it.candidate).is_some();
        if self.view.spent.is_none() || !kept.iter().any(|it| is_priced(self, it)) {
            return false;
        }
        let is_passed_over = kept.first().is_some_and(|head| !is_priced(self, head));
        let (priced, unpriced) = std::mem::take(kept)
            .into_iter()
            .partition(|it| is_priced(self, it));
        *kept = priced;
        for it in unpriced {
            self.drop(it.candidate, Reason::UnknownPrice);
        }
        is_passed_over
    }

    /// What a budget asks for: a cheaper route from some point on.
    fn save(&mut self, kept: &mut Vec<Kept>) {
        let Some(spent) = self.view.spent else {
            return;
        };
        let rules = self.table.settings.budgets.iter();
        let rule = rules
            .filter(|rule| rule.purpose == self.facts.purpose && spent >= rule.at)
            .max_by_key(|rule| rule.at);
        let Some(rule) = rule else {
            return;
        };
        let known = self
            .table
            .routes
            .iter()
            .position(|route| route.id == rule.route);
        let Some((index, route)) =
            known.and_then(|index| Some((index, self.table.routes.get(index)?)))
        else {
            return;
        };
        let cheaper = Self::own(index, route);
        let (Some(first), Some(price)) = (
            kept.first().and_then(|head| self.price(&head.candidate)),
            self.price(&cheaper),
        ) else {
            return;
        };
        // Never upwards, and never to one that cannot do it.
        if price >= first || self.unfit(&cheaper, false).is_some() {
            return;
        }
        let rest = std::mem::take(kept);
        for it in rest {
            if it.candidate.id == cheaper.id {
                continue;
            }
            if self.price(&it.candidate).is_some_and(|it| it <= price) {
                kept.push(it);
            } else {
                self.drop(it.candidate, Reason::Dearer);
            }
        }
        self.dropped.retain(|it| it.candidate.id != cheaper.id);
        kept.insert(
            0,
            Kept {
                candidate: cheaper,
                why: Why::Saves,
            },
        );
    }

    /// Leaves those alone that do not work, as long as others are left. Where none is, the one
    /// that has rested most is tried: a person who asks is not told to come back later.
    fn spare(&mut self, kept: &mut Vec<Kept>) -> Plan {
        if kept.len() < 2 {
            return Plan::Try;
        }
        let ailing = |work: &Self, it: &Kept| work.ailing(&it.candidate);
        if kept.iter().all(|it| ailing(self, it).is_some()) {
            return self.try_all_the_same(kept);
        }
        let mut well = Vec::new();
        for it in std::mem::take(kept) {
            match ailing(self, &it) {
                None => well.push(it),
                Some(reason) => self.drop(it.candidate, reason),
            }
        }
        *kept = well;
        Plan::Try
    }

    fn ailing(&self, candidate: &Candidate) -> Option<Reason> {
        let health = self.health(&candidate.id);
        if health.is_dead {
            return Some(Reason::Dead);
        }
        match health.breaker {
            Some(Standing::Open { until }) => Some(Reason::Resting {
                left: until.saturating_sub(self.view.now),
            }),
            Some(Standing::Probed) => Some(Reason::Probed),
            Some(Standing::Closed { .. } | Standing::Rested) | None => None,
        }
    }

    fn try_all_the_same(&mut self, kept: &mut Vec<Kept>) -> Plan {
        let rest = |reason: &Option<Reason>| match reason {
            Some(Reason::Resting { left }) => *left,
            Some(Reason::Probed) => Duration::ZERO,
            // What does not exist is the last to be tried.
            _ => Duration::MAX,
        };
        let mut best = 0;
        let mut least = None;
        for (place, it) in kept.iter().enumerate() {
            let left = rest(&self.ailing(&it.candidate));
            if least.is_none_or(|least| left < least) {
                (best, least) = (place, Some(left));
            }
        }
        let chosen = kept.remove(best);
        for it in std::mem::take(kept) {
            if let Some(reason) = self.ailing(&it.candidate) {
                self.drop(it.candidate, reason);
            }
        }
        let reason = self.ailing(&chosen.candidate);
        let left = rest(&reason);
        kept.push(Kept {
            candidate: chosen.candidate,
            why: reason.map_or(chosen.why, |reason| Why::LastResort(Box::new(reason))),
        });
        if left > Duration::ZERO && left <= REST_PATIENCE {
            Plan::Wait(left)
        } else {
            Plan::Try
        }
    }

    /// Puts the route first that the conversation stays on.
    fn stay(&self, kept: &mut Vec<Kept>) {
        let Some(stay) = &self.view.stay else {
            return;
        };
        let place = kept.iter().position(|it| it.candidate.id == *stay);
        if let Some(place) = place {
            let mut it = kept.remove(place);
            it.why = Why::Stays;
            kept.insert(0, it);
        }
    }

    /// Says what is missing, in the words of those that were dropped for it.
    fn why_nobody(&self) -> String {
        let mut reasons = Vec::new();
        for it in &self.dropped {
            if let Verdict::Dropped(reason) = &it.verdict
                && !matches!(reason, Reason::Purpose(_))
            {
                reasons.push(format!("`{}`: {reason}", it.candidate.id));
            }
        }
        if reasons.is_empty() {
            return format!("no route is for `{}`", self.facts.purpose.slug());
        }
        format!(
            "no route for `{}` can take this request ({})",
            self.facts.purpose.slug(),
            reasons.join("; ")
        )
    }

    fn nobody(mut self, purpose: Purpose, reason: String) -> Resolution {
        if self.dropped.is_empty() {
            for (index, route) in self.table.routes.iter().enumerate() {
                self.drop(Self::own(index, route), Reason::Purpose(route.purpose));
            }
        }
        Resolution {
            purpose,
            considered: self.dropped,
            plan: Plan::Nobody(reason),
            primary: None,
            alias: None,
        }
    }
}

/// Whether a model lacks what is needed. What nobody knows counts as there, but for seeing.
fn lacks(
    need: Need,
    declared: Declared,
    able: Capabilities,
    is_known: bool,
    (provider, model): (&str, &str),
) -> Option<Reason> {
    let (said, can) = match need {
        Need::Vision => (declared.vision, able.vision),
        Need::Tools => (declared.tools, able.tools != ToolSupport::None),
        Need::Thinking => (declared.thinking, able.thinking || !is_known),
        Need::ForcedTool => (
            None,
            traits(provider, model).forced_tools != ForcedTools::Rejected,
        ),
    };
    match said {
        Some(false) => Some(Reason::Lacks(need)),
        None if !can => Some(Reason::Lacks(need)),
        None if need == Need::Vision && !is_known => Some(Reason::Undeclared(need)),
        Some(true) | None => None,
    }
}
