//! One script, four faces: what a session promises holds whichever protocol drives it. Each
//! scenario is written once and run over every face by the built binary.
//!
//! Each of these faces is one client at one pipe: none can have a second hearer. Those that can are
//! the server for applications (`tests/serve`) and the agents in the background (`tests/fleet`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod acp;
mod attachments;
mod bench;
mod budget;
mod claude;
mod commands;
mod endings;
mod face;
mod heddle;
mod interrupts;
mod native;
mod process;
mod questions;
mod queue;
mod sessions;
mod settings;
#[path = "../support/mod.rs"]
mod support;
