//! Starts programs for a session and ends them. Nothing a program started outlives it, its
//! session or this process, however that ends: a guardian sees to it. Programs see the
//! environment they are given and nothing else of this process's, and what they write is kept
//! within bounds.

mod capture;
mod confiner;
mod drive;
mod guard;
mod invocation;
mod process;
mod seclusion;
mod tree;

pub use capture::{Beyond, Bound, Bounds, CaptureError, Captured};
pub use confiner::{Confiner, Keepsake};
pub use drive::{Driven, Ending, Finished, Sink, drive, drive_until};
pub use guard::{GUARD_ARGUMENT, guard_main, start_error};
pub use invocation::{Guard, Invocation, Streams};
pub use process::{Exit, Process, SignalNumber};
pub use seclusion::seclude;
