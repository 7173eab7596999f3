//! What a tab makes of what its session tells.

use std::sync::Arc;

use caliban_agent::{Answer as Consent, Event, Reply};
use caliban_session::{Answered, Asked, By, ClosedWhy, Place, Refused, SessionEvent, What};
use jiff::SignedDuration;
use serde_json::json;
use tokio::time::Instant;

use super::settling::Part;
use super::{REMEMBERED, Tab, now};
use crate::view::{Last, QuestionView};

impl Tab {
    /// What happened; nothing once the session is over.
    pub(super) async fn hear(&mut self, events: Option<Vec<Arc<SessionEvent>>>) {
        match events {
            Some(events) => {
                for event in events {
                    self.take_in(&event).await;
                }
            }
            None => self.ended("the session has ended").await,
        }
    }

    async fn take_in(&mut self, event: &SessionEvent) {
        let request = event.exchange.as_ref();
        match &event.what {
            What::Began { facts, .. } => {
                self.facts = Arc::clone(facts);
                self.messages = facts.messages;
                if let Some(running) = &self.running {
                    let request = Arc::clone(&running.request);
                    let begun = self.encoder.begin(facts, &running.message, &request);
                    for frame in &begun {
                        self.tell(Some(&request), frame);
                    }
                }
            }
            What::Run(step) => {
                self.count(step);
                let frames = self.encoder.step(step);
                for frame in &frames {
                    self.tell(request, frame);
                }
                self.partial.hear(step, &frames);
            }
            What::Ended {
                prompt,
                outcome,
                totals,
            }
            | What::Repeated {
                prompt,
                outcome,
                totals,
            } => {
                let running = self.running.as_ref();
                if running.is_some_and(|running| running.request == *prompt) {
                    self.finish(outcome, totals).await;
                }
            }
            What::Refused(Refused {
                what: Place::Prompt(_),
                reason,
            }) => self.fail_running(reason).await,
            What::Refused(refused) => self.refused(refused),
            What::Asked(asked) => self.asked(request, asked),
            What::Answered(answered) => self.answered(request, answered),
            What::ModeChanged { mode } => {
                self.open.mode = Some(*mode);
                self.settings.heard(Part::Mode, None);
                self.tell(request, &json!({"type": "changed", "mode": mode.as_str()}));
            }
            What::ModelChanged { model } => {
                self.open.model = Some(model.to_string());
                self.settings.heard(Part::Model, None);
                self.tell(request, &json!({"type": "changed", "model": model}));
            }
            What::ReasoningChanged { reasoning } => {
                self.settings.heard(Part::Effort, None);
                self.tell(request, &json!({"type": "changed", "effort": reasoning}));
            }
            What::Closed { why, trouble } => {
                if let Some(trouble) = trouble {
                    let message = format!("the session was not saved: {trouble}");
                    let warning =
                        json!({"type": "warning", "subtype": "not_kept", "message": message});
                    self.tell(None, &warning);
                }
                self.closed(*why).await;
            }
            What::Opened(_)
            | What::Queued { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing => {}
        }
    }

    /// How many messages of the conversation were told.
    fn count(&mut self, step: &Event) {
        self.messages += match step {
            Event::PromptAccepted { .. }
            | Event::SentOn { .. }
            | Event::Steered { .. }
            | Event::ToolResults { .. } => 1,
            Event::AssistantMessage { message, .. } => usize::from(!message.content.is_empty()),
            Event::Interrupted { said, .. } => 1 + usize::from(said.is_some()),
            Event::HistoryReplaced { messages } => {
                self.messages = messages.len();
                0
            }
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
            | Event::Finished { .. } => 0,
        };
    }

    fn asked(&mut self, request: Option<&Arc<str>>, asked: &Asked) {
        let event = self.encoder.question(asked);
        let patience = SignedDuration::try_from(self.shared.limits.patience);
        let since = now();
        let view = QuestionView {
            question: asked.question.to_string(),
            since,
            deadline: since
                .saturating_add(patience.unwrap_or_default())
                .unwrap_or(since),
            event: event.clone(),
        };
        self.questions.push((Box::new(asked.clone()), view));
        self.tell(request, &event);
    }

    fn answered(&mut self, request: Option<&Arc<str>>, answered: &Answered) {
        self.close_question(&answered.question);
        let how = match &answered.by {
            By::Operator(Consent::Allow { .. }) => "allow",
            By::Operator(Consent::Deny { .. } | Consent::Nobody | Consent::TimedOut) => "deny",
            By::Replied(Reply::Accept(_)) => "accept",
            By::Replied(Reply::Decline) => "decline",
            By::Replied(Reply::Cancel | Reply::Nobody) => "cancel",
            By::Withdrawn => "withdrawn",
        };
        let event = json!({"type": "answered", "question": answered.question, "how": how});
        self.tell(request, &event);
    }

    /// A question can be answered no more.
    pub(super) fn close_question(&mut self, question: &Arc<str>) {
        let before = self.questions.len();
        self.questions
            .retain(|(asked, _)| asked.question != *question);
        if self.questions.len() < before {
            if self.answered.len() >= REMEMBERED {
                self.answered.pop_front();
            }
            self.answered.push_back(Arc::clone(question));
        }
    }

    async fn fail_running(&mut self, reason: &str) {
        if let Some(running) = self.running.take() {
            let result = self.encoder.failure(reason);
            self.settle(&running.request, Last::Failed, vec![result])
                .await;
        }
    }

    async fn closed(&mut self, why: ClosedWhy) {
        match why {
            ClosedWhy::Budget => {
                let reason = "the budget of the session is spent";
                self.over = Some(reason.to_owned());
                self.fail_queue(reason).await;
                self.ended(reason).await;
            }
            ClosedWhy::Crashed | ClosedWhy::Shutdown | ClosedWhy::Abandoned => {
                self.ended("the session has ended").await;
            }
        }
    }

    /// The session is not there any more; what was worked on in it has ended.
    async fn ended(&mut self, reason: &str) {
        self.hosted = None;
        self.partial.clear();
        self.idle_since = Instant::now();
        self.settings.abandon();
        self.questions.clear();
        self.fail_running(reason).await;
    }
}
