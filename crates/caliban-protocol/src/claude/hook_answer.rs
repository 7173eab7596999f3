//! What a client's hook answers.

use serde_json::Value;

/// An answer, read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookAnswer {
    pub stance: Stance,
    pub reason: Option<String>,
    pub input: Option<Value>,
    /// Text for the model to read.
    pub context: Option<String>,
    /// The client wants the run to end here.
    pub halt: bool,
}

/// From the mildest to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stance {
    #[default]
    Silent,
    Approve,
    Ask,
    /// The call is not run, and the turn ends with it, so that it can be decided about later.
    Defer,
    Deny,
}

impl HookAnswer {
    /// Reads an answer; the error says why it is none.
    pub fn read(answer: &Value) -> Result<Self, String> {
        if answer.is_null() {
            return Ok(Self::default());
        }
        let Value::Object(fields) = answer else {
            return Err("its answer is not an object".to_owned());
        };
        let text = |value: Option<&Value>| {
            value
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let specific = |key: &str| fields.get("hookSpecificOutput").and_then(|it| it.get(key));
        let permission = match specific("permissionDecision").and_then(Value::as_str) {
            None => Stance::Silent,
            Some("defer") => Stance::Defer,
            Some("allow") => Stance::Approve,
            Some("ask") => Stance::Ask,
            Some("deny") => Stance::Deny,
            Some(other) => return Err(format!("`permissionDecision` is `{other}`")),
        };
        let decision = match fields.get("decision").and_then(Value::as_str) {
            None => Stance::Silent,
            Some("approve" | "allow") => Stance::Approve,
            Some("block" | "deny") => Stance::Deny,
            Some(other) => return Err(format!("`decision` is `{other}`")),
        };
        let halt = fields.get("continue") == Some(&Value::Bool(false));
        let stopped = halt.then(|| text(fields.get("stopReason"))).flatten();
        Ok(Self {
            stance: permission.max(decision),
            reason: text(specific("permissionDecisionReason"))
                .or_else(|| text(fields.get("reason")))
                .or(stopped),
            input: specific("updatedInput")
                .filter(|it| it.is_object())
                .cloned(),
            context: text(specific("additionalContext")),
            halt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_documented_forms_are_read() {
        let read = |value: Value| HookAnswer::read(&value).unwrap();
        assert_eq!(read(json!({})), HookAnswer::default());
        assert_eq!(read(json!({"async": true})), HookAnswer::default());
        let deny = read(json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "no",
        }}));
        assert_eq!(
            (deny.stance, deny.reason.as_deref()),
            (Stance::Deny, Some("no"))
        );
        let block = read(json!({"decision": "block", "reason": "again"}));
        assert_eq!(
            (block.stance, block.reason.as_deref()),
            (Stance::Deny, Some("again"))
        );
        let changed = read(json!({"hookSpecificOutput": {
            "permissionDecision": "allow",
            "updatedInput": {"command": "ls"},
            "additionalContext": "note",
        }}));
        assert_eq!(changed.stance, Stance::Approve);
        assert_eq!(changed.input, Some(json!({"command": "ls"})));
        assert_eq!(changed.context.as_deref(), Some("note"));
        let halt = read(json!({"continue": false, "stopReason": "enough"}));
        assert!(halt.halt && halt.reason.as_deref() == Some("enough"));
        assert!(HookAnswer::read(&json!("yes")).is_err());
        assert!(HookAnswer::read(&json!({"decision": "perhaps"})).is_err());
    }
}
