//! Agents in the background, with the built program: their processes, the daemon, and everything
//! that is said to both. Every test has a home of its own, and ends what it started.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod attaching;
mod commands;
mod crashes;
mod fleet;
mod questions;
mod sub_agents;
#[path = "../support/mod.rs"]
mod support;
mod versions;
mod worktrees;
