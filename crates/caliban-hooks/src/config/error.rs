//! What can be wrong with configured hooks, and what to do about it.

use std::fmt;

use caliban_settings::Scope;

use crate::matcher::BadMatcher;
use crate::urls::BadUrlPattern;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookConfigError {
    #[error("`hooks.{}` in the {scope} settings: there is no such event{}", name.escape_debug(), meant(*nearest))]
    UnknownEvent {
        scope: Scope,
        name: String,
        nearest: Option<&'static str>,
    },
    #[error("{place}: {fault}")]
    Entry { place: HookPlace, fault: HookFault },
    #[error("`allowed_http_hook_urls` in the {scope} settings: `{}`: {problem}", pattern.escape_debug())]
    UrlPattern {
        scope: Scope,
        pattern: String,
        problem: BadUrlPattern,
    },
}

impl HookConfigError {
    /// The scope whose settings are wrong, and the path of keys and positions, counted from 0, to
    /// what is wrong in them.
    pub fn path(&self) -> (Scope, Vec<String>) {
        let parts = |parts: &[&str]| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
        match self {
            Self::UnknownEvent { scope, name, .. } => (*scope, parts(&["hooks", name])),
            Self::UrlPattern { scope, .. } => (*scope, parts(&["allowed_http_hook_urls"])),
            Self::Entry { place, fault } => {
                let mut path = parts(&["hooks", &place.event]);
                path.push((place.entry - 1).to_string());
                if let Some(handler) = place.handler {
                    path.extend([place.list.to_owned(), (handler - 1).to_string()]);
                }
                path.extend(fault.key().map(str::to_owned));
                (place.scope, path)
            }
        }
    }
}

/// Where a mistake is. Positions count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPlace {
    pub scope: Scope,
    pub event: String,
    pub entry: usize,
    /// The handler within the entry, where it is about one.
    pub handler: Option<usize>,
    /// What the entry calls its handlers.
    pub list: &'static str,
}

impl fmt::Display for HookPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scope,
            event,
            entry,
            handler,
            list: _,
        } = self;
        write!(f, "`hooks.{event}` in the {scope} settings, entry {entry}")?;
        match handler {
            Some(handler) => write!(f, ", handler {handler}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookFault {
    #[error("it must be a table such as `{{ matcher = \"Bash\", handlers = [ … ] }}`")]
    NotATable,
    #[error("it has no handlers; add `handlers = [{{ type = \"command\", command = \"…\" }}]`")]
    NoHandlers,
    #[error("`handlers` and `hooks` are two names of one list; keep one")]
    TwoLists,
    #[error("unknown key `{}`{}", key.escape_debug(), meant(*nearest))]
    UnknownKey {
        key: String,
        nearest: Option<&'static str>,
    },
    #[error("`{key}` is missing")]
    Missing { key: &'static str },
    #[error("`{key}` must be {expected}")]
    WrongValue {
        key: &'static str,
        expected: &'static str,
    },
    #[error("`type` is `{}`; it must be command, http, mcp, prompt or agent", kind.escape_debug())]
    UnknownType { kind: String },
    #[error(
        "`timeout` {problem}; write seconds such as `30` or a duration such as \"500ms\", \"5s\" or \"2m\", at most one hour"
    )]
    Timeout { problem: &'static str },
    #[error("the matcher `{}`: {problem}", matcher.escape_debug())]
    Matcher {
        matcher: String,
        problem: BadMatcher,
    },
    #[error("`if = \"{}\"`: {}", pattern.escape_debug(), problem.escape_debug())]
    Condition { pattern: String, problem: String },
    #[error("`if` is about a tool call, and this event has none; remove it")]
    ConditionWithoutCall,
    #[error("handlers of type `agent` are never waited for; remove `async = false`")]
    SyncAgent,
    #[error(
        "`on_error` is for handlers that decide: those of PreToolUse and UserPromptSubmit that are not `async`; remove it"
    )]
    OnErrorWithoutDecision,
    #[error("`url` is not a usable URL: {problem}")]
    Url { problem: String },
    #[error("the header `{}` is not valid", name.escape_debug())]
    Header { name: String },
}

impl HookFault {
    /// The key that is wrong, where it is one.
    fn key(&self) -> Option<&str> {
        match self {
            Self::UnknownKey { key, .. } => Some(key),
            Self::WrongValue { key, .. } => Some(key),
            Self::UnknownType { .. } => Some("type"),
            Self::Timeout { .. } => Some("timeout"),
            Self::Matcher { .. } => Some("matcher"),
            Self::Condition { .. } | Self::ConditionWithoutCall => Some("if"),
            Self::SyncAgent => Some("async"),
            Self::OnErrorWithoutDecision => Some("on_error"),
            Self::Url { .. } => Some("url"),
            Self::Header { .. } => Some("headers"),
            Self::TwoLists => Some("hooks"),
            Self::NotATable | Self::NoHandlers | Self::Missing { .. } => None,
        }
    }
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
