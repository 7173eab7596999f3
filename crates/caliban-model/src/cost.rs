//! What a run has spent, per provider and model.

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_decimal::Decimal;

use crate::{RateCard, Usage};

/// Sums usage and cost over every call of a run: retries, sub-agents and compaction included.
#[derive(Debug, Clone)]
pub struct CostLedger {
    card: Arc<RateCard>,
    entries: BTreeMap<(String, String), LedgerEntry>,
}

/// The account of one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LedgerEntry {
    pub usage: Usage,
    pub calls: u64,
    /// Nothing if the model's price is not known.
    pub cost: Option<Decimal>,
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
    pub fn record(&mut self, provider: &str, model: &str, usage: Usage) -> Price {
        let price = self
            .card
            .lookup(provider, model)
            .map(|rate| rate.cost(&usage));
        let entry = self
            .entries
            .entry((provider.to_owned(), model.to_owned()))
            .or_default();
        let first = entry.calls == 0;
        entry.usage += usage;
        entry.calls += 1;
        match price {
            Some(cost) => {
                entry.cost = Some(entry.cost.unwrap_or_default() + cost);
                Price::Known(cost)
            }
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
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str, &LedgerEntry)> {
        self.entries
            .iter()
            .map(|((provider, model), entry)| (provider.as_str(), model.as_str(), entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_decimal::dec;

    #[test]
    fn sums_are_exact_and_unknown_models_are_reported_once() {
        let mut ledger = CostLedger::new(Arc::new(RateCard::builtin().clone()));
        let usage = Usage {
            input: 1,
            output: 1,
            ..Usage::default()
        };
        for _ in 0..10 {
            ledger.record("anthropic", "claude-sonnet-4-6", usage);
        }
        assert_eq!(ledger.total(), dec!(0.00018));
        assert_eq!(
            ledger.record("anthropic", "claude-nobody", usage),
            Price::UnknownFirst
        );
        assert_eq!(
            ledger.record("anthropic", "claude-nobody", usage),
            Price::UnknownAgain
        );
        assert_eq!(ledger.total(), dec!(0.00018));
        assert_eq!(ledger.usage().input, 12);
        assert_eq!(ledger.entries().count(), 2);
    }
}
