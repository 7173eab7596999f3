//! What a tab makes of what its session tells.

use std::sync::Arc;

use caliban_agent::{Answer as Consent, Reply};
use caliban_agent::{Event as Step, Outcome as Ending, RunTotals};
use caliban_session::{
    Answered, Asked, By, ClosedWhy, Place, PromptId, Refused, SessionEvent, Standing, What,
    messages_after,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::time::Instant;

use super::settling::Part;
use super::{Kept, REMEMBERED, Tab};
use crate::host::News;
use crate::view::{Last, QuestionView};

/// How a question ended that nobody need answer any more.
const WITHDRAWN: &str = "withdrawn";

impl Tab {
    /// What happened; nothing once the session is over.
    pub(super) async fn hear(&mut self, heard: Option<News>) {
        match heard {
            Some(News::Standing(standing)) => self.catch_up(*standing).await,
            Some(News::Events(events)) => {
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
            What::Began { prompt, facts } => {
                self.facts = Arc::clone(facts);
                self.messages = facts.messages;
                self.kept = Kept::OnDisk;
                self.foreign = (!self.is_ours(prompt)).then(|| Arc::clone(prompt));
                if let (Some(running), None) = (&self.running, &self.foreign) {
                    let request = Arc::clone(&running.request);
                    let begun = self.encoder.begin(facts, &running.prompt.message, &request);
                    for frame in &begun {
                        self.tell(Some(&request), frame);
                    }
                }
            }
            What::Run(step) => {
                self.messages = messages_after(self.messages, step);
                if let Step::AssistantMessage { usage, .. } = step {
                    self.context.used = Some(usage.total_input() + usage.output);
                } else if let Step::CompactionFinished { after_tokens, .. } = step {
                    self.context.used = Some(*after_tokens);
                }
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
            } if self.is_ours(prompt) => self.finish(outcome, totals).await,
            What::Ended {
                prompt,
                outcome,
                totals,
            } if self.foreign.as_ref() == Some(prompt) => {
                self.finish_foreign(prompt, outcome, totals);
            }
            What::TakenBack { prompt } if self.is_ours(prompt) => self.cancel_running().await,
            What::Refused(Refused {
                what: Place::Prompt(prompt),
                reason,
            }) if self.is_ours(prompt) => self.fail_running(reason).await,
            What::Refused(refused) => self.refused(refused),
            What::Asked(asked) => self.asked(request, asked, event.at),
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
            | What::Ended { .. }
            | What::Repeated { .. }
            | What::Queued { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing => {}
        }
    }

    /// Whether this is the request that is worked on.
    fn is_ours(&self, prompt: &str) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| *running.request == *prompt)
    }

    /// Where the session stands, of which something was not heard.
    async fn catch_up(&mut self, standing: Standing) {
        let Standing {
            facts,
            messages,
            working,
            questions,
            ..
        } = standing;
        // What was changed in it meanwhile counts.
        (self.open.mode, self.open.model) = (None, None);
        (self.facts, self.messages) = (facts, messages);
        self.partial.clear();
        let is_at_ours = working.as_ref().is_some_and(|prompt| self.is_ours(prompt));
        self.foreign = working.filter(|_| !is_at_ours);
        let known: Vec<_> = self.questions.iter().map(|(it, _)| &it.question).collect();
        let is_open = |question: &Arc<str>| {
            let mut open = questions.iter();
            open.any(|open| open.asked.question == *question)
        };
        let gone = known.into_iter().filter(|question| !is_open(question));
        for question in gone.cloned().collect::<Vec<_>>() {
            self.close_question(&question, WITHDRAWN);
        }
        let (_, snapshot) = self.snapshot().await;
        self.tell(None, &snapshot);
        for open in questions {
            let mut known = self.questions.iter();
            if !known.any(|(asked, _)| asked.question == open.asked.question) {
                self.asked(open.exchange.as_ref(), &open.asked, open.since);
            }
        }
        if !is_at_ours {
            // It may have ended: the session says so, and does nothing twice.
            self.tell_again().await;
        }
    }

    /// What somebody else had worked on has ended.
    fn finish_foreign(&mut self, prompt: &PromptId, outcome: &Ending, totals: &RunTotals) {
        self.foreign = None;
        self.totals = totals.clone();
        self.partial.clear();
        self.idle_since = Instant::now();
        for frame in self.encoder.end(outcome, totals) {
            self.tell(Some(prompt), &frame);
        }
    }

    fn asked(&mut self, request: Option<&Arc<str>>, asked: &Asked, since: Timestamp) {
        let event = self.encoder.question(asked);
        let patience = SignedDuration::try_from(self.shared.limits.patience);
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
        let how = match &answered.by {
            By::Operator(Consent::Allow { .. }) => "allow",
            By::Operator(Consent::Deny { .. } | Consent::Nobody | Consent::TimedOut) => "deny",
            By::Replied(Reply::Accept(_)) => "accept",
            By::Replied(Reply::Decline) => "decline",
            By::Replied(Reply::Cancel | Reply::Nobody) => "cancel",
            By::Withdrawn => WITHDRAWN,
        };
        self.close_question(&answered.question, how);
        let event = json!({"type": "answered", "question": answered.question, "how": how});
        self.tell(request, &event);
    }

    /// A question can be answered no more.
    pub(super) fn close_question(&mut self, question: &Arc<str>, how: &'static str) {
        let before = self.questions.len();
        self.questions
            .retain(|(asked, _)| asked.question != *question);
        if self.questions.len() < before {
            if self.answered.len() >= REMEMBERED {
                self.answered.pop_front();
            }
            self.answered.push_back((Arc::clone(question), how));
        }
    }

    /// What waited in the session was taken out of it.
    async fn cancel_running(&mut self) {
        if let Some(running) = self.running.take() {
            let result = self.encoder.cancelled();
            self.settle(&running.request, Last::Cancelled, vec![result])
                .await;
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
        if let Some(mut hosted) = self.hosted.take() {
            hosted.gone().await;
        }
        self.foreign = None;
        self.partial.clear();
        self.idle_since = Instant::now();
        self.settings.abandon();
        self.questions.clear();
        self.fail_running(reason).await;
    }
}
