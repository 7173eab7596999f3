//! `/loop`: the last prompt again and again, until it has been repeated often enough or something
//! speaks against it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use caliban_agent::{Event, Listener, Outcome, RunTotals};
use caliban_model::{Block, CancellationToken, Message, Role};
use caliban_slash::Repetition;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::session::Session;

/// How often it is looked during a rest whether somebody wrote something.
const LOOK: Duration = Duration::from_millis(100);

/// Hears one exchange that consists of several runs: they have one end.
struct Together<'a> {
    listener: &'a dyn Listener,
    /// The end of the last run.
    end: Mutex<Option<Event>>,
    /// Whether somebody joined in.
    steered: AtomicBool,
}

impl Listener for Together<'_> {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        match event {
            end @ Event::Finished { .. } => {
                *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
                async {}.boxed()
            }
            event => {
                if let Event::Steered { .. } = &event {
                    self.steered.store(true, Ordering::Relaxed);
                }
                self.listener.hear(event)
            }
        }
    }
}

impl Session {
    /// Ends with the outcome of the last run: at the first that fails, when somebody writes
    /// something, or when all of them together had as many turns as one may have. The budget holds
    /// for their sum anyway.
    pub(crate) async fn repeat(
        &mut self,
        repetition: Repetition,
        told: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let Some(prompt) = self.repeatable() else {
            let message = "`/loop` repeats the last prompt, and there is none yet".to_owned();
            return (Outcome::Misused { message }, self.totals.clone());
        };
        let together = Together {
            listener: told,
            end: Mutex::default(),
            steered: AtomicBool::new(false),
        };
        let most = self.agent.settings.limits.max_turns;
        let before = self.totals.turns;
        let mut last = (Outcome::MaxTurns { limit: most }, self.totals.clone());
        for time in 0..repetition.times {
            if time > 0 && !self.rest(repetition.pause, cancel).await {
                break;
            }
            let had = self.totals.turns.saturating_sub(before);
            self.agent.settings.limits.max_turns = most.saturating_sub(had);
            last = self.run(prompt.clone(), &together, cancel).await;
            let is_disturbed = together.steered.load(Ordering::Relaxed);
            if !matches!(last.0, Outcome::Success { .. }) || is_disturbed {
                break;
            }
        }
        self.agent.settings.limits.max_turns = most;
        if let Outcome::MaxTurns { limit } = &mut last.0 {
            *limit = most;
        }
        if cancel.is_cancelled() {
            last.0 = Outcome::Cancelled;
        }
        let end = together.end.into_inner();
        if let Some(end) = end.unwrap_or_else(PoisonError::into_inner) {
            told.hear(end).await;
        }
        last
    }

    /// Whether it may go on after a rest: nobody wrote or wants it to end.
    async fn rest(&self, pause: Duration, cancel: &CancellationToken) -> bool {
        let until = Instant::now() + pause;
        loop {
            let mail = self.agent.mailbox.as_ref();
            if cancel.is_cancelled() || mail.is_some_and(|mail| !mail.is_empty()) {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            cancel.run_until_cancelled(sleep(left.min(LOOK))).await;
        }
    }

    /// The prompt that was sent last: in this process as it was written, else as the conversation
    /// has it.
    fn repeatable(&self) -> Option<Message> {
        if let Some(prompt) = &self.last_prompt {
            return Some(prompt.clone());
        }
        let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
        let messages = self.conversation.messages().iter().rev();
        let mut prompts = messages
            .filter(|message| message.role == Role::User && !message.content.iter().any(is_result));
        prompts.next().map(|message| Message::clone(message))
    }
}
