//! What each command does: a few lines and one collaborator.

use std::sync::Arc;

use caliban_agent::{Answer, Outcome, Reply, RunTotals};

use crate::actor::Actor;
use crate::command::{
    Command, Delivery, ModelChange, Prompt, PromptId, RuleChange, ServerCommand, Shutdown,
};
use crate::event::{ClosedWhy, Place, Refused, What};
use crate::inbox::{Standing, Work};

/// Why an answer has no effect.
const NOT_OPEN: &str = "there is no such question, or it was answered already";

impl Actor {
    /// A command; nothing once nobody can send one any more.
    pub(crate) fn heed(&mut self, wish: Option<Command>) {
        match wish {
            Some(command) => self.obey(command),
            None => self.abandon(),
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Prompt { prompt, delivery } => self.prompt(prompt, delivery),
            Command::TakeBack { prompt } => self.take_back(&prompt),
            Command::Interrupt => {
                self.interrupt();
                let waiting = self.inbox.waiting();
                self.fanout.tell(What::Interrupted { waiting });
            }
            Command::Answer { question, answer } => self.answer(question, answer),
            Command::AnswerElicitation { question, reply } => self.reply(question, reply),
            Command::SetMode { mode } => match self.controls.set_mode(mode) {
                Ok(()) => self.tell_mode(mode),
                Err(reason) => self.refuse(Place::Mode, reason),
            },
            Command::SetModel { model } => self.set_model(&model),
            Command::SetReasoning { reasoning } => {
                self.controls.set_reasoning(reasoning);
                self.fanout.tell(What::ReasoningChanged { reasoning });
            }
            Command::Rule(change) => self.change_rule(change),
            Command::Compact { id, instructions } => self.once(Work::Compact { id, instructions }),
            Command::Shell { id, line: command } => self.once(Work::Shell { id, command }),
            Command::Rewind { id, rewind } => self.once(Work::Rewind { id, rewind }),
            Command::DropLatch => {
                let mode = self.controls.drop_latch();
                self.tell_mode(mode);
            }
            Command::Servers(command) => self.command_server(&command),
            Command::EndJob { job } => {
                if let Err(reason) = self.controls.end_job(&job) {
                    self.refuse(Place::Job(job), reason);
                }
            }
            Command::Background => self.controls.send_to_background(),
            Command::Shutdown { when } => self.shut_down(when),
        }
    }

    fn prompt(&mut self, prompt: Prompt, delivery: Delivery) {
        match self.standing(&prompt.id) {
            Standing::Pending => {}
            Standing::Ended(outcome, totals) => self.repeat(prompt.id, outcome, totals),
            Standing::New => match delivery {
                Delivery::Steer if self.can_steer() => self.steer(prompt),
                Delivery::Steer | Delivery::Queue => self.queue(Work::Prompt(Box::new(prompt))),
            },
        }
    }

    /// Work that is no prompt; the same id is the same piece of work.
    fn once(&mut self, work: Work) {
        match self.standing(work.id()) {
            Standing::Pending => {}
            Standing::Ended(outcome, totals) => self.repeat(work.id().clone(), outcome, totals),
            Standing::New => self.queue(work),
        }
    }

    fn repeat(&self, prompt: PromptId, outcome: Outcome, totals: Box<RunTotals>) {
        self.fanout.tell(What::Repeated {
            prompt,
            outcome,
            totals,
        });
    }

    fn can_steer(&self) -> bool {
        let has_room = self.inbox.has_room(self.mailbox.len());
        self.running.is_some() && self.leaving.is_none() && has_room
    }

    fn steer(&mut self, prompt: Prompt) {
        self.fanout.tell(What::Queued {
            prompt: prompt.id.clone(),
            position: 0,
        });
        self.steering.insert(prompt.id.clone(), prompt.attach);
        self.mailbox.put(prompt.id, prompt.message);
    }

    fn standing(&self, id: &str) -> Standing {
        let is_running = self
            .running
            .as_ref()
            .is_some_and(|running| *running.id == *id);
        if is_running || self.steering.contains_key(id) {
            return Standing::Pending;
        }
        self.inbox.standing(id)
    }

    /// What is begun at once does not wait, and nobody is told that it did.
    fn queue(&mut self, work: Work) {
        let prompt = work.id().clone();
        let queued = match &self.leaving {
            Some(_) => Err("the session is ending".to_owned()),
            None => self.inbox.push(work),
        };
        match queued {
            Ok(0) if self.running.is_none() => {}
            Ok(position) => self.fanout.tell(What::Queued { prompt, position }),
            Err(reason) => self.refuse(Place::Prompt(prompt), reason),
        }
    }

    fn take_back(&mut self, prompt: &PromptId) {
        if self.inbox.take_back(prompt) || self.take_from_mailbox(prompt) {
            self.fanout.tell(What::TakenBack {
                prompt: prompt.clone(),
            });
        } else {
            let reason = "it does not wait any more".to_owned();
            self.refuse(Place::TakeBack(prompt.clone()), reason);
        }
    }

    fn take_from_mailbox(&mut self, prompt: &PromptId) -> bool {
        let is_found = self.mailbox.take_back(prompt).is_some();
        if is_found {
            self.steering.remove(prompt);
        }
        is_found
    }

    fn interrupt(&mut self) {
        if let Some(running) = &self.running {
            running.stop.cancel();
        }
    }

    fn answer(&mut self, question: Arc<str>, answer: Answer) {
        if self.questions.answer(&question, answer).is_err() {
            self.refuse(Place::Question(question), NOT_OPEN.to_owned());
        }
    }

    fn reply(&mut self, question: Arc<str>, reply: Reply) {
        if self.questions.reply(&question, reply).is_err() {
            self.refuse(Place::Question(question), NOT_OPEN.to_owned());
        }
    }

    fn set_model(&mut self, model: &ModelChange) {
        match self.controls.set_model(model) {
            Ok(model) => self.tell_model(model),
            Err(reason) => self.refuse(Place::Model, reason),
        }
    }

    fn change_rule(&mut self, change: RuleChange) {
        let done = self.controls.change_rule(&change);
        match done {
            Ok(()) => self.fanout.tell(What::RuleChanged(change)),
            Err(reason) => self.refuse(Place::Rule, reason),
        }
    }

    fn command_server(&mut self, command: &ServerCommand) {
        if let Err(reason) = self.controls.command_server(command) {
            self.refuse(Place::Server(command.server().to_owned()), reason);
        }
    }

    fn shut_down(&mut self, when: Shutdown) {
        match when {
            Shutdown::WhenIdle if self.leaving.is_none() => self.leave(ClosedWhy::Shutdown, None),
            Shutdown::WhenIdle => {}
            Shutdown::Now => {
                self.interrupt();
                self.leave(ClosedWhy::Shutdown, Some(Outcome::Cancelled));
            }
        }
    }

    /// Nobody can want anything any more.
    fn abandon(&mut self) {
        self.interrupt();
        self.leave(ClosedWhy::Abandoned, Some(Outcome::Cancelled));
    }

    fn refuse(&self, what: Place, reason: String) {
        self.fanout.tell(What::Refused(Refused { what, reason }));
    }
}
