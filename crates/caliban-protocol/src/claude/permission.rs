//! The answer to the question whether a call may run, and the rules it may bring along.

use serde::Deserialize;
use serde_json::{Value, json};

use super::names::{ours, theirs};

/// What a client says about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionAnswer {
    Allow {
        input: Option<Value>,
        updates: Vec<PermissionUpdate>,
    },
    Deny {
        message: String,
        interrupt: bool,
    },
    /// It said something else.
    Wrong {
        reason: String,
    },
}

/// Which of the options of a question a client chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    Allow,
    /// Calls like it run unasked for the rest of the session.
    AllowForSession,
    Deny,
    /// There is no such option.
    Unknown(String),
}

/// The ids of the options, with what a person reads.
const OPTIONS: [(&str, &str); 3] = [
    ("allow", "Allow this call"),
    ("allow-session", "Allow calls like this one for the session"),
    ("deny", "Do not allow it"),
];

impl Choice {
    /// The option with this id.
    pub fn read(id: &str) -> Self {
        match id {
            "allow" => Self::Allow,
            "allow-session" => Self::AllowForSession,
            "deny" => Self::Deny,
            other => Self::Unknown(other.to_owned()),
        }
    }
}

/// A question about a call as a frame of its own, for clients that do not speak the control
/// protocol. Its answer names `question` and an option.
pub fn permission_request(question: &str, tool: &str, input: &Value, tool_use_id: &str) -> Value {
    let options: Vec<Value> = OPTIONS
        .iter()
        .map(|(id, label)| json!({"id": id, "label": label}))
        .collect();
    json!({
        "type": "permission_request",
        "question_id": question,
        "tool_name": tool,
        "tool_input": input,
        "tool_use_id": tool_use_id,
        "options": options,
    })
}

/// A change of the rules that comes with an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    AddRules {
        rules: Vec<RuleRef>,
        behavior: Behavior,
        #[serde(default)]
        destination: Destination,
    },
    ReplaceRules {
        rules: Vec<RuleRef>,
        behavior: Behavior,
        #[serde(default)]
        destination: Destination,
    },
    RemoveRules {
        rules: Vec<RuleRef>,
        behavior: Behavior,
        #[serde(default)]
        destination: Destination,
    },
    SetMode {
        mode: String,
        #[serde(default)]
        destination: Destination,
    },
    AddDirectories {
        directories: Vec<String>,
        #[serde(default)]
        destination: Destination,
    },
    RemoveDirectories {
        directories: Vec<String>,
        #[serde(default)]
        destination: Destination,
    },
}

impl PermissionUpdate {
    pub fn destination(&self) -> Destination {
        match self {
            Self::AddRules { destination, .. }
            | Self::ReplaceRules { destination, .. }
            | Self::RemoveRules { destination, .. }
            | Self::SetMode { destination, .. }
            | Self::AddDirectories { destination, .. }
            | Self::RemoveDirectories { destination, .. } => *destination,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behavior {
    Allow,
    Deny,
    Ask,
}

/// Where a change is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Destination {
    #[default]
    Session,
    LocalSettings,
    ProjectSettings,
    UserSettings,
    CliArg,
}

/// A rule as this dialect takes it apart.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleRef {
    pub tool_name: String,
    #[serde(default)]
    pub rule_content: Option<String>,
}

impl RuleRef {
    /// The rule as we write it.
    pub fn pattern(&self) -> String {
        let tool = ours(&self.tool_name);
        match self.rule_content.as_deref() {
            None | Some("") => tool.to_owned(),
            Some(content) => format!("{tool}({content})"),
        }
    }

    /// The rule as this dialect writes it.
    pub fn text(&self) -> String {
        match self.rule_content.as_deref() {
            None | Some("") => self.tool_name.clone(),
            Some(content) => format!("{}({content})", self.tool_name),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
enum WrittenAnswer {
    #[serde(rename_all = "camelCase")]
    Allow {
        #[serde(default)]
        updated_input: Option<Value>,
        #[serde(default)]
        updated_permissions: Option<Vec<Value>>,
    },
    Deny {
        #[serde(default)]
        message: String,
        #[serde(default)]
        interrupt: Option<bool>,
    },
}

impl PermissionAnswer {
    /// Reads an answer. Updates that make no sense are left out: they only loosen.
    pub fn read(answer: Value) -> Self {
        match serde_json::from_value(answer) {
            Ok(WrittenAnswer::Allow {
                updated_input,
                updated_permissions,
            }) => {
                let updates = updated_permissions.unwrap_or_default().into_iter();
                Self::Allow {
                    input: updated_input.filter(Value::is_object),
                    updates: updates
                        .filter_map(|update| serde_json::from_value(update).ok())
                        .collect(),
                }
            }
            Ok(WrittenAnswer::Deny { message, interrupt }) => Self::Deny {
                message,
                interrupt: interrupt == Some(true),
            },
            Err(error) => Self::Wrong {
                reason: error.to_string(),
            },
        }
    }
}

/// Rules that a client may send back to allow calls like this one.
pub fn suggestions(patterns: &[String]) -> Vec<Value> {
    patterns
        .iter()
        .map(|pattern| {
            let (tool, content) = split(pattern);
            let mut rule = json!({"toolName": theirs(tool)});
            if let Some(content) = content {
                rule["ruleContent"] = content.into();
            }
            json!({
                "type": "addRules",
                "rules": [rule],
                "behavior": "allow",
                "destination": "localSettings",
            })
        })
        .collect()
}

/// A rule of ours as this dialect writes it.
pub fn pattern_theirs(pattern: &str) -> String {
    match split(pattern) {
        (tool, None) => theirs(tool).to_owned(),
        (tool, Some(content)) => format!("{}({content})", theirs(tool)),
    }
}

/// A tool, and what a rule says about its calls.
fn split(pattern: &str) -> (&str, Option<&str>) {
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '*');
    let end = pattern
        .find(|letter| !is_name(letter))
        .unwrap_or(pattern.len());
    let (tool, rest) = pattern.split_at(end);
    let content = rest
        .strip_prefix(':')
        .or_else(|| rest.strip_prefix('(')?.strip_suffix(')'));
    (tool, content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_are_read() {
        let allow = PermissionAnswer::read(json!({
            "behavior": "allow",
            "updatedInput": {"command": "ls"},
            "updatedPermissions": [
                {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "ls:*"}], "behavior": "allow", "destination": "session"},
                {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
                {"type": "nonsense"},
            ],
        }));
        let PermissionAnswer::Allow { input, updates } = allow else {
            panic!("{allow:?}");
        };
        assert_eq!(input, Some(json!({"command": "ls"})));
        assert_eq!(updates.len(), 2);
        let PermissionUpdate::AddRules { rules, .. } = &updates[0] else {
            panic!("{updates:?}");
        };
        assert_eq!(rules[0].pattern(), "Bash(ls:*)");
        assert_eq!(
            PermissionAnswer::read(json!({"behavior": "deny", "message": "no", "interrupt": true})),
            PermissionAnswer::Deny {
                message: "no".to_owned(),
                interrupt: true
            }
        );
        for wrong in [json!({}), json!(null), json!({"behavior": "maybe"})] {
            assert!(matches!(
                PermissionAnswer::read(wrong),
                PermissionAnswer::Wrong { .. }
            ));
        }
    }

    #[test]
    fn suggestions_come_back_as_rules() {
        let suggested = suggestions(&["Bash:touch a.txt".to_owned(), "AgentTool".to_owned()]);
        assert_eq!(
            suggested[0]["rules"][0],
            json!({"toolName": "Bash", "ruleContent": "touch a.txt"})
        );
        assert_eq!(suggested[1]["rules"][0], json!({"toolName": "Task"}));
        assert_eq!(pattern_theirs("Bash:touch a.txt"), "Bash(touch a.txt)");
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(behavior in ".{0,8}", key in "[a-zA-Z]{0,16}", value in ".{0,9}") {
            PermissionAnswer::read(json!({"behavior": behavior, key: value}));
        }
    }
}
