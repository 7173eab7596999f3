//! `caliban mcp` through the built binary: settings files, logins with a test that plays the
//! browser, and what is kept of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic and say why it did nothing"
)]

#[path = "../support/mod.rs"]
mod support;

mod login;
mod servers;
