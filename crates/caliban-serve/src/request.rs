//! What an application can ask for, and how a line of it is read.

use std::fmt;

use caliban_settings::PermissionMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::Content;

/// The longest id, name of a tab or name of a session, in bytes.
const LONGEST_NAME: usize = 128;

/// A wish and the id that its answer carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub id: Id,
    pub wish: Wish,
}

/// What a line is called by whoever wrote it, as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Id {
    Number(i64),
    Text(String),
}

impl Id {
    /// Reads one; nothing where it can name nothing.
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) if is_name(text) => Some(Self::Text(text.clone())),
            Value::Number(number) => number.as_i64().map(Self::Number),
            _ => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Wish {
    /// What is spoken here. May come first and at any time.
    Hello(HelloWish),
    /// Begins a session, goes on with an earlier one, or joins a tab that is open.
    Open(Box<Open>),
    /// Something to work on.
    Send(Send),
    /// Something is not wanted any more.
    Cancel(Cancel),
    /// Answers a question.
    Answer(Answer),
    /// Changes how a tab works.
    Set(Set),
    /// Hears a tab from here on, or from an earlier event on.
    Events(Events),
    /// Which tabs there are.
    Tabs(TabsWish),
    /// Ends a tab.
    Close(Close),
    /// Ends everything.
    Shutdown(Shutdown),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HelloWish {
    /// The version that the application knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// What a session shall be. What is left out is as the settings and the server's own flags say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Open {
    /// What the tab is called; without a name it has its session's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tab: Option<String>,
    /// The directory that tools work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The earlier session to go on with, by its id or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// Goes on in a copy and leaves the earlier session as it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// The name of a new session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// What follows the usual system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system: Option<String>,
    /// Settings above the user's own, except that nothing undoes what is denied there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
    /// Calls that run unasked, such as `Read` or `Bash:git status*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Calls that never run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// The only tools that are offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Most calls to the model for one prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// In dollars, for the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    pub tab: String,
    /// Names this piece of work in its session: the same one is worked on once. Without it, the
    /// id of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub tab: String,
    /// What is not wanted any more; without it, whatever is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What becomes of what waits.
    #[serde(default)]
    pub queue: Queue,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// It is worked on next.
    #[default]
    Keep,
    /// It is cancelled as well.
    Clear,
}

/// An answer to a question: about a call with `decision`, of a server with `action`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    pub tab: String,
    pub question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// For what an `allow` holds.
    pub scope: Scope,
    /// Why it may not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The input to run with instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// What the server gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny,
}

/// For what consent holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call.
    #[default]
    Once,
    /// Every call of the tool in this session; for commands, those like this one.
    Session,
    /// Commands like this one, in this session.
    Command,
    /// Every page of this domain, in this session.
    Domain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Accept,
    Decline,
    Cancel,
}

/// What shall be otherwise from the next turn on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Set {
    pub tab: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Events {
    pub tab: String,
    /// The last event that is known; without it, only what comes is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TabsWish {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Close {
    pub tab: String,
    #[serde(default)]
    pub session: Purge,
}

/// What becomes of a session whose tab is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purge {
    /// It can be gone on with.
    #[default]
    Keep,
    /// It is removed with everything it keeps.
    Remove,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {}

/// A line that is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The id of it, where one could be read.
    pub id: Option<Id>,
    pub reason: String,
}

/// Reads a line; nothing for a blank one.
pub fn read(line: &str) -> Result<Option<Request>, Malformed> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    let wrong = |id: Option<Id>, reason: String| Malformed { id, reason };
    let mut fields: Map<String, Value> = match serde_json::from_str(line) {
        Ok(fields) => fields,
        Err(error) => return Err(wrong(None, format!("the line is no JSON object: {error}"))),
    };
    let id = fields.shift_remove("id").as_ref().and_then(Id::read);
    let Some(id) = id else {
        let reason = format!("`id` must be a text of 1 to {LONGEST_NAME} bytes or a whole number");
        return Err(wrong(None, reason));
    };
    let wish = serde_json::from_value(Value::Object(fields));
    let wish: Wish = wish.map_err(|error| wrong(Some(id.clone()), error.to_string()))?;
    match wish.check() {
        Ok(()) => Ok(Some(Request { id, wish })),
        Err(reason) => Err(wrong(Some(id), reason)),
    }
}

/// Whether a text can name something.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_NAME && !text.chars().any(char::is_control)
}

impl Wish {
    /// Refuses what no type can.
    pub fn check(&self) -> Result<(), String> {
        let named = |what: &str, name: &Option<String>| match name {
            Some(name) if !is_name(name) => Err(format!(
                "`{what}` must be a text of 1 to {LONGEST_NAME} bytes"
            )),
            Some(_) | None => Ok(()),
        };
        match self {
            Self::Open(open) => {
                named("tab", &open.tab)?;
                named("resume", &open.resume)?;
                named("name", &open.name)?;
                if open.system.is_some() && open.append_system.is_some() {
                    return Err("`system` and `append_system` exclude each other".to_owned());
                }
                if open.resume.is_some() && open.name.is_some() {
                    return Err("`resume` and `name` exclude each other".to_owned());
                }
                if open.fork && open.resume.is_none() {
                    return Err("`fork` copies a session: name it with `resume`".to_owned());
                }
                named_model(open.model.as_deref())?;
                if open.max_turns == Some(0) {
                    return Err("`max_turns` must be at least 1".to_owned());
                }
                Ok(())
            }
            Self::Send(send) => {
                named("request", &send.request)?;
                if send.content.is_blank() {
                    return Err("`content` is empty".to_owned());
                }
                Ok(())
            }
            Self::Answer(answer) => match (answer.decision, answer.action) {
                (Some(_), None) | (None, Some(_)) => Ok(()),
                (Some(_), Some(_)) | (None, None) => {
                    Err("an answer has either a `decision` or an `action`".to_owned())
                }
            },
            Self::Set(set) => {
                if set.model.is_none() && set.mode.is_none() && set.effort.is_none() {
                    return Err("`set` needs a `model`, a `mode` or an `effort`".to_owned());
                }
                named_model(set.model.as_deref())
            }
            Self::Hello(_)
            | Self::Cancel(_)
            | Self::Events(_)
            | Self::Tabs(_)
            | Self::Close(_)
            | Self::Shutdown(_) => Ok(()),
        }
    }
}

fn named_model(model: Option<&str>) -> Result<(), String> {
    match model {
        Some(model) if model.trim().is_empty() => Err("`model` is empty".to_owned()),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request_or_says_why_not() {
        let sent = read(r#"{"op":"send","id":"1","tab":"a","content":"hi"}"#);
        let sent = sent.unwrap().unwrap();
        assert_eq!(sent.id, "1".into());
        let counted = read(r#"{"op":"tabs","id":7}"#).unwrap().unwrap();
        assert_eq!(counted.id, Id::Number(7));
        assert!(matches!(sent.wish, Wish::Send(Send { ref tab, .. }) if tab == "a"));
        assert_eq!(read(" \r\n"), Ok(None));
        for (line, id) in [
            ("[]", None),
            (r#"{"op":"tabs"}"#, None),
            (r#"{"op":"tabs","id":7.5}"#, None),
            (r#"{"op":"tabs","id":null}"#, None),
            (r#"{"op":"open","id":"x","max_turns":0}"#, Some("x")),
            (r#"{"op":"open","id":"x","model":" "}"#, Some("x")),
            (r#"{"op":"set","id":"x","tab":"a","model":""}"#, Some("x")),
            (r#"{"op":"open","id":"x","fork":true}"#, Some("x")),
            (r#"{"op":"tabs","id":"x","more":1}"#, Some("x")),
            (r#"{"op":"dance","id":"x"}"#, Some("x")),
            (
                r#"{"op":"send","id":"x","tab":"a","content":" "}"#,
                Some("x"),
            ),
            (r#"{"op":"set","id":"x","tab":"a"}"#, Some("x")),
            (
                r#"{"op":"answer","id":"x","tab":"a","question":"q"}"#,
                Some("x"),
            ),
            (r#"{"op":"open","id":"x","mode":"yolo"}"#, Some("x")),
            (
                r#"{"op":"open","id":"x","system":"a","append_system":"b"}"#,
                Some("x"),
            ),
        ] {
            let wrong = read(line).unwrap_err();
            assert_eq!(wrong.id, id.map(Id::from), "{line}");
        }
    }
}
