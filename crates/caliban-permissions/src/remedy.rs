//! What would permit a call: the narrowest rules that do, each proved by asking the judge again.

use caliban_model::{Argument, BuiltInTool};
use caliban_settings::{RuleAction, RuleSpec};
use jiff::Timestamp;
use serde_json::Value;

use crate::evaluation::{Decision, Item, Judge, Why};
use crate::rulebook::{Origin, Rule};
use crate::tools;
use crate::wildcard::Wildcard;

/// Rules that would allow this call and as little else as possible; none when no rule can.
pub fn suggestions(
    judge: &Judge,
    tool: &str,
    input: &Value,
    decision: &Decision,
    now: Timestamp,
) -> Vec<String> {
    let tool = BuiltInTool::canonical(tool);
    [narrow(tool, input, decision), vec![tool.to_owned()]]
        .into_iter()
        .find(|patterns| allows(judge, tool, input, patterns, now))
        .unwrap_or_default()
}

/// What to tell whoever cannot be asked.
pub fn remedy(tool: &str, decision: &Decision, suggestions: &[String]) -> String {
    let tool = BuiltInTool::canonical(tool);
    let flags: Vec<String> = suggestions
        .iter()
        .map(|pattern| format!("--allow {}", quoted(pattern)))
        .collect();
    let flags = flags.join(" ");
    match (
        flags.is_empty(),
        tools::is_editor(tool),
        is_protected(&decision.why),
    ) {
        (true, _, _) => "No rule can allow it; run it yourself.".to_owned(),
        (false, _, true) => {
            format!("The user can allow exactly this by running caliban with `{flags}`.")
        }
        (false, true, false) => format!(
            "The user can allow it by running caliban with `{flags}`, or all edits with `--permission-mode acceptEdits`."
        ),
        (false, false, false) => format!(
            "The user can allow it by running caliban with `{flags}`, or (dangerous) everything with `--auto-allow`."
        ),
    }
}

fn narrow(tool: &str, input: &Value, decision: &Decision) -> Vec<String> {
    match tools::argument(tool) {
        Argument::Command | Argument::Source | Argument::Target => decision
            .parts
            .iter()
            .filter(|part| part.action == RuleAction::Ask)
            .map(|part| match &part.item {
                Item::Command(text) => format!("Bash:{}", escaped_command(text)),
                Item::File { tool, path } => {
                    format!("{tool}:{}", escaped_path(&path.to_string_lossy()))
                }
            })
            .collect(),
        Argument::Url => input
            .get("url")
            .and_then(Value::as_str)
            .map(|url| vec![format!("WebFetch:{}", Wildcard::escape(url))])
            .unwrap_or_default(),
        Argument::Text(field) => input
            .get(field)
            .and_then(Value::as_str)
            .map(|text| vec![format!("{tool}:{}", Wildcard::escape(text))])
            .unwrap_or_default(),
        Argument::Place | Argument::None => Vec::new(),
    }
}

/// A command that begins like another form of pattern is spelled so that it is not one.
fn escaped_command(text: &str) -> String {
    let escaped = Wildcard::escape(text);
    // A question mark takes the place of the tilde, which would mean "anywhere".
    if let Some(rest) = escaped.strip_prefix('~') {
        return format!("?{rest}");
    }
    escaped
}

/// A path that a glob takes literally.
fn escaped_path(path: &str) -> String {
    let mut escaped = String::new();
    for letter in path.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn is_protected(why: &Why) -> bool {
    matches!(why, Why::Protected { .. })
}

fn allows(judge: &Judge, tool: &str, input: &Value, patterns: &[String], now: Timestamp) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let mut trial = judge.clone();
    for pattern in patterns {
        let spec = RuleSpec::new(pattern.clone(), RuleAction::Allow);
        let Ok(rule) = Rule::new(spec, Origin::Flag) else {
            return false;
        };
        trial = trial.with_first(rule);
    }
    trial.decide(tool, input, now).action == RuleAction::Allow
}

/// Quoted for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
