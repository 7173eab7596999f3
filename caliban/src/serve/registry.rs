//! The registry of sessions that a server was asked to keep.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use caliban_harness::options::Saving;
use caliban_harness::{Process, locations};
use caliban_serve::{Frames, Limits, Registry, SessionHost};

use super::ground::Ground;
use super::host::InProcess;
#[cfg(unix)]
use super::workers::Workers;
use crate::args::RegistryArgs;

/// Where sessions live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lives {
    /// In this process.
    Here,
    /// In processes of their own, which outlive this one.
    #[cfg(unix)]
    Apart,
}

/// Makes the registry. The options of `ground` are the operator's, which an application cannot undo.
pub(super) fn registry(
    args: &RegistryArgs,
    frames: Frames,
    lives: Lives,
    ground: Ground,
) -> Registry {
    let (options, process) = (&ground.options, &ground.process);
    let limits = Limits {
        running: args.max_running.get(),
        queue: args.max_queue.get(),
        // What is not saved cannot be brought back.
        idle: (options.session.saving == Saving::On).then_some(args.idle.0),
        ..Limits::default()
    };
    let ledgers = ledgers(process);
    let old = ledgers.clone();
    std::thread::spawn(move || forget_old(&old));
    let host: Arc<dyn SessionHost> = match lives {
        Lives::Here => Arc::new(InProcess(ground)),
        #[cfg(unix)]
        Lives::Apart => Arc::new(Workers::new(ground, limits.idle)),
    };
    Registry::new(host, frames, limits, ledgers)
}

/// Where it is written down which requests there were.
fn ledgers(process: &Process) -> PathBuf {
    locations(process).serve().join("requests")
}

/// Removes what is known of requests that nobody asked about for so long; sessions that nobody named
/// are removed after the same time.
fn forget_old(ledgers: &Path) {
    const OLD: Duration = Duration::from_hours(30 * 24);
    // Where there is nothing yet, there is nothing old.
    for entry in std::fs::read_dir(ledgers).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|it| it.modified()).ok();
        let age = changed.and_then(|changed| changed.elapsed().ok());
        if age.is_some_and(|age| age > OLD) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
