//! The proxy as programs in the sandbox meet it: over real sockets, by raw bytes and by real clients.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a helper that fails is a test that fails, and what is skipped is said"
)]

mod asking;
mod clients;
mod confusion;
mod lifetime;
mod passing;
mod private;
mod support;
mod throughput;
mod tunnels;
mod upstream;
