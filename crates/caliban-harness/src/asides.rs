//! `/btw`: one question beside the conversation, to the model that answers small ones.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use caliban_agent::{Consultant, Event, Listener, ModelTotals, Outcome, RunTotals};
use caliban_model::{CancellationToken, Dollars, Purpose};

use crate::session::Session;

const INSTRUCTION: &str = "\
Answer a side question of somebody who is in the middle of something else: briefly and to the \
point. You know nothing of what they are working on but what the question says.";
/// The most that an answer may be.
const ANSWER_TOKENS: u32 = 1_024;
/// How long it may take.
const PATIENCE: Duration = Duration::from_mins(1);

impl Session {
    /// The question stands alone: the conversation is not sent along, and learns nothing of it.
    /// What it costs is the session's.
    pub(crate) async fn aside(
        &mut self,
        question: &str,
        told: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let outcome = match self.overspent() {
            Some(outcome) => outcome,
            None => match self.consultant().ask(INSTRUCTION, question, cancel).await {
                Ok(text) => Outcome::obeyed(text),
                Err(error) => Outcome::from(error),
            },
        };
        self.settle();
        let totals = Box::new(self.totals.clone());
        let event = Event::Finished {
            outcome: outcome.clone(),
            totals,
        };
        told.hear(event).await;
        (outcome, self.totals.clone())
    }

    fn consultant(&self) -> Consultant {
        let settings = &self.agent.settings;
        let model = match (&settings.overrides.classifier, &self.agent.dial) {
            (Some(model), _) => Arc::clone(model),
            (None, Some(dial)) => dial.read().model,
            (None, None) => Arc::clone(&settings.model),
        };
        Consultant {
            provider: Arc::clone(&self.agent.provider),
            model,
            purpose: Purpose::FastClassifier,
            ledger: Arc::clone(&self.agent.ledger),
            max_tokens: ANSWER_TOKENS,
            deadline: PATIENCE,
        }
    }

    fn overspent(&self) -> Option<Outcome> {
        let budget = self.agent.settings.limits.budget?;
        let ledger = self.agent.ledger.lock();
        let spent = ledger.unwrap_or_else(PoisonError::into_inner).total();
        (spent >= budget).then(|| Outcome::BudgetExceeded {
            message: format!("{} of ${budget} are spent", Dollars(spent)),
        })
    }

    /// Takes over what the books of the session say.
    fn settle(&mut self) {
        let ledger = self.agent.ledger.lock();
        let ledger = ledger.unwrap_or_else(PoisonError::into_inner);
        self.totals.usage = ledger.usage();
        self.totals.cost = ledger.total();
        let models = ledger
            .entries()
            .map(|(provider, model, entry)| ModelTotals {
                provider: provider.to_owned(),
                model: model.to_owned(),
                usage: entry.usage,
                cost: entry.cost,
            });
        self.totals.models = models.collect();
    }
}
