//! Reading what handlers answer: exit codes, the decision object and its older forms. What cannot
//! be read is never an approval.

use serde_json::{Map, Value};

use crate::action::{Failure, Reply};
use crate::event::{EventName, Power};

/// The longest text that a handler can add for the model, in bytes.
const CONTEXT: usize = 64 * 1024;
/// The longest reason that is passed on, in bytes.
const REASON: usize = 8 * 1024;

/// What a handler's answer comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Advice {
    pub(crate) stance: Stance,
    pub(crate) reason: Option<String>,
    /// Another input for the call.
    pub(crate) input: Option<Value>,
    /// Text for the model to read.
    pub(crate) context: Option<String>,
    /// The handler wants the run to end here.
    pub(crate) halt: Option<Halt>,
    /// What the handler wants the operator to read.
    pub(crate) message: Option<String>,
    pub(crate) warning: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Halt {
    pub(crate) reason: Option<String>,
}

/// From the mildest to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stance {
    #[default]
    Silent,
    Approve,
    Ask,
    Deny,
}

/// What to make of a program's exit code that is neither 0 nor 2, and of a handler that could not
/// decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OnError {
    /// An odd exit code is no objection; who could not decide refuses.
    #[default]
    Allow,
    /// Both are asked about.
    Ask,
    /// Both refuse.
    Deny,
}

/// Reads an answer to an event.
pub(crate) fn read(reply: Result<Reply, Failure>, event: EventName, on_error: OnError) -> Advice {
    let result = match reply {
        Ok(Reply::Exit {
            code: 0,
            stdout,
            stderr: _,
        }) => output(&stdout, event),
        Ok(Reply::Exit {
            code,
            stdout,
            stderr,
        }) => Ok(complaint(code, &stdout, &stderr, on_error)),
        Ok(Reply::Body(text)) => body(&text, Source::Operator),
        Ok(Reply::Opinion(text)) => body(&text, Source::Model),
        Err(failure) => Err(failure.to_string()),
    };
    result.unwrap_or_else(|problem| undecided(&problem, event, on_error))
}

/// Reads the answer of a handler that nobody waits for: it decides nothing, so that it may say what
/// it likes. Only that it could not run, or failed, is worth a warning.
pub(crate) fn overhear(reply: Result<Reply, Failure>) -> Advice {
    let advice = match reply {
        Ok(Reply::Exit {
            code: 0, stdout, ..
        }) => body(&stdout, Source::Operator),
        Ok(Reply::Exit {
            code,
            stdout,
            stderr,
        }) => Ok(complaint(code, &stdout, &stderr, OnError::Allow)),
        Ok(Reply::Body(text)) => body(&text, Source::Operator),
        Ok(Reply::Opinion(_)) => Ok(Advice::default()),
        Err(failure) => Ok(Advice {
            warning: Some(cut(&failure.to_string(), REASON)),
            ..Advice::default()
        }),
    };
    let advice = advice.unwrap_or_default();
    Advice {
        reason: advice.reason,
        message: advice.message,
        warning: advice.warning,
        ..Advice::default()
    }
}

/// Who wrote an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A program or service that the operator chose.
    Operator,
    /// A model, which what it reads may have talked into anything: it approves nothing, but may
    /// object.
    Model,
}

/// The standard output of a program that ended well: a decision, or text.
fn output(stdout: &str, event: EventName) -> Result<Advice, String> {
    let text = trimmed(stdout);
    if is_structured(text) {
        return body(text, Source::Operator);
    }
    let context = match event {
        EventName::SessionStart | EventName::UserPromptSubmit if !text.is_empty() => {
            Some(cut(text, CONTEXT))
        }
        _ => None,
    };
    Ok(Advice {
        context,
        ..Advice::default()
    })
}

fn trimmed(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim()
}

/// Whether a text is more than words. Chatter before an object would turn a refusal into text that
/// nobody reads, and a page is somebody else's answer.
fn is_structured(text: &str) -> bool {
    const WORDS: [&str; 3] = [
        "\"hookSpecificOutput\"",
        "\"permissionDecision\"",
        "\"decision\"",
    ];
    text.starts_with(['{', '[', '<']) || WORDS.iter().any(|word| text.contains(word))
}

/// An exit code other than 0: 2 refuses, any other is what the operator says it is. A refusal on
/// standard output counts whatever the code.
fn complaint(code: i32, stdout: &str, stderr: &str, on_error: OnError) -> Advice {
    let written = body(stdout, Source::Operator)
        .ok()
        .filter(|advice| advice.stance >= Stance::Ask || advice.halt.is_some());
    let said = match stderr.trim() {
        "" => None,
        text => Some(cut(text, REASON)),
    };
    if code == 2 {
        return Advice {
            stance: Stance::Deny,
            reason: said.or_else(|| written.and_then(|advice| advice.reason)),
            ..Advice::default()
        };
    }
    if let Some(advice) = written {
        return advice;
    }
    let warning = match said {
        Some(said) => format!("it exited with code {code}: {said}"),
        None => format!("it exited with code {code}"),
    };
    Advice {
        stance: match on_error {
            OnError::Allow => Stance::Silent,
            OnError::Ask => Stance::Ask,
            OnError::Deny => Stance::Deny,
        },
        reason: Some(warning.clone()),
        warning: Some(warning),
        ..Advice::default()
    }
}

fn undecided(problem: &str, event: EventName, on_error: OnError) -> Advice {
    let problem = cut(problem, REASON);
    let stance = match (event.power(), on_error) {
        (Power::Gates, OnError::Ask) => Stance::Ask,
        (Power::Gates, OnError::Allow | OnError::Deny) => Stance::Deny,
        (Power::Adds | Power::Observes, _) => Stance::Silent,
    };
    Advice {
        stance,
        reason: Some(format!("it could not decide: {problem}")),
        warning: Some(problem),
        ..Advice::default()
    }
}

/// An answer that is a JSON object, or no decision at all. A model was asked for one and owes it.
fn body(text: &str, source: Source) -> Result<Advice, String> {
    let text = trimmed(text);
    match source {
        Source::Operator if !is_structured(text) => return Ok(Advice::default()),
        Source::Model if text.is_empty() => return Err("the model said nothing".to_owned()),
        Source::Operator | Source::Model => {}
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => advice(&object, source),
        Ok(_) => Err("its answer is not a JSON object".to_owned()),
        Err(error) => Err(format!("its answer is not valid JSON: {error}")),
    }
}

fn advice(object: &Map<String, Value>, source: Source) -> Result<Advice, String> {
    let none = Map::new();
    let specific = match object.get("hookSpecificOutput") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(specific)) => specific,
        Some(_) => return Err("`hookSpecificOutput` is not an object".to_owned()),
    };
    // Where it does not belong it still objects, and approves nothing.
    let permission = match permission(object)? {
        Stance::Approve => Stance::Silent,
        stance => stance,
    };
    let permission = permission.max(self::permission(specific)?);
    let decision = match word(object, "decision")? {
        None => Stance::Silent,
        Some("approve" | "allow") => Stance::Approve,
        Some("ask") => Stance::Ask,
        Some("block" | "deny") => Stance::Deny,
        Some(other) => return Err(unknown("decision", other, "approve or block")),
    };
    let ok = match (object.get("ok"), source) {
        (Some(Value::Bool(false)), Source::Model) => Stance::Deny,
        (Some(Value::Bool(true)) | None, _) | (_, Source::Operator) => Stance::Silent,
        (Some(_), Source::Model) => return Err("`ok` is neither true nor false".to_owned()),
    };
    let halt = match object.get("continue") {
        None | Some(Value::Null | Value::Bool(true)) => None,
        Some(Value::Bool(false)) => Some(Halt {
            reason: text(object, "stopReason", REASON),
        }),
        Some(_) => return Err("`continue` is neither true nor false".to_owned()),
    };
    let input = match specific.get("updatedInput") {
        None | Some(Value::Null) => None,
        // An object without anything in it changes nothing.
        Some(Value::Object(input)) if input.is_empty() => None,
        Some(input @ Value::Object(_)) => Some(input.clone()),
        Some(_) => return Err("`updatedInput` is not an object".to_owned()),
    };
    let stance = permission.max(decision).max(ok);
    let stance = match (stance, source) {
        (Stance::Approve, Source::Model) => Stance::Silent,
        _ => stance,
    };
    let (first, second) = if permission >= decision {
        (
            text(specific, "permissionDecisionReason", REASON)
                .or_else(|| text(object, "permissionDecisionReason", REASON)),
            text(object, "reason", REASON),
        )
    } else {
        (
            text(object, "reason", REASON),
            text(specific, "permissionDecisionReason", REASON),
        )
    };
    Ok(Advice {
        stance,
        reason: first.or(second),
        input,
        context: text(specific, "additionalContext", CONTEXT),
        halt,
        message: text(object, "systemMessage", REASON),
        warning: None,
    })
}

fn permission(object: &Map<String, Value>) -> Result<Stance, String> {
    match word(object, "permissionDecision")? {
        None => Ok(Stance::Silent),
        Some("allow") => Ok(Stance::Approve),
        Some("ask") => Ok(Stance::Ask),
        Some("deny") => Ok(Stance::Deny),
        Some(other) => Err(unknown("permissionDecision", other, "allow, deny or ask")),
    }
}

fn word<'a>(object: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) => Ok(Some(word)),
        Some(_) => Err(format!("`{key}` is not a text")),
    }
}

fn unknown(key: &str, found: &str, known: &str) -> String {
    let found: String = found.chars().take(40).collect();
    format!("`{key}` is `{}`; it must be {known}", found.escape_debug())
}

fn text(object: &Map<String, Value>, key: &str, limit: usize) -> Option<String> {
    let text = object.get(key)?.as_str()?;
    (!text.trim().is_empty()).then(|| cut(text, limit))
}

fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!(
        "{}\n[… cut at {limit} bytes]",
        &text[..text.floor_char_boundary(limit)]
    )
}

#[cfg(test)]
mod tests;
