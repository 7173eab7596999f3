//! The one way in which the program waits.
//!
//! One thread does all that is a matter of waiting: connections, the session and its face hand over to each
//! other many thousand times a second, and every hand-over to another thread costs more than what is handed over.
//! What computes or touches the disk for long has threads of its own, and so have signals.

use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Builder;

use crate::console::note;
use crate::exit::Failure;

/// How long a thread for the disk waits for more. One that ends wakes the program, which should sleep
/// when nothing happens: between turns it is kept, and gone before anybody looks.
const KEPT: Duration = Duration::from_millis(150);

/// Works to the end.
pub(crate) fn complete<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().thread_keep_alive(KEPT).build();
    let runtime = runtime.map_err(|error| {
        Failure::Runtime(format!("the system gives nothing to wait with: {error}"))
    })?;
    Ok(runtime.block_on(work))
}

/// The same for work that says itself how the program ends.
pub(crate) fn exit_code(work: impl Future<Output = ExitCode>) -> ExitCode {
    complete(work).unwrap_or_else(|failure| {
        note(&format!("caliban: {failure}"));
        failure.code()
    })
}
