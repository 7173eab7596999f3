#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
//! Handlers as they run: real programs, a real server, real processes.

mod background;
mod commands;
mod decisions;
mod http;
mod matrix;
mod runners;
mod server;
mod settings;
mod support;
