//! What parts of a session have to say while they cannot reach the stream of events: told before
//! the next event.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use caliban_agent::Event;
use caliban_hooks::{Firing, FiringSink};

/// Remarks that wait; a session that says more than this between two events is not heard.
const MAX_WAITING: usize = 1024;

/// Events waiting to be told.
#[derive(Debug, Clone, Default)]
pub struct Asides(Arc<Mutex<VecDeque<Event>>>);

impl Asides {
    pub fn say(&self, event: Event) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MAX_WAITING {
            waiting.push_back(event);
        }
    }

    pub(crate) fn take(&self) -> VecDeque<Event> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl FiringSink for Asides {
    fn fired(&self, firing: Firing) {
        if let Some(message) = firing.warning.clone().or_else(|| firing.message.clone()) {
            self.say(Event::Notice {
                subtype: "hook",
                message,
            });
        }
        self.say(Event::HookFired {
            event: firing.event.as_str(),
            output: firing.output(),
        });
    }
}
