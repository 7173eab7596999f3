//! Checkpoints on real directories: what is kept, what comes back, and what happens when anything
//! fails on the way.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod hostile;
mod property;
mod rewinding;
mod scanning;
mod space;
mod world;
