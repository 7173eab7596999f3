//! A fleet on many machines, with the built program and a real NATS server: every test has a
//! server of its own on a free port, in a directory of its own, and ends what it started.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic, and say that it is skipped"
)]

mod apart;
mod cluster;
mod crashes;
mod files;
mod fleet;
mod jobs;
mod load;
mod network;
mod operation;
mod questions;
mod slurm;
#[path = "../support/mod.rs"]
mod support;
