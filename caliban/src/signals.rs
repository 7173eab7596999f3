//! Interrupts: the first asks the run to stop, the second ends the process.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_model::CancellationToken;

use crate::console::note;

/// How long whoever has something to say may take to say it when the user insists.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What the person at the terminal, or whoever sends signals, wants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts {
    /// To stop: SIGINT, SIGTERM or the loss of the terminal.
    pub(crate) cancel: CancellationToken,
    /// To stop at once: a second SIGINT. The process exits with 130 whatever else happens, a moment
    /// later where there are last words.
    pub(crate) insisted: CancellationToken,
    last_words: Arc<Mutex<Option<String>>>,
    /// Set while another program has the terminal, and with it SIGINT.
    pub(crate) is_elsewhere: Arc<AtomicBool>,
    /// What SIGINT stops instead, where something smaller is to be stopped first.
    instead: Arc<Mutex<Option<CancellationToken>>>,
}

impl Interrupts {
    /// Begins to listen for signals.
    pub(crate) fn listen() -> Self {
        let interrupts = Self::default();
        unhandled(listen(interrupts.clone()));
        interrupts
    }

    /// The next SIGINT stops only what watches this token.
    pub(crate) fn stop_instead(&self) -> CancellationToken {
        let token = CancellationToken::new();
        let mut instead = self.instead.lock().unwrap_or_else(PoisonError::into_inner);
        *instead = Some(token.clone());
        token
    }

    /// The next SIGINT stops everything again.
    pub(crate) fn stop_everything(&self) {
        let mut instead = self.instead.lock().unwrap_or_else(PoisonError::into_inner);
        *instead = None;
    }

    /// Whether SIGINT was for something smaller.
    fn is_for_less(&self) -> bool {
        let mut instead = self.instead.lock().unwrap_or_else(PoisonError::into_inner);
        let token = instead.take();
        token.inspect(CancellationToken::cancel).is_some()
    }

    /// What is written to standard output before the process is ended, unless whoever set it takes
    /// it back to say something better.
    pub(crate) fn set_last_words(&self, line: String) {
        *self.words() = Some(line);
    }

    /// Who takes them back speaks for itself.
    pub(crate) fn take_last_words(&self) -> Option<String> {
        self.words().take()
    }

    fn words(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the process, with what there is to say.
    fn insist(&self) -> ! {
        self.insisted.cancel();
        if self.words().is_none() {
            leave(130);
        }
        // Who speaks leaves by itself.
        std::thread::sleep(LAST_WORDS);
        if let Some(line) = self.take_last_words() {
            // Nobody may be reading: then this thread waits, and the process does not.
            std::thread::spawn(move || {
                let mut out = std::io::stdout().lock();
                let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            });
            std::thread::sleep(LAST_WORDS);
        }
        leave(130)
    }
}

/// A token that is cancelled by SIGINT alone; SIGTERM ends the process at once.
pub(crate) fn interruption() -> CancellationToken {
    let token = CancellationToken::new();
    unhandled(listen_for_interrupts(token.clone()));
    token
}

fn unhandled(listening: std::io::Result<()>) {
    if let Err(error) = listening {
        note(&format!("warning: interrupts are not handled: {error}"));
    }
}

#[cfg(unix)]
fn listen_for_interrupts(token: CancellationToken) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    heed(&[SIGINT, SIGTERM], move |signal| match signal {
        SIGTERM => leave(143),
        _ => token.cancel(),
    })
}

#[cfg(not(unix))]
fn listen_for_interrupts(token: CancellationToken) -> std::io::Result<()> {
    listen(Interrupts {
        cancel: token,
        ..Interrupts::default()
    })
}

#[cfg(unix)]
fn listen(interrupts: Interrupts) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = vec![SIGINT, SIGTERM];
    // Who started the program with `nohup` wants it to go on.
    if !is_hangup_ignored() {
        signals.push(SIGHUP);
    }
    heed(&signals, move |signal| {
        let is_elsewhere = interrupts.is_elsewhere.load(Ordering::Relaxed);
        if signal == SIGINT && (is_elsewhere || interrupts.is_for_less()) {
            return;
        }
        if interrupts.cancel.is_cancelled() && signal == SIGINT {
            interrupts.insist();
        }
        interrupts.cancel.cancel();
    })
}

/// Hears signals in a thread of its own: an output that nobody reads may hold up all the others.
#[cfg(unix)]
fn heed(signals: &[i32], mut act: impl FnMut(i32) + Send + 'static) -> std::io::Result<()> {
    /// It does next to nothing.
    const STACK: usize = 128 * 1024;
    // A file that may not grow any more is an error of whoever writes it, and no end of everything.
    // What is started from here has the usual again.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .stack_size(STACK)
        .spawn(move || signals.forever().for_each(&mut act))?;
    Ok(())
}

/// Whether the process was started with SIGHUP ignored; where that cannot be known, it counts as
/// ignored and keeps its default effect.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask & 1 != 0)
}

#[cfg(not(unix))]
fn listen(interrupts: Interrupts) -> std::io::Result<()> {
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupts.cancel.cancel();
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupts.insist();
        }
    });
    Ok(())
}

#[expect(
    clippy::exit,
    reason = "the user insists: nothing else may delay the end"
)]
pub(crate) fn leave(code: i32) -> ! {
    caliban_terminal::restore();
    std::process::exit(code)
}
