//! What a session spends, as it is written down: one record for each answer, and for the rest what
//! the books say beyond that.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use caliban_agent::Event;
use caliban_model::{CostLedger, LedgerEntry, Message, Purpose, Usage};
use caliban_sessions::{Record, Work};
use caliban_settings::calendar::today;
use rust_decimal::Decimal;

/// Sub-agents of a prompt whose kind is remembered.
const MOST_AGENTS: usize = 1_024;
/// Characters of a sub-agent's kind.
const KIND: usize = 64;
/// The kind of sub-agents that nothing else is said of.
const GENERAL: &str = "general-purpose";

/// Whose calls an account is of: provider, model and purpose.
type Key = (String, String, Purpose);

/// The books of this process, and what of them is written down.
#[derive(Debug)]
pub(crate) struct Spending {
    ledger: Arc<Mutex<CostLedger>>,
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    written: BTreeMap<Key, LedgerEntry>,
    /// The kinds of sub-agents, by the calls that run them.
    agents: HashMap<Arc<str>, String>,
    /// Since when a prompt is worked on that is not written down yet.
    since: Option<Instant>,
    denials: u64,
}

/// Whether a prompt is still worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Going {
    On,
    Over,
}

impl Spending {
    pub(crate) fn new(ledger: Arc<Mutex<CostLedger>>) -> Self {
        Self {
            ledger,
            tally: Mutex::default(),
        }
    }

    /// Counts what an event tells beside costs.
    pub(crate) fn count(&self, event: &Event) {
        let (event, _) = event.innermost();
        match event {
            Event::PromptAccepted { .. } | Event::TurnStarted { .. } => {
                lock(&self.tally).since.get_or_insert_with(Instant::now);
            }
            Event::ToolFinished {
                denial: Some(_), ..
            } => lock(&self.tally).denials += 1,
            Event::ToolReady {
                id, name, input, ..
            } if &**name == "AgentTool" => {
                let kind = input.get("subagent_type").and_then(|kind| kind.as_str());
                let kind = kind.unwrap_or(GENERAL).chars().take(KIND).collect();
                let agents = &mut lock(&self.tally).agents;
                if agents.len() < MOST_AGENTS {
                    agents.insert(Arc::clone(id), kind);
                }
            }
            Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::ToolReady { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::ToolStarted { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::ToolFinished { .. }
            | Event::AssistantMessage { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::Retrying(_)
            | Event::Warning(_)
            | Event::Notice { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. }
            | Event::Nested { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// The record of an answer to the session's own agent, or to the one that a call runs.
    pub(crate) fn answer(
        &self,
        message: &Message,
        usage: Usage,
        cost: Option<Decimal>,
        parent: Option<&Arc<str>>,
    ) -> Record {
        let (provider, model) = message
            .origin
            .as_ref()
            .map_or_else(Default::default, |origin| {
                (origin.provider.to_string(), origin.model.to_string())
            });
        let saved = {
            let ledger = lock(&self.ledger);
            let rate = ledger.card().lookup(&provider, &model);
            rate.and_then(|rate| rate.saved(&usage))
        };
        let (purpose, agent) = match parent {
            None => (Purpose::MainLoop, None),
            Some(parent) => {
                let known = lock(&self.tally).agents.get(parent).cloned();
                let kind = known.unwrap_or_else(|| GENERAL.to_owned());
                (Purpose::SubAgent, Some(kind))
            }
        };
        let entry = LedgerEntry {
            usage,
            calls: 1,
            cost,
            saved,
        };
        self.written((provider, model, purpose), agent, &entry)
    }

    /// Records of what was spent without an answer of its own: summaries, judgements, questions
    /// aside, attempts that failed.
    pub(crate) fn rest(&self) -> Vec<Record> {
        let mut rest = Vec::new();
        {
            let (ledger, tally) = (lock(&self.ledger), lock(&self.tally));
            for (provider, model, purpose, entry) in ledger.accounts() {
                let key = (provider.to_owned(), model.to_owned(), purpose);
                let beyond = match tally.written.get(&key) {
                    Some(written) => beyond(entry, written),
                    None => entry.clone(),
                };
                let has_cost = beyond.cost.is_some_and(|cost| !cost.is_zero());
                if beyond.usage != Usage::default() || has_cost {
                    rest.push((key, beyond));
                }
            }
        }
        rest.into_iter()
            .map(|(key, entry)| self.written(key, None, &entry))
            .collect()
    }

    /// The record of how long was worked and what was denied since the last one.
    pub(crate) fn work(&self, going: Going) -> Option<Record> {
        let mut tally = lock(&self.tally);
        let active = tally.since.take().map(|since| since.elapsed());
        match going {
            Going::On => tally.since = active.map(|_| Instant::now()),
            Going::Over => tally.agents.clear(),
        }
        let work = Work {
            active_ms: millis(active.unwrap_or_default()),
            denials: std::mem::take(&mut tally.denials),
        };
        let day = today();
        (!work.is_nothing()).then_some(Record::Work { day, work })
    }

    fn written(&self, key: Key, agent: Option<String>, entry: &LedgerEntry) -> Record {
        let (provider, model, purpose) = key.clone();
        let mut tally = lock(&self.tally);
        tally.written.entry(key).or_default().add(entry);
        Record::Usage {
            provider,
            model,
            usage: entry.usage,
            cost: entry.cost,
            purpose,
            agent,
            saved: entry.saved,
            calls: entry.calls,
            day: Some(today()),
        }
    }
}

/// What `whole` has beyond `part`.
fn beyond(whole: &LedgerEntry, part: &LedgerEntry) -> LedgerEntry {
    let cost = whole
        .cost
        .map(|cost| (cost - part.cost.unwrap_or_default()).max(Decimal::ZERO));
    LedgerEntry {
        usage: whole.usage.beyond(&part.usage),
        calls: whole.calls.saturating_sub(part.calls),
        cost,
        saved: whole
            .saved
            .map(|saved| saved - part.saved.unwrap_or_default()),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
