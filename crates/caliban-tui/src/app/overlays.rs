//! What lies over the conversation, and what it wants.

use caliban_session::{Command, ModelChange, RuleChange};
use caliban_terminal::Key;

use crate::app::effect::Effect;
use crate::app::state::App;
use crate::layers::{Layer, Pager, Reaction, Wish};

impl App {
    pub(crate) fn press_in_layer(&mut self, key: Key) {
        let Some(layer) = self.layers.last_mut() else {
            return;
        };
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
            Wish::GoOnUntrusted => self.open(crate::host::Which::Asked),
            Wish::Leave => self.effect(Effect::Leave),
            Wish::ShowOutside(text) => self.effect(Effect::ShowText(text)),
            Wish::Dump(rows) => self.effect(Effect::Dump(rows)),
            Wish::Copy(text) => self.copy(text),
            Wish::EndJob(job) => self.effect(Effect::Send(Command::EndJob { job })),
            Wish::ShowJob(job) => {
                if let Some(desk) = &self.desk {
                    let text = desk.job_output(&job);
                    self.layers
                        .push(Layer::Pager(Pager::new(format!("Job {job}"), text)));
                }
            }
            Wish::CycleMode => self.cycle_mode(),
            Wish::ForgetRule { pattern, action } => {
                let change = RuleChange::Remove { pattern, action };
                self.effect(Effect::Send(Command::Rule(change)));
            }
            Wish::Server(command) => self.effect(Effect::Send(Command::Servers(command))),
            Wish::SetModel(model) => {
                let model = ModelChange::Named(model.into());
                self.effect(Effect::Send(Command::SetModel { model }));
            }
            Wish::LoadHistories => {
                if let Some(root) = self.histories.clone() {
                    self.effect(Effect::LoadHistories(root));
                }
            }
        }
    }
}
