//! Where a session stands: what somebody must know who hears its events from one of them on and
//! not from the first.

use std::sync::Arc;

use caliban_agent::{Event, Outcome, RunTotals};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::command::PromptId;
use crate::event::{Asked, Facts, SessionEvent, What};

/// What the events up to one of them come to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The event up to which it holds. What comes behind it and is not in it are pieces of an
    /// answer, which will be told as a whole.
    pub seq: u64,
    /// What the session is, with the mode and the model that it has by now.
    pub facts: Arc<Facts>,
    /// Messages of the conversation.
    pub messages: usize,
    /// The prompt that is being worked on.
    pub working: Option<PromptId>,
    /// Those without an answer, the oldest first.
    pub questions: Vec<OpenQuestion>,
}

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    pub asked: Box<Asked>,
    pub since: Timestamp,
    /// The prompt that was being worked on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exchange: Option<PromptId>,
}

/// How a prompt ended in a process that is no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// Names the process.
    pub life: Arc<str>,
    pub prompt: PromptId,
    pub outcome: Outcome,
    pub totals: Box<RunTotals>,
}

impl Standing {
    /// The next event was told.
    pub fn hear(&mut self, event: &SessionEvent) {
        match &event.what {
            What::Run(Event::TextDelta { .. } | Event::ThinkingDelta { .. }) => return,
            What::Run(step) => self.messages = messages_after(self.messages, step),
            What::Opened(facts) => self.know(facts),
            What::Began { prompt, facts } => {
                self.know(facts);
                self.working = Some(Arc::clone(prompt));
            }
            What::Ended { prompt, .. } => {
                if self.working.as_ref() == Some(prompt) {
                    self.working = None;
                }
            }
            What::Asked(asked) => self.questions.push(OpenQuestion {
                asked: asked.clone(),
                since: event.at,
                exchange: event.exchange.clone(),
            }),
            What::Answered(answered) => self
                .questions
                .retain(|open| open.asked.question != answered.question),
            What::ModeChanged { mode } => {
                mode.as_str()
                    .clone_into(&mut Arc::make_mut(&mut self.facts).permission_mode);
            }
            What::ModelChanged { model } => {
                Arc::make_mut(&mut self.facts).model = model.to_string();
            }
            What::Closed { .. } => {
                self.working = None;
                self.questions.clear();
            }
            What::Queued { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::Refused(_)
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing => {}
        }
        self.seq = event.seq;
    }

    fn know(&mut self, facts: &Arc<Facts>) {
        self.facts = Arc::clone(facts);
        self.messages = facts.messages;
    }
}

/// How many messages the conversation has after a step of the work.
pub fn messages_after(messages: usize, step: &Event) -> usize {
    match step {
        Event::PromptAccepted { .. }
        | Event::SentOn { .. }
        | Event::Steered { .. }
        | Event::ToolResults { .. } => messages + 1,
        Event::AssistantMessage { message, .. } => {
            messages + usize::from(!message.content.is_empty())
        }
        Event::Interrupted { said, .. } => messages + 1 + usize::from(said.is_some()),
        Event::HistoryReplaced { messages } => messages.len(),
        Event::TurnStarted { .. }
        | Event::TextDelta { .. }
        | Event::ThinkingDelta { .. }
        | Event::Answer(_)
        | Event::ToolReady { .. }
        | Event::PermissionAsked { .. }
        | Event::PermissionAnswered { .. }
        | Event::ToolStarted { .. }
        | Event::ToolProgress { .. }
        | Event::ToolFinished { .. }
        | Event::TurnEnded { .. }
        | Event::Retrying(_)
        | Event::Warning(_)
        | Event::Notice { .. }
        | Event::HookFired { .. }
        | Event::HookPassed { .. }
        | Event::CompactionStarted { .. }
        | Event::CompactionFinished { .. }
        | Event::Nested { .. }
        | Event::Finished { .. } => messages,
    }
}

#[cfg(test)]
mod tests {
    use caliban_agent::{Elicitation, Reply};
    use caliban_model::Message;
    use caliban_settings::PermissionMode;
    use serde_json::json;

    use super::*;
    use crate::event::{Answered, By, QuestionKind};

    fn heard(standing: &mut Standing, what: What) {
        let event = SessionEvent {
            seq: standing.seq + 1,
            at: Timestamp::UNIX_EPOCH,
            exchange: standing.working.clone(),
            what,
        };
        standing.hear(&event);
    }

    #[test]
    fn it_is_what_the_events_come_to() {
        let mut standing = Standing::default();
        let facts = Arc::new(Facts {
            messages: 3,
            ..Facts::default()
        });
        heard(&mut standing, What::Opened(Arc::clone(&facts)));
        heard(
            &mut standing,
            What::Began {
                prompt: "a".into(),
                facts,
            },
        );
        let prompt = Arc::new(Message::user("x"));
        heard(&mut standing, What::Run(Event::PromptAccepted { prompt }));
        assert_eq!(
            (standing.seq, standing.messages, standing.working.as_deref()),
            (3, 4, Some("a"))
        );
        // A piece of an answer is in no standing: it is heard as an event.
        let text = "piece".to_owned();
        heard(&mut standing, What::Run(Event::TextDelta { text }));
        assert_eq!(standing.seq, 3);

        let asked = Asked {
            question: "q".into(),
            agent: None,
            kind: QuestionKind::Elicitation(Elicitation {
                server: "s".to_owned(),
                message: "m".to_owned(),
                schema: json!({}),
            }),
        };
        heard(&mut standing, What::Asked(Box::new(asked)));
        let open: Vec<_> = standing
            .questions
            .iter()
            .map(|it| (&*it.asked.question, it.exchange.as_deref()))
            .collect();
        assert_eq!(open, [("q", Some("a"))]);
        let answered = Answered {
            question: "q".into(),
            by: By::Replied(Reply::Decline),
        };
        heard(&mut standing, What::Answered(answered));
        let mode = PermissionMode::Plan;
        heard(&mut standing, What::ModeChanged { mode });
        let ended = |prompt: &str| What::Ended {
            prompt: prompt.into(),
            outcome: Outcome::Cancelled,
            totals: Box::<RunTotals>::default(),
        };
        heard(&mut standing, ended("another"));
        assert_eq!(standing.working.as_deref(), Some("a"));
        heard(&mut standing, ended("a"));
        assert_eq!(
            (
                standing.questions.len(),
                standing.working,
                standing.facts.permission_mode.as_str()
            ),
            (0, None, "plan")
        );
    }
}
