//! A session takes prompts back while it lives: everything that hangs on the conversation follows.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{Conversation, Event, Listener, Outcome, Part, RunTotals};
use caliban_checkpoints::{Plan, Restored};
use caliban_model::{BuiltInTool, CancellationToken, Message, file_path};
use caliban_session::{Restore, Rewind};

use crate::rewind_report;
use crate::rewinding::{Rewinder, point, position};
use crate::session::{Session, Stage};

/// Why there is nothing to take back.
const UNKEPT: &str = "this session keeps no checkpoints: it is not saved, or \
    `CALIBAN_CHECKPOINT_DISABLED` is set";

impl Session {
    /// Takes prompts back and says what came of it.
    pub(crate) async fn rewind(
        &mut self,
        rewind: Rewind,
        told: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let part: fn(usize) -> Part = match rewind.what {
            Restore::SummarizeFrom => Part::From,
            Restore::SummarizeUpTo => Part::UpTo,
            Restore::Both | Restore::Code | Restore::Conversation => {
                let outcome = match self.take_back(rewind, told).await {
                    Ok(text) => Outcome::obeyed(text),
                    Err(message) => Outcome::Misused { message },
                };
                return (outcome, self.totals.clone());
            }
        };
        match self.split_at(rewind.to) {
            Ok(at) => self.condense_part(part(at), told, cancel).await,
            Err(message) => (Outcome::Misused { message }, self.totals.clone()),
        }
    }

    /// What there is to go back to, as a list.
    pub(crate) fn rewind_points(&self) -> Result<String, String> {
        let history = self.rewinder()?.history().map_err(|it| it.to_string())?;
        Ok(rewind_report::points(&history))
    }

    /// What a rewind would do.
    pub(crate) fn rewind_preview(&self, rewind: Rewind) -> Result<String, String> {
        let rewinder = self.rewinder()?;
        let plan = rewinder.plan(rewind).map_err(|it| it.to_string())?;
        let text = rewind_report::preview(&rewinder, &plan);
        Ok(if text.is_empty() {
            "no file would change".to_owned()
        } else {
            text
        })
    }

    fn rewinder(&self) -> Result<Rewinder, String> {
        let checkpoints = self.checkpoints.as_ref().ok_or(UNKEPT)?;
        Ok(checkpoints.rewinder())
    }

    async fn take_back(&mut self, rewind: Rewind, told: &dyn Listener) -> Result<String, String> {
        let rewinder = self.rewinder()?;
        let recorder = self.recorder.clone().ok_or(UNKEPT)?;
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.settle().await;
        }
        if self.stage == Stage::New {
            recorder.begin(&self.agent, self.conversation.messages());
        }
        let working = move || {
            let done = recorder.with_writer(|writer| -> Result<(Plan, Restored), String> {
                rewinder.finish(writer).map_err(|it| it.to_string())?;
                let plan = rewinder.plan(rewind).map_err(|it| it.to_string())?;
                let restored = rewinder.carry_out(rewind, &plan, writer);
                Ok((plan, restored.map_err(|it| it.to_string())?))
            });
            done.unwrap_or_else(|| Err("the session is closed".to_owned()))
        };
        let done = tokio::task::spawn_blocking(working).await;
        // Whatever became of it, the session is what its journal says.
        self.follow_journal(told).await;
        let (plan, restored) = done.map_err(|error| error.to_string())??;
        let mut text = rewind_report::outcome(&restored) + &rewind_report::remainder(&plan);
        if let (Some(_), Restore::Both | Restore::Conversation) = (restored.checkpoint, rewind.what)
        {
            text.push_str(&rewind_report::conversation(rewind.to));
        }
        let jobs = self.jobs.as_ref().map(|jobs| jobs.listed());
        let running = jobs.iter().flatten().filter(|job| job.end.is_none());
        if let running @ 1.. = running.count() {
            let _ = writeln!(
                text,
                "{running} background jobs go on, and may change files again"
            );
        }
        match restored.checkpoint {
            Some(index) => {
                let before = index.saturating_sub(1);
                let _ = write!(text, "`/rewind {before}` takes this back");
            }
            None => text.truncate(text.trim_end().len()),
        }
        Ok(text)
    }

    /// Finishes what was interrupted in this process, so that the next prompt can be kept.
    pub(crate) async fn finish_rewind(&mut self, told: &dyn Listener) {
        let (Ok(rewinder), Some(recorder)) = (self.rewinder(), self.recorder.clone()) else {
            return;
        };
        if !matches!(rewinder.is_interrupted(), Ok(true)) {
            return;
        }
        let working = move || recorder.with_writer(|writer| rewinder.finish(writer));
        let message = match tokio::task::spawn_blocking(working).await {
            Ok(Some(Ok(Some(restored)))) => finished(&restored),
            Ok(Some(Err(error))) => format!("a rewind could not be finished: {error}"),
            Ok(Some(Ok(None)) | None) | Err(_) => return,
        };
        let subtype = "checkpoint".into();
        told.hear(Event::Notice { subtype, message }).await;
        self.follow_journal(told).await;
    }

    /// Makes the living session what its journal says it is.
    async fn follow_journal(&mut self, told: &dyn Listener) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        let state = recorder.with_writer(|writer| {
            let state = writer.state();
            (state.messages.clone(), state.todos.clone())
        });
        let Some((messages, todos)) = state else {
            return;
        };
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.look_again().await;
        }
        if messages == self.conversation.messages() {
            return;
        }
        if let Ok(todos) = serde_json::from_value(todos) {
            // A list that was taken over once is valid.
            let _ = self.todos.replace(todos);
        }
        let seen = self.seen_in(&messages);
        self.files.retain(|path| seen.contains(path));
        if let Some(memory) = &self.memory {
            memory.recall(&messages);
        }
        self.conversation = Conversation::new(messages.clone());
        told.hear(Event::HistoryReplaced { messages }).await;
    }

    /// The files that a conversation has read or written.
    fn seen_in(&self, messages: &[Arc<Message>]) -> HashSet<PathBuf> {
        let calls = messages.iter().flat_map(|message| message.tool_uses());
        let files = calls.filter(|(_, name, _)| BuiltInTool::named(name).is_some());
        let paths = files.filter_map(|(_, _, input)| file_path(input));
        let resolved = paths.filter_map(|path| self.agent.workspace.resolve_freely(path).ok());
        resolved.map(|resolved| resolved.real).collect()
    }

    /// How many messages of the conversation were there at the end of a prompt.
    fn split_at(&self, to: u32) -> Result<usize, String> {
        let history = self.rewinder()?.history().map_err(|it| it.to_string())?;
        if to > history.last() {
            return Err(format!("there is no prompt {to}"));
        }
        let recorder = self.recorder.as_ref().ok_or(UNKEPT)?;
        let messages = recorder.with_writer(|writer| {
            let state = writer.state();
            let mark = point(&history, state, to).map_err(|it| it.to_string())?;
            let then = state.conversation_at(position(mark));
            let then = then.ok_or("what was said then is no longer kept")?;
            // Where it was condensed since, there is no such place in it.
            if state.messages.starts_with(&then) {
                Ok(then.len())
            } else {
                Err(format!(
                    "the conversation was changed since prompt {to}; there is no such place in it"
                ))
            }
        });
        messages.unwrap_or_else(|| Err("the session is closed".to_owned()))
    }
}

/// What is told of a rewind that was finished late.
pub(crate) fn finished(restored: &Restored) -> String {
    let (done, failed) = (restored.done.len(), restored.failed.len());
    format!("a rewind that was interrupted is finished: {done} restored, {failed} not")
}
