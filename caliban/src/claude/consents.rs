//! The client as the one who consents to calls: which questions reach it, and what its answers
//! mean.

use std::collections::HashMap;
use std::sync::Arc;

use caliban_agent::{Answer, Inquiry, Interrupt, Question, Remember, Reply, ToolCall};
use caliban_model::BuiltInTool;
use caliban_protocol::claude::{
    ASK_USER_QUESTION, LONGEST_LINE, PermissionAnswer, cancel_request, input_ours, input_theirs,
    request as control_request, suggestions, theirs,
};
use caliban_protocol::line;
use caliban_session::{Asked, Command, QuestionKind};
use serde_json::{Value, json};

use super::host::Host;
use super::mode::Mode;

/// Tools whose calls are nothing but a question to the user.
const NEEDS_THE_USER: [&str; 2] = [ASK_USER_QUESTION, "ExitPlanMode"];
/// Why nothing is permitted once the client has gone.
const DESERTED: &str = "the client has closed its end and can no longer answer";

/// Whether the client answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompts {
    /// Over the control protocol.
    Client,
    Nobody,
}

/// The questions of a session on their way to the client and back.
pub(crate) struct Consents {
    host: Arc<Host>,
    prompts: Prompts,
    /// Whether the client can still answer.
    is_there: bool,
    open: HashMap<String, Box<Asked>>,
}

impl Consents {
    pub(crate) fn new(host: Arc<Host>, prompts: Prompts) -> Self {
        Self {
            host,
            prompts,
            is_there: true,
            open: HashMap::new(),
        }
    }

    /// Puts a question to the client, or answers it in its place where the mode says how.
    pub(crate) async fn ask(&mut self, asked: &Asked) {
        if let Some(command) = self.answered_for(asked) {
            self.host.send(command).await;
            return;
        }
        self.host.asked();
        let question = match &asked.kind {
            QuestionKind::Permission(inquiry) => about_call(inquiry),
            QuestionKind::Elicitation(elicitation) => json!({
                "subtype": "elicitation",
                "mcp_server_name": elicitation.server,
                "message": elicitation.message,
                "requested_schema": elicitation.schema,
            }),
        };
        let text = line(&control_request(&asked.question, &question));
        if text.len() > LONGEST_LINE {
            let reason = "the question is too large for the client to read";
            self.host.send(refused(asked, reason.to_owned())).await;
            return;
        }
        self.open
            .insert(asked.question.to_string(), Box::new(asked.clone()));
        self.host.wire.line(&text);
    }

    /// What is said without asking the client.
    fn answered_for(&self, asked: &Asked) -> Option<Command> {
        let inquiry = match &asked.kind {
            QuestionKind::Permission(inquiry) => inquiry,
            QuestionKind::Elicitation(_) if self.prompts == Prompts::Nobody => {
                return Some(reply(asked, Reply::Nobody));
            }
            QuestionKind::Elicitation(_) => {
                return (!self.is_there).then(|| reply(asked, Reply::Cancel));
            }
        };
        let answer = match (self.host.mode(), self.prompts) {
            // Protected places are asked about in every mode of ours; this one asks nothing but
            // what only a person may allow.
            (Mode::BypassPermissions, _) if inquiry.question.target.is_some() => allow(None),
            (Mode::DontAsk, _) | (_, Prompts::Nobody) => Answer::Nobody,
            (_, Prompts::Client) if !self.is_there => deny(DESERTED.to_owned(), Interrupt::No),
            (_, Prompts::Client) => return None,
        };
        let question = Arc::clone(&asked.question);
        Some(Command::Answer { question, answer })
    }

    /// An answer of the client's; whether it was to one of these questions.
    pub(crate) async fn answer(&mut self, id: &str, result: &Result<Value, String>) -> bool {
        let Some(asked) = self.open.remove(id) else {
            return false;
        };
        let command = match (&asked.kind, result) {
            (_, Err(error)) => refused(
                &asked,
                format!("the client answered with an error: {error}"),
            ),
            (QuestionKind::Elicitation(_), Ok(answer)) => {
                let said = match answer["action"].as_str() {
                    Some("accept") => Reply::Accept(answer["content"].clone()),
                    Some("cancel") => Reply::Cancel,
                    Some(_) | None => Reply::Decline,
                };
                reply(&asked, said)
            }
            (QuestionKind::Permission(inquiry), Ok(answer)) => {
                let answer = self.consented(inquiry, answer.clone()).await;
                let question = Arc::clone(&asked.question);
                Command::Answer { question, answer }
            }
        };
        self.host.send(command).await;
        true
    }

    async fn consented(&self, inquiry: &Inquiry, answer: Value) -> Answer {
        let Inquiry { call, question, .. } = inquiry;
        let input = question.input.as_ref().unwrap_or(&call.input);
        match PermissionAnswer::read(answer) {
            PermissionAnswer::Allow {
                input: changed,
                updates,
            } => {
                self.host.apply(&updates).await;
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

    /// A question has ended: one that the client has not answered is taken back.
    pub(crate) fn close(&mut self, question: &str) {
        self.host.answered();
        if self.open.remove(question).is_some() {
            self.host.wire.line(&line(&cancel_request(question)));
        }
    }

    /// The client can answer nothing any more.
    pub(crate) async fn desert(&mut self) {
        self.is_there = false;
        for (_, asked) in self.open.drain() {
            self.host.send(refused(&asked, DESERTED.to_owned())).await;
        }
    }
}

fn refused(asked: &Asked, reason: String) -> Command {
    match asked.kind {
        QuestionKind::Permission(_) => Command::Answer {
            question: Arc::clone(&asked.question),
            answer: deny(reason, Interrupt::No),
        },
        QuestionKind::Elicitation(_) => reply(asked, Reply::Cancel),
    }
}

fn reply(asked: &Asked, reply: Reply) -> Command {
    let question = Arc::clone(&asked.question);
    Command::AnswerElicitation { question, reply }
}

fn about_call(inquiry: &Inquiry) -> Value {
    let Inquiry { call, question, .. } = inquiry;
    let input = question.input.as_ref().unwrap_or(&call.input);
    request(call, input, question)
}

fn request(call: &ToolCall, input: &Value, question: &Question) -> Value {
    let mut suggested = suggestions(&question.suggestions);
    if BuiltInTool::named(&call.name).is_some_and(BuiltInTool::edits) {
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
