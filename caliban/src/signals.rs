//! Interrupts: the first asks the run to stop, the second ends the process.

use caliban_model::CancellationToken;

use crate::console::note;

/// A token that is cancelled by SIGINT, SIGTERM or the loss of the terminal. A second SIGINT exits
/// with 130 at once.
pub(crate) fn cancellation() -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        if let Err(error) = listen(&cancelled).await {
            note(&format!("warning: interrupts are not handled: {error}"));
        }
    });
    token
}

/// A token that is cancelled by SIGINT alone; SIGTERM ends the process at once.
pub(crate) fn interruption() -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        if let Err(error) = listen_for_interrupts(&cancelled).await {
            note(&format!("warning: interrupts are not handled: {error}"));
        }
    });
    token
}

#[cfg(unix)]
async fn listen_for_interrupts(token: &CancellationToken) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = interrupt.recv() => token.cancel(),
            _ = terminate.recv() => leave(143),
        }
    }
}

#[cfg(not(unix))]
async fn listen_for_interrupts(token: &CancellationToken) -> std::io::Result<()> {
    listen(token).await
}

#[cfg(unix)]
async fn listen(token: &CancellationToken) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let hung_up = async {
        // Who started the program with `nohup` wants it to go on.
        if is_hangup_ignored() {
            return std::future::pending().await;
        }
        match signal(SignalKind::hangup()) {
            Ok(mut hangup) => hangup.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hung_up => {}
    }
    token.cancel();
    interrupt.recv().await;
    leave(130)
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
async fn listen(token: &CancellationToken) -> std::io::Result<()> {
    tokio::signal::ctrl_c().await?;
    token.cancel();
    tokio::signal::ctrl_c().await?;
    leave(130)
}

#[expect(
    clippy::exit,
    reason = "the user insists: nothing else may delay the end"
)]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}
