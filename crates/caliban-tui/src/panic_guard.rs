//! A fault of our own must not be written over the screen, nor leave the terminal as it is.

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::{Arc, Mutex, PoisonError};

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send + 'static>;

/// While it lives, what a panic has to say waits; when it goes, the terminal is restored first.
pub(crate) struct PanicGuard {
    said: Arc<Mutex<Vec<String>>>,
    before: Option<Hook>,
}

impl PanicGuard {
    pub(crate) fn new() -> Self {
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let before = take_hook();
        set_hook(Box::new(move |info| {
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.push(info.to_string());
        }));
        Self {
            said,
            before: Some(before),
        }
    }
}

impl Drop for PanicGuard {
    #[expect(clippy::print_stderr, reason = "there is nobody else to tell it")]
    fn drop(&mut self) {
        caliban_terminal::restore();
        // While a panic unwinds, hooks cannot be changed.
        if !std::thread::panicking()
            && let Some(before) = self.before.take()
        {
            set_hook(before);
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        for text in said.iter() {
            eprintln!("caliban: internal error: {text}; please report it");
        }
    }
}
