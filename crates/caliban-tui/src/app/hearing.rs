//! What the session tells, and what came of what was asked for.

use std::sync::Arc;

use caliban_agent::{Details, Event, Outcome};
use caliban_compose::{Atom, History, Inserted};
use caliban_model::{Message, Role};
use caliban_session::{ClosedWhy, Command, Facts, Place, Refused, Restore, SessionEvent, What};
use caliban_settings::PermissionMode;
use rust_decimal::Decimal;
use serde_json::Value;

use crate::app::answering::allow;
use crate::app::commands::CLEAR;
use crate::app::effect::{Clipboard, Done, Effect};
use crate::app::queueing::Reordering;
use crate::app::state::{App, Link, Reader, Run};
use crate::host::{Look, Opened, Which};
use crate::keys::KeyTable;
use crate::layers::{ContextPanel, Layer, OpeningQuestion, OpeningSubject, Pager, RewindPanel};
use crate::preferences::{Lines, Preferences, Screen};
use crate::programs::Programs;
use crate::transcript::{Cell, CellKind, Feed, Tone, cells_of};

/// How long a run must have taken for its end to be told to somebody who does not look.
const LONG: std::time::Duration = std::time::Duration::from_secs(10);
/// Calls that are remembered for what a rule would have matched.
const CALLS: usize = 500;

impl App {
    pub(crate) fn hear(&mut self, event: &Arc<SessionEvent>) {
        match &event.what {
            What::Opened(facts) => self.opened_with(facts),
            What::Began { prompt, facts } => {
                self.know(facts);
                self.begin(prompt);
            }
            What::Run(event) => self.step(event),
            What::TakenBack { prompt } => self.taken_back(prompt),
            What::Ended {
                prompt,
                outcome,
                totals,
            } => {
                self.queue.retain(|waiting| waiting.id != *prompt);
                self.status.cost = totals.cost;
                self.status.turns = totals.turns;
                self.go_back(prompt, outcome);
                self.end(outcome);
            }
            What::Refused(refused) => self.refused(refused),
            What::Asked(asked) => {
                self.questions.add(asked, self.now);
                let is_empty = self.editor.is_empty();
                self.questions.settle(self.now, self.last_typed, is_empty);
                self.call_operator("caliban asks for your answer");
            }
            What::Answered(answered) => self.questions.remove(&answered.question, self.now),
            What::ModeChanged { mode } => mode.as_str().clone_into(&mut self.status.mode),
            What::ModelChanged { model } => self.status.model = model.to_string(),
            What::Queued { .. }
            | What::Closing
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_) => {}
            What::Idle => self.effect(Effect::RunStatus),
            What::Closed { why, trouble } => {
                if let Some(trouble) = trouble {
                    let text = format!("The session was not saved: {trouble}");
                    self.feed.push(Cell::notice(Tone::Error, text));
                }
                match why {
                    ClosedWhy::Shutdown | ClosedWhy::Abandoned => {}
                    ClosedWhy::Budget => {
                        let text = "The budget is spent; the session is over.";
                        self.feed.push(Cell::notice(Tone::Error, text));
                    }
                    ClosedWhy::Crashed => {
                        let text = "The session broke; /resume opens it again.";
                        self.feed.push(Cell::notice(Tone::Error, text));
                    }
                }
            }
        }
    }

    fn opened_with(&mut self, facts: &Arc<Facts>) {
        self.know(facts);
        for warning in &facts.warnings {
            self.feed
                .push(Cell::notice(Tone::Warning, warning.as_str()));
        }
        self.effect(Effect::RunStatus);
    }

    fn know(&mut self, facts: &Arc<Facts>) {
        self.status.model.clone_from(&facts.model);
        self.status.mode.clone_from(&facts.permission_mode);
        self.status.facts = Some(Arc::clone(facts));
    }

    /// A prompt is worked on.
    fn begin(&mut self, prompt: &Arc<str>) {
        let own = self.queue.iter().position(|waiting| waiting.id == *prompt);
        if let Some(place) = own {
            let waiting = self.queue.remove(place);
            self.overlay = waiting.overlay.map(|reader| (reader, waiting.text.clone()));
            self.is_clearing = waiting.text == CLEAR;
            if waiting.overlay.is_none() {
                self.feed.push(Cell::prompt(&waiting.text));
            }
        }
        self.run = Some(Run {
            since: self.now,
            written: 0,
        });
        self.show_title();
    }

    fn end(&mut self, outcome: &Outcome) {
        let run = self.run.take();
        let took = run.map(|run| self.now.saturating_duration_since(run.since));
        self.status.took = took;
        let overlay = self.overlay.take();
        if std::mem::take(&mut self.is_clearing) && matches!(outcome, Outcome::Obeyed { .. }) {
            self.feed = Feed::default();
            self.printed = 0;
            self.status.used = 0;
        }
        let name = self.desk.as_ref().and_then(|desk| desk.session_name());
        if name.is_some() {
            self.name = name;
        }
        match outcome {
            Outcome::Success { .. } | Outcome::Cancelled => {}
            Outcome::Obeyed { text, .. } if text.is_empty() => {}
            Outcome::Obeyed { text, report } => match overlay {
                Some((reader, _)) if self.may_open(reader) => {
                    let layer = reading(reader.title, text, report.as_deref());
                    self.layers.push(layer);
                }
                overlay => {
                    self.echo(overlay);
                    self.feed
                        .push(Cell::new(CellKind::Report(text.as_str().into())));
                }
            },
            outcome => {
                self.echo(overlay);
                if let Some(message) = outcome.message() {
                    self.feed.push(Cell::notice(Tone::Error, message));
                }
            }
        }
        if took.is_some_and(|took| took >= LONG) {
            self.call_operator("caliban is done");
        }
        self.show_title();
    }

    /// What stands in the transcript after all says what it answers.
    fn echo(&mut self, overlay: Option<(Reader, String)>) {
        if let Some((_, line)) = overlay {
            self.feed.push(Cell::prompt(&line));
        }
    }

    /// Prompts were taken back: what was said is another, and the first that went can be written
    /// anew.
    fn go_back(&mut self, prompt: &str, outcome: &Outcome) {
        let Some(rewinding) = self.rewinding.take_if(|it| *it.id == *prompt) else {
            return;
        };
        let is_other = match rewinding.what {
            Restore::Both | Restore::Conversation => matches!(outcome, Outcome::Obeyed { .. }),
            Restore::Code | Restore::SummarizeFrom | Restore::SummarizeUpTo => false,
        };
        if !is_other {
            return;
        }
        let is_said = |message: &&Arc<Message>| message.role != Role::System;
        let said: Vec<_> = self.messages.iter().filter(is_said).cloned().collect();
        self.feed = cells_of(&said);
        self.printed = 0;
        self.status.used = 0;
        self.todos.clear();
        self.scroll.go_to_end();
        if let Some(text) = rewinding.next.filter(|_| self.editor.is_empty()) {
            self.editor.set_text(&text);
            self.draft_edited();
        }
    }

    /// A step of the work.
    fn step(&mut self, event: &Event) {
        let (inner, _) = event.innermost();
        match inner {
            Event::AssistantMessage { usage, cost, .. } => {
                self.status.cost += cost.unwrap_or_default();
                if let Some(run) = &mut self.run {
                    run.written += usage.output;
                }
                if let Event::AssistantMessage { message, .. } = event {
                    self.status.used = usage.total_input() + usage.output;
                    self.messages.push(Arc::clone(message));
                }
            }
            Event::ToolReady { name, input, .. } => {
                if self.calls.len() == CALLS {
                    self.calls.remove(0);
                }
                self.calls.push((name.to_string(), input.clone()));
            }
            Event::Notice { subtype, .. } if **subtype == *"config_change" => {
                self.effect(Effect::LookAgain);
            }
            Event::ToolFinished { output, .. } => {
                if let Some(Details::Tasks(tasks)) = &output.details {
                    self.take_tasks(tasks);
                }
            }
            Event::PromptAccepted { .. }
            | Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::ToolStarted { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
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
        match event {
            Event::PromptAccepted { prompt: message }
            | Event::SentOn { message }
            | Event::ToolResults { message } => self.messages.push(Arc::clone(message)),
            Event::Steered { prompt, message } => {
                self.queue.retain(|waiting| waiting.id != *prompt);
                self.messages.push(Arc::clone(message));
            }
            Event::HistoryReplaced { messages } => self.messages.clone_from(messages),
            Event::Interrupted { said, note } => {
                self.messages.extend(said.clone());
                self.messages.push(Arc::clone(note));
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
            | Event::AssistantMessage { .. }
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
        let now = self.now;
        self.feed.hear(event, now);
    }

    fn refused(&mut self, refused: &Refused) {
        match &refused.what {
            Place::Mode => {
                self.say(refused.reason.clone());
                let mode = PermissionMode::Default;
                self.effect(Effect::Send(Command::SetMode { mode }));
            }
            Place::Prompt(id) => {
                let text = format!("Not sent: {}", refused.reason);
                self.taken_back(id);
                self.say(text);
            }
            Place::TakeBack(id) => {
                self.not_taken_back(id);
                self.say(refused.reason.clone());
            }
            Place::Question(_) => self.say(refused.reason.clone()),
            Place::Model | Place::Rule | Place::Server(_) | Place::Job(_) => {
                self.say(refused.reason.clone());
            }
        }
    }

    /// The session tells nothing any more.
    pub(crate) fn silence(&mut self) {
        self.run = None;
        self.questions.clear();
        if let Link::Open(_) = self.link {
            self.link = Link::Over;
        }
        if let Some(which) = self.next.take() {
            self.open(which);
        }
    }

    pub(crate) fn done(&mut self, done: Done) {
        match done {
            Done::Looked(Ok(look)) => self.looked(*look),
            // What was chosen at the screen stays as long as the settings are the same.
            Done::LookedAgain(Ok(look)) if look.preferences == self.configured => {}
            Done::LookedAgain(Ok(look)) => {
                self.prefer(look.preferences, look.programs);
                self.effect(Effect::RunStatus);
            }
            Done::Glimpsed(past) => self.glimpse(&past),
            Done::Looked(Err(error)) | Done::Opened(Err(error)) => self.failed(error),
            // What is set in it counts from here on, for the face too.
            Done::Trusted(Ok(())) => self.effect(Effect::Look),
            Done::Trusted(Err(error)) => {
                self.say(format!("The workspace is not trusted: {error}"));
                self.ask_about_imports();
            }
            Done::ImportsJudged(judged) => {
                if let Err(error) = judged {
                    self.say(error);
                }
                self.open(Which::Asked);
            }
            Done::Opened(Ok(opened)) => self.opened(*opened),
            Done::Edited(Ok(text)) => {
                self.editor.set_text(text.trim_end_matches('\n'));
                self.draft_edited();
            }
            Done::InputEdited { question, edited } => {
                let edited = edited.and_then(|text| {
                    serde_json::from_str(&text)
                        .map_err(|error| format!("That is not JSON: {error}"))
                });
                match edited {
                    Ok(input) => self.answer(question, allow(Some(input))),
                    Err(error) => self.say(error),
                }
            }
            Done::Files(files) => {
                self.files = files;
                if self.menu.is_some() {
                    self.draft_edited();
                }
            }
            Done::Sessions(listed) => self.sessions_done(listed),
            Done::Points(Ok(points)) => {
                self.layers.push(Layer::Rewind(RewindPanel::new(points)));
            }
            Done::Previewed(rewind, preview) => {
                if let Some(Layer::Rewind(panel)) = self.layers.last_mut() {
                    panel.previewed(rewind, preview);
                }
            }
            Done::Panel(done) => self.panel_done(done),
            Done::Models(Ok(models)) => self.choose_model(models),
            Done::MemoryEdited { value, edited } => self.memory_edited(&value, edited),
            Done::KeyMissing { provider, error } => self.key_missing(provider, &error),
            Done::Histories(entries) => {
                if let Some(Layer::History(search)) = self.layers.last_mut() {
                    search.loaded(entries);
                }
            }
            Done::RulesSaved(verdict, saved) => self.rules_saved(verdict, saved),
            Done::Clipboard(Ok(Clipboard::Image(image))) => {
                if self.editor.insert_atom(Atom::Image(image)) == Inserted::NoRoom {
                    self.say("There are too many images already");
                }
                self.draft_edited();
            }
            Done::Clipboard(Ok(Clipboard::Text(text))) => {
                self.editor.paste(&text);
                self.draft_edited();
            }
            Done::Clipboard(Ok(Clipboard::Nothing)) => self.say("The clipboard is empty"),
            Done::Edited(Err(error))
            | Done::LookedAgain(Err(error))
            | Done::Models(Err(error))
            | Done::Points(Err(error))
            | Done::Clipboard(Err(error)) => self.say(error),
            Done::Theme { name, read } => self.themed(&name, read),
            Done::Picture { id, drawn } => self.pictured(id, drawn),
            Done::Status(text) => self.status.custom = text,
        }
    }

    fn looked(&mut self, look: Look) {
        if look.preferences.lines == Lines::Wanted {
            return self.effect(Effect::TalkInLines);
        }
        self.prefer(look.preferences, look.programs);
        self.history = History::open(look.history);
        self.histories = look.histories;
        self.imports = look.imports;
        if look.untrusted.is_empty() {
            self.ask_about_imports();
        } else {
            self.ask_first(OpeningSubject::Trust, look.untrusted);
        }
    }

    /// Asks about files from outside that nobody has decided about, or begins the session.
    pub(crate) fn ask_about_imports(&mut self) {
        let imports = std::mem::take(&mut self.imports);
        if imports.is_empty() {
            self.open(Which::Asked);
        } else {
            self.ask_first(OpeningSubject::Imports, imports);
        }
    }

    fn ask_first(&mut self, subject: OpeningSubject, listed: Vec<String>) {
        let workspace = self.cwd.display().to_string();
        let question = OpeningQuestion::new(subject, workspace, listed, self.now, self.last_typed);
        self.layers.push(Layer::Opening(question));
    }

    /// Looks and listens as the settings say.
    fn prefer(&mut self, preferences: Preferences, programs: Programs) {
        self.configured = preferences.clone();
        self.keys = KeyTable::new(&preferences.bindings);
        if self.preferences.keys != preferences.keys {
            self.editor.set_keys(preferences.keys);
        }
        self.view = preferences.view;
        self.effect(Effect::Configure {
            status: preferences.status.clone(),
            files: preferences.files.clone(),
            programs,
        });
        if preferences.status.is_none() {
            self.status.custom = None;
        }
        self.preferences = preferences;
        if self.preferences.mouse != self.mouse {
            self.mouse = self.preferences.mouse;
            self.effect(Effect::CaptureMouse(self.mouse));
        }
        self.retheme();
        if let Some(screen) = self.preferences.screen {
            self.draw_on(screen);
        }
    }

    /// Shows the end of what was said before, until all of it is there.
    fn glimpse(&mut self, past: &[Arc<Message>]) {
        // What is in the scrollback could not be taken back.
        if self.desk.is_some() || self.screen == Screen::Inline {
            return;
        }
        let said = std::mem::replace(&mut self.feed, cells_of(past)).cells;
        self.glimpsed = self.feed.cells.len();
        self.feed.cells.extend(said);
    }

    pub(crate) fn open(&mut self, which: Which) {
        self.link = Link::Opening;
        self.effect(Effect::Open(which));
    }

    fn opened(&mut self, opened: Opened) {
        // What was said about the keys before the first session is still to be read.
        let glimpsed = std::mem::take(&mut self.glimpsed).min(self.feed.cells.len());
        let said = match self.desk {
            None => self.feed.cells.split_off(glimpsed),
            Some(_) => Vec::new(),
        };
        self.feed = cells_of(&opened.past);
        self.feed.cells.extend(said);
        // What is wrong with the keys is told where it stays.
        let faults = std::mem::take(&mut self.keys.faults).into_iter();
        for fault in faults.chain(std::mem::take(&mut self.preferences.faults)) {
            self.feed.push(Cell::notice(Tone::Warning, fault));
        }
        self.printed = 0;
        self.messages = opened.past;
        self.scroll.go_to_end();
        self.name = opened.name;
        self.latch = opened.desk.bypass_latch();
        self.desk = Some(opened.desk);
        self.link = Link::Open(opened.handle);
        self.todos.clear();
        self.queue.clear();
        self.fates.clear();
        self.reordering = Reordering::default();
        self.questions.clear();
        self.status.took = None;
        self.status.earlier = opened.earlier;
        self.status.turns = 0;
        self.status.cost = Decimal::ZERO;
        self.status.used = opened.earlier.used;
        for waiting in std::mem::take(&mut self.unsent) {
            self.send(waiting);
        }
    }

    fn failed(&mut self, error: String) {
        if self.desk.is_none() {
            return self.effect(Effect::GiveUp);
        }
        self.feed.push(Cell::notice(Tone::Error, error));
        self.link = Link::Failed;
        // What was to be sent is not lost.
        if let Some(waiting) = self.unsent.pop()
            && self.editor.is_empty()
        {
            self.editor.set_pieces(waiting.pieces);
        }
    }
}

/// What a command reports, as it is best read.
fn reading(title: &'static str, text: &str, report: Option<&Value>) -> Layer {
    let report = report.filter(|report| report["command"] == "context");
    let context = report.and_then(|report| serde_json::from_value(report.clone()).ok());
    match context {
        Some(report) => Layer::Context(ContextPanel::new(report)),
        None => Layer::Pager(Pager::new(title, text)),
    }
}
