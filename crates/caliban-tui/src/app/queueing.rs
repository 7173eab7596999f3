//! Prompts that wait: taken back, changed, dropped, and put in another order.

use caliban_session::{Command, PromptId};

use crate::app::effect::Effect;
use crate::app::state::{App, Waiting};
use crate::layers::{Layer, QueuePanel, QueuedRow};

/// What becomes of a prompt that is being taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is written on in the draft.
    Edited,
    Dropped,
    /// It is sent again, with others in another order.
    Moved,
}

/// Where a prompt goes in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Towards {
    Front,
    Back,
}

/// Prompts on their way to another order. The session knows one order, in which they came: those
/// that are behind what moves are taken back and sent again.
#[derive(Debug, Default)]
pub(crate) struct Reordering {
    awaited: Vec<PromptId>,
    order: Vec<Waiting>,
}

impl App {
    pub(crate) fn show_queue(&mut self) {
        if self.queue.is_empty() {
            return self.say("Nothing waits");
        }
        self.layers.push(Layer::Queue(QueuePanel::default()));
        self.tell_queue();
    }

    /// What the list shows is what waits.
    pub(crate) fn tell_queue(&mut self) {
        let Some(Layer::Queue(panel)) = self.layers.last_mut() else {
            return;
        };
        let is_moving = |waiting: &&Waiting| !self.reordering.awaited.contains(&waiting.id);
        let still = self.queue.iter().filter(is_moving);
        let rows = still
            .chain(&self.reordering.order)
            .map(|waiting| QueuedRow {
                id: waiting.id.clone(),
                text: waiting.text.clone(),
                steers: waiting.steers,
            });
        panel.tell(rows.collect());
    }

    /// Takes the last prompt that waits back into the draft.
    pub(crate) fn edit_last_queued(&mut self) {
        if let Some(waiting) = self.queue.last() {
            return self.take_back(waiting.id.clone(), Fate::Edited);
        }
        match self.unsent.pop() {
            Some(waiting) => self.editor.set_pieces(waiting.pieces),
            None => self.say("Nothing waits"),
        }
    }

    pub(crate) fn take_back(&mut self, prompt: PromptId, fate: Fate) {
        self.fates.push((prompt.clone(), fate));
        self.effect(Effect::Send(Command::TakeBack { prompt }));
    }

    /// Puts a prompt before the one in front of it, or behind the next.
    pub(crate) fn move_queued(&mut self, prompt: &str, towards: Towards) {
        // One thing after the other.
        if !self.reordering.awaited.is_empty() {
            return;
        }
        let place = self.queue.iter().position(|waiting| *waiting.id == *prompt);
        let others = place.and_then(|place| {
            let other = match towards {
                Towards::Front => place.checked_sub(1)?,
                Towards::Back => place + 1,
            };
            (other < self.queue.len()).then_some((place, other))
        });
        let Some((place, other)) = others else {
            return;
        };
        let first = place.min(other);
        let mut order = self.queue.clone();
        order.swap(place, other);
        let order = order.split_off(first);
        let awaited: Vec<PromptId> = order.iter().map(|waiting| waiting.id.clone()).collect();
        self.reordering = Reordering {
            awaited: awaited.clone(),
            order,
        };
        // The last first, so that none of them begins meanwhile that stands behind another.
        for prompt in awaited.into_iter().rev() {
            self.take_back(prompt, Fate::Moved);
        }
    }

    /// A prompt does not wait any more: it was taken back, or it could not be.
    pub(crate) fn taken_back(&mut self, id: &str) {
        let fate = self.fate_of(id).unwrap_or(Fate::Edited);
        let Some(place) = self.queue.iter().position(|waiting| *waiting.id == *id) else {
            return;
        };
        let waiting = self.queue.remove(place);
        match fate {
            Fate::Dropped => self.say("The prompt was dropped"),
            Fate::Moved => self.moved(id),
            Fate::Edited if self.editor.is_empty() => self.editor.set_pieces(waiting.pieces),
            Fate::Edited => {
                self.stash = Some(waiting.pieces);
                self.say("The prompt was taken back; Ctrl+S brings it");
            }
        }
    }

    /// It is being worked on already, or was.
    pub(crate) fn not_taken_back(&mut self, id: &str) {
        if self.fate_of(id) == Some(Fate::Moved) {
            self.reordering.order.retain(|waiting| *waiting.id != *id);
            self.moved(id);
        }
    }

    fn fate_of(&mut self, id: &str) -> Option<Fate> {
        let place = self.fates.iter().position(|(prompt, _)| **prompt == *id)?;
        Some(self.fates.remove(place).1)
    }

    /// Where all are back, they are sent again in their new order.
    fn moved(&mut self, id: &str) {
        self.reordering.awaited.retain(|prompt| **prompt != *id);
        if self.reordering.awaited.is_empty() {
            for mut waiting in std::mem::take(&mut self.reordering.order) {
                self.counter += 1;
                waiting.id = format!("typed-{}", self.counter).into();
                self.send(waiting);
            }
        }
    }
}
