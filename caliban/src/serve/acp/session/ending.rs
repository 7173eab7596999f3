//! Prompts end, and so does a session: whoever asked has exactly one answer.

use caliban_agent::{Outcome, RunTotals};
use caliban_protocol::acp::v1::{
    CloseSessionResponse, Error, PromptResponse, RequestId, StopReason,
};
use caliban_protocol::acp::{Ending, ending};
use caliban_session::{Command, Others, PromptId, Restore, Rewind};
use uuid::Uuid;

use crate::console::note;

use super::{Live, Outstanding, Wanted};

impl Live {
    pub(super) fn taken(&mut self, prompt: &PromptId) -> Option<Outstanding> {
        let place = self.prompts.iter().position(|it| it.prompt == *prompt)?;
        Some(self.prompts.remove(place))
    }

    /// The one answer to a prompt.
    pub(super) async fn end(&mut self, prompt: &PromptId, outcome: &Outcome, totals: &RunTotals) {
        if let Some((_, request)) = self.declined.take_if(|(id, _)| id == prompt) {
            let reason = match outcome {
                Outcome::Obeyed { .. } => StopReason::Refusal,
                // It stays part of the conversation, so it must not be said that it does not.
                _ => StopReason::EndTurn,
            };
            return self.answer(&request, Ok(PromptResponse::new(reason)));
        }
        self.tell_progress();
        let updates = self.projection.ended(outcome, totals);
        self.tell_all(updates);
        let Some(it) = self.taken(prompt) else {
            return;
        };
        if let Outcome::Internal { message } = outcome {
            note(&format!("caliban: {message}"));
        }
        let answer = match ending(outcome) {
            Ending::Stopped(reason, text) => {
                let said = text.map(|text| self.projection.say(&text));
                self.tell_all(said);
                Ok(PromptResponse::new(reason))
            }
            Ending::Failed(_) if it.wanted == Wanted::NoMore => {
                Ok(PromptResponse::new(StopReason::Cancelled))
            }
            Ending::Failed(error) => Err(error),
            Ending::Refused(text) => {
                let said = self.projection.say(&text);
                self.tell(said);
                return self.drop_declined(it.request).await;
            }
        };
        self.answer(&it.request, answer);
    }

    /// To a client a refusal means that the prompt does not count from here on, so it is taken
    /// out of the conversation first. Where that cannot be done, the turn has just ended.
    pub(super) async fn drop_declined(&mut self, request: RequestId) {
        let Some(to) = self.before_last().filter(|_| self.prompts.is_empty()) else {
            return self.answer(&request, Ok(PromptResponse::new(StopReason::EndTurn)));
        };
        let id: PromptId = Uuid::new_v4().to_string().into();
        self.declined = Some((id.clone(), request));
        let rewind = Rewind {
            to,
            what: Restore::Conversation,
            others: Others::Spared,
        };
        self.send(Command::Rewind { id, rewind }).await;
    }

    /// The prompt before the last one; 0 where that was the first.
    pub(super) fn before_last(&self) -> Option<u32> {
        let history = self.desk.rewinder()?.history().ok()?;
        let standing = history.standing();
        let last = standing.last()?;
        Some(standing.range(..last).next_back().copied().unwrap_or(0))
    }

    /// The session is over: nobody waits for an answer in vain.
    pub(super) fn leave(&mut self) {
        let open = self.questions.clear();
        self.withdraw(open);
        let ended = || Error::new(-32603, "the session has ended");
        let prompts = std::mem::take(&mut self.prompts);
        for it in prompts {
            match it.wanted {
                Wanted::NoMore => {
                    let stopped = PromptResponse::new(StopReason::Cancelled);
                    self.answer(&it.request, Ok(stopped));
                }
                Wanted::Still => self.refuse(&it.request, ended()),
            }
        }
        let turned = std::mem::take(&mut self.turned).into_iter();
        let declined = self.declined.take().into_iter();
        let requests = turned
            .map(|it| it.request)
            .chain(declined.map(|(_, it)| it));
        for request in requests.collect::<Vec<_>>() {
            self.refuse(&request, ended());
        }
        for request in std::mem::take(&mut self.closing) {
            self.answer(&request, Ok(CloseSessionResponse::new()));
        }
    }
}
