//! The client as the one who consents to calls.

use std::sync::Arc;

use caliban_agent::{
    Answer, Elicitation, Interrupt, Operator, Question, Remember, Reply, ToolCall,
};
use caliban_permissions::EDITORS;
use caliban_protocol::claude::{
    ASK_USER_QUESTION, PermissionAnswer, input_ours, input_theirs, suggestions, theirs,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::host::Host;
use super::mode::Mode;

/// Tools whose calls are nothing but a question to the user.
const NEEDS_THE_USER: [&str; 2] = [ASK_USER_QUESTION, "ExitPlanMode"];

/// Whether the client answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompts {
    /// Over the control protocol.
    Client,
    Nobody,
}

#[derive(Debug)]
pub(crate) struct HostOperator {
    pub(crate) host: Arc<Host>,
    pub(crate) prompts: Prompts,
}

impl Operator for HostOperator {
    fn decide<'a>(&'a self, call: &'a ToolCall, question: &'a Question) -> BoxFuture<'a, Answer> {
        async move {
            match self.host.mode() {
                // Protected places are asked about in every mode of ours; this one asks nothing
                // but what only a person may allow.
                Mode::BypassPermissions if question.target.is_some() => {
                    return allow(None);
                }
                Mode::DontAsk => return Answer::Nobody,
                Mode::Default
                | Mode::AcceptEdits
                | Mode::Plan
                | Mode::Auto
                | Mode::BypassPermissions => {}
            }
            match self.prompts {
                Prompts::Nobody => Answer::Nobody,
                Prompts::Client => self.ask(call, question).await,
            }
        }
        .boxed()
    }

    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, Reply> {
        async move {
            match self.prompts {
                Prompts::Nobody => Reply::Nobody,
                Prompts::Client => self.forward(question).await,
            }
        }
        .boxed()
    }
}

impl HostOperator {
    async fn forward(&self, question: &Elicitation) -> Reply {
        let asked = json!({
            "subtype": "elicitation",
            "mcp_server_name": question.server,
            "message": question.message,
            "requested_schema": question.schema,
        });
        let Ok(answer) = self.host.channel.ask(&asked).await else {
            return Reply::Nobody;
        };
        match answer["action"].as_str() {
            Some("accept") => Reply::Accept(answer["content"].clone()),
            Some("cancel") => Reply::Cancel,
            Some(_) | None => Reply::Decline,
        }
    }

    async fn ask(&self, call: &ToolCall, question: &Question) -> Answer {
        let input = question.input.as_ref().unwrap_or(&call.input);
        let asked = request(call, input, question);
        let answer = match self.host.channel.ask(&asked).await {
            Ok(answer) => PermissionAnswer::read(answer),
            Err(unanswered) => return deny(unanswered.to_string(), Interrupt::No),
        };
        match answer {
            PermissionAnswer::Allow {
                input: changed,
                updates,
            } => {
                self.host.apply(&updates);
                let changed = changed.map(|changed| input_ours(&call.name, &changed));
                allow(changed.filter(|changed| changed != input))
            }
            PermissionAnswer::Deny { message, interrupt } => deny(
                message,
                if interrupt {
                    Interrupt::Yes
                } else {
                    Interrupt::No
                },
            ),
            PermissionAnswer::Wrong { reason } => deny(
                format!("the client's answer about the call makes no sense: {reason}"),
                Interrupt::No,
            ),
        }
    }
}

fn request(call: &ToolCall, input: &Value, question: &Question) -> Value {
    let mut suggested = suggestions(&question.suggestions);
    if EDITORS.contains(&&*call.name) {
        let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
        suggested.push(mode);
    }
    let name = theirs(&call.name);
    let mut request = json!({
        "subtype": "can_use_tool",
        "tool_name": name,
        "display_name": name,
        "input": input_theirs(&call.name, input),
        "permission_suggestions": suggested,
        "decision_reason": question.reason,
        "tool_use_id": call.id,
    });
    if NEEDS_THE_USER.contains(&name) {
        request["requires_user_interaction"] = true.into();
        // What only the user can say is asked every time.
        request["permission_suggestions"] = json!([]);
    }
    if let Some(description) = input.get("description").and_then(Value::as_str) {
        request["description"] = description.into();
    }
    if let Some(target) = &question.target {
        request["blocked_path"] = target.as_str().into();
    }
    request
}

fn allow(input: Option<Value>) -> Answer {
    Answer::Allow {
        input,
        remember: Remember::Once,
    }
}

fn deny(reason: String, interrupt: Interrupt) -> Answer {
    Answer::Deny {
        reason: Some(reason),
        remember: Remember::Once,
        interrupt,
    }
}
