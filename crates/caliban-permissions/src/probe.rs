//! One pattern asked by itself: does it match this call? For the conditions of hooks.

use caliban_settings::{RuleAction, RuleSpec};
use jiff::Timestamp;
use serde_json::Value;

use crate::evaluation::Judge;
use crate::origin::Origin;
use crate::rule::{Rule, RuleError};
use crate::rulebook::RuleBook;

/// A pattern that matches as an objection does: any command of a line, either name of a file.
#[derive(Debug)]
pub struct Probe(Judge);

impl Probe {
    /// The book that a probe's judge is made with.
    pub fn book(pattern: &str) -> Result<RuleBook, RuleError> {
        let rule = Rule::new(RuleSpec::new(pattern, RuleAction::Deny), Origin::Flag)?;
        // A condition that never holds is a mistake; the hook behind it would never run.
        match rule.never_matches() {
            Some(error) => Err(error),
            None => Ok(RuleBook::of([rule])),
        }
    }

    pub fn new(judge: Judge) -> Self {
        Self(judge)
    }

    pub fn matches(&self, tool: &str, input: &Value) -> bool {
        let decision = self.0.decide(tool, input, Timestamp::UNIX_EPOCH);
        decision.rule == 0 && decision.action == RuleAction::Deny
    }
}
