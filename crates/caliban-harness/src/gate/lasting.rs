//! Rules that come and go while a session lasts: those of the operator, those that are lent, and those of
//! settings that change.

use std::sync::Arc;

use caliban_agent::ToolCall;
use caliban_permissions::{Decision, Judge, Origin, Rule, RuleBook, RuleError};
use caliban_settings::{RuleAction, RuleSpec};
use jiff::Timestamp;

use super::{Gate, lock, rule};
use crate::background::Rights;

impl Gate {
    /// Decides like this for the rest of the session; a pattern that is none is an error.
    pub(crate) fn remember(&self, pattern: &str, action: RuleAction) -> Result<(), RuleError> {
        let rule = Rule::new(RuleSpec::new(pattern, action), Origin::Runtime)?;
        let judge = self.judge.load().with_first(rule.clone());
        self.judge.store(Arc::new(judge));
        lock(&self.remembered).push(rule);
        Ok(())
    }

    /// What an agent may do at most that goes on without this session.
    pub(crate) fn rights(&self) -> Rights {
        let remembered = lock(&self.remembered);
        let narrowing = remembered.iter().rev().filter(|rule| match rule.action {
            RuleAction::Deny | RuleAction::Ask => true,
            RuleAction::Allow => false,
        });
        Rights {
            regime: self.regime(),
            rules: narrowing.map(Rule::spec).collect(),
        }
    }

    /// Takes back what was to be decided like this: one rule, or all with this action.
    pub(crate) fn forget(&self, pattern: Option<&str>, action: RuleAction) {
        let is_meant = |rule: &Rule| {
            rule.origin == Origin::Runtime
                && rule.action == action
                && pattern.is_none_or(|pattern| rule.pattern.text() == pattern)
        };
        lock(&self.remembered).retain(|rule| !is_meant(rule));
        let judge = Judge::clone(&self.judge.load());
        let book = judge.book.without(is_meant);
        self.judge.store(Arc::new(Judge { book, ..judge }));
    }

    /// Until this is called again, calls that match need no consent, unless a rule of somebody's
    /// asks for it. What is no pattern lends nothing.
    pub(crate) fn lend(&self, patterns: &[String]) {
        let rules: Vec<Rule> = patterns
            .iter()
            .map(|pattern| RuleSpec::new(pattern, RuleAction::Allow))
            .filter_map(|spec| Rule::new(spec, Origin::Runtime).ok())
            .collect();
        let book = (!rules.is_empty()).then(|| Arc::new(RuleBook::of(rules)));
        self.lent.store(book);
    }

    pub(super) fn is_lent(&self, call: &ToolCall, judge: &Judge, decision: &Decision) -> bool {
        let Some(book) = &*self.lent.load() else {
            return false;
        };
        let judge_of_lent = Judge {
            book: RuleBook::clone(book),
            ..judge.clone()
        };
        let lent = || judge_of_lent.decide(&call.name, &call.input, Timestamp::now());
        rule(judge, decision).origin == Origin::BuiltIn && lent().action == RuleAction::Allow
    }

    /// Judges by other rules from now on; what the operator decided stays.
    pub(crate) fn replace_rules(&self, book: RuleBook) {
        let judge = Judge {
            book,
            ..Judge::clone(&self.judge.load())
        };
        let judge = lock(&self.remembered)
            .iter()
            .fold(judge, |judge, rule| judge.with_first(rule.clone()));
        self.judge.store(Arc::new(judge));
    }
}
