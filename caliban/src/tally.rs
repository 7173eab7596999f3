//! What a run has come to so far, for those who cannot wait until it is told.

use std::time::Instant;

use caliban_agent::{Event, RunTotals};
use caliban_session::What;

/// Adds up what is heard. At the end of an exchange its own totals count.
#[derive(Debug)]
pub(crate) struct Tally {
    totals: RunTotals,
    began: Instant,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            totals: RunTotals::default(),
            began: Instant::now(),
        }
    }

    pub(crate) fn note(&mut self, what: &What) {
        match what {
            What::Run(event) => self.add(event),
            What::Ended { totals, .. } => self.totals.clone_from(totals),
            What::Opened(_)
            | What::Queued { .. }
            | What::Began { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::Refused(_)
            | What::Asked(_)
            | What::Answered(_)
            | What::ModeChanged { .. }
            | What::ModelChanged { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing
            | What::Closed { .. } => {}
        }
    }

    /// The sums at this moment.
    pub(crate) fn now(&self) -> RunTotals {
        RunTotals {
            duration: self.began.elapsed(),
            ..self.totals.clone()
        }
    }

    fn add(&mut self, event: &Event) {
        let totals = &mut self.totals;
        match event.innermost() {
            (
                Event::AssistantMessage {
                    message,
                    usage,
                    cost,
                },
                agent,
            ) => {
                totals.usage += *usage;
                totals.cost += cost.unwrap_or_default();
                if agent.is_none() {
                    totals.turns += 1;
                    let text = message.text();
                    totals.last_text = (!text.trim().is_empty())
                        .then_some(text)
                        .or(totals.last_text.take());
                }
            }
            (
                Event::ToolFinished {
                    id, name, denial, ..
                },
                None,
            ) => {
                totals.tool_calls += 1;
                let denial = denial.clone();
                let denied = denial.map(|denial| (id.clone(), name.clone(), denial));
                totals.denials.extend(denied);
            }
            _ => {}
        }
    }
}
