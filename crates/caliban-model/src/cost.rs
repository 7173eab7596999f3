//! What a run has spent, per provider, model and purpose.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rust_decimal::{Decimal, RoundingStrategy};

use crate::{Purpose, RateCard, Usage};

/// An amount as people read it: `$0.0123`, to the nearest hundredth of a cent.
#[derive(Debug, Clone, Copy)]
pub struct Dollars(pub Decimal);

impl fmt::Display for Dollars {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Writing a number with a precision cuts it off.
        let nearest = RoundingStrategy::MidpointAwayFromZero;
        let amount = self.0.round_dp_with_strategy(4, nearest);
        let sign = if amount < Decimal::ZERO { "-" } else { "" };
        write!(to, "{sign}${:.4}", amount.abs())
    }
}

/// Sums usage and cost over every call of a run: retries, sub-agents and compaction included.
#[derive(Debug, Clone)]
pub struct CostLedger {
    card: Arc<RateCard>,
    entries: BTreeMap<(String, String, Purpose), LedgerEntry>,
}

/// An account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LedgerEntry {
    pub usage: Usage,
    pub calls: u64,
    /// Nothing if the model's price is not known.
    pub cost: Option<Decimal>,
    /// What a cache made cheaper; negative where writing to it cost more than reading saved.
    pub saved: Option<Decimal>,
}

impl LedgerEntry {
    /// Adds another account to this one.
    pub fn add(&mut self, other: &Self) {
        let sum = |one: Option<Decimal>, other: Option<Decimal>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or_default() + other.unwrap_or_default()),
        };
        self.usage += other.usage;
        self.calls += other.calls;
        self.cost = sum(self.cost, other.cost);
        self.saved = sum(self.saved, other.saved);
    }
}

/// What one call cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    Known(Decimal),
    /// The card has no such model; said once per model so that the user can be warned once.
    UnknownFirst,
    UnknownAgain,
}

impl CostLedger {
    pub fn new(card: Arc<RateCard>) -> Self {
        Self {
            card,
            entries: BTreeMap::new(),
        }
    }

    pub fn card(&self) -> &RateCard {
        &self.card
    }

    /// Enters one call.
    pub fn record(&mut self, purpose: Purpose, provider: &str, model: &str, usage: Usage) -> Price {
        let rate = self.card.lookup(provider, model);
        let price = self.card.price(provider, model, &usage);
        let call = LedgerEntry {
            usage,
            calls: 1,
            cost: price,
            saved: rate.and_then(|rate| rate.saved(&usage)),
        };
        let first = !self
            .entries
            .keys()
            .any(|(of, name, _)| of == provider && name == model);
        let key = (provider.to_owned(), model.to_owned(), purpose);
        self.entries.entry(key).or_default().add(&call);
        match price {
            Some(cost) => Price::Known(cost),
            None if first => Price::UnknownFirst,
            None => Price::UnknownAgain,
        }
    }

    /// The known cost of everything so far; calls of unknown price add nothing.
    pub fn total(&self) -> Decimal {
        self.entries.values().filter_map(|entry| entry.cost).sum()
    }

    pub fn usage(&self) -> Usage {
        let mut total = Usage::default();
        for entry in self.entries.values() {
            total += entry.usage;
        }
        total
    }

    /// Accounts by provider and model, in alphabetical order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str, LedgerEntry)> {
        let mut models: BTreeMap<(&str, &str), LedgerEntry> = BTreeMap::new();
        for ((provider, model, _), entry) in &self.entries {
            models.entry((provider, model)).or_default().add(entry);
        }
        models
            .into_iter()
            .map(|((provider, model), entry)| (provider, model, entry))
    }

    /// Accounts by provider, model and purpose, in this order.
    pub fn accounts(&self) -> impl Iterator<Item = (&str, &str, Purpose, &LedgerEntry)> {
        self.entries
            .iter()
            .map(|((provider, model, purpose), entry)| {
                (provider.as_str(), model.as_str(), *purpose, entry)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_decimal::dec;

    #[test]
    fn amounts_are_told_to_the_nearest_hundredth_of_a_cent() {
        let told = |amount| Dollars(amount).to_string();
        assert_eq!(told(dec!(0.0010875)), "$0.0011");
        assert_eq!(told(dec!(0.00005)), "$0.0001");
        assert_eq!(told(dec!(0.00004999)), "$0.0000");
        assert_eq!(told(dec!(-0.00004)), "$0.0000");
        assert_eq!(told(dec!(-1.23456)), "-$1.2346");
        assert_eq!(told(dec!(12)), "$12.0000");
    }

    #[test]
    fn sums_are_exact_and_unknown_models_are_reported_once() {
        let mut ledger = CostLedger::new(Arc::new(RateCard::builtin().clone()));
        let usage = Usage {
            input: 1,
            output: 1,
            ..Usage::default()
        };
        for _ in 0..10 {
            ledger.record(Purpose::MainLoop, "anthropic", "claude-sonnet-4-6", usage);
        }
        assert_eq!(ledger.total(), dec!(0.00018));
        let mut ask = |purpose| ledger.record(purpose, "anthropic", "claude-nobody", usage);
        assert_eq!(ask(Purpose::MainLoop), Price::UnknownFirst);
        assert_eq!(ask(Purpose::SubAgent), Price::UnknownAgain);
        assert_eq!(ledger.total(), dec!(0.00018));
        assert_eq!(ledger.usage().input, 12);
        assert_eq!(ledger.entries().count(), 2);
        assert_eq!(ledger.accounts().count(), 3);
    }
}
