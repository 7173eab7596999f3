//! The agent and its loop. The whole life of a run is [`Run::turns`]; what happens in each phase
//! is in the modules it calls.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use caliban_model::{Block, CancellationToken, CostLedger, Message, Provider, Role, StopReason};
use serde_json::Value;

use crate::answer::MAX_CORRECTIONS;
use crate::compaction::Part;
use crate::company::{Company, retype};
use crate::conversation::Conversation;
use crate::dial::Dial;
use crate::dispatch::{Dispatch, tell};
use crate::event::{CompactionReason, Event, RunTotals};
use crate::hook_event::{HookEvent, NotificationKind};
use crate::listener::Listener;
use crate::mailbox::Mailbox;
use crate::meanwhile::Mail;
use crate::operator::SharedOperator;
use crate::outcome::Outcome;
use crate::reply::Reply;
use crate::roles::{PromptVerdict, StopVerdict};
use crate::run::Run;
use crate::settings::Settings;
use crate::toolbox::Toolbox;
use crate::workspace::Workspace;

/// A model with its tools, rules and limits. Cheap to clone; holds no conversation.
#[derive(Debug, Clone)]
pub struct Agent {
    pub provider: Arc<dyn Provider>,
    pub tools: Toolbox,
    pub company: Company,
    /// Who is asked for consent.
    pub operator: SharedOperator,
    pub workspace: Arc<Workspace>,
    pub settings: Settings,
    /// Shared by all agents of a session, so that limits hold for their sum.
    pub ledger: Arc<Mutex<CostLedger>>,
    pub session_id: Arc<str>,
    /// Whom this one works for: the id of another agent's call; nothing for the session's own.
    pub works_for: Option<Arc<str>>,
    /// Where messages come from that join a run between two turns.
    pub mailbox: Option<Mailbox>,
    /// Where model and effort are changed while a run goes on.
    pub dial: Option<Dial>,
}

impl Agent {
    /// Works on a prompt until the model has finished or something ends the run. Everything that
    /// happens is told to `listener`, last of all the outcome; `conversation` is left valid for
    /// the next run on every path.
    pub async fn run(
        &self,
        conversation: &mut Conversation,
        prompt: Message,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let mut run = Run::new(self, conversation, listener, cancel);
        let outcome = match run.begin(prompt).await {
            Ok(()) => match run.turns().await {
                Err(outcome) => outcome,
            },
            Err(outcome) => outcome,
        };
        self.end(run, outcome).await
    }

    /// Shortens a conversation because the operator wants it, with a hint at what matters.
    pub async fn compact(
        &self,
        conversation: &mut Conversation,
        hint: Option<&str>,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let mut run = Run::new(self, conversation, listener, cancel);
        let outcome = match run.condense(hint).await {
            Ok(text) => Outcome::obeyed(text),
            Err(outcome) => outcome,
        };
        self.end(run, outcome).await
    }

    /// Puts a summary in the place of a part of a conversation.
    pub async fn compact_part(
        &self,
        conversation: &mut Conversation,
        part: Part,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let mut run = Run::new(self, conversation, listener, cancel);
        let outcome = match run.condense_part(part).await {
            Ok(text) => Outcome::obeyed(text),
            Err(outcome) => outcome,
        };
        self.end(run, outcome).await
    }

    /// Says what happened so far and changes nothing.
    pub async fn recap(
        &self,
        conversation: &mut Conversation,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> (Outcome, RunTotals) {
        let mut run = Run::new(self, conversation, listener, cancel);
        let outcome = match run.recap().await {
            Ok(text) => Outcome::obeyed(text),
            Err(outcome) => outcome,
        };
        self.end(run, outcome).await
    }

    /// Makes one call because the operator wants it. It is judged like the model's own, and the
    /// conversation knows nothing of it.
    pub async fn call(
        &self,
        id: &str,
        tool: &str,
        input: Value,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) {
        let message = Message::new(
            Role::Assistant,
            vec![Block::ToolUse {
                id: id.to_owned(),
                name: tool.to_owned(),
                input,
                private: None,
            }],
        );
        // What is witnessed is told to the model when the session goes on.
        let company = Company {
            witnesses: Vec::new(),
            ..self.company.clone()
        };
        Dispatch {
            tools: &self.tools,
            company: &company,
            agent: self.works_for.as_ref(),
            operator: &*self.operator,
            turn: 0,
            workspace: &self.workspace,
            session_id: &self.session_id,
            parallel: self.settings.parallel_tools,
            capping: &self.settings.capping,
            listener,
            cancel,
        }
        .run(&message)
        .await;
    }

    /// Forgets everything: what is left is this system prompt.
    pub async fn clear(
        &self,
        conversation: &mut Conversation,
        messages: Vec<Arc<Message>>,
        listener: &dyn Listener,
    ) {
        if conversation.messages() == messages {
            return;
        }
        conversation.replace(messages.clone());
        listener.hear(Event::HistoryReplaced { messages }).await;
    }

    async fn end(&self, mut run: Run<'_>, outcome: Outcome) -> (Outcome, RunTotals) {
        let is_own = self.works_for.is_none();
        if outcome == Outcome::Cancelled && is_own && run.has_begun {
            run.leave_note().await;
        }
        let listener = run.listener;
        let totals = run.finish(&outcome).await;
        let event = Event::Finished {
            outcome: outcome.clone(),
            totals: Box::new(totals.clone()),
        };
        listener.hear(event).await;
        (outcome, totals)
    }

    /// About how much of the model's window the descriptions of tools take.
    pub fn tool_tokens(&self) -> u64 {
        self.tools.current().spec_bytes().div_ceil(4)
    }

    pub(crate) fn ledger(&self) -> std::sync::MutexGuard<'_, CostLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a turn leads.
enum Next {
    Turn,
    Tools,
}

impl Run<'_> {
    /// Request, answer, tools, and again; leaves only with an outcome.
    async fn turns(&mut self) -> Result<Infallible, Outcome> {
        loop {
            self.tune();
            self.take_mail().await?;
            self.check_limits()?;
            self.make_room(CompactionReason::Threshold).await?;
            let Some(reply) = self.ask_model().await? else {
                // The conversation did not fit and was compacted.
                continue;
            };
            match self.after(reply).await? {
                Next::Turn => {}
                Next::Tools => {
                    self.run_tools().await?;
                    self.end_turn().await;
                }
            }
        }
    }

    /// Takes the prompt into the conversation, unless a hook refuses it.
    async fn begin(&mut self, prompt: Message) -> Result<(), Outcome> {
        let prompt = Arc::new(self.admit(prompt).await?);
        self.has_begun = true;
        self.conversation.push(Arc::clone(&prompt));
        self.listener.hear(Event::PromptAccepted { prompt }).await;
        Ok(())
    }

    /// A prompt as it can be sent and as hooks let it pass.
    pub(crate) async fn admit(&mut self, prompt: Message) -> Result<Message, Outcome> {
        let taken = self.agent.company.take_in_prompt(prompt);
        let mut prompt = match self.cancel.run_until_cancelled(taken).await {
            None => return Err(Outcome::Cancelled),
            Some(Ok(prompt)) => prompt,
            Some(Err(message)) => return Err(Outcome::Unusable { message }),
        };
        let verdict = self.agent.company.before_prompt(&prompt);
        let Some(verdict) = self.cancel.run_until_cancelled(verdict).await else {
            return Err(Outcome::Cancelled);
        };
        match verdict {
            PromptVerdict::Accept => {}
            PromptVerdict::AcceptWith(text) => {
                prompt.content.push(Block::text(text));
            }
            PromptVerdict::Replace {
                prompt: text,
                addition,
            } => {
                retype(&mut prompt, &text);
                prompt.content.extend(addition.map(Block::text));
            }
            PromptVerdict::Deny { reason } => return Err(Outcome::HookDenied { reason }),
        }
        Ok(prompt)
    }

    /// Decides what an answer means for the run.
    async fn after(&mut self, reply: Reply) -> Result<Next, Outcome> {
        let cost = self.charge(&reply).await;
        self.note_text(reply.message.text());
        match reply.stop {
            StopReason::Refusal => {
                return Err(Outcome::Refusal {
                    detail: reply.detail,
                });
            }
            StopReason::ContentFilter => {
                return Err(Outcome::ContentFilter {
                    detail: reply.detail,
                });
            }
            StopReason::ContextExceeded => {
                let complaint = "the model's context window is full".to_owned();
                self.shorten(complaint).await?;
                return Ok(Next::Turn);
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::Pause
            | StopReason::Other(_) => {}
        }
        let calls = reply.message.tool_uses().count();
        self.accept(&reply, cost).await;
        match reply.stop {
            // A call cut off by the limit must not run, whatever it looks like.
            StopReason::MaxTokens => {
                self.end_turn().await;
                Err(Outcome::MaxTokens)
            }
            StopReason::Pause => {
                self.end_turn().await;
                Ok(Next::Turn)
            }
            _ if calls > 0 => Ok(Next::Tools),
            _ => {
                self.end_turn().await;
                self.check_budget()?;
                self.continue_or_stop(&reply.message).await
            }
        }
    }

    /// The model has finished: a hook may send it on, or a message that has come.
    async fn continue_or_stop(&mut self, message: &Message) -> Result<Next, Outcome> {
        let text = message.text();
        if let Some(correction) = self.hold_to_schema(&text)? {
            self.send_on(correction).await;
            return Ok(Next::Turn);
        }
        let limits = &self.agent.settings.limits;
        if self.continuations < limits.max_continuations {
            let verdict = self.agent.company.before_stop(&text);
            match self.cancel.run_until_cancelled(verdict).await {
                None => return Err(Outcome::Cancelled),
                Some(StopVerdict::Stop) => {}
                Some(StopVerdict::Continue { message }) => {
                    self.continuations += 1;
                    self.send_on(message).await;
                    return Ok(Next::Turn);
                }
            }
        }
        // What came at the last moment is still answered.
        match self.take_mail().await? {
            Mail::Some => Ok(Next::Turn),
            Mail::None => Err(Outcome::Success { text }),
        }
    }

    /// What the model is to be told when its final answer has not the form asked for.
    fn hold_to_schema(&mut self, text: &str) -> Result<Option<String>, Outcome> {
        let Some(answer) = &self.agent.settings.answer else {
            return Ok(None);
        };
        match answer.check(text) {
            Ok(value) => {
                self.structured = Some(value);
                Ok(None)
            }
            // Without a turn left for a correction this answer is the final one.
            Err(problem) if self.corrections < MAX_CORRECTIONS && self.has_turns() => {
                self.corrections += 1;
                Ok(Some(answer.correction(&problem)))
            }
            Err(message) => Err(Outcome::SchemaMismatch { message }),
        }
    }

    async fn send_on(&mut self, text: String) {
        let message = Arc::new(Message::user(text));
        self.conversation.push(Arc::clone(&message));
        self.listener.hear(Event::SentOn { message }).await;
    }

    async fn finish(&mut self, outcome: &Outcome) -> RunTotals {
        let totals = self.totals();
        // The end of an agent that works for another is not the session's.
        if self.agent.works_for.is_some() {
            return totals;
        }
        let event = match outcome {
            Outcome::Success { .. } | Outcome::Obeyed { .. } => HookEvent::Stopped {
                usage: totals.usage,
            },
            failure => HookEvent::StopFailure {
                outcome: failure.clone(),
            },
        };
        tell(&self.agent.company, &event, self.cancel).await;
        let event = HookEvent::Notification {
            kind: NotificationKind::Ended,
            message: match outcome.message() {
                None => "caliban has finished".to_owned(),
                Some(message) => format!("caliban has stopped: {message}"),
            },
        };
        tell(&self.agent.company, &event, self.cancel).await;
        totals
    }
}
