//! All rules of a run in the order they are tried.

use std::path::Path;

use caliban_settings::{LoadedSettings, RuleAction, RuleSpec, Scope};
use jiff::Timestamp;

use crate::command_index::CommandIndex;
use crate::default_rules::defaults;
use crate::origin::Origin;
use crate::pattern::About;
use crate::precedence::{Found, Precedence};
use crate::rule::{Rule, RuleError};
use crate::server_rules::server_rules;

/// The rules in order, with an index for shell commands.
#[derive(Debug, Clone, Default)]
pub struct RuleBook {
    rules: Vec<Rule>,
    precedence: Precedence,
    /// How many rules come before what is given on the command line.
    before_flags: usize,
    commands: CommandIndex,
}

/// Which rules count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defaults {
    Included,
    Left,
}

impl RuleBook {
    /// The rules given on the command line, then those of the settings, then the defaults.
    pub fn new(
        flags: impl IntoIterator<Item = RuleSpec>,
        settings: &LoadedSettings,
    ) -> Result<Self, RuleError> {
        let mut rules = server_rules(settings)?;
        let mut before_flags = rules.len();
        let mut add = |origin: Origin, file: Option<&Path>, specs: &[RuleSpec]| {
            let written = file.map(|file| format!("`{}`", file.display()));
            for spec in specs {
                rules.push(Rule {
                    written: written.clone(),
                    ..Rule::new(spec.clone(), origin)?
                });
            }
            Ok(rules.len())
        };
        let locked = settings.is_locked();
        let scopes = settings.rules();
        let managed = || scopes.iter().filter(|layer| layer.scope == Scope::Managed);
        if locked {
            for layer in managed() {
                let file = settings.only_file_of(layer.scope);
                before_flags = add(Origin::Managed, file, &layer.rules)?;
            }
        }
        let flags: Vec<RuleSpec> = flags.into_iter().collect();
        add(Origin::Flag, None, &flags)?;
        for layer in &scopes {
            if layer.scope != Scope::Managed || !locked {
                let file = settings.only_file_of(layer.scope);
                add(Origin::of(layer.scope), file, &layer.rules)?;
            }
        }
        let book = Self {
            before_flags,
            ..Self::default()
        };
        Ok(book.holding(rules.into_iter().chain(defaults())))
    }

    /// Rules in the order given, and the defaults.
    pub fn of(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self::default().holding(rules.into_iter().chain(defaults()))
    }

    /// The same book with its rules weighed in another way.
    #[must_use]
    pub fn judged(self, precedence: Precedence) -> Self {
        Self { precedence, ..self }
    }

    /// The same book with a rule before all others.
    #[must_use]
    pub fn with_first(&self, rule: Rule) -> Self {
        let mut book = self.holding([rule].into_iter().chain(self.rules.iter().cloned()));
        book.before_flags += 1;
        book
    }

    /// The same book with a rule before those of the command line, where a flag would stand.
    #[must_use]
    pub(crate) fn with_flag(&self, rule: Rule) -> Self {
        let (before, after) = self.rules.split_at(self.before_flags.min(self.rules.len()));
        let rules = before.iter().cloned().chain([rule]);
        self.holding(rules.chain(after.iter().cloned()))
    }

    /// The same book without some of its rules.
    #[must_use]
    pub fn without(&self, is_meant: impl Fn(&Rule) -> bool) -> Self {
        let kept = self.rules.iter().filter(|rule| !is_meant(rule));
        let mut book = self.holding(kept.cloned());
        let before = self.rules.iter().take(self.before_flags);
        book.before_flags = before.filter(|rule| !is_meant(rule)).count();
        book
    }

    /// The same book with more that is decided where no rule is given. What is no pattern decides
    /// nothing.
    #[must_use]
    pub fn with_defaults(&self, specs: impl IntoIterator<Item = RuleSpec>) -> Self {
        let is_default = |rule: &Rule| rule.origin == Origin::BuiltIn;
        let given = self.rules.iter().take_while(|rule| !is_default(rule));
        let more = specs
            .into_iter()
            .filter_map(|spec| Rule::new(spec, Origin::BuiltIn).ok());
        let defaults = self.rules.iter().skip_while(|rule| !is_default(rule));
        self.holding(given.cloned().chain(more).chain(defaults.cloned()))
    }

    /// A book of these rules, else like this one.
    fn holding(&self, rules: impl IntoIterator<Item = Rule>) -> Self {
        let rules: Vec<Rule> = rules.into_iter().collect();
        Self {
            commands: CommandIndex::of(&rules),
            rules,
            precedence: self.precedence,
            before_flags: self.before_flags,
        }
    }

    /// The same book with rules that count where only the defaults would answer.
    #[must_use]
    pub fn with_last(&self, rules: impl IntoIterator<Item = Rule>) -> Self {
        let own = |rule: &&Rule| rule.origin != Origin::BuiltIn;
        let own = self.rules.iter().filter(own).cloned();
        self.holding(own.chain(rules).chain(defaults()))
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The hosts that allow rules about fetching spell out.
    pub fn allowed_hosts(&self) -> Vec<String> {
        self.rules
            .iter()
            .filter(|rule| rule.action == RuleAction::Allow && rule.is_about("WebFetch"))
            .filter_map(|rule| match rule.pattern.about() {
                About::Url(patterns) => Some(patterns),
                About::Anything
                | About::Command(_)
                | About::Path(_)
                | About::Fields(_)
                | About::Never(_) => None,
            })
            .flatten()
            .filter_map(|pattern| pattern.literal_host().map(str::to_owned))
            .collect()
    }

    /// Whether whoever started this run allowed fetching as such: `--allow WebFetch`.
    pub fn flags_allow_fetching(&self) -> bool {
        self.rules.iter().any(|rule| {
            rule.origin == Origin::Flag
                && rule.action == RuleAction::Allow
                && rule.is_about("WebFetch")
                && matches!(rule.pattern.about(), About::Anything)
        })
    }

    /// The rule that matches, counts and comes first.
    pub(crate) fn find(
        &self,
        indices: &(impl Iterator<Item = usize> + Clone),
        defaults: Defaults,
        now: Timestamp,
        matches: impl Fn(&Rule) -> bool,
    ) -> Option<Found<'_>> {
        let counts = |rule: &Rule| {
            (defaults == Defaults::Included || rule.origin != Origin::BuiltIn)
                && !rule.is_expired(now)
        };
        let first = |is_asked: &dyn Fn(&Rule) -> bool| {
            indices.clone().find_map(|index| {
                let rule = self.rules.get(index)?;
                (is_asked(rule) && counts(rule) && matches(rule)).then_some((index, rule))
            })
        };
        self.precedence.decide(&first)
    }

    /// The rules that could match a command of these words, in order.
    pub(crate) fn about_command(&self, words: &[&str]) -> Vec<usize> {
        self.commands.about(words)
    }

    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.rules.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, action: RuleAction, origin: Origin) -> Rule {
        Rule::new(RuleSpec::new(pattern, action), origin).unwrap()
    }

    #[test]
    fn what_a_client_approves_counts_only_where_the_defaults_would_answer() {
        let approved = |rules: Vec<Rule>, tool: &str| {
            let client = rule("Write", RuleAction::Allow, Origin::Client);
            let book = RuleBook::of(rules).with_last([client]);
            let all = book.all();
            let found = book.find(&all, Defaults::Included, Timestamp::UNIX_EPOCH, |rule| {
                rule.is_about(tool)
            });
            found.map(|found| (found.rule.action, found.rule.origin))
        };
        let project = |action| vec![rule("Write", action, Origin::Project)];
        assert_eq!(
            approved(Vec::new(), "Write"),
            Some((RuleAction::Allow, Origin::Client))
        );
        assert_eq!(
            approved(project(RuleAction::Deny), "Write"),
            Some((RuleAction::Deny, Origin::Project))
        );
        assert_eq!(
            approved(project(RuleAction::Ask), "Write"),
            Some((RuleAction::Ask, Origin::Project))
        );
        assert_eq!(
            approved(Vec::new(), "Bash"),
            Some((RuleAction::Ask, Origin::BuiltIn))
        );
    }

    #[test]
    fn a_flag_stands_behind_what_is_stronger_than_flags() {
        let server = rule("mcp__s__*", RuleAction::Ask, Origin::Server);
        let user = rule("mcp__s__*", RuleAction::Ask, Origin::User);
        let flag = || rule("mcp__s__t", RuleAction::Allow, Origin::Flag);
        let mut book = RuleBook::of([server, user]);
        book.before_flags = 1;
        let decided = |book: &RuleBook| {
            let all = book.all();
            let found = book.find(&all, Defaults::Included, Timestamp::UNIX_EPOCH, |rule| {
                rule.is_about("mcp__s__t")
            });
            found.map(|found| found.rule.origin)
        };
        assert_eq!(decided(&book.with_flag(flag())), Some(Origin::Server));
        assert_eq!(decided(&book.with_first(flag())), Some(Origin::Flag));
        let general = book.without(|rule| rule.origin == Origin::Server);
        assert_eq!(decided(&general.with_flag(flag())), Some(Origin::Flag));
    }

    #[test]
    fn expired_rules_do_not_count() {
        let mut old = rule("Write", RuleAction::Allow, Origin::Flag);
        old.expires_at = Some(Timestamp::UNIX_EPOCH);
        let book = RuleBook::of([old]);
        let now = Timestamp::UNIX_EPOCH;
        let found = book.find(&book.all(), Defaults::Included, now, |rule| {
            rule.is_about("Write")
        });
        assert_eq!(found.unwrap().rule.origin, Origin::BuiltIn);
    }
}
