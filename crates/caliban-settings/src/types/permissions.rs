//! Permission rules and modes as they are written.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounded;

/// The `permissions` table. A key it does not know is an error: a typing error must not weaken a
/// policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Patterns that run without asking.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Patterns that are asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Patterns that never run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Ordered rules, first match wins. Where a scope has any, its three lists above do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
    /// Refuse to run without permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce: Option<bool>,
    /// The permission mode a session starts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<PermissionMode>,
    /// Keep a log of every decision; on unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_log: Option<bool>,
}

impl Permissions {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether decisions are logged.
    pub fn audits(&self) -> bool {
        self.audit_log.unwrap_or(true)
    }

    /// The rules of one scope in the order they are tried: the ordered ones, or the three lists
    /// with the strictest first. Not for merged settings, where one scope's ordered rules would
    /// silence another's lists.
    pub(crate) fn ordered(&self) -> Vec<RuleSpec> {
        if !self.rules.is_empty() {
            return self.rules.clone();
        }
        [
            (&self.deny, RuleAction::Deny),
            (&self.ask, RuleAction::Ask),
            (&self.allow, RuleAction::Allow),
        ]
        .into_iter()
        .flat_map(|(patterns, action)| {
            patterns
                .iter()
                .map(move |pattern| RuleSpec::new(pattern, action))
        })
        .collect()
    }
}

/// One rule of the ordered list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// `Tool` or `Tool:argument`, with globs.
    #[serde(deserialize_with = "bounded::non_empty")]
    pub pattern: String,
    pub action: RuleAction,
    /// A note for whoever reads the rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Why the call is denied, told to the model and logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the rule stops counting, with a time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub expires_at: Option<Timestamp>,
}

/// What a rule decides. The order of declaration is the order of severity.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    Allow,
    Ask,
    Deny,
}

impl RuleSpec {
    pub fn new(pattern: impl Into<String>, action: RuleAction) -> Self {
        Self {
            pattern: pattern.into(),
            action,
            comment: None,
            reason: None,
            expires_at: None,
        }
    }
}

impl RuleAction {
    /// The order in which the older lists apply: whatever forbids comes first.
    pub(crate) const STRICTEST_FIRST: [Self; 3] = [Self::Deny, Self::Ask, Self::Allow];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What happens to a call that would be asked about. The order of declaration is from strict to
/// loose.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    Plan,
    Default,
    AcceptEdits,
    Auto,
    DontAsk,
    BypassPermissions,
}

impl PermissionMode {
    /// In the order in which a person switches through them.
    pub const ALL: [Self; 6] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::Auto,
        Self::DontAsk,
        Self::BypassPermissions,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Auto => "auto",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

impl FromStr for PermissionMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| {
                let modes = Self::ALL.map(Self::as_str).join(", ");
                format!("unknown permission mode `{text}`; use one of {modes}")
            })
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn ordered_rules_replace_the_lists_of_their_scope() {
        let lists: Permissions =
            from_value(json!({"allow": ["A"], "ask": ["B"], "deny": ["C"]})).unwrap();
        let order: Vec<_> = lists
            .ordered()
            .into_iter()
            .map(|rule| rule.pattern)
            .collect();
        assert_eq!(order, ["C", "B", "A"]);
        let both: Permissions =
            from_value(json!({"deny": ["C"], "rules": [{"pattern": "D", "action": "allow"}]}))
                .unwrap();
        assert_eq!(both.ordered().len(), 1);
        assert_eq!(both.ordered()[0].pattern, "D");
    }

    #[test]
    fn an_expiry_needs_a_time_zone() {
        let rule = |when: &str| {
            from_value::<RuleSpec>(json!({"pattern": "B", "action": "ask", "expires_at": when}))
        };
        assert!(rule("2027-01-01T00:00:00Z").is_ok());
        assert!(rule("2027-01-01T00:00:00+02:00").is_ok());
        for wrong in ["2027-01-01T00:00:00", "2027-01-01", "soon"] {
            assert!(rule(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn modes_are_ordered_from_strict_to_loose() {
        let names = [
            "plan",
            "default",
            "acceptEdits",
            "auto",
            "dontAsk",
            "bypassPermissions",
        ];
        let modes: Vec<PermissionMode> = from_value(json!(names)).unwrap();
        assert!(modes.is_sorted());
        assert!(from_value::<PermissionMode>(json!("yolo")).is_err());
    }
}
