//! The registry of sessions that a server was asked to keep.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_harness::options::Saving;
use caliban_harness::{Process, RunOptions, locations};
use caliban_serve::{Frames, Limits, Registry};

use super::host::{InProcess, Roots};
use crate::args::RegistryArgs;

/// Makes the registry. `options` are the operator's, which an application cannot undo.
pub(super) fn registry(
    args: &RegistryArgs,
    frames: Frames,
    roots: Roots,
    options: RunOptions,
    process: Process,
) -> Registry {
    let limits = Limits {
        running: args.max_running.get(),
        queue: args.max_queue.get(),
        // What is not saved cannot be brought back.
        idle: (options.session.saving == Saving::On).then_some(args.idle.0),
        ..Limits::default()
    };
    let ledgers = ledgers(&process);
    let host = InProcess {
        options,
        process,
        roots,
    };
    Registry::new(Arc::new(host), frames, limits, ledgers)
}

/// Where it is written down which requests there were.
fn ledgers(process: &Process) -> PathBuf {
    locations(process).state_dir().join("serve").join("requests")
}
