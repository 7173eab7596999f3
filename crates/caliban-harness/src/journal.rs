//! What is kept of a session before anybody hears of it: its journal, and the debug log.

use std::sync::{Mutex, PoisonError};

use caliban_agent::Event;
use caliban_session::Journal;
use futures::future::BoxFuture;

use crate::debug_log::DebugLog;
use crate::recorder::Recorder;

/// Everything that keeps.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) recorder: Option<Recorder>,
    pub(crate) debug: Option<Mutex<DebugLog>>,
}

impl Keeper {
    fn note(&self, event: &Event) {
        if let Some(debug) = &self.debug {
            let mut debug = debug.lock().unwrap_or_else(PoisonError::into_inner);
            debug.note(event);
        }
    }
}

impl Journal for Keeper {
    fn record(&self, event: &Event) -> Option<BoxFuture<'_, ()>> {
        self.note(event);
        let recorder = self.recorder.as_ref()?;
        recorder.record(event)
    }

    fn record_aside(&self, event: &Event) {
        if let Some(recorder) = &self.recorder {
            recorder.record_aside(event);
        }
        self.note(event);
    }
}
