//! Hooks of Claude Code: groups of shell commands become groups of handlers.

use serde_json::{Map, Value, json};

use super::gathered::Gathered;
use super::rule::{self, Translation};
use crate::write::RuleAction;

const EVENTS: [&str; 29] = [
    "ConfigChange",
    "CwdChanged",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "Notification",
    "PermissionDenied",
    "PermissionRequest",
    "PostCompact",
    "PostToolBatch",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PreToolUse",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "WorktreeCreate",
    "WorktreeRemove",
];

/// Takes over a whole `hooks` object.
pub(super) fn gather(hooks: &Value, gathered: &mut Gathered) {
    let Some(events) = hooks.as_object() else {
        gathered.note("`hooks` was not imported: it is not a table of events");
        return;
    };
    for (event, groups) in events {
        if !EVENTS.contains(&event.as_str()) {
            gathered.note(format!(
                "hooks on `{event}` were not imported: no such event here"
            ));
            continue;
        }
        let mut ours = Vec::new();
        for group in groups.as_array().into_iter().flatten() {
            ours.extend(self::groups(event, group, gathered));
        }
        if !ours.is_empty() {
            gathered.set(&format!("hooks.{event}"), ours);
        }
    }
}

/// One group may become several, because a condition belongs to the group here.
fn groups(event: &str, group: &Value, gathered: &mut Gathered) -> Vec<Value> {
    if group.get("handlers").is_some() {
        return vec![group.clone()];
    }
    let matcher = matcher(event, group.get("matcher"), gathered);
    let mut groups: Vec<(Option<String>, Vec<Value>)> = Vec::new();
    for theirs in group
        .get("hooks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(handler) = handler(event, theirs, gathered) else {
            continue;
        };
        let condition = theirs.get("if").and_then(Value::as_str).map(condition);
        match groups.last_mut() {
            Some((last, handlers)) if *last == condition => handlers.push(handler),
            _ => groups.push((condition, vec![handler])),
        }
    }
    groups
        .into_iter()
        .map(|(condition, handlers)| {
            let mut group = Map::new();
            group.insert("matcher".into(), matcher.clone().into());
            if let Some(condition) = condition {
                group.insert("if".into(), condition.into());
            }
            group.insert("handlers".into(), handlers.into());
            group.into()
        })
        .collect()
}

fn condition(pattern: &str) -> String {
    match rule::translate(pattern, RuleAction::Ask, None) {
        Translation::Patterns(patterns) if patterns.len() == 1 => patterns.concat(),
        Translation::Patterns(_) | Translation::Verbatim(_) | Translation::Unusable(_) => {
            pattern.to_owned()
        }
    }
}

/// Their matchers are regular expressions; nearly all are names, alternatives or `.*`.
fn matcher(event: &str, matcher: Option<&Value>, gathered: &mut Gathered) -> String {
    let theirs = matcher.and_then(Value::as_str).unwrap_or_default();
    if matches!(theirs, "" | "*" | ".*") {
        return "*".into();
    }
    let globs = theirs
        .trim_start_matches('^')
        .trim_end_matches('$')
        .replace(".*", "*");
    let names: Vec<&str> = globs
        .split('|')
        .map(|name| rule::tool(name).unwrap_or(name))
        .collect();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-*|:".contains(letter);
    if globs.chars().all(is_plain) {
        names.join("|")
    } else {
        gathered.note(format!(
            "a matcher of `hooks.{event}` is a regular expression; check `{theirs}`"
        ));
        theirs.to_owned()
    }
}

fn handler(event: &str, theirs: &Value, gathered: &mut Gathered) -> Option<Value> {
    let text = |key: &str| theirs.get(key).and_then(Value::as_str);
    let kind = text("type").unwrap_or("command");
    let mut ours = match kind {
        "command" => command(text("command")?),
        "http" => {
            let mut handler = json!({ "type": "http", "url": text("url")? });
            if let Some(headers) = theirs.get("headers") {
                handler["headers"] = headers.clone();
            }
            gathered.note(format!(
                "a hook on `{event}` calls a URL; it runs once `allowed_http_hook_urls` lists it"
            ));
            handler
        }
        "prompt" => json!({ "type": "prompt", "prompt": text("prompt")? }),
        "mcp_tool" => json!({ "type": "mcp", "mcp": text("server")?, "tool": text("tool")? }),
        other => {
            gathered.note(format!(
                "a hook of type `{other}` on `{event}` was not imported: it works differently here"
            ));
            return None;
        }
    };
    if let Some(seconds) = theirs.get("timeout").and_then(Value::as_f64) {
        ours["timeout"] = if seconds.fract() == 0.0 {
            format!("{seconds}s").into()
        } else {
            format!("{}ms", (seconds * 1000.0).round()).into()
        };
    }
    if let Some(asynchronous) = theirs.get("async").and_then(Value::as_bool) {
        ours["async"] = asynchronous.into();
    }
    Some(ours)
}

/// Commands are text for a shell here too. The directory stays a variable of that shell: put in
/// its place, an odd name could be taken for a command.
fn command(theirs: &str) -> Value {
    let command = theirs
        .replace("${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR")
        .replace("$CLAUDE_PROJECT_DIR", "${CALIBAN_PROJECT_DIR}");
    json!({ "type": "command", "command": command })
}
