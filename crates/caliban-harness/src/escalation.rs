//! Commands that ask to run outside the sandbox. Only a person says yes to that: no rule, no mode
//! and no hook does, and never to a line that the sandbox has not made fail before.

use std::sync::Arc;

use caliban_agent::{Denial, DenialSource, ToolCall, TypedTool};
use caliban_sandbox::Sandbox;
use caliban_tools::{Bash, WITHOUT_SANDBOX};
use serde_json::Value;

/// How much of a reason is shown; it is the model's own word.
const SHOWN: usize = 500;

/// A call that asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Escalation {
    line: String,
    why: String,
    /// What the sandbox said when the line failed; nothing where it has not failed.
    failure: Option<Vec<String>>,
}

impl Escalation {
    /// What a call asks for, where it would otherwise be confined.
    pub(crate) fn of(call: &ToolCall, sandbox: Option<&Arc<Sandbox>>) -> Option<Self> {
        let sandbox = sandbox?;
        if &*call.name != Bash::NAME {
            return None;
        }
        let why = match call.input.get(WITHOUT_SANDBOX) {
            None | Some(Value::Null) => return None,
            Some(Value::String(why)) => why.trim(),
            // No such call runs; what it asks for is asked about all the same.
            Some(_) => "",
        };
        let line = call.input["command"].as_str().unwrap_or_default();
        sandbox.confines(line).then(|| Self {
            line: line.to_owned(),
            why: why.chars().take(SHOWN).collect(),
            failure: sandbox.failure_of(line),
        })
    }

    /// Why nobody is even asked, if so.
    pub(crate) fn refusal(&self) -> Option<Denial> {
        let (reason, remedy) = match (&self.failure, self.why.as_str()) {
            (None, _) => (
                "this very command has not failed in the sandbox",
                "Run it there first, without `without_sandbox`.",
            ),
            (Some(_), "") => (
                "it does not say why it must run outside the sandbox",
                "Give the reason in `without_sandbox`.",
            ),
            (Some(_), _) => return None,
        };
        Some(Denial {
            source: DenialSource::Rule,
            reason: reason.to_owned(),
            rule: None,
            remedy: Some(remedy.to_owned()),
        })
    }

    /// What a person is told who is asked.
    pub(crate) fn reason(&self) -> String {
        let said = match self.failure.as_deref() {
            None | Some([]) => "it failed there".to_owned(),
            Some(lines) => format!("it failed there: {}", lines.join("; ")),
        };
        format!(
            "Bash asks to run this outside the sandbox, with all your rights; {said}; the model's reason: {}",
            self.why
        )
    }

    /// What to do where nobody can be asked.
    pub(crate) fn remedy(&self) -> String {
        let program = self.line.split_whitespace().next().unwrap_or_default();
        format!(
            "Nobody can be asked here. The user can open what was refused in the `[sandbox]` settings, or let plain `{program}` commands run outside by `sandbox.allow_unsandboxed_commands`; do not try again."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escalation(why: &str, failure: Option<&[&str]>) -> Escalation {
        let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
        Escalation {
            line: "git push".to_owned(),
            why: why.to_owned(),
            failure: failure.map(lines),
        }
    }

    #[test]
    fn only_what_has_failed_and_says_why_is_asked_about() {
        let unproved = escalation("needs it", None).refusal().unwrap();
        assert!(unproved.reason.contains("has not failed"), "{unproved:?}");
        let mute = escalation("", Some(&[])).refusal().unwrap();
        assert!(mute.reason.contains("does not say why"), "{mute:?}");
        assert_eq!(escalation("needs it", Some(&[])).refusal(), None);
    }

    #[test]
    fn whoever_is_asked_hears_both_sides() {
        let reason = escalation("ssh keys", Some(&["`~/.ssh` is hidden"])).reason();
        assert!(reason.contains("`~/.ssh` is hidden"), "{reason}");
        assert!(reason.ends_with("the model's reason: ssh keys"), "{reason}");
        let remedy = escalation("x", Some(&[])).remedy();
        assert!(remedy.contains("plain `git` commands"), "{remedy}");
    }
}
