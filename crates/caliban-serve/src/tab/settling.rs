//! Changes of the model, the mode and the effort: each is answered when the session has said what
//! became of it.

use std::sync::Arc;

use caliban_model::Reasoning;
use caliban_session::{Command, ModelChange, Place, Refused};
use tokio::sync::oneshot;

use super::{Outcome, Tab, gone};
use crate::answer::{Code, Done, Problem, Settled};
use crate::request::{Effort, Set};

/// Changes that the session has not spoken of yet, in the order they were asked for.
#[derive(Debug, Default)]
pub(super) struct Settings(Vec<Asked>);

#[derive(Debug)]
struct Asked {
    open: Vec<Part>,
    trouble: Option<Problem>,
    reply: Option<oneshot::Sender<Outcome>>,
}

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Model,
    Mode,
    Effort,
}

impl Settings {
    /// The session has spoken of such a change.
    pub(super) fn heard(&mut self, part: Part, trouble: Option<&str>) {
        let waiting = self.0.iter_mut().find(|asked| asked.open.contains(&part));
        let Some(asked) = waiting else {
            return;
        };
        asked.open.retain(|open| *open != part);
        if let Some(reason) = trouble {
            asked
                .trouble
                .get_or_insert_with(|| Problem::new(Code::Refused, reason));
        }
        self.0.retain_mut(|asked| {
            if asked.open.is_empty() {
                asked.answer();
            }
            !asked.open.is_empty()
        });
    }

    /// The session will say nothing any more.
    pub(super) fn abandon(&mut self) {
        for asked in &mut self.0 {
            asked.trouble = Some(gone());
            asked.answer();
        }
        self.0.clear();
    }
}

impl Asked {
    fn answer(&mut self) {
        let answer = match self.trouble.take() {
            Some(problem) => Err(problem),
            None => Ok(Done::Settled(Settled {})),
        };
        if let Some(reply) = self.reply.take() {
            // Whoever asked may have gone.
            let _ = reply.send(answer);
        }
    }
}

impl Tab {
    pub(super) async fn set(&mut self, set: Set, reply: oneshot::Sender<Outcome>) {
        if let Err(problem) = self.wake().await {
            let _ = reply.send(Err(problem));
            return;
        }
        let Some(hosted) = &self.hosted else {
            return;
        };
        let mut commands = Vec::new();
        if let Some(model) = set.model {
            let model = ModelChange::Named(Arc::from(model));
            commands.push((Part::Model, Command::SetModel { model }));
        }
        if let Some(mode) = set.mode {
            commands.push((Part::Mode, Command::SetMode { mode }));
        }
        if let Some(effort) = set.effort {
            let reasoning = Reasoning::Effort(effort.into());
            commands.push((Part::Effort, Command::SetReasoning { reasoning }));
        }
        self.settings.0.push(Asked {
            open: commands.iter().map(|(part, _)| *part).collect(),
            trouble: None,
            reply: Some(reply),
        });
        for (_, command) in commands {
            // If it ended meanwhile, its end is heard next.
            let _ = hosted.send(command).await;
        }
    }

    /// A command had no effect.
    pub(super) fn refused(&mut self, refused: &Refused) {
        let part = match refused.what {
            Place::Model => Part::Model,
            Place::Mode => Part::Mode,
            Place::Prompt(_)
            | Place::TakeBack(_)
            | Place::Question(_)
            | Place::Rule
            | Place::Server(_)
            | Place::Job(_) => return,
        };
        self.settings.heard(part, Some(&refused.reason));
    }
}

impl From<Effort> for caliban_model::Effort {
    fn from(effort: Effort) -> Self {
        match effort {
            Effort::Low => Self::Low,
            Effort::Medium => Self::Medium,
            Effort::High => Self::High,
            Effort::Xhigh => Self::Xhigh,
            Effort::Max => Self::Max,
        }
    }
}
