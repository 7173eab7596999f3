//! What lies over the conversation, and what it wants.

use std::sync::Arc;

use caliban_session::{Command, ModelChange, PromptId, RuleChange};
use caliban_terminal::Key;

use crate::app::answering::allow;
use crate::app::effect::{Effect, PanelEffect};
use crate::app::queueing::Fate;
use crate::app::state::{App, Rewinding};
use crate::farewell::Departure;
use crate::layers::{AgentsPanel, JobsPanel, Layer, Pager, Reaction, SessionsPanel, Wish};
use crate::sessions_desk::SessionRow;

impl App {
    pub(crate) fn press_in_layer(&mut self, key: Key) {
        let Some(layer) = self.layers.last_mut() else {
            return;
        };
        if let Layer::Opening(question) = layer
            && !question.hears(key, self.now)
        {
            return;
        }
        match layer.press(key) {
            Reaction::Stay => {}
            Reaction::Close => {
                self.layers.pop();
            }
            Reaction::Do(wish) => self.fulfil(wish),
            Reaction::CloseAnd(wish) => {
                self.layers.pop();
                self.fulfil(wish);
            }
        }
    }

    /// Whether something lies over the conversation, and not only where one writes.
    pub(crate) fn is_covered(&self) -> bool {
        match self.layers.last() {
            None | Some(Layer::History(_)) => false,
            Some(_) => true,
        }
    }

    /// The list of sessions, where it is open.
    pub(crate) fn sessions_panel(&mut self) -> Option<&mut SessionsPanel> {
        match self.layers.last_mut() {
            Some(Layer::Sessions(panel)) => Some(panel),
            Some(_) | None => None,
        }
    }

    /// What is to be told about a server, where its panel is or in passing.
    pub(crate) fn tell_of_servers(&mut self, text: String) {
        match self.layers.last_mut() {
            Some(Layer::Servers(panel)) => panel.tell(text),
            Some(_) | None => self.say(text),
        }
    }

    pub(crate) fn show_jobs(&mut self) {
        match &self.desk {
            Some(desk) => {
                let panel = JobsPanel::new(Arc::clone(desk));
                self.layers.push(Layer::Jobs(panel));
            }
            None => self.say("The session is not there yet"),
        }
    }

    /// Shows agents in the background, and keeps listening as long as they are looked at.
    pub(crate) fn show_agents(&mut self) {
        let Some(desk) = self.desk.clone() else {
            return self.say("The session is not there yet");
        };
        let (panel, watch) = AgentsPanel::new(Arc::clone(&desk));
        self.layers.push(Layer::Agents(panel));
        self.errand(PanelEffect::WatchAgents(desk, watch));
    }

    /// The panel of agents, though something of theirs may be read above it.
    pub(crate) fn agents_panel(&mut self) -> Option<&mut AgentsPanel> {
        self.layers.iter_mut().rev().find_map(|layer| match layer {
            Layer::Agents(panel) => Some(panel),
            _ => None,
        })
    }

    /// What was asked about sessions has come.
    pub(crate) fn sessions_done(&mut self, done: Result<Vec<SessionRow>, String>) {
        match (done, self.sessions_panel()) {
            (Ok(rows), Some(panel)) => panel.changed(rows),
            (Ok(rows), None) => {
                let query = std::mem::take(&mut self.query);
                let panel = SessionsPanel::new(rows, self.name.clone(), &query);
                self.layers.push(Layer::Sessions(panel));
            }
            (Err(error), Some(panel)) => panel.tell(error),
            (Err(error), None) => self.say(error),
        }
    }

    pub(crate) fn session_changed(&mut self, done: Result<String, String>) {
        let is_changed = done.is_ok();
        let text = done.unwrap_or_else(|error| error);
        match self.sessions_panel() {
            Some(panel) => panel.tell(text),
            None => self.say(text),
        }
        if is_changed && self.sessions_panel().is_some() {
            self.effect(Effect::ListSessions);
        }
    }

    fn fulfil(&mut self, wish: Wish) {
        match wish {
            Wish::Draft(text) => {
                self.editor.set_text(&text);
                self.draft_edited();
            }
            Wish::SendLine(line) if line.is_empty() => {}
            Wish::SendLine(line) => self.send_line(&line),
            Wish::OpenSession(name) => self.switch_to(name),
            Wish::Trust => self.effect(Effect::Trust),
            Wish::GoOnUntrusted => self.ask_about_imports(),
            Wish::JudgeImports(verdict) => self.effect(Effect::JudgeImports(verdict)),
            Wish::Leave => self.effect(Effect::Leave(Departure::Out)),
            Wish::ShowOutside(text) => self.effect(Effect::ShowText(text)),
            Wish::Dump(rows) => self.effect(Effect::Dump(rows)),
            Wish::Copy(text) => self.copy(text),
            Wish::EditQueued(prompt) => self.take_back(prompt, Fate::Edited),
            Wish::DropQueued(prompt) => self.take_back(prompt, Fate::Dropped),
            Wish::MoveQueued { prompt, towards } => self.move_queued(&prompt, towards),
            Wish::EndJob(job) => self.effect(Effect::Send(Command::EndJob { job })),
            Wish::ShowJob(job) => {
                if let Some(desk) = &self.desk {
                    let text = desk.job_output(&job);
                    self.layers
                        .push(Layer::Pager(Pager::new(format!("Job {job}"), text)));
                }
            }
            Wish::ShowJobs => self.show_jobs(),
            Wish::ShowAgents => self.show_agents(),
            Wish::AttachAgent(id) => {
                if let Some(desk) = &self.desk {
                    let (program, arguments) = desk.attachment(&id);
                    self.effect(Effect::HandOver { program, arguments });
                }
            }
            Wish::ChangeAgent(change) => {
                if let Some(desk) = self.desk.clone() {
                    self.errand(PanelEffect::ChangeAgent(desk, change));
                }
            }
            Wish::CycleMode => self.cycle_mode(),
            Wish::ForgetRule { pattern, action } => {
                let change = RuleChange::Remove { pattern, action };
                self.effect(Effect::Send(Command::Rule(change)));
            }
            Wish::Server(command) => self.effect(Effect::Send(Command::Servers(command))),
            Wish::LogInToServer(server) => match self.desk.clone() {
                Some(desk) => self.errand(PanelEffect::LogInToServer(desk, server)),
                None => self.say("The session is not there yet"),
            },
            Wish::Read(title, text) => self.layers.push(Layer::Pager(Pager::new(title, text))),
            Wish::AskToCompact => self.ask_to_compact(),
            Wish::SetModel(model) => {
                let model = ModelChange::Named(model.into());
                self.effect(Effect::Send(Command::SetModel { model }));
            }
            Wish::PreviewRewind(rewind) => {
                if let Some(desk) = self.desk.clone() {
                    self.effect(Effect::PreviewRewind(desk, rewind));
                }
            }
            Wish::Rewind { rewind, next } => {
                self.counter += 1;
                let id: PromptId = format!("typed-{}", self.counter).into();
                self.rewinding = Some(Rewinding {
                    id: id.clone(),
                    what: rewind.what,
                    next,
                });
                self.effect(Effect::Send(Command::Rewind { id, rewind }));
            }
            Wish::PreviewSession(name) => self.errand(PanelEffect::PreviewSession(name)),
            Wish::SearchSessions(text) => self.errand(PanelEffect::SearchSessions(text)),
            Wish::ChangeSession(change) => self.errand(PanelEffect::ChangeSession(change)),
            Wish::ProposeSetting { key, value } => self.propose_setting(key, &value),
            Wish::ChangeEffort(step) => self.change_effort(step),
            Wish::ReadMemory(value) => self.read_memory(&value),
            Wish::EditMemory(value) => self.edit_memory(&value),
            Wish::AskToForget(value) => self.ask_to_forget(value),
            Wish::ForgetMemory(value) => self.forget_memory(&value),
            Wish::SaveKey {
                provider,
                key,
                begins,
            } => self.errand(PanelEffect::SaveKey {
                provider,
                key,
                begins,
            }),
            Wish::ForgetKey(provider) if provider.is_empty() => {}
            Wish::ForgetKey(provider) => self.errand(PanelEffect::ForgetKey(provider)),
            Wish::AllowParts { question, input } => self.answer(question, allow(Some(input))),
            Wish::TryTheme(theme, custom) => self.try_theme(theme, custom),
            Wish::GiveUp => self.effect(Effect::GiveUp),
            Wish::SettingsWritten => self.effect(Effect::LookAgain),
            Wish::LoadHistories => {
                if let Some(root) = self.histories.clone() {
                    self.effect(Effect::LoadHistories(root));
                }
            }
        }
    }
}
