//! Questions that the client was asked and has not answered.

use std::sync::Arc;

use caliban_agent::{Inquiry, Reply};
use caliban_protocol::acp::v1::{CLIENT_METHOD_NAMES, Error, SessionId};
use caliban_protocol::acp::{Projection, Taken, asked, elicitation, permission, reply, verdict};
use caliban_session::{Asked, Command, QuestionKind};
use serde_json::Value;

/// The open questions of one session, in order. The session bounds how many there are.
#[derive(Debug, Default)]
pub(super) struct Questions(Vec<Open>);

#[derive(Debug)]
struct Open {
    number: i64,
    question: Arc<str>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Permission(Box<Inquiry>),
    Elicitation,
}

/// What becomes of a question.
#[derive(Debug)]
pub(super) enum Put {
    /// This line asks the client.
    Ask(String),
    /// The client cannot be asked.
    Decline(Command),
}

impl Questions {
    /// Asks the client by the request of this number.
    pub(super) fn put(
        &mut self,
        number: i64,
        session: &SessionId,
        asked_for: &Asked,
        forms: Taken,
        projection: &Projection,
    ) -> Put {
        let names = &CLIENT_METHOD_NAMES;
        let (kind, line) = match &asked_for.kind {
            QuestionKind::Permission(inquiry) => {
                let agent = asked_for.agent.as_deref().map(|call| {
                    let name = projection.agent(call);
                    name.unwrap_or_else(|| "agent".to_owned())
                });
                let params = permission(session, inquiry, agent.as_deref(), projection);
                let line = asked(number, names.session_request_permission, &params);
                (Kind::Permission(inquiry.clone()), line)
            }
            QuestionKind::Elicitation(wish) => {
                let form = match forms {
                    Taken::Yes => elicitation(session, wish),
                    Taken::No => None,
                };
                let Some(params) = form else {
                    return Put::Decline(Command::AnswerElicitation {
                        question: Arc::clone(&asked_for.question),
                        reply: Reply::Decline,
                    });
                };
                (
                    Kind::Elicitation,
                    asked(number, names.elicitation_create, &params),
                )
            }
        };
        self.0.push(Open {
            number,
            question: Arc::clone(&asked_for.question),
            kind,
        });
        Put::Ask(line)
    }

    /// What an answer means to the session; nothing where the question is over.
    pub(super) fn answer(&mut self, number: i64, answer: Result<Value, Error>) -> Option<Command> {
        let place = self.0.iter().position(|open| open.number == number)?;
        let Open { question, kind, .. } = self.0.remove(place);
        Some(match kind {
            Kind::Permission(inquiry) => Command::Answer {
                question,
                answer: verdict(&inquiry, answer),
            },
            Kind::Elicitation => Command::AnswerElicitation {
                question,
                reply: reply(answer),
            },
        })
    }

    /// A question has ended. The number of the request that the client need not answer any more.
    pub(super) fn close(&mut self, question: &str) -> Option<i64> {
        let place = self.0.iter().position(|open| *open.question == *question)?;
        Some(self.0.remove(place).number)
    }

    /// All questions are over.
    pub(super) fn clear(&mut self) -> Vec<i64> {
        self.0.drain(..).map(|open| open.number).collect()
    }
}
