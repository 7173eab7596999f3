//! The model and its effort, where they can be changed while a run goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_model::Reasoning;

/// Turned by whoever drives the session, read by its runs before every turn.
#[derive(Debug, Clone)]
pub struct Dial(Arc<Mutex<Reading>>);

/// Where a dial stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub model: Arc<str>,
    pub reasoning: Reasoning,
    /// How often it was turned.
    pub turned: u64,
}

impl Dial {
    pub fn new(model: Arc<str>, reasoning: Reasoning) -> Self {
        Self(Arc::new(Mutex::new(Reading {
            model,
            reasoning,
            turned: 0,
        })))
    }

    pub fn read(&self) -> Reading {
        self.lock().clone()
    }

    pub fn set_model(&self, model: Arc<str>) {
        let mut reading = self.lock();
        reading.model = model;
        reading.turned += 1;
    }

    pub fn set_reasoning(&self, reasoning: Reasoning) {
        let mut reading = self.lock();
        reading.reasoning = reasoning;
        reading.turned += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
