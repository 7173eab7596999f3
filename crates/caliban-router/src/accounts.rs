//! What each route has done and cost, by purpose.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use caliban_model::{Purpose, RateCard, Usage};
use rust_decimal::Decimal;

/// The most routes and purposes that have an account; what comes after shares the last.
const MAX_ACCOUNTS: usize = 256;
/// How much the newest time counts in the average.
const WEIGHT: f64 = 0.2;
/// So many times must be known before they say anything.
pub(crate) const SAMPLES: u32 = 5;

/// The account of one route and purpose.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    pub answers: u64,
    pub failures: u64,
    /// Of answers.
    pub usage: Usage,
    /// Of attempts that came to nothing: broken answers, and routes that lost a race.
    pub wasted: Usage,
    pub cost: Decimal,
    pub wasted_cost: Decimal,
    /// From asking to the first content, averaged.
    pub first_content: Option<Duration>,
    pub samples: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Accounts(BTreeMap<(Arc<str>, Purpose), Account>);

/// Whose account: the route, for what, and who is paid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder<'a> {
    pub(crate) id: &'a Arc<str>,
    pub(crate) purpose: Purpose,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
}

impl Accounts {
    fn of(&mut self, id: &Arc<str>, purpose: Purpose) -> &mut Account {
        let key = (Arc::clone(id), purpose);
        if !self.0.contains_key(&key) && self.0.len() >= MAX_ACCOUNTS {
            return self.0.entry((Arc::from("…"), Purpose::Other)).or_default();
        }
        self.0.entry(key).or_default()
    }

    pub(crate) fn answered(&mut self, holder: Holder<'_>, usage: Usage, rates: &RateCard) {
        let cost = cost(holder, usage, rates);
        let account = self.of(holder.id, holder.purpose);
        account.answers += 1;
        account.usage += usage;
        account.cost += cost;
    }

    pub(crate) fn failed(&mut self, holder: Holder<'_>) {
        self.of(holder.id, holder.purpose).failures += 1;
    }

    pub(crate) fn wasted(&mut self, holder: Holder<'_>, usage: Usage, rates: &RateCard) {
        let cost = cost(holder, usage, rates);
        let account = self.of(holder.id, holder.purpose);
        account.wasted += usage;
        account.wasted_cost += cost;
    }

    pub(crate) fn began(&mut self, id: &Arc<str>, purpose: Purpose, after: Duration) {
        let account = self.of(id, purpose);
        account.samples = account.samples.saturating_add(1);
        account.first_content = Some(match account.first_content {
            None => after,
            Some(before) => before.mul_f64(1.0 - WEIGHT) + after.mul_f64(WEIGHT),
        });
    }

    /// How soon a route begins to answer, where enough is known.
    pub(crate) fn first_content(&self, id: &str) -> Option<Duration> {
        let accounts = self.0.iter().filter(|((of, _), _)| &**of == id);
        let mut known = accounts.filter(|(_, account)| account.samples >= SAMPLES);
        known.find_map(|(_, account)| account.first_content)
    }

    /// Everything that was paid.
    pub(crate) fn spent(&self) -> Decimal {
        self.0
            .values()
            .map(|account| account.cost + account.wasted_cost)
            .sum()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Arc<str>, Purpose, &Account)> {
        self.0
            .iter()
            .map(|((id, purpose), account)| (id, *purpose, account))
    }
}

fn cost(holder: Holder<'_>, usage: Usage, rates: &RateCard) -> Decimal {
    let price = rates.price(holder.provider, holder.model, &usage);
    price.unwrap_or_default()
}
