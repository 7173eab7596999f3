//! What is told about every handler that fires.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use caliban_settings::Scope;
use serde_json::{Map, Value};

use crate::event::EventName;

/// Hears of every handler that fires. Called from wherever the handler ran; must not block.
pub trait FiringSink: Send + Sync + Debug {
    fn fired(&self, firing: Firing);

    /// An event that is no handler's business. `subject` is what matchers are compared with.
    fn passed(&self, event: EventName, subject: Option<&str>);
}

/// One handler's part in one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    pub event: EventName,
    pub matcher: Arc<str>,
    pub scope: Scope,
    /// `command`, `http`, `mcp`, `prompt` or `agent`.
    pub kind: &'static str,
    /// Which handler it was, in words that hold no secret of its URL.
    pub handler: Arc<str>,
    pub phase: Phase,
    pub decision: Decision,
    pub reason: Option<String>,
    /// Something the operator should know: the handler failed, or was not run.
    pub warning: Option<String>,
    /// What the handler itself wants the operator to read.
    pub message: Option<String>,
    pub duration: Duration,
}

/// Handlers that are not waited for are told of twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It was waited for and is over.
    Whole,
    Started,
    Finished,
    /// It was not run: too many were under way.
    Dropped,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// No objection.
    Allow,
    /// Permitted on the operator's behalf.
    Approve,
    Ask,
    Deny,
    /// The model was sent on.
    Continue,
    /// There was nothing to decide, or the answer does not count.
    None,
}

impl Firing {
    /// The `hookSpecificOutput` of the frame that tells of it.
    pub fn output(&self) -> Value {
        let mut output = Map::new();
        let mut put = |name: &str, value: Value| output.insert(name.to_owned(), value);
        put("matcher", (*self.matcher).into());
        put("decision", self.decision.as_str().into());
        if self.decision == Decision::Approve {
            put("approved", true.into());
        }
        put("handler", self.kind.into());
        put("name", (*self.handler).into());
        put("scope", self.scope.as_str().into());
        match self.phase {
            Phase::Whole => {}
            Phase::Started => drop(put("phase", "started".into())),
            Phase::Finished => drop(put("phase", "finished".into())),
            Phase::Dropped => drop(put("phase", "dropped".into())),
        }
        for (name, text) in [
            ("reason", &self.reason),
            ("warning", &self.warning),
            ("systemMessage", &self.message),
        ] {
            if let Some(text) = text {
                put(name, text.as_str().into());
            }
        }
        let milliseconds = u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX);
        put("duration_ms", milliseconds.into());
        output.into()
    }
}

impl Decision {
    /// As it stands in frames, where an approval is an `allow` too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow | Self::Approve => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Continue => "continue",
            Self::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_has_the_documented_fields_first() {
        let firing = Firing {
            event: EventName::PreToolUse,
            matcher: "Bash".into(),
            scope: Scope::User,
            kind: "command",
            handler: "guard.sh".into(),
            phase: Phase::Whole,
            decision: Decision::Deny,
            reason: Some("no".to_owned()),
            warning: None,
            message: None,
            duration: Duration::from_millis(7),
        };
        assert_eq!(
            firing.output().to_string(),
            r#"{"matcher":"Bash","decision":"deny","handler":"command","name":"guard.sh","scope":"user","reason":"no","duration_ms":7}"#
        );
        let approved = Firing {
            decision: Decision::Approve,
            phase: Phase::Finished,
            warning: Some("w".to_owned()),
            ..firing
        };
        let output = approved.output();
        assert_eq!(output["decision"], json!("allow"));
        assert_eq!(output["approved"], json!(true));
        assert_eq!(output["phase"], json!("finished"));
        assert_eq!(output["warning"], json!("w"));
    }
}
