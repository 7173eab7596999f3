//! What parts of a session have to say beside its work.

use std::sync::{Arc, Weak};

use caliban_agent::Event;
use caliban_hooks::{EventName, Firing, FiringSink};
use caliban_session::Fanout;
use serde_json::json;

/// Tells the session's hearers at once; nobody where there is no session. It does not keep them: the journal is the
/// first of them and has a sink itself, so that nothing of a session would ever be let go.
#[derive(Debug, Clone, Default)]
pub struct NoticeSink(Weak<Fanout>);

impl NoticeSink {
    pub(crate) fn new(fanout: &Arc<Fanout>) -> Self {
        Self(Arc::downgrade(fanout))
    }

    pub fn say(&self, event: Event) {
        if let Some(fanout) = self.0.upgrade() {
            fanout.say(event);
        }
    }
}

impl FiringSink for NoticeSink {
    fn fired(&self, firing: Firing) {
        let warning = firing.warning.as_ref().map(|warning| {
            let Firing { event, scope, .. } = firing;
            let handler = &firing.handler;
            format!("the {event} hook `{handler}` in the {scope} settings: {warning}")
        });
        if let Some(message) = warning.or_else(|| firing.message.clone()) {
            self.say(Event::Notice {
                subtype: "hook".into(),
                message,
            });
        }
        self.say(Event::HookFired {
            event: firing.event.as_str().into(),
            output: firing.output(),
        });
    }

    fn passed(&self, event: EventName, subject: Option<&str>) {
        self.say(Event::HookPassed {
            event: event.as_str().into(),
            output: json!({ "matcher": subject.unwrap_or("*"), "decision": "none" }),
        });
    }
}
