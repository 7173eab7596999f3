//! One rule: what it is about, what it decides, and who wrote it.

use caliban_settings::{RuleAction, RuleSpec};
use jiff::Timestamp;

use crate::origin::Origin;
use crate::pattern::{Pattern, PatternError, ToolName};

/// A rule that can match.
#[derive(Debug, Clone)]
pub struct Rule {
    pub pattern: Pattern,
    pub action: RuleAction,
    pub origin: Origin,
    pub comment: Option<String>,
    pub reason: Option<String>,
    pub expires_at: Option<Timestamp>,
    /// The file it is written in, with the key where it is no rule of a scope.
    pub written: Option<String>,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{action} rule `{pattern}` ({origin}): {error}")]
pub struct RuleError {
    pub pattern: String,
    pub action: RuleAction,
    pub origin: Origin,
    pub error: PatternError,
}

impl Rule {
    pub fn new(spec: RuleSpec, origin: Origin) -> Result<Self, RuleError> {
        let pattern = Pattern::parse(&spec.pattern).map_err(|error| RuleError {
            pattern: spec.pattern,
            action: spec.action,
            origin,
            error,
        })?;
        Ok(Self {
            pattern,
            action: spec.action,
            origin,
            comment: spec.comment,
            reason: spec.reason,
            expires_at: spec.expires_at,
            written: None,
        })
    }

    /// Why it decides nothing, if there is nothing that it could be about.
    pub fn never_matches(&self) -> Option<RuleError> {
        self.pattern.never().map(|error| RuleError {
            pattern: self.pattern.text().to_owned(),
            action: self.action,
            origin: self.origin,
            error: error.clone(),
        })
    }

    /// As it is written in a settings file.
    pub fn spec(&self) -> RuleSpec {
        RuleSpec {
            pattern: self.pattern.text().to_owned(),
            action: self.action,
            comment: self.comment.clone(),
            reason: self.reason.clone(),
            expires_at: self.expires_at,
        }
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Whether it is about this tool at all.
    pub fn is_about(&self, tool: &str) -> bool {
        self.pattern.tool().matches(tool)
    }

    /// Whether it names exactly this tool or tools like it, not every tool.
    pub fn names_tools(&self) -> bool {
        !matches!(self.pattern.tool(), ToolName::Every)
    }
}
