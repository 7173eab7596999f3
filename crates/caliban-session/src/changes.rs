//! Mode and model change by commands, and by the work itself: whoever changes them, everybody is told once.

use std::sync::Arc;

use caliban_settings::PermissionMode;

use crate::actor::Actor;
use crate::event::{Facts, What};

/// What everybody was told last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastTold {
    mode: String,
    model: String,
}

impl LastTold {
    pub(crate) fn of(facts: &Facts) -> Self {
        Self {
            mode: facts.permission_mode.clone(),
            model: facts.model.clone(),
        }
    }
}

impl Actor {
    pub(crate) fn tell_mode(&mut self, mode: PermissionMode) {
        if let Some(running) = &mut self.running {
            mode.as_str().clone_into(&mut running.told.mode);
        }
        self.fanout.tell(What::ModeChanged { mode });
    }

    pub(crate) fn tell_model(&mut self, model: Arc<str>) {
        if let Some(running) = &mut self.running {
            running.told.model = model.to_string();
        }
        self.fanout.tell(What::ModelChanged { model });
    }

    /// Tells what the work changed: a command at the prompt does, and the model may plan.
    pub(crate) fn tell_changes(&self, before: &LastTold) {
        let Some(engine) = &self.engine else {
            return;
        };
        let now = LastTold::of(&engine.facts());
        if now.mode != before.mode
            && let Ok(mode) = now.mode.parse()
        {
            self.fanout.tell(What::ModeChanged { mode });
        }
        if now.model != before.model {
            let model = now.model.into();
            self.fanout.tell(What::ModelChanged { model });
        }
    }
}
