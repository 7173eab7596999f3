//! A session's events as updates for the client: what is said, what is called, what is planned and
//! what it costs. Deltas become chunks, the life of a call becomes one `tool_call` and its updates.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CompactionId, CompactionStatus, CompactionUpdate, ContentChunk, Cost, MessageId, Notice,
    NoticeSeverity, Plan, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, UsageUpdate,
};
use caliban_agent::{
    AnswerStep, Denial, Details, Event, Outcome, RunTotals, ToolOutput, ToolStatus,
};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};
use uuid::Uuid;

use super::shown;
use super::tools;

/// Whether a client said that it understands a kind of update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Yes,
    No,
}

/// Which updates a client understands beside those that every client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    pub notices: Taken,
    pub compaction: Taken,
}

/// Translates the events of one session, in their order.
#[derive(Debug)]
pub struct Projection {
    /// What relative paths are relative to.
    cwd: PathBuf,
    wishes: Wishes,
    ids: MessageIds,
    /// The messages that are being said.
    said: Option<MessageId>,
    thought: Option<MessageId>,
    /// Calls that have not ended.
    calls: HashMap<Arc<str>, ShownCall>,
    compaction: Option<CompactionId>,
    window: u64,
    used: u64,
    cost: Decimal,
    /// What is counted in `cost` of sessions before this process.
    earlier: Decimal,
}

/// Ids of messages that no other session has: consecutive from a random one.
#[derive(Debug)]
struct MessageIds(u128);

impl MessageIds {
    fn next(&mut self) -> MessageId {
        self.0 = self.0.wrapping_add(1);
        MessageId::new(Uuid::from_u128(self.0).to_string())
    }
}

/// A call as the client knows it.
#[derive(Debug)]
struct ShownCall {
    name: Arc<str>,
    input: Value,
    stage: Stage,
    /// The end of what it has written so far.
    written: String,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The model is writing it.
    Begun,
    /// It waits for consent or its turn, or runs.
    Ready,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Told,
    Untold,
}

impl Projection {
    /// A session in `cwd` that has cost this much; ids of messages begin behind `seed`.
    pub fn new(cwd: PathBuf, wishes: Wishes, seed: Uuid, earlier: Decimal) -> Self {
        Self {
            cwd,
            wishes,
            ids: MessageIds(seed.as_u128()),
            said: None,
            thought: None,
            calls: HashMap::new(),
            compaction: None,
            window: 0,
            used: 0,
            cost: earlier,
            earlier,
        }
    }

    /// How many tokens the model's window holds.
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    pub(super) fn next_id(&mut self) -> MessageId {
        self.ids.next()
    }

    pub(super) fn cwd(&self) -> &std::path::Path {
        &self.cwd
    }

    /// A message of its own that no model wrote.
    pub fn say(&mut self, text: &str) -> SessionUpdate {
        let id = self.ids.next();
        SessionUpdate::AgentMessageChunk(ContentChunk::new(shown::text(text)).message_id(id))
    }

    /// Something that a person should know, for clients that show such things.
    pub fn notice(&self, severity: NoticeSeverity, text: &str) -> Option<SessionUpdate> {
        match self.wishes.notices {
            Taken::Yes => Some(SessionUpdate::Notice(Notice::new(severity, text))),
            Taken::No => None,
        }
    }

    /// How the agent is called that this call runs, where it is known.
    pub fn agent(&self, call: &str) -> Option<String> {
        let call = self.calls.get(call)?;
        Some(tools::agent_name(&call.input))
    }

    /// What is told of an event at once; what calls write is told by [`Self::progress`].
    pub fn heard(&mut self, event: &Event) -> Vec<SessionUpdate> {
        match event {
            Event::TextDelta { text } if !text.is_empty() => {
                let id = self.said.get_or_insert_with(|| self.ids.next()).clone();
                let chunk = ContentChunk::new(shown::text(text)).message_id(id);
                vec![SessionUpdate::AgentMessageChunk(chunk)]
            }
            Event::ThinkingDelta { text } if !text.is_empty() => {
                let id = self.thought.get_or_insert_with(|| self.ids.next()).clone();
                let chunk = ContentChunk::new(shown::text(text)).message_id(id);
                vec![SessionUpdate::AgentThoughtChunk(chunk)]
            }
            Event::Answer(step) => self.step(step),
            Event::ToolReady {
                id,
                name,
                input,
                first_arg,
            } => self.ready(id, name, input, first_arg.as_deref()),
            Event::ToolStarted {
                id,
                name,
                first_arg,
            } => self.started(id, name, first_arg.as_deref()),
            Event::ToolProgress { id, text } => {
                self.wrote(id, text);
                Vec::new()
            }
            Event::ToolFinished {
                id,
                name,
                output,
                denial,
                ..
            } => self.finished(id, name, output, denial.as_ref()),
            Event::AssistantMessage { usage, cost, .. } => {
                self.end_messages();
                self.used = usage.total_input() + usage.output;
                self.cost += cost.unwrap_or_default();
                self.usage().into_iter().collect()
            }
            Event::CompactionStarted { .. } => self.compacting(),
            Event::CompactionFinished { after_tokens, .. } => {
                self.used = *after_tokens;
                let told = self.compacted(CompactionStatus::Completed);
                told.into_iter().chain(self.usage()).collect()
            }
            Event::Warning(warning) => self.warned(&warning.message),
            Event::Notice { message, .. } => self.warned(message),
            Event::Retrying(retry) => {
                let text = format!("the provider is asked again: {}", retry.message);
                self.warned(&text)
            }
            Event::Nested { parent, event } => {
                self.nested(parent, event.innermost().0);
                Vec::new()
            }
            Event::TurnStarted { .. } => {
                self.end_messages();
                Vec::new()
            }
            Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::PromptAccepted { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::Finished { .. } => Vec::new(),
        }
    }

    /// Whether calls have written what was not told yet.
    pub fn has_progress(&self) -> bool {
        let mut calls = self.calls.values();
        calls.any(|call| call.progress == Progress::Untold)
    }

    /// What calls have written so far, where it is news.
    pub fn progress(&mut self) -> Vec<SessionUpdate> {
        let news = self.calls.iter_mut();
        let news = news.filter(|(_, call)| call.progress == Progress::Untold);
        news.map(|(id, call)| {
            call.progress = Progress::Told;
            let content = shown::output(&call.written);
            let fields = ToolCallUpdateFields::new().content(Vec::from_iter(content));
            changed(id, fields)
        })
        .collect()
    }

    /// A prompt has ended: what the model did not get to finish is over, and what all cost.
    pub fn ended(&mut self, outcome: &Outcome, totals: &RunTotals) -> Vec<SessionUpdate> {
        self.end_messages();
        let mut told = self.drop_begun();
        told.extend(self.compacted(match outcome {
            Outcome::Cancelled => CompactionStatus::Cancelled,
            _ => CompactionStatus::Failed,
        }));
        let cost = self.earlier + totals.cost;
        if cost != self.cost {
            self.cost = cost;
            told.extend(self.usage());
        }
        told
    }

    fn end_messages(&mut self) {
        self.said = None;
        self.thought = None;
    }

    fn step(&mut self, step: &AnswerStep) -> Vec<SessionUpdate> {
        match step {
            AnswerStep::Started { .. } => {
                self.end_messages();
                self.drop_begun()
            }
            AnswerStep::ToolBegun { id, name } => {
                if &**name == tools::TASKS {
                    return Vec::new();
                }
                let call = ToolCall::new(Arc::clone(id), tools::title(name, None))
                    .name(name.to_string())
                    .kind(tools::kind(name));
                self.know(id, name, &Value::Null, Stage::Begun);
                vec![SessionUpdate::ToolCall(call)]
            }
            AnswerStep::Measured { .. }
            | AnswerStep::ToolInput { .. }
            | AnswerStep::BlockEnded { .. }
            | AnswerStep::Stopped { .. } => Vec::new(),
        }
    }

    fn know(&mut self, id: &Arc<str>, name: &Arc<str>, input: &Value, stage: Stage) {
        let call = ShownCall {
            name: Arc::clone(name),
            input: input.clone(),
            stage,
            written: String::new(),
            progress: Progress::Told,
        };
        self.calls.insert(Arc::clone(id), call);
    }

    fn ready(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        input: &Value,
        first_arg: Option<&str>,
    ) -> Vec<SessionUpdate> {
        let is_known = self.calls.contains_key(id);
        self.know(id, name, input, Stage::Ready);
        if &**name == tools::TASKS {
            return Vec::new();
        }
        let title = tools::title(name, first_arg);
        let locations = tools::locations(name, input, &self.cwd);
        let mut content = tools::changes(name, input, &self.cwd);
        content.extend(tools::proposal(name, input));
        if is_known {
            let fields = ToolCallUpdateFields::new()
                .title(title)
                .raw_input(input.clone())
                .locations(some(locations))
                .content(some(content));
            return vec![changed(id, fields)];
        }
        let call = ToolCall::new(Arc::clone(id), title)
            .name(name.to_string())
            .kind(tools::kind(name))
            .raw_input(input.clone())
            .locations(locations)
            .content(content);
        vec![SessionUpdate::ToolCall(call)]
    }

    fn started(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        first_arg: Option<&str>,
    ) -> Vec<SessionUpdate> {
        if &**name == tools::TASKS || !self.calls.contains_key(id) {
            return Vec::new();
        }
        let fields = ToolCallUpdateFields::new()
            .status(ToolCallStatus::InProgress)
            // It may run with another input than it was announced with.
            .title(tools::title(name, first_arg));
        vec![changed(id, fields)]
    }

    fn wrote(&mut self, id: &Arc<str>, text: &str) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        call.written.push_str(text);
        // Room for as much again, so that not every piece moves all of it.
        if call.written.len() > 2 * shown::OUTPUT {
            call.written = shown::tail(&call.written).to_owned();
        }
        call.progress = Progress::Untold;
    }

    /// Of the work of another agent its calls are shown, in the call that runs it, and what it
    /// costs.
    fn nested(&mut self, parent: &Arc<str>, event: &Event) {
        match event {
            Event::ToolStarted {
                name, first_arg, ..
            } => {
                let line = tools::title(name, first_arg.as_deref()) + "\n";
                self.wrote(parent, &line);
            }
            Event::AssistantMessage { cost, .. } => self.cost += cost.unwrap_or_default(),
            Event::PromptAccepted { .. }
            | Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::ToolReady { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::ToolFinished { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
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

    fn finished(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        output: &ToolOutput,
        denial: Option<&Denial>,
    ) -> Vec<SessionUpdate> {
        let call = self.calls.remove(id);
        if let Some(Details::Tasks(tasks)) = &output.details {
            return vec![SessionUpdate::Plan(Plan::new(tools::plan(tasks)))];
        }
        let mut told = Vec::new();
        if &**name == tools::TASKS {
            // Only what went wrong is shown as a call.
            let shown = ToolCall::new(Arc::clone(id), tools::title(name, None));
            told.push(SessionUpdate::ToolCall(shown.name(name.to_string())));
        }
        let (status, text) = match denial {
            Some(denial) => (ToolCallStatus::Failed, refusal(denial)),
            None => (status(output.status), shown::texts(&output.content)),
        };
        let mut fields = ToolCallUpdateFields::new()
            .status(status)
            .raw_output(raw_output(output, &text));
        let changes = match (tools::changed(output.details.as_ref()), &call) {
            (Some((diff, location)), _) => {
                fields = fields.locations(vec![location]);
                vec![diff]
            }
            (None, Some(call)) => tools::changes(&call.name, &call.input, &self.cwd),
            (None, None) => Vec::new(),
        };
        // Of an edit that worked the change says it all.
        let outputs: Vec<ToolCallContent> = match (denial, status) {
            (Some(_), _) => shown::output(&text).into_iter().collect(),
            (None, ToolCallStatus::Completed) if !changes.is_empty() => Vec::new(),
            (None, _) => shown::outputs(&output.content),
        };
        let content = changes.into_iter().chain(outputs);
        told.push(changed(id, fields.content(content.collect::<Vec<_>>())));
        told
    }

    /// Calls that the model had begun to write and will not make.
    fn drop_begun(&mut self) -> Vec<SessionUpdate> {
        let begun = |call: &ShownCall| call.stage == Stage::Begun;
        let mut ids: Vec<Arc<str>> = self
            .calls
            .iter()
            .filter(|(_, call)| begun(call))
            .map(|(id, _)| Arc::clone(id))
            .collect();
        ids.sort();
        ids.into_iter()
            .map(|id| {
                self.calls.remove(&id);
                let content = shown::output("The answer ended before the call was complete.");
                let fields = ToolCallUpdateFields::new()
                    .status(ToolCallStatus::Failed)
                    .content(Vec::from_iter(content));
                changed(&id, fields)
            })
            .collect()
    }

    fn compacting(&mut self) -> Vec<SessionUpdate> {
        if self.wishes.compaction == Taken::No {
            return Vec::new();
        }
        let id = CompactionId::new(self.ids.next().0);
        self.compaction = Some(id.clone());
        let update = CompactionUpdate::new(id, CompactionStatus::InProgress);
        vec![SessionUpdate::CompactionUpdate(update)]
    }

    fn compacted(&mut self, status: CompactionStatus) -> Option<SessionUpdate> {
        let id = self.compaction.take()?;
        Some(SessionUpdate::CompactionUpdate(CompactionUpdate::new(
            id, status,
        )))
    }

    fn warned(&self, text: &str) -> Vec<SessionUpdate> {
        let notice = self.notice(NoticeSeverity::Warning, text);
        notice.into_iter().collect()
    }

    /// How full the window is and what the session has cost; nothing where neither is known.
    fn usage(&self) -> Option<SessionUpdate> {
        let cost = self.cost.to_f64().filter(|amount| *amount > 0.0);
        let cost = cost.map(|amount| Cost::new(amount, "USD"));
        if self.window == 0 {
            return None;
        }
        let update = UsageUpdate::new(self.used, self.window).cost(cost);
        Some(SessionUpdate::UsageUpdate(update))
    }

    /// What a session that goes on takes of the window.
    pub fn goes_on(&mut self, used: u64) -> Option<SessionUpdate> {
        self.used = used;
        self.usage().filter(|_| used > 0)
    }
}

/// Nothing instead of an empty list, which would take away what was told before.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn changed(id: &Arc<str>, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(Arc::clone(id), fields))
}

fn status(status: ToolStatus) -> ToolCallStatus {
    match status {
        ToolStatus::Ok => ToolCallStatus::Completed,
        ToolStatus::Failed
        | ToolStatus::InvalidInput
        | ToolStatus::Denied
        | ToolStatus::CouldNotRun
        | ToolStatus::TimedOut
        | ToolStatus::Cancelled => ToolCallStatus::Failed,
    }
}

/// Why a call was not permitted, and what would permit it.
fn refusal(denial: &Denial) -> String {
    let remedy = denial.remedy.as_deref().unwrap_or_default();
    format!("Not permitted: {}\n{remedy}", denial.reason)
        .trim_end()
        .to_owned()
}

/// What a call came to, for programs.
fn raw_output(output: &ToolOutput, text: &str) -> Value {
    let mut raw = json!({"status": output.status, "output": text});
    if let Some(Details::Command {
        exit_code: Some(code),
        ..
    }) = &output.details
    {
        raw["exitCode"] = json!(code);
    }
    raw
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use caliban_agent::{CompactionReason, DenialSource};
    use serde_json::to_value;

    use super::*;

    fn projection(notices: Taken, compaction: Taken) -> Projection {
        let wishes = Wishes {
            notices,
            compaction,
        };
        let mut it = Projection::new("/w".into(), wishes, Uuid::from_u128(7), Decimal::ZERO);
        it.set_window(1_000);
        it
    }

    fn kinds(updates: &[SessionUpdate]) -> Vec<String> {
        let kind = |update: &SessionUpdate| to_value(update).unwrap()["sessionUpdate"].to_string();
        updates.iter().map(kind).collect()
    }

    fn ready(name: &str, input: Value) -> Event {
        Event::ToolReady {
            id: "c".into(),
            name: name.into(),
            input,
            first_arg: Some("x".to_owned()),
        }
    }

    fn finished(name: &str, output: ToolOutput, denial: Option<Denial>) -> Event {
        Event::ToolFinished {
            id: "c".into(),
            name: name.into(),
            output,
            duration: Duration::ZERO,
            denial,
        }
    }

    #[test]
    fn a_new_answer_is_a_new_message() {
        let mut it = projection(Taken::No, Taken::No);
        let text = || Event::TextDelta {
            text: "a".to_owned(),
        };
        let id = |updates: Vec<SessionUpdate>| to_value(&updates[0]).unwrap()["messageId"].clone();
        let (one, again) = (id(it.heard(&text())), id(it.heard(&text())));
        assert_eq!(one, again);
        let model = "m".into();
        it.heard(&Event::Answer(AnswerStep::Started { model }));
        assert_ne!(id(it.heard(&text())), one);
        let empty = Event::TextDelta {
            text: String::new(),
        };
        assert_eq!(it.heard(&empty), []);
    }

    #[test]
    fn what_a_call_writes_is_gathered_and_bounded() {
        let mut it = projection(Taken::No, Taken::No);
        it.heard(&ready("Bash", json!({"command": "x"})));
        assert!(!it.has_progress());
        for _ in 0..10 {
            let text = "y".repeat(shown::OUTPUT / 2);
            let id = "c".into();
            assert_eq!(it.heard(&Event::ToolProgress { id, text }), []);
        }
        assert!(it.has_progress());
        let told = to_value(it.progress()).unwrap();
        let text = told[0]["content"][0]["content"]["text"].as_str().unwrap();
        assert_eq!(text.len(), shown::OUTPUT);
        assert!(!it.has_progress());
        assert_eq!(it.progress(), []);
    }

    #[test]
    fn a_denial_says_why_and_what_helps() {
        let mut it = projection(Taken::No, Taken::No);
        it.heard(&ready("Bash", json!({"command": "x"})));
        let denial = Denial {
            source: DenialSource::Rule,
            reason: "a rule denies it".to_owned(),
            rule: None,
            remedy: Some("remove the rule".to_owned()),
        };
        let output = ToolOutput::new(ToolStatus::Denied, "denied");
        let told = to_value(it.heard(&finished("Bash", output, Some(denial)))).unwrap();
        assert_eq!(told[0]["status"], "failed");
        let text = &told[0]["content"][0]["content"]["text"];
        assert_eq!(*text, "Not permitted: a rule denies it\nremove the rule");
    }

    #[test]
    fn calls_that_were_only_begun_end() {
        let mut it = projection(Taken::No, Taken::No);
        let begun = AnswerStep::ToolBegun {
            id: "c".into(),
            name: "Bash".into(),
        };
        assert_eq!(
            kinds(&it.heard(&Event::Answer(begun.clone()))),
            ["\"tool_call\""]
        );
        let told = it.ended(&Outcome::Cancelled, &RunTotals::default());
        assert_eq!(to_value(&told[0]).unwrap()["status"], "failed");
        // One that got to run ends by its result.
        it.heard(&Event::Answer(begun));
        it.heard(&ready("Bash", json!({})));
        assert_eq!(it.ended(&Outcome::Cancelled, &RunTotals::default()), []);
    }

    #[test]
    fn only_what_the_client_understands_is_told() {
        let started = Event::CompactionStarted {
            reason: CompactionReason::Asked,
        };
        let notice = Event::Notice {
            subtype: "x".into(),
            message: "m".to_owned(),
        };
        let mut mute = projection(Taken::No, Taken::No);
        assert_eq!(mute.heard(&started), []);
        assert_eq!(mute.heard(&notice), []);
        let mut able = projection(Taken::Yes, Taken::Yes);
        assert_eq!(kinds(&able.heard(&notice)), ["\"notice\""]);
        assert_eq!(kinds(&able.heard(&started)), ["\"compaction_update\""]);
        let told = able.ended(&Outcome::Cancelled, &RunTotals::default());
        assert_eq!(to_value(&told[0]).unwrap()["status"], "cancelled");
    }

    #[test]
    fn what_it_cost_before_counts() {
        let wishes = Wishes {
            notices: Taken::No,
            compaction: Taken::No,
        };
        let earlier = Decimal::new(5, 1);
        let mut it = Projection::new("/w".into(), wishes, Uuid::nil(), earlier);
        it.set_window(1_000);
        let totals = RunTotals {
            cost: Decimal::new(25, 2),
            ..RunTotals::default()
        };
        let success = Outcome::Success {
            text: String::new(),
        };
        let told = to_value(it.ended(&success, &totals)).unwrap();
        assert_eq!(told[0]["cost"], json!({"amount": 0.75, "currency": "USD"}));
    }
}
