//! The client as the one who consents to calls: which questions reach it, and what its answers
//! mean.

use std::collections::HashMap;
use std::sync::Arc;

use caliban_agent::{Answer, Inquiry, Interrupt, Question, Remember, Reply, ToolCall};
use caliban_harness::NETWORK_ACCESS;
use caliban_model::{Argument, BuiltInTool};
use caliban_protocol::claude::{
    ASK_USER_QUESTION, Choice, LONGEST_LINE, PermissionAnswer, cancel_request, input_ours,
    input_theirs, permission_request, request as control_request, suggestions, theirs,
};
use caliban_protocol::line;
use caliban_session::{Asked, Command, QuestionKind};
use serde_json::{Value, json};
use uuid::Uuid;

use super::host::Host;
use super::mode::Mode;

/// Tools whose calls are nothing but a question to the user.
const NEEDS_THE_USER: [&str; 2] = [ASK_USER_QUESTION, "ExitPlanMode"];
/// Why nothing is permitted once the client has gone.
const DESERTED: &str = "the client has closed its end and can no longer answer";

/// How the client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionRoute {
    /// Over the control protocol.
    Control,
    /// By frames with options, about calls alone.
    Frames,
    /// It answers nothing.
    Nobody,
}

/// The questions of a session on their way to the client and back.
pub(crate) struct Consents {
    host: Arc<Host>,
    route: QuestionRoute,
    /// Whether the client can still answer.
    is_there: bool,
    /// The questions that the client was asked and that have not ended.
    put: HashMap<String, PutQuestion>,
}

/// A question that the client was asked.
struct PutQuestion {
    asked: Box<Asked>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// The answer is on its way.
    Answered,
}

impl Consents {
    pub(crate) fn new(host: Arc<Host>, route: QuestionRoute) -> Self {
        Self {
            host,
            route,
            is_there: true,
            put: HashMap::new(),
        }
    }

    /// Puts a question to the client, or answers it in its place where the mode says how.
    pub(crate) async fn ask(&mut self, asked: &Asked) {
        if let Some(command) = self.answered_for(asked) {
            self.host.send(command).await;
            return;
        }
        let text = line(&self.question(asked));
        if text.len() > LONGEST_LINE {
            let reason = "the question is too large for the client to read";
            self.host.send(refused(asked, reason.to_owned())).await;
            return;
        }
        let question = PutQuestion {
            asked: Box::new(asked.clone()),
            stage: Stage::Open,
        };
        self.put.insert(asked.question.to_string(), question);
        self.host.asked();
        self.host.wire.line(&text);
    }

    fn question(&self, asked: &Asked) -> Value {
        match &asked.kind {
            QuestionKind::Permission(inquiry) => match self.route {
                QuestionRoute::Control | QuestionRoute::Nobody => {
                    control_request(&asked.question, &about_call(inquiry))
                }
                QuestionRoute::Frames => {
                    let (call, input) = (&inquiry.call, input(inquiry));
                    let input = input_theirs(&call.name, input);
                    let mut frame =
                        permission_request(&asked.question, theirs(&call.name), &input, &call.id);
                    frame["session_id"] = self.host.facts.session_id.clone().into();
                    frame["uuid"] = Uuid::new_v4().to_string().into();
                    frame
                }
            },
            QuestionKind::Elicitation(elicitation) => control_request(
                &asked.question,
                &json!({
                    "subtype": "elicitation",
                    "mcp_server_name": elicitation.server,
                    "message": elicitation.message,
                    "requested_schema": elicitation.schema,
                }),
            ),
        }
    }

    /// What is said without asking the client.
    fn answered_for(&self, asked: &Asked) -> Option<Command> {
        let inquiry = match &asked.kind {
            QuestionKind::Permission(inquiry) => inquiry,
            QuestionKind::Elicitation(_) => {
                return match self.route {
                    QuestionRoute::Frames | QuestionRoute::Nobody => {
                        Some(reply(asked, Reply::Nobody))
                    }
                    QuestionRoute::Control => (!self.is_there).then(|| reply(asked, Reply::Cancel)),
                };
            }
        };
        let answer = match (self.host.mode(), self.route) {
            // Protected places are asked about in every mode of ours; this one asks nothing but
            // what only a person may allow.
            (Mode::BypassPermissions, _) if inquiry.question.target.is_some() => allow(None),
            (Mode::DontAsk, _) | (_, QuestionRoute::Nobody) => Answer::Nobody,
            (_, QuestionRoute::Control | QuestionRoute::Frames) if !self.is_there => {
                deny(DESERTED.to_owned(), Interrupt::No)
            }
            (_, QuestionRoute::Control | QuestionRoute::Frames) => return None,
        };
        let question = Arc::clone(&asked.question);
        Some(Command::Answer { question, answer })
    }

    /// An answer of the client's; whether it was to one of these questions.
    pub(crate) async fn answer(&mut self, id: &str, result: &Result<Value, String>) -> bool {
        let Some(question) = self.put.get_mut(id) else {
            return false;
        };
        if question.stage == Stage::Answered {
            return true;
        }
        question.stage = Stage::Answered;
        let asked = question.asked.clone();
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

    /// One of the options of a question about a call; whether such a question is open.
    pub(crate) async fn choose(&mut self, id: &str, choice: Choice) -> bool {
        let open = self.put.get_mut(id).filter(|it| it.stage == Stage::Open);
        let Some(question) = open else {
            return false;
        };
        let QuestionKind::Permission(inquiry) = question.asked.kind.clone() else {
            return false;
        };
        question.stage = Stage::Answered;
        let question = Arc::clone(&question.asked.question);
        let answer = match choice {
            Choice::Allow => allow(None),
            Choice::AllowForSession => {
                self.host.allow(for_session(&inquiry)).await;
                allow(None)
            }
            Choice::Deny => deny("the client denied it".to_owned(), Interrupt::No),
            Choice::Unknown(option) => deny(
                format!("the client's answer makes no sense: there is no option `{option}`"),
                Interrupt::No,
            ),
        };
        self.host.send(Command::Answer { question, answer }).await;
        true
    }

    async fn consented(&self, inquiry: &Inquiry, answer: Value) -> Answer {
        let (call, input) = (&inquiry.call, input(inquiry));
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
        let Some(PutQuestion { stage, .. }) = self.put.remove(question) else {
            return;
        };
        if stage == Stage::Open {
            self.host.wire.line(&line(&cancel_request(question)));
        }
        if self.put.is_empty() {
            self.host.answered();
        }
    }

    /// The client can answer nothing any more.
    pub(crate) async fn desert(&mut self) {
        self.is_there = false;
        for question in self.put.values_mut() {
            if question.stage == Stage::Open {
                question.stage = Stage::Answered;
                let refusal = refused(&question.asked, DESERTED.to_owned());
                self.host.send(refusal).await;
            }
        }
    }
}

/// The rules by which calls like this one run unasked; none for what only the user can say.
fn for_session(inquiry: &Inquiry) -> Vec<String> {
    let name = &*inquiry.call.name;
    let argument = BuiltInTool::named(name).map(|tool| tool.argument);
    if NEEDS_THE_USER.contains(&theirs(name)) {
        Vec::new()
    } else if argument == Some(Argument::Command) || name == NETWORK_ACCESS {
        // Commands are too different from each other to be allowed all at once, and so are hosts.
        inquiry.question.suggestions.clone()
    } else {
        vec![name.to_owned()]
    }
}

/// What the call would be run with.
fn input(inquiry: &Inquiry) -> &Value {
    let changed = inquiry.question.input.as_ref();
    changed.unwrap_or(&inquiry.call.input)
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
    request(&inquiry.call, input(inquiry), &inquiry.question)
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
        "decision_reason": question.reason,
        "tool_use_id": call.id,
    });
    if NEEDS_THE_USER.contains(&name) {
        // What only the user can say is asked every time. Clients take nothing for leave to suggest
        // something themselves, and an empty list for none.
        request["requires_user_interaction"] = true.into();
    } else {
        request["permission_suggestions"] = suggested.into();
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
