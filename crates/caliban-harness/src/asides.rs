//! What parts of a session have to say while they cannot reach the stream of events: told before
//! the next event.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use caliban_agent::Event;
use caliban_hooks::{EventName, Firing, FiringSink};
use serde_json::json;

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
        let warning = firing.warning.as_ref().map(|warning| {
            let Firing { event, scope, .. } = firing;
            let handler = &firing.handler;
            format!("the {event} hook `{handler}` in the {scope} settings: {warning}")
        });
        if let Some(message) = warning.or_else(|| firing.message.clone()) {
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

    fn passed(&self, event: EventName, subject: Option<&str>) {
        self.say(Event::HookPassed {
            event: event.as_str(),
            output: json!({ "matcher": subject.unwrap_or("*"), "decision": "none" }),
        });
    }
}
