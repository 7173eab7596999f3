//! Interrupts: the first asks the run to stop, the second ends the process.

use caliban_model::CancellationToken;

use crate::console::note;

/// A token that is cancelled by SIGINT, SIGTERM or the loss of the terminal. A second SIGINT exits
/// with 130 at once.
pub(crate) fn cancellation() -> CancellationToken {
    let token = CancellationToken::new();
    unhandled(listen(token.clone()));
    token
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
    listen(token)
}

#[cfg(unix)]
fn listen(token: CancellationToken) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = vec![SIGINT, SIGTERM];
    // Who started the program with `nohup` wants it to go on.
    if !is_hangup_ignored() {
        signals.push(SIGHUP);
    }
    heed(&signals, move |signal| {
        if token.is_cancelled() && signal == SIGINT {
            leave(130);
        }
        token.cancel();
    })
}

/// Hears signals in a thread of its own: an output that nobody reads may hold up all the others.
#[cfg(unix)]
fn heed(signals: &[i32], mut act: impl FnMut(i32) + Send + 'static) -> std::io::Result<()> {
    /// It does next to nothing.
    const STACK: usize = 128 * 1024;
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
fn listen(token: CancellationToken) -> std::io::Result<()> {
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            token.cancel();
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            leave(130);
        }
    });
    Ok(())
}

#[expect(
    clippy::exit,
    reason = "the user insists: nothing else may delay the end"
)]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}
