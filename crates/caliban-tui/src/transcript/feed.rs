//! What an agent does, as cells: the session's own, and each that a call runs.

use std::sync::Arc;
use std::time::Instant;

use caliban_agent::{AnswerStep, CompactionReason, Event, ToolStatus};
use caliban_model::{Block, Message, Shown};
use serde_json::Value;

use crate::transcript::calls::{Call, CallState, Ending};
use crate::transcript::cell::{Cell, CellKind, Spoken, Tone};
use crate::transcript::picture::Picture;

/// The tool that runs sub-agents.
const SUB_AGENT: &str = "AgentTool";

/// What is said of an answer that was stopped.
pub(crate) const INTERRUPTED: &str = "Interrupted.";

/// Cells in the order things happened.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    pub(crate) cells: Vec<Cell>,
    /// Where the cells of an answer begin that is not whole yet.
    answer: Option<usize>,
}

impl Feed {
    pub(crate) fn push(&mut self, cell: Cell) {
        self.cells.push(cell);
    }

    /// Takes in what happened.
    pub(crate) fn hear(&mut self, event: &Event, now: Instant) {
        match event {
            Event::TextDelta { text } => self.say(text, Aloud::Yes),
            Event::ThinkingDelta { text } => self.say(text, Aloud::No),
            Event::Answer(step) => self.answer(step),
            Event::AssistantMessage { message, .. } => self.settle(message),
            Event::ToolReady {
                id, name, input, ..
            } => self.ready(id, name, input),
            Event::ToolStarted { id, .. } => {
                self.with_call(id, |call| call.state = CallState::Running { since: now });
            }
            Event::ToolProgress { id, text } => self.with_call(id, |call| call.wrote(text)),
            Event::ToolFinished {
                id,
                output,
                duration,
                denial,
                ..
            } => self.with_call(id, |call| {
                call.output = String::new();
                let ending = Ending::told(output, *duration, denial.clone());
                call.state = CallState::Over(Box::new(ending));
            }),
            Event::PermissionAsked { inquiry } => {
                self.with_call(&inquiry.call.id, |call| call.state = CallState::Asked);
            }
            Event::PermissionAnswered { id, .. } => {
                self.with_call(id, |call| call.state = CallState::Ready);
            }
            Event::Nested { parent, event } => {
                self.with_call(parent, |call| call.inner.hear(event, now));
            }
            Event::Steered { message, .. } => self.push(Cell::prompt(&message.text())),
            Event::SentOn { message } => self.push(Cell::notice(Tone::Quiet, message.text())),
            Event::Interrupted { said, .. } => {
                match said {
                    Some(message) => self.settle(message),
                    None => self.void(),
                }
                self.push(Cell::notice(Tone::Warning, INTERRUPTED));
            }
            Event::Retrying(retry) => {
                if retry.shown == Shown::Superseded {
                    self.void();
                }
                let status = retry
                    .status
                    .map_or_else(String::new, |code| format!("HTTP {code}, "));
                self.push(Cell::notice(
                    Tone::Warning,
                    format!(
                        "Retry {} of {} in {:.1} s ({status}{}): {}",
                        retry.attempt,
                        retry.max_retries,
                        retry.delay.as_secs_f64(),
                        retry.category.as_str(),
                        retry.message
                    ),
                ));
            }
            Event::Warning(warning) => {
                self.push(Cell::notice(Tone::Warning, warning.message.as_str()));
            }
            Event::Notice { message, .. } => {
                self.push(Cell::notice(Tone::Warning, message.as_str()));
            }
            Event::CompactionStarted { reason } => {
                let why = match reason {
                    CompactionReason::Threshold => "the window is nearly full",
                    CompactionReason::TooLong => "it does not fit the window any more",
                    CompactionReason::Asked => "as asked",
                };
                let text = format!("The conversation is being condensed: {why}.");
                self.push(Cell::notice(Tone::Quiet, text));
            }
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            } => self.push(Cell::notice(
                Tone::Quiet,
                format!("Condensed from about {before_tokens} to {after_tokens} tokens."),
            )),
            Event::ToolResults { message } => {
                self.keep_results(message);
                self.hang_results(message);
            }
            Event::PromptAccepted { prompt } => {
                for (block, part) in Picture::all_of(prompt) {
                    let picture = Picture::new(prompt, block, part);
                    self.push(Cell::new(CellKind::Image(Box::new(picture))));
                }
            }
            Event::TurnStarted { .. }
            | Event::HistoryReplaced { .. }
            | Event::TurnEnded { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. } => {}
            Event::Finished { .. } => self.still(),
        }
    }

    fn say(&mut self, text: &str, aloud: Aloud) {
        self.answer.get_or_insert(self.cells.len());
        let last = self.cells.last_mut().map(|cell| &mut cell.kind);
        match (last, aloud) {
            (Some(CellKind::Answer(spoken @ Spoken::Live(_))), Aloud::Yes)
            | (Some(CellKind::Thinking(spoken @ Spoken::Live(_))), Aloud::No) => {
                spoken.push(text);
                self.touch_last();
            }
            (_, aloud) => {
                let mut spoken = Spoken::live();
                spoken.push(text);
                self.push(Cell::new(match aloud {
                    Aloud::Yes => CellKind::Answer(spoken),
                    Aloud::No => CellKind::Thinking(spoken),
                }));
            }
        }
    }

    fn answer(&mut self, step: &AnswerStep) {
        match step {
            // Also where what was told before is void.
            AnswerStep::Started { .. } => {
                self.void();
                self.answer = Some(self.cells.len());
            }
            AnswerStep::ToolBegun { id, name } => {
                let call = Call::new(Arc::clone(id), Arc::clone(name), Value::Null);
                self.push(Cell::new(CellKind::Call(Box::new(call))));
            }
            AnswerStep::ToolInput { json } => {
                if let Some(CellKind::Call(call)) = self.cells.last_mut().map(|cell| &mut cell.kind)
                {
                    call.written += json.len();
                }
                self.touch_last();
            }
            AnswerStep::Measured { .. }
            | AnswerStep::BlockEnded { .. }
            | AnswerStep::Stopped { .. } => {}
        }
    }

    /// What was shown of an answer that is not whole does not count.
    fn void(&mut self) {
        if let Some(begin) = self.answer.take() {
            self.cells.truncate(begin);
        }
    }

    /// The answer is whole: from here on its cells refer to the message.
    fn settle(&mut self, message: &Arc<Message>) {
        let begin = self.answer.take().unwrap_or(self.cells.len());
        let live: Vec<Cell> = self.cells.drain(begin.min(self.cells.len())..).collect();
        let folds: Vec<_> = live
            .iter()
            .filter(|cell| matches!(cell.kind, CellKind::Thinking(_)))
            .map(|cell| cell.fold)
            .collect();
        let mut folds = folds.into_iter();
        for (place, block) in message.content.iter().enumerate() {
            let kept = || Spoken::Kept(Arc::clone(message), place);
            match block {
                Block::Text { text, .. } if text.trim().is_empty() => {}
                Block::Text { .. } => self.push(Cell::new(CellKind::Answer(kept()))),
                Block::Thinking { text, .. } if text.trim().is_empty() => {}
                Block::Thinking { .. } => {
                    let mut cell = Cell::new(CellKind::Thinking(kept()));
                    cell.fold = folds.next().unwrap_or_default();
                    self.push(cell);
                }
                Block::RedactedThinking { .. } => self.push(Cell::new(CellKind::Redacted)),
                Block::ToolUse {
                    id, name, input, ..
                } => {
                    let call = Call::new(id.as_str().into(), name.as_str().into(), input.clone());
                    self.push(Cell::new(CellKind::Call(Box::new(call))));
                }
                Block::Image(_) => {
                    let picture = Picture::new(message, place, None);
                    self.push(Cell::new(CellKind::Image(Box::new(picture))));
                }
                Block::ToolResult { .. } | Block::Opaque { .. } => {}
            }
        }
    }

    fn ready(&mut self, id: &Arc<str>, name: &Arc<str>, input: &Value) {
        if self.call_at(id).is_none() {
            let call = Call::new(Arc::clone(id), Arc::clone(name), input.clone());
            self.push(Cell::new(CellKind::Call(Box::new(call))));
        }
        self.with_call(id, |call| {
            call.input = input.clone();
            call.state = CallState::Ready;
        });
    }

    fn touch_last(&mut self) {
        if let Some(cell) = self.cells.last_mut() {
            cell.touch();
        }
    }

    /// Results are in the conversation now.
    fn keep_results(&mut self, message: &Arc<Message>) {
        for (place, block) in message.content.iter().enumerate() {
            if let Block::ToolResult { tool_use_id, .. } = block {
                self.with_call(tool_use_id, |call| {
                    if let CallState::Over(ending) = &mut call.state {
                        ending.keep(message, place);
                    }
                });
            }
        }
    }

    /// Images that calls returned stand below the calls.
    pub(crate) fn hang_results(&mut self, message: &Arc<Message>) {
        for (block, part) in Picture::all_of(message) {
            let Some(Block::ToolResult { tool_use_id, .. }) = message.content.get(block) else {
                continue;
            };
            let call = self.call_at(tool_use_id).and_then(|at| self.cells.get(at));
            let name = call.and_then(|cell| match &cell.kind {
                CellKind::Call(call) => call.file_name(),
                _ => None,
            });
            let picture = Picture::new(message, block, part).named(name);
            self.push(Cell::new(CellKind::Image(Box::new(picture))));
        }
    }

    /// Nothing goes on any more: what did not end, will not.
    fn still(&mut self) {
        self.void();
    }

    /// Whether a command or a sub-agent is being waited for, which can go to the background.
    pub(crate) fn runs_movable(&self) -> bool {
        let calls = self.cells.iter().rev().map_while(|cell| match &cell.kind {
            CellKind::Call(call) => Some(call),
            _ => None,
        });
        calls.into_iter().any(|call| {
            let is_running = matches!(call.state, CallState::Running { .. });
            is_running && (call.input.get("command").is_some() || &*call.name == SUB_AGENT)
        })
    }

    pub(crate) fn with_call(&mut self, id: &str, change: impl FnOnce(&mut Call)) {
        if let Some(place) = self.call_at(id)
            && let Some(cell) = self.cells.get_mut(place)
        {
            if let CellKind::Call(call) = &mut cell.kind {
                change(call);
            }
            cell.touch();
        }
    }

    /// What the agent is called that a call runs: what it is for, else what kind it is.
    pub(crate) fn agent_of(&self, call: &str) -> String {
        let found = self.find(call);
        let text = |key: &str| found.and_then(|call| call.input.get(key)?.as_str());
        match (text("description"), text("subagent_type")) {
            (Some(about), Some(kind)) => format!("{about} ({kind})"),
            (Some(name), None) | (None, Some(name)) => name.to_owned(),
            (None, None) => format!("of call {call}"),
        }
    }

    /// How a call ended; nothing while it goes on.
    pub(crate) fn ended(&self, call: &str) -> Option<ToolStatus> {
        match &self.find(call)?.state {
            CallState::Over(ending) => Some(ending.status),
            _ => None,
        }
    }

    /// A call of this agent or of one that it runs.
    fn find(&self, id: &str) -> Option<&Call> {
        self.cells.iter().rev().find_map(|cell| match &cell.kind {
            CellKind::Call(call) if *call.id == *id => Some(&**call),
            CellKind::Call(call) => call.inner.find(id),
            _ => None,
        })
    }

    /// Calls are looked for from the end: it is nearly always one of the last.
    fn call_at(&self, id: &str) -> Option<usize> {
        self.cells.iter().rposition(|cell| match &cell.kind {
            CellKind::Call(call) => *call.id == *id,
            CellKind::Prompt(_)
            | CellKind::Answer(_)
            | CellKind::Thinking(_)
            | CellKind::Redacted
            | CellKind::Notice { .. }
            | CellKind::Report(_)
            | CellKind::Image(_) => false,
        })
    }
}

/// Whether the model says something or thinks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aloud {
    Yes,
    No,
}
