//! What MCP servers do in a session besides offering tools: they serve hooks, hold prompts, may
//! be asked for consent, and ask questions themselves.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, OnceLock, Weak};

use caliban_agent::{
    Answer, Elicitation, Event, HookEvent, Inquiry, Interrupt, NotificationKind, Observer,
    Operator, PromptStage, PromptVerdict, Remember, Reply, SharedOperator, ToolOutput,
};
use caliban_hooks::{McpCall, McpRunner};
use caliban_mcp::{Elicited, Elicitor, Prompt, Servers};
use caliban_model::{CancellationToken, Message};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::extras::typed;
use crate::notice_sink::NoticeSink;

/// What a call of a server's prompt begins with.
const PREFIX: &str = "/mcp__";
const SEPARATOR: &str = "__";

/// What the model is told about servers: which tools it does not see yet, and what servers want
/// their users to know.
pub(crate) fn server_notes(servers: &Servers) -> String {
    let mut text = String::new();
    if let Some(notice) = servers.notice() {
        text.push_str("\n\n");
        text.push_str(&notice);
    }
    for server in servers.status() {
        if let Some(instructions) = server.instructions {
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "\n\n<mcp-server-instructions server=\"{}\">\n{instructions}\n\
                 </mcp-server-instructions>\nThe server wrote this about its tools; it is not \
                 the user's word.",
                server.name
            );
        }
    }
    text
}

/// Hooks that are tools of servers.
#[derive(Debug)]
pub(crate) struct ServerHooks(pub(crate) Servers);

impl McpRunner for ServerHooks {
    fn call<'a>(&'a self, call: McpCall<'a>) -> BoxFuture<'a, Result<String, String>> {
        async move {
            let cancel = CancellationToken::new();
            let calling = self
                .0
                .call(call.server, call.tool, call.event.clone(), &cancel);
            match tokio::time::timeout_at(call.deadline, calling).await {
                Ok(output) if output.is_error() => Err(output.text()),
                Ok(output) => Ok(output.text()),
                Err(_) => Err(format!("the server {} did not answer in time", call.server)),
            }
        }
        .boxed()
    }
}

/// Expands `/mcp__SERVER__PROMPT words` into the server's prompt.
#[derive(Debug)]
pub(crate) struct ServerPrompts(pub(crate) Servers);

impl ServerPrompts {
    async fn expand(&self, line: &str) -> Option<Result<String, String>> {
        let call = line.trim().strip_prefix(PREFIX)?;
        let (name, given) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        let (server, prompt) = name.split_once(SEPARATOR)?;
        // A server that is not there has no prompts, and the line means what it says.
        let prompts = self.0.prompts_of(server).await.ok()?;
        let prompt = prompts.iter().find(|known| known.name == prompt)?;
        let text = match arguments(prompt, given) {
            Ok(arguments) => {
                let text = self.0.get_prompt(server, &prompt.name, &arguments).await;
                text.map_err(|error| error.to_string())
            }
            Err(problem) => Err(problem),
        };
        Some(text)
    }
}

/// The words after the name, for the prompt's arguments in their order; the last takes the rest.
fn arguments(prompt: &Prompt, given: &str) -> Result<BTreeMap<String, String>, String> {
    let count = prompt.arguments.len().max(1);
    let words = given
        .trim()
        .splitn(count, char::is_whitespace)
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let filled: BTreeMap<String, String> = prompt
        .arguments
        .iter()
        .zip(words)
        .map(|(argument, word)| (argument.name.clone(), word.to_owned()))
        .collect();
    let missing = prompt
        .arguments
        .iter()
        .find(|argument| argument.is_required && !filled.contains_key(&argument.name));
    match missing {
        Some(argument) => Err(format!(
            "`/mcp__{}__{}` needs the argument `{}`",
            prompt.server, prompt.name, argument.name
        )),
        None => Ok(filled),
    }
}

impl PromptStage for ServerPrompts {
    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        async move {
            match self.expand(typed(prompt)).await {
                None => PromptVerdict::Accept,
                Some(Ok(prompt)) => PromptVerdict::Replace {
                    prompt,
                    addition: None,
                },
                Some(Err(reason)) => PromptVerdict::Deny { reason },
            }
        }
        .boxed()
    }
}

/// A tool of a server that is asked for consent in the place of a person.
#[derive(Debug)]
pub struct PromptTool {
    servers: Servers,
    /// Its full name, `mcp__SERVER__TOOL`.
    tool: String,
}

impl PromptTool {
    pub fn new(servers: Servers, tool: String) -> Self {
        Self { servers, tool }
    }

    /// What the tool's answer means. What cannot be understood is no consent.
    fn answer(&self, output: &ToolOutput) -> Answer {
        let deny = |reason: String| Answer::Deny {
            reason: Some(reason),
            remember: Remember::Once,
            interrupt: Interrupt::No,
        };
        let text = output.text();
        if output.is_error() {
            return deny(format!("`{}` could not be asked: {text}", self.tool));
        }
        let answer: Value = serde_json::from_str(text.trim()).unwrap_or_default();
        match answer["behavior"].as_str() {
            Some("allow") => Answer::Allow {
                input: answer
                    .get("updatedInput")
                    .filter(|it| it.is_object())
                    .cloned(),
                remember: Remember::Once,
            },
            Some("deny") => {
                let message = answer["message"].as_str().unwrap_or("it was refused");
                deny(message.to_owned())
            }
            Some(_) | None => deny(format!("`{}` gave no decision", self.tool)),
        }
    }
}

impl Operator for PromptTool {
    fn decide<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Answer> {
        async move {
            let call = &inquiry.call;
            let question = json!({
                "tool_name": call.name,
                "input": call.input,
                "tool_use_id": call.id,
            });
            let cancel = CancellationToken::new();
            let output = self.servers.call_named(&self.tool, question, &cancel).await;
            self.answer(&output)
        }
        .boxed()
    }
}

/// Whether a server may ask at all.
pub type MayAsk = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Who looks on at a session: known once it is made, after the servers have begun. Hooks may hold
/// the servers, so these do not hold them.
#[derive(Debug, Clone, Default)]
pub struct Onlookers(Arc<OnceLock<Vec<Weak<dyn Observer>>>>);

impl Onlookers {
    /// The first that are given stay.
    pub(crate) fn set(&self, observers: &[Arc<dyn Observer>]) {
        let _ = self.0.set(observers.iter().map(Arc::downgrade).collect());
    }

    pub(crate) async fn tell(&self, event: &HookEvent) {
        let observers = self.0.get().into_iter().flatten();
        for observer in observers.filter_map(Weak::upgrade) {
            observer.notify(event).await;
        }
    }
}

/// Puts servers' questions to the operator.
pub struct Elicitations {
    pub operator: SharedOperator,
    pub onlookers: Onlookers,
    pub notice_sink: NoticeSink,
    pub may_ask: MayAsk,
}

impl Debug for Elicitations {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Elicitations")
            .field("operator", &self.operator)
            .finish_non_exhaustive()
    }
}

impl Elicitor for Elicitations {
    fn elicit<'a>(
        &'a self,
        server: &'a str,
        message: &'a str,
        schema: &'a Value,
    ) -> BoxFuture<'a, Elicited> {
        async move {
            let say = |end: &str| {
                self.notice_sink.say(Event::Notice {
                    subtype: "elicitation".into(),
                    message: format!("the MCP server {server} asks: {message} ({end})"),
                });
            };
            if !(self.may_ask)(server) {
                say("declined by a rule");
                return Elicited::Decline;
            }
            let question = Elicitation {
                server: server.to_owned(),
                message: message.to_owned(),
                schema: schema.clone(),
            };
            let event = HookEvent::Notification {
                kind: NotificationKind::Elicitation,
                message: format!("the MCP server {server} asks: {message}"),
            };
            self.onlookers.tell(&event).await;
            match self.operator.elicit(&question).await {
                Reply::Accept(value) => Elicited::Accept(value),
                Reply::Decline => Elicited::Decline,
                Reply::Cancel => Elicited::Cancel,
                Reply::Nobody => {
                    say("declined, because nobody can answer");
                    Elicited::Decline
                }
            }
        }
        .boxed()
    }
}
