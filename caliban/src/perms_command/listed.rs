//! The rules of a scope as they are written, and whether they count.

use caliban_harness::Configuration;
use caliban_permissions::{Origin, Rule, RuleBook, RuleError};
use caliban_settings::{IgnoredBecause, RuleAction, RuleSpec, Scope};
use serde_json::{Value, json};

use crate::args::RuleScope;
use crate::exit::Failure;

/// A rule, where it is from, and why it does not count if it does not.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) spec: RuleSpec,
    origin: Origin,
    ignored: Option<IgnoredBecause>,
}

impl Listed {
    /// What counts, in the order it is tried.
    pub(super) fn effective(book: &RuleBook) -> Vec<Self> {
        let rules = book.rules().iter();
        rules
            .map(|rule| Self {
                spec: rule.spec(),
                origin: rule.origin,
                ignored: None,
            })
            .collect()
    }

    /// All rules of a scope; those of the command line are its flags, then `--settings`.
    pub(super) fn of_scope(
        scope: RuleScope,
        flags: &[RuleSpec],
        configuration: &Configuration,
    ) -> Vec<Self> {
        let flags = match scope {
            RuleScope::Cli => flags,
            RuleScope::Managed | RuleScope::User | RuleScope::Project | RuleScope::Local => &[],
        };
        let flags = flags.iter().map(|spec| Self {
            spec: spec.clone(),
            origin: Origin::Flag,
            ignored: None,
        });
        let scope = scope.settings();
        let written = configuration.loaded.written_rules(scope).iter();
        flags
            .chain(written.map(|rule| Self {
                spec: rule.spec.clone(),
                origin: Origin::of(scope),
                ignored: rule.ignored,
            }))
            .collect()
    }

    pub(super) fn rule(&self) -> Result<Rule, RuleError> {
        Rule::new(self.spec.clone(), self.origin)
    }

    pub(super) fn line(&self, number: usize) -> String {
        let RuleSpec {
            action, pattern, ..
        } = &self.spec;
        let remarks = remarks(&self.spec);
        let ignored = match self.why_ignored() {
            Some(why) => format!("  (does not count: {why})"),
            None => String::new(),
        };
        format!("{number} {action} {pattern}{remarks}{ignored}\n")
    }

    pub(super) fn json(&self) -> Value {
        let mut value = json!(self.spec);
        value["scope"] = json!(self.origin.as_str());
        if let Some(why) = self.why_ignored() {
            value["ignored"] = json!(why);
        }
        value
    }

    fn why_ignored(&self) -> Option<&'static str> {
        Some(match self.ignored? {
            IgnoredBecause::Untrusted => "the workspace is not trusted, see `caliban trust`",
            IgnoredBecause::Scope => "not in this scope",
            IgnoredBecause::Locked => "the managed settings lock it",
        })
    }
}

/// What stands beside the pattern of a rule.
pub(super) fn remarks(rule: &RuleSpec) -> String {
    let comment = rule.comment.iter().map(|text| format!("  # {text}"));
    let reason = rule.reason.iter().map(|text| format!("  reason: {text}"));
    let expiry = rule
        .expires_at
        .iter()
        .map(|time| format!("  expires {time}"));
    reason.chain(expiry).chain(comment).collect()
}

/// Rules as a settings file of their own.
pub(super) fn toml_of(rules: &[Listed]) -> Result<String, Failure> {
    let specs: Vec<&RuleSpec> = rules.iter().map(|rule| &rule.spec).collect();
    let document = json!({"permissions": {"rules": specs}});
    toml::to_string(&document).map_err(|error| Failure::Runtime(error.to_string()))
}

/// Rules as the three lists that other programs know.
pub(super) fn buckets_of(rules: &[Listed]) -> Value {
    let bucket = |action: RuleAction| -> Vec<&str> {
        let specs = rules.iter().map(|rule| &rule.spec);
        specs
            .filter(|spec| spec.action == action)
            .map(|spec| spec.pattern.as_str())
            .collect()
    };
    json!({"permissions": {
        "allow": bucket(RuleAction::Allow),
        "ask": bucket(RuleAction::Ask),
        "deny": bucket(RuleAction::Deny),
    }})
}

impl RuleScope {
    pub(super) fn settings(self) -> Scope {
        match self {
            Self::Managed => Scope::Managed,
            Self::User => Scope::User,
            Self::Project => Scope::Project,
            Self::Local => Scope::Local,
            Self::Cli => Scope::Cli,
        }
    }

    /// Whether a rule is one of its own.
    pub(super) fn has(self, rule: &Rule) -> bool {
        self.origins().contains(&rule.origin)
    }

    /// Who writes its rules.
    pub(super) fn origins(self) -> &'static [Origin] {
        match self {
            Self::Managed => &[Origin::Managed],
            Self::User => &[Origin::User],
            Self::Project => &[Origin::Project],
            Self::Local => &[Origin::Local],
            Self::Cli => &[Origin::Flag, Origin::Overlay],
        }
    }
}
