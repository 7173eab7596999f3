//! What must hold for a run to go on: its turns and its money.

use caliban_model::Usage;

use crate::outcome::Outcome;
use crate::run::Run;

impl Run<'_> {
    /// What must hold before another turn begins.
    pub(crate) fn check_limits(&self) -> Result<(), Outcome> {
        if self.cancel.is_cancelled() {
            return Err(Outcome::Cancelled);
        }
        if !self.has_turns() {
            let limit = self.agent.settings.limits.max_turns;
            return Err(Outcome::MaxTurns { limit });
        }
        self.check_budget()?;
        self.check_next_cost()
    }

    /// Whether the model may be asked again.
    pub(crate) fn has_turns(&self) -> bool {
        self.turns < self.agent.settings.limits.max_turns
    }

    pub(crate) fn check_budget(&self) -> Result<(), Outcome> {
        let Some(budget) = self.agent.settings.limits.budget else {
            return Ok(());
        };
        let spent = self.agent.ledger().total();
        if spent > budget {
            return Err(Outcome::BudgetExceeded {
                message: format!(
                    "spent ${spent} of a budget of ${budget}; raise `--max-budget-usd` to go on"
                ),
            });
        }
        Ok(())
    }

    /// A turn whose input alone would overspend is not sent.
    fn check_next_cost(&self) -> Result<(), Outcome> {
        let settings = &self.agent.settings;
        let Some(budget) = settings.limits.budget else {
            return Ok(());
        };
        let ledger = self.agent.ledger();
        let Some(rate) = ledger
            .card()
            .lookup(self.agent.provider.id(), &settings.model)
        else {
            return Ok(());
        };
        // What the provider has seen before is likely cached; it is never dearer than that.
        let cached = self.conversation.seen_tokens();
        let next = rate.cost(&Usage {
            input: self.tokens().saturating_sub(cached),
            cache_read: cached,
            ..Usage::default()
        });
        let spent = ledger.total();
        if spent + next > budget {
            return Err(Outcome::BudgetExceeded {
                message: format!(
                    "spent ${spent} of a budget of ${budget}; the next turn's input alone would cost about ${}; raise `--max-budget-usd` to go on",
                    next.round_dp(6)
                ),
            });
        }
        Ok(())
    }
}
