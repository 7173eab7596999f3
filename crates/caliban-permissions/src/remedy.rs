//! What would permit a call: the narrowest rules that do, each proved by asking the judge again.

use caliban_model::{Argument, BuiltInTool};
use caliban_settings::{RuleAction, RuleSpec};
use jiff::Timestamp;
use serde_json::Value;

use crate::evaluation::{Decision, Item, Judge};
use crate::origin::Origin;
use crate::rule::Rule;
use crate::rulebook::RuleBook;
use crate::tools;
use crate::wildcard::Wildcard;

/// Where a rule that is suggested would stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On the command line.
    Flag,
    /// Among what was decided for the rest of a session.
    Session,
}

/// Rules that would allow this call and as little else as possible; none when no rule can. A rule
/// about every command is none that is kept for the sake of one: it is only named where nobody can
/// be asked, to whoever then writes it by hand.
pub fn suggestions(
    judge: &Judge,
    tool: &str,
    input: &Value,
    decision: &Decision,
    place: Place,
    now: Timestamp,
) -> Vec<String> {
    let tool = BuiltInTool::canonical(tool);
    let whole = match (tools::argument(tool), place) {
        (Argument::Command, Place::Session) => Vec::new(),
        _ => vec![tool.to_owned()],
    };
    [narrow(tool, input, decision), whole]
        .into_iter()
        .find(|patterns| allows(judge, tool, input, patterns, place, now))
        .unwrap_or_default()
}

/// What to tell whoever cannot be asked.
pub fn remedy(
    judge: &Judge,
    tool: &str,
    input: &Value,
    decision: &Decision,
    now: Timestamp,
) -> String {
    let suggestions = suggestions(judge, tool, input, decision, Place::Flag, now);
    let tool = BuiltInTool::canonical(tool);
    let flags: Vec<String> = suggestions
        .iter()
        .map(|pattern| format!("--allow {}", quoted(pattern)))
        .collect();
    let flags = flags.join(" ");
    let is_every_command =
        tools::argument(tool) == Argument::Command && suggestions == [tool.to_owned()];
    if is_every_command {
        return format!(
            "No narrower rule can allow it: the user can run it himself, or (dangerous) allow every command by running caliban with `{flags}`."
        );
    }
    let lasts = decision.why.outlasts_modes();
    match (flags.is_empty(), tools::is_editor(tool), lasts) {
        (true, _, lasts) => match asking(judge, decision) {
            Some(rule) if lasts => format!("{rule} asks about it; the user can change it there."),
            Some(rule) => format!(
                "{rule} asks about it: the user can change it there, or (dangerous) allow everything with `--auto-allow`."
            ),
            None => "No rule can allow it; run it yourself.".to_owned(),
        },
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

/// The rule that somebody wrote and that asks, with where it is written.
fn asking(judge: &Judge, decision: &Decision) -> Option<String> {
    let rule = &judge.book.rules()[decision.rule];
    if rule.action != RuleAction::Ask || rule.origin == Origin::BuiltIn {
        return None;
    }
    let place = match &rule.written {
        Some(written) => format!("{written}, {}", rule.origin.described()),
        None => rule.origin.described().to_owned(),
    };
    Some(format!("The rule `{}` ({place})", rule.pattern))
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
        Argument::Text(field) => tools::values(tool, field, input)
            .first()
            .and_then(|value| value.as_str())
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

fn allows(
    judge: &Judge,
    tool: &str,
    input: &Value,
    patterns: &[String],
    place: Place,
    now: Timestamp,
) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let mut trial = judge.clone();
    for pattern in patterns {
        let spec = RuleSpec::new(pattern.clone(), RuleAction::Allow);
        let (origin, put): (Origin, fn(&RuleBook, Rule) -> RuleBook) = match place {
            Place::Flag => (Origin::Flag, RuleBook::with_flag),
            Place::Session => (Origin::Runtime, RuleBook::with_first),
        };
        let Ok(rule) = Rule::new(spec, origin) else {
            return false;
        };
        trial.book = put(&trial.book, rule);
    }
    trial.decide(tool, input, now).action == RuleAction::Allow
}

/// Quoted for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
