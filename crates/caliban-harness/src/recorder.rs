//! Writes a session down as it happens: every event that changes it is on disk before anybody
//! hears of it, and every call before it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_agent::{Agent, Dial, Effect, Event, Hearing, Reading, ToolCall, ToolOutput, Witness};
use caliban_model::{CostLedger, Message, Reasoning, Usage, Warning, WarningKind};
use caliban_sessions::{
    Accounts, CallStatus, Durability, Effects, Error, Health, Record, SessionName, SessionState,
    StateChange, Store, Writer,
};
use caliban_tools::{PlanMode, TodoList};
use futures::FutureExt;
use futures::future::BoxFuture;
use rust_decimal::Decimal;
use serde_json::json;

use crate::gate::Gate;
use crate::notice_sink::NoticeSink;
use crate::spending::{Going, Spending};

/// The writer of a session, shared by those who record.
#[derive(Debug, Clone)]
pub(crate) struct Recorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    writer: Mutex<Option<Writer>>,
    notice_sink: NoticeSink,
    watched: Watched,
    /// How hard the model thinks where nobody says it.
    usual: Reasoning,
    /// Usage and cost of the session before this process.
    before: (Usage, Decimal),
    spending: Spending,
    /// The last trouble that was told.
    trouble: Mutex<Option<String>>,
}

/// What shows the state of a session.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) gate: Arc<Gate>,
    pub(crate) plan: Arc<PlanMode>,
    pub(crate) todos: Arc<TodoList>,
    /// Which model the operator wants, and how hard it shall think.
    pub(crate) dial: Dial,
    /// The effort that the run was begun with, if anybody chose it.
    pub(crate) effort: Option<Reasoning>,
}

impl Recorder {
    pub(crate) fn new(
        writer: Writer,
        notice_sink: NoticeSink,
        watched: Watched,
        ledger: Arc<Mutex<CostLedger>>,
    ) -> Self {
        let SessionState { usage, cost, .. } = writer.state();
        let before = (*usage, *cost);
        Self(Arc::new(Inner {
            writer: Mutex::new(Some(writer)),
            notice_sink,
            usual: watched.dial.read().reasoning,
            watched,
            before,
            spending: Spending::new(ledger),
            trouble: Mutex::default(),
        }))
    }

    /// What the session is opened by.
    pub(crate) fn name(&self) -> Option<String> {
        self.with(|writer| writer.name().as_str().to_owned())
    }

    /// What the session came to before this process.
    pub(crate) fn before(&self) -> (Usage, Decimal) {
        self.0.before
    }

    /// What the session came to by now, of which everything is written down first.
    pub(crate) fn accounts(&self) -> Option<Accounts> {
        self.settle();
        self.with(|writer| writer.state().accounts_in_full())
    }

    /// Records what a run begins with, where it is not what was saved: who answers and where, and
    /// the conversation, which is a new session's system prompt, or another one than before. What
    /// is refused before this leaves a session as it was.
    pub(crate) fn begin(&self, agent: &Agent, messages: &[Arc<Message>]) {
        let change = self.with(|writer| {
            let state = writer.state();
            let changed = |old: &str, new: &str| (old != new).then(|| new.to_owned());
            let cwd = agent.workspace.root();
            StateChange {
                provider: changed(&state.provider, agent.provider.id()),
                model: changed(&state.model, &agent.settings.model),
                program_version: changed(&state.program_version, env!("CARGO_PKG_VERSION")),
                cwd: (state.cwd != cwd).then(|| cwd.to_owned()),
                ..StateChange::default()
            }
        });
        self.note_change(change);
        self.replaced(messages);
    }

    /// Records the conversation where it is another one than was saved.
    fn replaced(&self, messages: &[Arc<Message>]) {
        let record = self.with(|writer| {
            let saved = &writer.state().messages;
            (saved != messages).then(|| Record::compaction(saved, messages))
        });
        if let Some(Some(record)) = record {
            self.append(record);
        }
    }

    /// Does something with the writer; nothing once everything is final.
    pub(crate) fn with_writer<T>(&self, work: impl FnOnce(&mut Writer) -> T) -> Option<T> {
        self.with(work)
    }

    /// The same for a session that nothing was ever recorded in.
    pub(crate) fn begin_if_new(&self, agent: &Agent, messages: &[Arc<Message>]) {
        let is_new = self.with(|writer| writer.state().messages.is_empty());
        if is_new == Some(true) {
            self.begin(agent, messages);
        }
    }

    /// Gives the session's files another name; nothing where it has it already.
    pub(crate) fn rename(&self, store: &Store, to: &SessionName) -> Result<(), String> {
        let renamed = self.with(|writer| store.rename_open(writer, to));
        let warnings = renamed
            .ok_or("the session is closed")?
            .map_err(|error| error.to_string())?;
        for warning in warnings {
            self.0.tell(&warning.to_string());
        }
        Ok(())
    }

    /// Gives the session another title.
    pub(crate) fn entitle(&self, title: &str) -> Result<(), String> {
        let text = title.to_owned();
        let record = Record::Title { text };
        match self.with(|writer| writer.append(record, Durability::Written)) {
            Some(result) => result.map_err(|error| error.to_string()),
            None => Err("the session is closed".to_owned()),
        }
    }

    /// Records what an event changes. Only the end of a run takes time.
    pub(crate) fn record(&self, event: &Event) -> Option<BoxFuture<'_, ()>> {
        self.0.spending.count(event);
        match event {
            Event::PromptAccepted { prompt } => self.message(prompt),
            Event::SentOn { message }
            | Event::Steered { message, .. }
            | Event::ToolResults { message } => self.message(message),
            Event::Interrupted { said, note } => {
                said.iter()
                    .chain([note])
                    .for_each(|message| self.message(message));
            }
            Event::AssistantMessage {
                message,
                usage,
                cost,
            } => {
                if !message.content.is_empty() {
                    self.message(message);
                }
                self.append(self.0.spending.answer(message, *usage, *cost, None));
            }
            Event::HistoryReplaced { messages } => self.replaced(messages),
            Event::TurnEnded { .. } => self.turn_ended(),
            Event::Notice { subtype, message } => self.append(notice(subtype, message)),
            // Which route answered is part of the session.
            Event::Warning(Warning {
                kind: kind @ WarningKind::Rerouted { .. },
                message,
            }) => self.append(notice(kind.subtype(), message)),
            Event::Nested { parent, event } => self.record_nested(parent, event),
            Event::Finished { .. } => {
                return Some(async move { self.run_ended().await }.boxed());
            }
            // Calls are recorded by the witness, answers when they are complete.
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
            | Event::Retrying(_)
            | Event::Warning(_)
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. } => {}
        }
        None
    }

    /// Records what an event of a sub-agent changes here: its conversation is its own, its costs
    /// are not.
    fn record_nested(&self, parent: &Arc<str>, event: &Event) {
        match event {
            Event::AssistantMessage {
                message,
                usage,
                cost,
            } => {
                let answer = self.0.spending.answer(message, *usage, *cost, Some(parent));
                self.append(answer);
            }
            Event::PromptAccepted { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::ToolReady { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::ToolStarted { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::ToolFinished { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::Retrying(_)
            | Event::Warning(_)
            | Event::Notice { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. }
            | Event::Nested { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// Records what a part of the session says beside its work, once there is something that it
    /// can be beside of.
    pub(crate) fn record_aside(&self, event: &Event) {
        if let (true, Event::Notice { subtype, message }) = (self.has_begun(), event) {
            let record = notice(subtype, message);
            // Trouble with it would be told by such a remark again.
            let _ = self.with(|writer| writer.append(record, Durability::Written));
        }
    }

    /// Whether there is a conversation.
    fn has_begun(&self) -> bool {
        self.with(|writer| !writer.state().messages.is_empty()) == Some(true)
    }

    /// Makes everything final, what was chosen after the last prompt too. Nothing can be recorded
    /// after this.
    pub(crate) async fn close(&self) -> Result<(), String> {
        if self.has_begun() {
            self.note_state();
        }
        let Some(writer) = self.lock().take() else {
            return Ok(());
        };
        blocking(move || writer.close().map_err(|error| error.to_string())).await
    }

    pub(crate) fn message(&self, message: &Arc<Message>) {
        self.append(Record::Message(Arc::clone(message)));
    }

    /// Writes down what was spent without an answer of its own.
    fn settle(&self) {
        for record in self.0.spending.rest() {
            self.append(record);
        }
    }

    /// The end of a turn reaches the disk while the next call to the model is under way.
    fn turn_ended(&self) {
        self.0
            .spending
            .work(Going::On)
            .into_iter()
            .for_each(|record| self.append(record));
        self.append(Record::TurnEnded {});
        self.note_state();
        let Some(handle) = self.with(Writer::sync_handle) else {
            return;
        };
        match handle {
            Ok(handle) => {
                let inner = Arc::clone(&self.0);
                tokio::task::spawn_blocking(move || {
                    if let Err(error) = handle.sync() {
                        inner.tell(&error.to_string());
                    }
                });
            }
            Err(error) => self.0.tell(&error.to_string()),
        }
    }

    async fn run_ended(&self) {
        self.settle();
        // A command that found nothing to do begins no session; what it spent is written down.
        let has_spent = self.with(|writer| writer.state().usage != Usage::default());
        if !self.has_begun() && has_spent != Some(true) {
            return;
        }
        self.0
            .spending
            .work(Going::Over)
            .into_iter()
            .for_each(|record| self.append(record));
        self.note_state();
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let result = inner.with(|writer| writer.sync().and_then(|()| writer.tidy()));
            if let Some(Err(error)) = result {
                inner.tell(&error.to_string());
            }
        })
        .await;
    }

    /// Records what a command changed about the session itself. One that nobody named and that has
    /// no prompt is not begun by this.
    pub(crate) fn note_choice(&self, agent: &Agent, messages: &[Arc<Message>]) {
        let is_kept = self.with(|writer| {
            let state = writer.state();
            state.is_named() || !state.messages.is_empty()
        });
        if is_kept == Some(true) {
            self.begin_if_new(agent, messages);
            self.note_state();
        }
    }

    /// Records model, effort, mode, plan and tasks where they changed.
    fn note_state(&self) {
        let watched = &self.0.watched;
        let Reading {
            model, reasoning, ..
        } = watched.dial.read();
        let mode = watched.gate.recorded_mode();
        let todos = json!(watched.todos.items().as_ref());
        let plan_mode = watched.plan.is_active();
        let is_told = watched.effort.is_some() || reasoning != self.0.usual;
        let change = self.with(|writer| {
            let state = writer.state();
            StateChange {
                model: (*state.model != *model).then(|| model.as_ref().to_owned()),
                // What only the settings say is not kept: they may say something else next time.
                effort: (state.effort != Some(reasoning) && (is_told || state.effort.is_some()))
                    .then_some(reasoning),
                mode: (state.mode.as_deref() != Some(mode)).then(|| mode.to_owned()),
                plan_mode: (state.plan_mode != plan_mode).then_some(plan_mode),
                todos: (state.todos != todos).then_some(todos),
                ..StateChange::default()
            }
        });
        self.note_change(change);
    }

    fn note_change(&self, change: Option<StateChange>) {
        if let Some(change) = change
            && change != StateChange::default()
        {
            self.append(Record::State(Box::new(change)));
        }
    }

    fn append(&self, record: Record) {
        let result = self.with(|writer| writer.append(record, Durability::Written));
        if let Some(Err(error)) = result {
            self.0.tell(&error.to_string());
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Writer) -> T) -> Option<T> {
        self.0.with(work)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.0.lock()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Writer) -> T) -> Option<T> {
        self.lock().as_mut().map(work)
    }

    /// Says at once what cannot be saved; the same trouble once.
    fn tell(&self, trouble: &str) {
        let mut told = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_deref() != Some(trouble) {
            *told = Some(trouble.to_owned());
            // Saying it is recorded, too, which may fail the same way.
            drop(told);
            self.notice_sink.say(Event::Notice {
                subtype: "session_not_saved".into(),
                message: format!("the session cannot be saved: {trouble}"),
            });
        }
    }
}

impl Witness for Recorder {
    fn for_elsewhere(self: Arc<Self>) -> Option<Arc<dyn Witness>> {
        Some(self)
    }

    /// A call is on disk before it runs; one that changes something does not run otherwise.
    fn before_run<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let effects = match call.effect {
                Effect::ReadOnly | Effect::Session => Effects::ReadOnly,
                Effect::Writes | Effect::Executes | Effect::Delegates => Effects::SideEffects,
            };
            let record = Record::ToolIntent {
                id: call.id.to_string(),
                agent: call.agent.as_ref().map(ToString::to_string),
                name: call.name.to_string(),
                effects,
            };
            if effects == Effects::ReadOnly {
                self.append(record);
                return Ok(());
            }
            let inner = Arc::clone(&self.0);
            let result: Result<(), Error> = blocking(move || {
                inner
                    .with(|writer| {
                        if let Health::Unsaved { .. } = writer.health() {
                            writer.retry()?;
                        }
                        writer.append(record, Durability::Synced)
                    })
                    .unwrap_or(Ok(()))
            })
            .await;
            result.map_err(|error| {
                self.0.tell(&error.to_string());
                format!(
                    "{} did not run, because the session cannot be saved: {error}",
                    call.name
                )
            })
        }
        .boxed()
    }

    fn after_end<'a>(&'a self, call: &'a ToolCall, output: &'a ToolOutput) -> BoxFuture<'a, ()> {
        self.append(done(call, output));
        async {}.boxed()
    }

    fn over<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    fn at_stop(&self, _: Hearing) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

fn done(call: &ToolCall, output: &ToolOutput) -> Record {
    Record::ToolDone {
        id: call.id.to_string(),
        agent: call.agent.as_ref().map(ToString::to_string),
        status: if output.is_error() {
            CallStatus::Failed
        } else {
            CallStatus::Ok
        },
        content: match call.agent {
            None => output.content.clone(),
            Some(_) => Vec::new(),
        },
    }
}

fn notice(subtype: &str, message: &str) -> Record {
    Record::Notice(caliban_sessions::Notice {
        subtype: subtype.to_owned(),
        message: message.to_owned(),
    })
}

/// Runs work that waits for the disk where it holds nobody up. If that place is gone, the program
/// is ending.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
