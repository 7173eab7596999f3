//! What comes into a run from outside while it goes on: another model, messages, an interrupt.

use std::sync::Arc;

use caliban_model::{Block, Message, Role};

use crate::event::Event;
use crate::outcome::Outcome;
use crate::run::Run;

/// What the model reads about an answer that was cut off.
const CUT_ANSWER: &str = "[Request interrupted by user]";
/// The same where its calls were running.
const CUT_CALLS: &str = "[Request interrupted by user for tool use]";

/// Whether a message of the conversation is such a note, and not something that a person wrote.
pub fn tells_of_interrupt(message: &Message) -> bool {
    message.role == Role::User
        && match message.content.as_slice() {
            [Block::Text { text, .. }] => [CUT_ANSWER, CUT_CALLS].contains(&text.as_str()),
            _ => false,
        }
}

impl Run<'_> {
    /// Takes over what the operator has changed since the last turn.
    pub(crate) fn tune(&mut self) {
        let Some(dial) = &self.agent.dial else {
            return;
        };
        let reading = dial.read();
        if reading.turned != self.tuned {
            self.tuned = reading.turned;
            let settings = &mut self.agent.to_mut().settings;
            settings.model = reading.model;
            settings.reasoning = reading.reasoning;
        }
    }

    /// Takes in the messages that have come; tells whether there were any.
    pub(crate) async fn take_mail(&mut self) -> Result<Mail, Outcome> {
        let mut mail = Mail::None;
        while let Some((prompt, message)) = self.mail() {
            let message = match self.admit(message).await {
                Ok(message) => Arc::new(message),
                Err(Outcome::HookDenied { reason }) => {
                    let message = format!("a hook refused a message: {reason}");
                    self.refuse_mail(message).await;
                    continue;
                }
                Err(Outcome::Unusable { message }) => {
                    self.refuse_mail(format!("a message was refused: {message}"))
                        .await;
                    continue;
                }
                Err(outcome) => return Err(outcome),
            };
            mail = Mail::Some;
            self.conversation.push(Arc::clone(&message));
            self.listener.hear(Event::Steered { prompt, message }).await;
        }
        Ok(mail)
    }

    async fn refuse_mail(&self, message: String) {
        let subtype = "message_refused".into();
        self.listener.hear(Event::Notice { subtype, message }).await;
    }

    fn mail(&self) -> Option<(Arc<str>, Message)> {
        self.agent.mailbox.as_ref()?.take()
    }

    /// The operator stopped the run: what was said of an answer stays part of the conversation,
    /// and the model will read that it was cut off.
    pub(crate) async fn leave_note(&mut self) {
        let said = self.cut.take().filter(|text| !text.trim().is_empty());
        let said = said.map(|text| {
            let mut said = Message::new(Role::Assistant, vec![Block::text(text)]);
            said.origin = Some(self.origin());
            Arc::new(said)
        });
        let last = self.conversation.messages().last();
        let has_results = last.is_some_and(|message| {
            let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
            message.content.iter().any(is_result)
        });
        let note = match &said {
            None if has_results => CUT_CALLS,
            None | Some(_) => CUT_ANSWER,
        };
        let note = Arc::new(Message::user(note));
        self.conversation
            .extend(said.iter().chain([&note]).cloned());
        self.listener.hear(Event::Interrupted { said, note }).await;
    }
}

/// Whether something came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mail {
    Some,
    None,
}
