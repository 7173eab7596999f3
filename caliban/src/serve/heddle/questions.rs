//! Which question a client's answer is about.

use std::sync::Arc;

use caliban_agent::{Answer, Event, Interrupt, Remember};
use caliban_protocol::heddle::{Choice, PermissionResponse, native_name};
use caliban_session::{Asked, Command, QuestionKind};

/// The questions that the client was asked and has not answered, in order.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions(Vec<OpenQuestion>);

#[derive(Debug)]
struct OpenQuestion {
    question: Arc<str>,
    call: Arc<str>,
    tool: Arc<str>,
    /// The call that runs the agent which asks.
    agent: Option<Arc<str>>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The answer is on its way.
    Answered,
}

impl OpenQuestions {
    /// What the client is asked; nothing where it cannot be.
    pub(super) fn add(&mut self, asked: &Asked) -> Option<Event> {
        let QuestionKind::Permission(inquiry) = &asked.kind else {
            return None;
        };
        self.0.push(OpenQuestion {
            question: Arc::clone(&asked.question),
            call: Arc::clone(&inquiry.call.id),
            tool: Arc::clone(&inquiry.call.name),
            agent: asked.agent.clone(),
            state: State::Open,
        });
        let inquiry = inquiry.clone();
        Some(of(asked.agent.as_ref(), Event::PermissionAsked { inquiry }))
    }

    /// What an answer means to the session; nothing where it fits no question.
    pub(super) fn answer(&mut self, response: PermissionResponse) -> Option<Command> {
        let wanted = response.name.as_deref().map(native_name);
        let mut open = self.0.iter_mut().filter(|one| one.state == State::Open);
        let found = match (&response.request_id, wanted) {
            (Some(id), _) => open.find(|one| *one.call == **id),
            (None, Some(name)) => open.find(|one| *one.tool == *name),
            (None, None) => open.next(),
        }?;
        found.state = State::Answered;
        let answer = match response.decision {
            Choice::Allow => Answer::Allow {
                input: None,
                remember: Remember::Once,
            },
            Choice::Deny => Answer::Deny {
                reason: Some(
                    response
                        .reason
                        .unwrap_or_else(|| "the client denied it".to_owned()),
                ),
                remember: Remember::Once,
                interrupt: Interrupt::No,
            },
        };
        let question = Arc::clone(&found.question);
        Some(Command::Answer { question, answer })
    }

    /// A question has ended, however.
    pub(super) fn close(&mut self, question: &str) -> Option<Event> {
        let place = self.0.iter().position(|one| *one.question == *question)?;
        let OpenQuestion {
            question,
            call,
            agent,
            ..
        } = self.0.remove(place);
        let event = Event::PermissionAnswered {
            inquiry: question,
            id: call,
            answer: Answer::Nobody,
        };
        Some(of(agent.as_ref(), event))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn of(agent: Option<&Arc<str>>, event: Event) -> Event {
    match agent {
        None => event,
        Some(parent) => Event::Nested {
            parent: Arc::clone(parent),
            event: Box::new(event),
        },
    }
}

#[cfg(test)]
mod tests {
    use caliban_agent::{Effect, Inquiry, Opinion, Question, ToolCall};
    use serde_json::json;

    use super::*;

    fn asked(call: &str, tool: &str) -> Asked {
        let call = ToolCall {
            id: call.into(),
            agent: None,
            name: tool.into(),
            input: json!({}),
            effect: Effect::Executes,
            first_arg: None,
            turn: 1,
            opinion: Opinion::None,
        };
        let question = Question {
            reason: "r".to_owned(),
            rule: None,
            remedy: String::new(),
            suggestions: Vec::new(),
            parts: Vec::new(),
            place: None,
            target: None,
            input: None,
        };
        let inquiry = Inquiry::new(call, question);
        Asked {
            question: Arc::clone(&inquiry.id),
            agent: None,
            kind: QuestionKind::Permission(Box::new(inquiry)),
        }
    }

    fn response(request_id: Option<&str>, name: Option<&str>) -> PermissionResponse {
        PermissionResponse {
            id: "9".to_owned(),
            request_id: request_id.map(str::to_owned),
            name: name.map(str::to_owned),
            decision: Choice::Allow,
            reason: None,
        }
    }

    #[test]
    fn answers_find_their_question_by_id_or_name_and_only_once() {
        let mut open = OpenQuestions::default();
        let (bash, write) = (asked("1", "Bash"), asked("2", "Write"));
        open.add(&bash);
        open.add(&write);
        assert!(open.answer(response(Some("3"), None)).is_none());
        assert!(open.answer(response(None, Some("grep"))).is_none());
        let about = |command: Option<Command>| match command {
            Some(Command::Answer { question, .. }) => question,
            other => panic!("{other:?}"),
        };
        let first = about(open.answer(response(None, Some("write_file"))));
        assert_eq!(first, write.question);
        assert_eq!(about(open.answer(response(None, None))), bash.question);
        assert!(open.answer(response(Some("1"), None)).is_none());
        let closed = open.close(&bash.question);
        assert!(matches!(closed, Some(Event::PermissionAnswered { .. })));
        assert_eq!(open.close(&bash.question), None);
    }
}
