//! How often each handler fired, and what came of it last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_settings::Scope;
use serde::Serialize;

use crate::config::Configured;
use crate::firing::{Decision, Firing, Phase};

/// Handlers that are counted; those of settings that change for ever are not.
const MOST: usize = 1_000;

/// A handler that is configured, with what came of it so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandlerReport {
    pub event: &'static str,
    pub scope: Scope,
    pub matcher: String,
    /// `command`, `http`, `mcp`, `prompt` or `agent`.
    pub kind: &'static str,
    /// Which handler it is, in words that hold no secret of its URL.
    pub handler: String,
    /// Whether somebody waits for it.
    pub is_async: bool,
    pub runs: u64,
    pub last: Option<LastRun>,
}

/// What came of a handler the last time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastRun {
    pub decision: &'static str,
    /// Why, or what went wrong.
    pub reason: Option<String>,
    pub duration_ms: u64,
    pub failed: bool,
}

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<Key, (u64, Option<LastRun>)>>);

type Key = (&'static str, Scope, Arc<str>, Arc<str>);

impl Tally {
    /// Counts a handler that is over, or was not run.
    pub(crate) fn count(&self, firing: &Firing) {
        let is_over = match firing.phase {
            Phase::Whole | Phase::Finished | Phase::Dropped => true,
            Phase::Started => false,
        };
        if !is_over {
            return;
        }
        let key = (
            firing.event.as_str(),
            firing.scope,
            Arc::clone(&firing.matcher),
            Arc::clone(&firing.handler),
        );
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MOST && !counts.contains_key(&key) {
            return;
        }
        let (runs, last) = counts.entry(key).or_default();
        *runs += u64::from(firing.phase != Phase::Dropped);
        *last = Some(LastRun::of(firing));
    }

    pub(crate) fn report(&self, handler: &Configured<'_>) -> HandlerReport {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Key = (
            handler.event.as_str(),
            handler.scope,
            handler.matcher.into(),
            handler.handler.into(),
        );
        let (runs, last) = counts.get(&key).cloned().unwrap_or_default();
        HandlerReport {
            event: handler.event.as_str(),
            scope: handler.scope,
            matcher: handler.matcher.to_owned(),
            kind: handler.kind,
            handler: handler.handler.to_owned(),
            is_async: handler.is_async,
            runs,
            last,
        }
    }
}

impl LastRun {
    fn of(firing: &Firing) -> Self {
        let milliseconds = |duration: Duration| u64::try_from(duration.as_millis());
        let words = firing.warning.as_ref().or(firing.reason.as_ref());
        Self {
            decision: match firing.decision {
                Decision::Approve => "approve",
                decision => decision.as_str(),
            },
            reason: words.or(firing.message.as_ref()).cloned(),
            duration_ms: milliseconds(firing.duration).unwrap_or(u64::MAX),
            failed: firing.warning.is_some(),
        }
    }
}
