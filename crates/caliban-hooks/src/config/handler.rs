//! One handler: what it is for, what it does, how long it may take and whether it is waited for.

use std::sync::Arc;
use std::time::Duration;

use caliban_settings::Scope;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

use super::error::HookFault;
use super::fields::Fields;
use super::lists::Lists;
use super::{CallPattern, PluginHooks, timeout};
use crate::action::Action;
use crate::answer::OnError;
use crate::command::{Confinement, OwnVariables, Program};
use crate::event::{EventName, Power, Subject};
use crate::http::{Endpoint, label};
use crate::matcher::Matcher;
use crate::occasion::Occasion;

/// A handler of one event.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) scope: Scope,
    /// The plugin that brought it along.
    pub(crate) plugin: Option<Arc<str>>,
    pub(crate) filter: Filter,
    pub(crate) action: Action,
    /// What to call it in messages.
    pub(crate) label: Arc<str>,
    pub(crate) timeout: Duration,
    pub(crate) waiting: Waiting,
    pub(crate) on_error: OnError,
}

/// Whether an event is this handler's business.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    pub(crate) matcher: Matcher,
    pub(crate) text: Arc<str>,
    /// All must hold.
    pub(crate) conditions: Vec<Arc<dyn CallPattern>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The run waits for it and heeds its answer.
    Sync,
    /// It runs beside, and its answer does not count.
    Async,
}

/// Where a handler stands and what it may use.
pub(super) struct Surrounding<'a> {
    pub(super) scope: Scope,
    pub(super) plugin: Option<&'a PluginHooks>,
    pub(super) event: EventName,
    pub(super) lists: &'a Lists,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Surrounding<'_> {
    /// Whose lists hold: what a plugin calls is a stranger's word, whoever installed it.
    fn listed(&self) -> Scope {
        match (self.plugin, self.scope) {
            (Some(_), Scope::User) => Scope::Project,
            (_, scope) => scope,
        }
    }
}

impl Handler {
    pub(super) fn parse(
        fields: &mut Fields<'_>,
        filter: Filter,
        surrounding: &Surrounding<'_>,
    ) -> Result<Self, HookFault> {
        let action = action(fields, surrounding)?;
        let waiting = match (fields.truth("async")?, &action) {
            (Some(false), Action::Agent { .. }) => return Err(HookFault::SyncAgent),
            (Some(true), _) | (None, Action::Agent { .. }) => Waiting::Async,
            (Some(false) | None, _) => Waiting::Sync,
        };
        let on_error = fields.text("on_error")?;
        let decides = waiting == Waiting::Sync && surrounding.event.power() == Power::Gates;
        if on_error.is_some() && !decides {
            return Err(HookFault::OnErrorWithoutDecision);
        }
        // Shown by other programs while the handler runs; nothing depends on it.
        fields.text("statusMessage")?;
        let plugin = surrounding.plugin.map(|plugin| Arc::clone(&plugin.name));
        let label = action.label();
        Ok(Self {
            scope: surrounding.scope,
            filter,
            label: match &plugin {
                Some(plugin) => format!("{plugin}: {label}").into(),
                None => label.into(),
            },
            plugin,
            action,
            timeout: fields
                .value("timeout")
                .map_or(Ok(timeout::DEFAULT), timeout::parse)?,
            waiting,
            on_error: match on_error {
                None | Some("allow") => OnError::Allow,
                Some("ask") => OnError::Ask,
                Some("deny") => OnError::Deny,
                Some(_) => {
                    return Err(HookFault::WrongValue {
                        key: "on_error",
                        expected: "\"deny\", \"ask\" or \"allow\"",
                    });
                }
            },
        })
    }

    /// Whether an occasion is its business.
    pub(crate) fn concerns(&self, occasion: &Occasion<'_>) -> bool {
        let Filter {
            matcher,
            conditions,
            ..
        } = &self.filter;
        let (subject, call) = (occasion.subject(), occasion.call());
        subject.is_none_or(|subject| matcher.matches(subject))
            && conditions
                .iter()
                .all(|condition| call.is_some_and(|call| condition.matches(call)))
    }

    /// Where it stands, to be told behind its name.
    pub(crate) fn place(&self) -> String {
        match &self.plugin {
            Some(plugin) => format!("of the plugin `{plugin}`"),
            None => format!("in the {} settings", self.scope),
        }
    }

    /// Whether running both would do the same thing twice.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.action == other.action
            && self.waiting == other.waiting
            && self.on_error == other.on_error
            && self.timeout == other.timeout
    }
}

impl Filter {
    /// Why the matcher does nothing, where it does nothing.
    pub(super) fn idle_matcher(&self, event: EventName) -> Option<String> {
        (event.subject() == Subject::Nothing && !self.matcher.is_all()).then(|| {
            let text = self.text.escape_debug();
            format!("the matcher `{text}` is ignored: {event} has nothing to match")
        })
    }
}

fn action(fields: &mut Fields<'_>, surrounding: &Surrounding<'_>) -> Result<Action, HookFault> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    match fields.required("type")? {
        "command" => {
            let command = fields.required("command")?;
            let program = Program::new(command, fields.texts("args")?);
            let confinement = match fields.truth("sandbox")? {
                Some(true) => Confinement::Sandboxed,
                Some(false) | None => Confinement::Open,
            };
            let own = surrounding
                .plugin
                .map(|plugin| Arc::clone(&plugin.variables));
            Ok(Action::Command(
                program,
                confinement,
                own.unwrap_or_else(no_variables),
            ))
        }
        "http" => http(fields, surrounding),
        "mcp" | "mcp_tool" => {
            let server = match fields.text("server")? {
                Some(server) => server,
                None => fields.required("mcp")?,
            };
            Ok(Action::Mcp {
                server: server.to_owned(),
                tool: fields.required("tool")?.to_owned(),
            })
        }
        "prompt" => Ok(Action::Prompt {
            prompt: fields.required("prompt")?.to_owned(),
            model: owned(fields.text("model")?),
            schema: fields.value("schema").cloned(),
        }),
        "agent" => Ok(Action::Agent {
            agent: owned(fields.text("agent")?),
            prompt: fields.required("prompt")?.to_owned(),
        }),
        other => Err(HookFault::UnknownType {
            kind: other.to_owned(),
        }),
    }
}

fn no_variables() -> OwnVariables {
    Arc::from([])
}

fn http(fields: &mut Fields<'_>, surrounding: &Surrounding<'_>) -> Result<Action, HookFault> {
    let written = fields.required("url")?;
    let headers = headers(fields)?;
    let refused = |label: String, reason: String| Ok(Action::Refused { label, reason });
    let url = match expand(written, surrounding) {
        Ok(url) => parse_url(&url)?,
        Err(reason) => return refused("http".to_owned(), reason),
    };
    let label = label(&url);
    if !surrounding.lists.allow_url(surrounding.listed(), &url) {
        let reason = format!(
            "`{label}` is not a URL that hooks of the {} settings may call; list it in \
             `allowed_http_hook_urls`",
            surrounding.scope
        );
        return refused(label, reason);
    }
    let mut expanded = Vec::new();
    for (name, value) in headers {
        let value = match expand(value, surrounding) {
            Ok(value) => value,
            Err(reason) => return refused(label, reason),
        };
        let header = HeaderName::try_from(name).ok();
        let header = header.zip(HeaderValue::from_str(&value).ok());
        expanded.push(header.ok_or_else(|| HookFault::Header {
            name: name.to_owned(),
        })?);
    }
    Ok(Action::Http(Endpoint::new(url, expanded)))
}

fn headers<'a>(fields: &mut Fields<'a>) -> Result<Vec<(&'a str, &'a str)>, HookFault> {
    let wrong = || HookFault::WrongValue {
        key: "headers",
        expected: "a table of texts",
    };
    let Some(value) = fields.value("headers") else {
        return Ok(Vec::new());
    };
    let pair = |(name, value): (&'a String, &'a Value)| {
        Ok((name.as_str(), value.as_str().ok_or_else(wrong)?))
    };
    value
        .as_object()
        .ok_or_else(wrong)?
        .iter()
        .map(pair)
        .collect()
}

fn parse_url(text: &str) -> Result<Url, HookFault> {
    let fault = |problem: &str| HookFault::Url {
        problem: problem.to_owned(),
    };
    let url = Url::parse(text).map_err(|error| fault(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fault("it must start with `https://` or `http://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault(
            "it holds a user name or password; send credentials in `headers`",
        ));
    }
    Ok(url)
}

/// Replaces `${NAME}` by variables that may be sent. An unlisted or unset one is a reason not to
/// call at all: half a credential helps nobody.
fn expand(text: &str, surrounding: &Surrounding<'_>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once("${") {
        let Some((name, after)) = reference.split_once('}') else {
            break;
        };
        let shown = name.escape_debug();
        if !surrounding.lists.allow_variable(surrounding.listed(), name) {
            return Err(format!(
                "it uses the environment variable `{shown}`; list it in `http_hook_allowed_env_vars`"
            ));
        }
        let value = (surrounding.variable)(name)
            .ok_or_else(|| format!("the environment variable `{shown}` is not set"))?;
        expanded.push_str(before);
        expanded.push_str(&value);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}
